//! Single requests of callers: where one goes, and what came of it.
//!
//! A caller asks [`AdaptivePolicy::route_single`] -> here, or a module worker's own queue -> [`AdaptivePolicy::record_single`] with the time that it took. One
//! request in 64 that would go to a module runs on the caller's core as control, as long as modules pay.

use evener_core::plan::adaptive::{Queue, Route};
use evener_core::{Class, Nanos};

use super::{AdaptivePolicy, Claim};
use crate::core_price::scaled;
use crate::queue::class_queues::ClassQueues;

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Single {
    /// It runs on the caller's thread.
    Inline,
    /// The same, and what it takes is the control for those that go to this module.
    Control(LedgerKey),
    /// This module does it.
    Module(LedgerKey),
}

/// Whose ledger a request is booked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LedgerKey {
    pub(crate) module: usize,
    queue: usize,
}

impl AdaptivePolicy {
    /// Where one request goes.
    pub(crate) fn route_single(&self, queues: &ClassQueues<'_>, class: Class, now: Nanos) -> Single {
        let queue = queues.queue_of(class);
        let table = self.table_of_all(queues, 1, now);
        let wait = |worker: usize| Queue { wait: self.busy(worker, now) };
        let waits: Vec<Queue> =
            (self.fixed.first_module_worker..self.busy_until_ns.len()).map(wait).collect();
        if queue >= table.classes() {
            return Single::Inline;
        }
        let tried = (0..waits.len()).find(|&module| table.wants_single_try(queue, module));
        match (table.route(queue, &waits), tried) {
            (Route::Module(module), _) => self.guarded(LedgerKey { module, queue }, now),
            (Route::Inline, Some(module))
                if self.may_try_single(module) && self.count_try(module, queues, queue, now) =>
            {
                Single::Module(LedgerKey { module, queue })
            }
            (Route::Inline, _) => Single::Inline,
        }
    }

    fn may_try_single(&self, module: usize) -> bool {
        !self.state().lost[module]
    }

    /// What the guard makes of a request that is to go to a module.
    fn guarded(&self, key: LedgerKey, now: Nanos) -> Single {
        let state = &mut *self.state();
        let ledger = state.ledger(key.queue, key.module);
        if state.lost[key.module] {
            Single::Inline
        } else if state.singles.is_locked(ledger, now) {
            state.singles.kept_inline(ledger, 1);
            Single::Inline
        } else if state.singles.is_control(ledger) {
            Single::Control(key)
        } else {
            Single::Module(key)
        }
    }

    /// A request came back after `wall`, of which so much was core time: on the caller's core or on the module's path.
    /// What counts is what the objective counts: the time, and the core time at its price.
    pub(crate) fn record_single(&self, single: Single, wall: Nanos, core: Nanos, now: Nanos) {
        let cost = wall + scaled(core, self.current().price_of_one());
        let state = &mut *self.state();
        match single {
            Single::Inline => {}
            Single::Control(key) => {
                state.singles.control(state.ledger(key.queue, key.module), 1, cost);
            }
            Single::Module(key) => {
                state.singles.routed(state.ledger(key.queue, key.module), 1, cost, now);
            }
        }
    }

    /// Core time that a request takes on the path of its module, as far as it is known.
    pub(crate) fn core_of(&self, key: LedgerKey, class: Class, bytes: usize) -> Nanos {
        let known = self.costs.known();
        known.estimator.on_module(key.module, class).d.at(bytes).unwrap_or_default()
    }

    /// A request that module `module` was given: what it will be busy with.
    pub(crate) fn claim_single(
        &self,
        module: usize,
        queues: &ClassQueues<'_>,
        class: Class,
        now: Nanos,
    ) -> Claim {
        let queue = queues.queue_of(class);
        Claim { queue, jobs_max: 1, each: self.table(queues, now).expected(queue, Some(module)) }
    }

    /// Whether a module is out of service. The lock orders it: a caller that put a job into its queue and then asks either learns that
    /// the module is lost, or was in time for the module's worker to find the job there.
    pub(crate) fn is_lost(&self, module: usize) -> bool {
        self.state().lost[module]
    }
}
