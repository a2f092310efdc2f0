//! A live run again in virtual time: what was measured of a machine in, what each policy should take there out.
//!
//! Path of one prediction: costs that the live system learned and what it measured beside them ([`Measured`]) -> a
//! [`Setup`] of as many cores and workers ([`Machine::setup`]) -> a run under the same plan with claims as the live
//! system's ([`Machine::predict`]) -> [`Prediction`], to be held against a live makespan and split ([`Compared`]).
//!
//! Nothing here is fitted: no number comes from a run that it is compared with but those of the costs' own.

use evener_core::plan::adaptive::CLAIM_TIME;
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
    pub unseen: Nanos,
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
                units: if on.unseen > Nanos::ZERO { 1 } else { module.units },
                faults: Faults::default(),
            },
            costs: vec![ModuleCost { d: on.d, h: on.h }],
            path: match on.unseen {
                Nanos::ZERO => ModulePath::DIRECT,
                unseen => ModulePath::engine(share(unseen, on), share(on.driver, on), module.runners),
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

    /// What is not known of the start of a run: where in a tick it begins, and who has a core alone. No thread has a claim on
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
        self.cores == 1 && self.workers == 1 && on.unseen > Nanos::ZERO && on.is_known
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
        adaptive.claim(Claims { take: policy.plan(&self.snapshot()).cpu, time: CLAIM_TIME });
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
        let (ours, theirs) = (self.predicted.module_jobs, self.live.module_jobs);
        if ours == theirs { 0.0 } else { 100.0 * (ours / theirs - 1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds;
    use evener_core::Cost;

    fn one() -> Machine {
        Machine {
            cores: 2,
            scheduler: SchedulerSpec::linux(250, 0),
            workers: 1,
            width: 1,
            modules: Vec::new(),
        }
    }

    /// Paper 002, table 2, 16 KiB.
    const C: Nanos = Nanos(1_178_960);
    const D: Nanos = Nanos(330_860);
    const H: Nanos = Nanos(403_570);
    const JOBS: usize = 4_000;

    fn machine(workers: u32, check_every: u32) -> Machine {
        let runners = Runners::ONE;
        Machine { workers, modules: vec![Module { units: 1, depth: 1, runners, check_every }], ..one() }
    }

    fn measured(hand_over: Nanos) -> Measured {
        let on_modules =
            vec![MeasuredOnModule { d: D, h: H, hand_over, is_known: true, ..Default::default() }];
        Measured { bytes: 16_384, c: C, hand_over, single: Nanos::ZERO, on_modules }
    }

    fn ms(time: Nanos) -> f64 {
        time.as_secs_f64() * 1e3
    }

    #[track_caller]
    fn near(ours: f64, theirs: f64, part: f64) {
        assert!((ours / theirs - 1.0).abs() < part, "{ours} for {theirs}");
    }

    #[test]
    fn a_job_claimed_by_itself_takes_more_where_plans_claim_so_and_nowhere_else() {
        let of = |policy, single| {
            let measured = Measured { single, ..measured(Nanos::ZERO) };
            machine(1, 0).predict(&measured, policy, JOBS).unwrap()
        };
        for policy in [Policy::CpuOnly, Policy::ModuleOnly, Policy::RoundRobin] {
            assert_eq!(of(policy, Nanos::ZERO), of(policy, C), "{policy}");
        }
        // Twice as dear a core beside the same module.
        let [usual, dear] = [Nanos::ZERO, C].map(|single| of(Policy::SharedQueue, single));
        assert!(
            dear.makespan_ms > usual.makespan_ms && dear.module_jobs > usual.module_jobs,
            "{usual:?} {dear:?}"
        );
    }

    #[test]
    fn one_path_alone_takes_its_costs_its_hand_over_and_its_checks() {
        let (hand_over, jobs) = (Nanos::from_micros(30), JOBS as f64);
        let of = |policy| machine(1, 32).predict(&measured(hand_over), policy, JOBS).unwrap();
        let (cpu, module) = (of(Policy::CpuOnly), of(Policy::ModuleOnly));
        near(cpu.makespan_ms, jobs * ms(C + hand_over), 0.002);
        near(module.makespan_ms, jobs * (ms(D + H + hand_over) + ms(C) / 32.0), 0.003);
        assert_eq!((cpu.module_jobs, module.module_jobs), (0.0, jobs));
    }

    #[test]
    fn with_a_core_for_each_path_a_shared_queue_takes_what_both_rates_add_up_to() {
        let of = |policy| machine(1, 0).predict(&measured(Nanos::ZERO), policy, JOBS).unwrap();
        let rate = 1.0 / ms(C) + 1.0 / ms(D + H);
        for policy in [Policy::SharedQueue, Policy::Adaptive] {
            let got = of(policy);
            near(got.makespan_ms, JOBS as f64 / rate, 0.02);
            near(got.module_jobs, JOBS as f64 / rate / ms(D + H), 0.02);
        }
        // Dealt out evenly, the slower of the two paths is waited for.
        let dealt = of(Policy::RoundRobin);
        near(dealt.makespan_ms, JOBS as f64 / 2.0 * ms(C), 0.01);
        assert_eq!(dealt.module_jobs, JOBS as f64 / 2.0);
    }

    #[test]
    fn on_one_core_nobody_beats_the_lower_bound_of_the_costs() {
        let machine = Machine { cores: 1, ..machine(1, 0) };
        let bound = bounds::lower_bound(&[(Cost { c: C, d: D, h: H }, 4_000)], bounds::Requests::Synchronous);
        for policy in Policy::ALL {
            let got = machine.predict(&measured(Nanos::ZERO), policy, JOBS).unwrap();
            assert!(got.makespan_ms > 0.99 * bound / 1e6, "{policy}: {got:?}");
        }
    }

    /// Part by which such a path may be longer: the kernel has the next request at the last moment, and jobs vary.
    const NO_SLACK: f64 = 0.06;

    /// One core and a module behind the kernel that does a job in 240 us by itself, of which the kernel works for 140.
    fn behind_the_kernel(c: u64, unseen: u64) -> (Machine, Measured) {
        let runners = Runners { count: 2, together: 1 };
        let machine =
            Machine { modules: vec![Module { units: 2, depth: 2, runners, check_every: 0 }], ..one() };
        let [c, d, unseen, h] = [c, 240, unseen, 100].map(Nanos::from_micros);
        let driver = Nanos((d - unseen).0 / 2);
        let on_modules =
            vec![MeasuredOnModule { d, unseen, driver, h, is_known: true, ..Default::default() }];
        (
            Machine { cores: 1, ..machine },
            Measured { bytes: 16_384, c, hand_over: Nanos::ZERO, single: Nanos::ZERO, on_modules },
        )
    }

    #[test]
    fn the_kernels_part_of_a_path_goes_before_a_core_that_works() {
        let of = |policy, unseen| {
            let (machine, measured) = behind_the_kernel(400, unseen);
            machine.predict(&measured, policy, 1_000).unwrap()
        };
        near(of(Policy::ModuleOnly, 140).makespan_ms, 240.0, NO_SLACK);
        // With all of its part in one thread a path gets half of the core; what it is charged for is 100 us of 240.
        let (shared, charged) = (of(Policy::SharedQueue, 140), of(Policy::SharedQueue, 0));
        near(charged.module_jobs, 1_000.0 / (1.0 + 240.0 / 400.0), 0.05);
        assert!(shared.module_jobs > 1.15 * charged.module_jobs, "{shared:?} {charged:?}");
    }

    #[test]
    fn what_a_module_takes_beyond_its_paths_core_time_is_seen_beside_a_core_that_works() {
        let of = |policy, h| {
            let (machine, mut measured) = behind_the_kernel(85, 70);
            measured.on_modules[0].h = Nanos::from_micros(h);
            machine.predict(&measured, policy, 1_000).unwrap()
        };
        for h in [30, 170] {
            near(of(Policy::ModuleOnly, h).makespan_ms, 240.0, NO_SLACK);
        }
        // Each thread of the path has its share of the core: beside a core that works, what is shorter than that share is not seen.
        let [soon, late] = [30, 400].map(|h| of(Policy::SharedQueue, h).module_jobs);
        assert!(soon > 1.3 * late, "{soon} {late}");
    }

    #[test]
    fn where_core_and_module_take_turns_one_of_them_does_nearly_all() {
        let of = |c| {
            let (machine, measured) = behind_the_kernel(c, 140);
            machine.predict(&measured, Policy::Adaptive, 1_000).unwrap()
        };
        let (fast, slow) = (of(200), of(300));
        near(fast.makespan_ms, 200.0, 0.02);
        near(slow.makespan_ms, 240.0, NO_SLACK);
        assert!(fast.module_jobs < 1.0 && slow.module_jobs > 980.0, "{fast:?} {slow:?}");
    }

    #[test]
    fn with_more_threads_than_cores_each_starts_alone_on_one_as_often_as_the_others() {
        let each = Nanos::from_millis(1);
        let on = MeasuredOnModule { d: each, is_known: true, ..Default::default() };
        let measured =
            Measured { bytes: 8, c: each, hand_over: Nanos::ZERO, single: Nanos::ZERO, on_modules: vec![on] };
        let machine = machine(2, 0);
        let jobs_of_module = |turn| {
            let setup = Setup { turn, ..machine.staffed(&measured, Policy::SharedQueue) };
            let workload = Workload::new(std::iter::repeat_n(0, 120), Arrivals::AtOnce, 0);
            let mut chooser = machine.chooser(&setup, &measured, Policy::SharedQueue);
            run(&setup, &workload, &mut *chooser).unwrap().module_jobs()
        };
        let mut jobs: Vec<u32> = (0..3).map(jobs_of_module).collect();
        jobs.sort_unstable();
        // Alone it does half of all, beside another a quarter.
        assert!(jobs[1] <= 36 && (54..=66).contains(&jobs[2]), "{jobs:?}");
        assert_eq!(machine.starts().len(), 9);
    }

    #[test]
    fn long_jobs_are_claimed_by_bytes_so_that_workers_end_together() {
        // Of 68 jobs a core with lanes claims two fills, which the module would do ten times as fast; of 64 KiB one.
        let wide = Machine { width: 16, ..machine(1, 0) };
        let fast = vec![MeasuredOnModule { d: D, is_known: true, ..Default::default() }];
        let long = Measured {
            bytes: 64 << 10,
            c: Nanos(10 * D.0),
            hand_over: Nanos::ZERO,
            single: Nanos::ZERO,
            on_modules: fast,
        };
        let short = Measured { bytes: 4 << 10, ..long.clone() };
        let of = |measured| wide.predict(measured, Policy::SharedQueue, 68).unwrap();
        near(of(&short).makespan_ms, 320.0 * ms(D), 0.05);
        assert!(of(&long).makespan_ms < 200.0 * ms(D), "{:?}", of(&long));
    }

    #[test]
    fn what_the_live_policy_does_not_know_the_simulated_one_finds_out_where_it_is_worth_it() {
        let unknown = |mut measured: Measured| {
            measured.on_modules[0].is_known = false;
            measured
        };
        let of =
            |jobs| machine(1, 0).predict(&unknown(measured(Nanos::ZERO)), Policy::Adaptive, jobs).unwrap();
        // 10 jobs are 12 ms of core time: a short run never tries.
        assert_eq!(of(10).module_jobs, 0.0);
        assert!(of(400).module_jobs > 200.0, "{:?}", of(400));
    }

    #[test]
    fn errors_are_told_in_parts_of_what_was_measured() {
        let (live, predicted) = (
            Prediction { makespan_ms: 200.0, module_jobs: 50.0 },
            Prediction { makespan_ms: 190.0, module_jobs: 60.0 },
        );
        let compared = Compared { jobs: 400, live, predicted };
        near(compared.makespan_error_percent(), -5.0, 1e-9);
        near(compared.split_error_points(), 2.5, 1e-9);
        near(compared.split_error_percent(), 20.0, 1e-9);
        let none = Compared { live: Prediction { module_jobs: 0.0, ..live }, ..compared };
        assert_eq!(none.split_error_percent(), f64::INFINITY);
    }
}
