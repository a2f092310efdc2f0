//! Drivers that tests look into: of a core, with one that waits for a word and one that counts and takes its time ([`Fake`]), and of
//! a module with faults at chosen jobs ([`Scripted`]), any with a test at its calls ([`Probed`]), or as if the process had been stopped ([`Stopped`]).

mod probed_driver;
mod scripted_driver;
mod stopped_driver;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use evener::{CoreDrivers, Setup};
use evener_core::driver::Clock;
use evener_core::plan::Policy;
use evener_core::{Algorithm, Direction, HasEnded, InlineDriver, Job, Nanos, Profile, SessionId};
use evener_driver_lanes::Lanes;
use evener_driver_libcrypto::Libcrypto;
use evener_driver_multibuffer::Multibuffer;

pub use probed_driver::{Probe, Probed};
pub use scripted_driver::{Fault, ModuleLog, Scripted, cared_for, module_is_best, scripted};
pub use stopped_driver::Stopped;

/// libcrypto, which is there on every machine that Evener runs on.
#[must_use]
pub fn libcrypto() -> Libcrypto {
    Libcrypto::new().unwrap()
}

/// The multi-buffer library, or nothing and a line that says so, where this machine has none.
#[must_use]
pub fn multibuffer() -> Option<Multibuffer> {
    Multibuffer::load().inspect_err(|absent| println!("skipped: {absent}")).ok()
}

/// Kernels of our own, or nothing and a line that says so, where this processor lacks the instructions.
#[must_use]
pub fn lanes() -> Option<Lanes> {
    let lanes = Lanes::new();
    if lanes.is_none() {
        println!("skipped: no kernels for this processor");
    }
    lanes
}

/// A kit of libcrypto alone.
#[must_use]
pub fn plain_drivers() -> CoreDrivers {
    CoreDrivers::new(Box::new(libcrypto()), None)
}

/// A run with so many CPU workers that have libcrypto.
#[must_use]
pub fn plain_setup<'m>(workers: usize) -> Setup<'m> {
    Setup { workers: (0..workers).map(|_| plain_drivers()).collect(), ..Setup::default() }
}

/// A run under `policy` with two CPU workers that have libcrypto, and a module without faults.
#[must_use]
pub fn setup_with_module<'m>(policy: Policy) -> Setup<'m> {
    let modules = vec![scripted(Scripted::new(Fault::None), 32)];
    Setup { policy, modules, ..plain_setup(2) }
}

/// A driver, and what a test does around its bursts and around what it evicts.
pub struct Around<D, R, F = fn(HasEnded<'_>)> {
    driver: D,
    run: R,
    evicts: F,
}

impl<D: InlineDriver, R: FnMut(&mut D, &mut [Box<Job<'_>>]) + Send> Around<D, R> {
    /// `run` takes the place of the driver's, which it may call.
    pub fn new(driver: D, run: R) -> Self {
        Self { driver, run, evicts: |_| () }
    }

    /// `evicts` gets the sessions that have ended, before the driver does.
    pub fn evicting<F: FnMut(HasEnded<'_>) + Send>(self, evicts: F) -> Around<D, R, F> {
        Around { driver: self.driver, run: self.run, evicts }
    }
}

impl<D, R, F> InlineDriver for Around<D, R, F>
where
    D: InlineDriver,
    R: FnMut(&mut D, &mut [Box<Job<'_>>]) + Send,
    F: FnMut(HasEnded<'_>) + Send,
{
    fn profile(&self) -> &Profile {
        self.driver.profile()
    }

    fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        self.driver.supports(algorithm, direction)
    }

    fn takes_shared(&self) -> bool {
        self.driver.takes_shared()
    }

    fn run(&mut self, burst: &mut [Box<Job<'_>>]) {
        (self.run)(&mut self.driver, burst);
    }

    fn evict(&mut self, has_ended: HasEnded<'_>) {
        (self.evicts)(has_ended);
        self.driver.evict(has_ended);
    }
}

/// libcrypto, where `before` sees each burst first, and may wait.
pub fn watched(mut before: impl FnMut(&[Box<Job<'_>>]) + Send) -> impl InlineDriver {
    Around::new(libcrypto(), move |driver, burst| {
        before(burst);
        driver.run(burst);
    })
}

/// libcrypto, which waits before each burst until `may_go` says so: tests decide with it which worker comes first, where otherwise the
/// scheduler would.
pub fn gated(may_go: impl Fn() -> bool + Send) -> impl InlineDriver {
    watched(move |_| {
        while !may_go() {
            thread::yield_now();
        }
    })
}

/// What drivers keep of sessions: the driver's number, and the session.
#[derive(Clone, Debug, Default)]
pub struct OpenKeys(Arc<Mutex<BTreeSet<(usize, SessionId)>>>);

impl OpenKeys {
    /// libcrypto under this number, as one that keeps something of each session that it sees, and enters that here.
    pub fn by(&self, number: usize) -> impl InlineDriver + use<> {
        let (runs, over) = (Arc::clone(&self.0), Arc::clone(&self.0));
        let run = move |driver: &mut Libcrypto, burst: &mut [Box<Job<'_>>]| {
            runs.lock().unwrap().extend(burst.iter().map(|job| (number, job.session().id())));
            driver.run(burst);
        };
        Around::new(libcrypto(), run).evicting(move |has_ended: HasEnded<'_>| {
            over.lock().unwrap().retain(|(by, id)| *by != number || !has_ended(*id));
        })
    }

    /// How much is kept.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Whether anything is kept of this session.
    #[must_use]
    pub fn has(&self, session: SessionId) -> bool {
        self.0.lock().unwrap().iter().any(|(_, id)| *id == session)
    }
}

/// A kit of a [`gated`] driver.
pub fn gated_drivers(may_go: impl Fn() -> bool + Send + 'static) -> CoreDrivers {
    CoreDrivers::new(Box::new(gated(may_go)), None)
}

/// A clock that stands still until a test or a driver of the tests moves it.
#[derive(Clone, Debug, Default)]
pub struct TestClock(Arc<Times>);

#[derive(Debug, Default)]
struct Times {
    now: AtomicU64,
    /// Time for which another thread had the core.
    lent: AtomicU64,
}

impl TestClock {
    /// Time passes.
    pub fn pass(&self, span: Nanos) {
        self.0.now.fetch_add(span.0, Ordering::SeqCst);
    }

    /// Time passes, and others have the core.
    pub fn lend(&self, span: Nanos) {
        self.pass(span);
        self.0.lent.fetch_add(span.0, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.now.load(Ordering::SeqCst))
    }

    fn thread_time(&self) -> Nanos {
        self.now() - Nanos(self.0.lent.load(Ordering::SeqCst))
    }
}

/// What a [`Fake`] was given: width, and bytes of the first job.
pub type Runs = Arc<Mutex<Vec<(usize, usize)>>>;

/// Encrypts nothing: sets the first byte of each job to its name and says done, after so much time on a clock of the
/// tests.
pub struct Fake {
    profile: Profile,
    name: u8,
    clock: TestClock,
    cost_ns: fn(u64, u64) -> u64,
    lent: Nanos,
    job_bytes_max: usize,
    supports: fn(Algorithm) -> bool,
    runs: Runs,
}

impl Fake {
    /// One of this name and width, for which no time passes.
    #[must_use]
    pub fn new(name: u8, width: u32) -> Self {
        Self {
            profile: Profile { name: "fake".to_owned(), detail: String::new(), width, emulated: true },
            name,
            clock: TestClock::default(),
            cost_ns: |_, _| 0,
            lent: Nanos::ZERO,
            job_bytes_max: usize::MAX,
            supports: |_| true,
            runs: Runs::default(),
        }
    }

    /// A burst costs this much, by its jobs and bytes.
    pub fn with_cost(self, clock: &TestClock, cost_ns: fn(u64, u64) -> u64) -> Self {
        Self { clock: clock.clone(), cost_ns, ..self }
    }

    /// In each burst others have its core for so long.
    pub fn with_core_lent(self, lent: Nanos) -> Self {
        Self { lent, ..self }
    }

    /// It takes no longer jobs.
    pub fn with_job_bytes_max(self, job_bytes_max: usize) -> Self {
        Self { job_bytes_max, ..self }
    }

    /// It does only these.
    pub fn only(self, supports: fn(Algorithm) -> bool) -> Self {
        Self { supports, ..self }
    }

    /// What it was given until now, and will be.
    #[must_use]
    pub fn runs(&self) -> Runs {
        Arc::clone(&self.runs)
    }
}

impl InlineDriver for Fake {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn supports(&self, algorithm: Algorithm, _: Direction) -> bool {
        (self.supports)(algorithm)
    }

    fn job_bytes_max(&self, _: Algorithm, _: Direction) -> usize {
        self.job_bytes_max
    }

    fn run(&mut self, burst: &mut [Box<Job<'_>>]) {
        let bytes: usize = burst.iter().map(|job| job.input_bytes()).sum();
        self.clock.pass(Nanos((self.cost_ns)(burst.len() as u64, bytes as u64)));
        self.clock.lend(self.lent);
        self.runs.lock().unwrap().push((burst.len(), burst[0].input_bytes()));
        for job in burst {
            let bytes = job.input_bytes();
            job.space_mut().iter_mut().take(1).for_each(|byte| *byte = self.name);
            job.done(bytes);
        }
    }

    fn evict(&mut self, _: HasEnded<'_>) {}
}
