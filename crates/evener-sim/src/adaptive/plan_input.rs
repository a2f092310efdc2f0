//! What the planner is shown: costs as learned so far, what waits, and how late a module is.

use evener_core::Nanos;
use evener_core::plan::adaptive::{ClassInput, CostOnModule, PlanInput, all_of_turn};

use super::{Adaptive, fair_share, size};
use crate::lab::{Path, View};

impl Adaptive {
    pub(super) fn plan_input(&self, view: &View<'_>) -> PlanInput {
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
    pub(super) fn expected_time(&self, path: Path, index: usize, at: usize, view: &View<'_>) -> Nanos {
        let (class, bytes) = (self.classes[at], size(view.classes[at].bytes));
        let known = match path {
            Path::Cpu => self.estimator.c(class, bytes, 1),
            Path::Module => self.estimator.on_module(index, class).at(bytes).map(|(d, h)| d + h),
        };
        known.unwrap_or_default()
    }
}
