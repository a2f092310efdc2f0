//! Drivers of the CPU that tests look into: one that waits for a word, one that counts, one that takes its time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use evener::CoreDrivers;
use evener_core::driver::Clock;
use evener_core::{Algorithm, Direction, HasEnded, InlineDriver, Job, Nanos, Profile};
use evener_driver_libcrypto::Libcrypto;

/// libcrypto, but before each burst it waits until `may_go` says so: tests decide with it who comes first, where
/// otherwise the scheduler would.
pub struct Gated<F> {
    libcrypto: Libcrypto,
    may_go: F,
}

impl<F: Fn() -> bool + Send> InlineDriver for Gated<F> {
    fn profile(&self) -> &Profile {
        self.libcrypto.profile()
    }

    fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        self.libcrypto.supports(algorithm, direction)
    }

    fn run(&mut self, burst: &mut [Box<Job<'_>>]) {
        while !(self.may_go)() {
            thread::yield_now();
        }
        self.libcrypto.run(burst);
    }

    fn forget(&mut self, has_ended: HasEnded<'_>) {
        self.libcrypto.forget(has_ended);
    }
}

/// A set of drivers of libcrypto that waits before each burst.
pub fn gated_drivers(may_go: impl Fn() -> bool + Send + 'static) -> CoreDrivers {
    let driver = Gated { libcrypto: Libcrypto::new().unwrap(), may_go };
    CoreDrivers::new(Box::new(driver), None)
}

/// A clock that stands still until a test or a driver of the tests moves it.
#[derive(Clone, Default)]
pub struct TestClock(Arc<Times>);

#[derive(Default)]
struct Times {
    now: AtomicU64,
    /// For which somebody else had the core.
    lent: AtomicU64,
}

impl TestClock {
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
            job.room_mut().iter_mut().take(1).for_each(|byte| *byte = self.name);
            job.done(bytes);
        }
    }

    fn forget(&mut self, _: HasEnded<'_>) {}
}
