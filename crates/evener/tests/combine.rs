//! Combining: each caller gets what libcrypto gives, whichever thread did its work, and none waits for ever.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use evener::combine::{BYTES_MAX, BYTES_MIN, Combiner, Request, Span, Verdict, Waiting};
use evener_core::{Algorithm, Direction, InlineDriver, Job, JobError, Outcome, Padding, Session};
use evener_driver_libcrypto::Libcrypto;
use evener_testing::drivers::{Around, lanes, libcrypto};
use evener_testing::noise;
use evener_testing::waiting::without_standstill;

const CORES: usize = 2;
const IV: [u8; 16] = [3; 16];

fn session(seed: usize) -> Session {
    let algorithm = [Algorithm::Aes128Cbc, Algorithm::Aes192Cbc, Algorithm::Aes256Cbc][seed % 3];
    let key = noise(seed as u64 + 1, algorithm.key_bytes().unwrap());
    Session::new(algorithm, Direction::Encrypt, Padding::None, &key).unwrap()
}

/// What libcrypto makes of `plain`.
fn right(session: &Session, plain: &[u8]) -> Vec<u8> {
    let mut cipher = vec![0; plain.len()];
    let mut job = [Job::apart(plain, &mut cipher)];
    job[0].arm(session, &IV, plain.len());
    Libcrypto::new().unwrap().run(&mut job);
    assert_eq!(job[0].outcome(), Outcome::Done { written: plain.len() });
    drop(job);
    cipher
}

/// The driver that this machine has: lanes, or libcrypto.
fn driver() -> Option<Box<dyn InlineDriver>> {
    match lanes() {
        Some(driver) => Some(Box::new(driver)),
        None => Some(Box::new(Libcrypto::new().unwrap())),
    }
}

/// Encrypts in place; the caller's own work is libcrypto's.
fn encrypt(combiner: &Combiner, generation: u32, session: &Session, space: &mut [u8]) -> Verdict {
    combiner.encrypt(generation, Request { session, iv: &IV, span: Span::InPlace(space) })
}

/// One thread's calls: different lengths, in place and apart; counts those that were combined.
fn calls(combiner: &Combiner, thread: usize, combined: &AtomicUsize) {
    let session = session(thread);
    for call in 0..60 {
        let plain = noise((thread * 100 + call) as u64, BYTES_MIN + (thread * 7 + call) % 9 * 8_208);
        let expected = right(&session, &plain);
        let (mut space, mut apart) = (plain.clone(), vec![0; plain.len() + 5]);
        let span = match call % 2 {
            0 => Span::InPlace(&mut space),
            _ => Span::Apart(&plain, &mut apart),
        };
        match combiner.encrypt(0, Request { session: &session, iv: &IV, span }) {
            Verdict::Combined => {
                combined.fetch_add(1, Ordering::Relaxed);
                let (output, other) =
                    if call % 2 == 0 { (&space, &apart[..plain.len()]) } else { (&apart, &*space) };
                assert!(output[..plain.len()] == expected, "thread {thread}, call {call}");
                assert!(other == plain || other.iter().all(|&byte| byte == 0), "the other span is untouched");
                assert_eq!(apart[plain.len()..], [0; 5]);
            }
            Verdict::Inline => assert!(space == plain && apart.iter().all(|&byte| byte == 0)),
            Verdict::Failed(error) => panic!("{error}"),
        }
    }
}

/// Rounds after which threads that never met are no accident.
const ROUNDS_MAX: usize = 200;

#[test]
fn many_threads_that_combine_each_get_what_libcrypto_gives() {
    without_standstill(|| {
        for (threads, together) in [(2, 2), (8, 8), (40, 16)] {
            let combiner = Combiner::unguarded(0, CORES, Waiting::for_others(together), driver).unwrap();
            let combined = AtomicUsize::new(0);
            // Which threads meet is up to the scheduler: two threads may run one after the other, but not for ever.
            let rounds = (0..ROUNDS_MAX).take_while(|_| combined.load(Ordering::Relaxed) <= threads * 60 / 4);
            for _ in rounds {
                thread::scope(|scope| {
                    for thread in 0..threads {
                        let (combiner, combined) = (&combiner, &combined);
                        scope.spawn(move || calls(combiner, thread, combined));
                    }
                });
            }
            let (combined, counts) = (combined.into_inner(), combiner.counts(0));
            assert_eq!(counts.combined, combined as u64);
            assert!(combined > threads * 60 / 4, "{threads} threads: {combined} combined");
            assert!(counts.combined >= 2 * counts.bursts);
        }
    });
}

#[test]
fn whoever_is_alone_does_its_work_itself() {
    without_standstill(|| {
        let combiner = Combiner::unguarded(0, CORES, Waiting::for_others(16), driver).unwrap();
        let mut space = noise(1, BYTES_MIN);
        assert_eq!(encrypt(&combiner, 0, &session(0), &mut space), Verdict::Inline);
        assert!(space == noise(1, BYTES_MIN));
    });
}

#[test]
fn what_is_not_plain_cbc_encryption_of_a_fitting_length_is_not_touched() {
    without_standstill(|| {
        let combiner = Combiner::unguarded(0, CORES, Waiting::for_others(2), driver).unwrap();
        let open = |algorithm: Algorithm, direction, padding| {
            Session::new(algorithm, direction, padding, &[7; 16]).unwrap()
        };
        let cbc = session(0);
        let others = [
            (open(Algorithm::Aes128Cbc, Direction::Decrypt, Padding::None), BYTES_MIN),
            (open(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::Pkcs7), BYTES_MIN),
            (open(Algorithm::Aes128Ctr, Direction::Encrypt, Padding::None), BYTES_MIN),
        ];
        let lengths = [0, 16, BYTES_MIN - 16, BYTES_MIN + 1, BYTES_MAX + 16];
        let odd = lengths.map(|length| (&cbc, length));
        for (session, length) in others.iter().map(|(session, length)| (session, *length)).chain(odd) {
            let (mut one, mut two) = (vec![5; length], vec![5; length]);
            let start = Barrier::new(2);
            thread::scope(|scope| {
                for space in [&mut one, &mut two] {
                    scope.spawn(|| {
                        start.wait();
                        assert_eq!(encrypt(&combiner, 0, session, space), Verdict::Inline);
                    });
                }
            });
            assert!(one.iter().chain(&two).all(|&byte| byte == 5), "{session:?}, {length}");
        }
        assert_eq!(combiner.counts(0).combined, 0);
    });
}

#[test]
fn space_that_is_too_short_is_not_written_to() {
    let combiner = Combiner::unguarded(0, CORES, Waiting::for_others(2), driver).unwrap();
    let (plain, mut space) = (vec![1; BYTES_MIN], vec![5; BYTES_MIN - 16]);
    let request = Request { session: &session(0), iv: &IV, span: Span::Apart(&plain, &mut space) };
    assert_eq!(combiner.encrypt(0, request), Verdict::Inline);
    assert!(space.iter().all(|&byte| byte == 5));
}

#[test]
fn up_to_two_callers_per_core_never_wait_for_each_other() {
    without_standstill(|| {
        let combiner = Combiner::new(0, CORES, driver).unwrap();
        thread::scope(|scope| {
            for thread in 0..2 * CORES {
                let combiner = &combiner;
                scope.spawn(move || {
                    let (session, mut space) = (session(thread), vec![1; BYTES_MIN]);
                    (0..3_000).for_each(|_| {
                        assert_eq!(encrypt(combiner, 0, &session, &mut space), Verdict::Inline);
                    });
                });
            }
        });
        assert_eq!(combiner.counts(0).combined, 0);
    });
}

/// A combiner whose driver does as `script` says with each burst that libcrypto has done.
fn scripted<F>(together: u32, script: F) -> Arc<Combiner>
where
    F: Fn(&mut [Box<Job<'_>>]) + Send + Sync + 'static,
{
    let script = Arc::new(script);
    let make = move || {
        let script = Arc::clone(&script);
        let run = move |plain: &mut Libcrypto, burst: &mut [Box<Job<'_>>]| {
            plain.run(burst);
            script(burst);
        };
        Some(Box::new(Around::new(libcrypto(), run)) as Box<dyn InlineDriver>)
    };
    Arc::new(Combiner::unguarded(0, CORES, Waiting::for_others(together), make).unwrap())
}

/// So many threads call once, at one moment; what each came back with, or that it panicked.
fn once_each(combiner: &Combiner, threads: usize) -> Vec<Result<Verdict, ()>> {
    let start = Barrier::new(threads);
    thread::scope(|scope| {
        let call = |thread| {
            let (session, mut space) = (session(thread), noise(thread as u64, BYTES_MIN));
            let expected = right(&session, &space);
            start.wait();
            let called = catch_unwind(AssertUnwindSafe(|| encrypt(combiner, 0, &session, &mut space)));
            match called {
                Ok(Verdict::Combined) => assert!(space == expected),
                Ok(Verdict::Inline) => assert!(space == noise(thread as u64, BYTES_MIN)),
                _ => {}
            }
            called.map_err(drop)
        };
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || call(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn a_driver_that_sorts_a_burst_mixes_up_no_outcome() {
    without_standstill(|| {
        // The one whose memory begins with the greatest byte fails; the driver leaves the burst turned round.
        let combiner = scripted(6, |burst| {
            burst.sort_by_key(|job| std::cmp::Reverse(job.output().first().copied()));
            burst[0].fail(JobError::Library);
        });
        for _ in 0..50 {
            let verdicts = once_each(&combiner, 6);
            let failed = verdicts.iter().filter(|verdict| matches!(verdict, Ok(Verdict::Failed(_)))).count();
            let combined = verdicts.iter().filter(|verdict| **verdict == Ok(Verdict::Combined)).count();
            assert!(failed * 2 <= failed + combined, "one of each burst: {verdicts:?}");
        }
    });
}

#[test]
fn a_driver_that_panics_leaves_nobody_waiting_and_nobody_with_a_wrong_answer() {
    without_standstill(|| {
        let combiner = scripted(4, |_| panic!("as the test wants"));
        for _ in 0..20 {
            for verdict in once_each(&combiner, 4) {
                assert!(matches!(
                    verdict,
                    Err(()) | Ok(Verdict::Failed(JobError::Library) | Verdict::Inline)
                ));
            }
        }
    });
}

#[test]
fn requests_that_the_driver_refuses_go_back_to_their_callers() {
    without_standstill(|| {
        let combiner = scripted(3, |burst| burst.iter_mut().for_each(|job| job.fail(JobError::Unsupported)));
        let request = vec![0; BYTES_MIN];
        let mut spaces = [request.clone(), request.clone(), request];
        let session = session(0);
        thread::scope(|scope| {
            for space in &mut spaces {
                scope.spawn(|| assert_eq!(encrypt(&combiner, 0, &session, space), Verdict::Inline));
            }
        });
    });
}

/// Two threads for each permit, of which one stands in the driver for as long as the flag is up: all permits are held.
fn with_all_permits_held(then: impl FnOnce(&Combiner) + Send + 'static) {
    without_standstill(|| hold_all_permits(then));
}

fn hold_all_permits(then: impl FnOnce(&Combiner)) {
    let (hold, held) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let (holds, counted) = (hold.clone(), held.clone());
    let combiner = scripted(2, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        while holds.load(Ordering::Relaxed) {
            thread::yield_now();
        }
    });
    thread::scope(|scope| {
        let stand = || {
            let mut space = vec![1; BYTES_MIN];
            while hold.load(Ordering::Relaxed) {
                _ = encrypt(&combiner, 0, &session(1), &mut space);
            }
        };
        // One pair after the other: the first burst might take three of four, and the fourth would be alone for ever.
        for permits in 1..=CORES {
            (0..2).for_each(|_| drop(scope.spawn(stand)));
            while held.load(Ordering::Relaxed) < permits {
                thread::yield_now();
            }
        }
        then(&combiner);
        hold.store(false, Ordering::Relaxed);
    });
}

#[test]
fn where_all_permits_are_held_by_threads_that_do_not_go_on_a_caller_does_its_work_itself() {
    with_all_permits_held(|combiner| {
        let mut space = noise(9, BYTES_MIN);
        assert_eq!(encrypt(combiner, 0, &session(2), &mut space), Verdict::Inline);
        assert!(space == noise(9, BYTES_MIN));
    });
}

#[test]
fn another_generation_starts_afresh_beside_permits_that_nobody_gives_back() {
    with_all_permits_held(|combiner| {
        // What a child of fork sees: permits held and requests lent by threads that it does not have.
        let mut space = noise(9, BYTES_MIN);
        assert_eq!(encrypt(combiner, 1, &session(2), &mut space), Verdict::Inline);
        assert_eq!(combiner.counts(1).combined, 0);
    });
}
