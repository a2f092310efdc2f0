//! A live run is done again in virtual time: what was measured of a machine goes in, what each policy should take there comes out.
//!
//! Path of one prediction: costs that the live system learned and what it measured beside them ([`Measured`]) -> a
//! [`Setup`] of as many cores and workers ([`Machine::setup`]) -> a run under the same plan with claims as the live
//! system's ([`Machine::predict`]) -> [`Prediction`], to be held against a live makespan and split ([`Compared`]).
//!
//! Nothing here is fitted: no number comes from a run that it is compared with but those of the costs' own.

#[cfg(test)]
mod tests;

use evener_core::plan::adaptive::TUNING;
use evener_core::plan::{CLAIM_BYTES_MAX, Policy, Snapshot, Take};
use evener_core::{Nanos, Objective};

use crate::adaptive::{Adaptive, Claims};
use crate::engine::{Faults, ModuleSpec, SchedulerSpec, Stuck};
use crate::lab::{
    Arrivals, Chooser, Class, CpuSide, ModuleCost, ModulePath, ModuleSide, Opening, Path, Planned, Runners,
    Setup, Workload, run,
};
use crate::papers::am3358::MONITOR;

/// The machine of a live run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Cores that the process may use.
    pub cores: usize,
    /// How they are shared, where there are more threads than cores.
    pub scheduler: SchedulerSpec,
    /// CPU workers.
    pub workers: u32,
    /// Jobs that a CPU worker runs side by side at its best; 1 without multi-buffer.
    pub width: u32,
    /// The modules.
    pub modules: Vec<Module>,
}

/// A module of a live run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module {
    /// Requests that it works on at the same time.
    pub units: u32,
    /// Requests that may be outstanding.
    pub depth: u32,
    /// The driver's own threads, where it has some ([`MeasuredOnModule::driver`]).
    pub runners: Runners,
    /// One result in so many is checked at the cost of a CPU job.
    pub check_every: u32,
}

/// What was measured of jobs of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Size in bytes.
    pub bytes: u64,
    /// `c`, as it was learned.
    pub c: Nanos,
    /// Time of a CPU worker for each job beside `c`.
    pub hand_over: Nanos,
    /// What a job takes more of it that is claimed by itself.
    pub single: Nanos,
    /// By module.
    pub on_modules: Vec<MeasuredOnModule>,
}

/// The same on a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredOnModule {
    /// `d`, as it was learned.
    pub d: Nanos,
    /// What of it no thread's clock shows, for it is the kernel's own threads' and interrupts', which go before all others. Such a
    /// module serves one request at a time.
    pub overhead: Nanos,
    /// What of it threads of the driver's own take ([`Module::runners`]).
    pub driver: Nanos,
    /// `h`, as it was learned.
    pub h: Nanos,
    /// What the first request of a run takes beside that, where the driver has threads: a key is opened.
    pub opening: Opening,
    /// Time of the path's thread for each job beside `d` and `h`, without checks.
    pub hand_over: Nanos,
    /// Whether the live policy knows these costs too; otherwise the simulated one has to find out as well.
    pub is_known: bool,
}

/// What a policy should take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// From the first claim to the end of the last job, in milliseconds.
    pub makespan_ms: f64,
    /// Jobs that modules do.
    pub module_jobs: f64,
}

/// Where in a tick a run begins, in thousandths: predictions are medians over these, as live values are medians of runs.
const PHASES: [u32; 3] = [200, 550, 900];

/// Jobs vary by 5 %, as wherever policies are compared.
const JITTER: f64 = 0.05;

impl Machine {
    /// The machine with jobs of one size.
    ///
    /// # Panics
    ///
    /// Where not every module was measured.
    #[must_use]
    pub fn setup(&self, measured: &Measured) -> Setup {
        assert_eq!(self.modules.len(), measured.on_modules.len(), "every module was measured");
        let share = |part: Nanos, on: &MeasuredOnModule| part.as_secs_f64() / on.d.as_secs_f64().max(1e-9);
        let side = |(module, on): (&Module, &MeasuredOnModule)| ModuleSide {
            spec: ModuleSpec {
                units: if on.overhead > Nanos::ZERO { 1 } else { module.units },
                faults: Faults::default(),
            },
            costs: vec![ModuleCost { d: on.d, h: on.h }],
            path: match on.overhead {
                Nanos::ZERO => ModulePath::DIRECT,
                overhead => ModulePath::engine(share(overhead, on), share(on.driver, on), module.runners),
            },
            depth: module.depth,
            priority: 0,
            hand_over: on.hand_over,
            opening: on.opening,
            check_every: module.check_every,
        };
        Setup {
            cores: self.cores,
            scheduler: self.scheduler,
            classes: vec![Class { bytes: measured.bytes, c: measured.c }],
            cpu: CpuSide { workers: self.workers, nice: 0, cap: None, hand_over: measured.hand_over },
            modules: self.modules.iter().zip(&measured.on_modules).map(side).collect(),
            hogs: 0,
            first: Path::Module,
            turn: 0,
            monitor: MONITOR,
            jitter: JITTER,
            seed: 0,
            end_max: Nanos::from_millis(10_000_000),
        }
    }

    /// What `jobs` jobs of the measured size, all there at the start, should take under a policy. The adaptive one
    /// starts informed, and no thread gives way: as it is live.
    ///
    /// # Errors
    ///
    /// [`Stuck`].
    ///
    /// # Panics
    ///
    /// As [`Machine::setup`].
    pub fn predict(&self, measured: &Measured, policy: Policy, jobs: usize) -> Result<Prediction, Stuck> {
        let workload = Workload::new(std::iter::repeat_n(0, jobs), Arrivals::AtOnce, 0);
        let (mut makespans_ms, mut module_jobs) = (Vec::new(), Vec::new());
        for (seed, (phase, turn)) in (1..).zip(self.starts()) {
            let scheduler = self.scheduler.at(phase);
            let setup = Setup { seed, scheduler, turn, ..self.staffed(measured, policy) };
            let report = run(&setup, &workload, &mut *self.chooser(&setup, measured, policy))?;
            makespans_ms.push(report.makespan.as_secs_f64() * 1e3);
            module_jobs.push(f64::from(report.module_jobs()));
        }
        Ok(Prediction { makespan_ms: median(makespans_ms), module_jobs: median(module_jobs) })
    }

    /// What is not known of the start of a run: where in a tick it begins, and which thread has a core alone. No thread has a claim on
    /// either, so each counts the same. On the only core modules' workers go first, as they leave the live system's barrier.
    fn starts(&self) -> Vec<(u32, usize)> {
        let workers = self.workers as usize + self.modules.len();
        let turns = if self.cores > 1 && workers > self.cores { workers } else { 1 };
        PHASES.iter().flat_map(|&phase| (0..turns).map(move |turn| (phase, turn))).collect()
    }

    /// The machine with those workers only that the plan has work for: the live system starts no others, and a dealt
    /// job lies in no queue of theirs.
    fn staffed(&self, measured: &Measured, policy: Policy) -> Setup {
        let mut setup = self.setup(measured);
        let plan = policy.plan(&self.snapshot());
        if plan.is_cpu_only() {
            setup.modules.clear();
        }
        if plan.cpu.jobs_max == 0 {
            setup.cpu.workers = 0;
        }
        if plan.cpu == Take::ONE {
            setup.cpu.hand_over += measured.single;
        }
        setup
    }

    /// Whether the live policy lets the only core and the only module take turns.
    fn takes_turns(&self, measured: &Measured) -> bool {
        let [on] = &measured.on_modules[..] else { return false };
        self.cores == 1 && self.workers == 1 && on.overhead > Nanos::ZERO && on.is_known
    }

    fn snapshot(&self) -> Snapshot {
        let module_workers = u32::try_from(self.modules.len()).unwrap_or(u32::MAX);
        Snapshot { cpu_workers: self.workers, module_workers, cpu_width: self.width }
    }

    fn chooser(&self, setup: &Setup, measured: &Measured, policy: Policy) -> Box<dyn Chooser> {
        if policy != Policy::Adaptive || self.modules.is_empty() {
            return Box::new(Planned::of(policy, self.snapshot(), CLAIM_BYTES_MAX));
        }
        let mut adaptive = Adaptive::new(setup, Objective::Throughput);
        adaptive.inform(setup, |module| measured.on_modules[module].is_known);
        if self.takes_turns(measured) {
            adaptive.take_turns(setup);
        }
        adaptive.claim(Claims { take: policy.plan(&self.snapshot()).cpu, time: TUNING.claim_time });
        Box::new(adaptive)
    }
}

/// The middle one of an odd number of values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What a policy took live, beside what it should have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Jobs of a run.
    pub jobs: usize,
    /// What was measured.
    pub live: Prediction,
    /// What was predicted.
    pub predicted: Prediction,
}

impl Compared {
    /// By how much the predicted makespan is off, in per cent of the live one.
    #[must_use]
    pub fn makespan_error_percent(&self) -> f64 {
        100.0 * (self.predicted.makespan_ms / self.live.makespan_ms - 1.0)
    }

    /// By how much the predicted number of jobs on modules is off, in per cent of all jobs.
    #[must_use]
    pub fn split_error_points(&self) -> f64 {
        100.0 * (self.predicted.module_jobs - self.live.module_jobs) / self.jobs as f64
    }

    /// The same in per cent of what modules did live; nothing where both did nothing.
    #[must_use]
    pub fn split_error_percent(&self) -> f64 {
        let (predicted, measured) = (self.predicted.module_jobs, self.live.module_jobs);
        if predicted == measured { 0.0 } else { 100.0 * (predicted / measured - 1.0) }
    }
}
