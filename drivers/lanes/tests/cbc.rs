//! CBC encryption by lanes, at every level of instructions and by planes, is libcrypto's: bursts of all lengths, paddings, keys and places.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use evener_core::job::SharedSpan;
use evener_core::{Algorithm, Direction, InlineDriver as _, Job, JobError, Outcome, Padding, Session};
use evener_driver_lanes::Lanes;
use evener_kernels::{Level, bitsliced};
use evener_testing::noise;
use evener_testing::requests::{Direct, JobSpec, answers, judged, session};

const ALL: [Algorithm; 3] = [Algorithm::Aes128Cbc, Algorithm::Aes192Cbc, Algorithm::Aes256Cbc];

/// Sessions of every size of key, with padding and without, some of each.
fn sessions() -> Vec<Arc<Session>> {
    let of = |padding| {
        let seeds = ALL.iter().flat_map(|algorithm| (0..3).map(move |seed| (*algorithm, seed)));
        seeds.map(move |(algorithm, seed)| session(algorithm, Direction::Encrypt, padding, seed))
    };
    of(Padding::None).chain(of(Padding::Pkcs7)).collect()
}

/// By every level, and by all means.
fn drivers() -> impl Iterator<Item = Lanes> {
    Level::all().map(Lanes::unchecked).chain(bitsliced::Means::all().map(Lanes::of_planes))
}

fn compare(route: &mut Direct<Lanes>, specs: &[JobSpec]) {
    for (spec, answer) in specs.iter().zip(answers(route, specs)) {
        let right = judged(spec);
        assert_eq!(answer.outcome, right.outcome, "{}", spec.what());
        assert!(answer.output == right.output, "{}: output differs, {} jobs", spec.what(), specs.len());
    }
}

#[test]
fn every_length_and_padding_comes_out_as_by_libcrypto_at_every_level() {
    for lanes in drivers() {
        let mut route = Direct(lanes);
        for session in sessions() {
            let specs: Vec<JobSpec> = (0..700)
                .chain([1_023, 1_024, 1_025, 4_095, 4_096, 16_384, 16_399, 70_000])
                .map(|bytes| JobSpec::noisy(&session, bytes, bytes))
                .collect();
            compare(&mut route, &specs);
        }
    }
}

#[test]
fn bursts_of_several_sessions_and_widths_are_kept_apart() {
    let sessions = sessions();
    for lanes in drivers() {
        let mut route = Direct(lanes);
        for width in 1..50 {
            let specs: Vec<JobSpec> = (0..width)
                .map(|seed| {
                    JobSpec::noisy(&sessions[(seed * 5 + width) % sessions.len()], seed * 331 % 3_000, seed)
                })
                .collect();
            compare(&mut route, &specs);
        }
    }
}

/// Over memory of several processes: without padding as by libcrypto, in place and apart; with padding refused.
#[test]
fn memory_that_others_may_change_is_worked_on_where_it_lies() {
    let lengths = [0, 16, 64, 1_024, 4_096, 20_000];
    for mut lanes in drivers() {
        assert!(lanes.takes_shared());
        for session in sessions() {
            let iv = [0xff; 16];
            let texts = lengths.map(|bytes| noise(7, bytes));
            let memory: Vec<[Vec<AtomicU8>; 2]> = texts
                .iter()
                .map(|text| {
                    [0, 16].map(|more| text.iter().copied().chain(vec![0; more]).map(AtomicU8::new).collect())
                })
                .collect();
            let spans = memory.iter().enumerate().map(|(number, [src, dst])| match number % 2 {
                0 => SharedSpan { src, dst: src },
                _ => SharedSpan { src, dst },
            });
            let mut burst: Vec<_> = spans.map(Job::shared).collect();
            for (job, text) in burst.iter_mut().zip(&texts) {
                job.arm(&*session, &iv, text.len());
            }
            lanes.run(&mut burst);
            for (number, (job, text)) in burst.iter().zip(&texts).enumerate() {
                if session.padding() == Padding::Pkcs7 {
                    assert!(matches!(
                        job.outcome(),
                        Outcome::Failed(JobError::Unsupported | JobError::BadLength)
                    ));
                    continue;
                }
                assert_eq!(job.outcome(), Outcome::Done { written: text.len() });
                let made: Vec<u8> =
                    memory[number][number % 2].iter().map(|byte| byte.load(Relaxed)).collect();
                let spec = JobSpec { iv: iv.to_vec(), ..JobSpec::noisy(&session, 0, 0) };
                let right = judged(&JobSpec { input: text.clone(), ..spec });
                assert!(
                    made[..text.len()] == right.output,
                    "{} bytes, {}",
                    text.len(),
                    lanes.profile().detail
                );
            }
        }
    }
}

#[test]
fn lengths_that_do_not_fit_are_refused_and_their_memory_is_untouched() {
    drivers().for_each(refuses);
}

fn refuses(mut lanes: Lanes) {
    let [bare, padded] =
        [Padding::None, Padding::Pkcs7].map(|padding| session(ALL[0], Direction::Encrypt, padding, 1));
    let mut spaces = [[7; 64]; 3];
    {
        let mut burst: Vec<_> = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
        burst[0].arm(&*bare, &[1; 16], 63);
        burst[1].arm(&*padded, &[1; 16], 64);
        burst[2].arm(&*bare, &[1; 16], 64);
        lanes.run(&mut burst);
        let outcomes: Vec<_> = burst.iter().map(|job| job.outcome()).collect();
        let refused = Outcome::Failed(JobError::BadLength);
        assert_eq!(outcomes, [refused, refused, Outcome::Done { written: 64 }]);
    }
    assert_eq!((spaces[0], spaces[1]), ([7; 64], [7; 64]));
    assert_ne!(spaces[2], [7; 64]);
}

#[test]
fn without_instructions_for_aes_cbc_encryption_is_all_that_is_offered_of_it() {
    let lanes = Lanes::without_aes().expect("known answers come out");
    for algorithm in Algorithm::ALL.iter().copied().filter(|algorithm| algorithm.is_cipher()) {
        let is_cbc = ALL.contains(&algorithm);
        assert_eq!(lanes.supports(algorithm, Direction::Encrypt), is_cbc, "{algorithm}");
        assert!(!lanes.supports(algorithm, Direction::Decrypt), "{algorithm}");
    }
    assert!(lanes.profile().detail.contains("bitsliced"), "{}", lanes.profile().detail);
}
