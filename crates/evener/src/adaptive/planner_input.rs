//! What the planner is shown of a run: estimates, guard, what waits, what a module keeps too long.

use evener_core::estimate::PLAN_WIDTH;
use evener_core::plan::adaptive::{ClassInput, CostOnModule, ModuleCapacity, PlanInput, all_of_turn};
use evener_core::{Class, Estimator, Nanos, Objective};

use super::State;
use crate::core_price::{self, contested};

/// What never changes during a run.
pub(crate) struct RunFacts {
    pub(crate) objective: Objective,
    /// Cores that this process may use.
    pub(crate) cores: usize,
    /// Threads that run jobs on cores.
    pub(crate) cpu_workers: usize,
    /// Number of the first module worker; those below are CPU workers.
    pub(crate) first_module_worker: usize,
    pub(crate) capacities: Vec<ModuleCapacity>,
    /// By module: one result in so many is checked, for which a core does the job again.
    pub(crate) check_every: Vec<u32>,
    /// By module, then by [`Class::index`]: whether its driver does it.
    pub(crate) does: Vec<Vec<bool>>,
}

/// What is different with every plan.
pub(super) struct RunSnapshot<'m> {
    /// By queue.
    pub(super) classes: &'m [Class],
    pub(super) waiting: &'m dyn Fn(usize) -> u32,
    /// By module: the class of the request that it has worked on longest, and since when.
    pub(super) held: &'m dyn Fn(usize) -> Option<(Class, Nanos)>,
    pub(super) now: Nanos,
    /// When the first plan of the run was made.
    pub(super) begun: Nanos,
}

impl RunFacts {
    /// 0 where there is a core for each module's worker, 1 where cores are as scarce as CPU workers want them.
    fn lambda(&self, share: f64) -> f64 {
        let spare = self.cores.saturating_sub(self.cpu_workers);
        let modules = self.capacities.len().max(1);
        let wanted = 1.0 - float(spare.min(modules)) / float(modules);
        wanted.max(contested(share))
    }

    /// Whether the only core and the only module take turns: its path works on that core, in the kernel, and cannot be told from
    /// what else works there.
    pub(super) fn take_turns(&self, estimator: &Estimator) -> bool {
        self.cores == 1
            && self.cpu_workers == 1
            && self.first_module_worker == 1
            && self.capacities.len() == 1
            && estimator.overhead(0).is_some()
    }

    pub(super) fn plan_input(
        &self,
        state: &State,
        estimator: &Estimator,
        moment: &RunSnapshot<'_>,
    ) -> PlanInput {
        let modules = 0..self.capacities.len();
        let take_turns = self.take_turns(estimator);
        // On one core a request waits for it as for the module.
        let late = |module| if take_turns { Nanos::ZERO } else { self.late(module, estimator, moment) };
        let late: Vec<Nanos> = modules.clone().map(late).collect();
        let row = |(queue, &class): (usize, &Class)| {
            let bytes = size(class);
            let c = estimator.c(class, bytes, PLAN_WIDTH);
            let on_module = |module: usize| {
                let tries_left = estimator.tries_left(module, class, moment.now);
                // Where turns are taken, a lock is an alarm, and the turn decides.
                let is_locked = !take_turns && state.is_locked(queue, module, moment.now);
                let known = estimator.on_module(module, class);
                let is_long_untried = estimator.is_long_untried(module, class, moment.begun, moment.now);
                let (known, tries_left) = match take_turns {
                    true => {
                        let depth = self.capacities[module].depth;
                        let cost = known.at_speed_of(bytes, c).map(|cost| self.with_checks(module, cost, c));
                        let cost = cost.map(|(d, h)| (all_of_turn(d, h, depth), h));
                        (cost, if cost.is_some() { 0 } else { tries_left })
                    }
                    false => (known.at(bytes), tries_left),
                };
                match known {
                    _ if is_locked || state.lost[module] || !self.does[module][class.index()] => {
                        CostOnModule::Never
                    }
                    Some((d, h)) => {
                        CostOnModule::Known { d, h: h.max(late[module]), tries_left, is_long_untried }
                    }
                    None => CostOnModule::Unknown { tries_left },
                }
            };
            ClassInput {
                c,
                waiting: (moment.waiting)(queue),
                on_modules: modules.clone().map(on_module).collect(),
            }
        };
        PlanInput {
            objective: self.objective,
            cpu_workers: u32::try_from(self.cpu_workers).unwrap_or(u32::MAX),
            share: state.share.max(core_price::TUNING.share_min),
            lambda: self.lambda(state.share),
            // Lowering a thread's priority is allowed, raising it again is not (docs/design/adaptive.md).
            yields: false,
            capacities: self.capacities.clone(),
            classes: moment.classes.iter().enumerate().map(row).collect(),
        }
    }

    /// What `d + h` of a module is of the time from one of its results to the next: `h` holds the time of all that are outstanding,
    /// `d` that of one.
    pub(super) fn turns_held(&self, module: usize) -> u32 {
        match self.capacities[module].depth {
            0 | 1 => 1,
            depth => depth + 1,
        }
    }

    /// What a core that takes `c` takes for the checks of one result of a module.
    pub(super) fn check(&self, module: usize, c: Nanos) -> Nanos {
        if cfg!(mutant = "checks_are_free") {
            Nanos::ZERO
        } else {
            Nanos(c.0 / u64::from(self.check_every[module]))
        }
    }

    /// `d` and `h` on the only core, on which results are checked, too.
    fn with_checks(&self, module: usize, (d, h): (Nanos, Nanos), c: Option<Nanos>) -> (Nanos, Nanos) {
        let turn = (d + h).0 / u64::from(self.turns_held(module));
        let check = self.check(module, c.unwrap_or_default());
        let longer = |time: Nanos| time + Nanos(time.0.saturating_mul(check.0) / turn.max(1));
        (longer(d), longer(h))
    }

    /// What a module takes for a job at the least, where it has been busy with one for longer than it should.
    fn late(&self, module: usize, estimator: &Estimator, moment: &RunSnapshot<'_>) -> Nanos {
        let Some((class, since)) = (moment.held)(module) else { return Nanos::ZERO };
        let Some((d, h)) = estimator.on_module(module, class).at(size(class)) else { return Nanos::ZERO };
        let (age, depth) = (moment.now - since, u64::from(self.capacities[module].depth.max(1)));
        let is_late = age.0 > (d + h).0.saturating_mul(depth + 1) && !cfg!(mutant = "overdue_ignored");
        if is_late { Nanos(age.0 / depth) } else { Nanos::ZERO }
    }
}

/// The size that stands for a class.
fn size(class: Class) -> usize {
    (*class.bytes().end()).min(2 << 20)
}

#[expect(clippy::cast_precision_loss, reason = "cores are few")]
const fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use evener_core::estimate::ModuleSample;
    use evener_core::{Algorithm, Direction};

    #[test]
    fn a_request_that_is_overdue_says_what_the_module_takes_now() {
        let class = Class::of(Algorithm::Aes128Cbc, Direction::Encrypt, 1_024, false);
        let mut estimator = Estimator::new(1);
        let (d, h) = (Nanos(100), Nanos(900));
        estimator.saw_module(0, class, &ModuleSample { jobs: 1, bytes: 1_024, d, h, now: Nanos(1) });
        let fixed = RunFacts {
            objective: Objective::Throughput,
            cores: 2,
            cpu_workers: 1,
            first_module_worker: 1,
            capacities: vec![ModuleCapacity { units: 2, depth: 2 }],
            check_every: vec![32],
            does: vec![vec![true; Class::COUNT]],
        };
        let h_after = |age: u64| {
            let held = |_| Some((class, Nanos(10_000)));
            let now = Nanos(10_000 + age);
            let moment = RunSnapshot { classes: &[class], waiting: &|_| 1, held: &held, now, begun: now };
            match fixed.plan_input(&State::new(1), &estimator, &moment).classes[0].on_modules[0] {
                CostOnModule::Known { h, .. } => h,
                other => unreachable!("{other:?}"),
            }
        };
        // Three times d + h is what two outstanding may take; beyond that the age, over two.
        assert_eq!([0, 3_000, 3_002, 20_000].map(h_after), [900, 900, 1_501, 10_000].map(Nanos));
    }
}
