//! Combining: threads of one program that encrypt at the same moment fill one multi-buffer burst, without extra threads.
//!
//! One request: [`Combiner::encrypt`] -> `throughput.rs` counts it and says whether callers combine (if not:
//! [`Verdict::Inline`], and the caller does its work itself) -> lent in the [gathering](evener_ring::CombiningList) -> its caller
//! yields until it is back -> the caller that finds enough of them and a free permit runs them all (flat combining) -> [`Verdict::Combined`].
//!
//! Waiting is yielding, never sleeping: a sleep and a wake-up cost more core time than 16 KiB of AES. So it pays only where
//! nothing else wants the cores, and the [controller](evener_core::combine) finds out whether that is so. The protocol and
//! the ways not taken stand in `docs/combining.md`.

mod throughput;

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use evener_core::combine::TOGETHER_MAX;
use evener_core::driver::Clock as _;
use evener_core::{
    BLOCK_BYTES, Direction, Family, InlineDriver, Job, JobError, Nanos, Outcome, Padding, Session,
};
use evener_ring::{
    CachePadded, CombiningList, LendOutcome, LentWork, Look, PERMITS_MAX, PerFork, Permit, TryPool,
};

use crate::SystemClock;
use throughput::{Rule, ThroughputMonitor};

/// Shortest request that is combined, in bytes: shorter ones are done before a yield is (measured: at 4 KiB 0.8 to 1.6 x).
pub const BYTES_MIN: usize = 16 << 10;

/// Longest request that is combined, in bytes, so that those who share a burst with it wait some milliseconds at most, a
/// slice of the scheduler. Assumed, not measured: 1 MiB.
pub const BYTES_MAX: usize = 1 << 20;

/// Callers that can wait at once; more do their work themselves.
const SLOTS: usize = 256;

/// Yields after which a caller runs what is there, however little that is. From the prototype's measurements.
const YIELDS_MAX: u32 = 16;

/// How long a caller waits for another to take its request before it clears the list, and everyone on it works alone.
/// Reached only where every permit is held by threads that do not run. Assumed, not measured: 20 ms, several slices of
/// the scheduler.
const TIMEOUT: Nanos = Nanos::from_millis(20);

/// Yields between two looks at the clock, which costs a tenth of a yield.
const LOOK_EVERY: u32 = 4;

/// What makes the driver of a permit; nothing where there is none on this machine.
pub(crate) type MakeDriver = dyn Fn() -> Option<Box<dyn InlineDriver>> + Send + Sync;

/// Combines the callers of one process.
pub struct Combiner {
    groups: PerFork<Group>,
    make_driver: Box<MakeDriver>,
    rule: Rule,
    cores: usize,
}

/// Whole blocks to be encrypted by AES-CBC.
pub struct Request<'r> {
    /// Key and algorithm.
    pub session: &'r Session,
    /// The IV, or the last block of ciphertext before this.
    pub iv: &'r [u8; BLOCK_BYTES],
    /// Input and output.
    pub span: Span<'r>,
}

/// The memory of a request.
pub enum Span<'r> {
    /// Output replaces input.
    InPlace(&'r mut [u8]),
    /// Input, and room for as much output.
    Apart(&'r [u8], &'r mut [u8]),
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was encrypted; the output stands where it should.
    Combined,
    /// Nothing was touched: the caller does its work itself.
    Inline,
    /// It was begun and failed: what the output holds is not known, in place the input is lost.
    Failed(JobError),
}

/// What was combined so far in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were encrypted in bursts of two or more.
    pub combined: u64,
    /// Those bursts.
    pub bursts: u64,
    /// Epochs in which callers combined, and all epochs.
    pub epochs: [u64; 2],
}

/// What callers share in one generation of the process.
struct Group {
    list: CombiningList<Encryption>,
    permits: TryPool<DriverSlot>,
    throughput: ThroughputMonitor,
    combined: CachePadded<AtomicU64>,
    bursts: AtomicU64,
}

/// The place of a permit's driver. Of the process that made the combiner it is made at once, since it may be the last moment at
/// which a library can be opened; of its children when it is first needed.
pub(crate) enum DriverSlot {
    Unmade,
    Made(Box<dyn InlineDriver>),
    Absent,
}

/// What callers lend each other: a request; what they get: how it ended.
pub(crate) struct Encryption;

impl LentWork for Encryption {
    type Loan<'c> = Request<'c>;
    type Reply = Outcome;
}

impl Combiner {
    /// Makes a combiner for so many cores: that many bursts may run at once, each with a driver of its own.
    ///
    /// `generation` is the process's, as in [`Self::encrypt`]. Nothing where `make_driver` gives nothing.
    #[must_use]
    pub fn new(
        generation: u32,
        cores: usize,
        make_driver: impl Fn() -> Option<Box<dyn InlineDriver>> + Send + Sync + 'static,
    ) -> Option<Self> {
        Self::with_rule(generation, cores, Rule::Guarded, Box::new(make_driver))
    }

    /// As [`Self::new`], but callers always wait for `group_size` others, whatever that is worth: to measure combining, and
    /// to test what builds on it.
    #[must_use]
    pub fn unguarded(
        generation: u32,
        cores: usize,
        group_size: u32,
        make_driver: impl Fn() -> Option<Box<dyn InlineDriver>> + Send + Sync + 'static,
    ) -> Option<Self> {
        Self::with_rule(generation, cores, Rule::Always { group_size }, Box::new(make_driver))
    }

    fn with_rule(generation: u32, cores: usize, rule: Rule, make_driver: Box<MakeDriver>) -> Option<Self> {
        let cores = cores.clamp(1, PERMITS_MAX);
        let slots: Vec<DriverSlot> = (0..cores).map_while(|_| make_driver().map(DriverSlot::Made)).collect();
        let groups = PerFork::default();
        let is_whole = slots.len() == cores;
        is_whole.then(|| {
            groups.of(generation, || Group::new(rule, slots));
            Self { groups, make_driver, rule, cores }
        })
    }

    /// Encrypts a request together with those of other callers, where that is worth it now.
    ///
    /// `generation` must be another number in the child of every fork (kept by `pthread_atfork`, for instance): the child
    /// then starts afresh and never touches what its parent's threads had lent or held. While callers do not combine
    /// this costs a few loads, and every 16th time a look at a clock.
    pub fn encrypt(&self, generation: u32, request: Request<'_>) -> Verdict {
        if !is_combinable(&request) {
            return Verdict::Inline;
        }
        self.wants(generation, request.span.len()).map_or(Verdict::Inline, |turn| turn.encrypt(request))
    }

    /// The first half of [`Self::encrypt`], for callers to whom making a request costs something: counts a call of so many
    /// bytes, and says whether it is to be combined now.
    #[must_use]
    #[inline]
    pub fn wants(&self, generation: u32, bytes: usize) -> Option<Turn<'_>> {
        if !is_fitting(bytes) {
            return None;
        }
        let group = self.group(generation);
        let caller = group.throughput.enter(bytes);
        (caller.group_size > 0).then_some(Turn { combiner: self, group, hint: caller.hint })
    }

    /// What was combined so far in this generation.
    #[must_use]
    pub fn counts(&self, generation: u32) -> Counts {
        let group = self.group(generation);
        let [combined, bursts] = [&*group.combined, &group.bursts].map(|count| count.load(Ordering::Relaxed));
        Counts { combined, bursts, epochs: group.throughput.epochs() }
    }

    /// How often the guard ended combining since this was asked last, by anybody.
    #[inline]
    pub fn take_locks(&self, generation: u32) -> u32 {
        self.group(generation).throughput.take_locks()
    }

    fn group(&self, generation: u32) -> &Group {
        self.groups.of(generation, || Group::new(self.rule, (0..self.cores).map(|_| DriverSlot::Unmade)))
    }
}

/// The right to combine one request.
pub struct Turn<'c> {
    combiner: &'c Combiner,
    group: &'c Group,
    hint: usize,
}

impl Turn<'_> {
    /// The second half of [`Combiner::encrypt`].
    #[must_use]
    pub fn encrypt(self, request: Request<'_>) -> Verdict {
        if !is_combinable(&request) {
            return Verdict::Inline;
        }
        let Self { combiner, group, hint } = self;
        let (make_driver, began) = (&*combiner.make_driver, SystemClock.now());
        let mut wait = Wait { group, make_driver, began, is_late: false, yields: 0, turns: 0 };
        group.list.lend(hint, request, |look| wait.step(look)).into()
    }
}

impl From<LendOutcome<Outcome>> for Verdict {
    fn from(back: LendOutcome<Outcome>) -> Self {
        match back {
            LendOutcome::Answered(Outcome::Done { .. }) => Self::Combined,
            // Refused before anything was written.
            LendOutcome::Answered(Outcome::Failed(JobError::Unsupported | JobError::BadLength)) => {
                Self::Inline
            }
            LendOutcome::Answered(Outcome::Failed(error)) => Self::Failed(error),
            LendOutcome::Answered(Outcome::Pending) | LendOutcome::Broken => Self::Failed(JobError::Library),
            LendOutcome::Unused => Self::Inline,
        }
    }
}

// A panic on the way leaves each caller that waits answered, and permits free: nothing is seen half done.
impl UnwindSafe for Combiner {}
impl RefUnwindSafe for Combiner {}

impl fmt::Debug for Combiner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Combiner({} cores)", self.cores)
    }
}

fn is_fitting(bytes: usize) -> bool {
    (BYTES_MIN..=BYTES_MAX).contains(&bytes) && bytes % BLOCK_BYTES == 0
}

/// Plain CBC encryption of whole blocks, long enough and not too long.
pub(crate) fn is_combinable(request: &Request<'_>) -> bool {
    let (session, bytes) = (request.session, request.span.len());
    let room = match &request.span {
        Span::InPlace(_) => true,
        Span::Apart(src, dst) => src.len() <= dst.len(),
    };
    is_fitting(bytes)
        && room
        && session.algorithm().family() == Family::Cbc
        && session.direction() == Direction::Encrypt
        && session.padding() == Padding::None
}

impl Span<'_> {
    /// Bytes of input.
    const fn len(&self) -> usize {
        match self {
            Self::InPlace(room) => room.len(),
            Self::Apart(src, _) => src.len(),
        }
    }
}

impl<'r> Request<'r> {
    fn into_job(self) -> Box<Job<'r>> {
        let bytes = self.span.len();
        let mut job = match self.span {
            Span::InPlace(room) => Job::in_place(room),
            Span::Apart(src, dst) => Job::apart(src, dst),
        };
        job.arm(self.session, self.iv, bytes);
        job
    }
}

impl Group {
    fn new(rule: Rule, slots: impl IntoIterator<Item = DriverSlot>) -> Self {
        let permits = TryPool::new(slots);
        let throughput = ThroughputMonitor::new(rule, permits.count());
        let (combined, bursts) = (CachePadded::default(), AtomicU64::new(0));
        Self { list: CombiningList::new(SLOTS), permits, throughput, combined, bursts }
    }

    fn serve(&self, mut permit: Permit<'_, DriverSlot>, make_driver: &MakeDriver) {
        serve(&self.list, &mut permit, make_driver, |done| {
            self.combined.fetch_add(done as u64, Ordering::Relaxed);
            self.bursts.fetch_add(1, Ordering::Relaxed);
        });
    }
}

/// Runs all that waits, in bursts of as many as there are lanes; a single one goes back to its caller, whose plain path is
/// faster than one lane. `count` gets the requests of each burst that went well before their callers know, so that a caller
/// that asks finds itself counted. Returns how many waited.
pub(crate) fn serve(
    list: &CombiningList<Encryption>,
    slot: &mut DriverSlot,
    make_driver: &MakeDriver,
    mut count: impl FnMut(usize),
) -> usize {
    let mut batch = list.take();
    let waited = batch.len();
    let Some(driver) = slot.driver(make_driver) else { return waited };
    while batch.len() > 1 {
        batch.run(TOGETHER_MAX as usize, |requests| {
            let outcomes = run(driver, requests);
            count(outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Done { .. })).count());
            outcomes
        });
    }
    waited
}

/// Runs requests side by side; outcomes in their order.
fn run(driver: &mut dyn InlineDriver, requests: Vec<Request<'_>>) -> Vec<Outcome> {
    let mut jobs: Vec<Box<Job<'_>>> = requests.into_iter().map(Request::into_job).collect();
    (0..).zip(&mut jobs).for_each(|(place, job)| job.mark = place);
    driver.run(&mut jobs);
    // A driver may sort a burst.
    jobs.sort_unstable_by_key(|job| job.mark);
    jobs.iter().map(|job| job.outcome()).collect()
}

impl DriverSlot {
    pub(crate) fn driver(&mut self, make_driver: &MakeDriver) -> Option<&mut dyn InlineDriver> {
        if matches!(self, Self::Unmade) {
            *self = make_driver().map_or(Self::Absent, Self::Made);
        }
        match self {
            Self::Made(driver) => Some(&mut **driver),
            Self::Unmade | Self::Absent => None,
        }
    }
}

/// A caller that waits.
struct Wait<'w> {
    group: &'w Group,
    make_driver: &'w MakeDriver,
    began: Nanos,
    /// No caller took its request for too long.
    is_late: bool,
    /// Yields since it last ran a burst, and in all.
    yields: u32,
    turns: u32,
}

impl Wait<'_> {
    /// One turn of waiting: runs a burst where one is due, or else lets another thread run.
    fn step(&mut self, look: Look) {
        let group_size = self.group.throughput.group_size();
        let is_over = group_size == 0 || self.is_late;
        if is_over && !look.is_taken {
            // Callers do not combine any more: everyone on the list works alone.
            drop(self.group.list.take());
            return;
        }
        // Whose request is under way leaves a small rest to those who wait for it.
        let is_due = look.waiting >= group_size as usize || (self.yields >= YIELDS_MAX && !look.is_taken);
        if is_due && group_size > 0 {
            if let Some(permit) = self.group.permits.try_take() {
                self.group.serve(permit, self.make_driver);
                self.yields = 0;
                return;
            }
        }
        thread::yield_now();
        self.yields = self.yields.saturating_add(1);
        self.turns = self.turns.wrapping_add(1);
        if self.turns % LOOK_EVERY == 0 {
            let now = SystemClock.now();
            self.is_late = now - self.began > TIMEOUT;
            self.group.throughput.look(now);
        }
    }
}
