//! Jobs as data: one is submitted by any path, and its result is judged, with the memory around it.

use std::sync::Arc;

use evener_core::{Job, JobError, Outcome, Session};

mod by_module;
mod known_answers;
mod random;
mod route;

pub use by_module::{all_by, apart, by_run, in_place};
pub use known_answers::ask_all;
pub use random::{kinds, session};
pub use route::{Direct, OnCore, OneBurst, compare, judged};

/// What memory holds that no driver should have touched.
pub const UNTOUCHED: u8 = 0xEE;
/// Bytes behind the space that a session needs, to notice a driver that writes past it.
const BEYOND_BYTES: usize = 48;

/// Where a job's memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes between an address on a 16-byte border and the memory.
    pub shift: usize,
    /// Whether the output replaces the input; apart, both are shifted differently.
    pub in_place: bool,
}

impl Layout {
    /// The layouts one after the other: all shifts, each in place and apart.
    #[must_use]
    pub const fn nth(place: usize) -> Self {
        Self { shift: place / 2 % 16, in_place: place % 2 == 0 }
    }
}

/// One job as data.
#[derive(Clone, Debug)]
pub struct JobSpec {
    /// Key, algorithm, direction, padding.
    pub session: Arc<Session>,
    /// IV, nonce, counter block or tweak.
    pub iv: Vec<u8>,
    /// Associated data.
    pub aad: Vec<u8>,
    /// Plaintext, ciphertext or message.
    pub input: Vec<u8>,
    /// The tag to be checked.
    pub tag: Vec<u8>,
    /// Where its memory lies.
    pub layout: Layout,
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How it ended.
    pub outcome: Outcome,
    /// Its output; empty unless it went well.
    pub output: Vec<u8>,
    /// Its tag or digest.
    pub tag: Vec<u8>,
}

impl JobSpec {
    /// The name of the request, for messages.
    #[must_use]
    pub fn what(&self) -> String {
        let padding = self.session.padding();
        format!("{:?}, {padding:?}, {} bytes, {:?}", self.session, self.input.len(), self.layout)
    }

    /// Most bytes that it may write.
    fn output_bytes_max(&self) -> usize {
        self.session.output_bytes_max(self.input.len())
    }
}

/// Jobs side by side.
pub type Burst<'m> = Vec<Box<Job<'m>>>;

/// A route that jobs can take.
pub trait Route {
    /// Runs armed jobs and returns all of them, in any order.
    fn run<'m>(&mut self, jobs: Burst<'m>) -> Burst<'m>;
}

/// The memory of a job: whole allocations, which begin on a 16-byte border.
struct Memory {
    src: Vec<u8>,
    dst: Vec<u8>,
}

impl Memory {
    fn of(spec: &JobSpec) -> Self {
        let Layout { shift, in_place } = spec.layout;
        let space_bytes = spec.output_bytes_max().max(spec.input.len()) + BEYOND_BYTES;
        let mut src = vec![UNTOUCHED; shift];
        src.extend_from_slice(&spec.input);
        if in_place {
            src.resize(shift + space_bytes, UNTOUCHED);
            return Self { src, dst: Vec::new() };
        }
        Self { src, dst: vec![UNTOUCHED; other(shift) + space_bytes] }
    }
}

/// A shift that differs from `shift`.
const fn other(shift: usize) -> usize {
    (shift * 7 + 3) % 16
}

/// Runs jobs by one route and returns what came, in the order of the specs.
///
/// # Panics
///
/// Where a job did not come back exactly once, wrote past its space, or shows what was found not to be authentic.
pub fn answers(route: &mut impl Route, specs: &[JobSpec]) -> Vec<Answer> {
    let mut memory: Vec<Memory> = specs.iter().map(Memory::of).collect();
    let both = specs.iter().zip(&mut memory).enumerate();
    let jobs: Burst<'_> = both.map(|(place, (spec, memory))| armed(spec, memory, place as u64)).collect();
    let mut jobs = route.run(jobs);
    jobs.sort_by_key(|job| job.mark);
    assert!(jobs.iter().map(|job| job.mark).eq(0..specs.len() as u64), "every job comes back exactly once");
    specs.iter().zip(&jobs).map(|(spec, job)| answer(spec, job)).collect()
}

fn armed<'m>(spec: &'m JobSpec, memory: &'m mut Memory, mark: u64) -> Box<Job<'m>> {
    let Layout { shift, in_place } = spec.layout;
    let mut job = match in_place {
        true => Job::in_place(&mut memory.src[shift..]),
        false => Job::apart(&memory.src[shift..], &mut memory.dst[other(shift)..]),
    };
    job.mark = mark;
    job.set_aad(&spec.aad);
    job.set_tag(&spec.tag);
    job.arm(Arc::clone(&spec.session), &spec.iv, spec.input.len());
    job
}

fn answer(spec: &JobSpec, job: &Job<'_>) -> Answer {
    let written = match job.outcome() {
        Outcome::Failed(JobError::BadLength | JobError::Unsupported) => 0,
        _ => spec.output_bytes_max(),
    };
    let span = job.output_span();
    let used = if spec.layout.in_place { written.max(spec.input.len()) } else { written };
    assert!(span[used..].iter().all(|&byte| byte == UNTOUCHED), "{}: wrote past its space", spec.what());
    if matches!(job.outcome(), Outcome::Failed(JobError::NotAuthentic | JobError::BadPadding)) {
        assert!(span[..written].iter().all(|&byte| byte == 0), "{}: not cleared", spec.what());
    }
    Answer { outcome: job.outcome(), output: job.output().to_vec(), tag: job.tag().to_vec() }
}
