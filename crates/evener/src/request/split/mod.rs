//! One large buffer, worked on by its caller and by threads that stay for it.
//!
//! One call: [`helper_pool`] finds the threads of this process -> [`HelperPool::begin`] asks what was learned
//! ([`SplitPolicy`]) -> whole, or [`Helpers::share`]: parts are lent to free slots ([`lend`]), the caller takes its share from
//! the front, helpers theirs, and then what is left of the other's -> what no helper began is taken back, what one works on
//! is waited for -> parts that failed are the caller's again -> [`Call::end`]: what it took is learned.
//!
//! Threads are started by the first call that might be split and at no other time, for later the program may have shut itself into a sandbox. They stay as long as the process, asleep but for a short spin (`spin.rs`) after each call,
//! where their core is idle. A process that was forked finds no helper pool and makes its own; the parent's is left as it lay. To be
//! asked once before threads fork: [`helper_pool`].
//!
//! A helper touches the caller's memory only inside the call: the call waits for the part that is being worked on, 64 KiB
//! at most, even if the helper has lost its core. The other way, to return and let a late helper write into scratch that
//! is not read, would still let it *read* memory that the caller may have freed.
//!
//! Helpers write where the caller itself would. What a part worker may fail at comes first ([`PartWorker::begin`]) and leaves the part
//! to others. In place, a part that fails or panics behind that is some input and some output: it is given to no caller
//! ([`Part::bytes`]), and the call fails, as a cipher's own would that fails in the middle.

mod spin;

use std::cell::Cell;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread;

use evener_core::Nanos;
use evener_core::driver::Clock as _;
use evener_core::splits::{self, RequestSize, SplitPolicy, Way};
use evener_fd::may_begin;
use evener_ring::{
    Claims, HelperSlot, Inherited, Part, PartBytes, Parts, ProcessValue, Service, lend, start_service,
};

use crate::SystemClock;
use spin::SpinBudget;

/// Most threads that work on one buffer, the caller included. Assumed, not measured: 33, far beyond where
/// memory is the limit.
pub const THREADS_MAX: usize = 33;

/// What works on parts: made by the caller, used by one thread, and dropped by the caller. A helper that asked for memory would have the C library keep some
/// for its thread, which a child of this process, where the thread is not, could never give back.
pub trait PartWorker {
    /// Makes ready for the part `index`, of which nothing is touched. Returns whether it is ready; where not, another hand
    /// may do the part.
    fn begin(&mut self, index: usize) -> bool;

    /// Turns that part into `output`, which is as long as `input` and elsewhere. Returns whether it did.
    fn out_of_place(&mut self, index: usize, input: &[u8], output: &mut [u8]) -> bool;

    /// The same in place; what is in `data` after a failure is lost.
    fn in_place(&mut self, index: usize, data: &mut [u8]) -> bool;
}

/// When a call is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// As what was learned says.
    Learned,
    /// Always from so many bytes on; nothing is asked.
    From(usize),
}

/// The helpers of one process, and what it learned about them.
pub struct HelperPool {
    slots: Box<[HelperSlot]>,
    /// One for each slot, made when its thread is started.
    services: Box<[OnceLock<HelperService>]>,
    /// Slots at which a thread serves.
    started_count: AtomicUsize,
    /// Most helpers that a call wanted so far.
    wanted_count: AtomicUsize,
    /// Guards the start of helpers; never waited for.
    starting: Mutex<()>,
    splits: Mutex<SplitPolicy>,
    /// Nanoseconds of core time for which helpers looked for another call. Written by them.
    awake: AtomicU64,
}

/// Kinds of work that are told apart in what is learned.
pub const KINDS: usize = 8;

/// The helper pool of this process. Starts nothing; `None` where the kernel cannot tell a forked child from its parent, and for
/// the moment in which another thread makes it.
pub fn helper_pool() -> Option<&'static HelperPool> {
    static POOL: ProcessValue<HelperPool> = ProcessValue::new();
    POOL.get_or_make(|| Some(HelperPool::new()))
}

impl HelperPool {
    fn new() -> Self {
        Self {
            slots: (1..THREADS_MAX).map(|_| HelperSlot::new()).collect(),
            services: (1..THREADS_MAX).map(|_| OnceLock::new()).collect(),
            started_count: AtomicUsize::new(0),
            wanted_count: AtomicUsize::new(0),
            starting: Mutex::new(()),
            splits: Mutex::new(SplitPolicy::new(KINDS)),
            awake: AtomicU64::new(0),
        }
    }

    /// Begins a call on up to `threads` threads, the caller included. Whether it has [helpers](Call::helpers) says how
    /// it runs.
    pub fn begin(&'static self, size: RequestSize, threads: usize, threshold: Threshold) -> Call {
        let helpers = threads.clamp(1, THREADS_MAX) - 1;
        let begun = SystemClock.now();
        let way = match threshold {
            _ if helpers == 0 => Way::Whole,
            Threshold::From(bytes) if size.bytes >= bytes => Way::Split,
            Threshold::From(_) => Way::Whole,
            Threshold::Learned => self.learned().map_or(Way::Whole, |mut splits| splits.choose(size, begun)),
        };
        // Also where this call runs whole: what comes later may come in a sandbox.
        let slots = self.start_helpers(helpers);
        let slots = if way == Way::Split { slots } else { &[] };
        let helpers = slots.iter().any(HelperSlot::is_free);
        let helpers = helpers.then(|| Helpers {
            slots,
            begun,
            first: AtomicU64::new(u64::MAX),
            taken_back: AtomicU32::new(0),
        });
        Call { helper_pool: self, size, begun, helpers }
    }

    /// What was learned, if no other thread is looking: no thread waits for it.
    pub fn learned(&self) -> Option<MutexGuard<'_, SplitPolicy>> {
        self.splits.try_lock().ok()
    }

    /// Core time so far for which helpers looked for another call, in vain or not.
    #[must_use]
    pub fn awake(&self) -> Nanos {
        Nanos(self.awake.load(Relaxed))
    }

    /// Returns up to `count` slots at which threads sit. The first call that wants so many starts those that are missing; where the system
    /// gives fewer, no other tries again.
    fn start_helpers(&'static self, count: usize) -> &'static [HelperSlot] {
        if self.wanted_count.load(Relaxed) < count {
            if let Ok(_starting) = self.starting.try_lock() {
                self.wanted_count.fetch_max(count, Relaxed);
                let started_count = self.started_count.load(Relaxed);
                // In a filter of the program's a thread may be its end.
                let missing = if may_begin() { started_count..count } else { 0..0 };
                let started = missing.take_while(|&index| self.start_helper(index)).count();
                self.started_count.store(started_count + started, Relaxed);
            }
        }
        &self.slots[..count.min(self.started_count.load(Relaxed))]
    }

    /// Ends all helpers and starts no other: what comes later runs whole. For a program whose first thread has ended, and whose process is to end with its last
    /// one: a helper that stays would keep it for ever.
    pub fn retire(&self) {
        self.wanted_count.store(usize::MAX, Relaxed);
        // Held by who starts some at this moment, which it counts before it lets go.
        drop(self.starting.lock());
        HelperSlot::close_all(&self.slots[..self.started_count.load(Relaxed)]);
    }

    /// Starts the thread of that slot.
    fn start_helper(&'static self, index: usize) -> bool {
        let (slot, awake) = (&self.slots[index], &self.awake);
        start_service(STACK_BYTES, self.services[index].get_or_init(|| HelperService { slot, awake })).is_ok()
    }
}

impl Inherited for HelperPool {
    /// Its threads are another process's, and none of them changes anything else.
    fn is_whole(&mut self) -> bool {
        self.starting.try_lock().is_ok() && self.splits.try_lock().is_ok()
    }
}

/// Where a helper serves.
struct HelperService {
    slot: &'static HelperSlot,
    awake: &'static AtomicU64,
}

impl Service for HelperService {
    const NAME: &'static CStr = c"evener-split";

    fn serve(&self) {
        // How long this helper worked in the call that it last helped in.
        let mut worked = Nanos::ZERO;
        loop {
            let mut budget = SpinBudget::after(worked, SystemClock.now());
            let keeps_spinning = || {
                thread::yield_now();
                budget.keeps_spinning(SystemClock.now())
            };
            let begun = Cell::new(None);
            let begins = || begun.set(Some(SystemClock.now()));
            // A panic ends one call's help, not the helper.
            let served = catch_unwind(AssertUnwindSafe(|| self.slot.serve_awake(keeps_spinning, begins)));
            worked = begun.get().map_or(Nanos::ZERO, |begun| SystemClock.now() - begun);
            self.awake.fetch_add(budget.awake().0, Relaxed);
            if !served.unwrap_or(true) {
                return;
            }
        }
    }
}

/// libcrypto's ciphers use a few kilobytes of stack.
const STACK_BYTES: usize = 256 << 10;

/// A call that was begun, and how it runs.
pub struct Call {
    helper_pool: &'static HelperPool,
    size: RequestSize,
    begun: Nanos,
    helpers: Option<Helpers>,
}

impl Call {
    /// Who may help; `None` where the call shall run whole.
    #[must_use]
    pub fn helpers(&self) -> Option<&Helpers> {
        self.helpers.as_ref()
    }

    /// Learns what the call took, and returns whether the guard locked its class for that. A call that was not done as it
    /// should is dropped instead.
    pub fn end(self) -> bool {
        let now = SystemClock.now();
        let Some(mut splits) = self.helper_pool.learned() else { return false };
        match &self.helpers {
            None => {
                splits.took_whole(self.size, now - self.begun);
                false
            }
            Some(helpers) => splits.took_split(self.size, now - self.begun, helpers.handover(), now),
        }
    }
}

/// The threads that may help in one call.
pub struct Helpers {
    slots: &'static [HelperSlot],
    /// When the call began.
    begun: Nanos,
    /// When the first helper began, in nanoseconds after that.
    first: AtomicU64,
    /// Offers that were taken back.
    taken_back: AtomicU32,
}

impl Helpers {
    /// How many may come.
    #[must_use]
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// Length of the parts into which `bytes` are best cut.
    #[must_use]
    pub fn part_bytes(&self, bytes: usize) -> usize {
        splits::part_bytes(bytes, self.count() + 1, Claims::COUNT_MAX)
    }

    /// Works on all of `parts`: the caller by its `own` hand, each helper by one of `others`; for whom there is none, does nothing. Returns whether every
    /// part is done.
    ///
    /// Where it is not, the caller's own hand has failed.
    pub fn share<W: PartWorker + Send>(
        &self,
        parts: &mut Parts<'_>,
        mut own: impl PartWorker,
        others: &[Mutex<W>],
    ) -> bool {
        let next = AtomicUsize::new(0);
        parts.let_back_begin_at(parts.count() / (self.count() + 1));
        let shared = &*parts;
        let help = || {
            self.arrived();
            // Relaxed: a number for each, so that no two helpers have one hand.
            if let Some(mut hand) =
                others.get(next.fetch_add(1, Relaxed)).and_then(|hand| hand.try_lock().ok())
            {
                // Parts of the helpers' share and then of the caller's, until one fails or none is left.
                std::iter::from_fn(|| shared.back()).all(|part| take(part, &mut *hand));
            }
        };
        let front = || std::iter::from_fn(|| shared.front()).all(|part| take(part, &mut own));
        let (own_done, lent) = lend(self.slots, &help, front);
        self.taken_back.fetch_add(lent.taken_back, Relaxed);
        if own_done {
            // What helpers were not ready for, or failed at apart.
            parts.undone(|part| _ = take(part, &mut own));
        }
        parts.is_done()
    }

    /// How many helpers were asked and had not come when nothing was left to do.
    pub fn taken_back(&self) -> u32 {
        self.taken_back.load(Relaxed)
    }

    /// A helper begins, now.
    fn arrived(&self) {
        self.first.fetch_min((SystemClock.now() - self.begun).0, Relaxed);
    }

    /// How long it took until the first helper began, if one did.
    fn handover(&self) -> Option<Nanos> {
        Some(Nanos(self.first.load(Relaxed))).filter(|after| *after != Nanos(u64::MAX))
    }
}

/// Does a part, where its bytes are. One that the hand was not ready for is what it was.
fn take(mut part: Part<'_>, part_worker: &mut impl PartWorker) -> bool {
    let index = part.index;
    let done = part_worker.begin(index)
        && match part.bytes() {
            PartBytes::InPlace(data) => part_worker.in_place(index, data),
            PartBytes::Apart(input, output) => part_worker.out_of_place(index, input, output),
        };
    if done {
        part.done();
    }
    done
}
