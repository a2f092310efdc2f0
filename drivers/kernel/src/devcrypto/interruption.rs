//! Calls of OCF that signals end: before anything was done, in the midst, and when all was done and the call had not returned yet.

use std::sync::Arc;

use evener_core::{Job, Nanos, Outcome, Padding, Profile, QueuedDriver as _, Session};

use super::mock_node::{Fate, MockNode, NODE, RecordedCall};
use super::*;
use crate::ocf::Call;
use crate::pool::sample::{is_inverted_once, task, text};
use crate::requests::jobs::JobDriver;

const KEY: Spec = Spec { algorithm: Algorithm::Aes128Ctr, direction: Direction::Encrypt };
const ENDED: [Fate; 3] = [Fate::Before, Fate::Midst, Fate::After];
const GIVEN_UP: Result<(), Failure> = Err(Failure::Errno(libc::EINTR));

/// The node and what it does when no signal comes; nothing, and a line that says so, where the system has no such filters.
fn mock_node() -> Option<(MockNode, DevCrypto)> {
    match MockNode::new() {
        Ok(node) => Some((node, DevCrypto::open(Path::new(NODE)).unwrap())),
        Err(error) => {
            println!("skipped: no filter for system calls: {error}");
            None
        }
    }
}

fn count_interrupted(calls: &[RecordedCall]) -> usize {
    calls.iter().filter(|made| made.is_interrupted).count()
}

#[test]
fn signals_while_a_node_is_opened_change_nothing_of_what_it_says() {
    let Some((node, calm)) = mock_node() else { return };
    node.ends(|_, before| if before % 3 < 2 { ENDED[before % 2 * 2] } else { Fate::Answered });
    let stormy = DevCrypto::open(Path::new(NODE)).unwrap();
    assert_eq!((stormy.algorithms(), stormy.detail()), (calm.algorithms(), calm.detail()));
    for call in [Call::OpenSession, Call::SessionInfo] {
        let (ended, count) = (count_interrupted(&node.calls(call)), calm.algorithms().len());
        assert_eq!(
            (ended, node.calls(call).len()),
            (2 * count, 3 * count),
            "{call:?}: twice, then it goes well"
        );
    }
}

#[test]
fn a_request_that_a_signal_ended_is_given_up_and_never_made_twice() {
    let Some((node, device)) = mock_node() else { return };
    let key = device.open_key(KEY, &[7; 16]).unwrap();
    for fate in ENDED {
        node.ends(move |_, before| if before == 1 { fate } else { Fate::Answered });
        let mut task = task(KEY, 3 * CHUNK_BYTES);
        assert_eq!(device.run(&key, &mut task), GIVEN_UP, "{fate:?}");
        let interrupted: Vec<bool> = node.calls(Call::Crypt).iter().map(|made| made.is_interrupted).collect();
        assert_eq!(interrupted, [false, true], "{fate:?}: the first piece, the second once, and no third");
        // What the node left: a request is never begun anew on a text that may have been replaced.
        let done = CHUNK_BYTES + ENDED.iter().position(|&it| it == fate).unwrap() * CHUNK_BYTES / 2;
        let (now, before) = (task.text(), text(3 * CHUNK_BYTES));
        assert!(now[..done].iter().zip(&before).all(|(&now, &before)| now == !before), "{fate:?}");
        assert!(now[done..] == before[done..], "{fate:?}");
    }
    // Nothing of that sticks to the key.
    let mut whole = task(KEY, 3 * CHUNK_BYTES);
    node.ends(|_, _| Fate::Answered);
    assert_eq!(device.run(&key, &mut whole), Ok(()));
    assert!(is_inverted_once(&whole));
}

/// As [`stand_in`], at a node that keeps requests until they are fetched.
fn queue() -> Option<(MockNode, DevCrypto)> {
    let (node, plain) = mock_node()?;
    assert!(plain.queue().is_none() && plain.detail().starts_with("OCF, "), "{}", plain.detail());
    node.keep();
    let device = DevCrypto::open(Path::new(NODE)).unwrap();
    assert!(device.detail().starts_with("OCF with CIOCASYNCCRYPT, "));
    let is_used = device.queue().unwrap();
    assert!(!is_used.swap(true, Ordering::Relaxed), "not before it was measured");
    Some((node, device))
}

/// Bytes of five chunks, the last one short.
const LONG: usize = 4 * CHUNK_BYTES + 32;

#[test]
fn the_pieces_of_a_request_are_left_side_by_side_where_the_node_keeps_them() {
    let Some((node, device)) = queue() else { return };
    let key = device.open_key(KEY, &[7; 16]).unwrap();
    // Busy now and then, and full at the third.
    node.ends(|call, before| match (call, before) {
        (Call::Leave, 2) | (Call::Fetch, 0 | 3) => Fate::Refused(libc::EBUSY),
        _ => Fate::Answered,
    });
    let mut whole = task(KEY, LONG);
    assert_eq!(device.run(&key, &mut whole), Ok(()));
    assert!(is_inverted_once(&whole));
    let out: Vec<usize> = node.calls(Call::Leave).iter().map(|made| made.left).collect();
    assert_eq!(out, [1, 2, 2, 3, 4, 5], "outstanding after each");
    assert_eq!((node.calls(Call::Fetch).len(), node.calls(Call::Crypt).len()), (7, 0));
    // One chunk, and what has to wait for the chunk in front, go as they always did.
    let cbc = Spec { algorithm: Algorithm::Aes128Cbc, ..KEY };
    for (spec, bytes, calls) in [(KEY, CHUNK_BYTES, 1), (cbc, LONG, 5)] {
        node.ends(|_, _| Fate::Answered);
        assert_eq!(device.run(&key, &mut task(spec, bytes)), Ok(()));
        assert_eq!((node.calls(Call::Leave).len(), node.calls(Call::Crypt).len()), (0, calls));
    }
}

#[test]
fn a_piece_that_fails_fails_its_request_when_all_others_are_back() {
    let Some((node, device)) = queue() else { return };
    let key = device.open_key(KEY, &[7; 16]).unwrap();
    for (call, at, left) in [(Call::Leave, 2, 2), (Call::Fetch, 1, 5)] {
        node.keep();
        node.ends(move |it, before| match it == call && before == at {
            true => Fate::Refused(libc::EIO),
            false => Fate::Answered,
        });
        let mut task = task(KEY, LONG);
        assert_eq!(device.run(&key, &mut task), Err(Failure::Errno(libc::EIO)), "{call:?}");
        assert_eq!(task.space.len(), LONG, "{call:?}: its memory is its own again");
        assert_eq!(node.calls(Call::Fetch).len(), left, "{call:?}: each that was left is fetched");
    }
}

#[test]
fn memory_of_which_nobody_knows_whether_it_is_back_is_never_used_again() {
    let Some((node, device)) = queue() else { return };
    for call in [Call::Leave, Call::Fetch] {
        for fate in [Fate::Before, Fate::After] {
            let key = device.open_key(KEY, &[7; 16]).unwrap();
            node.keep();
            node.ends(move |it, before| if it == call && before == 1 { fate } else { Fate::Answered });
            let mut ended = task(KEY, LONG);
            assert_eq!(device.run(&key, &mut ended), GIVEN_UP, "{call:?} {fate:?}");
            assert!(ended.space.is_empty(), "{call:?} {fate:?}: it stays with the node");
            // The key goes on, without its queue.
            node.ends(|_, _| Fate::Answered);
            let mut next = task(KEY, LONG);
            assert_eq!(device.run(&key, &mut next), Ok(()));
            assert!(is_inverted_once(&next) && node.calls(Call::Leave).is_empty(), "{call:?} {fate:?}");
        }
    }
}

/// Every session is refused.
fn no_session(call: Call, _: usize) -> Fate {
    match call {
        Call::OpenSession => Fate::Refused(libc::EINVAL),
        _ => Fate::Answered,
    }
}

#[test]
fn a_key_that_a_node_refuses_is_told_from_a_node_that_is_full() {
    let Some((node, device)) = mock_node() else { return };
    // The key, and then another in its place.
    node.ends(no_session);
    assert_eq!(device.open_key(KEY, &[7; 16]).err(), Some(Failure::Full));
    node.ends(|call, before| match (call, before) {
        (Call::OpenSession, 0) => Fate::Refused(libc::EINVAL),
        _ => Fate::Answered,
    });
    assert_eq!(device.open_key(KEY, &[7; 16]).err(), Some(Failure::KeyRefused(libc::EINVAL)));
}

#[test]
fn a_node_that_takes_no_session_of_ours_does_nothing_for_us() {
    let Some((node, _)) = mock_node() else { return };
    node.ends(no_session);
    let does = "none of OCF's algorithms that Evener has".to_owned();
    let nothing = OpenError::NothingForUs { name: NODE.to_owned(), does };
    assert_eq!(DevCrypto::open(Path::new(NODE)).map(drop), Err(nothing.clone()));
    assert_eq!(crate::Module::open(&format!("devcrypto:{NODE}").parse().unwrap()).map(drop), Err(nothing));
}

#[test]
fn a_node_that_inverts_instead_of_encrypting_is_refused_with_the_example_s_name() {
    let Some((_node, _)) = mock_node() else { return };
    let error = crate::Module::open(&format!("devcrypto:{NODE}").parse().unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "devcrypto:/dev/null is refused: AES-128-ECB encrypt of the example in SP 800-38A, appendix F with a key of 16 bytes \
         came out wrong: expected 3ad77bb40d7a3660 at byte 0, got 943e411dd1bf6069"
    );
}

#[test]
fn signals_to_the_threads_that_wait_end_no_request() {
    let Some((node, device)) = mock_node() else { return };
    node.ends(|_, before| ENDED[before % 3]);
    let profile = Profile { name: "node".to_owned(), detail: String::new(), width: 2, emulated: false };
    let algorithms: Arc<[Algorithm]> = device.algorithms().into();
    let mut driver = JobDriver::new(profile, 2, algorithms, Arc::new(device), Arc::default());
    let session = Arc::new(Session::new(KEY.algorithm, KEY.direction, Padding::None, &[7; 16]).unwrap());
    let (mut waiting, mut done) = (JOBS, Vec::new());
    while waiting > 0 || driver.in_flight() > 0 {
        if waiting > 0 && driver.in_flight() < 2 {
            let mut job = Job::in_place(text(BYTES).leak());
            job.arm(Arc::clone(&session), &[0; 16], BYTES);
            assert!(driver.submit(job).is_ok());
            waiting -= 1;
        }
        driver.poll(&mut done, Nanos::from_millis(1));
    }
    let right: Vec<u8> = text(BYTES).iter().map(|byte| !byte).collect();
    assert!(
        done.iter().all(|job| job.outcome() == Outcome::Done { written: BYTES } && job.output() == right)
    );
    let calls = node.calls(Call::Crypt);
    assert_eq!((done.len(), calls.len(), count_interrupted(&calls)), (JOBS, JOBS, 0), "each came once");
}

const JOBS: usize = 60;
const BYTES: usize = 4_096;
