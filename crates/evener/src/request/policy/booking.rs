//! What requests took, booked with the guard and the estimator ([`Learned::stayed`], [`Learned::went`], [`Learned::followed`]):
//!
//! | a request | the guard | the estimator |
//! |---|---|---|
//! | stayed on its core | its cost there | costs of the core, the core's share |
//! | went to a module | its cost there; may lock the class | costs of the module, where it says what requests take |
//! | followed one that went, unmeasured | the mean of all of them | nothing |
//! | was the first of a process at a module | nothing | nothing: driver, threads and a key were made for it |

use std::mem;

use evener_core::estimate::ModuleSample;
use evener_core::guard::RequestSize;
use evener_core::plan::adaptive;
use evener_core::{Class, Method, Nanos};

use super::super::shared_module::SharedModule;
use super::knowledge::Learned;
use super::tuning::TUNING;
use super::unsampled_run::RunStats;
use super::{Concurrency, Query};
use crate::core_price::{self, contested, scaled};

/// A request that has ended, as far as it is booked.
pub(super) struct Request {
    pub(super) size: RequestSize,
    pub(super) class: Class,
    pub(super) concurrency: Concurrency,
    /// The module, where other processes have it, too.
    pub(super) shared: Option<&'static SharedModule>,
    /// Time that it waited for its turn there.
    pub(super) waited: Nanos,
    /// Whether it waited in vain.
    pub(super) is_refused: bool,
}

/// Books what requests took.
impl Learned {
    /// Requests that are not to be looked at after one that was kept and took so long. The more a class has worked without a module, the fewer looks it is worth.
    pub(super) fn next_unsampled(&mut self, request: &Request, core: Nanos) -> u32 {
        let alone = self.worked.get(&request.class).copied().unwrap_or_default();
        let worked = if request.concurrency.is_alone() { alone } else { self.worked_beside };
        self.sampling.next_unsampled(request.class, core, worked)
    }

    /// Tells other processes what is known of the class of a request that went to a module.
    fn tell_others(&self, request: &Request, module: usize) {
        let on_module = self.estimator.on_module(module, request.class);
        if let Some((shared, c)) = request.shared.zip(self.estimator.cpu(request.class, Method::Plain, 1)) {
            shared.publish(request.class, c, &on_module);
        }
    }

    /// What counts of a request: the time and the core time at its price, or core time alone.
    fn cost(&self, request: &Request, wall: Nanos, core: Nanos) -> Nanos {
        match request.concurrency {
            Concurrency::Alone | Concurrency::SameCall => wall + scaled(core, contested(self.share)),
            Concurrency::SameThread => core,
        }
    }

    /// One that stayed.
    pub(super) fn stayed(&mut self, request: &Request, wall: Nanos, core: Nanos) {
        if request.concurrency.is_alone() {
            let (class, bytes) = (request.class, request.size.bytes as u64);
            self.estimator.saw_cpu(class, Method::Plain, 1, bytes, core);
            let worked = self.worked.entry(class).or_default();
            let unsampled = self.sampling.unsampled(class);
            let before = *worked;
            *worked += Nanos(core.0.saturating_mul(u64::from(unsampled) + 1));
            if before < adaptive::TUNING.try_work_min
                && adaptive::TUNING.try_work_min <= *worked
                && !cfg!(mutant = "tries_wait_for_tables")
            {
                // From now on a try is worth while.
                self.tables.remove(&class);
            }
            let share = (core.as_secs_f64() / wall.as_secs_f64().max(1e-9)).clamp(0.0, 1.0);
            self.share += core_price::TUNING.share_weight * (share - self.share);
        }
        if request.concurrency == Concurrency::SameThread && self.worked_beside < TUNING.first_beside_work {
            let looks_for = u64::from(self.sampling.unsampled(request.class)) + 1;
            self.worked_beside += Nanos(core.0.saturating_mul(looks_for));
        }
        self.guard.stayed(request.size, self.cost(request, wall, core));
    }

    /// Books what those took that followed one that went to `module`; whether that locked their class.
    pub(super) fn followed(
        &mut self,
        query: &Query<'_>,
        (module, past): (usize, RunStats),
        now: Nanos,
    ) -> bool {
        let RunStats { requests, wall, bytes } = past;
        let Some(mean) = bytes.checked_div(requests.into()) else { return false };
        let size = RequestSize { bytes: usize::try_from(mean).unwrap_or(usize::MAX), ..query.size };
        let each = self.estimator.on_module(module, query.class).d.at(size.bytes).unwrap_or_default();
        let core = Nanos(each.0.saturating_mul(requests.into()));
        self.guard.went_together(size, requests.into(), wall + scaled(core, contested(self.share)), now)
    }

    /// One that went to a module; whether that locked its class.
    pub(super) fn went(
        &mut self,
        request: &Request,
        module: usize,
        wall: Nanos,
        core: Option<Nanos>,
        now: Nanos,
    ) -> bool {
        let bytes = request.size.bytes;
        if self.is_warm.len() <= module {
            self.is_warm.resize(module + 1, false);
        }
        if !mem::replace(&mut self.is_warm[module], true) && !cfg!(mutant = "first_request_judged") {
            // Some milliseconds, once in a process: neither what requests take nor what a lock would save.
            if let Some(trial) = self.trials.get_mut(&request.class) {
                trial.began = now;
            }
            return false;
        }
        let was_tried = self.trials.contains_key(&request.class);
        // Of one that waited in vain only the loss is known.
        let has_been = !request.is_refused;
        let teaches = has_been && request.concurrency.is_alone() && self.teaches(request, module, wall, now);
        if let Some(d) = core.filter(|_| teaches) {
            // Time in which others had the module is not what it takes.
            let h = wall - d - request.waited;
            let seen = ModuleSample { jobs: 1, bytes: bytes as u64, d, h, now };
            let is_first = self.estimator.on_module(module, request.class).d.samples == 0;
            self.estimator.saw_module(module, request.class, &seen);
            self.tell_others(request, module);
            if is_first || was_tried && !self.trials.contains_key(&request.class) {
                self.tables.remove(&request.class);
            }
        }
        let known = || self.estimator.on_module(module, request.class).d.at(bytes).unwrap_or_default();
        let cost = self.cost(request, wall, core.unwrap_or_else(known));
        self.guard.went(request.size, cost, now)
    }

    /// Whether a request that took so long at `module` says what requests take there; the trial that it was of goes on, or ends.
    fn teaches(&mut self, request: &Request, module: usize, wall: Nanos, now: Nanos) -> bool {
        let class = request.class;
        let Some(trial) = self.trials.get_mut(&class).filter(|trial| trial.module == module) else {
            return true;
        };
        // It looks at other classes, too: not for each request.
        let c = self.estimator.c(class, request.size.bytes, 1).unwrap_or_default();
        let step = trial.record(wall, c, now);
        if step.is_over {
            self.trials.remove(&class);
        }
        step.teaches
    }
}
