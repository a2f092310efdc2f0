//! What came of `evener sim live`, as its JSON has it, and as the simulator takes it again.

use std::ops::RangeInclusive;

use evener::DriverFactory as _;
use evener::core::Nanos;
use evener::core::plan::Policy;
use evener_bench::medians::Spread;
use evener_machine::Machine;
use evener_sim::lab::{Opening, Runners};
use evener_sim::live::{Compared, Machine as Simulated, Measured, MeasuredOnModule, Module};
use serde::{Deserialize, Serialize};

use super::module_costs::CostOrigin;
use super::scheduler::SchedulerFacts;

pub(super) const SCHEMA: &str = "evener-sim-live/2";

/// Everything that came of it.
#[derive(Serialize, Deserialize)]
pub(super) struct Results {
    pub(super) schema: String,
    pub(super) algorithm: String,
    pub(super) emulated: Vec<String>,
    #[serde(flatten)]
    pub(super) machine: MachineFacts,
    pub(super) runs: u32,
    pub(super) sizes: Vec<Size>,
}

/// What is the same at all sizes.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct MachineFacts {
    pub(super) cores: usize,
    kernel: SchedulerFacts,
    pub(super) workers: u32,
    /// Jobs that a core runs side by side at its best.
    width: u32,
}

impl MachineFacts {
    pub(super) fn here(machine: &Machine, workers: usize) -> anyhow::Result<Self> {
        Ok(Self {
            cores: evener::core_budget().workers(),
            kernel: SchedulerFacts::here(),
            workers: u32::try_from(workers)?,
            width: machine.core_drivers().width(),
        })
    }

    /// Whether a machine can be so, as a scenario's may ([`evener_sim::scenario`]).
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Self { cores, kernel, workers, width } = *self;
        within("cores", cores, 1..=1_024)?;
        within("ticks_per_second", kernel.ticks_per_second as usize, 1..=100_000)?;
        within("workers", workers as usize, 1..=65_535)?;
        within("width", width as usize, 1..=1_024)
    }

    /// The machine as it is simulated, with these modules.
    pub(super) fn simulated(self, modules: Vec<Module>) -> Simulated {
        let Self { cores, kernel, workers, width } = self;
        Simulated { cores, scheduler: kernel.scheduler(cores), workers, width, modules }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) jobs: usize,
    #[serde(flatten)]
    pub(super) core: CoreCosts,
    pub(super) modules: Vec<OnModule>,
    pub(super) policies: Vec<PolicyResult>,
}

impl Size {
    pub(super) fn new(
        measured: &Measured,
        simulated: &Simulated,
        sources: Vec<CostOrigin>,
        jobs: usize,
        policies: Vec<PolicyResult>,
    ) -> Self {
        let module = |((on, module), source): ((&MeasuredOnModule, &Module), CostOrigin)| OnModule {
            units: module.units,
            depth: module.depth,
            runners: [module.runners.count, module.runners.together],
            check_every: module.check_every,
            is_known: on.is_known,
            d_ns: on.d.0,
            unseen_ns: on.overhead.0,
            driver_ns: on.driver.0,
            opening_ns: [on.opening.own, on.opening.driver, on.opening.wait].map(|time| time.0),
            h_ns: on.h.0,
            hand_over_ns: on.hand_over.0,
            source,
        };
        Self {
            bytes: measured.bytes,
            jobs,
            core: CoreCosts::of(measured),
            modules: measured.on_modules.iter().zip(&simulated.modules).zip(sources).map(module).collect(),
            policies,
        }
    }

    /// The measurements that [`Size::new`] was given.
    pub(super) fn measured(&self) -> Measured {
        Measured {
            bytes: self.bytes,
            c: Nanos(self.core.c_ns),
            hand_over: Nanos(self.core.hand_over_ns),
            single: Nanos(self.core.single_ns),
            on_modules: self.modules.iter().map(OnModule::measured).collect(),
        }
    }
}

/// What a job takes on a core.
#[derive(Serialize, Deserialize)]
pub(super) struct CoreCosts {
    pub(super) c_ns: u64,
    pub(super) hand_over_ns: u64,
    /// What a job takes more that a core claims by itself.
    pub(super) single_ns: u64,
}

impl CoreCosts {
    const fn of(measured: &Measured) -> Self {
        let Measured { c, hand_over, single, .. } = measured;
        Self { c_ns: c.0, hand_over_ns: hand_over.0, single_ns: single.0 }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct OnModule {
    units: u32,
    /// Requests that may be outstanding.
    depth: u32,
    /// Threads of its driver, and results for which the path's worker is woken together.
    runners: [u32; 2],
    check_every: u32,
    /// Whether the policy that decides by costs began with these.
    is_known: bool,
    pub(super) d_ns: u64,
    /// What of it is on no thread's clock.
    pub(super) unseen_ns: u64,
    /// What of it threads of the driver's own take.
    pub(super) driver_ns: u64,
    /// What the first request of a run takes beside that: of the worker, of the driver, and asleep.
    pub(super) opening_ns: [u64; 3],
    pub(super) h_ns: u64,
    pub(super) hand_over_ns: u64,
    pub(super) source: CostOrigin,
}

impl OnModule {
    /// As [`MachineFacts::check`].
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let [count, together] = self.runners.map(|number| number as usize);
        within("units", self.units as usize, 1..=4_096)?;
        within("depth", self.depth as usize, 1..=4_096)?;
        within("runners", count, 0..=4_096)?;
        within("runners", together, 0..=4_096)
    }

    pub(super) const fn module(&self) -> Module {
        let Self { units, depth, runners: [count, together], check_every, .. } = *self;
        Module { units, depth, runners: Runners { count, together }, check_every }
    }

    pub(super) fn measured(&self) -> MeasuredOnModule {
        let [own, driver, wait] = self.opening_ns.map(Nanos);
        MeasuredOnModule {
            d: Nanos(self.d_ns),
            overhead: Nanos(self.unseen_ns),
            driver: Nanos(self.driver_ns),
            h: Nanos(self.h_ns),
            opening: Opening { own, driver, wait },
            hand_over: Nanos(self.hand_over_ns),
            is_known: self.is_known,
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct PolicyResult {
    pub(super) policy: String,
    #[serde(flatten)]
    pub(super) time: TimeResult,
    /// Milliseconds and modules' jobs of each run.
    pub(super) live_runs: Vec<(f64, f64)>,
    #[serde(flatten)]
    pub(super) split: SplitResult,
}

impl PolicyResult {
    pub(super) fn is_judged(&self) -> bool {
        self.policy != Policy::Polling.name()
    }

    pub(super) fn is_near(&self) -> bool {
        let split = self.split.error_percent.is_some_and(|error| error.abs() <= ERROR_MAX);
        self.time.error_percent.abs() <= ERROR_MAX && (split || self.split.error_points.abs() <= 1.0)
    }
}

/// Time of a run.
#[derive(Serialize, Deserialize)]
pub(super) struct TimeResult {
    pub(super) live_ms: Spread,
    pub(super) predicted_ms: f64,
    pub(super) error_percent: f64,
}

impl TimeResult {
    pub(super) fn new(live_ms: Spread, compared: &Compared) -> Self {
        let predicted_ms = compared.predicted.makespan_ms;
        Self { live_ms, predicted_ms, error_percent: compared.makespan_error_percent() }
    }
}

/// How many of the jobs the modules did.
#[derive(Serialize, Deserialize)]
pub(super) struct SplitResult {
    pub(super) live_module_jobs: f64,
    pub(super) predicted_module_jobs: f64,
    /// In per cent of all jobs.
    #[serde(rename = "split_error_points")]
    pub(super) error_points: f64,
    /// In per cent of the modules' jobs; none where they did none live and some in the simulation.
    #[serde(rename = "split_error_percent")]
    pub(super) error_percent: Option<f64>,
}

impl SplitResult {
    pub(super) fn new(compared: &Compared) -> Self {
        Self {
            live_module_jobs: compared.live.module_jobs,
            predicted_module_jobs: compared.predicted.module_jobs,
            error_points: compared.split_error_points(),
            error_percent: Some(compared.split_error_percent()).filter(|error| error.is_finite()),
        }
    }
}

fn within(key: &str, number: usize, range: RangeInclusive<usize>) -> anyhow::Result<()> {
    anyhow::ensure!(
        range.contains(&number),
        "{key}: {number} is not within {} to {}",
        range.start(),
        range.end()
    );
    Ok(())
}

/// A bar of 10 per cent; a split counts where it is off by so much of the modules' jobs and by a hundredth of all.
const ERROR_MAX: f64 = 10.0;
