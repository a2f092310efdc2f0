//! All that the device does, by jobs in a queue, by single requests and by both at once: libcrypto's results, and QEMU's own count.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use evener_core::driver::{SingleDriver, Unanswered};
use evener_core::{Algorithm, Direction, Job, JobError, Nanos, Outcome, Padding, Refusal, Session};
use evener_driver_virtio::{DEPTH, Module};
use evener_testbed::ModuleCounts;
use evener_testing::requests::{JobSpec, all_by, answers, apart, in_place, judged, session};

use super::{Queued, SILENCE, TestGuest, are_right, device, sessions_of};

/// Short ones last, which a queue is given first, so that it is full.
const LENGTHS: [usize; 17] =
    [1 << 20, 262_147, 65_552, 65_536, 65_535, 16_384, 4_113, 4_096, 4_095, 255, 80, 48, 33, 17, 16, 15, 1];
const SINGLES: [usize; 9] = [16, 32, 48, 256, 1_024, 4_096, 16_384, 65_520, 65_536];
/// Longest request, and no longer one.
const LONGEST: usize = 1_064_960;
/// More than a connection keeps open, and more than QEMU's module holds.
const KEYS: usize = 300;

pub(super) fn are_libcryptos_and_counted(test_guest: &mut TestGuest) {
    for test in [
        "sessions::every_session_at_all_lengths",
        "sessions::what_is_too_long_and_a_queue_that_is_full",
        "sessions::callers_that_wait_for_single_requests",
        "sessions::threads_with_single_requests_beside_a_run",
        "sessions::more_keys_than_a_device_holds",
        "sessions::one_owner_after_the_other_leaves_no_keys_behind",
    ] {
        let before = test_guest.counts();
        let told = test_guest.test(test);
        let (Some(before), Some(after)) = (before, test_guest.counts()) else { continue };
        let sent = said(&told);
        assert!(sent.encrypted_count > 0, "{test}: nothing was sent");
        assert_eq!(difference(before, after), sent, "{test}: what QEMU counted, what the program says");
    }
}

fn difference(before: ModuleCounts, after: ModuleCounts) -> ModuleCounts {
    ModuleCounts {
        encrypted_count: after.encrypted_count - before.encrypted_count,
        decrypted_count: after.decrypted_count - before.decrypted_count,
        encrypted_bytes: after.encrypted_bytes - before.encrypted_bytes,
        decrypted_bytes: after.decrypted_bytes - before.decrypted_bytes,
    }
}

/// Requests and bytes that this program has sent: encrypted, then decrypted.
static SENT: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
const SAYS: &str = "sent: ";

/// Counts what a device is sent for a job: with padding that its length does not show, and nothing for nothing.
fn sends(spec: &JobSpec) {
    let (session, bytes) = (&spec.session, spec.input.len());
    let encrypts = session.direction() == Direction::Encrypt;
    let sent = if encrypts { session.output_bytes_max(bytes) } else { bytes };
    if sent > 0 {
        let at = if encrypts { 0 } else { 2 };
        SENT[at].fetch_add(1, Relaxed);
        SENT[at + 1].fetch_add(sent as u64, Relaxed);
    }
}

fn say() {
    let [encrypted, bytes, decrypted, more_bytes] = [0, 1, 2, 3].map(|at| SENT[at].load(Relaxed));
    println!("{SAYS}{encrypted} {bytes} {decrypted} {more_bytes}");
}

fn said(told: &str) -> ModuleCounts {
    let line = told.lines().find_map(|line| Some(line.split_once(SAYS)?.1)).expect("it says what it sent");
    let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
    let [encrypted_count, encrypted_bytes, decrypted_count, decrypted_bytes] = numbers[..] else {
        panic!("{line}")
    };
    ModuleCounts { encrypted_count, decrypted_count, encrypted_bytes, decrypted_bytes }
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn every_session_at_all_lengths() {
    let Some(module) = device() else { return };
    let sessions = sessions_of(&module, 4);
    assert_eq!(sessions.len(), 12, "AES-CBC by three key lengths, both directions, with padding and without");
    for session in sessions {
        // In place and apart, by the parity of the seed.
        let places =
            (0..2 * LENGTHS.len() + 2).map(|seed| (seed, LENGTHS.get(seed / 2).copied().unwrap_or(0)));
        let specs: Vec<JobSpec> = places.map(|(seed, bytes)| JobSpec::noisy(&session, bytes, seed)).collect();
        are_right(&mut Queued(&module), &specs);
        specs.iter().for_each(sends);
    }
    say();
}

fn key(direction: Direction, seed: usize) -> Arc<Session> {
    session(Algorithm::Aes128Cbc, direction, Padding::None, seed)
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn what_is_too_long_and_a_queue_that_is_full() {
    let Some(module) = device() else { return };
    let key = key(Direction::Encrypt, 5);
    let specs = [LONGEST, LONGEST + 16].map(|bytes| JobSpec::noisy(&key, bytes, 0));
    let came = answers(&mut Queued(&module), &specs);
    assert!(came[0] == judged(&specs[0]));
    assert_eq!(came[1].outcome, Outcome::Failed(JobError::ModuleFull));
    sends(&specs[0]);
    let (mut driver, small) = (module.driver(), JobSpec::noisy(&key, 48, 1));
    (0..DEPTH).for_each(|_| assert!(driver.submit(job(&small)).is_ok()));
    assert!(matches!(driver.submit(job(&small)), Err((_, Refusal::Full))));
    let done = all_by(&mut *driver, Vec::new(), SILENCE);
    assert_eq!(done.len(), DEPTH as usize);
    assert!(done.iter().all(|job| job.output() == judged(&small).output));
    (0..DEPTH).for_each(|_| sends(&small));
    say();
}

/// A job over a copy of the text.
pub(super) fn job(spec: &JobSpec) -> Box<Job<'static>> {
    let mut job = Job::in_place(spec.input.clone().leak());
    job.arm(Arc::clone(&spec.session), &spec.iv, spec.input.len());
    job
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn callers_that_wait_for_single_requests() {
    let Some(module) = device() else { return };
    let single = module.single();
    for session in sessions_of(&module, 7) {
        for (seed, &bytes) in SINGLES.iter().enumerate() {
            let spec = JobSpec::noisy(&session, bytes, seed);
            if session.padding() == Padding::Pkcs7 {
                assert_eq!(in_place(&*single, &spec, SILENCE), FULL, "padding is for the queue");
                continue;
            }
            let due = Ok(judged(&spec).output);
            assert!(in_place(&*single, &spec, SILENCE) == due, "in place: {}", spec.what());
            assert!(apart(&*single, &spec, SILENCE) == due, "apart: {}", spec.what());
            (0..2).for_each(|_| sends(&spec));
        }
    }
    assert_eq!(in_place(&*single, &JobSpec::noisy(&key(Direction::Encrypt, 7), 0, 0), SILENCE), FULL);
    say();
}

const FULL: Result<Vec<u8>, Unanswered> = Err(Unanswered::Failed(JobError::ModuleFull));

const THREADS: usize = 4;
const SINGLES_EACH: usize = 150;
/// Of the run at a time: with a request of each thread, fewer than a connection takes, so no request is ever refused.
const BURST: usize = 16;
const BURSTS_MIN: usize = 8;

/// Timeout of a caller that is to have its result long before.
const A_MINUTE: Nanos = Nanos::from_millis(60_000);

/// Asks with their answers.
type Work = Vec<(JobSpec, Vec<u8>)>;

fn work(seed: usize, count: usize) -> Work {
    let keys = [Direction::Encrypt, Direction::Decrypt].map(|direction| key(direction, seed));
    let spec = |at: usize| JobSpec::noisy(&keys[at % 2], 16 << (at % 9), seed + at);
    (0..count).map(spec).map(|spec| (spec.clone(), judged(&spec).output)).collect()
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn threads_with_single_requests_beside_a_run() {
    let Some(module) = device() else { return };
    let single = module.single();
    let works: [Work; THREADS] = [100, 200, 300, 400].map(|seed| work(seed, SINGLES_EACH));
    let of_run = work(500, BURST);
    let done: usize = thread::scope(|scope| {
        let threads = works.each_ref().map(|work| scope.spawn(|| asks_alone(&*single, work)));
        let mut bursts = 0;
        while bursts < BURSTS_MIN || threads.iter().any(|thread| !thread.is_finished()) {
            runs(&module, &of_run);
            bursts += 1;
        }
        threads.map(|thread| thread.join().expect("it got what it asked for")).iter().sum()
    });
    assert_eq!(done, THREADS * SINGLES_EACH);
    say();
}

/// One request after the other, in place and apart.
fn asks_alone(single: &dyn SingleDriver, work: &Work) -> usize {
    for (place, (spec, due)) in work.iter().enumerate() {
        let route = if place % 2 == 0 { in_place } else { apart };
        let began = Instant::now();
        let came = route(single, spec, A_MINUTE);
        assert!(began.elapsed() < Duration::from(SILENCE), "it was not woken when its result was there");
        assert!(came.as_ref() == Ok(due), "{}: {:?}", spec.what(), came.err());
        sends(spec);
    }
    work.len()
}

fn runs(module: &Module, work: &Work) {
    let specs: Vec<JobSpec> = work.iter().map(|(spec, _)| spec.clone()).collect();
    for (answer, (spec, due)) in answers(&mut Queued(module), &specs).iter().zip(work) {
        assert!(answer.output == *due, "{}: {:?}", spec.what(), answer.outcome);
        sends(spec);
    }
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn more_keys_than_a_device_holds() {
    let Some(module) = device() else { return };
    let specs: Vec<JobSpec> =
        (0..KEYS).map(|seed| JobSpec::noisy(&key(Direction::Encrypt, seed), 64, seed)).collect();
    are_right(&mut Queued(&module), &specs);
    let single = module.single();
    for spec in &specs {
        assert!(in_place(&*single, spec, SILENCE) == Ok(judged(spec).output), "{}", spec.what());
    }
    specs.iter().chain(&specs).for_each(sends);
    say();
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn one_owner_after_the_other_leaves_no_keys_behind() {
    const EACH: usize = 60;
    for owner in 0..KEYS / EACH {
        let Some(module) = device() else { return };
        let first = owner * EACH;
        let specs: Vec<JobSpec> = (first..first + EACH)
            .map(|seed| JobSpec::noisy(&key(Direction::Encrypt, seed), 64, seed))
            .collect();
        are_right(&mut Queued(&module), &specs);
        specs.iter().for_each(sends);
    }
    say();
}
