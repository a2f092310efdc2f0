//! Signals: the first one asks the run to stop, the second one ends the process at once.

use std::sync::Arc;

use evener::Cancel;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use super::exit_status::Exit;

/// What a run listens to from now on. Called after the prompts for passphrases: a prompt is left by the
/// signal's usual effect.
///
/// # Errors
///
/// Where the system refuses a signal handler.
pub(crate) fn cancel_on_signals() -> anyhow::Result<Cancel> {
    let cancel = Cancel::default();
    // Not SIGHUP: nohup has it ignored, and a handler would undo that.
    for signal in [SIGINT, SIGTERM] {
        // In this order: what the first signal sets, the second one finds set.
        flag::register_conditional_shutdown(signal, Exit::Stopped as i32, cancel.flag())?;
        flag::register(signal, cancel.flag())?;
    }
    // A file that grows beyond the limit is then an error of that file, not the end of the process.
    flag::register(SIGXFSZ, Arc::default())?;
    Ok(cancel)
}
