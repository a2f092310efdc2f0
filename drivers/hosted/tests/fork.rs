//! A forked child: nothing of the parent's connection is there, and it gets one of its own.
#![allow(unsafe_code, reason = "a fork")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, where both mean a failed test")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use evener_core::{
    Algorithm, Direction, InlineDriver as _, Job, JobError, Nanos, Outcome, Padding, QueuedDriver, Session,
};
use evener_driver_hosted::Module;
use evener_driver_libcrypto::Libcrypto;
use support::{Peer, soon};

const TEXT: [u8; 4096] = [0x5A; 4096];
const PATIENCE: Nanos = Nanos::from_millis(5_000);

fn job(session: &Arc<Session>) -> Box<Job<'static>> {
    let mut job = Job::in_place(TEXT.to_vec().leak());
    job.arm(Arc::clone(session), &[7; 16], TEXT.len());
    job
}

fn is_right(job: &Job<'_>, session: &Arc<Session>) -> bool {
    let mut burst = [self::job(session)];
    Libcrypto::new().unwrap().run(&mut burst);
    matches!(job.outcome(), Outcome::Done { .. }) && job.output() == burst[0].output()
}

/// Runs one job on a driver that held `held` jobs when the process was forked; says what was wrong.
fn in_child(driver: &mut dyn QueuedDriver<'static>, session: &Arc<Session>, held: usize) -> Result<(), i32> {
    let is_mapped =
        || std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains("evener-hosted"));
    let check = |holds: bool, code| if holds { Ok(()) } else { Err(code) };
    check(!is_mapped(), 10)?;
    let mut done = Vec::new();
    driver.poll(&mut done, PATIENCE);
    let lost = done.iter().filter(|job| job.outcome() == Outcome::Failed(JobError::ModuleLost));
    check(done.len() == held && lost.count() == held, 11)?;
    driver.submit(job(session)).map_err(|_| 12)?;
    done.clear();
    driver.poll(&mut done, PATIENCE);
    check(done.len() == 1 && is_right(&done[0], session), 13)?;
    check(is_mapped(), 14)
}

#[test]
fn a_child_gives_up_its_copies_of_jobs_and_gets_a_connection_of_its_own_while_the_parent_s_goes_on() {
    let peer = Peer::start();
    let module = Module::open(&format!("hosted:{}", peer.socket().display()).parse().unwrap()).unwrap();
    let mut driver = module.driver();
    let key = Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[1; 16]).unwrap();
    let session = Arc::new(key);
    (0..3).for_each(|_| driver.submit(job(&session)).unwrap());
    assert_eq!(peer.orders.connections.load(SeqCst), 1);
    // SAFETY: the child runs this function's own code, with the C library's allocator, which a fork leaves usable, and ends by
    // `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: takes a number; a child that stands still for so many seconds is ended by the signal.
        unsafe { libc::alarm(120) };
        let code = in_child(&mut *driver, &session, 3).err().unwrap_or(0);
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { libc::_exit(code) };
    }
    let mut status = -1;
    // SAFETY: the status is this frame's.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child's code is the upper byte");
    assert!(soon(|| peer.orders.connections.load(SeqCst) == 2), "one of its own");
    let mut done = Vec::new();
    while driver.in_flight() > 0 {
        assert!(driver.poll(&mut done, PATIENCE) > 0, "the parent's is untouched");
    }
    assert!(done.len() == 3 && done.iter().all(|job| is_right(job, &session)));
    assert!(soon(|| peer.orders.ended.load(SeqCst) == 1), "the child's ended with it");
}
