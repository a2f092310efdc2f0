//! The papers' policies: the plan that the live system runs, made once from what is there.

use evener_core::plan::{Dispatch, LONG_JOB_BYTES, Plan, Policy, Snapshot, Take};

use super::chooser::{Choice, Chooser, Sample, View, Which};

/// A policy of paper 002 at work.
#[derive(Clone, Debug)]
pub struct Planned {
    policy: Policy,
    snapshot: Snapshot,
    dispatch: Dispatch,
    plan: Plan,
    /// Input of a claim in bytes, about; for jobs that are longer than [`LONG_JOB_BYTES`].
    claim_bytes_max: u64,
}

impl Planned {
    /// `policy` for so many workers, none of which has lanes.
    #[must_use]
    pub fn new(policy: Policy, cpu_workers: u32, module_workers: u32) -> Self {
        Self::of(policy, Snapshot { cpu_workers, module_workers, cpu_width: 1 }, u64::MAX)
    }

    /// `policy` for workers with lanes, whose claims are limited by bytes too, as the live system's are.
    #[must_use]
    pub fn of(policy: Policy, snapshot: Snapshot, claim_bytes_max: u64) -> Self {
        let plan = policy.plan(&snapshot);
        Self { policy, snapshot, dispatch: plan.dispatch, plan, claim_bytes_max }
    }
}

fn claim(take: Take, claim_bytes_max: u64, view: &View<'_>) -> Choice {
    let waiting = view.waiting();
    let most = jobs_in_bytes(take, claim_bytes_max, view);
    let take = Take { jobs_max: take.jobs_max.min(most), ..take };
    let jobs = take.claim(waiting as usize).min(waiting as usize);
    match u32::try_from(jobs).unwrap_or(u32::MAX) {
        0 => Choice::Rest,
        jobs => Choice::Take { which: Which::Oldest, jobs },
    }
}

/// Whole fills that reach `bytes_max`, by the mean length of what waits.
fn jobs_in_bytes(take: Take, bytes_max: u64, view: &View<'_>) -> u32 {
    let bytes: u64 = view.classes.iter().map(|class| class.bytes * u64::from(class.waiting)).sum();
    let mean = bytes / u64::from(view.waiting().max(1));
    if mean <= LONG_JOB_BYTES || bytes_max == u64::MAX {
        return u32::MAX;
    }
    let fill = u64::from(take.jobs_min.max(1));
    u32::try_from(bytes_max.div_ceil(mean).next_multiple_of(fill)).unwrap_or(u32::MAX)
}

impl Chooser for Planned {
    /// As the run began: a lost module changes which workers take, not how jobs are handed out.
    fn dispatch(&self) -> Dispatch {
        self.dispatch
    }

    fn cpu_takes(&mut self, _: u32, view: &View<'_>) -> Choice {
        claim(self.plan.cpu, self.claim_bytes_max, view)
    }

    fn module_takes(&mut self, _: u32, view: &View<'_>) -> Choice {
        claim(self.plan.module, self.claim_bytes_max, view)
    }

    fn observe(&mut self, _: &Sample) {}

    fn lose(&mut self, _: u32) {
        self.snapshot.module_workers = self.snapshot.module_workers.saturating_sub(1);
        self.plan = self.policy.plan(&self.snapshot);
    }
}
