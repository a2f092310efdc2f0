//! Signals: the first one asks the run to stop, and the process ends by it when all is cleaned up, so that a shell's loop ends, too. What was ignored when
//! the process was started (nohup, `trap ''`) stays ignored.
//!
//! Path: [`cancel_on_signals`] or [`end_soon_after_signals`] -> the run sees its [`Cancel`] -> [`end`], the last act of `main`.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{io, thread};

use evener::Cancel;
use evener_startup::{Caught, end_by, was_ignored};
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
    SIGXFSZ,
};
use signal_hook::flag;

use super::exit_status::Exit;

/// What asks a process that serves to stop.
const STOPPING: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];

/// What ends a process that does nothing about it, and can be caught.
const ENDING: [i32; 11] =
    [SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGALRM, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGVTALRM, SIGPROF];

/// Time in which a run comes to its end by itself after a signal. Then it is ended, for a key that is derived, or a sync, does not see the
/// signal. Assumed, not measured: 50 ms, more than it takes to leave a segment, less than a user takes for a delay.
const BY_ITSELF: Duration = Duration::from_millis(50);

static CAUGHT: OnceLock<Arc<Caught>> = OnceLock::new();

/// What a process that serves listens to from now on.
///
/// # Errors
///
/// Where the system refuses a signal handler.
pub(crate) fn cancel_on_signals() -> anyhow::Result<Cancel> {
    catch(&STOPPING).map(|(cancel, _)| cancel)
}

/// What a run that makes files listens to from now on. Where it does not come to its end by itself soon, `abandon` is called and the process ends; where
/// no thread can be had that sees to it, when the run has come to its end.
///
/// # Errors
///
/// Where the system refuses a signal handler.
pub(crate) fn end_soon_after_signals(abandon: fn()) -> anyhow::Result<Cancel> {
    let (cancel, caught) = catch(&ENDING)?;
    let watch = move || {
        let signal = caught.wait();
        thread::sleep(BY_ITSELF);
        abandon();
        end_by(signal)
    };
    thread::Builder::new().name("evener-signals".to_owned()).stack_size(STACK_BYTES).spawn(watch).ok();
    Ok(cancel)
}

/// Space for a thread that calls little.
const STACK_BYTES: usize = 128 << 10;

fn catch(signals: &[i32]) -> anyhow::Result<(Cancel, Arc<Caught>)> {
    let cancel = Cancel::default();
    let caught = note(signals, cancel.flag())?;
    // A file that grows beyond the limit is then an error of that file, not the end of the process.
    flag::register(SIGXFSZ, Arc::default())?;
    Ok((cancel, caught))
}

/// Has the first of `signals` noted, and `flag` set by it.
///
/// # Errors
///
/// Where the system refuses a signal handler.
pub(crate) fn note(signals: &[i32], flag: Arc<AtomicBool>) -> io::Result<Arc<Caught>> {
    let caught = Arc::new(Caught::new(signals, flag)?);
    CAUGHT.set(Arc::clone(&caught)).ok();
    Ok(caught)
}

/// The signal by which this process is to end.
pub(crate) fn noted() -> Option<i32> {
    CAUGHT.get().and_then(|caught| caught.signal())
}

/// Ends the process by the signal that it was given, if it was: for what waits without an end of its own.
pub(crate) fn end_if_noted() {
    if let Some(signal) = noted() {
        end_by(signal);
    }
}

/// Ends the process: by the signal that stopped it, if one did.
pub(crate) fn end(exit: Exit) -> ExitCode {
    match noted() {
        Some(signal) if exit == Exit::Stopped => end_by(signal),
        _ => exit.into(),
    }
}

/// Ends the process as one whose reader has gone: quietly, by `SIGPIPE`. Returns where that is ignored: then it is an error like any other.
pub(crate) fn end_by_broken_pipe() {
    if !was_ignored(SIGPIPE) {
        end_by(SIGPIPE);
    }
}
