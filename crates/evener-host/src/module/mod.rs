//! The one module of a host: cores with the CPU's drivers, a module behind a driver, or an emulated one.

mod queue;
mod runner;

use std::time::{Duration, Instant};

use evener::{CoreDrivers, Turns};
use evener_core::{Algorithm, Direction, Profile, QueuedDriver};
use evener_driver_emulated::{Control, Emulated};

use self::queue::Queue;
pub(crate) use self::runner::{ModuleRunner, PIECE_BYTES, Quota};

/// What a host owns and serves.
pub struct Module {
    pub(crate) profile: Profile,
    pub(crate) does: Vec<Algorithm>,
    pub(crate) control: Option<Control>,
    /// One for each thread of the host that works with it.
    works: Vec<Work>,
}

enum Work {
    /// Works while it is asked.
    Core(Box<CoreDrivers>),
    /// Works by itself, on as many jobs as it takes.
    Queued(Box<Queue>),
    /// Was given up, because it hung.
    Lost,
}

impl Module {
    /// A core that does nothing else, with what a core runs jobs with. It does what `does` names.
    #[must_use]
    pub fn core(profile: Profile, core_drivers: CoreDrivers, does: Vec<Algorithm>) -> Self {
        Self::cores(profile, vec![core_drivers], does)
    }

    /// So many cores, each of which serves clients of its own.
    ///
    /// # Panics
    ///
    /// Without any.
    #[must_use]
    pub fn cores(profile: Profile, all_core_drivers: Vec<CoreDrivers>, does: Vec<Algorithm>) -> Self {
        assert!(!all_core_drivers.is_empty(), "a module is one core at least");
        let works =
            all_core_drivers.into_iter().map(|core_drivers| Work::Core(Box::new(core_drivers))).collect();
        Self { profile, does, control: None, works }
    }

    /// A module with programmed time and faults. One that is to hang does so until it is reset.
    #[must_use]
    pub fn emulated(driver: Emulated<'static>) -> Self {
        let control = Some(driver.control());
        Self { control, ..Self::with(Box::new(driver), None, Turns::new(None)) }
    }

    /// A module of its own, by its driver. It does what the driver does. Where it holds requests and finishes none for `silence`, it is
    /// given up: they are answered as failed, and the host has no module any more.
    /// It is asked in `turns` with other processes that have it, too.
    #[must_use]
    pub fn queued(driver: Box<dyn QueuedDriver<'static>>, silence: Duration, turns: Turns) -> Self {
        Self::with(driver, Some(silence), turns)
    }

    fn with(driver: Box<dyn QueuedDriver<'static>>, silence: Option<Duration>, turns: Turns) -> Self {
        let profile = driver.profile().clone();
        let does = |algorithm: &&Algorithm| driver.supports(**algorithm, Direction::Encrypt);
        let does = Algorithm::ALL.iter().filter(does).copied().collect();
        let queue = Queue { driver, silence, progress: Instant::now(), over: Vec::new(), turns };
        Self { profile, does, control: None, works: vec![Work::Queued(Box::new(queue))] }
    }

    /// Threads that work with it.
    pub(crate) fn threads(&self) -> usize {
        self.works.len()
    }

    /// What each of them has of it.
    pub(crate) fn into_runners(self) -> Vec<ModuleRunner> {
        self.works.into_iter().map(ModuleRunner::new).collect()
    }
}
