//! A core's set of drivers that prefers multi-buffer, by kernels of our own and by the library, against libcrypto alone: widths, lengths, mixtures, and chains of jobs.

use std::sync::Arc;
use std::thread;

use evener_core::{Algorithm, Direction, Family, Method, Padding, Session};
use evener_testing::drivers::{lanes, multibuffer};
use evener_testing::noise;
use evener_testing::requests::{JobSpec, Layout, OnCore, answers, judged, kinds, session};

/// Lengths in bytes around everything that counts: blocks, lanes, pages, size classes.
const LENGTHS: [usize; 25] = [
    0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1024, 2048, 4095,
    4096, 4097,
];

/// Lengths around what a lane of the library counts, and far beyond.
const LONG: [usize; 5] = [65_519, 65_534, 65_535, 65_536, 1 << 20];

/// Sets of drivers that prefer multi-buffer, one for each driver of it; a printed line for one that is not there.
fn all_core_drivers() -> Vec<OnCore> {
    [lanes().map(OnCore::multi_buffer), multibuffer().map(OnCore::multi_buffer)]
        .into_iter()
        .flatten()
        .collect()
}

/// Runs all jobs as one burst and lets libcrypto judge each.
fn compare(core_drivers: &mut OnCore, specs: &[JobSpec]) {
    for (spec, answer) in specs.iter().zip(answers(core_drivers, specs)) {
        let right = judged(spec);
        assert_eq!((answer.outcome, &answer.tag), (right.outcome, &right.tag), "{}", spec.what());
        assert!(answer.output == right.output, "{}: output differs, {} jobs", spec.what(), specs.len());
    }
}

/// Fails unless multi-buffer did some of the work since this was last called.
fn assert_side_by_side(core_drivers: &mut OnCore) {
    let jobs = core_drivers.take_tallies()[Method::MultiBuffer as usize].jobs;
    assert!(jobs > 0, "no job went to multi-buffer");
}

/// Drivers that prefer multi-buffer, which must have done some of the work when this is dropped.
struct SideBySide(OnCore);

impl SideBySide {
    /// Calls `body` with one after the other.
    fn each(body: impl Fn(&mut Self)) {
        all_core_drivers().into_iter().map(Self).for_each(|mut drivers| body(&mut drivers));
    }

    fn compare(&mut self, specs: &[JobSpec]) {
        compare(&mut self.0, specs);
    }
}

impl Drop for SideBySide {
    fn drop(&mut self) {
        if !thread::panicking() {
            assert_side_by_side(&mut self.0);
        }
    }
}

#[test]
fn bursts_of_every_width_and_of_mixed_lengths_come_out_as_from_libcrypto() {
    SideBySide::each(|core_drivers| {
        for (place, session) in kinds(1).enumerate() {
            let mut seeds = place..;
            for width in 1..=33 {
                let specs: Vec<JobSpec> = seeds
                    .by_ref()
                    .take(width)
                    .map(|seed| JobSpec::noisy(&session, LENGTHS[seed % LENGTHS.len()], seed))
                    .collect();
                core_drivers.compare(&specs);
            }
        }
    });
}

#[test]
fn bursts_of_one_length_come_out_as_from_libcrypto() {
    SideBySide::each(|core_drivers| {
        for session in kinds(2) {
            for bytes in LENGTHS {
                let specs: Vec<JobSpec> = (0..9).map(|seed| JobSpec::noisy(&session, bytes, seed)).collect();
                core_drivers.compare(&specs);
            }
        }
    });
}

#[test]
fn what_is_longer_than_a_lane_counts_comes_out_as_from_libcrypto() {
    SideBySide::each(|core_drivers| {
        for session in kinds(3) {
            let specs: Vec<JobSpec> =
                LONG.iter().enumerate().map(|(seed, &bytes)| JobSpec::noisy(&session, bytes, seed)).collect();
            core_drivers.compare(&specs);
            specs.iter().for_each(|spec| core_drivers.compare(std::slice::from_ref(spec)));
        }
    });
}

#[test]
fn many_sessions_and_algorithms_in_one_burst_are_kept_apart() {
    SideBySide::each(|core_drivers| {
        let sessions: Vec<Arc<Session>> = (0..7).flat_map(|round| kinds(10 + round)).collect();
        let one = |(seed, session): (usize, &Arc<Session>)| JobSpec::noisy(session, seed * 37 % 3000, seed);
        let mut specs: Vec<JobSpec> = sessions.iter().enumerate().map(one).collect();
        core_drivers.compare(&specs);
        specs.reverse();
        core_drivers.compare(&specs);
    });
}

// ---- chains: a text in jobs, each of which begins where the one before ended

/// A text on its way through jobs.
struct Chain {
    whole: JobSpec,
    done: usize,
    iv: Vec<u8>,
    output: Vec<u8>,
}

impl Chain {
    /// The next job: `bytes`, or what is left.
    fn next(&self, bytes: usize, layout: Layout) -> JobSpec {
        let rest = &self.whole.input[self.done..];
        let input = rest[..bytes.min(rest.len())].to_vec();
        JobSpec { iv: self.iv.clone(), input, layout, ..self.whole.clone() }
    }

    /// Takes the job's output, and the IV of the next from it.
    fn take(&mut self, spec: &JobSpec, output: &[u8]) {
        self.iv = match (spec.session.algorithm().family(), spec.session.direction()) {
            (Family::Ctr, _) => {
                let first = u128::from_be_bytes(self.iv[..].try_into().expect("a block"));
                first.wrapping_add(spec.input.len() as u128 / 16).to_be_bytes().to_vec()
            }
            (_, Direction::Encrypt) => output[output.len() - 16..].to_vec(),
            (_, Direction::Decrypt) => spec.input[spec.input.len() - 16..].to_vec(),
        };
        self.done += spec.input.len();
        self.output.extend_from_slice(output);
    }

    fn is_done(&self) -> bool {
        self.done == self.whole.input.len()
    }
}

/// Two texts per key size and direction of CBC and CTR, one of them with a counter that is about to wrap around.
fn chains() -> Vec<Chain> {
    use Algorithm::{Aes128Cbc, Aes128Ctr, Aes192Cbc, Aes192Ctr, Aes256Cbc, Aes256Ctr};
    let mut chains = Vec::new();
    for algorithm in [Aes128Cbc, Aes192Cbc, Aes256Cbc, Aes128Ctr, Aes192Ctr, Aes256Ctr] {
        for (seed, direction) in [Direction::Encrypt, Direction::Decrypt].into_iter().enumerate() {
            let session = session(algorithm, direction, Padding::None, seed);
            for iv in [noise(seed as u64, 16), vec![0xFF; 16]] {
                let whole = JobSpec { iv: iv.clone(), ..JobSpec::noisy(&session, 20_000 + 160 * seed, seed) };
                chains.push(Chain { whole, done: 0, iv, output: Vec::new() });
            }
        }
    }
    chains
}

#[test]
fn jobs_that_carry_the_iv_on_give_what_one_job_gives() {
    all_core_drivers().into_iter().for_each(|mut drivers| carry_on(&mut drivers, chains()));
}

fn carry_on(core_drivers: &mut OnCore, mut chains: Vec<Chain>) {
    for round in 0.. {
        let mut open: Vec<&mut Chain> = chains.iter_mut().filter(|chain| !chain.is_done()).collect();
        if open.is_empty() {
            break;
        }
        let bytes = |place: usize| 16 * [1, 2, 3, 7, 16, 17, 64, 255][(round + place) % 8];
        let specs: Vec<JobSpec> = open
            .iter()
            .enumerate()
            .map(|(place, chain)| chain.next(bytes(place), Layout::nth(round + place)))
            .collect();
        let came = answers(core_drivers, &specs);
        for ((chain, spec), answer) in open.iter_mut().zip(&specs).zip(&came) {
            chain.take(spec, &answer.output);
        }
    }
    for chain in &chains {
        assert!(chain.output == judged(&chain.whole).output, "{}", chain.whole.what());
    }
    assert_side_by_side(core_drivers);
}
