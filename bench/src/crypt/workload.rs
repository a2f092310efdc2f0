//! The jobs of a cell: sizes, memory, inputs and right answers.

use evener_core::{Algorithm, Direction, InlineDriver as _, Job, Outcome, Padding, Session, TAG_BYTES_MAX};
use evener_driver_libcrypto::Libcrypto;

use crate::error::BenchError;

/// Where input and output of a job lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Apart, every job has its own.
    OutOfPlace,
    /// Output replaces input, every job has its own.
    InPlace,
    /// Output replaces input, in so little memory that it stays in the cores' caches; the jobs of a round are
    /// done in several turns over it.
    Cache,
}

/// Memory per worker in layout [`Layout::Cache`]: a second-level cache of this generation holds 1 MiB.
const CACHE_BYTES: usize = 1 << 20;

const PAGE_BYTES: usize = 4_096;

/// One cell's jobs.
pub struct Workload {
    /// The session of all jobs.
    pub session: Session,
    /// Where things lie.
    pub layout: Layout,
    /// Jobs of one turn.
    pub jobs: Vec<Spec>,
    /// Turns of one round.
    pub turns: usize,
    /// Input of all jobs (one turn), each at its place.
    input: Vec<u8>,
    /// Right answers to the same.
    answer: Vec<u8>,
    /// Bytes between the start of memory and the end of the last job.
    bytes: usize,
}

/// One job.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Where its span starts.
    start: usize,
    /// Length of its input.
    pub input_bytes: usize,
    /// Length of its span.
    space: usize,
    /// Length of the plaintext, which sizes mean.
    pub plain_bytes: usize,
    /// Its IV.
    pub iv: [u8; 16],
    /// The tag: given at decryption, expected otherwise.
    pub tag: [u8; TAG_BYTES_MAX],
}

impl Workload {
    /// Jobs of the given plaintext sizes.
    ///
    /// # Errors
    ///
    /// [`BenchError::Cell`] where the algorithm has no such direction or the jobs do not fit the machine's memory,
    /// [`BenchError::Library`] where libcrypto does not do it.
    pub fn new(
        algorithm: Algorithm,
        direction: Direction,
        layout: Layout,
        sizes: &[usize],
        workers: usize,
    ) -> Result<Self, BenchError> {
        let cell = |error: &dyn std::fmt::Display| BenchError::Cell(error.to_string());
        let padding = if algorithm.needs_whole_blocks() { Padding::Pkcs7 } else { Padding::None };
        let key: Vec<u8> = (1..=255).take(algorithm.key_bytes().unwrap_or(32)).collect();
        let open =
            |direction| Session::new(algorithm, direction, padding, &key).map_err(|error| cell(&error));
        let (session, encrypting) = (open(direction)?, open(Direction::Encrypt)?);
        let (sizes, turns) = turns(layout, sizes, workers);
        if sizes.is_empty() {
            return Err(BenchError::Cell("no jobs".into()));
        }
        check_memory(&sizes)?;
        let (mut jobs, bytes) = place(&encrypting, &sizes);
        let plain = pseudo_random(bytes);
        let cipher = answers(&encrypting, &mut jobs, &plain, bytes)?;
        let (input, answer) = match direction {
            Direction::Encrypt => (plain, cipher),
            Direction::Decrypt => {
                jobs.iter_mut()
                    .for_each(|job| job.input_bytes = encrypting.output_bytes_max(job.plain_bytes));
                (cipher, plain)
            }
        };
        Ok(Self { session, layout, jobs, turns, input, answer, bytes })
    }

    /// Jobs of one round.
    #[must_use]
    pub fn job_count(&self) -> usize {
        self.jobs.len() * self.turns
    }

    /// Plaintext of one round, in bytes.
    #[must_use]
    pub fn plain_bytes(&self) -> usize {
        self.jobs.iter().map(|job| job.plain_bytes).sum::<usize>() * self.turns
    }

    /// Fresh memory for a contender: input (empty where output replaces it) and space. Both are touched, so
    /// that no page is new when the clock runs.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let source = match self.layout {
            Layout::OutOfPlace => aligned(&self.input),
            Layout::InPlace | Layout::Cache => (Vec::new(), 0),
        };
        let space = match self.layout {
            Layout::OutOfPlace => aligned(&vec![0xA5; self.bytes]),
            Layout::InPlace | Layout::Cache => aligned(&self.input),
        };
        Memory { source, space }
    }

    /// Puts the input back where a round in place has replaced it.
    pub fn restore(&self, memory: &mut Memory) {
        let fresh = match self.layout {
            Layout::OutOfPlace => return memory.space_mut().fill(0xA5),
            Layout::InPlace | Layout::Cache => &self.input,
        };
        memory.space_mut()[..fresh.len()].copy_from_slice(fresh);
    }

    /// The first job whose result in `memory` is wrong; `tags` are those that the contender made, where the
    /// algorithm makes any.
    #[must_use]
    pub fn first_wrong(&self, memory: &Memory, tags: Option<&[[u8; TAG_BYTES_MAX]]>) -> Option<usize> {
        let space = &memory.space.0[memory.space.1..];
        (0..self.jobs.len()).find(|&index| {
            let job = &self.jobs[index];
            let output = job.start..job.start + self.output_bytes(job);
            let same_tag = tags.is_none_or(|tags| tags[index] == job.tag);
            space[output.clone()] != self.answer[output] || !same_tag
        })
    }

    /// Spans of all jobs over `memory`.
    pub fn spans<'m>(&self, memory: &'m mut Memory) -> Vec<Span<'m>> {
        let source = &memory.source.0[memory.source.1..];
        let mut space = &mut memory.space.0[memory.space.1..];
        let mut at = 0;
        let mut spans = Vec::with_capacity(self.jobs.len());
        for job in &self.jobs {
            let (_, from_start) = space.split_at_mut(job.start - at);
            let (own, rest) = from_start.split_at_mut(job.space);
            (space, at) = (rest, job.start + job.space);
            let source = match self.layout {
                Layout::OutOfPlace => Some(&source[job.start..job.start + job.input_bytes]),
                Layout::InPlace | Layout::Cache => None,
            };
            spans.push(Span { source, space: own });
        }
        spans
    }

    /// The input of a job.
    #[must_use]
    pub fn input_of(&self, job: &Spec) -> &[u8] {
        &self.input[job.start..job.start + job.input_bytes]
    }

    /// Whether a round destroys its input, and so much that the next could fail.
    #[must_use]
    pub fn wants_restoring(&self) -> bool {
        self.layout != Layout::OutOfPlace && self.session.direction() == Direction::Decrypt
    }

    fn output_bytes(&self, job: &Spec) -> usize {
        match self.session.direction() {
            Direction::Encrypt => self.session.output_bytes_max(job.plain_bytes),
            Direction::Decrypt => job.plain_bytes,
        }
    }
}

/// The memory of one contender: two allocations with the place where their first page starts.
pub struct Memory {
    source: (Vec<u8>, usize),
    space: (Vec<u8>, usize),
}

impl Memory {
    fn space_mut(&mut self) -> &mut [u8] {
        &mut self.space.0[self.space.1..]
    }
}

/// One job's memory.
pub struct Span<'m> {
    /// Input, where it lies apart.
    pub source: Option<&'m [u8]>,
    /// Space for output, holding the input where it does not lie apart.
    pub space: &'m mut [u8],
}

/// Log-normal sizes as in file systems: median 8 KiB, sigma 2, cut to 64 B..1 MiB. The same every time.
#[must_use]
pub fn log_normal_sizes(count: usize) -> Vec<usize> {
    let mut random = Random(0x5EED);
    let one = |_| {
        let exponent = 8_192_f64.ln() + 2.0 * random.normal();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut to 2^20 before")]
        let size = exponent.exp().clamp(64.0, 1_048_576.0) as usize;
        size
    };
    (0..count).map(one).collect()
}

/// The sizes of the papers, 8 B to 16 KiB, each as likely as any other. The same every time.
#[must_use]
pub fn uniform_sizes(count: usize) -> Vec<usize> {
    let mut random = Random(0x5EED);
    // Three bits: one of eight.
    let one = |_| PAPERS_SIZES[(random.next() >> 61) as usize];
    (0..count).map(one).collect()
}

/// The sizes of paper 002, table 2.
const PAPERS_SIZES: [usize; 8] = [8, 16, 64, 256, 1_024, 4_096, 8_192, 16_384];

/// SplitMix64 (Steele, Lea, Flood 2014): small, seeded, good enough for sizes.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1].
    #[expect(clippy::cast_precision_loss, reason = "53 bits are kept")]
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

fn pseudo_random(bytes: usize) -> Vec<u8> {
    let mut random = Random(1);
    (0..bytes.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).take(bytes).collect()
}

/// How many of the sizes fit one turn, and how many turns make a round.
fn turns(layout: Layout, sizes: &[usize], workers: usize) -> (Vec<usize>, usize) {
    if layout != Layout::Cache {
        return (sizes.to_vec(), 1);
    }
    let mut space = CACHE_BYTES * workers.max(1);
    let fits = |&&size: &&usize| {
        let fits = size <= space;
        space = space.saturating_sub(size);
        fits
    };
    let turn: Vec<usize> = sizes.iter().take_while(fits).copied().collect();
    let turns = sizes.len().checked_div(turn.len()).unwrap_or(0);
    (turn, turns)
}

/// Text, libcrypto's answer and one contender's memory are four times what the jobs have.
const COPIES: usize = 4;

/// Whether the machine's memory holds them: a system that hands out more than it has would end some process, not this call.
fn check_memory(sizes: &[usize]) -> Result<(), BenchError> {
    let about = rustix::system::sysinfo();
    let unit = usize::try_from(about.mem_unit).unwrap_or(1).max(1);
    let has = usize::try_from(about.totalram).unwrap_or(usize::MAX).saturating_mul(unit);
    let wants = |sum: usize, size: &usize| sum.saturating_add(size.saturating_add(PAGE_BYTES));
    let bytes = sizes.iter().fold(0, wants);
    match bytes.saturating_mul(COPIES) <= has {
        true => Ok(()),
        false => Err(BenchError::Cell(format!(
            "{} jobs of {bytes} bytes together, {COPIES} times, do not fit this machine's {has} bytes of memory",
            sizes.len()
        ))),
    }
}

/// Lays jobs out one after the other: short ones on cache lines, those of a page and more on pages.
fn place(encrypting: &Session, sizes: &[usize]) -> (Vec<Spec>, usize) {
    let mut start = 0;
    let mut jobs = Vec::with_capacity(sizes.len());
    for (index, &plain_bytes) in sizes.iter().enumerate() {
        let align = if plain_bytes >= PAGE_BYTES { PAGE_BYTES } else { 64 };
        start = start_of(start, align);
        let space = encrypting.output_bytes_max(plain_bytes).max(plain_bytes);
        let mut iv = [0; 16];
        iv[..8].copy_from_slice(&(index as u64 + 1).to_le_bytes());
        let tag = [0; TAG_BYTES_MAX];
        jobs.push(Spec { start, input_bytes: plain_bytes, space, plain_bytes, iv, tag });
        start += space;
    }
    (jobs, start)
}

const fn start_of(at: usize, align: usize) -> usize {
    at.next_multiple_of(align)
}

/// What libcrypto makes of the plaintext; tags go into `jobs`.
fn answers(
    encrypting: &Session,
    jobs: &mut [Spec],
    plain: &[u8],
    bytes: usize,
) -> Result<Vec<u8>, BenchError> {
    let mut answer = vec![0; bytes];
    let mut libcrypto = Libcrypto::new().map_err(|error| BenchError::Library(error.to_string()))?;
    for spec in jobs {
        let span = spec.start..spec.start + spec.space;
        let mut burst = [Job::apart(&plain[spec.start..][..spec.plain_bytes], &mut answer[span])];
        burst[0].arm(encrypting, &spec.iv, spec.plain_bytes);
        libcrypto.run(&mut burst);
        if !matches!(burst[0].outcome(), Outcome::Done { .. }) {
            let (algorithm, bytes) = (encrypting.algorithm(), spec.plain_bytes);
            return Err(BenchError::Library(format!("libcrypto does not do {bytes} bytes by {algorithm}")));
        }
        spec.tag[..burst[0].tag().len()].copy_from_slice(burst[0].tag());
    }
    Ok(answer)
}

/// A copy of `bytes` that starts on a page; returns the allocation and where that is.
fn aligned(bytes: &[u8]) -> (Vec<u8>, usize) {
    let mut memory = vec![0; bytes.len() + PAGE_BYTES];
    let start = memory.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
    memory[start..start + bytes.len()].copy_from_slice(bytes);
    (memory, start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_normal_sizes_have_the_median_and_the_bounds_that_they_claim() {
        let mut sizes = log_normal_sizes(10_001);
        sizes.sort_unstable();
        assert!((7_400..9_000).contains(&sizes[5_000]), "median {}", sizes[5_000]);
        assert_eq!((sizes[0], sizes[10_000]), (64, 1 << 20));
    }

    #[test]
    fn in_a_uniform_mix_each_size_of_the_papers_is_as_likely_as_any_other() {
        let sizes = uniform_sizes(8_000);
        for size in PAPERS_SIZES {
            let count = sizes.iter().filter(|&&drawn| drawn == size).count();
            assert!((850..1_150).contains(&count), "{size} B: {count}");
        }
        assert!(sizes.windows(2).filter(|pair| pair[0] != pair[1]).count() > 6_000, "not sorted");
    }

    #[test]
    fn jobs_never_overlap_and_end_inside_the_memory() {
        for layout in [Layout::OutOfPlace, Layout::InPlace, Layout::Cache] {
            let sizes = [8, 16, 64, 5_000, 4_096, 16_384, 100];
            let load = Workload::new(Algorithm::Aes128Cbc, Direction::Encrypt, layout, &sizes, 1).unwrap();
            let mut memory = load.memory();
            let lengths: Vec<_> = load.spans(&mut memory).iter().map(|span| span.space.len()).collect();
            assert_eq!(lengths, [16, 32, 80, 5_008, 4_112, 16_400, 112]);
        }
    }
}
