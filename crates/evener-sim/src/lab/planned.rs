//! The papers' policies: the plan that the live system runs, made once from what is there.

use evener_core::plan::{Dispatch, Plan, Policy, Snapshot, Take};

use super::chooser::{Choice, Chooser, Sample, View, Which};

/// A policy of paper 002 at work.
#[derive(Clone, Debug)]
pub struct Planned {
    policy: Policy,
    snapshot: Snapshot,
    dispatch: Dispatch,
    plan: Plan,
}

impl Planned {
    /// `policy` for so many workers, none of which has lanes.
    #[must_use]
    pub fn new(policy: Policy, cpu_workers: u32, module_workers: u32) -> Self {
        let snapshot = Snapshot { cpu_workers, module_workers, cpu_width: 1 };
        let plan = policy.plan(&snapshot);
        Self { policy, snapshot, dispatch: plan.dispatch, plan }
    }
}

fn claim(take: Take, view: &View<'_>) -> Choice {
    let waiting = view.waiting();
    let jobs = take.claim(waiting as usize).min(waiting as usize);
    match u32::try_from(jobs).unwrap_or(u32::MAX) {
        0 => Choice::Rest,
        jobs => Choice::Take { which: Which::Oldest, jobs },
    }
}

impl Chooser for Planned {
    /// As the run began: a lost module changes who takes, not how jobs are handed out.
    fn dispatch(&self) -> Dispatch {
        self.dispatch
    }

    fn cpu_takes(&mut self, _: u32, view: &View<'_>) -> Choice {
        claim(self.plan.cpu, view)
    }

    fn module_takes(&mut self, _: u32, view: &View<'_>) -> Choice {
        claim(self.plan.module, view)
    }

    fn observe(&mut self, _: &Sample) {}

    fn lose(&mut self, _: u32) {
        self.snapshot.module_workers = self.snapshot.module_workers.saturating_sub(1);
        self.plan = self.policy.plan(&self.snapshot);
    }
}
