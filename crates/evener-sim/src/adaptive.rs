//! The adaptive policy on the simulator: the planner of the live system, fed with what simulated jobs took.
//!
//! A worker asks -> the budget says whether core time may be spent -> the plan is made anew where it is old or
//! something was learned for the first time -> the table answers -> what the job took goes to the estimator, the
//! budget and the guard (`watch.rs`). Nothing here decides; all of that is `evener_core`'s.

mod watch;

use std::num::NonZero;

use evener_core::budget::{Budget, PercentOutOfRange};
use evener_core::estimate::{Estimator, ModuleSample};
use evener_core::guard::Counters;
use evener_core::plan::adaptive::{
    Choice as Decision, Lane, NICE_BESIDE, NICE_TO_GIVE_WAY, Offer, Prospect, Station, TRIES_MAX, Table,
    cap_percent, plan,
};
use evener_core::{Algorithm, Class, Direction, Method, Nanos, Objective};

use crate::lab::{Choice, Chooser, Path, Sample, Setup, View, Which, WorkerView, Workload};
use watch::Watch;

/// Age after which a plan is made anew.
const PLAN_AGE_MAX: Nanos = Nanos::from_millis(2);

/// How often and how long cores leave a job of a class to a module that is to be tried.
const LEAVES_MAX: u32 = 2 * TRIES_MAX;
const LEAVE_FOR: Nanos = Nanos::from_micros(50);

/// The adaptive policy, learning while it runs.
pub struct Adaptive {
    estimator: Estimator,
    objective: Objective,
    cores: NonZero<usize>,
    /// By class of the setup.
    classes: Vec<Class>,
    stations: Vec<Station>,
    lost: Vec<bool>,
    table: Option<(Nanos, Table)>,
    /// What the user allows; both paths ask.
    budget: Option<Budget>,
    /// What is fair beside other programs.
    fair: Option<Budget>,
    /// By class: how often cores may yet leave a job to a module that is to be tried.
    leaves: Vec<u32>,
    watch: Watch,
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
        let station = |side: &crate::lab::ModuleSide| Station { units: side.spec.units, depth: side.depth };
        let mut policy = Self {
            estimator: Estimator::new(setup.modules.len()),
            objective,
            cores: NonZero::new(setup.cores).expect("a machine has a core"),
            classes: setup.classes.iter().map(|of| class(of.bytes)).collect(),
            stations: setup.modules.iter().map(station).collect(),
            lost: vec![false; setup.modules.len()],
            table: None,
            budget: None,
            fair: None,
            leaves: vec![LEAVES_MAX; setup.classes.len()],
            watch: Watch::new(setup),
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
            true if setup.hogs == 0 => NICE_TO_GIVE_WAY,
            true => NICE_BESIDE,
            false => 0,
        };
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
        self.watch.guard().total()
    }

    /// Takes the guard away: for tests of what it is good for.
    pub const fn unguarded(&mut self) {
        self.watch.is_off = true;
    }

    fn plan(&mut self, view: &View<'_>) -> &Table {
        let is_old = self.table.as_ref().is_none_or(|(made, _)| view.now - *made >= PLAN_AGE_MAX);
        if is_old {
            let worked = |lane: usize| self.estimator.worked(self.classes[lane]);
            self.table = Some((view.now, plan(&self.prospect(view)).having_worked(worked)));
        }
        &self.table.as_ref().expect("made where it was missing").1
    }

    fn prospect(&self, view: &View<'_>) -> Prospect {
        let cpu_workers = workers(view, Path::Cpu).count();
        let threads = u32::try_from(cpu_workers).unwrap_or(u32::MAX);
        let spare = view.cores as f64 - f64::from(view.competing) - f64::from(threads);
        let modules = self.stations.len().max(1) as f64;
        let lane = |at: usize| self.lane(at, view);
        Prospect {
            objective: self.objective,
            cpu_workers: threads,
            share: fair_share(view.cores, view.competing),
            lambda: 1.0 - (spare / modules).clamp(0.0, 1.0),
            stations: self.stations.clone(),
            lanes: (0..view.classes.len()).map(lane).collect(),
        }
    }

    fn lane(&self, at: usize, view: &View<'_>) -> Lane {
        let (class, bytes) = (self.classes[at], size(view.classes[at].bytes));
        let offer = |module: usize| {
            let tries_left = self.estimator.tries_left(module, class, view.now);
            match self.estimator.on_module(module, class).at(bytes) {
                _ if self.lost[module] || self.watch.is_locked(at, view.now) => Offer::Never,
                Some((d, h)) => Offer::Known { d, h: h.max(self.late(module, view)), tries_left },
                None => Offer::Unknown { tries_left },
            }
        };
        let offers = (0..self.stations.len()).map(offer).collect();
        Lane { c: self.estimator.c(class, bytes, 1), waiting: view.classes[at].waiting, offers }
    }

    /// How long a module has been busy with its oldest request, where that is longer than it should be: what it
    /// takes for a job now is at least that.
    fn late(&self, module: usize, view: &View<'_>) -> Nanos {
        let is_it = |seen: &&WorkerView| seen.worker.index as usize == module;
        let Some(seen) = workers(view, Path::Module).find(is_it) else { return Nanos::ZERO };
        let Some(oldest) = seen.busy.first() else { return Nanos::ZERO };
        let known = self.estimator.on_module(module, self.classes[oldest.class]);
        let Some((d, h)) = known.at(size(view.classes[oldest.class].bytes)) else { return Nanos::ZERO };
        let (age, expected) = (view.now - oldest.since, d + h);
        let depth = u64::from(self.stations[module].depth);
        if age.0 > expected.0.saturating_mul(depth + 1) { Nanos(age.0 / depth) } else { Nanos::ZERO }
    }

    /// Time until worker `seen` has done what it holds, by what its jobs take.
    fn busy(&self, seen: &WorkerView, view: &View<'_>) -> Nanos {
        let Some(oldest) = seen.busy.first() else { return Nanos::ZERO };
        let class = self.classes[oldest.class];
        let bytes = size(view.classes[oldest.class].bytes);
        let takes = match seen.worker.path {
            Path::Cpu => self.estimator.c(class, bytes, 1),
            Path::Module => {
                let known = self.estimator.on_module(seen.worker.index as usize, class);
                known.at(bytes).map(|(d, h)| d + h)
            }
        };
        takes.unwrap_or_default() - (view.now - oldest.since)
    }

    /// Least of that over the workers of a path.
    fn least_busy(&self, view: &View<'_>, path: Path) -> Nanos {
        let workers = workers(view, path).filter(|seen| !seen.is_lost);
        workers.map(|seen| self.busy(seen, view)).min().unwrap_or_default()
    }

    /// How long a worker of this path may not begin anything.
    fn held(&mut self, path: Path, now: Nanos) -> Option<Nanos> {
        let asks_fair = path == Path::Cpu || self.objective == Objective::Cpu;
        let fair = self.fair.as_mut().filter(|_| asks_fair);
        fair.into_iter().chain(&mut self.budget).find_map(|budget| budget.may_spend(now).err())
    }

    /// Whether a core leaves what waits to a module that is to be tried and has nothing to do: jobs that come one
    /// by one would all be taken by the core, which is sooner there.
    fn leaves_for_a_try(&mut self, view: &View<'_>) -> bool {
        let idle = workers(view, Path::Module).find(|seen| !seen.is_lost && seen.busy.is_empty());
        let Some(module) = idle.map(|seen| seen.worker.index as usize) else { return false };
        let Some((_, table)) = &self.table else { return false };
        let wants = |&class: &usize| table.wants_try(class, module, view.classes[class].waiting);
        let Some(class) = (0..view.classes.len()).find(wants) else { return false };
        let may = self.leaves[class] > 0;
        self.leaves[class] = self.leaves[class].saturating_sub(1);
        may
    }

    fn learn(&mut self, sample: &Sample) {
        let (class, module) = (self.classes[sample.class], sample.worker.index as usize);
        let is_new = match sample.worker.path {
            Path::Cpu => {
                let is_new = self.estimator.cpu(class, Method::Plain, 1).is_none();
                self.estimator.saw_cpu(class, Method::Plain, 1, sample.bytes, sample.core);
                is_new
            }
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

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Part of the cores that a process gets beside so many programs.
fn fair_share(cores: usize, competing: u32) -> f64 {
    let cores = cores as f64;
    (cores / (cores + f64::from(competing))).min(1.0)
}

fn workers<'a>(view: &View<'a>, path: Path) -> impl Iterator<Item = &'a WorkerView> {
    view.workers.iter().filter(move |seen| seen.worker.path == path)
}

impl Chooser for Adaptive {
    fn cpu_takes(&mut self, index: u32, view: &View<'_>) -> Choice {
        if let Some(time) = self.held(Path::Cpu, view.now) {
            self.watch.works(index);
            return Choice::AskAgainIn(time);
        }
        if let Some(class) = self.watch.owed(view.classes) {
            self.watch.works(index);
            return Choice::Take { which: Which::OfClass(class), jobs: 1 };
        }
        let modules_busy = self.least_busy(view, Path::Module);
        self.plan(view);
        if self.leaves_for_a_try(view) {
            self.watch.works(index);
            return Choice::AskAgainIn(LEAVE_FOR);
        }
        let (_, table) = self.table.as_ref().expect("made above");
        let decision = table.core_takes(|lane| view.classes[lane].waiting, modules_busy);
        let left = (0..view.classes.len()).find(|&at| view.classes[at].waiting > 0 && table.is_open(at));
        match (decision, left) {
            // For the least effect on other programs a core that rests is the aim, not a loss.
            (Decision::AskAgainIn(_), Some(class)) if self.objective != Objective::Cpu => {
                let share = fair_share(view.cores, view.competing);
                if self.watch.rests(index, class, share, view.now) {
                    self.table = None;
                }
            }
            _ => self.watch.works(index),
        }
        answer(decision)
    }

    fn module_takes(&mut self, index: u32, view: &View<'_>) -> Choice {
        if let Some(time) = self.held(Path::Module, view.now) {
            return Choice::AskAgainIn(time);
        }
        let cores_busy = self.least_busy(view, Path::Cpu);
        let module = index as usize;
        let decision = self.plan(view).module_takes(module, |lane| view.classes[lane].waiting, cores_busy);
        if let Decision::Take { lane, is_try } = decision {
            self.watch.routes(lane);
            if is_try {
                self.estimator.tries(module, self.classes[lane], 1);
                self.table = None;
            }
        }
        answer(decision)
    }

    fn observe(&mut self, sample: &Sample) {
        self.learn(sample);
        for budget in self.budget.iter_mut().chain(&mut self.fair) {
            budget.spent(sample.core + sample.interrupt);
        }
        let lambda = self.table.as_ref().map_or(1.0, |(_, table)| table.lambda());
        if self.watch.saw(sample, lambda) {
            self.table = None;
        }
    }

    fn lose(&mut self, index: u32) {
        self.lost[index as usize] = true;
        self.table = None;
    }
}

const fn answer(decision: Decision) -> Choice {
    match decision {
        Decision::Take { lane, .. } => Choice::Take { which: Which::OfClass(lane), jobs: 1 },
        Decision::AskAgainIn(time) => Choice::AskAgainIn(time),
        Decision::Leave => Choice::Rest,
    }
}
