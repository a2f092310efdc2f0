//! Live runs of one size, and what they say of costs: the live half of `evener sim live`.
//!
//! The way of one size: a run of the adaptive policy that learns -> a short run of each path alone, for what a job takes
//! beside its costs ([`Stage::measure`]), five times -> the runs that are to be predicted, policies in turn ([`Stage::run`]).

use anyhow::Context as _;
use evener::core::plan::Policy;
use evener::core::{Algorithm, Class, Direction, Estimator, Nanos, Objective};
use evener::{Machinery as _, Report};
use evener_bench::contender::{Contender, Modules};
use evener_bench::workload::{Layout, Workload};
use evener_sim::live::{Measured, MeasuredOnModule, Module};
use serde::Serialize;

use crate::machinery::Machine;

/// Width of the bursts for which plans want `c`, as the live system's.
const WIDTH: usize = 16;

/// Samples of `d` and `h` from which on a learned cost is used; below them, what the path alone took.
const SAMPLES_MIN: u32 = 16;

/// Part of the jobs that a path alone is measured with.
const ALONE_PART: usize = 4;
const ALONE_JOBS_MIN: usize = 100;

/// Runs that a cost is taken from. A guess.
const MEASURE_RUNS: usize = 5;

/// One run.
pub(crate) struct Run {
    /// From the barrier to the end of the last job.
    pub(crate) makespan: Nanos,
    /// Jobs that modules did.
    pub(crate) module_jobs: u64,
    report: Report,
}

/// What is run live.
pub(crate) struct Stage<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) algorithm: Algorithm,
    pub(crate) workers: usize,
    pub(crate) bytes: usize,
    pub(crate) jobs: usize,
    pub(crate) learned: Estimator,
}

/// Where a module's costs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Source {
    /// The adaptive policy learned them.
    Learned,
    /// It sent too few jobs there; they are those of the module alone.
    Alone,
}

impl Stage<'_> {
    /// Runs a policy once, informed by what was learned so far.
    pub(crate) fn run(&mut self, policy: Policy) -> anyhow::Result<Run> {
        self.run_of(policy, self.jobs)
    }

    fn run_of(&mut self, policy: Policy, jobs: usize) -> anyhow::Result<Run> {
        let load = self.load(jobs)?;
        let visit =
            self.contender(policy).round(&load, self.machine, &self.learned).context("it is Evener")?;
        let report = visit.report.context("Evener reports")?;
        if policy == Policy::Adaptive {
            self.learned.clone_from(&report.learned);
        }
        Ok(Run { makespan: visit.rounds[0], module_jobs: report.modules().jobs, report })
    }

    fn load(&self, jobs: usize) -> anyhow::Result<Workload> {
        let sizes = vec![self.bytes; jobs];
        Ok(Workload::new(self.algorithm, Direction::Encrypt, Layout::OutOfPlace, &sizes, self.workers)?)
    }

    fn contender(&self, policy: Policy) -> Contender {
        let is_real = self.machine.emulated().is_empty();
        let modules = if is_real { Modules::Real } else { Modules::Emulated };
        let (objective, workers) = (Objective::Throughput, self.workers);
        Contender::Evener { policy, objective, workers, modules, singly: false }
    }

    /// Learns what jobs cost: of a few runs the medians of core times; and the least of what is the rest of a time that
    /// passed, which other programs make longer and never shorter. Before them one run whose results are compared with
    /// libcrypto's.
    pub(crate) fn measure(&mut self) -> anyhow::Result<(Measured, Vec<Source>)> {
        let load = self.load(ALONE_JOBS_MIN)?;
        let checked = self.contender(Policy::Adaptive);
        checked.visit(&load, Nanos(1), true, self.machine, &self.learned)?;
        let (mut runs, mut estimators) = (Vec::new(), Vec::new());
        for _ in 0..MEASURE_RUNS {
            self.learned = self.machine.costs_of_cores();
            runs.push(self.measure_once()?);
            estimators.push(self.learned.clone());
        }
        let sources = runs[MEASURE_RUNS - 1].1.clone();
        let sorted = |of: &dyn Fn(&Measured) -> Nanos| {
            let mut values: Vec<Nanos> = runs.iter().map(|(measured, _)| of(measured)).collect();
            values.sort_unstable();
            values
        };
        let median = |of: &dyn Fn(&Measured) -> Nanos| sorted(of)[MEASURE_RUNS / 2];
        let least = |of: &dyn Fn(&Measured) -> Nanos| sorted(of)[0];
        let on_module = |index: usize| MeasuredOnModule {
            d: median(&|of| of.on_modules[index].d),
            h: least(&|of| of.on_modules[index].h),
            hand_over: least(&|of| of.on_modules[index].hand_over),
            is_known: runs[MEASURE_RUNS - 1].0.on_modules[index].is_known,
        };
        let on_modules = (0..sources.len()).map(on_module).collect();
        // The policies' runs start with what the least disturbed of these knows.
        let h = |learned: &Estimator| {
            learned.on_module(0, self.class()).h.at(self.bytes).unwrap_or(Nanos(u64::MAX))
        };
        self.learned = estimators.into_iter().min_by_key(h).unwrap_or_default();
        let (c, hand_over) = (median(&|of| of.c), least(&|of| of.hand_over));
        Ok((Measured { bytes: self.bytes as u64, c, hand_over, on_modules }, sources))
    }

    fn measure_once(&mut self) -> anyhow::Result<(Measured, Vec<Source>)> {
        self.run(Policy::Adaptive)?;
        let alone = (self.jobs / ALONE_PART).max(ALONE_JOBS_MIN).min(self.jobs);
        let cpu = self.run_of(Policy::CpuOnly, alone)?;
        let modules = self.run_of(Policy::ModuleOnly, alone)?;
        anyhow::ensure!(modules.module_jobs > 0, "no module does {} of {} B", self.algorithm, self.bytes);
        let cpu_alone = cpu_alone(&cpu, alone);
        let c = self.learned.c(self.class(), self.bytes, WIDTH).unwrap_or(cpu_alone);
        let each = Nanos(cpu.makespan.0 * self.workers as u64 / alone as u64);
        let (on_modules, sources) = self.on_modules(&modules, c).into_iter().unzip();
        let measured = Measured { bytes: self.bytes as u64, c, hand_over: each - cpu_alone, on_modules };
        Ok((measured, sources))
    }

    fn class(&self) -> Class {
        Class::of(self.algorithm, Direction::Encrypt, self.bytes, true)
    }

    /// Costs of each module, and its hand-over from the run in which modules were alone: time from one result to the
    /// next less `d + h` and the checks.
    fn on_modules(&self, alone: &Run, c: Nanos) -> Vec<(MeasuredOnModule, Source)> {
        let reports = alone.report.workers.iter().filter_map(|worker| worker.module.as_ref());
        let of_module = |(index, report): (usize, &evener::ModuleReport)| {
            let station = self.machine.stations()[index];
            let depth = u64::from(station.depth);
            let jobs = report.tally.jobs.max(1);
            let checks = Nanos(c.0.saturating_mul(report.checked));
            let unseen = self.learned.unseen(index).unwrap_or_default().at(self.bytes as u64);
            let seen = Nanos((report.tally.sampled.core - checks).0 / jobs);
            let between = Nanos(report.tally.sampled.wall.0 / jobs);
            // No request takes more core time than all cores have until the next is done, whatever a calibration says.
            let cores = evener::core_budget().workers() as u64;
            let d = (seen + unseen).min(Nanos(between.0 * cores));
            // A request that waits behind another is not worked on.
            let units = u64::from(station.units.min(station.depth));
            let h = Nanos(between.0 * units) - if depth == 1 { d } else { Nanos::ZERO };
            let whole = Nanos((alone.makespan - checks).0 / jobs);
            let hand_over = if depth == 1 { whole - between } else { Nanos::ZERO };
            let known = self.learned.on_module(index, self.class());
            let is_known = known.d.samples > 0;
            match known.at(self.bytes).filter(|_| known.d.samples >= SAMPLES_MIN) {
                Some((d, h)) => (MeasuredOnModule { d, h, hand_over, is_known }, Source::Learned),
                None => (MeasuredOnModule { d, h, hand_over, is_known }, Source::Alone),
            }
        };
        reports.enumerate().map(of_module).collect()
    }

    /// The modules as the simulator takes them.
    pub(crate) fn modules(&self) -> Vec<Module> {
        let checks = self.machine.modules().into_iter().map(|module| module.check_every).collect::<Vec<_>>();
        let module = |(station, check_every): (evener::core::plan::adaptive::Station, u32)| Module {
            units: station.units,
            depth: station.depth,
            check_every,
        };
        self.machine.stations().into_iter().zip(checks).map(module).collect()
    }
}

/// `c` in a run of the CPU alone, by the sampled bursts.
fn cpu_alone(run: &Run, jobs: usize) -> Nanos {
    let core = run.report.total().core_time().unwrap_or_default();
    Nanos(core.0 / jobs.max(1) as u64)
}
