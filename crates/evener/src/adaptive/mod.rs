//! Which worker takes what, by cost: the live side of the adaptive policy. Measurements of workers go in, a table for their claims comes out.
//!
//! A worker queries it ([`AdaptivePolicy::next_for_core`], [`AdaptivePolicy::next_for_module`]: `claims.rs`) -> where the table is old that worker
//! makes a new one (`planning.rs`) from costs, guard (`policy_state.rs`) and what waits (`planner_input.rs`,
//! `evener_core::plan::adaptive`) -> the table answers. What bursts took comes back through [`AdaptivePolicy::record_core`] and
//! [`AdaptivePolicy::record_module`] (`observation.rs`). All decisions are `evener-core`'s, the same as on the simulator.
//!
//! Requests of threads that are not a run's have a policy of their own (`request/policy/`), which shares what can be shared: the table, the guard, the
//! estimator and the price of a core. It is another one because here workers take from queues that show what waits, and may wait for a lock; there
//! one request comes at a time, its thread does not wait, and a look at the clock costs a small one more than a module could save.
//!
//! Classes that no module takes are left alone ([`ClassQueues::leave_alone`](crate::queue::class_queues::ClassQueues::leave_alone)): their jobs go the way
//! of `cpu_only`, and no worker queries the policy but once in a while ([`AdaptivePolicy::replan`]). Single requests of callers:
//! `single_requests.rs`. Jobs that cores run so that the guard knows what they take there: `control.rs`. Where the only core and the only
//! module take turns: `alternation/`.

mod alternation;
mod claim;
mod claims;
mod control;
mod observation;
mod planner_input;
mod planning;
mod policy_state;
mod single_requests;
mod tuning;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use evener_core::cost::Line;
use evener_core::guard::Counters;
use evener_core::plan::adaptive::{Table, plan};
use evener_core::{Class, Nanos};
use evener_ring::CachePadded;

use self::alternation::Alternation;
pub(crate) use self::alternation::WorkerKind;
use self::alternation::accounts::Turns;
pub(crate) use self::claim::{AskAgainWithin, Claim};
use self::control::Controls;
pub(crate) use self::observation::{Circumstances, Observation};
pub(crate) use self::planner_input::RunFacts;
use self::planner_input::RunSnapshot;
use self::policy_state::State;
pub(crate) use self::single_requests::Single;
use crate::Costs;
use crate::queue::class_queues::CLASS_QUEUES_MAX;

/// The adaptive policy at work.
pub(crate) struct AdaptivePolicy {
    fixed: RunFacts,
    costs: Arc<Costs>,
    /// Locked before the costs where both are.
    state: Mutex<State>,
    table: RwLock<Arc<Table>>,
    /// When the table was made; 0: it is to be made anew.
    planned_ns: CachePadded<AtomicU64>,
    /// By worker: when it will have done what it holds.
    busy_until_ns: Vec<CachePadded<AtomicU64>>,
    /// By module: what it has worked on longest.
    oldest_in_flight: Vec<CachePadded<OldestInFlight>>,
    /// By module: whether its worker waits while other processes have it.
    absent: Vec<CachePadded<AtomicBool>>,
    controls: Controls,
    /// Core time of modules' paths.
    paths_ns: AtomicU64,
    /// Where the only core and the only module take turns.
    pub(crate) alternation: Alternation,
}

/// What a module works on. Written by its worker.
#[derive(Default)]
struct OldestInFlight {
    /// Since when; 0: it holds nothing.
    since_ns: AtomicU64,
    /// [`Class::index`].
    class: AtomicU32,
}

impl AdaptivePolicy {
    pub(crate) fn new(fixed: RunFacts, costs: &Arc<Costs>, workers: usize) -> Self {
        let modules = fixed.capacities.len();
        let state = State::new(modules);
        let mut known = costs.known();
        known.estimator.make_space_for(modules);
        let moment = RunSnapshot {
            classes: &[],
            waiting: &|_| 0,
            held: &|_| None,
            now: Nanos::ZERO,
            begun: Nanos::ZERO,
        };
        let table = plan(&fixed.plan_input(&state, &known.estimator, &moment));
        let turns = fixed
            .take_turns(&known.estimator)
            .then(|| Turns::new(CLASS_QUEUES_MAX, fixed.capacities[0].depth));
        drop(known);
        Self {
            alternation: Alternation::new(turns),
            fixed,
            costs: Arc::clone(costs),
            state: Mutex::new(state),
            table: RwLock::new(Arc::new(table)),
            planned_ns: CachePadded::new(AtomicU64::new(0)),
            busy_until_ns: (0..workers).map(|_| CachePadded::new(AtomicU64::new(0))).collect(),
            oldest_in_flight: (0..modules).map(|_| CachePadded::new(OldestInFlight::default())).collect(),
            absent: (0..modules).map(|_| CachePadded::new(AtomicBool::new(false))).collect(),
            controls: Controls::new(CLASS_QUEUES_MAX),
            paths_ns: AtomicU64::new(0),
        }
    }

    /// Notes for how long the worker numbered `worker` will be busy with what it took.
    pub(crate) fn set_busy(&self, worker: usize, claim: &Claim, jobs: usize, now: Nanos) {
        // Relaxed: a hint for others' decisions.
        let until = now + Nanos(claim.each.0.saturating_mul(jobs as u64));
        self.busy_until_ns[worker].store(until.0, Ordering::Relaxed);
    }

    /// The worker numbered `worker` holds nothing any more.
    pub(crate) fn set_idle(&self, worker: usize) {
        self.busy_until_ns[worker].store(0, Ordering::Relaxed);
    }

    /// What module `module` has worked on longest, and since when; `None` where it holds nothing.
    pub(crate) fn set_oldest(&self, module: usize, oldest: Option<(Class, Nanos)>) {
        let word = &self.oldest_in_flight[module];
        if let Some((class, _)) = oldest {
            // Relaxed: a hint; a class that belongs to another time makes one plan a little worse.
            word.class.store(u32::try_from(class.index()).unwrap_or(0), Ordering::Relaxed);
        }
        word.since_ns.store(oldest.map_or(0, |(_, since)| since.0), Ordering::Relaxed);
    }

    /// Notes whether other processes have module `module`, so that cores leave nothing to it.
    pub(crate) fn set_absent(&self, module: usize, is_absent: bool) {
        let word = &self.absent[module];
        // Relaxed, here and below: a hint for others' decisions. Asked first, for it is hardly ever news.
        if word.load(Ordering::Relaxed) != is_absent {
            word.store(is_absent, Ordering::Relaxed);
        }
    }

    /// Whether there is no module but those that other processes have.
    fn has_only_absent(&self) -> bool {
        let has_any = !self.absent.is_empty() && !cfg!(mutant = "left_to_absent_modules");
        has_any && self.absent.iter().all(|word| word.load(Ordering::Relaxed))
    }

    /// What clocks do not show of a request on a module's path; nothing where it was not measured.
    pub(crate) fn overhead(&self, module: usize) -> Line {
        self.costs.known().estimator.overhead(module).unwrap_or_default()
    }

    /// Cores that the process may use.
    pub(crate) const fn cores(&self) -> usize {
        self.fixed.cores
    }

    /// A module is out of service.
    pub(crate) fn set_lost(&self, module: usize) {
        self.state().lost[module] = true;
        self.planned_ns.store(0, Ordering::Relaxed);
    }

    /// What the guard did so far.
    pub(crate) fn counters(&self) -> Counters {
        let state = self.state();
        let mut all = state.guard.total();
        all += state.singles.total();
        all
    }

    fn current(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn oldest(&self, module: usize) -> Option<(Class, Nanos)> {
        let word = &self.oldest_in_flight[module];
        let since = Nanos(word.since_ns.load(Ordering::Relaxed));
        let class = Class::from_index(word.class.load(Ordering::Relaxed) as usize)?;
        (since > Nanos::ZERO).then_some((class, since))
    }

    fn busy(&self, worker: usize, now: Nanos) -> Nanos {
        Nanos(self.busy_until_ns[worker].load(Ordering::Relaxed)) - now
    }

    /// The least of that; nothing where there is none.
    fn least_busy(&self, workers: std::ops::Range<usize>, now: Nanos) -> Nanos {
        workers.map(|worker| self.busy(worker, now)).min().unwrap_or_default()
    }
}

/// What the tests of its files share.
#[cfg(test)]
mod tests {
    use super::*;
    use evener_core::estimate::ModuleSample;
    use evener_core::plan::adaptive::ModuleCapacity;
    use evener_core::{Estimator, Method, Objective};

    use crate::queue::class_queues::ClassQueues;
    use crate::queue::test_support::{job, session};

    /// The adaptive policy of one module that two requests of 16 KiB keep busy for 240 us each, on a machine with so many cores.
    pub(super) fn adaptive(cores: usize) -> (AdaptivePolicy, ClassQueues<'static>, Class) {
        let class = job(session(), 16_384).class();
        let mut learned = Estimator::new(1);
        for _ in 0..16 {
            learned.saw_cpu(class, Method::Plain, 16, 16 * 16_384, Nanos::from_micros(16 * 400));
            learned.saw_module(0, class, &sample(240, 480));
        }
        (adaptive_with(cores, learned), ClassQueues::new(4_096), class)
    }

    /// The same of which so much was learned.
    pub(super) fn adaptive_with(cores: usize, learned: Estimator) -> AdaptivePolicy {
        adaptive_of(cores, 1, learned)
    }

    /// The same with so many workers on cores.
    pub(super) fn adaptive_of(cores: usize, cpu_workers: usize, learned: Estimator) -> AdaptivePolicy {
        let fixed = RunFacts {
            objective: Objective::Throughput,
            cores,
            cpu_workers,
            first_module_worker: cpu_workers,
            capacities: vec![ModuleCapacity { units: 2, depth: 2 }],
            check_every: vec![32],
            does: vec![vec![true; Class::COUNT]],
        };
        AdaptivePolicy::new(fixed, &Arc::new(Costs::new(learned)), cpu_workers + 1)
    }

    pub(super) fn sample(d: u64, h: u64) -> ModuleSample {
        let [d, h] = [d, h].map(Nanos::from_micros);
        ModuleSample { jobs: 1, bytes: 16_384, d, h, now: Nanos::from_millis(1) }
    }
}
