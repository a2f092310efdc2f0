//! Many requests in flight from one thread: what the lanes of a core are filled with where no second thread is needed.
//!
//! Two ways lead here. A caller that has many messages at hand brings them as [jobs](InFlight::burst). A caller that can
//! put itself aside, such as a coroutine, [lends](InFlight::encrypt) one request and is paused; its thread starts others,
//! and the one that finds the lanes full runs all that wait. A caller that is resumed without an answer does so too, however
//! few they are: so each caller depends on no other, and no wake-up can be lost.
//!
//! Nothing is held across a pause but the loan, which is looked at again after it; a caller may go on on another thread.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::thread;

use evener_core::Job;
use evener_core::combine::TOGETHER_MAX;
use evener_ring::{CombiningList, Inherited, Look, ObjectPool, PERMITS_MAX, PerFork};

use crate::request::combine::{
    DriverSlot, DriverSource, Encryption, JOB_BYTES_MIN, MakeDriver, Request, Verdict, is_combinable, serve,
};

/// Callers that can be paused at once; more do their work themselves.
const SLOTS: usize = 256;

/// Yields for a driver, where other threads hold all of them, before every caller on the list works alone. Assumed, not measured: 64.
const YIELDS_MAX: u32 = 64;

/// After so many pauses in a row that brought no other caller, 2 to this power requests do not pause. Assumed, not measured: 6.
const LONE_MAX: u32 = 6;

/// Drivers of a process, one for each core, and the requests that wait for one.
pub struct InFlight {
    groups: PerFork<Group>,
    make_driver: Box<MakeDriver>,
    cores: usize,
}

/// What callers share in one generation of the process.
struct Group {
    list: CombiningList<Encryption>,
    permits: ObjectPool<DriverSlot>,
    /// Where the next caller looks for a slot.
    hint: AtomicUsize,
    /// Pauses in a row that brought no other caller, and requests that do not pause for that. Racy on purpose: they are a guess
    /// at what a pause is worth, and a lost count costs one pause.
    lone: AtomicU32,
    skip: AtomicU32,
}

impl InFlight {
    /// Drivers for so many cores, of which the first is made at once, for it may be the last moment at which a library
    /// can be opened; nothing where `make_driver` gives nothing.
    #[must_use]
    pub fn new(generation: u32, cores: usize, make_driver: impl DriverSource) -> Option<Self> {
        let made = Self {
            groups: PerFork::default(),
            cores: cores.clamp(1, PERMITS_MAX),
            make_driver: Box::new(make_driver),
        };
        let first = (made.make_driver)()?;
        made.groups.of(generation, || Group::new(made.cores, DriverSlot::Made(first)));
        Some(made)
    }

    /// As [`Self::new`], but drivers are made when they are first needed.
    #[must_use]
    pub fn lazy(cores: usize, make_driver: impl DriverSource) -> Self {
        let cores = cores.clamp(1, PERMITS_MAX);
        Self { groups: PerFork::default(), cores, make_driver: Box::new(make_driver) }
    }

    /// Runs jobs side by side. False, and nothing was touched, where all drivers are in use or none can be made.
    ///
    /// `generation` as in [`crate::request::combine::Combiner::encrypt`].
    pub fn burst(&self, generation: u32, jobs: &mut [Box<Job<'_>>]) -> bool {
        let Some(mut permit) = self.group(generation).permits.try_take() else { return false };
        let Some(driver) = permit.driver(&*self.make_driver) else { return false };
        driver.run(jobs);
        true
    }

    /// Encrypts a request together with those of other callers that are paused, or will be. `pause` puts the caller
    /// aside and returns when it is to look again; it is called once at most.
    pub fn encrypt(&self, generation: u32, request: Request<'_>, pause: impl FnOnce()) -> Verdict {
        let group = self.group(generation);
        if !is_combinable(&request, JOB_BYTES_MIN) || !group.should_suspend() {
            return Verdict::Inline;
        }
        let mut pause = Some(pause);
        let mut yields = 0;
        let hint = group.hint.fetch_add(1, Relaxed);
        group
            .list
            .lend(hint, request, |look| group.step(look, &mut pause, &mut yields, &*self.make_driver))
            .into()
    }

    fn group(&self, generation: u32) -> &Group {
        self.groups.of(generation, || Group::new(self.cores, DriverSlot::Unmade))
    }
}

// A panic on the way leaves each caller that waits answered, and permits free: nothing is seen half done.
impl UnwindSafe for InFlight {}
impl RefUnwindSafe for InFlight {}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InFlight({} cores)", self.cores)
    }
}

impl Inherited for Group {
    /// As where threads combine.
    fn is_whole(&mut self) -> bool {
        true
    }
}

impl Group {
    fn new(cores: usize, first: DriverSlot) -> Self {
        let rest = (1..cores).map(|_| DriverSlot::Unmade);
        Self {
            list: CombiningList::new(SLOTS),
            permits: ObjectPool::new([first].into_iter().chain(rest)),
            hint: AtomicUsize::new(0),
            lone: AtomicU32::new(0),
            skip: AtomicU32::new(0),
        }
    }

    /// One turn of a caller whose request is not back.
    fn step(
        &self,
        look: Look,
        pause: &mut Option<impl FnOnce()>,
        yields: &mut u32,
        make_driver: &MakeDriver,
    ) {
        if look.is_taken {
            // Another thread is at it, and soon done.
            thread::yield_now();
            return;
        }
        if look.waiting < TOGETHER_MAX as usize {
            if let Some(pause) = pause.take() {
                return pause();
            }
        }
        match self.permits.try_take() {
            Some(mut permit) => self.learn(serve(&self.list, &mut permit, make_driver, |_| ())),
            None if *yields < YIELDS_MAX => {
                *yields += 1;
                thread::yield_now();
            }
            None => drop(self.list.take()),
        }
    }

    /// So many waited.
    fn learn(&self, waited: usize) {
        match waited {
            0 => {}
            1 => {
                let lone = (self.lone.load(Relaxed) + 1).min(LONE_MAX);
                self.lone.store(lone, Relaxed);
                self.skip.store(1 << lone, Relaxed);
            }
            _ => self.lone.store(0, Relaxed),
        }
    }

    fn should_suspend(&self) -> bool {
        let skip = self.skip.load(Relaxed);
        // A caller that waits now has another to share with.
        if skip == 0 || self.list.waiting() > 0 {
            return true;
        }
        self.skip.store(skip - 1, Relaxed);
        false
    }
}
