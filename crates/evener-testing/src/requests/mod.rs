//! Jobs as data: one is asked, goes any way, and what came of it is judged, with the memory around it.

use std::sync::Arc;

use evener_core::{Job, JobError, Outcome, Session};

mod by_module;
mod known_answers;
mod random;
mod way;

pub use by_module::{all_by, apart, by_run, in_place};
pub use known_answers::ask_all;
pub use random::{kinds, session};
pub use way::{Direct, Kit, OneBurst, compare, judged};

/// What memory holds that no driver should have touched.
pub const UNTOUCHED: u8 = 0xEE;
/// Bytes behind the room that a session needs, to see who writes past it.
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
pub struct Ask {
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

impl Ask {
    /// The name of what is asked, for messages.
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

/// A way that jobs can go.
pub trait Way {
    /// Runs armed jobs and returns all of them, in any order.
    fn run<'m>(&mut self, jobs: Burst<'m>) -> Burst<'m>;
}

/// The memory of a job: whole allocations, which begin on a 16-byte border.
struct Memory {
    src: Vec<u8>,
    dst: Vec<u8>,
}

impl Memory {
    fn of(ask: &Ask) -> Self {
        let Layout { shift, in_place } = ask.layout;
        let room_bytes = ask.output_bytes_max().max(ask.input.len()) + BEYOND_BYTES;
        let mut src = vec![UNTOUCHED; shift];
        src.extend_from_slice(&ask.input);
        if in_place {
            src.resize(shift + room_bytes, UNTOUCHED);
            return Self { src, dst: Vec::new() };
        }
        Self { src, dst: vec![UNTOUCHED; other(shift) + room_bytes] }
    }
}

/// A shift that differs from `shift`.
const fn other(shift: usize) -> usize {
    (shift * 7 + 3) % 16
}

/// Runs all asks along one way and returns what came, in the order of the asks.
///
/// # Panics
///
/// Where a job did not come back exactly once, wrote past its room, or shows what was found not to be authentic.
pub fn answers(way: &mut impl Way, asks: &[Ask]) -> Vec<Answer> {
    let mut memory: Vec<Memory> = asks.iter().map(Memory::of).collect();
    let both = asks.iter().zip(&mut memory).enumerate();
    let jobs: Burst<'_> = both.map(|(place, (ask, memory))| armed(ask, memory, place as u64)).collect();
    let mut jobs = way.run(jobs);
    jobs.sort_by_key(|job| job.mark);
    assert!(jobs.iter().map(|job| job.mark).eq(0..asks.len() as u64), "every job comes back exactly once");
    asks.iter().zip(&jobs).map(|(ask, job)| answer(ask, job)).collect()
}

fn armed<'m>(ask: &'m Ask, memory: &'m mut Memory, mark: u64) -> Box<Job<'m>> {
    let Layout { shift, in_place } = ask.layout;
    let mut job = match in_place {
        true => Job::in_place(&mut memory.src[shift..]),
        false => Job::apart(&memory.src[shift..], &mut memory.dst[other(shift)..]),
    };
    job.mark = mark;
    job.set_aad(&ask.aad);
    job.set_tag(&ask.tag);
    job.arm(Arc::clone(&ask.session), &ask.iv, ask.input.len());
    job
}

fn answer(ask: &Ask, job: &Job<'_>) -> Answer {
    let written = match job.outcome() {
        Outcome::Failed(JobError::BadLength | JobError::Unsupported) => 0,
        _ => ask.output_bytes_max(),
    };
    let span = job.output_span();
    let used = if ask.layout.in_place { written.max(ask.input.len()) } else { written };
    assert!(span[used..].iter().all(|&byte| byte == UNTOUCHED), "{}: wrote past its room", ask.what());
    if matches!(job.outcome(), Outcome::Failed(JobError::NotAuthentic | JobError::BadPadding)) {
        assert!(span[..written].iter().all(|&byte| byte == 0), "{}: not cleared", ask.what());
    }
    Answer { outcome: job.outcome(), output: job.output().to_vec(), tag: job.tag().to_vec() }
}
