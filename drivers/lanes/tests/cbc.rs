//! CBC encryption by lanes, at every level of instructions and by planes, is libcrypto's: bursts of all lengths, paddings, keys and places.

use std::sync::Arc;

use evener_core::{Algorithm, Direction, InlineDriver as _, Job, JobError, Outcome, Padding, Session};
use evener_driver_lanes::Lanes;
use evener_kernels::{Level, bitsliced};
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
