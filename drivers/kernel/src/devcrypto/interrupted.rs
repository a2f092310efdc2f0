//! Calls of OCF that signals end: before anything was done, in the midst, and when all was done and nobody told so yet.

use std::sync::Arc;

use evener_core::{Job, Nanos, Outcome, Padding, Profile, QueuedDriver as _, Session};

use super::stand_in::{Fate, NODE, Seen, StandIn};
use super::*;
use crate::ocf::Call;
use crate::queued::Queued;
use crate::sample::{is_inverted_once, task, text};

const KEY: Spec = Spec { algorithm: Algorithm::Aes128Ctr, direction: Direction::Encrypt };
const ENDED: [Fate; 3] = [Fate::Before, Fate::Midst, Fate::After];
const GIVEN_UP: Result<(), Failure> = Err(Failure::Errno(libc::EINTR));

/// The node and what it does when no signal comes; nothing, said aloud, where the system has no such filters.
fn stand_in() -> Option<(StandIn, DevCrypto)> {
    match StandIn::new() {
        Ok(node) => Some((node, DevCrypto::open(Path::new(NODE)).unwrap())),
        Err(error) => {
            println!("skipped: no filter for system calls: {error}");
            None
        }
    }
}

fn count_interrupted(seen: &[Seen]) -> usize {
    seen.iter().filter(|seen| seen.is_interrupted).count()
}

#[test]
fn signals_while_a_node_is_opened_change_nothing_of_what_it_says() {
    let Some((node, calm)) = stand_in() else { return };
    node.ends(|_, before| if before % 3 < 2 { ENDED[before % 2 * 2] } else { Fate::Answered });
    let stormy = DevCrypto::open(Path::new(NODE)).unwrap();
    assert_eq!((stormy.algorithms(), stormy.detail()), (calm.algorithms(), calm.detail()));
    for call in [Call::OpenSession, Call::SessionInfo] {
        let (ended, count) = (count_interrupted(&node.seen(call)), calm.algorithms().len());
        assert_eq!(
            (ended, node.seen(call).len()),
            (2 * count, 3 * count),
            "{call:?}: twice, then it goes well"
        );
    }
}

#[test]
fn a_request_that_a_signal_ended_is_given_up_and_never_made_twice() {
    let Some((node, device)) = stand_in() else { return };
    let key = device.open_key(KEY, &[7; 16]).unwrap();
    for fate in ENDED {
        node.ends(move |_, before| if before == 1 { fate } else { Fate::Answered });
        let mut task = task(KEY, 3 * PIECE_BYTES);
        assert_eq!(device.run(&key, &mut task), GIVEN_UP, "{fate:?}");
        let interrupted: Vec<bool> = node.seen(Call::Crypt).iter().map(|seen| seen.is_interrupted).collect();
        assert_eq!(interrupted, [false, true], "{fate:?}: the first piece, the second once, and no third");
        // What the node left: a request is never begun anew on a text that may have been replaced.
        let done = PIECE_BYTES + ENDED.iter().position(|&it| it == fate).unwrap() * PIECE_BYTES / 2;
        let (now, before) = (task.text(), text(3 * PIECE_BYTES));
        assert!(now[..done].iter().zip(&before).all(|(&now, &before)| now == !before), "{fate:?}");
        assert!(now[done..] == before[done..], "{fate:?}");
    }
    // Nothing of that sticks to the key.
    let mut whole = task(KEY, 3 * PIECE_BYTES);
    node.ends(|_, _| Fate::Answered);
    assert_eq!(device.run(&key, &mut whole), Ok(()));
    assert!(is_inverted_once(&whole));
}

#[test]
fn signals_to_the_threads_that_wait_end_no_request() {
    let Some((node, device)) = stand_in() else { return };
    node.ends(|_, before| ENDED[before % 3]);
    let profile = Profile { name: "node".to_owned(), detail: String::new(), width: 2, emulated: false };
    let algorithms: Arc<[Algorithm]> = device.algorithms().into();
    let mut driver = Queued::new(profile, algorithms, Arc::new(device), Arc::default());
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
    let seen = node.seen(Call::Crypt);
    assert_eq!((done.len(), seen.len(), count_interrupted(&seen)), (JOBS, JOBS, 0), "each came once");
}

const JOBS: usize = 60;
const BYTES: usize = 4_096;
