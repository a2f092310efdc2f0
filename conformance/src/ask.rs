//! A job as data, and what came of it.

use std::sync::Arc;

use evener_core::{Algorithm, Direction, Job, JobError, Outcome, Padding, Session};

use crate::noise::noise;
use crate::way::{Burst, Way, judged};

/// What memory holds that no driver should have touched.
const UNTOUCHED: u8 = 0xEE;
/// Bytes behind the room that a session needs, to see who writes past it.
const BEYOND_BYTES: usize = 48;

/// Where a job's memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes between an address on a 16-byte border and the memory: 0 to 15.
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

/// A session whose key follows from `seed`.
///
/// # Panics
///
/// Where the algorithm has no such direction or padding.
#[must_use]
pub fn session(algorithm: Algorithm, direction: Direction, padding: Padding, seed: usize) -> Arc<Session> {
    let key = noise(seed ^ 0x5EED, algorithm.key_bytes().unwrap_or(20 + seed % 100));
    Arc::new(Session::new(algorithm, direction, padding, &key).expect("the algorithm has it"))
}

/// Every algorithm with every direction and padding that it has, keys by `seed`.
pub fn kinds(seed: usize) -> impl Iterator<Item = Arc<Session>> {
    let directions = |&algorithm: &Algorithm| {
        let both = [Direction::Encrypt, Direction::Decrypt].into_iter();
        let there = both.filter(move |&way| algorithm.is_cipher() || way == Direction::Encrypt);
        there.map(move |direction| (algorithm, direction))
    };
    let paddings = |(algorithm, direction): (Algorithm, Direction)| {
        let both = [Padding::None, Padding::Pkcs7].into_iter();
        let there = both.filter(move |&padding| padding == Padding::None || algorithm.needs_whole_blocks());
        there.map(move |padding| (algorithm, direction, padding))
    };
    let all = Algorithm::ALL.iter().flat_map(directions).flat_map(paddings);
    all.map(move |(algorithm, direction, padding)| session(algorithm, direction, padding, seed))
}

impl Ask {
    /// A job over about `bytes` of noise in the direction of `session`: as many whole blocks where it takes nothing
    /// else, one block at least for XTS. Decryption gets what libcrypto has encrypted.
    ///
    /// # Panics
    ///
    /// Where libcrypto does not encrypt.
    #[must_use]
    pub fn noisy(session: &Arc<Session>, bytes: usize, seed: usize) -> Self {
        let algorithm = session.algorithm();
        let whole = algorithm.needs_whole_blocks() && session.padding() == Padding::None;
        let bytes = if whole { bytes / 16 * 16 } else { bytes };
        let bytes = if algorithm.name().ends_with("XTS") { bytes.max(16) } else { bytes };
        let aad_bytes = if algorithm.is_aead() { seed % 40 } else { 0 };
        let plain = Self {
            session: Arc::clone(session),
            iv: noise(seed + 3, algorithm.iv_bytes()),
            aad: noise(seed + 7, aad_bytes),
            input: noise(seed, bytes),
            tag: Vec::new(),
            layout: Layout::nth(seed),
        };
        if session.direction() == Direction::Encrypt { plain } else { plain.turned() }
    }

    /// The decryption of what this makes when it is encrypted.
    fn turned(self) -> Self {
        let (of, encrypts) = (&self.session, Direction::Encrypt);
        let session =
            Session::new(of.algorithm(), encrypts, of.padding(), of.key()).expect("as of the other");
        let sealed = judged(&Self { session: Arc::new(session), ..self.clone() });
        assert!(matches!(sealed.outcome, Outcome::Done { .. }), "{:?}: {:?}", self.session, sealed.outcome);
        Self { input: sealed.output, tag: sealed.tag, ..self }
    }

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
