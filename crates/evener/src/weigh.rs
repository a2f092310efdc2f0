//! The live side of the adaptive policy: what workers measured goes in, a table that they ask comes out.
//!
//! A worker asks ([`Weigher::core_takes`], [`Weigher::module_takes`]) -> where the table is old the worker that asks
//! makes a new one from estimates, guard and what waits (`evener_core::plan::adaptive`) -> the table answers. What
//! bursts took comes back through [`Weigher::saw_core`] and [`Weigher::saw_module`]. All decisions are `evener-core`'s,
//! the same as on the simulator.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use evener_core::estimate::{Estimator, ModuleSample};
use evener_core::guard::Guard;
use evener_core::plan::adaptive::{
    CLAIM_TIME, Choice, Lane, Offer, Prospect, Queue, Route, Station, Table, plan,
};
use evener_core::{Class, Nanos, Objective};
use evener_ring::CachePadded;

use crate::cpu::CostSample;
use crate::lanes::Lanes;

/// Age after which a plan is made anew: every few milliseconds, for a plan takes some microseconds.
const PLAN_AGE_MAX: Nanos = Nanos::from_millis(2);

/// Burst width that plans count with: cores run what waits in full lanes.
const WIDTH: usize = 16;

/// Part of a new sample in the mean share of a core that a worker gets.
const SHARE_WEIGHT: f64 = 1.0 / 16.0;

/// Jobs that a core does in [`CLAIM_TIME`] at so much each; where that is not known, one fill of lanes.
fn jobs_in_time(each: Nanos) -> u32 {
    match each {
        Nanos::ZERO => u32::try_from(WIDTH).expect("a width is small"),
        each => u32::try_from(CLAIM_TIME.0 / each.0).unwrap_or(u32::MAX).max(1),
    }
}

/// What never changes during a run.
pub(crate) struct Circumstances {
    pub(crate) objective: Objective,
    /// Cores that this process may use.
    pub(crate) cores: usize,
    /// Threads that run jobs on cores.
    pub(crate) cpu_workers: usize,
    /// Desk of the first module; those below are of CPU workers.
    pub(crate) first_module_desk: usize,
    pub(crate) stations: Vec<Station>,
    /// By module, then by [`Class::index`]: whether its driver does it.
    pub(crate) does: Vec<Vec<bool>>,
}

/// The adaptive policy at work.
pub(crate) struct Weigher {
    fixed: Circumstances,
    state: Mutex<State>,
    table: RwLock<Arc<Table>>,
    /// When the table was made; 0: it is to be made anew.
    planned_ns: CachePadded<AtomicU64>,
    /// By desk: when its worker will have done what it holds.
    busy_until_ns: Vec<CachePadded<AtomicU64>>,
}

struct State {
    estimator: Estimator,
    guard: Guard,
    lost: Vec<bool>,
    /// Part of a core that a CPU worker gets.
    share: f64,
    /// Core time that cores spent on a class so far.
    worked: BTreeMap<Class, Nanos>,
}

/// What a worker may take.
pub(crate) struct Claim {
    pub(crate) lane: usize,
    pub(crate) jobs_max: u32,
    /// Time that one of them takes.
    each: Nanos,
}

impl Weigher {
    pub(crate) fn new(fixed: Circumstances, learned: Estimator, desks: usize) -> Self {
        let modules = fixed.stations.len();
        let mut estimator = learned;
        estimator.make_room_for(modules);
        let state = State {
            estimator,
            guard: Guard::new(Class::COUNT),
            lost: vec![false; modules],
            share: 1.0,
            worked: BTreeMap::new(),
        };
        let table = plan(&prospect(&fixed, &state, &[], |_| 0, Nanos::ZERO));
        Self {
            fixed,
            state: Mutex::new(state),
            table: RwLock::new(Arc::new(table)),
            planned_ns: CachePadded::new(AtomicU64::new(0)),
            busy_until_ns: (0..desks).map(|_| CachePadded::new(AtomicU64::new(0))).collect(),
        }
    }

    /// What an idle core takes: a lane and how many jobs, or how long to wait at most for something to change.
    pub(crate) fn core_takes(&self, lanes: &Lanes<'_>, now: Nanos) -> Result<Claim, Nanos> {
        let table = self.table(lanes, now);
        let modules_busy = self.least_busy(self.fixed.first_module_desk..self.busy_until_ns.len(), now);
        match table.core_takes(|lane| lanes.waiting(lane), modules_busy) {
            Choice::Take { lane, .. } => {
                let each = table.expected(lane, None);
                Ok(Claim { lane, jobs_max: jobs_in_time(each), each })
            }
            Choice::AskAgainIn(time) => Err(time),
            Choice::Leave => Err(PLAN_AGE_MAX),
        }
    }

    /// What module `module` takes.
    pub(crate) fn module_takes(&self, module: usize, lanes: &Lanes<'_>, now: Nanos) -> Result<Claim, Nanos> {
        let table = self.table(lanes, now);
        let cores_busy = self.least_busy(0..self.fixed.first_module_desk, now);
        match table.module_takes(module, |lane| lanes.waiting(lane), cores_busy) {
            Choice::Take { lane, is_try } => {
                if is_try {
                    self.count_try(module, lanes, lane);
                }
                Ok(Claim { lane, jobs_max: 1, each: table.expected(lane, Some(module)) })
            }
            Choice::AskAgainIn(time) => Err(time),
            Choice::Leave => Err(PLAN_AGE_MAX),
        }
    }

    /// Whether modules take anything at all at the moment. Opens lanes for classes that are new.
    pub(crate) fn modules_matter(
        &self,
        lanes: &Lanes<'_>,
        classes: impl Iterator<Item = Class>,
        now: Nanos,
    ) -> bool {
        classes.for_each(|class| _ = lanes.lane_of(class));
        self.table(lanes, now);
        lanes.modules_matter()
    }

    /// Where one request goes.
    pub(crate) fn route(&self, lanes: &Lanes<'_>, class: Class, now: Nanos) -> Route {
        let lane = lanes.lane_of(class);
        let table = self.table(lanes, now);
        let wait = |desk: usize| Queue { wait: self.busy(desk, now) };
        let queues: Vec<Queue> = (self.fixed.first_module_desk..self.busy_until_ns.len()).map(wait).collect();
        if lane < table.lanes() { table.route(lane, &queues) } else { Route::Inline }
    }

    /// Notes for how long the worker at `desk` will be busy with what it took.
    pub(crate) fn begins(&self, desk: usize, claim: &Claim, jobs: usize, now: Nanos) {
        // Relaxed: a hint for others' decisions.
        let until = now + Nanos(claim.each.0.saturating_mul(jobs as u64));
        self.busy_until_ns[desk].store(until.0, Ordering::Relaxed);
    }

    /// The worker at `desk` holds nothing any more.
    pub(crate) fn is_free(&self, desk: usize) {
        self.busy_until_ns[desk].store(0, Ordering::Relaxed);
    }

    /// Bursts that ran on a core.
    pub(crate) fn saw_core(&self, samples: &[CostSample]) {
        let Some(last) = samples.last() else { return };
        let state = &mut *self.state();
        let is_first = state.estimator.c(last.class, *last.class.bytes().end(), WIDTH).is_none();
        for seen in samples {
            state.estimator.saw_cpu(seen.class, seen.method, seen.jobs, seen.bytes, seen.core);
            *state.worked.entry(seen.class).or_default() += Nanos(seen.core.0 * seen.stands_for);
            state.guard.control(seen.class.index(), seen.jobs, seen.core);
            let share = (seen.core.as_secs_f64() / seen.wall.as_secs_f64().max(1e-9)).clamp(0.0, 1.0);
            state.share += SHARE_WEIGHT * (share - state.share);
        }
        if is_first {
            self.planned_ns.store(0, Ordering::Relaxed);
        }
    }

    /// Jobs that a module did.
    pub(crate) fn saw_module(&self, module: usize, class: Class, seen: &ModuleSample) {
        let lambda = self.current().lambda();
        let state = &mut *self.state();
        let is_first = state.estimator.on_module(module, class).d.samples == 0;
        state.estimator.saw_module(module, class, seen);
        state.guard.routed(class.index(), seen.jobs, scaled(seen.d, lambda), seen.now);
        if is_first {
            self.planned_ns.store(0, Ordering::Relaxed);
        }
    }

    /// A core had nothing to do for so long because it left a class to modules.
    pub(crate) fn idled(&self, lanes: &Lanes<'_>, lane: usize, time: Nanos, now: Nanos) {
        // Under `cpu` a core that rests is the aim. Otherwise it loses what is beyond the job that it would have done.
        let beyond = time - self.current().expected(lane, None);
        let is_loss = self.fixed.objective != Objective::Cpu && beyond > Nanos::ZERO;
        if let (true, Some(class)) = (is_loss, lanes.classes().get(lane)) {
            self.state().guard.idled(class.index(), beyond, now);
        }
    }

    /// A module is out of service.
    pub(crate) fn lost(&self, module: usize) {
        self.state().lost[module] = true;
        self.planned_ns.store(0, Ordering::Relaxed);
    }

    /// What was learned, at the end of a run.
    pub(crate) fn into_learned(self) -> (Estimator, Guard) {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        (state.estimator, state.guard)
    }

    fn count_try(&self, module: usize, lanes: &Lanes<'_>, lane: usize) {
        if let Some(&class) = lanes.classes().get(lane) {
            self.state().estimator.tries(module, class, 1);
            self.planned_ns.store(0, Ordering::Relaxed);
        }
    }

    /// The table in force; made anew by whoever finds it old.
    fn table(&self, lanes: &Lanes<'_>, now: Nanos) -> Arc<Table> {
        // Relaxed: two workers that both find it old make it twice, which does no harm.
        let planned = self.planned_ns.load(Ordering::Relaxed);
        let is_old = planned == 0 || now - Nanos(planned) >= PLAN_AGE_MAX;
        let table = self.current();
        if is_old || table.lanes() != lanes.count() {
            self.plan_anew(lanes, now);
            return self.current();
        }
        table
    }

    /// Makes a new table, unless somebody else is about to.
    fn plan_anew(&self, lanes: &Lanes<'_>, now: Nanos) {
        let Ok(state) = self.state.try_lock() else { return };
        self.planned_ns.store(now.0.max(1), Ordering::Relaxed);
        let classes = lanes.classes();
        let worked = |lane: usize| state.worked.get(&classes[lane]).copied().unwrap_or_default();
        let table = plan(&prospect(&self.fixed, &state, &classes, |lane| lanes.waiting(lane), now))
            .having_worked(worked);
        let tried = |lane: usize| {
            let waiting = lanes.waiting(lane).max(1);
            (0..self.fixed.stations.len()).any(|module| table.wants_try(lane, module, waiting))
        };
        let matter = (0..table.lanes()).any(|lane| table.is_open(lane) || tried(lane));
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
        lanes.let_modules(matter);
    }

    fn current(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn busy(&self, desk: usize, now: Nanos) -> Nanos {
        Nanos(self.busy_until_ns[desk].load(Ordering::Relaxed)) - now
    }

    /// The least of that; nothing where there is nobody.
    fn least_busy(&self, desks: std::ops::Range<usize>, now: Nanos) -> Nanos {
        desks.map(|desk| self.busy(desk, now)).min().unwrap_or_default()
    }
}

impl Circumstances {
    /// 0 where there is a core for each module's worker, 1 where cores are as scarce as CPU workers want them.
    fn lambda(&self, share: f64) -> f64 {
        let spare = self.cores.saturating_sub(self.cpu_workers);
        let modules = self.stations.len().max(1);
        let wanted = 1.0 - float(spare.min(modules)) / float(modules);
        // Others want the cores too: a worker that gets half of one competes with one other program.
        let contested = ((1.0 - share) * 2.0).clamp(0.0, 1.0);
        wanted.max(if contested > 0.2 { contested } else { 0.0 })
    }
}

fn prospect(
    fixed: &Circumstances,
    state: &State,
    classes: &[Class],
    waiting: impl Fn(usize) -> u32,
    now: Nanos,
) -> Prospect {
    let lane = |(lane, &class): (usize, &Class)| {
        let bytes = (*class.bytes().end()).min(2 << 20);
        let is_locked = state.guard.is_locked(class.index(), now);
        let offer = |module: usize| {
            let known = state.estimator.on_module(module, class);
            let tries_left = state.estimator.tries_left(module, class, now);
            match (known.d.at(bytes), known.h.at(bytes)) {
                _ if is_locked || state.lost[module] || !fixed.does[module][class.index()] => Offer::Never,
                (Some(d), Some(h)) => Offer::Known { d, h, tries_left },
                _ => Offer::Unknown { tries_left },
            }
        };
        Lane {
            c: state.estimator.c(class, bytes, WIDTH),
            waiting: waiting(lane),
            offers: (0..fixed.stations.len()).map(offer).collect(),
        }
    };
    Prospect {
        objective: fixed.objective,
        cpu_workers: u32::try_from(fixed.cpu_workers).unwrap_or(u32::MAX),
        share: state.share.max(0.05),
        lambda: fixed.lambda(state.share),
        stations: fixed.stations.clone(),
        lanes: classes.iter().enumerate().map(lane).collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "cores are few")]
const fn float(count: usize) -> f64 {
    count as f64
}

fn scaled(time: Nanos, by: f64) -> Nanos {
    Nanos::from(std::time::Duration::from(time).mul_f64(by.clamp(0.0, 1.0)))
}
