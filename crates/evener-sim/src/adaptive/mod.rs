//! The adaptive policy runs here as on the live system: the same planner, fed with what simulated jobs took.
//!
//! A worker asks -> the budget says whether core time may be spent -> the plan is made anew where it is old or
//! something was learned for the first time -> the table answers -> what the job took goes to the estimator, the
//! budget and the guard (`guard_feed.rs`). Nothing here decides; all of that is `evener_core`'s.

mod busy_index;
mod chooser;
mod guard_feed;
mod plan_input;

use std::num::NonZero;

use evener_core::budget::{Budget, PercentOutOfRange};
use evener_core::estimate::{self, Estimator, Learned, OnModule, width_class};
use evener_core::guard::Counters;
use evener_core::plan::Take;
use evener_core::plan::adaptive::{ModuleCapacity, TUNING, Table, cap_percent, plan};
use evener_core::{Algorithm, Class, Direction, Method, Nanos, Objective};

use crate::lab::{ModuleCost, Setup, View, Workload};
use busy_index::BusyIndex;
use guard_feed::GuardFeed;

/// How often and how long cores leave a job of a class to a module that is to be tried.
const LEAVES_MAX: u32 = 2 * estimate::TUNING.tries_max;
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
    /// ([`Table::core_nice`]). The live system gives none (docs/design/adaptive.md, Rejected); here a thread keeps its
    /// value for the whole run.
    pub fn arrange(setup: &mut Setup, jobs: &Workload) {
        let pays =
            |class: usize| setup.modules.iter().any(|side| side.costs[class].d < setup.classes[class].c);
        setup.cpu.nice = match jobs.jobs().iter().any(|job| pays(job.class)) {
            true if setup.hogs == 0 => TUNING.nice_to_give_way,
            true => TUNING.nice_beside,
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
                let known = OnModule { d, h, tries: estimate::TUNING.tries_max, ..OnModule::default() };
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
        let is_old = self.table.as_ref().is_none_or(|(made, _)| view.now - *made >= TUNING.plan_age_max);
        if is_old {
            let worked = |class: usize| self.estimator.worked(self.classes[class]);
            self.table = Some((view.now, plan(&self.plan_input(view)).having_worked(worked)));
        }
        &self.table.as_ref().expect("made where it was missing").1
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
