//! A module's driver with probes at its calls: each call goes on to the driver, and before or behind it a test looks on or takes a part.

use evener_core::{Algorithm, Direction, HasEnded, Job, Nanos, Profile, QueuedDriver, Refusal};

/// What a test does at the calls of a [`QueuedDriver`]; what it does not write does nothing.
pub trait Probe<'m>: Send {
    /// Sees a job that is about to be handed over.
    fn before_submit(&mut self, _job: &Job<'m>) {}

    /// Sees whether it was taken, and how many the module holds now.
    fn after_submit(&mut self, _is_taken: bool, _in_flight: usize) {}

    /// Comes before the module is polled.
    fn before_poll(&mut self) {}

    /// Sees and may change what came back, and how many the module holds yet.
    fn after_poll(&mut self, _came: &mut [Box<Job<'m>>], _in_flight: usize) {}

    /// Sees which sessions have ended, before the module gives up their keys.
    fn before_evict(&mut self, _has_ended: HasEnded<'_>) {}
}

/// A driver and the probes at its calls.
pub struct Probed<'m, P> {
    driver: Box<dyn QueuedDriver<'m> + 'm>,
    probe: P,
}

impl<'m, P: Probe<'m>> Probed<'m, P> {
    /// Puts `probe` at the calls of `driver`.
    pub fn new(driver: Box<dyn QueuedDriver<'m> + 'm>, probe: P) -> Self {
        Self { driver, probe }
    }
}

impl<'m, P: Probe<'m>> QueuedDriver<'m> for Probed<'m, P> {
    fn profile(&self) -> &Profile {
        self.driver.profile()
    }

    fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        self.driver.supports(algorithm, direction)
    }

    fn submit(&mut self, job: Box<Job<'m>>) -> Result<(), (Box<Job<'m>>, Refusal)> {
        self.probe.before_submit(&job);
        let submitted = self.driver.submit(job);
        self.probe.after_submit(submitted.is_ok(), self.driver.in_flight());
        submitted
    }

    fn poll(&mut self, done: &mut Vec<Box<Job<'m>>>, timeout: Nanos) -> usize {
        self.probe.before_poll();
        let before = done.len();
        let count = self.driver.poll(done, timeout);
        self.probe.after_poll(&mut done[before..], self.driver.in_flight());
        count
    }

    fn in_flight(&self) -> usize {
        self.driver.in_flight()
    }

    fn core_time(&self) -> Nanos {
        self.driver.core_time()
    }

    fn abandon(&mut self, given_back: &mut Vec<Box<Job<'m>>>) {
        self.driver.abandon(given_back);
    }

    fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.probe.before_evict(has_ended);
        self.driver.evict(has_ended);
    }
}
