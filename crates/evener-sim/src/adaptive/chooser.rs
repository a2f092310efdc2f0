//! Answers to workers that ask what to take, and what their samples say.
//!
//! | who asks | answer |
//! |---|---|
//! | any worker, without core time to spend | to ask again later |
//! | a core | what the guard is owed, else what the table says; nothing for a moment where a module is to be tried |
//! | a module | what the table says; again where a try was another's |

use evener_core::estimate::ModuleSample;
use evener_core::plan::adaptive::{Choice as Decision, TUNING};
use evener_core::{Method, Nanos, Objective};

use super::{Adaptive, LEAVE_FOR, fair_share};
use crate::lab::{Choice, Chooser, Path, Sample, View, Which};

impl Chooser for Adaptive {
    fn cpu_takes(&mut self, index: u32, view: &View<'_>) -> Choice {
        if let Some(time) = self.paused_for(Path::Cpu, view.now) {
            self.guard_feed.end_rest(index);
            return Choice::AskAgainIn(time);
        }
        if let Some(class) = self.guard_feed.take_owed(view.classes).filter(|_| !self.takes_turns) {
            self.guard_feed.end_rest(index);
            return self.start(Path::Cpu, index, class, view);
        }
        let modules_busy = self.modules.least_busy(view.now);
        self.plan(view);
        if self.leaves_for_a_try(view) {
            self.guard_feed.end_rest(index);
            return Choice::AskAgainIn(LEAVE_FOR);
        }
        let (_, table) = self.table.as_ref().expect("made above");
        let decision = table.core_takes(|class| view.classes[class].waiting, modules_busy);
        let left = (0..view.classes.len()).find(|&at| view.classes[at].waiting > 0 && table.is_open(at));
        match (decision, left) {
            // For the least effect on other programs a core that rests is the aim, not a loss.
            (Decision::AskAgainIn(_), Some(class)) if self.objective != Objective::Cpu => {
                let share = fair_share(view.cores, view.competing);
                if self.guard_feed.record_rest(index, class, share, view.now) {
                    self.table = None;
                }
            }
            _ => self.guard_feed.end_rest(index),
        }
        self.answer(decision, Path::Cpu, index, view)
    }

    fn module_takes(&mut self, index: u32, view: &View<'_>) -> Choice {
        if let Some(time) = self.paused_for(Path::Module, view.now) {
            return Choice::AskAgainIn(time);
        }
        let cores_busy = self.cpu.least_busy(view.now);
        let module = index as usize;
        let decision = self.plan(view).module_takes(module, |class| view.classes[class].waiting, cores_busy);
        if let Decision::Take { class, is_try } = decision {
            self.guard_feed.record_routed(class);
            if is_try {
                self.table = None;
                if !self.estimator.tries(module, self.classes[class], view.now) {
                    return Choice::AskAgainIn(Nanos(1));
                }
            }
        }
        self.answer(decision, Path::Module, index, view)
    }

    fn observe(&mut self, sample: &Sample) {
        let busy = if sample.worker.path == Path::Cpu { &mut self.cpu } else { &mut self.modules };
        busy.finish(sample.worker.index as usize);
        self.learn(sample);
        for budget in self.budget.iter_mut().chain(&mut self.fair) {
            budget.spent(sample.core + sample.interrupt);
        }
        let lambda = self.table.as_ref().map_or(1.0, |(_, table)| table.lambda());
        if self.guard_feed.record(sample, lambda) {
            self.table = None;
        }
    }

    fn lose(&mut self, index: u32) {
        self.lost[index as usize] = true;
        self.modules.remove_worker(index as usize);
        self.table = None;
    }
}

impl Adaptive {
    /// Records that a worker starts jobs of class `at`; returns the choice that says so.
    fn start(&mut self, path: Path, index: u32, at: usize, view: &View<'_>) -> Choice {
        let each = self.expected_time(path, index as usize, at, view);
        let (busy, jobs) = match path {
            Path::Cpu => (&mut self.cpu, self.claims.jobs(view.classes[at].waiting, each)),
            Path::Module => (&mut self.modules, 1),
        };
        busy.start(index as usize, at, jobs, view.now, Nanos(each.0.saturating_mul(u64::from(jobs))));
        Choice::Take { which: Which::OfClass(at), jobs }
    }

    /// How long a worker of this path may not begin anything.
    fn paused_for(&mut self, path: Path, now: Nanos) -> Option<Nanos> {
        let asks_fair = path == Path::Cpu || self.objective == Objective::Cpu;
        let fair = self.fair.as_mut().filter(|_| asks_fair);
        fair.into_iter().chain(&mut self.budget).find_map(|budget| budget.may_spend(now).err())
    }

    /// Whether a core leaves what waits to a module that is to be tried and has nothing to do: jobs that come one
    /// by one would all be taken by the core, which is sooner there.
    fn leaves_for_a_try(&mut self, view: &View<'_>) -> bool {
        let Some(module) = self.modules.idle() else { return false };
        let Some((_, table)) = &self.table else { return false };
        let wants = |&class: &usize| table.wants_try(class, module, view.classes[class].waiting);
        let Some(class) = (0..view.classes.len()).find(wants) else { return false };
        let may = self.leaves[class] > 0;
        self.leaves[class] = self.leaves[class].saturating_sub(1);
        may
    }

    fn answer(&mut self, decision: Decision, path: Path, index: u32, view: &View<'_>) -> Choice {
        match decision {
            Decision::Take { class, .. } => self.start(path, index, class, view),
            Decision::AskAgainIn(time) => Choice::AskAgainIn(time),
            // The next plan may say otherwise of what waits.
            Decision::Leave if view.waiting() > 0 => Choice::RestAtMost(TUNING.plan_age_max),
            Decision::Leave => Choice::Rest,
        }
    }

    fn learn(&mut self, sample: &Sample) {
        let (class, module) = (self.classes[sample.class], sample.worker.index as usize);
        let is_new = match sample.worker.path {
            Path::Cpu => {
                let is_new = self.estimator.cpu(class, Method::Plain, 1).is_none();
                self.estimator.saw_cpu(class, Method::Plain, 1, sample.bytes, sample.core);
                is_new
            }
            Path::Module if self.takes_turns => false,
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
