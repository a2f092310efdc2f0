//! Every algorithm of the driver against libcrypto: widths, lengths, layouts, mixtures.

use std::sync::Arc;

use evener_core::{Algorithm, Direction, InlineDriver, Job, JobError, Outcome, Padding, Session};
use evener_testing::drivers::multibuffer as driver;
use evener_testing::requests::{self, Answer, JobSpec, Layout, OneBurst, UNTOUCHED, answers, kinds, session};

/// Every algorithm, direction and padding that the driver has.
fn sessions(seed: usize) -> Vec<Arc<Session>> {
    let Some(driver) = driver() else { return Vec::new() };
    kinds(seed).filter(|kind| driver.supports(kind.algorithm(), kind.direction())).collect()
}

/// A job over about so many bytes.
fn spec(session: &Arc<Session>, bytes: usize, seed: usize, in_place: bool) -> JobSpec {
    JobSpec { layout: Layout { shift: seed * 5 % 64, in_place }, ..JobSpec::noisy(session, bytes, seed) }
}

fn specs(session: &Arc<Session>, lengths: impl IntoIterator<Item = usize>, in_place: bool) -> Vec<JobSpec> {
    let lengths = lengths.into_iter().enumerate();
    lengths.map(|(seed, bytes)| spec(session, bytes, seed, in_place)).collect()
}

/// Runs all of them in one burst.
fn run(driver: &mut dyn InlineDriver, specs: &[JobSpec]) -> Vec<Answer> {
    answers(&mut OneBurst(driver), specs)
}

/// Runs all of them in one burst and lets libcrypto judge every answer.
fn compare(driver: &mut dyn InlineDriver, specs: &[JobSpec]) {
    requests::compare(&mut OneBurst(driver), specs);
}

const LENGTHS: [usize; 24] = [
    0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 80, 127, 255, 256, 257, 500, 512, 520, 1000, 1024, 4096, 5000,
    16_384,
];

#[test]
fn lengths_mixed_in_one_burst_come_out_right_in_place_and_apart() {
    let Some(mut driver) = driver() else { return };
    for session in sessions(1) {
        for in_place in [false, true] {
            compare(&mut driver, &specs(&session, LENGTHS, in_place));
        }
    }
}

#[test]
fn every_length_alone_comes_out_right() {
    let Some(mut driver) = driver() else { return };
    for session in sessions(2) {
        for bytes in 0..=80 {
            compare(&mut driver, &specs(&session, [bytes], bytes % 2 == 0));
        }
    }
}

#[test]
fn every_width_comes_out_right() {
    let Some(mut driver) = driver() else { return };
    for session in sessions(3) {
        for width in (1..=33).chain([127, 128, 129, 257]) {
            compare(&mut driver, &specs(&session, vec![100; width], width % 2 == 0));
            compare(&mut driver, &specs(&session, vec![700; width], width % 2 == 1));
        }
    }
}

#[test]
fn lengths_around_what_a_lane_counts_come_out_right() {
    let Some(mut driver) = driver() else { return };
    let around = [65_519, 65_520, 65_521, 65_533, 65_534, 65_535, 65_536, 65_537, 131_072, 1 << 20];
    for session in sessions(4) {
        let bytes_max = driver.job_bytes_max(session.algorithm(), session.direction());
        let lengths: Vec<usize> = around.into_iter().filter(|&bytes| bytes <= bytes_max).collect();
        for in_place in [false, true] {
            compare(&mut driver, &specs(&session, lengths.iter().copied(), in_place));
            for &bytes in &lengths {
                compare(&mut driver, &specs(&session, [bytes; 3], in_place));
            }
        }
    }
}

#[test]
fn a_hash_longer_than_a_lane_is_refused_and_not_computed_wrongly() {
    let Some(mut driver) = driver() else { return };
    for session in sessions(5).iter().filter(|session| !session.algorithm().is_cipher()) {
        assert_eq!(driver.job_bytes_max(session.algorithm(), Direction::Encrypt), 65_534);
        let answers = run(&mut driver, &specs(session, [65_534, 65_535, 65_536, 100], false));
        let outcomes: Vec<Outcome> = answers.iter().map(|answer| answer.outcome).collect();
        let refused = Outcome::Failed(JobError::Unsupported);
        assert_eq!(outcomes, [Outcome::Done { written: 0 }, refused, refused, Outcome::Done { written: 0 }]);
    }
}

#[test]
fn a_burst_of_many_sessions_and_algorithms_keeps_them_apart() {
    let Some(mut driver) = driver() else { return };
    let sessions: Vec<Arc<Session>> = (0..5).flat_map(|round| sessions(10 + round)).collect();
    assert!(sessions.len() > 128);
    let one = |(seed, session)| spec(session, seed * 37 % 3000, seed, seed % 3 == 0);
    let specs: Vec<JobSpec> = sessions.iter().enumerate().map(one).collect();
    compare(&mut driver, &specs);
    let backwards: Vec<JobSpec> = specs.into_iter().rev().collect();
    compare(&mut driver, &backwards);
}

#[test]
fn many_sizes_with_a_key_each_come_out_right() {
    let Some(mut driver) = driver() else { return };
    for padding in [Padding::None, Padding::Pkcs7] {
        let sessions: Vec<Arc<Session>> =
            (0..150).map(|seed| session(Algorithm::Aes256Cbc, Direction::Encrypt, padding, seed)).collect();
        let bytes = |seed: usize| (64 << (seed % 12)) + seed % 17;
        let one = |(seed, session)| spec(session, bytes(seed), seed, seed % 2 == 0);
        let specs: Vec<JobSpec> = sessions.iter().enumerate().map(one).collect();
        compare(&mut driver, &specs);
    }
}

#[test]
fn a_counter_carries_through_all_its_bytes() {
    let Some(mut driver) = driver() else { return };
    for algorithm in [Algorithm::Aes128Ctr, Algorithm::Aes192Ctr, Algorithm::Aes256Ctr] {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let session = session(algorithm, direction, Padding::None, 6);
            for ones in 1..=16 {
                for (bytes, in_place) in [(5, true), (16, false), (17, true), (100, false), (5000, true)] {
                    let mut burst = specs(&session, [bytes; 3], in_place);
                    burst[1].iv[16 - ones..].fill(0xFF);
                    burst[2].iv[16 - ones..].fill(0xFF);
                    burst[2].iv[15] = 0xFD;
                    compare(&mut driver, &burst);
                }
            }
        }
    }
}

#[test]
fn what_is_not_authentic_fails_and_leaves_nothing() {
    let Some(mut driver) = driver() else { return };
    for session in
        sessions(7).iter().filter(|s| s.algorithm().is_aead() && s.direction() == Direction::Decrypt)
    {
        for in_place in [false, true] {
            let mut burst = specs(session, [100; 6], in_place);
            burst[1].tag[15] ^= 1;
            burst[2].input[0] ^= 0x80;
            burst[3].iv[11] ^= 4;
            burst[4].aad.push(0);
            compare(&mut driver, &burst);
            let bad = run(&mut driver, &burst[1..5]);
            assert!(bad.iter().all(|answer| answer.outcome == Outcome::Failed(JobError::NotAuthentic)));
        }
    }
}

/// Fails unless the second job of the burst fails so, and all come out as from libcrypto.
fn assert_fails_beside_others(driver: &mut dyn InlineDriver, burst: &[JobSpec], why: JobError) {
    compare(driver, burst);
    assert_eq!(run(driver, burst)[1].outcome, Outcome::Failed(why));
}

#[test]
fn damaged_padding_fails_and_spares_the_neighbours() {
    let Some(mut driver) = driver() else { return };
    for session in
        sessions(8).iter().filter(|s| s.padding() == Padding::Pkcs7 && s.direction() == Direction::Decrypt)
    {
        for in_place in [false, true] {
            let mut burst = specs(session, [95, 96, 97, 3000], in_place);
            let end = burst[1].input.len() - 1;
            burst[1].input[end] ^= 0x55;
            assert_fails_beside_others(&mut driver, &burst, JobError::BadPadding);
        }
    }
}

#[test]
fn a_job_that_does_not_fit_is_left_alone_and_spares_the_neighbours() {
    let Some(mut driver) = driver() else { return };
    for session in sessions(9).iter().filter(|s| s.algorithm().needs_whole_blocks()) {
        let mut burst = specs(session, [64; 3], false);
        if session.direction() == Direction::Decrypt || session.padding() == Padding::None {
            burst[1].input.truncate(63);
            assert_fails_beside_others(&mut driver, &burst, JobError::BadLength);
        }
    }
}

#[test]
fn a_job_without_space_for_its_output_is_left_alone_and_spares_the_neighbours() {
    let Some(mut driver) = driver() else { return };
    for session in sessions(11).iter().filter(|session| session.algorithm().is_cipher()) {
        let good = spec(session, 64, 1, false);
        let space_bytes = session.output_bytes_max(good.input.len());
        let mut spaces =
            [vec![UNTOUCHED; space_bytes], vec![UNTOUCHED; space_bytes - 1], vec![UNTOUCHED; space_bytes]];
        let mut burst: Vec<Box<Job<'_>>> =
            spaces.iter_mut().map(|space| Job::apart(&good.input, space)).collect();
        for job in &mut burst {
            job.set_aad(&good.aad);
            job.set_tag(&good.tag);
            job.arm(Arc::clone(session), &good.iv, good.input.len());
        }
        driver.run(&mut burst);
        assert_eq!(burst[1].outcome(), Outcome::Failed(JobError::BadLength), "{session:?}");
        let [before, after] = [&burst[0], &burst[2]].map(|job| job.output().to_vec());
        assert!(!before.is_empty() && before == after, "{session:?}");
        drop(burst);
        assert!(spaces[1].iter().all(|&byte| byte == UNTOUCHED), "{session:?}");
    }
}

#[test]
fn drivers_on_several_threads_do_not_disturb_each_other() {
    if driver().is_none() {
        return;
    }
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for round in 0..5 {
                    let mut driver = driver().unwrap();
                    let session = session(Algorithm::Aes256Cbc, Direction::Encrypt, Padding::Pkcs7, thread);
                    compare(&mut driver, &specs(&session, LENGTHS, round % 2 == 0));
                }
            });
        }
    });
}

#[test]
fn what_the_library_lacks_is_refused() {
    let Some(mut driver) = driver() else { return };
    for algorithm in [Algorithm::Aes128Xts, Algorithm::Aes256Xts, Algorithm::Md5] {
        let session = session(algorithm, Direction::Encrypt, Padding::None, 1);
        let answers = run(&mut driver, &specs(&session, [100; 2], true));
        assert!(answers.iter().all(|answer| answer.outcome == Outcome::Failed(JobError::Unsupported)));
    }
}
