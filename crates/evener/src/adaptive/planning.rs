//! When a table is made, and what follows from it for queues: which classes are left alone, whether modules matter.
//!
//! The worker that needs the table ([`AdaptivePolicy::table`]) and finds it old makes the next one ([`AdaptivePolicy::plan_anew`]). Before a run,
//! and where no worker queries it because no module takes anything: [`AdaptivePolicy::begin`], [`AdaptivePolicy::replan`],
//! [`AdaptivePolicy::on_submit`].

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use evener_core::plan::adaptive::{self, Table, plan};
use evener_core::{Class, Nanos};

use super::planner_input::RunSnapshot;
use super::tuning::TUNING;
use super::{AdaptivePolicy, WorkerKind};
use crate::queue::class_queues::ClassQueues;

impl AdaptivePolicy {
    /// Leaves those classes alone of which it is known from the beginning that no module takes them: a short run is over
    /// before any worker has looked.
    pub(crate) fn begin(&self, queues: &ClassQueues<'_>) {
        let (state, known) = (self.state(), self.costs.known());
        let mut classes: Vec<Class> = known.estimator.all_cpu().map(|(class, ..)| class).collect();
        classes.dedup();
        let moment = RunSnapshot {
            classes: &classes,
            waiting: &|_| 1,
            held: &|_| None,
            now: Nanos::ZERO,
            begun: Nanos::ZERO,
        };
        let table = plan(&self.fixed.plan_input(&state, &known.estimator, &moment));
        for (queue, &class) in classes.iter().enumerate() {
            queues.leave_alone(class, table.expected(queue, None) > Nanos::ZERO && !table.is_open(queue));
        }
    }

    /// Whether modules take anything at all at the moment, of these classes of which so many jobs are about to come. Opens queues for
    /// classes that are new.
    pub(crate) fn modules_matter(
        &self,
        queues: &ClassQueues<'_>,
        classes: impl Iterator<Item = Class>,
        coming: u32,
        now: Nanos,
    ) -> bool {
        classes.for_each(|class| _ = queues.queue_of(class));
        self.table_of_all(queues, coming, now);
        queues.modules_matter()
    }

    /// Jobs of a class that is left to cores alone are about to come. So many may be worth a try where one would not
    /// be: then they wait where modules look.
    pub(crate) fn on_submit(&self, queues: &ClassQueues<'_>, class: Class, count: u32, now: Nanos) {
        let queue = queues.queue_of(class);
        if queue >= self.current().classes() {
            self.plan_anew(queues, now);
        }
        let table = self.current();
        let coming = |other: usize| if other == queue { count } else { 0 };
        let wants_try = queue < table.classes()
            && (0..self.fixed.capacities.len()).any(|module| table.takes_try(queue, module, coming));
        // The thread that holds the state is about to plan, and others will come.
        let wants_try = wants_try && !cfg!(mutant = "comers_unseen");
        let Some(mut state) = wants_try.then(|| self.state.try_lock().ok()).flatten() else { return };
        if state.may_try(true, now) {
            queues.leave_alone(class, false);
            queues.let_modules(true);
        }
    }

    /// Looks whether modules may matter again, where no worker queries the policy because none did. `alone` jobs wait for cores alone.
    pub(crate) fn replan(&self, queues: &ClassQueues<'_>, alone: u32, now: Nanos) {
        let planned = self.planned_ns.load(Ordering::Relaxed);
        let after = if self.fixed.cores == 1 { TUNING.plan_age_on_one_core } else { TUNING.look_back_after };
        if planned == 0 || now - Nanos(planned) >= after {
            self.plan_beside(queues, alone, now);
        }
    }

    /// The table in force; made anew by the worker that finds it old.
    pub(super) fn table(&self, queues: &ClassQueues<'_>, now: Nanos) -> Arc<Table> {
        self.table_beside(queues, 0, now)
    }

    /// The same where so many jobs are about to come.
    fn table_beside(&self, queues: &ClassQueues<'_>, coming: u32, now: Nanos) -> Arc<Table> {
        // Relaxed: two workers that both find it old make it twice, which does no harm.
        let planned = self.planned_ns.load(Ordering::Relaxed);
        let age_max =
            if self.fixed.cores == 1 { TUNING.plan_age_on_one_core } else { adaptive::TUNING.plan_age_max };
        let is_old = planned == 0 || now - Nanos(planned) >= age_max;
        let table = self.current();
        if is_old || table.classes() != queues.count() {
            self.plan_beside(queues, coming, now);
            return self.current();
        }
        table
    }

    /// The same, with all classes that came: where another thread is making one, it is worth the wait, for the one before knows
    /// nothing of a class that is new.
    pub(super) fn table_of_all(&self, queues: &ClassQueues<'_>, coming: u32, now: Nanos) -> Arc<Table> {
        loop {
            let table = self.table_beside(queues, coming, now);
            if table.classes() == queues.count() || cfg!(mutant = "old_table_asked") {
                return table;
            }
            drop(self.state());
        }
    }

    /// Makes a new table, unless another thread is about to.
    pub(super) fn plan_anew(&self, queues: &ClassQueues<'_>, now: Nanos) {
        self.plan_beside(queues, 0, now);
    }

    /// The same where so many jobs wait for cores alone or are about to come, which a try may be taken from.
    fn plan_beside(&self, queues: &ClassQueues<'_>, alone: u32, now: Nanos) {
        let Ok(mut state) = self.state.try_lock() else { return };
        self.planned_ns.store(now.0.max(1), Ordering::Relaxed);
        let begun = *state.begun.get_or_insert(now);
        let classes = queues.classes();
        let table = {
            let known = self.costs.known();
            let (waiting, held) = (|queue| queues.waiting(queue), |module| self.oldest(module));
            let moment = RunSnapshot { classes: &classes, waiting: &waiting, held: &held, now, begun };
            let worked = |queue: usize| known.worked.get(&classes[queue]).copied().unwrap_or_default();
            plan(&self.fixed.plan_input(&state, &known.estimator, &moment)).having_worked(worked)
        };
        // Where a module would not take it, its thread is not kept awake for it: beside that, a short burst takes 7 % longer.
        let wants_try = |queue: usize| {
            let own = (queues.waiting(queue) + alone).max(1);
            let waiting = |other: usize| if other == queue { own } else { queues.waiting(other) };
            (0..self.fixed.capacities.len()).any(|module| table.takes_try(queue, module, waiting))
        };
        let may_try = state.may_try((0..table.classes()).any(wants_try), now);
        let has_turn = self.alternation.queue_of_module_turn();
        let matters =
            |queue: usize| table.is_open(queue) || may_try && wants_try(queue) || has_turn == Some(queue);
        for (queue, &class) in classes.iter().enumerate() {
            // A turn of the module is no reason for others to give it jobs.
            let is_alone =
                table.expected(queue, None) > Nanos::ZERO && (!matters(queue) || has_turn == Some(queue));
            queues.leave_alone(class, is_alone);
        }
        let any_matters = (0..table.classes()).any(matters);
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
        self.alternation.mark_changed(&[WorkerKind::Core, WorkerKind::Module]);
        queues.let_modules(any_matters);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use evener_core::{Estimator, Method};

    use super::super::tests::{adaptive, adaptive_of, sample};
    use super::*;
    use crate::queue::test_support::{job, session};

    /// The module takes 1 ms for a job that a core does in 50 us, and was last tried long ago.
    #[test]
    fn modules_are_kept_awake_for_a_try_only_where_so_much_waits_that_it_would_not_come_last() {
        let class = job(session(), 16_384).class();
        let matters_beside = |alone: u32| {
            let us = Nanos::from_micros;
            let mut learned = Estimator::new(1);
            for _ in 0..16 {
                learned.saw_cpu(class, Method::Plain, 16, 16 * 16_384, us(16 * 50));
                learned.saw_module(0, class, &sample(500, 500));
            }
            let (adaptive, queues) = (adaptive_of(2, 2, learned), ClassQueues::new(4_096));
            queues.queue_of(class);
            adaptive.costs.known().worked.insert(class, Nanos::from_millis(100));
            adaptive.replan(&queues, alone, Nanos::from_millis(5_000));
            queues.modules_matter()
        };
        // Half a millisecond of work, then ten.
        assert_eq!([10, 200].map(matters_beside), [false, true]);
    }

    #[test]
    fn a_worker_with_a_class_that_no_table_has_waits_for_the_table_that_is_being_made() {
        let (adaptive, queues, class) = adaptive(2);
        let (adaptive, queues) = (&adaptive, &queues);
        thread::scope(|scope| {
            // As the thread that makes a table holds it.
            let state = adaptive.state();
            let query =
                scope.spawn(move || adaptive.modules_matter(queues, [class].into_iter(), 1, Nanos(1)));
            thread::sleep(Duration::from_millis(30));
            drop(state);
            assert!(query.join().unwrap(), "the module is known to pay");
        });
    }
}
