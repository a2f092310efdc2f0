//! What the measurements of one size come to: costs of each module in one run, and medians over all.

use evener::Report;
use evener::core::{Class, Estimator, Nanos};
use evener_machine::Machine;
use evener_sim::lab::Opening;
use evener_sim::live::{Measured, MeasuredOnModule};
use serde::{Deserialize, Serialize};

use super::module_path::{Path, behind_the_kernel};

/// Samples of `d` and `h` from which on a learned cost is used; below them, what the path alone took.
const SAMPLES_MIN: u32 = 16;

/// One run.
pub(crate) struct Run {
    /// From the barrier to the end of the last job.
    pub(crate) makespan: Nanos,
    /// Jobs that modules did.
    pub(crate) module_jobs: u64,
    pub(super) report: Report,
}

/// Where a module's costs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CostOrigin {
    /// The adaptive policy learned them.
    Learned,
    /// It sent too few jobs there; they are those of the module alone.
    Alone,
}

/// Runs in which modules were alone, and what was known then.
pub(super) struct ModuleRuns<'r> {
    pub(super) machine: &'r Machine,
    pub(super) learned: &'r Estimator,
    pub(super) class: Class,
    pub(super) bytes: usize,
    pub(super) alone: &'r Run,
    /// A run of a few jobs, behind the kernel.
    pub(super) first: Option<&'r Run>,
}

impl ModuleRuns<'_> {
    /// Costs of each module, and its hand-over from the run in which modules were alone: time from one result to the
    /// next less `d + h` and the checks. `c` is a core's, `waits` what a request sleeps where one waits for each.
    pub(super) fn costs_of_each(&self, c: Nanos, waits: Nanos) -> Vec<(MeasuredOnModule, CostOrigin)> {
        let Self { alone, first, .. } = *self;
        let reports = alone.report.workers.iter().filter_map(|worker| worker.module.as_ref());
        let of_module = |(index, report): (usize, &evener::ModuleReport)| {
            let capacity = self.machine.capacities()[index];
            let depth = u64::from(capacity.depth);
            let jobs = report.tally.jobs.max(1);
            let checks = Nanos(c.0.saturating_mul(report.checked));
            let seen = Nanos((report.tally.sampled.core - checks).0 / jobs);
            let between = Nanos(report.tally.sampled.wall.0 / jobs);
            let known = self.learned.on_module(index, self.class);
            let is_known = known.d.samples > 0;
            if let Some((overhead, first)) = self.learned.overhead(index).zip(first) {
                let of = |run: &Run| Path::of(&run.report, run.makespan, index, c).unwrap_or_default();
                let path = [of(alone), of(first)];
                let on = behind_the_kernel(path, overhead.at(self.bytes as u64), waits);
                return (MeasuredOnModule { is_known, ..on }, CostOrigin::Alone);
            }
            let d = seen;
            // A request that waits behind another is not worked on.
            let units = u64::from(capacity.units.min(capacity.depth));
            let h = Nanos(between.0 * units) - if depth == 1 { d } else { Nanos::ZERO };
            let whole = Nanos((alone.makespan - checks).0 / jobs);
            let hand_over = if depth == 1 { whole - between } else { Nanos::ZERO };
            match known.at(self.bytes).filter(|_| known.d.samples >= SAMPLES_MIN) {
                Some((d, h)) => (
                    MeasuredOnModule { d, h, hand_over, is_known, ..Default::default() },
                    CostOrigin::Learned,
                ),
                None => {
                    (MeasuredOnModule { d, h, hand_over, is_known, ..Default::default() }, CostOrigin::Alone)
                }
            }
        };
        reports.enumerate().map(of_module).collect()
    }
}

/// What was measured: medians of core times; and the least of what is the rest of a time that passed, which other programs make
/// longer and never shorter. Of a module behind the kernel that rest is median, too: what makes the core slower makes it longer,
/// and the costs are to be of one speed.
///
/// # Panics
///
/// Where nothing was measured.
pub(super) fn medians(bytes: usize, runs: &[(Measured, Vec<CostOrigin>)]) -> (Measured, Vec<CostOrigin>) {
    let (last, sources) = runs.last().expect("it was measured");
    let sorted = |of: &dyn Fn(&Measured) -> Nanos| {
        let mut values: Vec<Nanos> = runs.iter().map(|(measured, _)| of(measured)).collect();
        values.sort_unstable();
        values
    };
    let median = |of: &dyn Fn(&Measured) -> Nanos| sorted(of)[runs.len() / 2];
    let least = |of: &dyn Fn(&Measured) -> Nanos| sorted(of)[0];
    let on_module = |index: usize| {
        let is_kernels = last.on_modules[index].overhead > Nanos::ZERO;
        let h = |of: &Measured| of.on_modules[index].h;
        MeasuredOnModule {
            d: median(&|of| of.on_modules[index].d),
            overhead: median(&|of| of.on_modules[index].overhead),
            driver: median(&|of| of.on_modules[index].driver),
            opening: Opening {
                own: median(&|of| of.on_modules[index].opening.own),
                driver: median(&|of| of.on_modules[index].opening.driver),
                wait: median(&|of| of.on_modules[index].opening.wait),
            },
            h: if is_kernels { median(&h) } else { least(&h) },
            hand_over: least(&|of| of.on_modules[index].hand_over),
            is_known: last.on_modules[index].is_known,
        }
    };
    let on_modules = (0..sources.len()).map(on_module).collect();
    let (c, hand_over, single) = (median(&|of| of.c), least(&|of| of.hand_over), median(&|of| of.single));
    (Measured { bytes: bytes as u64, c, hand_over, single, on_modules }, sources.clone())
}
