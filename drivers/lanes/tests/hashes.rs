//! SHA-1, SHA-256 and HMAC by lanes, by every choice of instructions, are libcrypto's: bursts of all lengths, keys and places.
#![allow(clippy::print_stdout, reason = "says what was left out")]

use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use evener_core::job::SharedSpan;
use evener_core::{Algorithm, Direction, InlineDriver as _, Job, JobError, Outcome, Padding, Session};
use evener_driver_lanes::Lanes;
use evener_kernels::Level;
use evener_kernels::hashes::Means;
use evener_testing::noise;
use evener_testing::requests::{Direct, JobSpec, answers, judged, session};

const ALL: [Algorithm; 4] = [Algorithm::Sha1, Algorithm::Sha256, Algorithm::HmacSha1, Algorithm::HmacSha256];

fn of(algorithm: Algorithm, seed: usize) -> Arc<Session> {
    session(algorithm, Direction::Encrypt, Padding::None, seed)
}

/// A driver for each choice of instructions.
fn drivers() -> Vec<(Lanes, &'static str)> {
    let Some(level) = Level::best() else {
        println!("skipped: this processor lacks the instructions");
        return Vec::new();
    };
    Means::all().map(|means| (Lanes::unchecked(level).hashing_by(Some(means)), means.name())).collect()
}

fn compare(route: &mut Direct<Lanes>, specs: &[JobSpec], name: &str) {
    for (spec, answer) in specs.iter().zip(answers(route, specs)) {
        let right = judged(spec);
        assert_eq!(answer.outcome, right.outcome, "{} by {name}", spec.what());
        assert!(answer.tag == right.tag, "{} by {name}: the tag differs, {} jobs", spec.what(), specs.len());
    }
}

#[test]
fn every_length_comes_out_as_by_libcrypto() {
    for (driver, name) in drivers() {
        let mut route = Direct(driver);
        for algorithm in ALL {
            let session = of(algorithm, 1);
            let lengths = (0..300).chain([1_023, 4_095, 4_096, 16_399, 70_000]);
            let specs: Vec<JobSpec> = lengths.map(|bytes| JobSpec::noisy(&session, bytes, bytes)).collect();
            compare(&mut route, &specs, name);
        }
    }
}

#[test]
fn bursts_of_several_algorithms_keys_and_widths_are_kept_apart() {
    let sessions: Vec<_> =
        ALL.iter().flat_map(|algorithm| (0..5).map(move |seed| of(*algorithm, seed))).collect();
    for (driver, name) in drivers() {
        let mut route = Direct(driver);
        for width in 1..50 {
            let one =
                |seed: usize| (&sessions[(seed * 7 + width) % sessions.len()], seed * 331 % 3_000, seed);
            let specs: Vec<JobSpec> = (0..width)
                .map(one)
                .map(|(session, bytes, seed)| JobSpec::noisy(session, bytes, seed))
                .collect();
            compare(&mut route, &specs, name);
        }
    }
}

#[test]
fn shared_memory_is_hashed_where_it_lies() {
    for (mut driver, name) in drivers() {
        for algorithm in ALL {
            let (session, text) = (of(algorithm, 3), noise(1_000, 9));
            let shared: Vec<AtomicU8> = text.iter().copied().map(AtomicU8::new).collect();
            let mut burst = [Job::shared(SharedSpan { src: &shared, dst: &[] })];
            burst[0].arm(Arc::clone(&session), &[], text.len());
            driver.run(&mut burst);
            assert_eq!(burst[0].outcome(), Outcome::Done { written: 0 });
            let mut own = text.clone();
            let mut judge = [Job::in_place(&mut own)];
            judge[0].arm(Arc::clone(&session), &[], text.len());
            evener_driver_libcrypto::Libcrypto::new().expect("libcrypto").run(&mut judge);
            assert_eq!(burst[0].tag(), judge[0].tag(), "{algorithm} by {name}");
        }
    }
}

#[test]
fn what_is_measured_by_other_instructions_has_another_name() {
    let details: Vec<String> = drivers().iter().map(|(driver, _)| driver.profile().detail.clone()).collect();
    for (at, (_, name)) in drivers().iter().enumerate() {
        assert!(details[at].contains(&format!("hashes by {name},")), "{}", details[at]);
    }
}

#[test]
fn where_no_instructions_are_no_hash_is_offered() {
    let Some(level) = Level::best() else {
        return println!("skipped: this processor lacks the instructions");
    };
    let mut driver = Lanes::unchecked(level).hashing_by(None);
    assert!(!driver.supports(Algorithm::Sha256, Direction::Encrypt));
    assert!(driver.supports(Algorithm::Aes128Cbc, Direction::Encrypt));
    let mut space = [0; 16];
    let mut burst = [Job::in_place(&mut space)];
    burst[0].arm(of(Algorithm::Sha256, 0), &[], 16);
    driver.run(&mut burst);
    assert_eq!(burst[0].outcome(), Outcome::Failed(JobError::Unsupported));
}
