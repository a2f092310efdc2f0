//! Single requests of callers that wait for them, over a line to a host that all callers share: right results, each once, and what becomes of
//! callers and texts when the host errs, hangs, or goes away.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, where both mean a failed test")]

mod support;

use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use evener_core::driver::{SingleDriver, Text, Unanswered};
use evener_core::{Algorithm, Direction, InlineDriver as _, Job, JobError, Nanos, Padding, Session};
use evener_driver_libcrypto::Libcrypto;
use evener_driver_virtio::Module;

use evener_testing::waiting::soon;
use support::{Event, Nonsense, Order, Peer, STATUSES};

/// Who waits so long waits in vain.
const TIMEOUT: Nanos = Nanos::from_millis(20_000);
const AT_ONCE: Duration = Duration::from_secs(10);
const LOST: Unanswered = Unanswered::Failed(JobError::ModuleLost);
const FULL: Unanswered = Unanswered::Failed(JobError::ModuleFull);
const IV: [u8; 16] = [3; 16];

/// A text, which its result replaces or stands beside.
struct Given {
    input: Vec<u8>,
    output: Option<Vec<u8>>,
    taken: u32,
}

impl Given {
    fn in_place(input: &[u8]) -> Self {
        Self { input: input.to_vec(), output: None, taken: 0 }
    }

    fn apart(input: &[u8]) -> Self {
        Self { output: Some(vec![0xEE; input.len()]), ..Self::in_place(input) }
    }

    fn result(&self) -> &[u8] {
        self.output.as_ref().unwrap_or(&self.input)
    }
}

impl Text for Given {
    fn input(&self) -> &[u8] {
        &self.input
    }

    fn take(&mut self, result: &[u8]) {
        self.taken += 1;
        self.input.copy_from_slice(result);
    }

    fn apart(&mut self) -> Option<(&[u8], &mut [u8])> {
        self.output.as_mut().map(|output| (&self.input[..], &mut output[..]))
    }

    fn taken(&mut self) {
        self.taken += 1;
    }
}

fn session(algorithm: Algorithm, direction: Direction, key: u8) -> Session {
    let key: Vec<u8> = (key..).take(algorithm.key_bytes().unwrap_or(20)).collect();
    Session::new(algorithm, direction, Padding::None, &key).unwrap()
}

fn cbc(key: u8) -> Session {
    session(Algorithm::Aes128Cbc, Direction::Encrypt, key)
}

fn text(bytes: usize, mark: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from((at * 7 + mark * 31) % 251).unwrap()).collect()
}

/// What libcrypto makes of it.
fn right(session: &Session, iv: &[u8; 16], input: &[u8]) -> Vec<u8> {
    let mut output = vec![0; input.len()];
    let mut burst = [Job::apart(input, &mut output)];
    burst[0].arm(session, &iv[..session.algorithm().iv_bytes()], input.len());
    Libcrypto::new().unwrap().run(&mut burst);
    burst[0].output().to_vec()
}

/// A host, and the driver of one line to it.
fn scene(offer: &str) -> (Peer, Box<dyn SingleDriver>) {
    scene_with(false, offer)
}

/// As that, where the host offers suppression by flags only, or by index too.
fn scene_with(has_flags_only: bool, offer: &str) -> (Peer, Box<dyn SingleDriver>) {
    let peer = Peer::start();
    if has_flags_only {
        peer.orders.give(Order::FlagsOnly);
    }
    let driver = Module::open(&peer.name(offer)).unwrap().single();
    (peer, driver)
}

/// Asks for a text of 4 KiB that must stay as it is, for there is no answer; why, and how long that was.
fn unanswered(driver: &dyn SingleDriver, session: &Session, timeout: Nanos) -> (Unanswered, Duration) {
    let (input, began) = (text(4096, 0), Instant::now());
    let mut given = Given::in_place(&input);
    let why = driver.run_single(session.with_iv(&IV), &mut given, timeout).unwrap_err();
    assert!(given.input == input && given.taken == 0, "{why:?}: the text is as it was");
    (why, began.elapsed())
}

/// As that, of a line that is good still.
fn refused(driver: &dyn SingleDriver, session: &Session) -> Unanswered {
    unanswered(driver, session, TIMEOUT).0
}

fn asks_rightly(driver: &dyn SingleDriver, session: &Session) {
    let mut given = Given::in_place(&text(4096, 1));
    driver.run_single(session.with_iv(&IV), &mut given, TIMEOUT).unwrap();
    assert!(given.taken == 1 && given.result() == right(session, &IV, &text(4096, 1)));
}

/// Whether a text stands in what the host saw of the memory at the end of a connection.
fn has_text(peer: &Peer, text: &[u8]) -> bool {
    assert!(soon(|| peer.orders.seen.count(Event::ConnectionEnded) >= 1));
    let left = peer.orders.seen.left.lock().unwrap();
    assert!(left.len() > 4096);
    left.windows(64).any(|window| window == &text[..64])
}

#[test]
fn results_are_those_of_libcrypto_for_every_cipher_in_place_and_apart() {
    for has_flags_only in [false, true] {
        let (_peer, driver) = scene_with(has_flags_only, ",offer=all");
        let ciphers = Algorithm::ALL.iter().filter(|algorithm| algorithm.is_cipher() && !algorithm.is_aead());
        for &algorithm in ciphers {
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                let session = session(algorithm, direction, 5);
                for bytes in [16, 17, 1_000, 4_096, 16_384, 65_536] {
                    let bytes = if algorithm.needs_whole_blocks() { bytes / 16 * 16 } else { bytes };
                    let input = text(bytes, bytes);
                    let expected = right(&session, &IV, &input);
                    for mut given in [Given::in_place(&input), Given::apart(&input)] {
                        driver.run_single(session.with_iv(&IV), &mut given, TIMEOUT).unwrap();
                        assert!(given.result() == expected, "{session:?} {bytes}");
                        assert_eq!(given.taken, 1);
                    }
                }
            }
        }
    }
}

const THREADS: u8 = 8;
const ASKED_BY_EACH: usize = 500;
/// Then a session ends and another begins.
const ASKED_WITH_ONE: usize = 25;

/// Requests of one caller, whose sessions are its own.
fn ask_again_and_again(driver: &dyn SingleDriver, thread: u8) {
    for first in (0..ASKED_BY_EACH).step_by(ASKED_WITH_ONE) {
        let session = cbc(thread * 16 + u8::try_from(first / ASKED_WITH_ONE % 16).unwrap());
        for mark in first..first + ASKED_WITH_ONE {
            let input = text(16 + mark % 64 * 64, usize::from(thread) * ASKED_BY_EACH + mark);
            let iv = [thread; 16];
            let mut given = if mark % 2 == 0 { Given::in_place(&input) } else { Given::apart(&input) };
            driver.run_single(session.with_iv(&iv), &mut given, TIMEOUT).unwrap();
            assert!(given.taken == 1 && given.result() == right(&session, &iv, &input), "{thread} {mark}");
        }
        driver.evict(&|id| id == session.id());
    }
}

#[test]
fn eight_callers_at_once_get_each_its_own_result_and_each_request_is_made_once() {
    for has_flags_only in [false, true] {
        let (peer, driver) = scene_with(has_flags_only, "");
        let asked = || peer.orders.seen.count(Event::Request);
        let connections = peer.orders.seen.count(Event::ConnectionBegun);
        let (before, began) = (asked(), Instant::now());
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let driver = &*driver;
                scope.spawn(move || ask_again_and_again(driver, thread));
            }
        });
        let all = u64::from(THREADS) * u64::try_from(ASKED_BY_EACH).unwrap();
        assert_eq!(asked() - before, all);
        assert_eq!(peer.orders.seen.count(Event::ConnectionBegun), connections, "one line for all");
        assert!(began.elapsed() < Duration::from(TIMEOUT), "nobody overslept a call");
    }
}

#[test]
fn who_is_late_leaves_and_whoever_waits_beside_him_is_lost_at_once() {
    let (peer, driver) = scene("");
    asks_rightly(&*driver, &cbc(1));
    peer.orders.give(Order::Hang);
    let asked = peer.orders.seen.count(Event::Request);
    thread::scope(|scope| {
        let beside = [1, 2, 3].map(|key| {
            let waits = scope.spawn({
                let driver = &*driver;
                move || unanswered(driver, &cbc(key), TIMEOUT)
            });
            assert!(soon(|| peer.orders.seen.count(Event::Request) == asked + u64::from(key)), "it is there");
            waits
        });
        // Opens a session while others sleep, who are not to take the answer for the host's end.
        let (why, took) = unanswered(&*driver, &cbc(4), Nanos::from_millis(300));
        assert_eq!(why, Unanswered::Late);
        assert!(took >= Duration::from_millis(300) && took < AT_ONCE, "{took:?}");
        for waits in beside {
            let (why, took) = waits.join().unwrap();
            assert!(why == LOST && took < AT_ONCE, "{why:?} {took:?}");
        }
    });
    assert_eq!(unanswered(&*driver, &cbc(1), TIMEOUT).0, LOST, "the line is over");
    assert!(!has_text(&peer, &text(4096, 0)));
}

/// Asks a third time while two wait, whom it costs the line whatever becomes of the third; says what that is.
fn beside_two_who_wait(spoil: impl Fn(&Peer), given: &mut Given) -> Result<(), Unanswered> {
    let (peer, driver) = scene("");
    asks_rightly(&*driver, &cbc(1));
    peer.orders.give(Order::Hang);
    let asked = peer.orders.seen.count(Event::Request);
    thread::scope(|scope| {
        let two = [1, 2].map(|key| {
            let driver = &*driver;
            scope.spawn(move || unanswered(driver, &cbc(key), TIMEOUT))
        });
        assert!(soon(|| peer.orders.seen.count(Event::Request) == asked + 2), "both are there");
        spoil(&peer);
        peer.orders.take_back(Order::Hang);
        let began = Instant::now();
        let done = driver.run_single(cbc(3).with_iv(&IV), given, TIMEOUT);
        for (why, took) in two.map(|waits| waits.join().unwrap()) {
            assert!(why == LOST && took < AT_ONCE, "{why:?} {took:?}");
        }
        assert!(began.elapsed() < AT_ONCE);
        done
    })
}

#[test]
fn a_host_that_goes_away_loses_all_who_wait_at_once() {
    let ends = |peer: &Peer| {
        let served = u32::try_from(peer.orders.seen.count(Event::Request)).unwrap();
        peer.orders.ends_after.store(served, SeqCst);
    };
    let mut given = Given::in_place(&text(4096, 6));
    assert_eq!(beside_two_who_wait(ends, &mut given), Err(LOST));
    assert!(given.input == text(4096, 6) && given.taken == 0);
}

#[test]
fn a_queue_with_nonsense_in_it_loses_all_who_wait_at_once_but_what_came_before_counts() {
    let input = text(4096, 7);
    let all = [Nonsense::HeadBeyond, Nonsense::IndexJumps, Nonsense::IndexBack, Nonsense::Repeated];
    for nonsense in all {
        let mut given = Given::in_place(&input);
        let spoil = |peer: &Peer| *peer.orders.nonsense.lock().unwrap() = Some(nonsense);
        let done = beside_two_who_wait(spoil, &mut given);
        // The first time it is the truth, which who looks first may find before the line is over.
        let is_right = done == Ok(()) && nonsense == Nonsense::Repeated;
        assert!(is_right || done == Err(LOST), "{nonsense:?}: {done:?}");
        assert!(given.result() == if is_right { right(&cbc(3), &IV, &input) } else { input.clone() });
    }
}

#[test]
fn a_status_is_the_answer_and_the_text_stays_as_it_was() {
    let (peer, driver) = scene("");
    let key = cbc(1);
    // More of them than there are slots, so that none is left taken.
    for (status, error) in STATUSES.iter().cycle().take(60) {
        peer.orders.status.store(*status, SeqCst);
        assert_eq!(refused(&*driver, &key), Unanswered::Failed(*error));
    }
    peer.orders.status.store(0, SeqCst);
    asks_rightly(&*driver, &key);
    drop(driver);
    assert!(!has_text(&peer, &text(4096, 0)), "what was refused was overwritten");
}

#[test]
fn a_host_that_says_done_and_does_nothing_passes_off_no_text_as_its_ciphertext() {
    let (peer, driver) = scene("");
    peer.orders.give(Order::Idle);
    assert_eq!(refused(&*driver, &cbc(1)), Unanswered::Failed(JobError::Module { code: 0 }));
    peer.orders.take_back(Order::Idle);
    asks_rightly(&*driver, &cbc(1));
}

#[test]
fn no_text_stays_in_shared_memory_after_its_request() {
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        let (peer, driver) = scene(",offer=all");
        let (plain, seal) = (text(4096, 2), cbc(1));
        let sealed = right(&seal, &IV, &plain);
        let session = session(Algorithm::Aes128Cbc, direction, 1);
        let input = if direction == Direction::Encrypt { &plain } else { &sealed };
        for mut given in [Given::in_place(input), Given::apart(input)] {
            driver.run_single(session.with_iv(&IV), &mut given, TIMEOUT).unwrap();
        }
        drop(driver);
        assert!(!has_text(&peer, &plain), "{direction}");
    }
}

#[test]
fn a_key_is_opened_once_and_closed_when_its_session_has_ended() {
    let (peer, driver) = scene("");
    let created = || peer.orders.seen.count(Event::SessionOpened);
    let closed = || peer.orders.seen.count(Event::SessionClosed);
    assert!(soon(|| created() == closed()), "the known answers' keys are closed");
    let (one, other, before) = (cbc(1), cbc(2), created());
    for _ in 0..3 {
        asks_rightly(&*driver, &one);
        asks_rightly(&*driver, &other);
    }
    assert_eq!(created(), before + 2);
    driver.evict(&|id| id == one.id());
    assert!(soon(|| closed() == before + 1), "one is closed");
    asks_rightly(&*driver, &other);
    assert_eq!(created(), before + 2, "the other is open still");
    driver.evict(&|_| true);
    assert!(soon(|| closed() == before + 2));
}

#[test]
fn a_key_that_the_host_lost_is_opened_anew_with_the_next_request() {
    const INVALID_SESSION: u32 = evener_wire::Status::InvalidSession as u32;
    let (peer, driver) = scene("");
    let key = cbc(1);
    asks_rightly(&*driver, &key);
    let before = peer.orders.seen.count(Event::SessionOpened);
    peer.orders.status.store(INVALID_SESSION, SeqCst);
    let code = i32::try_from(INVALID_SESSION).unwrap();
    assert_eq!(refused(&*driver, &key), Unanswered::Failed(JobError::Module { code }));
    peer.orders.status.store(0, SeqCst);
    asks_rightly(&*driver, &key);
    assert_eq!(peer.orders.seen.count(Event::SessionOpened), before + 1);
}

#[test]
fn a_host_that_refuses_a_key_refuses_that_request_and_leaves_no_seat_taken() {
    let (peer, driver) = scene("");
    asks_rightly(&*driver, &cbc(1));
    peer.orders.give(Order::NoSessions);
    for (refusal, error) in [(-3, JobError::Module { code: -3 }), (-5, JobError::ModuleFull)] {
        peer.orders.refusal.store(refusal, SeqCst);
        (0..40).for_each(|_| assert_eq!(refused(&*driver, &cbc(2)), Unanswered::Failed(error)));
    }
    peer.orders.take_back(Order::NoSessions);
    asks_rightly(&*driver, &cbc(2));
}

#[test]
fn what_is_too_long_or_not_offered_is_refused_and_not_sent() {
    let (peer, driver) = scene("");
    let asked = peer.orders.seen.count(Event::Request);
    let padded = Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::Pkcs7, &[1; 16]).unwrap();
    let all = [
        (session(Algorithm::Aes128Ctr, Direction::Encrypt, 1), 4096),
        (session(Algorithm::Aes128Cbc, Direction::Decrypt, 1), 4096),
        (session(Algorithm::Aes128Gcm, Direction::Encrypt, 1), 4096),
        (session(Algorithm::Sha256, Direction::Encrypt, 1), 4096),
        (padded, 4096),
        // Half of the memory for data, and a block.
        (cbc(1), (4 << 20) / 2 + (64 << 10) / 2 + 16),
        (cbc(1), 4095),
        (cbc(1), 0),
    ];
    for (session, bytes) in &all {
        let input = text(*bytes, 3);
        for mut given in [Given::in_place(&input), Given::apart(&input)] {
            let why = driver.run_single(session.with_iv(&IV), &mut given, TIMEOUT).unwrap_err();
            assert_eq!((why, given.taken), (FULL, 0), "{session:?} {bytes}");
            assert!(given.input == input && given.output.is_none_or(|output| output == vec![0xEE; *bytes]));
        }
    }
    assert!(!driver.takes(Algorithm::Aes128Cbc, 4095) && !driver.takes(Algorithm::Aes128Gcm, 16));
    assert_eq!(peer.orders.seen.count(Event::Request), asked);
    let most = text(2 << 20, 4);
    let mut given = Given::apart(&most);
    driver.run_single(cbc(1).with_iv(&IV), &mut given, TIMEOUT).unwrap();
    assert!(given.result() == right(&cbc(1), &IV, &most));
}

#[test]
fn more_callers_than_seats_are_answered_or_told_that_it_is_full() {
    let (peer, driver) = scene("");
    peer.orders.give(Order::Busy);
    let asked = peer.orders.seen.count(Event::Request);
    let session = &cbc(1);
    thread::scope(|scope| {
        let ask = |_| {
            let driver = &*driver;
            scope.spawn(move || {
                let input = text(4096, 5);
                let mut given = Given::in_place(&input);
                let done = driver.run_single(session.with_iv(&IV), &mut given, TIMEOUT);
                assert!(given.result() == if done.is_ok() { right(session, &IV, &input) } else { input });
                done
            })
        };
        let callers: Vec<_> = (0..40).map(ask).collect();
        assert!(
            soon(|| callers.iter().filter(|caller| caller.is_finished()).count() == 8),
            "they need not wait"
        );
        peer.orders.take_back(Order::Busy);
        let done: Vec<_> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
        assert_eq!(done.iter().filter(|done| **done == Err(FULL)).count(), 8);
        assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 32);
    });
    assert_eq!(peer.orders.seen.count(Event::Request) - asked, 32);
}
