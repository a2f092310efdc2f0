//! Combining against plain calls: threads that each encrypt messages of their own with a key of their own.
//!
//! Steps of a cell: [`threads`] starts the threads once -> segments of plain calls and of combined ones take turns, each
//! after some time to settle -> what was done in a segment's window is a [`Segment`] -> pairs of neighbouring segments give
//! ratios, of which the median counts. The threads of both sides are the same, so that only the calls differ.

mod histogram;
mod threads;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use evener::combine::{Combiner, Counts, Waiting};
use evener_core::{Algorithm, InlineDriver};
use evener_driver_lanes::Lanes;
use evener_driver_multibuffer::Multibuffer;
use rustix::time::{ClockId, clock_gettime};

use crate::error::BenchError;
use crate::medians::Spread;
pub use histogram::Histogram;
use threads::CellThreads;

/// One cell.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Threads that encrypt.
    pub threads: usize,
    /// Bytes of a message.
    pub bytes: usize,
    /// Whether output replaces input.
    pub in_place: bool,
    /// Messages per second of all threads together, at random moments; `None`: each thread goes on at once.
    pub rate: Option<f64>,
    /// What a thread does between two messages.
    pub between: Option<Between>,
    /// Processes that spin beside it.
    pub neighbours: usize,
    /// AES-CBC, by the length of its key.
    pub algorithm: Algorithm,
}

/// A thread's life without the cipher: work of its own, then a sleep as long as reading or sending.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    /// Core time of the work, about.
    pub work: Duration,
    /// Mean of the sleep, at exponential lengths.
    pub sleep: Duration,
}

/// How a cell is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Pairs of segments.
    pub pairs: usize,
    /// Length of a segment's window.
    pub window: Duration,
    /// Time before it that is not counted.
    pub settle: Duration,
    /// Cores, which are permits too.
    pub cores: usize,
    /// Callers that always wait for each other; `None`: the controller decides.
    pub together: Option<Waiting>,
    /// What they combine by.
    pub by: LaneDriver,
}

/// Lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LaneDriver {
    /// Kernels of our own.
    Lanes,
    /// libipsec-mb.
    Multibuffer,
}

/// What one segment did.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Messages per second.
    pub rate: f64,
    /// Core time of this process per message, in microseconds.
    pub core_us: f64,
    /// Time of a call: from its start, or at a fixed rate from when it was due.
    pub latency: Histogram,
}

/// What a cell gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Plain segments and combined ones, pair by pair.
    pub pairs: Vec<[Segment; 2]>,
    /// What was combined, over the whole cell.
    pub counts: Counts,
}

impl Outcome {
    /// Combined over plain, for one value per segment.
    ///
    /// # Panics
    ///
    /// Where there is no pair.
    pub fn ratio(&self, value: impl Fn(&Segment) -> f64) -> Spread {
        let ratios: Vec<f64> = self.pairs.iter().map(|[plain, ours]| value(ours) / value(plain)).collect();
        Spread::of(&ratios).expect("a cell has pairs")
    }

    /// Cores that the process keeps busy, the median over the segments of one side.
    pub fn busy_cores(&self, side: usize) -> f64 {
        self.median(side, |segment| segment.rate * segment.core_us / 1e6)
    }

    /// Messages that are in a call at once on average (Little's law), the median over the segments of one side.
    pub fn in_calls(&self, side: usize) -> f64 {
        self.median(side, |segment| segment.rate * segment.latency.mean_us() / 1e6)
    }

    /// The median over the segments of one side: 0 is plain, 1 combined.
    ///
    /// # Panics
    ///
    /// Where there is no pair.
    pub fn median(&self, side: usize, value: impl Fn(&Segment) -> f64) -> f64 {
        let values: Vec<f64> = self.pairs.iter().map(|pair| value(&pair[side])).collect();
        Spread::of(&values).expect("a cell has pairs").median
    }
}

/// Measures one cell.
///
/// # Errors
///
/// [`BenchError::Library`] where libcrypto or lanes are missing; [`BenchError::WrongResult`].
pub fn measure(cell: &Cell, plan: &Plan) -> Result<Outcome, BenchError> {
    let combiner = combiner(plan, plan.together)?;
    threads::verify(cell, plan)?;
    let _neighbours = Neighbours::start(cell.neighbours)?;
    threads::with(cell, &combiner, plan.pairs * 2, |cell_threads| {
        let mut pairs = Vec::with_capacity(plan.pairs);
        for pair in 0..plan.pairs {
            // The first of each pair changes, so that no side always follows the other.
            let first = pair % 2;
            let mut sides = [0, 1].map(|turn| {
                let side = (first + turn) % 2;
                (side, segment(cell_threads, plan, pair * 2 + turn, side == 1))
            });
            sides.sort_by_key(|(side, _)| *side);
            pairs.push(sides);
        }
        pairs
    })
    .map(|(pairs, mut histograms)| {
        let mut whole = |timed: Timed, index: usize| timed.with(std::mem::take(&mut histograms[index]));
        let pairs =
            pairs.into_iter().map(|sides| sides.map(|(_, (index, timed))| whole(timed, index))).collect();
        Outcome { pairs, counts: combiner.counts(0) }
    })
}

/// What the clock said of a segment.
struct Timed {
    wall: Duration,
    core: Duration,
}

impl Timed {
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    fn with(self, latency: Histogram) -> Segment {
        let count = latency.count() as f64;
        Segment {
            rate: count / self.wall.as_secs_f64(),
            core_us: self.core.as_secs_f64() * 1e6 / count,
            latency,
        }
    }
}

fn segment(cell_threads: &CellThreads<'_>, plan: &Plan, index: usize, combined: bool) -> (usize, Timed) {
    cell_threads.turn_to(combined);
    std::thread::sleep(plan.settle);
    let (wall, core) = (Instant::now(), process_time());
    cell_threads.open(index);
    std::thread::sleep(plan.window);
    cell_threads.close();
    (index, Timed { wall: wall.elapsed(), core: process_time() - core })
}

fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

impl LaneDriver {
    fn load(self) -> Option<Box<dyn InlineDriver>> {
        match self {
            Self::Lanes => Some(Box::new(Lanes::new()?)),
            Self::Multibuffer => Some(Box::new(Multibuffer::load().ok()?)),
        }
    }
}

/// One whose callers wait for so many others, or as the controller says.
fn combiner(plan: &Plan, together: Option<Waiting>) -> Result<Combiner, BenchError> {
    let by = plan.by;
    let made = match together {
        None => Combiner::new(0, plan.cores, move || by.load()),
        Some(together) => Combiner::unguarded(0, plan.cores, together, move || by.load()),
    };
    made.ok_or_else(|| BenchError::Library(format!("{by:?} cannot be used here")))
}

/// Processes that only spin. Ended when this is dropped, and by themselves after [`SPIN_MAX`].
struct Neighbours(Vec<Child>);

/// A spinning process ends by itself after this time, should it not be ended.
pub const SPIN_MAX: Duration = Duration::from_secs(120);

impl Neighbours {
    fn start(count: usize) -> Result<Self, BenchError> {
        let mut all = Self(Vec::with_capacity(count));
        for _ in 0..count {
            let program = std::env::current_exe();
            let child =
                program.and_then(|program| Command::new(program).arg("--spin").stdin(Stdio::null()).spawn());
            let failed = |error: std::io::Error| BenchError::Command {
                command: "a spinning neighbour".into(),
                reason: error.to_string(),
            };
            all.0.push(child.map_err(failed)?);
        }
        Ok(all)
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended by itself; either way it is reaped.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// What a neighbour does.
pub fn spin() {
    let start = Instant::now();
    while start.elapsed() < SPIN_MAX {
        for _ in 0..10_000 {
            std::hint::black_box(0);
        }
    }
}
