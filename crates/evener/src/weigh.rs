//! The live side of the adaptive policy: what workers measured goes in, a table that they ask comes out.
//!
//! A worker asks ([`Weigher::core_takes`], [`Weigher::module_takes`]) -> where the table is old the worker that asks
//! makes a new one from costs, guard and what waits ([`view`], `evener_core::plan::adaptive`) -> the table answers. What
//! bursts took comes back through [`Weigher::saw_core`] and [`Weigher::saw_module`]. All decisions are `evener-core`'s,
//! the same as on the simulator.
//!
//! Classes that no module takes are left alone ([`Lanes::leave_alone`]): their jobs go the way of `cpu_only`, and
//! nobody asks anything but once in a while ([`Weigher::looks_back`]). Single requests of callers: `single.rs`. Jobs that cores
//! run so that the guard knows what they take there: `control.rs`. What of a result is news: `seen.rs`.

mod control;
mod seen;
mod single;
mod taking_turns;
mod turns;
mod view;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use evener_core::cost::Line;
use evener_core::guard::{CONTROL_JOBS_FIRST, Counters, Guard};
use evener_core::plan::adaptive::{CLAIM_TIME, Choice, Table, plan};
use evener_core::{Class, Nanos, Objective};
use evener_ring::CachePadded;

use self::control::Controls;
pub(crate) use self::seen::Seen;
pub(crate) use self::single::Single;
use self::turns::Turns;
use self::view::Moment;
pub(crate) use self::view::{Circumstances, contested};
use crate::Costs;
use crate::costs::CostSample;
use crate::lanes::{LANES, Lanes};

/// Age after which a plan is made anew: every few milliseconds, for a plan takes some microseconds.
const PLAN_AGE_MAX: Nanos = Nanos::from_millis(2);

/// The same on one core, where plans take it from what is planned: each some 70 us in the guest of docs/testbed.md, built for
/// tests.
const PLAN_AGE_ON_ONE_CORE: Nanos = Nanos::from_millis(8);

/// The same where no module takes anything: ten looks in the time of a [`TRY_WINDOW`] and more would find nothing new.
const LOOK_BACK_AFTER: Nanos = Nanos::from_millis(20);

/// How long modules' workers are kept awake for nothing but a try. Long beside any job of a preset, for where all cores
/// are busy the module's thread may wait for one.
const TRY_WINDOW: Nanos = Nanos::from_millis(50);

/// Time until the next such window where nobody made use of one.
const TRY_PAUSE: Nanos = Nanos::from_millis(250);

/// How long a module's worker waits for the first control job of a class. A guess: below what a core needs for a claim.
const WAIT_FOR_CONTROL: Nanos = Nanos::from_micros(200);

/// Burst width that plans count with: cores run what waits in full lanes.
const WIDTH: usize = 16;

/// What modules' paths may have used beyond a rest and is still remembered: a job or two, as in the simulator.
const CREDIT_MAX: Nanos = Nanos::from_millis(1);

/// Part of a new sample in the mean share of a core that a worker gets.
const SHARE_WEIGHT: f64 = 1.0 / 16.0;

/// Jobs that a core does in [`CLAIM_TIME`] at so much each; where that is not known, one fill of lanes.
fn jobs_in_time(each: Nanos) -> u32 {
    match each {
        Nanos::ZERO => u32::try_from(WIDTH).expect("a width is small"),
        each => u32::try_from(CLAIM_TIME.0 / each.0).unwrap_or(u32::MAX).max(1),
    }
}

/// The adaptive policy at work.
pub(crate) struct Weigher {
    fixed: Circumstances,
    costs: Arc<Costs>,
    /// Locked before the costs where both are.
    state: Mutex<State>,
    table: RwLock<Arc<Table>>,
    /// When the table was made; 0: it is to be made anew.
    planned_ns: CachePadded<AtomicU64>,
    /// By desk: when its worker will have done what it holds.
    busy_until_ns: Vec<CachePadded<AtomicU64>>,
    /// By module: what it has worked on longest.
    held: Vec<CachePadded<Held>>,
    controls: Controls,
    /// Core time of modules' paths.
    paths_ns: AtomicU64,
    /// Where the only core and the only module take turns. Locked after the state and before the costs where they are, too.
    turns: Option<Mutex<Turns>>,
    /// Whether somebody has a turn: a hint that spares who asks the lock.
    has_turn: AtomicBool,
    /// The guard would lock a class: it is the core's turn at once.
    is_alarmed: AtomicBool,
    /// Times that the only core began to work, and that it rested: odd while it works. Written by its worker.
    core_changes: AtomicU32,
}

/// What a module works on. Written by its worker.
#[derive(Default)]
struct Held {
    /// Since when; 0: it holds nothing.
    since_ns: AtomicU64,
    /// [`Class::index`].
    class: AtomicU32,
}

pub(super) struct State {
    /// One ledger for each lane and module.
    guard: Guard,
    /// The same for single requests of callers, whose costs are times and not core time alone.
    singles: Guard,
    modules: usize,
    lost: Vec<bool>,
    /// Part of a core that a CPU worker gets.
    share: f64,
    /// What modules' paths used beyond the rests of cores.
    used_before: Nanos,
    /// When modules' workers began to be kept awake for a try.
    trying_since: Option<Nanos>,
    /// When they may be again.
    try_after: Nanos,
}

/// What a worker may take.
pub(crate) struct Claim {
    pub(crate) lane: usize,
    pub(crate) jobs_max: u32,
    /// Time that one of them takes.
    each: Nanos,
}

impl Claim {
    /// Time that one of its jobs is expected to take; nothing where that is not known.
    pub(crate) const fn each(&self) -> Nanos {
        self.each
    }
}

impl State {
    fn new(modules: usize) -> Self {
        Self {
            guard: Guard::new(LANES * modules),
            singles: Guard::new(LANES * modules),
            modules,
            lost: vec![false; modules],
            share: 1.0,
            used_before: Nanos::ZERO,
            trying_since: None,
            try_after: Nanos::ZERO,
        }
    }

    fn ledger(&self, lane: usize, module: usize) -> usize {
        lane * self.modules + if cfg!(mutant = "modules_share_ledgers") { 0 } else { module }
    }

    /// Whether the guard has locked a lane for a module.
    fn is_locked(&self, lane: usize, module: usize, now: Nanos) -> bool {
        lane < LANES && self.guard.is_locked(self.ledger(lane, module), now)
    }

    /// What of a rest modules' paths did not use. What they used beyond it offsets the next one, for a request is booked at
    /// its end, wherever that falls.
    fn unused(&mut self, rest: Nanos, paths: Nanos) -> Nanos {
        if cfg!(mutant = "paths_not_offset") {
            return rest;
        }
        let used = paths + self.used_before;
        self.used_before = (used - rest).min(CREDIT_MAX);
        rest - used
    }

    /// Whether modules may be kept awake for a try, where one is `wanted`.
    fn may_try(&mut self, wanted: bool, now: Nanos) -> bool {
        if !wanted || now < self.try_after {
            self.trying_since = None;
            return false;
        }
        let since = *self.trying_since.get_or_insert(now);
        if now - since > TRY_WINDOW && !cfg!(mutant = "window_stays_open") {
            (self.trying_since, self.try_after) = (None, now + TRY_PAUSE);
        }
        self.trying_since.is_some()
    }
}

impl Weigher {
    pub(crate) fn new(fixed: Circumstances, costs: &Arc<Costs>, desks: usize) -> Self {
        let modules = fixed.stations.len();
        let state = State::new(modules);
        let mut known = costs.known();
        known.estimator.make_room_for(modules);
        let moment = Moment { classes: &[], waiting: &|_| 0, held: &|_| None, now: Nanos::ZERO };
        let table = plan(&fixed.prospect(&state, &known.estimator, &moment));
        let turns = fixed.take_turns(&known.estimator).then(|| Mutex::new(Turns::new(LANES)));
        drop(known);
        Self {
            turns,
            has_turn: AtomicBool::new(false),
            is_alarmed: AtomicBool::new(false),
            core_changes: AtomicU32::new(0),
            fixed,
            costs: Arc::clone(costs),
            state: Mutex::new(state),
            table: RwLock::new(Arc::new(table)),
            planned_ns: CachePadded::new(AtomicU64::new(0)),
            busy_until_ns: (0..desks).map(|_| CachePadded::new(AtomicU64::new(0))).collect(),
            held: (0..modules).map(|_| CachePadded::new(Held::default())).collect(),
            controls: Controls::new(LANES),
            paths_ns: AtomicU64::new(0),
        }
    }

    /// Leaves those classes alone of which it is known from the beginning that no module takes them: a short run is over
    /// before anybody has looked.
    pub(crate) fn begin(&self, lanes: &Lanes<'_>) {
        let (state, known) = (self.state(), self.costs.known());
        let mut classes: Vec<Class> = known.estimator.all_cpu().map(|(class, ..)| class).collect();
        classes.dedup();
        let moment = Moment { classes: &classes, waiting: &|_| 1, held: &|_| None, now: Nanos::ZERO };
        let table = plan(&self.fixed.prospect(&state, &known.estimator, &moment));
        for (lane, &class) in classes.iter().enumerate() {
            lanes.leave_alone(class, table.expected(lane, None) > Nanos::ZERO && !table.is_open(lane));
        }
    }

    /// What an idle core takes: a lane and how many jobs, or how long to wait at most for something to change.
    pub(crate) fn core_takes(&self, lanes: &Lanes<'_>, now: Nanos) -> Result<Claim, Nanos> {
        if let Some(turn) = self.core_in_turn(lanes, now) {
            return turn;
        }
        let table = self.table(lanes, now);
        if let Some(lane) = self.controls.due(|lane| lane < table.lanes() && lanes.waiting(lane) > 0) {
            // One job, and its burst is sampled.
            self.costs.sample_next(lanes.classes()[lane], 1);
            return Ok(Claim { lane, jobs_max: 1, each: table.expected(lane, None) });
        }
        let modules_busy = self.least_busy(self.fixed.first_module_desk..self.busy_until_ns.len(), now);
        match table.core_takes(|lane| lanes.waiting(lane), modules_busy) {
            Choice::Take { lane, .. } => {
                let each = table.expected(lane, None);
                Ok(Claim { lane, jobs_max: jobs_in_time(each), each })
            }
            Choice::AskAgainIn(time) => Err(self.rest(lanes, &table, time)),
            Choice::Leave => Err(PLAN_AGE_MAX),
        }
    }

    /// How long a core rests that is to ask again after `time`. Where there is only one, each look takes it from the modules'
    /// paths: then until modules may have done half of what waits, and no longer than a plan is good.
    fn rest(&self, lanes: &Lanes<'_>, table: &Table, time: Nanos) -> Nanos {
        if self.fixed.cores > 1 {
            return time;
        }
        let state = self.state();
        let modules = || 0..state.modules;
        // Who was not measured on a core yet may be waiting for this one.
        let is_measured = |lane: usize| {
            modules().all(|module| state.guard.counters(state.ledger(lane, module)).control_jobs > 0)
        };
        let at_best = |lane: usize| {
            let turn = |module: usize| {
                let requests = u64::from(self.fixed.stations[module].depth) + 1;
                table.expected(lane, Some(module)).0 / requests
            };
            modules().map(turn).min().unwrap_or(0)
        };
        let waiting = || (0..table.lanes()).filter(|&lane| lanes.waiting(lane) > 0);
        if !waiting().all(is_measured) {
            return time;
        }
        let all: u64 =
            waiting().map(|lane| u64::from(lanes.waiting(lane)).saturating_mul(at_best(lane))).sum();
        Nanos(all / 2).min(PLAN_AGE_ON_ONE_CORE).max(time)
    }

    /// What module `module` takes.
    pub(crate) fn module_takes(&self, module: usize, lanes: &Lanes<'_>, now: Nanos) -> Result<Claim, Nanos> {
        let table = self.table(lanes, now);
        if let Some(turn) = self.module_in_turn(&table, lanes) {
            return turn;
        }
        let cores_busy = self.least_busy(0..self.fixed.first_module_desk, now);
        match table.module_takes(module, |lane| lanes.waiting(lane), cores_busy) {
            Choice::Take { lane, is_try } => {
                let goes = match is_try {
                    true => self.count_try(module, lanes, lane, now),
                    false => self.may_route(module, lane),
                };
                if !goes {
                    return Err(WAIT_FOR_CONTROL);
                }
                Ok(Claim { lane, jobs_max: 1, each: table.expected(lane, Some(module)) })
            }
            Choice::AskAgainIn(time) => Err(time),
            Choice::Leave => Err(PLAN_AGE_MAX),
        }
    }

    /// A module is about to begin a job: cores owe its class a control job, where they run too few by themselves. Before
    /// there was any at all, only a few go to modules: the guard takes what they cost for lost.
    fn may_route(&self, module: usize, lane: usize) -> bool {
        let has_cores = self.fixed.first_module_desk > 0;
        let state = &mut *self.state();
        let ledger = state.ledger(lane, module);
        let measured = state.guard.counters(ledger).control_jobs;
        if has_cores && measured == 0 && self.controls.count(lane) >= CONTROL_JOBS_FIRST {
            // Owed again each time: what a core ran last may not have been sampled, and nobody waits for nothing.
            self.controls.owe(lane);
            return false;
        }
        let is_due = self.controls.routed(lane, measured < CONTROL_JOBS_FIRST);
        // Where turns are taken, those of the core are the control.
        if has_cores && is_due && self.turns.is_none() && state.guard.is_control(ledger) {
            self.controls.owe(lane);
        }
        true
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

    /// Jobs of a class that is left to cores alone are about to come. So many may be worth a try where one would not
    /// be: then they wait where modules look.
    pub(crate) fn sees_coming(&self, lanes: &Lanes<'_>, class: Class, count: u32, now: Nanos) {
        let lane = lanes.lane_of(class);
        if lane >= self.current().lanes() {
            self.plan_anew(lanes, now);
        }
        let table = self.current();
        let wants_try = lane < table.lanes()
            && (0..self.fixed.stations.len()).any(|module| table.wants_try(lane, module, count));
        // Who holds the state is about to plan, and others will come.
        let wants_try = wants_try && !cfg!(mutant = "comers_unseen");
        let Some(mut state) = wants_try.then(|| self.state.try_lock().ok()).flatten() else { return };
        if state.may_try(true, now) {
            lanes.leave_alone(class, false);
            lanes.let_modules(true);
        }
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

    /// What module `module` has worked on longest, and since when; `None` where it holds nothing.
    pub(crate) fn holds(&self, module: usize, oldest: Option<(Class, Nanos)>) {
        let held = &self.held[module];
        if let Some((class, _)) = oldest {
            // Relaxed: a hint; a class that belongs to another time makes one plan a little worse.
            held.class.store(u32::try_from(class.index()).unwrap_or(0), Ordering::Relaxed);
        }
        held.since_ns.store(oldest.map_or(0, |(_, since)| since.0), Ordering::Relaxed);
    }

    /// Bursts that ran on a core. Their costs are known already ([`Costs::saw`]).
    pub(crate) fn saw_core(&self, lanes: &Lanes<'_>, samples: &[CostSample]) {
        let state = &mut *self.state();
        for seen in samples {
            let lane = lanes.lane_of(seen.class);
            self.controls.measured(lane);
            for module in 0..state.modules {
                state.guard.control(state.ledger(lane, module), seen.jobs as u64, seen.core);
            }
            let share = (seen.core.as_secs_f64() / seen.wall.as_secs_f64().max(1e-9)).clamp(0.0, 1.0);
            state.share += SHARE_WEIGHT * (share - state.share);
            self.core_measured(lane, seen);
        }
        // The table waits for the first cost of a class.
        if samples.iter().any(|seen| seen.stands_for == 1) {
            self.planned_ns.store(0, Ordering::Relaxed);
        }
    }

    /// Looks whether modules may matter again, where nobody asks because none did.
    pub(crate) fn looks_back(&self, lanes: &Lanes<'_>, now: Nanos) {
        let planned = self.planned_ns.load(Ordering::Relaxed);
        if planned == 0 || now - Nanos(planned) >= LOOK_BACK_AFTER {
            self.plan_anew(lanes, now);
        }
    }

    /// Jobs that a module did.
    pub(crate) fn saw_module(&self, module: usize, lanes: &Lanes<'_>, class: Class, seen: &Seen) {
        let sample = &seen.sample;
        self.paths_ns.fetch_add(sample.d.0, Ordering::Relaxed);
        let lambda = self.current().lambda();
        let state = &mut *self.state();
        let mut known = self.costs.known();
        let before = known.estimator.on_module(module, class);
        let is_first = before.d.samples == 0;
        let news = if self.turns.is_some() { seen.news_in_turn(&before) } else { seen.news(&before) };
        known.estimator.saw_module(module, class, &news);
        drop(known);
        let lane = lanes.lane_of(class);
        self.module_measured(module, class, lane, seen);
        // What turns cost is bounded by themselves.
        if self.lane_of_module_turn() != Some(lane) {
            let ledger = state.ledger(lane, module);
            let was_locked = state.guard.is_locked(ledger, sample.now);
            state.guard.routed(ledger, sample.jobs, scaled(sample.d, lambda), sample.now);
            let is_alarm = !was_locked && state.guard.is_locked(ledger, sample.now);
            // Relaxed: whoever sees it takes it away.
            self.is_alarmed.fetch_or(is_alarm && !cfg!(mutant = "alarm_unheard"), Ordering::Relaxed);
        }
        if is_first {
            self.planned_ns.store(0, Ordering::Relaxed);
        }
    }

    /// Core time of modules' paths so far.
    pub(crate) fn paths(&self) -> Nanos {
        // Relaxed: a sum that is sampled.
        Nanos(self.paths_ns.load(Ordering::Relaxed))
    }

    /// A core had nothing to do for so long because it left a class to modules; since `paths` they have used more. Each
    /// that takes the class has its part in what is lost.
    pub(crate) fn idled(&self, lane: usize, time: Nanos, paths: Nanos, now: Nanos) {
        let table = self.current();
        // Under `cpu` a core that rests is the aim. Otherwise it loses what is beyond the job that it would have done.
        let beyond = time - table.expected(lane, None);
        if self.fixed.objective == Objective::Cpu || beyond == Nanos::ZERO || lane >= table.lanes() {
            return;
        }
        let state = &mut *self.state();
        let beyond = state.unused(beyond, self.paths() - paths);
        let takers: Vec<usize> =
            (0..state.modules).filter(|&module| table.is_open_to(lane, module)).collect();
        for &module in &takers {
            let ledger = state.ledger(lane, module);
            state.guard.idled(ledger, Nanos(beyond.0 / takers.len() as u64), now);
        }
    }

    /// What clocks do not show of a request on a module's path; nothing where nobody has measured it.
    pub(crate) fn unseen(&self, module: usize) -> Line {
        self.costs.known().estimator.unseen(module).unwrap_or_default()
    }

    /// Cores that the process may use.
    pub(crate) const fn cores(&self) -> usize {
        self.fixed.cores
    }

    /// A module is out of service.
    pub(crate) fn lost(&self, module: usize) {
        self.state().lost[module] = true;
        self.planned_ns.store(0, Ordering::Relaxed);
    }

    /// What the guard did, at the end of a run.
    pub(crate) fn into_counters(self) -> Counters {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut all = state.guard.total();
        all += state.singles.total();
        all
    }

    /// A job is about to be a try, for which the table may be too old: somebody else may be making the next one.
    fn count_try(&self, module: usize, lanes: &Lanes<'_>, lane: usize, now: Nanos) -> bool {
        let Some(&class) = lanes.classes().get(lane) else { return false };
        self.state().trying_since = None;
        self.planned_ns.store(0, Ordering::Relaxed);
        self.costs.known().estimator.tries(module, class, now)
    }

    /// The table in force; made anew by whoever finds it old.
    fn table(&self, lanes: &Lanes<'_>, now: Nanos) -> Arc<Table> {
        // Relaxed: two workers that both find it old make it twice, which does no harm.
        let planned = self.planned_ns.load(Ordering::Relaxed);
        let age_max = if self.fixed.cores == 1 { PLAN_AGE_ON_ONE_CORE } else { PLAN_AGE_MAX };
        let is_old = planned == 0 || now - Nanos(planned) >= age_max;
        let table = self.current();
        if is_old || table.lanes() != lanes.count() {
            self.plan_anew(lanes, now);
            return self.current();
        }
        table
    }

    /// Makes a new table, unless somebody else is about to.
    fn plan_anew(&self, lanes: &Lanes<'_>, now: Nanos) {
        let Ok(mut state) = self.state.try_lock() else { return };
        self.planned_ns.store(now.0.max(1), Ordering::Relaxed);
        let classes = lanes.classes();
        let table = {
            let known = self.costs.known();
            let (waiting, held) = (|lane| lanes.waiting(lane), |module| self.held(module));
            let moment = Moment { classes: &classes, waiting: &waiting, held: &held, now };
            let worked = |lane: usize| known.worked.get(&classes[lane]).copied().unwrap_or_default();
            plan(&self.fixed.prospect(&state, &known.estimator, &moment)).having_worked(worked)
        };
        let wants_try = |lane: usize| {
            let waiting = lanes.waiting(lane).max(1);
            (0..self.fixed.stations.len()).any(|module| table.wants_try(lane, module, waiting))
        };
        let may_try = state.may_try((0..table.lanes()).any(wants_try), now);
        let has_turn = self.lane_of_module_turn();
        let matters =
            |lane: usize| table.is_open(lane) || may_try && wants_try(lane) || has_turn == Some(lane);
        for (lane, &class) in classes.iter().enumerate() {
            // A turn of the module is no reason for others to ask it.
            let is_alone =
                table.expected(lane, None) > Nanos::ZERO && (!matters(lane) || has_turn == Some(lane));
            lanes.leave_alone(class, is_alone);
        }
        let any_matters = (0..table.lanes()).any(matters);
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
        lanes.let_modules(any_matters);
    }

    fn current(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self, module: usize) -> Option<(Class, Nanos)> {
        let held = &self.held[module];
        let since = Nanos(held.since_ns.load(Ordering::Relaxed));
        let class = Class::from_index(held.class.load(Ordering::Relaxed) as usize)?;
        (since > Nanos::ZERO).then_some((class, since))
    }

    fn busy(&self, desk: usize, now: Nanos) -> Nanos {
        Nanos(self.busy_until_ns[desk].load(Ordering::Relaxed)) - now
    }

    /// The least of that; nothing where there is nobody.
    fn least_busy(&self, desks: std::ops::Range<usize>, now: Nanos) -> Nanos {
        desks.map(|desk| self.busy(desk, now)).min().unwrap_or_default()
    }
}

pub(crate) fn scaled(time: Nanos, by: f64) -> Nanos {
    Nanos::from(std::time::Duration::from(time).mul_f64(by.clamp(0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evener_core::estimate::ModuleSample;
    use evener_core::plan::adaptive::Station;
    use evener_core::{Estimator, Method};

    use crate::lanes::tests::{job, session};

    const fn ms(millis: u64) -> Nanos {
        Nanos::from_millis(millis)
    }

    #[test]
    fn modules_are_kept_awake_for_a_try_only_for_a_while_and_again_after_a_pause() {
        let mut state = State::new(1);
        assert!(!state.may_try(false, ms(5)));
        let at = |state: &mut State, times: [u64; 4]| times.map(|time| state.may_try(true, ms(time)));
        assert_eq!(at(&mut state, [10, 50, 60, 61]), [true, true, true, false]);
        assert_eq!(at(&mut state, [70, 310, 312, 350]), [false, false, true, true]);
        // One that is not wanted any more begins anew.
        assert!(!state.may_try(false, ms(355)));
        assert_eq!(at(&mut state, [360, 365, 410, 411]), [true, true, true, false]);
    }

    #[test]
    fn what_modules_use_of_a_rest_is_not_lost_and_what_they_use_beyond_it_offsets_little() {
        let mut state = State::new(1);
        let us = Nanos::from_micros;
        assert_eq!(state.unused(us(1_000), us(700)), us(300));
        // A request of 800 us ended in a rest of 500.
        assert_eq!(
            (state.unused(us(500), us(800)), state.unused(us(500), Nanos::ZERO)),
            (Nanos::ZERO, us(200))
        );
        // Not more than a millisecond is remembered.
        assert_eq!(state.unused(Nanos::ZERO, us(9_000)), Nanos::ZERO);
        assert_eq!(state.unused(us(3_000), Nanos::ZERO), us(2_000));
    }

    /// A weigher of one module that two requests of 16 KiB keep busy for 240 us each, on a machine with so many cores.
    pub(super) fn weigher(cores: usize) -> (Weigher, Lanes<'static>, Class) {
        let class = job(session(), 16_384).class();
        let mut learned = Estimator::new(1);
        for _ in 0..16 {
            learned.saw_cpu(class, Method::Plain, 16, 16 * 16_384, Nanos::from_micros(16 * 400));
            learned.saw_module(0, class, &sample(240, 480));
        }
        (weigher_with(cores, learned), Lanes::new(4_096), class)
    }

    /// The same of which so much was learned.
    pub(super) fn weigher_with(cores: usize, learned: Estimator) -> Weigher {
        let fixed = Circumstances {
            objective: Objective::Throughput,
            cores,
            cpu_workers: 1,
            first_module_desk: 1,
            stations: vec![Station { units: 2, depth: 2 }],
            does: vec![vec![true; Class::COUNT]],
        };
        Weigher::new(fixed, &Arc::new(Costs::new(learned)), 2)
    }

    pub(super) fn sample(d: u64, h: u64) -> ModuleSample {
        let [d, h] = [d, h].map(Nanos::from_micros);
        ModuleSample { jobs: 1, bytes: 16_384, d, h, now: ms(1) }
    }

    #[test]
    fn the_only_core_rests_long_beside_many_jobs_and_short_before_it_was_measured() {
        let us = Nanos::from_micros;
        let rest = |cores: usize, waiting: usize, is_measured: bool| {
            let (weigher, lanes, class) = weigher(cores);
            let lane = lanes.lane_of(class);
            let mut jobs: Vec<_> = (0..waiting).map(|_| job(session(), 16_384)).collect();
            lanes.push_all(&mut jobs);
            let table = weigher.table(&lanes, ms(1));
            if is_measured {
                let ledger = weigher.state().ledger(lane, 0);
                weigher.state().guard.control(ledger, 1, us(400));
            }
            weigher.rest(&lanes, &table, us(1_000))
        };
        // A third of 240 + 480 us for each, and half of that.
        assert_eq!([10, 40, 100].map(|waiting| rest(1, waiting, true)), [us(1_200), us(4_800), ms(8)]);
        assert_eq!([rest(1, 100, false), rest(2, 100, true)], [ms(1); 2]);
    }

    #[test]
    fn each_lane_and_module_has_a_ledger_of_its_own() {
        let state = State::new(3);
        let mut all: Vec<usize> = (0..LANES)
            .flat_map(|lane| (0..3).map(move |module| (lane, module)))
            .map(|(lane, module)| state.ledger(lane, module))
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..3 * LANES).collect::<Vec<_>>());
    }
}
