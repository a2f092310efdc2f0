//! Combining: threads of one program that encrypt at the same moment fill one multi-buffer burst, without extra threads.
//!
//! One request: [`Combiner::encrypt`] -> `throughput.rs` counts it and says whether callers combine (if not:
//! [`Verdict::Inline`], and the caller does its work itself) -> lent in the [gathering](evener_ring::CombiningList) -> its caller
//! yields until it is back (`wait.rs`) -> the caller that finds enough of them and a free permit runs them all (flat combining, `bursts.rs`) -> [`Verdict::Combined`].
//!
//! Waiting is yielding, never sleeping: a sleep and a wake-up cost more core time than 16 KiB of AES. So it pays only where
//! nothing else wants the cores, and the [controller](evener_core::combine) finds out whether that is so. The protocol and
//! the ways not taken stand in `docs/design/combining.md`.

mod bursts;
mod request;
mod throughput;
mod wait;

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};

use evener_ring::{CachePadded, CombiningList, Inherited, ObjectPool, PERMITS_MAX, PerFork, Permit};

pub use bursts::DriverSource;
pub(crate) use bursts::{DriverSlot, Encryption, MakeDriver, serve};
pub use evener_core::combine::Waiting;
pub(crate) use request::is_combinable;
use request::is_fitting;
pub use request::{BYTES_MAX, BYTES_MIN, JOB_BYTES_MIN, Request, Span, Verdict};
pub use throughput::TimedCall;
use throughput::{Caller, Rule, ThroughputMonitor};
use wait::Wait;

/// Callers that can wait at once; more do their work themselves.
const SLOTS: usize = 256;

/// Combines the callers of one process.
pub struct Combiner {
    groups: PerFork<Group>,
    make_driver: Box<MakeDriver>,
    rule: Rule,
    cores: usize,
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
    /// Calls in them of which beginning and end were told ([`Combiner::leave`]), one in four.
    pub timed: u64,
}

/// What callers share in one generation of the process.
struct Group {
    list: CombiningList<Encryption>,
    permits: ObjectPool<DriverSlot>,
    throughput: ThroughputMonitor,
    combined: CachePadded<AtomicU64>,
    bursts: AtomicU64,
}

impl Combiner {
    /// Makes a combiner for so many cores: that many bursts may run at once, each with a driver of its own.
    ///
    /// `generation` is the process's, as in [`Self::encrypt`]. Nothing where `make_driver` gives nothing.
    #[must_use]
    pub fn new(generation: u32, cores: usize, make_driver: impl DriverSource) -> Option<Self> {
        Self::with_rule(generation, cores, Rule::Guarded, Box::new(make_driver))
    }

    /// As [`Self::new`], but drivers are made when they are first needed, and where there is none then, each caller does its own work.
    #[must_use]
    pub fn lazy(cores: usize, make_driver: impl DriverSource) -> Self {
        let cores = cores.clamp(1, PERMITS_MAX);
        Self { groups: PerFork::default(), make_driver: Box::new(make_driver), rule: Rule::Guarded, cores }
    }

    /// As [`Self::new`], but callers always wait for each other, whatever that is worth: to measure combining, and
    /// to test what builds on it.
    #[must_use]
    pub fn unguarded(
        generation: u32,
        cores: usize,
        waiting: Waiting,
        make_driver: impl DriverSource,
    ) -> Option<Self> {
        Self::with_rule(generation, cores, Rule::Always(waiting), Box::new(make_driver))
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
        if !is_combinable(&request, BYTES_MIN) {
            return Verdict::Inline;
        }
        let Turn { combined, timed } = self.wants(generation, request.span.len());
        let verdict = combined.map_or(Verdict::Inline, |call| call.encrypt(request));
        // What the caller does itself is not seen from here.
        timed
            .filter(|_| verdict == Verdict::Combined)
            .into_iter()
            .for_each(|call| self.leave(generation, call));
        verdict
    }

    /// The first half of [`Self::encrypt`], for callers to whom making a request costs something: counts a call of so many
    /// bytes, and says whether it is to be combined now.
    #[must_use]
    #[inline]
    pub fn wants(&self, generation: u32, bytes: usize) -> Turn<'_> {
        if !is_fitting(bytes, BYTES_MIN) {
            return Turn::default();
        }
        let group = self.group(generation);
        let Caller { group_size, hint, timed } = group.throughput.enter(bytes);
        let combined = (group_size > 0).then_some(CombinedCall { combiner: self, group, hint });
        Turn { combined, timed }
    }

    /// Whether callers wait for each other now.
    #[must_use]
    #[inline]
    pub fn is_combining(&self, generation: u32) -> bool {
        self.group(generation).throughput.group_size() > 0
    }

    /// Tells that a call is over whose end was to be told, whichever thread did its work. Below saturation nothing is combined for callers that
    /// never do.
    pub fn leave(&self, generation: u32, call: TimedCall) {
        self.group(generation).throughput.leave(call);
    }

    /// What was combined so far in this generation.
    #[must_use]
    pub fn counts(&self, generation: u32) -> Counts {
        let group = self.group(generation);
        let [combined, bursts] = [&*group.combined, &group.bursts].map(|count| count.load(Ordering::Relaxed));
        let (epochs, timed) = group.throughput.ended();
        Counts { combined, bursts, epochs, timed }
    }

    /// How often the guard ended combining since this was asked last, by any thread.
    #[inline]
    pub fn take_locks(&self, generation: u32) -> u32 {
        self.group(generation).throughput.take_locks()
    }

    fn group(&self, generation: u32) -> &Group {
        self.groups.of(generation, || Group::new(self.rule, (0..self.cores).map(|_| DriverSlot::Unmade)))
    }
}

/// What is to be done with a call.
#[derive(Default)]
pub struct Turn<'c> {
    /// The right to combine it; nothing where its caller is to do its work itself.
    pub combined: Option<CombinedCall<'c>>,
    /// Where its end is to be told, to [`Combiner::leave`].
    pub timed: Option<TimedCall>,
}

/// The right to combine one request.
pub struct CombinedCall<'c> {
    combiner: &'c Combiner,
    group: &'c Group,
    hint: usize,
}

impl CombinedCall<'_> {
    /// The second half of [`Combiner::encrypt`].
    #[must_use]
    pub fn encrypt(self, request: Request<'_>) -> Verdict {
        if !is_combinable(&request, BYTES_MIN) {
            return Verdict::Inline;
        }
        let Self { combiner, group, hint } = self;
        let mut wait = Wait::new(group, &*combiner.make_driver);
        group.list.lend(hint, request, |look| wait.step(look)).into()
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

impl Inherited for Group {
    /// Drivers that a thread had are left by their pool, and what a caller lent is a reference.
    fn is_whole(&mut self) -> bool {
        self.throughput.is_whole()
    }
}

impl Group {
    fn new(rule: Rule, slots: impl IntoIterator<Item = DriverSlot>) -> Self {
        let permits = ObjectPool::new(slots);
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
