//! The person at the terminal: lines and answers, the exit status, sizes and times as text, signals.

mod exit_status;
pub(crate) mod output;
pub(crate) mod signals;
pub(crate) mod units;

pub(crate) use exit_status::{Exit, exit_status_help};
pub(crate) use output::PathDisplay;
