//! Waiting with an end: what never comes makes a test red instead of silent. No test is judged by time.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Assumed, not measured: 60 s, because it judges standstill and not speed: hundreds of times what anything here takes on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until `is_so`; whether it came to that within [`TIMEOUT`].
pub fn soon(is_so: impl FnMut() -> bool) -> bool {
    within(TIMEOUT, is_so)
}

/// Waits until `is_so`; whether it came to that within `timeout`.
pub fn within(timeout: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    while !is_so() {
        if since.elapsed() > timeout {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Runs `body` on a thread of its own, so that a deadlock becomes a red test instead of a silent one.
pub fn without_standstill(body: impl FnOnce() + Send + 'static) {
    let (ended, ends) = channel::<()>();
    let thread = thread::spawn(move || {
        // Dropped at the end, whichever way the body ends.
        let _ended = ended;
        body();
    });
    match ends.recv_timeout(TIMEOUT) {
        Err(RecvTimeoutError::Timeout) => panic!("nothing moves for {TIMEOUT:?}"),
        _ => thread.join().unwrap_or_else(|cause| resume_unwind(cause)),
    }
}
