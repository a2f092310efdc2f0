//! Opens a module behind the kernel by its name, checks known answers, and hands out drivers for as many runs as there are.

mod name;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use evener_core::driver::SILENCE_MAX;
use evener_core::driver::SingleDriver;
use evener_core::known::{self, KNOWN};
use evener_core::{Algorithm, Direction, Family, Job, Outcome, Padding, Profile, QueuedDriver, Session};

use crate::afalg::Afalg;
#[cfg(target_os = "linux")]
use crate::afalg::DeadlineDriver;
use crate::devcrypto::{CHUNK_BYTES, DevCrypto};
use crate::error::OpenError;
use crate::pool::device::Device;
use crate::requests::blocking::BlockingDriver;
use crate::requests::jobs::{JobDriver, together};

pub use self::name::{ModuleName, NameError};

/// A module that gave all known answers.
#[derive(Clone, Debug)]
pub struct Module {
    profile: Profile,
    algorithms: Arc<[Algorithm]>,
    interface: Interface,
    /// Runners that never came back, of all runs.
    stuck: Arc<AtomicUsize>,
    units: u32,
    /// Threads that wait in the kernel, each for one request.
    runners: u32,
}

/// The kernel's interface to it.
#[derive(Clone, Debug)]
enum Interface {
    Afalg(Arc<Afalg>),
    Devcrypto(Arc<DevCrypto>),
    #[cfg(test)]
    Mock(Arc<tests::Units>),
}

/// Requests that are tried side by side: more than any driver seen so far works on.
const UNITS_MAX: u32 = 4;

impl Module {
    /// Looks for it, checks known answers, and measures how many requests it works on side by side.
    ///
    /// # Errors
    ///
    /// An [`OpenError`] where it is not there, may not be used, or computes wrong.
    pub fn open(name: &ModuleName) -> Result<Self, OpenError> {
        let mut module = Self::untried(name, UNITS_MAX)?;
        module.ask_known_answers()?;
        module.measure_units();
        module.measure_queue();
        Ok(module)
    }

    /// Looks for it without any request, in less than a millisecond: for a caller that compares its first results itself. It is handed
    /// two requests, one more than the modules seen so far work on.
    ///
    /// # Errors
    ///
    /// An [`OpenError`] where it is not there, or may not be used.
    pub fn bind(name: &ModuleName) -> Result<Self, OpenError> {
        Ok(Self { units: 1, ..Self::untried(name, 2)? })
    }

    fn untried(name: &ModuleName, width: u32) -> Result<Self, OpenError> {
        let (interface, algorithms, detail) = match name {
            ModuleName::Afalg { driver } => {
                let device = Afalg::open(driver)?;
                let (algorithms, detail) = (device.algorithms(), device.detail());
                (Interface::Afalg(Arc::new(device)), algorithms, detail)
            }
            ModuleName::Devcrypto { node } => {
                let device = DevCrypto::open(node)?;
                let (algorithms, detail) = (device.algorithms().to_vec(), device.detail().to_owned());
                (Interface::Devcrypto(Arc::new(device)), algorithms, detail)
            }
        };
        let profile = Profile { name: name.to_string(), detail, width, emulated: false };
        Ok(Self {
            profile,
            algorithms: algorithms.into(),
            interface,
            stuck: Arc::default(),
            units: width,
            runners: width,
        })
    }

    /// What it says of itself.
    #[must_use]
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Requests that it works on side by side, as measured when it was opened.
    #[must_use]
    pub const fn units(&self) -> u32 {
        self.units
    }

    /// Requests that are handed to it: one more than it works on, so that it need not wait for the next, and some that its threads
    /// find when they come back.
    #[must_use]
    pub const fn depth(&self) -> u32 {
        self.profile.width
    }

    /// Threads that wait in the kernel, each for one request.
    #[must_use]
    pub const fn runners(&self) -> u32 {
        self.runners
    }

    /// Results for which their taker is woken once while requests wait for such a thread.
    #[must_use]
    pub const fn together(&self) -> u32 {
        together(&self.profile)
    }

    /// What it does.
    #[must_use]
    pub fn algorithms(&self) -> &[Algorithm] {
        &self.algorithms
    }

    /// Requests that it has answered this process since it was opened, known answers and trials included; a long chain goes in
    /// chunks, which count each. `None` where that is not counted: behind OCF.
    #[must_use]
    pub fn answered(&self) -> Option<u64> {
        match &self.interface {
            Interface::Afalg(device) => Some(device.answered()),
            Interface::Devcrypto(_) => None,
            #[cfg(test)]
            Interface::Mock(_) => None,
        }
    }

    /// A driver for one run.
    #[must_use]
    pub fn driver<'m>(&self) -> Box<dyn QueuedDriver<'m> + 'm> {
        match &self.interface {
            Interface::Afalg(device) => self.queued(device),
            Interface::Devcrypto(device) => self.queued(device),
            #[cfg(test)]
            Interface::Mock(device) => self.queued(device),
        }
    }

    /// What works on whole blocks while the calling thread sleeps in the kernel, from which nothing frees it where the module never
    /// answers. Several threads may call it at once; a forked child needs one of its own.
    #[must_use]
    pub fn called(&self) -> Box<dyn SingleDriver> {
        match &self.interface {
            Interface::Afalg(device) => Box::new(BlockingDriver::new(Arc::clone(device))),
            Interface::Devcrypto(device) => Box::new(BlockingDriver::new(Arc::clone(device))),
            #[cfg(test)]
            Interface::Mock(device) => Box::new(BlockingDriver::new(Arc::clone(device))),
        }
    }

    /// What works on whole blocks while the calling thread waits for no longer than it likes. `None` where the interface has no such
    /// requests. Several threads may wait at once; a forked child needs one of its own.
    #[must_use]
    pub fn timed(&self) -> Option<Box<dyn SingleDriver>> {
        match &self.interface {
            #[cfg(target_os = "linux")]
            Interface::Afalg(device) => {
                Some(Box::new(DeadlineDriver::new(Arc::clone(device), Arc::clone(&self.stuck))))
            }
            _ => None,
        }
    }

    fn queued<'m, D: Device>(&self, device: &Arc<D>) -> Box<dyn QueuedDriver<'m> + 'm> {
        let (device, stuck) = (Arc::clone(device), Arc::clone(&self.stuck));
        let algorithms = Arc::clone(&self.algorithms);
        Box::new(JobDriver::new(self.profile.clone(), self.runners, algorithms, device, stuck))
    }

    fn ask_known_answers(&self) -> Result<(), OpenError> {
        let name = || self.profile.name.clone();
        for known in KNOWN.iter().filter(|known| self.algorithms.contains(&known.algorithm)) {
            for direction in known.directions() {
                let mut is_silent = false;
                let checked = known.check(direction, ANSWERS, |jobs| is_silent = !self.run(jobs));
                if is_silent {
                    return Err(OpenError::Silent { name: name() });
                }
                checked.map_err(|wrong| OpenError::WrongAnswer { name: name(), wrong: Box::new(wrong) })?;
            }
        }
        Ok(())
    }

    /// Runs jobs through a driver of their own; those that do not come back in time come back as lost, and then it is false.
    fn run(&self, jobs: &mut Vec<Box<Job<'_>>>) -> bool {
        let began = Instant::now();
        known::ask(&mut *self.driver(), jobs, || began.elapsed() >= SILENCE_MAX.into())
    }

    /// Compares the time of requests one after the other with that of as many side by side.
    fn measure_units(&mut self) {
        let algorithm = self.algorithms[0];
        let key: Vec<u8> = (0..=254).take(algorithm.key_bytes().unwrap_or(32)).collect();
        let Ok(session) = Session::new(algorithm, Direction::Encrypt, Padding::None, &key) else { return };
        let session = Arc::new(session);
        let mut took = |width: u32| {
            (self.profile.width, self.runners) = (width, width);
            let passes = (0..TRIAL_PASSES).map(|_| self.time_of_trial(&session));
            passes.min().unwrap_or_default()
        };
        let (alone, together) = (took(1), took(UNITS_MAX));
        let gain = alone.as_secs_f64() / together.as_secs_f64().max(1e-9);
        self.units = (1..=UNITS_MAX).rev().find(|&units| gain > f64::from(units) - 0.5).unwrap_or(1);
        self.runners = self.units + 1;
        self.profile.width = self.runners + WAITING;
    }

    fn time_of_trial(&self, session: &Arc<Session>) -> Duration {
        self.time_of(session, TRIAL_JOBS, TRIAL_BYTES)
    }

    /// Compares, at a node that keeps requests, the time of a long one whose chunks are left there with that of one whose chunks
    /// are waited for. Leaving a chunk and fetching it are two calls instead of one, which must pay.
    fn measure_queue(&self) {
        let Interface::Devcrypto(device) = &self.interface else { return };
        let Some(is_used) = device.queue() else { return };
        let can_be_cut = |it: &&Algorithm| matches!(it.family(), Family::Ecb | Family::Cbc | Family::Ctr);
        let Some(&algorithm) = self.algorithms.iter().find(can_be_cut) else { return };
        let key: Vec<u8> = (0..=254).take(algorithm.key_bytes().unwrap_or(32)).collect();
        // In this direction each chunk's IV is known before the work.
        let Ok(session) = Session::new(algorithm, Direction::Decrypt, Padding::None, &key) else { return };
        let session = Arc::new(session);
        let took = |uses: bool| {
            // Relaxed: read by a thread that gets its work through a lock.
            is_used.store(uses, Ordering::Relaxed);
            let passes = (0..TRIAL_PASSES).map(|_| self.time_of(&session, 1, QUEUE_CHUNKS * CHUNK_BYTES));
            passes.min().unwrap_or_default()
        };
        let (left, waited) = (took(true), took(false));
        is_used.store(left.mul_f64(QUEUE_GAIN_MIN) < waited, Ordering::Relaxed);
    }

    /// Time that so many jobs of so many bytes take together; for ever where one fails.
    fn time_of(&self, session: &Arc<Session>, count: usize, bytes: usize) -> Duration {
        let mut spaces = vec![vec![0; bytes]; count];
        let mut jobs: Vec<_> = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
        for job in &mut jobs {
            job.arm(Arc::clone(session), &[0; 16][..session.algorithm().iv_bytes()], bytes);
        }
        let began = Instant::now();
        self.run(&mut jobs);
        let is_done = jobs.iter().all(|job| matches!(job.outcome(), Outcome::Done { .. }));
        if is_done { began.elapsed() } else { FOR_EVER }
    }
}

/// Jobs of one question, so that runners work side by side.
const ANSWERS: usize = 5;

/// Requests that wait at the pool for a thread that comes back: without one it sleeps before each request until the module's worker
/// has woken it, and with several that worker is woken for some results together. Measured with counted instructions (docs/design/kernel-modules.md).
const WAITING: u32 = 6;

/// Jobs that show whether a module works side by side: long enough that its own time counts, few enough for some
/// milliseconds in all.
const TRIAL_JOBS: usize = 8;
const TRIAL_BYTES: usize = 4_096;
const TRIAL_PASSES: u32 = 3;

/// Chunks of the request that shows whether a node's queue pays, and how much faster it must be for that. Assumed, not measured: 4, because fewer overlap little, and
/// a tenth, because passes differ by less.
const QUEUE_CHUNKS: usize = 4;
const QUEUE_GAIN_MIN: f64 = 1.1;

/// Longer than any trial.
const FOR_EVER: Duration = Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};
    use std::thread;

    use super::*;
    use crate::pool::device::{Failure, Task, takes_everything_without_keys};

    /// A device that works on so many requests at the same time, each for [`SERVICE`]; others wait.
    #[derive(Debug)]
    pub(super) struct Units {
        free: Mutex<usize>,
        freed: Condvar,
    }

    impl Device for Units {
        takes_everything_without_keys!();

        fn run(&self, (): &(), _: &mut Task) -> Result<(), Failure> {
            let mut free = self.freed.wait_while(self.free.lock().unwrap(), |free| *free == 0).unwrap();
            *free -= 1;
            drop(free);
            thread::sleep(SERVICE);
            *self.free.lock().unwrap() += 1;
            self.freed.notify_one();
            Ok(())
        }
    }

    /// Long beside a wake-up.
    const SERVICE: Duration = Duration::from_millis(4);

    /// A module with a device of `units`, measured as when it is opened.
    fn measured(units: usize) -> Module {
        let device = Units { free: Mutex::new(units), freed: Condvar::new() };
        let profile =
            Profile { name: "units".to_owned(), detail: String::new(), width: UNITS_MAX, emulated: false };
        let mut module = Module {
            profile,
            algorithms: [Algorithm::Aes128Cbc].into(),
            interface: Interface::Mock(Arc::new(device)),
            stuck: Arc::default(),
            units: UNITS_MAX,
            runners: UNITS_MAX,
        };
        module.measure_units();
        module
    }

    #[test]
    fn a_module_has_as_many_units_as_requests_that_it_was_seen_to_work_on_side_by_side() {
        for units in [1, 2, 4] {
            // Other programs may keep threads from waking in time. A measurement that does not look at the device is wrong always.
            let module =
                (0..ATTEMPTS).map(|_| measured(units as usize)).find(|module| module.units() == units);
            let module = module.unwrap_or_else(|| panic!("never {units}"));
            assert_eq!((module.runners, module.depth()), (units + 1, units + 1 + WAITING));
        }
    }

    const ATTEMPTS: usize = 20;
}
