//! A core that is as slow as a preset says.

use evener_core::{Algorithm, Direction, HasEnded, InlineDriver, Job, Nanos, Profile};

use crate::core_time::Meter;
use crate::preset::Preset;

/// A driver whose jobs are topped up to the `c` of a preset, so that the proportions between core and module
/// in a paper live on any machine.
///
/// A burst is topped up as a whole. A job for which the preset has no `c`, or for which this machine takes
/// longer than `c`, costs what it costs.
pub struct CostedCpu {
    profile: Profile,
    inner: Box<dyn InlineDriver>,
    preset: Preset,
    meter: Meter,
}

impl CostedCpu {
    /// `inner`, slowed down to the `c` of `preset`. Its profile says that it is emulated.
    #[must_use]
    pub fn new(inner: Box<dyn InlineDriver>, preset: Preset) -> Self {
        let of_inner = inner.profile();
        let profile = Profile {
            name: format!("{} at the cost of {}", of_inner.name, preset.name()),
            emulated: true,
            ..of_inner.clone()
        };
        Self { profile, inner, preset, meter: Meter::new() }
    }

    fn cost(&self, job: &Job<'_>) -> Nanos {
        self.preset.cost(job.session().algorithm(), job.input_bytes()).unwrap_or_default().c
    }
}

impl InlineDriver for CostedCpu {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        self.inner.supports(algorithm, direction)
    }

    fn run(&mut self, burst: &mut [Box<Job<'_>>]) {
        let began = self.meter.begin();
        let cost: Nanos = burst.iter().map(|job| self.cost(job)).sum();
        self.inner.run(burst);
        self.meter.use_up(began, cost);
    }

    fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.inner.evict(has_ended);
    }
}
