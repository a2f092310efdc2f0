//! The adaptive policy runs here as on the live system: the same planner, fed with what simulated jobs took.
//!
//! A worker asks -> the budget says whether core time may be spent -> the plan is made anew where it is old or
//! something was learned for the first time -> the table answers -> what the job took goes to the estimator, the
//! budget and the guard (`guard_feed.rs`). Nothing here decides; all of that is `evener_core`'s.

mod busy_index;
mod guard_feed;

use std::num::NonZero;

use evener_core::budget::{Budget, PercentOutOfRange};
use evener_core::estimate::{Estimator, Learned, ModuleSample, OnModule, width_class};
use evener_core::guard::Counters;
use evener_core::plan::Take;
use evener_core::plan::adaptive::{
    Choice as Decision, ClassInput, CostOnModule, ModuleCapacity, NICE_TO_YIELD, NICE_WITH_COMPETITORS,
    PlanInput, TRIES_MAX, Table, all_of_turn, cap_percent, plan,
};
use evener_core::{Algorithm, Class, Direction, Method, Nanos, Objective};

use crate::lab::{Choice, Chooser, ModuleCost, Path, Sample, Setup, View, Which, Workload};
use busy_index::BusyIndex;
use guard_feed::GuardFeed;

/// Age after which a plan is made anew.
const PLAN_AGE_MAX: Nanos = Nanos::from_millis(2);

/// How often and how long cores leave a job of a class to a module that is to be tried.
const LEAVES_MAX: u32 = 2 * TRIES_MAX;
const LEAVE_FOR: Nanos = Nanos::from_micros(50);

/// Samples that a module's cost is worth which a run starts with: enough for no worker to try it again. Assumed, not
/// measured: 64.
const KEPT_SAMPLES: u32 = 64;

/// The adaptive policy, learning while it runs.
pub struct Adaptive {
    estimator: Estimator,
    objective: Objective,
    cores: NonZero<usize>,
    /// By class of the setup.
    classes: Vec<Class>,
    capacities: Vec<ModuleCapacity>,
    /// What CPU workers hold, and what modules' workers do.
    cpu: BusyIndex,
    modules: BusyIndex,
    lost: Vec<bool>,
    /// How much a CPU worker takes at a time.
    claims: Claims,
    table: Option<(Nanos, Table)>,
    /// What the user allows; both paths ask.
    budget: Option<Budget>,
    /// What is fair beside other programs.
    fair: Option<Budget>,
    /// By class: how often cores may yet leave a job to a module that is to be tried.
    leaves: Vec<u32>,
    guard_feed: GuardFeed,
    takes_turns: bool,
}

/// How many jobs a CPU worker takes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims {
    /// As the plan limits it.
    pub take: Take,
    /// Core time of a claim, about; the least claim is one job.
    pub time: Nanos,
}

impl Claims {
    /// One job.
    pub const ONE: Self = Self { take: Take::ONE, time: Nanos::ZERO };

    /// Jobs to take of `waiting` that take `each`.
    fn jobs(self, waiting: u32, each: Nanos) -> u32 {
        let most = self.time.0.checked_div(each.0).map_or(1, |jobs| u32::try_from(jobs).unwrap_or(u32::MAX));
        let Take { jobs_max, jobs_min, share } = self.take;
        let take = Take { jobs_max: jobs_max.min(most.max(1)), jobs_min: jobs_min.min(most.max(1)), share };
        u32::try_from(take.claim(waiting as usize)).unwrap_or(u32::MAX).min(waiting).max(1)
    }
}

impl Adaptive {
    /// A policy that knows nothing of the costs yet.
    ///
    /// # Panics
    ///
    /// Where the setup has no core.
    #[must_use]
    pub fn new(setup: &Setup, objective: Objective) -> Self {
        let class = |bytes: u64| Class::of(Algorithm::Aes128Cbc, Direction::Encrypt, size(bytes), false);
        let capacity =
            |side: &crate::lab::ModuleSide| ModuleCapacity { units: side.spec.units, depth: side.depth };
        let mut policy = Self {
            estimator: Estimator::new(setup.modules.len()),
            objective,
            cores: NonZero::new(setup.cores).expect("a machine has a core"),
            classes: setup.classes.iter().map(|of| class(of.bytes)).collect(),
            capacities: setup.modules.iter().map(capacity).collect(),
            cpu: BusyIndex::new(setup.cpu.workers as usize),
            modules: BusyIndex::new(setup.modules.len()),
            lost: vec![false; setup.modules.len()],
            claims: Claims::ONE,
            table: None,
            budget: None,
            fair: None,
            leaves: vec![LEAVES_MAX; setup.classes.len()],
            guard_feed: GuardFeed::new(setup),
            takes_turns: false,
        };
        let cap = cap_percent(objective, fair_share(setup.cores, setup.hogs));
        if setup.hogs > 0 {
            policy.fair = Some(Budget::new(cap, policy.cores).expect("a cap is a share of the cores"));
        }
        policy
    }

    /// Keeps to so many per cent of the cores.
    ///
    /// # Errors
    ///
    /// [`PercentOutOfRange`].
    pub fn keep_to(&mut self, percent: u32) -> Result<(), PercentOutOfRange> {
        self.budget = Some(Budget::new(percent, self.cores)?);
        Ok(())
    }

    /// Gives CPU workers the nice value that the table asks for once it knows the costs of these jobs
    /// ([`Table::core_nice`]). The live system has a thread for each value and lets one of them work; here a thread
    /// keeps its value for the whole run.
    pub fn arrange(setup: &mut Setup, jobs: &Workload) {
        let pays =
            |class: usize| setup.modules.iter().any(|side| side.costs[class].d < setup.classes[class].c);
        setup.cpu.nice = match jobs.jobs().iter().any(|job| pays(job.class)) {
            true if setup.hogs == 0 => NICE_TO_YIELD,
            true => NICE_WITH_COMPETITORS,
            false => 0,
        };
    }

    /// Starts informed: with the costs of the setup, as a run does that finds kept ones. Of a module only where it
    /// `knows` it.
    pub fn inform(&mut self, setup: &Setup, knows: impl Fn(usize) -> bool) {
        for (at, &class) in self.classes.iter().enumerate() {
            let bytes = setup.classes[at].bytes;
            let kept = |cost: Nanos, samples| Learned::kept(as_f64(cost.0), as_f64(bytes), samples);
            // One sample: what was worked before this run makes no try worth while.
            self.estimator.keep_cpu(class, Method::Plain, width_class(1), kept(setup.classes[at].c, 1));
            for (module, side) in setup.modules.iter().enumerate().filter(|(module, _)| knows(*module)) {
                let [d, h] = [side.costs[at].d, side.costs[at].h].map(|cost| kept(cost, KEPT_SAMPLES));
                let known = OnModule { d, h, tries: TRIES_MAX, ..OnModule::default() };
                self.estimator.keep_module(module, class, known);
            }
        }
    }

    /// Core and module take turns, as live where there is one of each and the module is behind the kernel: costs stay those that
    /// it was informed of, for who works beside the other says nothing; a path that leaves little of the core takes all of it; and no
    /// guard locks anything. What turns take is left out.
    pub fn take_turns(&mut self, setup: &Setup) {
        self.takes_turns = true;
        let (side, &class) = (&setup.modules[0], &self.classes[0]);
        let mut known = self.estimator.on_module(0, class);
        // As the live system sees it: time of a request from its beginning to its end, all that are outstanding together.
        let ModuleCost { d, h } = side.costs[0];
        let busy = as_f64(h.0) + as_f64(d.0) * side.path.kernel_share;
        self.capacities[0].units = side.depth;
        known.h = Learned::kept(busy * f64::from(side.depth), as_f64(setup.classes[0].bytes), KEPT_SAMPLES);
        self.estimator.keep_module(0, class, known);
    }

    /// Lets CPU workers take more than one job at a time.
    pub const fn claim(&mut self, claims: Claims) {
        self.claims = claims;
    }

    /// What was learned.
    #[must_use]
    pub const fn estimator(&mut self) -> &mut Estimator {
        &mut self.estimator
    }

    /// The plan in force, if one was made.
    #[must_use]
    pub fn table(&self) -> Option<&Table> {
        self.table.as_ref().map(|(_, table)| table)
    }

    /// What the guard saw and did.
    #[must_use]
    pub fn guarded(&self) -> Counters {
        self.guard_feed.guard().total()
    }

    /// Takes the guard away: for tests of what it is good for.
    pub const fn unguarded(&mut self) {
        self.guard_feed.is_off = true;
    }

    fn plan(&mut self, view: &View<'_>) -> &Table {
        let is_old = self.table.as_ref().is_none_or(|(made, _)| view.now - *made >= PLAN_AGE_MAX);
        if is_old {
            let worked = |class: usize| self.estimator.worked(self.classes[class]);
            self.table = Some((view.now, plan(&self.plan_input(view)).having_worked(worked)));
        }
        &self.table.as_ref().expect("made where it was missing").1
    }

    fn plan_input(&self, view: &View<'_>) -> PlanInput {
        let threads = u32::try_from(self.cpu.count()).unwrap_or(u32::MAX);
        let spare = view.cores as f64 - f64::from(view.competing) - f64::from(threads);
        let modules = self.capacities.len().max(1) as f64;
        let class = |at: usize| self.class(at, view);
        PlanInput {
            objective: self.objective,
            cpu_workers: threads,
            share: fair_share(view.cores, view.competing),
            lambda: 1.0 - (spare / modules).clamp(0.0, 1.0),
            yields: !self.takes_turns,
            capacities: self.capacities.clone(),
            classes: (0..view.classes.len()).map(class).collect(),
        }
    }

    fn class(&self, at: usize, view: &View<'_>) -> ClassInput {
        let (class, bytes) = (self.classes[at], size(view.classes[at].bytes));
        let on_module = |module: usize| {
            let tries_left = self.estimator.tries_left(module, class, view.now);
            let is_long_untried = self.estimator.is_long_untried(module, class, Nanos::ZERO, view.now);
            match self.estimator.on_module(module, class).at(bytes) {
                Some((d, h)) if self.takes_turns => {
                    let d = all_of_turn(d, h, self.capacities[module].depth);
                    CostOnModule::Known { d, h, tries_left: 0, is_long_untried }
                }
                _ if self.lost[module] || self.guard_feed.is_locked(at, view.now) => CostOnModule::Never,
                Some((d, h)) => {
                    CostOnModule::Known { d, h: h.max(self.late(module, view)), tries_left, is_long_untried }
                }
                None => CostOnModule::Unknown { tries_left },
            }
        };
        let on_modules = (0..self.capacities.len()).map(on_module).collect();
        ClassInput { c: self.estimator.c(class, bytes, 1), waiting: view.classes[at].waiting, on_modules }
    }

    /// How long a module has been busy with its oldest request, where that is longer than it should be: what it
    /// takes for a job now is at least that.
    fn late(&self, module: usize, view: &View<'_>) -> Nanos {
        let Some(oldest) = self.modules.oldest(module) else { return Nanos::ZERO };
        let expected = self.expected_time(Path::Module, module, oldest.class, view);
        let (age, depth) = (view.now - oldest.since, u64::from(self.capacities[module].depth));
        let is_late = expected > Nanos::ZERO && age.0 > expected.0.saturating_mul(depth + 1);
        if is_late { Nanos(age.0 / depth) } else { Nanos::ZERO }
    }

    /// Time that a job takes at a worker; nothing where that is not known.
    fn expected_time(&self, path: Path, index: usize, at: usize, view: &View<'_>) -> Nanos {
        let (class, bytes) = (self.classes[at], size(view.classes[at].bytes));
        let known = match path {
            Path::Cpu => self.estimator.c(class, bytes, 1),
            Path::Module => self.estimator.on_module(index, class).at(bytes).map(|(d, h)| d + h),
        };
        known.unwrap_or_default()
    }

    /// Records that a worker starts jobs of class `at`; returns the choice that says so.
    fn start(&mut self, path: Path, index: u32, at: usize, view: &View<'_>) -> Choice {
        let each = self.expected_time(path, index as usize, at, view);
        let (busy, jobs) = match path {
            Path::Cpu => (&mut self.cpu, self.claims.jobs(view.classes[at].waiting, each)),
            Path::Module => (&mut self.modules, 1),
        };
        busy.start(index as usize, at, jobs, view.now, Nanos(each.0.saturating_mul(u64::from(jobs))));
        Choice::Take { which: Which::OfClass(at), jobs }
    }

    /// How long a worker of this path may not begin anything.
    fn paused_for(&mut self, path: Path, now: Nanos) -> Option<Nanos> {
        let asks_fair = path == Path::Cpu || self.objective == Objective::Cpu;
        let fair = self.fair.as_mut().filter(|_| asks_fair);
        fair.into_iter().chain(&mut self.budget).find_map(|budget| budget.may_spend(now).err())
    }

    /// Whether a core leaves what waits to a module that is to be tried and has nothing to do: jobs that come one
    /// by one would all be taken by the core, which is sooner there.
    fn leaves_for_a_try(&mut self, view: &View<'_>) -> bool {
        let Some(module) = self.modules.idle() else { return false };
        let Some((_, table)) = &self.table else { return false };
        let wants = |&class: &usize| table.wants_try(class, module, view.classes[class].waiting);
        let Some(class) = (0..view.classes.len()).find(wants) else { return false };
        let may = self.leaves[class] > 0;
        self.leaves[class] = self.leaves[class].saturating_sub(1);
        may
    }

    fn answer(&mut self, decision: Decision, path: Path, index: u32, view: &View<'_>) -> Choice {
        match decision {
            Decision::Take { class, .. } => self.start(path, index, class, view),
            Decision::AskAgainIn(time) => Choice::AskAgainIn(time),
            // The next plan may say otherwise of what waits.
            Decision::Leave if view.waiting() > 0 => Choice::RestAtMost(PLAN_AGE_MAX),
            Decision::Leave => Choice::Rest,
        }
    }

    fn learn(&mut self, sample: &Sample) {
        let (class, module) = (self.classes[sample.class], sample.worker.index as usize);
        let is_new = match sample.worker.path {
            Path::Cpu => {
                let is_new = self.estimator.cpu(class, Method::Plain, 1).is_none();
                self.estimator.saw_cpu(class, Method::Plain, 1, sample.bytes, sample.core);
                is_new
            }
            Path::Module if self.takes_turns => false,
            Path::Module => {
                let is_new = self.estimator.on_module(module, class).d.samples == 0;
                let (d, h) = (sample.core + sample.interrupt, sample.service);
                let seen = ModuleSample { jobs: 1, bytes: sample.bytes, d, h, now: sample.now };
                self.estimator.saw_module(module, class, &seen);
                is_new
            }
        };
        if is_new {
            self.table = None;
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "costs and sizes are far below 2^53")]
const fn as_f64(whole: u64) -> f64 {
    whole as f64
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Part of the cores that a process gets beside so many programs.
fn fair_share(cores: usize, competing: u32) -> f64 {
    let cores = cores as f64;
    (cores / (cores + f64::from(competing))).min(1.0)
}

impl Chooser for Adaptive {
    fn cpu_takes(&mut self, index: u32, view: &View<'_>) -> Choice {
        if let Some(time) = self.paused_for(Path::Cpu, view.now) {
            self.guard_feed.end_rest(index);
            return Choice::AskAgainIn(time);
        }
        if let Some(class) = self.guard_feed.take_owed(view.classes).filter(|_| !self.takes_turns) {
            self.guard_feed.end_rest(index);
            return self.start(Path::Cpu, index, class, view);
        }
        let modules_busy = self.modules.least_busy(view.now);
        self.plan(view);
        if self.leaves_for_a_try(view) {
            self.guard_feed.end_rest(index);
            return Choice::AskAgainIn(LEAVE_FOR);
        }
        let (_, table) = self.table.as_ref().expect("made above");
        let decision = table.core_takes(|class| view.classes[class].waiting, modules_busy);
        let left = (0..view.classes.len()).find(|&at| view.classes[at].waiting > 0 && table.is_open(at));
        match (decision, left) {
            // For the least effect on other programs a core that rests is the aim, not a loss.
            (Decision::AskAgainIn(_), Some(class)) if self.objective != Objective::Cpu => {
                let share = fair_share(view.cores, view.competing);
                if self.guard_feed.record_rest(index, class, share, view.now) {
                    self.table = None;
                }
            }
            _ => self.guard_feed.end_rest(index),
        }
        self.answer(decision, Path::Cpu, index, view)
    }

    fn module_takes(&mut self, index: u32, view: &View<'_>) -> Choice {
        if let Some(time) = self.paused_for(Path::Module, view.now) {
            return Choice::AskAgainIn(time);
        }
        let cores_busy = self.cpu.least_busy(view.now);
        let module = index as usize;
        let decision = self.plan(view).module_takes(module, |class| view.classes[class].waiting, cores_busy);
        if let Decision::Take { class, is_try } = decision {
            self.guard_feed.record_routed(class);
            if is_try {
                self.table = None;
                if !self.estimator.tries(module, self.classes[class], view.now) {
                    return Choice::AskAgainIn(Nanos(1));
                }
            }
        }
        self.answer(decision, Path::Module, index, view)
    }

    fn observe(&mut self, sample: &Sample) {
        let busy = if sample.worker.path == Path::Cpu { &mut self.cpu } else { &mut self.modules };
        busy.finish(sample.worker.index as usize);
        self.learn(sample);
        for budget in self.budget.iter_mut().chain(&mut self.fair) {
            budget.spent(sample.core + sample.interrupt);
        }
        let lambda = self.table.as_ref().map_or(1.0, |(_, table)| table.lambda());
        if self.guard_feed.record(sample, lambda) {
            self.table = None;
        }
    }

    fn lose(&mut self, index: u32) {
        self.lost[index as usize] = true;
        self.modules.remove_worker(index as usize);
        self.table = None;
    }
}
