//! Jobs and sessions for unit tests.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use evener_core::{Algorithm, Direction, Job, Padding, Session};

/// An armed job of so many bytes.
pub(crate) fn job(session: &'static Session, bytes: usize) -> Box<Job<'static>> {
    let mut job = Job::in_place(vec![0; bytes].leak());
    job.arm(session, &[0; 16], bytes);
    job
}

/// A session of AES-128-CTR.
pub(crate) fn session() -> &'static Session {
    let session = Session::new(Algorithm::Aes128Ctr, Direction::Encrypt, Padding::None, &[0; 16]);
    Box::leak(Box::new(session.unwrap()))
}

/// Fails unless `wait` returns: what it waits for is there.
pub(crate) fn returns(wait: impl FnOnce() + Send + 'static) {
    let (ended, ends) = channel::<()>();
    thread::spawn(move || {
        wait();
        drop(ended);
    });
    assert_eq!(ends.recv_timeout(Duration::from_secs(60)), Err(RecvTimeoutError::Disconnected));
}

/// A job over memory of its own.
pub(crate) fn unarmed_job() -> Box<Job<'static>> {
    Job::in_place(vec![0; 16].leak())
}
