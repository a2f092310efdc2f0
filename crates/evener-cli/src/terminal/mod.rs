//! The person at the terminal: lines and answers, the exit status, sizes and times as text, signals.

pub(crate) mod output;
pub(crate) mod signals;
pub(crate) mod units;
