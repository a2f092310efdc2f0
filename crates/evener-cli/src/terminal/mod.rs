//! The person at the terminal: lines and answers, the exit status, sizes and times as text, signals, keys and the screen.

pub(crate) mod columns;
mod exit_status;
pub(crate) mod keyboard;
pub(crate) mod output;
pub(crate) mod prompt;
mod results_file;
pub(crate) mod screen;
pub(crate) mod signals;
pub(crate) mod units;
pub(crate) mod waiting;

pub(crate) use exit_status::{Exit, examples_help, exit_status_help};
pub(crate) use output::PathDisplay;
pub(crate) use results_file::ResultsFile;
