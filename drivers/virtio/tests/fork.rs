//! Other processes: a forked child, which finds nothing of the parent's connection and gets one of its own; and a host of another user's.
#![allow(unsafe_code, reason = "another user")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, where both mean a failed test")]

mod support;

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use evener_core::driver::{SingleDriver, Text, Unanswered};
use evener_core::{
    Algorithm, Direction, InlineDriver as _, Job, JobError, Nanos, Outcome, Padding, QueuedDriver, Session,
};
use evener_driver_libcrypto::Libcrypto;
use evener_driver_virtio::{ConnectionError, Module, OpenError};
use evener_testing::Folder;
use evener_testing::programs::code_of_child;
use evener_testing::waiting::soon;
use support::{Event, Order, Peer};

const TEXT: [u8; 4096] = [0x5A; 4096];
const TIMEOUT: Nanos = Nanos::from_millis(5_000);

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
fn in_child(driver: &mut dyn QueuedDriver<'static>, session: &Arc<Session>, held: usize) -> Result<(), u8> {
    let is_mapped =
        || std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains("evener-hosted"));
    let check = |holds: bool, code| if holds { Ok(()) } else { Err(code) };
    check(!is_mapped(), 10)?;
    let mut done = Vec::new();
    driver.poll(&mut done, TIMEOUT);
    let lost = done.iter().filter(|job| job.outcome() == Outcome::Failed(JobError::ModuleLost));
    check(done.len() == held && lost.count() == held, 11)?;
    driver.submit(job(session)).map_err(|_| 12)?;
    done.clear();
    driver.poll(&mut done, TIMEOUT);
    check(done.len() == 1 && is_right(&done[0], session), 13)?;
    check(is_mapped(), 14)
}

/// What a child gave that did this: 0, or what was wrong.
fn code_of(work: impl FnOnce() -> Result<(), u8>) -> Option<u8> {
    code_of_child(|| work().err().unwrap_or(0))
}

#[test]
fn a_child_gives_up_its_copies_of_jobs_and_gets_a_connection_of_its_own_while_the_parent_s_goes_on() {
    let peer = Peer::start();
    let module = Module::open(&format!("hosted:{}", peer.socket().display()).parse().unwrap()).unwrap();
    let mut driver = module.driver();
    let key = Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[1; 16]).unwrap();
    let session = Arc::new(key);
    (0..3).for_each(|_| driver.submit(job(&session)).unwrap());
    assert_eq!(peer.orders.seen.count(Event::ConnectionBegun), 1);
    assert_eq!(code_of(|| in_child(&mut *driver, &session, 3)), Some(0));
    assert!(soon(|| peer.orders.seen.count(Event::ConnectionBegun) == 2), "one of its own");
    let mut done = Vec::new();
    while driver.in_flight() > 0 {
        assert!(driver.poll(&mut done, TIMEOUT) > 0, "the parent's is untouched");
    }
    assert!(done.len() == 3 && done.iter().all(|job| is_right(job, &session)));
    assert!(soon(|| peer.orders.seen.count(Event::ConnectionEnded) == 1), "the child's ended with it");
}

/// A text that its result replaces.
struct InPlace(Vec<u8>);

impl Text for InPlace {
    fn input(&self) -> &[u8] {
        &self.0
    }

    fn take(&mut self, result: &[u8]) {
        self.0.copy_from_slice(result);
    }
}

/// Asks once; whether the text is right then, or as it was.
fn ask(driver: &dyn SingleDriver, session: &Arc<Session>) -> (Result<(), Unanswered>, bool) {
    let mut text = InPlace(TEXT.to_vec());
    let done = driver.run_single(session.with_iv(&[7; 16]), &mut text, TIMEOUT);
    let mut burst = [job(session)];
    Libcrypto::new().unwrap().run(&mut burst);
    let expected = if done.is_ok() { burst[0].output() } else { &TEXT };
    (done, text.0 == expected)
}

#[test]
fn a_child_s_single_requests_are_lost_at_once_though_its_parent_s_threads_hold_the_line() {
    let peer = Peer::start();
    let module = Module::open(&peer.name("")).unwrap();
    let driver = module.single();
    let session = |key| {
        let made = Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[key; 16]);
        Arc::new(made.unwrap())
    };
    let (one, other) = (session(1), session(2));
    assert_eq!(ask(&*driver, &one), (Ok(()), true));
    let asked = peer.orders.seen.count(Event::Request);
    peer.orders.give(Order::Busy);
    thread::scope(|scope| {
        let waits = scope.spawn(|| ask(&*driver, &one));
        assert!(soon(|| peer.orders.seen.count(Event::Request) == asked + 1));
        // The host answers no message, so this one holds the lock. Should it not hold it yet, the test says less.
        let opens = scope.spawn(|| ask(&*driver, &other));
        thread::sleep(Duration::from_millis(100));
        let code = code_of(|| {
            let began = Instant::now();
            driver.evict(&|_| true);
            let is_lost = ask(&*driver, &one) == (Err(Unanswered::Failed(JobError::ModuleLost)), true);
            if is_lost && began.elapsed() < Duration::from_secs(2) { Ok(()) } else { Err(1) }
        });
        assert_eq!(code, Some(0));
        peer.orders.take_back(Order::Busy);
        assert_eq!([waits, opens].map(|caller| caller.join().unwrap()), [(Ok(()), true), (Ok(()), true)]);
    });
    let asks_anew = || if ask(&*module.single(), &one) == (Ok(()), true) { Ok(()) } else { Err(1) };
    assert_eq!(code_of(asks_anew), Some(0), "a driver that the child makes has a line of its own");
    assert_eq!(ask(&*driver, &one), (Ok(()), true), "and the parent's is as good as before");
}

const NOBODY: libc::uid_t = 65534;

/// Listens at `path` as the user `nobody`; how many bytes the first client says before it goes, as the child's code.
fn listen_as_nobody(path: &std::path::Path) -> Result<(), u8> {
    // SAFETY: takes a number, of the child's own rights.
    if unsafe { libc::setuid(NOBODY) } != 0 {
        return Err(100);
    }
    let listener = UnixListener::bind(path).map_err(|_| 101)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).map_err(|_| 102)?;
    let (mut client, _) = listener.accept().map_err(|_| 103)?;
    let mut said = Vec::new();
    client.read_to_end(&mut said).map_err(|_| 104)?;
    if said.is_empty() { Ok(()) } else { Err(1) }
}

#[test]
fn to_a_host_of_somebody_else_nothing_is_said_unless_the_name_names_him() {
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        return println!("skipped: only root can have somebody else listen");
    }
    let folder = Folder::temporary();
    // As /tmp: who may write there takes no other user's socket away.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    for (behind, is_trusted) in [("", false), (",uid=1+2", false), (",uid=65534", true)] {
        let socket = folder.join(format!("socket{is_trusted}{}", behind.len()));
        let name = format!("hosted:{}{behind}", socket.display()).parse().unwrap();
        thread::scope(|scope| {
            let host = scope.spawn(|| code_of(|| listen_as_nobody(&socket)));
            assert!(soon(
                || std::fs::metadata(&socket).is_ok_and(|seen| seen.permissions().mode() & 0o777 == 0o666)
            ));
            // The child reads until the end and answers nothing.
            let opened = Module::connect(&name).map(drop).unwrap_err();
            let OpenError::Unreachable { error, .. } = &opened else { panic!("{opened}") };
            assert_eq!(
                *error == ConnectionError::Stranger { uid: NOBODY },
                !is_trusted,
                "{behind:?}: {opened}"
            );
            assert_eq!(host.join().unwrap(), Some(is_trusted.into()), "{behind:?}: what it heard");
        });
    }
}

#[test]
fn a_socket_that_others_may_replace_is_told_nothing() {
    // SAFETY: asks for a number.
    let own = unsafe { libc::geteuid() };
    for (mode, is_good) in [(0o777, false), (0o775, false), (0o757, false), (0o1777, true), (0o755, true)] {
        let folder = Folder::temporary();
        let socket = folder.join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        let heard = thread::spawn(move || {
            let mut said = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut said).unwrap();
            !said.is_empty()
        });
        let name = format!("hosted:{}", socket.display()).parse().unwrap();
        let opened = Module::connect(&name).map(drop).unwrap_err();
        let OpenError::Unreachable { error, .. } = &opened else { panic!("{opened}") };
        let directory = folder.path().to_owned();
        let refused = *error == ConnectionError::OpenDirectory { directory, uid: own, mode };
        assert_eq!((refused, heard.join().unwrap()), (!is_good, is_good), "{mode:o}: {opened}");
    }
}
