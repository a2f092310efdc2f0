//! Live runs of one size, and what they say of costs: the live half of `evener sim live`.
//!
//! Steps of one size: a run of the adaptive policy that learns -> a short run of each path alone, for what a job takes
//! beside its costs ([`Stage::measure`]) -> the runs that are to be predicted, policies in turn ([`Stage::run`]) -> both again, so
//! that a machine that is slow for a while is so for both.

use anyhow::Context as _;
use evener::core::driver::Clock as _;
use evener::core::estimate::PLAN_WIDTH;
use evener::core::plan::Policy;
use evener::core::plan::adaptive::ModuleCapacity;
use evener::core::{Algorithm, Class, Direction, Estimator, Nanos, Objective};
use evener::{DriverFactory as _, SystemClock};
use evener_bench::contender::{Contender, Modules, VisitPlan};
use evener_bench::workload::{Layout, Workload};
use evener_machine::Machine;
use evener_sim::lab::Runners;
use evener_sim::live::{Measured, Module};

use super::module_costs::{CostOrigin, ModuleRuns, Run, medians};
use crate::machine;
use crate::machine::options::ModuleOptions;

/// Part of the jobs that a path alone is measured with; all of them where that is all that is known of it.
const ALONE_PART: usize = 4;
const ALONE_JOBS_MIN: usize = 100;

/// Jobs of a run that shows what the first of them takes beside the others. Assumed, not measured: 16, enough
/// for both outstanding ones to be as usual.
const FIRST_JOBS: usize = 16;

/// Holds one job for longer than the core needs for all others.
const KEEPS_ITS_JOB: &str = "emulated:d=1000+0,h=200000000+0";

/// Measurements that a cost is taken from at least. Assumed, not measured: 5, so that a median has two on either side.
pub(crate) const MEASURE_RUNS: usize = 5;

/// What is run live.
pub(crate) struct Stage<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) algorithm: Algorithm,
    pub(crate) workers: usize,
    pub(crate) bytes: usize,
    pub(crate) jobs: usize,
    pub(crate) learned: Estimator,
    /// What each measurement found.
    pub(crate) measured: Vec<(Measured, Vec<CostOrigin>)>,
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

    /// One round.
    fn once(&self, verify: bool) -> VisitPlan<'_> {
        VisitPlan { budget: Nanos(1), verify, driver_factory: self.machine, learned: &self.learned }
    }

    /// Runs once and compares results with libcrypto's, before anything is measured.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let checked = self.contender(Policy::Adaptive);
        checked.visit(&self.load(ALONE_JOBS_MIN)?, self.once(true))?;
        Ok(())
    }

    /// Learns what jobs cost once more, from what a run on a new machine begins with. The policies' runs begin with what the first
    /// of these knows.
    pub(crate) fn measure(&mut self) -> anyhow::Result<()> {
        let known = std::mem::replace(&mut self.learned, self.machine.costs_to_begin_with());
        let measured = self.measure_once()?;
        if !self.measured.is_empty() {
            self.learned = known;
        }
        self.measured.push(measured);
        Ok(())
    }

    /// What was measured ([`medians`]).
    pub(crate) fn costs(&self) -> (Measured, Vec<CostOrigin>) {
        medians(self.bytes, &self.measured)
    }

    fn measure_once(&mut self) -> anyhow::Result<(Measured, Vec<CostOrigin>)> {
        self.run(Policy::Adaptive)?;
        let is_kernels = self.learned.overhead(0).is_some();
        let part = if is_kernels { 1 } else { ALONE_PART };
        // As many for each worker, so that none waits for the last one.
        let alone = (self.jobs / part).max(ALONE_JOBS_MIN).min(self.jobs).next_multiple_of(self.workers);
        let cpu = self.run_of(Policy::CpuOnly, alone)?;
        let modules = self.run_of(Policy::ModuleOnly, alone)?;
        let first =
            if is_kernels { Some(self.run_of(Policy::ModuleOnly, FIRST_JOBS.min(alone))?) } else { None };
        anyhow::ensure!(modules.module_jobs > 0, "no module does {} of {} B", self.algorithm, self.bytes);
        let waits = if is_kernels { self.waits(alone)? } else { Nanos::ZERO };
        let cpu_alone = cpu_alone(&cpu, alone);
        let c = self.learned.c(self.class(), self.bytes, PLAN_WIDTH).unwrap_or(cpu_alone);
        let each = Nanos(cpu.makespan.0 * self.workers as u64 / alone as u64);
        let runs = ModuleRuns {
            machine: self.machine,
            learned: &self.learned,
            class: self.class(),
            bytes: self.bytes,
            alone: &modules,
            first: first.as_ref(),
        };
        let (on_modules, sources) = runs.costs_of_each(c, waits).into_iter().unzip();
        // Beside a module behind the kernel a run begins with what a calibration knows, of single jobs.
        let (c, hand_over) = if is_kernels { (each, Nanos::ZERO) } else { (c, each - cpu_alone) };
        let single = if is_kernels { self.single(alone)? } else { Nanos::ZERO };
        Ok((Measured { bytes: self.bytes as u64, c, hand_over, single, on_modules }, sources))
    }

    /// What a job takes more of the core that claims it by itself than in a long claim: core time of this process in runs of either kind,
    /// beside a module that takes one job and keeps it, so that the only core works undisturbed. What runs of a few jobs take is the same
    /// for all.
    fn single(&self, jobs: usize) -> anyhow::Result<Nanos> {
        let beside = ModuleOptions {
            modules: vec![KEEPS_ITS_JOB.parse().map_err(anyhow::Error::msg)?],
            cpu_cost: None,
        };
        let beside = machine::whole(&beside)?;
        let few = ALONE_JOBS_MIN.min(jobs);
        let core_of = |policy, jobs| {
            let load = self.load(jobs)?;
            let (objective, workers, modules) = (Objective::Throughput, self.workers, Modules::Emulated);
            let run = Contender::Evener { policy, objective, workers, modules, singly: false };
            let core = SystemClock.process_time();
            run.round(&load, &beside, &beside.costs_to_begin_with()).context("it is Evener")?;
            anyhow::Ok(SystemClock.process_time() - core)
        };
        let beyond = |policy| anyhow::Ok(core_of(policy, jobs)? - core_of(policy, few)?);
        let [long, one] = [beyond(Policy::CpuOnly)?, beyond(Policy::SharedQueue)?];
        Ok(Nanos((one - long).0 / (jobs - few).max(1) as u64))
    }

    fn class(&self) -> Class {
        Class::of(self.algorithm, Direction::Encrypt, self.bytes, true)
    }

    /// Time of a request in which no thread of this process works, where one waits for each: the module's work and what is on no
    /// clock.
    fn waits(&self, jobs: usize) -> anyhow::Result<Nanos> {
        let load = self.load(jobs)?;
        let singly = Contender::Evener {
            policy: Policy::ModuleOnly,
            objective: Objective::Throughput,
            workers: 0,
            modules: Modules::Real,
            singly: true,
        };
        let clock = SystemClock;
        let (start, core) = (clock.now(), clock.process_time());
        // What else there is to do, memory and threads, is work of this process.
        singly.visit(&load, self.once(false))?;
        Ok(Nanos(((clock.now() - start) - (clock.process_time() - core)).0 / jobs.max(1) as u64))
    }

    /// The modules as the simulator takes them.
    pub(crate) fn modules(&self) -> Vec<Module> {
        let checks = self.machine.modules().into_iter().map(|module| module.check_every).collect::<Vec<_>>();
        let module =
            |((capacity, (count, together)), check_every): ((ModuleCapacity, (u32, u32)), u32)| Module {
                units: capacity.units,
                depth: capacity.depth,
                runners: Runners { count, together },
                check_every,
            };
        let capacities = self.machine.capacities().into_iter().zip(self.machine.runners());
        capacities.zip(checks).map(module).collect()
    }
}

/// `c` in a run of the CPU alone, by the sampled bursts.
fn cpu_alone(run: &Run, jobs: usize) -> Nanos {
    let core = run.report.total().core_time().unwrap_or_default();
    Nanos(core.0 / jobs.max(1) as u64)
}
