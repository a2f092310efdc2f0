//! The process that this is: the one in which Evener was first used, or a child that a fork made of it, where threads and locks of Evener's are not.

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;

/// The number of the process that has used Evener first; 0 before.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Makes this process the one that uses Evener.
///
/// # Errors
///
/// `RuntimeError` in a forked child of a process that used it.
pub(crate) fn enter() -> PyResult<()> {
    let this = std::process::id();
    // Relaxed: a number on its own. A fork copies it, and no other process writes it.
    match OWNER.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed) {
        Err(owner) if owner != this => Err(PyRuntimeError::new_err(
            "evener was used before this process was forked; start child processes by spawn or forkserver",
        )),
        _ => Ok(()),
    }
}
