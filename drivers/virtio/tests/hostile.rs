//! A host that writes nonsense: it loses the connection and nothing else. Every job comes back once, right or with its text as it was,
//! so that the runtime redoes it, and no worker waits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, where both mean a failed test")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use evener_core::{
    Algorithm, Direction, InlineDriver as _, Job, JobError, Nanos, Outcome, Padding, QueuedDriver, Refusal,
    Session,
};
use evener_driver_libcrypto::Libcrypto;
use evener_driver_virtio::{ConnectionError, Module, OpenError};
use evener_wire::{Message, WireError, features, protocol_features};

use evener_testing::waiting::soon;
use support::{Event, Nonsense, Order, Peer, Wrong};

const TIMEOUT: Nanos = Nanos::from_millis(20_000);
const BYTES: usize = 4_096;
const JOBS: u64 = 6;
const LOST: Outcome = Outcome::Failed(JobError::ModuleLost);

fn session(key: u8) -> Arc<Session> {
    Arc::new(Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[key; 16]).unwrap())
}

fn text() -> Vec<u8> {
    (0..BYTES).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect()
}

fn armed(session: &Arc<Session>, mark: u64) -> Box<Job<'static>> {
    let mut job = Job::in_place(text().leak());
    job.arm(Arc::clone(session), &[3; 16], BYTES);
    job.mark = mark;
    job
}

fn right(session: &Arc<Session>) -> Vec<u8> {
    let mut burst = [armed(session, 0)];
    Libcrypto::new().unwrap().run(&mut burst);
    burst[0].output().to_vec()
}

fn submit(driver: &mut dyn QueuedDriver<'static>, session: &Arc<Session>) {
    (0..JOBS).for_each(|mark| driver.submit(armed(session, mark)).unwrap());
}

/// Whatever is under way, each job once, by its mark. Nothing may last until the end of the timeout.
fn all_back(driver: &mut dyn QueuedDriver<'static>) -> Vec<Box<Job<'static>>> {
    let mut done = Vec::new();
    while driver.in_flight() > 0 {
        assert!(driver.poll(&mut done, TIMEOUT) > 0, "it waits in vain");
    }
    assert_eq!(driver.poll(&mut done, Nanos::ZERO), 0, "nothing comes twice");
    done.sort_by_key(|job| job.mark);
    let marks: Vec<u64> = done.iter().map(|job| job.mark).collect();
    assert_eq!(marks, (0..JOBS).collect::<Vec<u64>>(), "each once");
    done
}

/// Jobs that are right; all others are lost, with their texts.
fn count_right(done: &[Box<Job<'_>>], session: &Arc<Session>) -> usize {
    let right = right(session);
    let is_right = |job: &Job<'_>| match job.outcome() {
        Outcome::Done { written } => {
            assert!(written == BYTES && job.output() == right);
            true
        }
        outcome => {
            assert_eq!((outcome, job.input() == text()), (LOST, true));
            false
        }
    };
    done.iter().filter(|job| is_right(job)).count()
}

#[test]
fn a_queue_with_nonsense_in_it_ends_the_connection_and_every_job_comes_back_once() {
    let all = [
        (Nonsense::HeadBeyond, 0),
        (Nonsense::HeadNotHeld, 0),
        // The first time it is the truth.
        (Nonsense::Repeated, 1),
        (Nonsense::IndexJumps, 0),
        (Nonsense::IndexBack, 0),
    ];
    for (nonsense, by_host) in all {
        let peer = Peer::start();
        let module = Module::open(&peer.name("")).unwrap();
        let (mut driver, key) = (module.driver(), session(1));
        *peer.orders.nonsense.lock().unwrap() = Some(nonsense);
        submit(&mut *driver, &key);
        let done = all_back(&mut *driver);
        assert_eq!(count_right(&done, &key), by_host, "{nonsense:?}");
        assert_eq!(driver.submit(armed(&key, 0)).map_err(|(_, why)| why), Err(Refusal::Lost), "{nonsense:?}");
        assert!(
            soon(|| peer.orders.seen.count(Event::ConnectionEnded) >= 1),
            "{nonsense:?}: the connection ends"
        );
        // The next run has one of its own.
        peer.orders.take_back(Order::Hang);
        let mut next = module.driver();
        submit(&mut *next, &key);
        assert_eq!(count_right(&all_back(&mut *next), &key), usize::try_from(JOBS).unwrap(), "{nonsense:?}");
    }
}

#[test]
fn what_a_host_says_of_the_length_of_its_results_is_not_believed() {
    let peer = Peer::with(Order::Boast);
    let module = Module::open(&peer.name("")).unwrap();
    let (mut driver, key) = (module.driver(), session(1));
    submit(&mut *driver, &key);
    assert_eq!(count_right(&all_back(&mut *driver), &key), usize::try_from(JOBS).unwrap());
}

fn error(peer: &Peer) -> ConnectionError {
    match Module::open(&peer.name("")).unwrap_err() {
        OpenError::Unreachable { error, .. } => error,
        other => panic!("{other}"),
    }
}

#[test]
fn answers_that_are_none_keep_a_connection_from_coming_about() {
    let letters = u32::from_ne_bytes(*b"AAAA");
    let all = [
        (Message::GetFeatures, Wrong::Short, ConnectionError::Unasked),
        (Message::GetFeatures, Wrong::Long, ConnectionError::Unasked),
        (Message::GetFeatures, Wrong::Other, ConnectionError::Unasked),
        (Message::GetFeatures, Wrong::NoReply, ConnectionError::Unasked),
        // The next question gets it.
        (Message::GetFeatures, Wrong::Twice, ConnectionError::Unasked),
        (Message::GetFeatures, Wrong::Letters, ConnectionError::Wire(WireError::Oversized(letters))),
        (Message::GetFeatures, Wrong::Endless, ConnectionError::Wire(WireError::Oversized(u32::MAX))),
        (Message::GetFeatures, Wrong::CutOff, ConnectionError::Gone),
        (Message::GetProtocolFeatures, Wrong::Short, ConnectionError::Unasked),
        (Message::GetConfig, Wrong::Short, ConnectionError::Unasked),
        (Message::GetConfig, Wrong::Long, ConnectionError::Unasked),
        (Message::GetConfig, Wrong::CutOff, ConnectionError::Gone),
    ];
    for (message, wrong, expected) in all {
        let peer = Peer::start();
        *peer.orders.wrong.lock().unwrap() = Some((message, wrong));
        assert_eq!(error(&peer), expected, "{message:?} {wrong:?}");
    }
}

#[test]
fn a_host_that_lacks_what_is_needed_is_left_and_that_is_named() {
    let rings = "version 1, protocol features or indirect descriptors";
    let all = [
        (0, features::VERSION_1, rings),
        (0, features::PROTOCOL, rings),
        (0, features::INDIRECT, rings),
        (1, protocol_features::CRYPTO_SESSION, "crypto sessions"),
    ];
    for (kind, feature, lacked) in all {
        let peer = Peer::start();
        peer.orders.lacks[kind].store(feature, SeqCst);
        assert_eq!(error(&peer), ConnectionError::Lacks(lacked));
    }
}

#[test]
fn an_answer_that_is_none_in_mid_run_loses_what_is_under_way_and_each_job_once() {
    for wrong in [Wrong::Short, Wrong::Long, Wrong::Other, Wrong::NoReply, Wrong::Letters, Wrong::CutOff] {
        let peer = Peer::start();
        let module = Module::open(&peer.name("")).unwrap();
        let (mut driver, known, unknown) = (module.driver(), session(1), session(2));
        peer.orders.give(Order::Hang);
        submit(&mut *driver, &known);
        driver.poll(&mut Vec::new(), Nanos::ZERO);
        *peer.orders.wrong.lock().unwrap() = Some((Message::CreateSession, wrong));
        let refused = driver.submit(armed(&unknown, 99)).map_err(|(job, why)| (job.input() == text(), why));
        assert_eq!(refused, Err((true, Refusal::Lost)), "{wrong:?}");
        assert_eq!(count_right(&all_back(&mut *driver), &known), 0, "{wrong:?}");
    }
}

#[test]
fn an_answer_that_nobody_asked_for_loses_what_is_under_way_at_once() {
    let peer = Peer::start();
    let module = Module::open(&peer.name("")).unwrap();
    let (mut driver, key) = (module.driver(), session(1));
    peer.orders.give(Order::Hang);
    peer.orders.give(Order::Talk);
    submit(&mut *driver, &key);
    assert_eq!(count_right(&all_back(&mut *driver), &key), 0);
    assert!(soon(|| peer.orders.seen.count(Event::ConnectionEnded) >= 1), "the connection ends");
}
