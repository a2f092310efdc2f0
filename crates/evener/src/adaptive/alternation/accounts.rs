//! What turns cost and what they measured, by class: one core and one module behind the kernel.
//!
//! There the module's path works on the core that it is held against. What a request shows beside a core that works is not what it
//! takes of a core that rests (docs/results/guest-afalg.md), and a moment in which the machine is slow is slow for both. So each
//! gets a turn now and then: a short burst on the module while the core rests ([`Turns::begin_module`]), or some jobs on the core
//! while the module rests ([`Turns::begin_core`]). What either took by itself ([`Turns::record_core`],
//! [`Turns::record_module`]) makes a pair -> [`Estimator::record_pair`](evener_core::Estimator::record_pair).
//!
//! The way that is in force works between turns and is measured by that. What turns cost is counted beforehand and bounded by a
//! part of the work ([`Turns::is_due`]).

use evener_core::Nanos;
use evener_core::estimate::ModuleSample;

use crate::adaptive::tuning::TUNING;
use crate::costs::overhead::LEAD;

/// Which of the two has a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::adaptive) enum Phase {
    /// None: both do as the plan says.
    ByPlan,
    /// The module, with so many requests yet to begin, until then at the longest.
    Module { queue: usize, left: u32, until: Nanos },
    /// A core.
    Core { queue: usize, has_begun: bool },
}

/// What is known of a class whose turn may come.
#[derive(Clone, Copy, Debug)]
pub(in crate::adaptive) struct TrialCost {
    /// Time of a job on the core.
    pub(in crate::adaptive) c: Nanos,
    /// Time from one request to the next on the module.
    pub(in crate::adaptive) per_request: Nanos,
    /// Whether modules take it: then it is the core's turn, else the module's.
    pub(in crate::adaptive) is_open: bool,
    /// Whether pairs say surely which of the two is faster.
    pub(in crate::adaptive) is_sure: bool,
    /// Jobs that wait.
    pub(in crate::adaptive) waiting: u32,
}

/// What a class did so far in this run.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    worked: Nanos,
    /// What turns cost.
    spent: Nanos,
    has_had_one: bool,
    /// Half a pair: a job of the core's; requests of the module's.
    core: Option<Nanos>,
    module: ModuleSample,
}

/// The turns of a run.
pub(in crate::adaptive) struct Turns {
    pub(in crate::adaptive) phase: Phase,
    /// Requests that the module holds.
    held: u32,
    /// Results that are still to be left out.
    lead: u32,
    accounts: Vec<Account>,
    /// The queue that is looked at next.
    next: usize,
}

impl Turns {
    /// Of a module that holds so many requests.
    pub(in crate::adaptive) fn new(queues: usize, held: u32) -> Self {
        Self { phase: Phase::ByPlan, held, lead: LEAD, accounts: vec![Account::default(); queues], next: 0 }
    }

    /// Of so many queues one after the other.
    pub(in crate::adaptive) const fn next_queue(&mut self, queues: usize) -> usize {
        let queue = if self.next < queues { self.next } else { 0 };
        self.next = queue + 1;
        queue
    }

    /// Requests of the module's turn.
    pub(in crate::adaptive) const fn requests(&self) -> u32 {
        TUNING.requests + self.held
    }

    /// Jobs of a turn.
    const fn count(&self, trial: &TrialCost) -> u32 {
        if trial.is_open { TUNING.jobs } else { self.requests() }
    }

    /// What a turn costs: what the other would have done sooner, and going to and fro.
    fn price(&self, trial: &TrialCost) -> Nanos {
        let (other, own) =
            if trial.is_open { (trial.c, trial.per_request) } else { (trial.per_request, trial.c) };
        let to_and_fro = Nanos(trial.per_request.0.saturating_mul(TUNING.to_and_fro));
        Nanos((other - own).0.saturating_mul(self.count(trial).into())) + to_and_fro
    }

    /// Whether the idle one of the two is to have a turn: it may cost a small part of the work done so far, or for the first one of
    /// the work that waits.
    pub(in crate::adaptive) fn is_due(&self, queue: usize, trial: &TrialCost) -> bool {
        let (account, count) = (&self.accounts[queue], self.count(trial));
        let parts = if trial.is_sure { TUNING.parts_where_sure } else { TUNING.parts };
        let own = if trial.is_open { trial.per_request } else { trial.c };
        let ahead = if account.has_had_one { 0 } else { own.0.saturating_mul(trial.waiting.into()) };
        let allowed = Nanos(account.worked.0.saturating_add(ahead) / parts);
        let is_cheap = account.spent + self.price(trial) <= allowed || cfg!(mutant = "turns_endless");
        self.phase == Phase::ByPlan && trial.waiting >= count + TUNING.left_min && is_cheap
    }

    /// It is the module's turn.
    pub(in crate::adaptive) fn begin_module(&mut self, queue: usize, trial: &TrialCost, now: Nanos) {
        self.charge(queue, trial);
        self.accounts[queue].module = ModuleSample::default();
        let allowed = Nanos(trial.per_request.0 * u64::from(self.requests()) * TUNING.times_expected);
        self.phase = Phase::Module { queue, left: self.requests(), until: now + allowed };
    }

    /// It is the core's turn.
    pub(in crate::adaptive) fn begin_core(&mut self, queue: usize, trial: &TrialCost) {
        self.charge(queue, trial);
        self.phase = Phase::Core { queue, has_begun: false };
    }

    fn charge(&mut self, queue: usize, trial: &TrialCost) {
        let price = self.price(trial);
        let account = &mut self.accounts[queue];
        account.spent += price;
        account.has_had_one = true;
        account.core = None;
        self.lead = LEAD;
    }

    /// A core ran jobs of a queue, in `each` where it was by itself; all that it did since the last sample took `worked`.
    /// Returns a pair.
    pub(in crate::adaptive) fn record_core(
        &mut self,
        queue: usize,
        each: Option<Nanos>,
        worked: Nanos,
    ) -> Option<(ModuleSample, Nanos)> {
        let account = &mut self.accounts[queue];
        account.worked += worked;
        account.core = each.or(account.core);
        account.pair()
    }

    /// A module did jobs of a queue, by itself or not. Returns a pair.
    pub(in crate::adaptive) fn record_module(
        &mut self,
        queue: usize,
        sample: &ModuleSample,
        is_alone: bool,
    ) -> Option<(ModuleSample, Nanos)> {
        let account = &mut self.accounts[queue];
        account.worked += sample.d;
        let lead = self.lead;
        self.lead = lead.saturating_sub(u32::try_from(sample.jobs).unwrap_or(u32::MAX));
        let is_warm = lead == 0 || cfg!(mutant = "lead_believed");
        let is_by_itself = is_alone || cfg!(mutant = "beside_believed");
        if !(is_by_itself && is_warm) {
            return None;
        }
        account.add(sample);
        // In its turn the pair is made when the turn is over.
        if matches!(self.phase, Phase::Module { .. }) { None } else { account.pair() }
    }
}

impl Account {
    fn add(&mut self, sample: &ModuleSample) {
        let sum = &mut self.module;
        if sum.jobs >= TUNING.measured_max {
            (sum.jobs, sum.bytes, sum.d, sum.h) =
                (sum.jobs / 2, sum.bytes / 2, Nanos(sum.d.0 / 2), Nanos(sum.h.0 / 2));
        }
        sum.jobs += sample.jobs;
        sum.bytes += sample.bytes;
        sum.d += sample.d;
        sum.h += sample.h;
        sum.now = sample.now;
    }

    /// Both halves, where both are there; they are used once.
    fn pair(&mut self) -> Option<(ModuleSample, Nanos)> {
        let is_whole = self.core.is_some() && self.module.jobs >= TUNING.measured_min;
        let core = self.core.filter(|_| is_whole)?;
        self.core = None;
        Some((std::mem::take(&mut self.module), core))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(micros: u64) -> Nanos {
        Nanos::from_micros(micros)
    }

    fn trial(c: u64, turn: u64, is_open: bool) -> TrialCost {
        TrialCost { c: us(c), per_request: us(turn), is_open, is_sure: false, waiting: 4_000 }
    }

    fn sample(jobs: u64, d: u64) -> ModuleSample {
        ModuleSample { jobs, bytes: jobs * 16_384, d: us(jobs * d), h: Nanos::ZERO, now: us(1) }
    }

    #[test]
    fn a_turn_costs_a_hundredth_of_the_work_and_where_all_is_sure_a_fourth_of_that() {
        // Each costs 24 x 100 + 6 x 300 us.
        let mut turns = Turns::new(1, 2);
        let closed = trial(200, 300, false);
        let mut worked = [0, 0];
        for (at, is_sure) in [false, true].into_iter().enumerate() {
            turns.phase = Phase::ByPlan;
            let trial = TrialCost { is_sure, ..closed };
            assert!(at == 1 || turns.is_due(0, &trial), "the first one by what waits");
            turns.begin_module(0, &trial, us(0));
            turns.phase = Phase::ByPlan;
            while !turns.is_due(0, &trial) {
                turns.record_core(0, Some(us(200)), us(20_000));
                worked[at] += 20;
            }
        }
        assert_eq!(worked, [840, 4_200]);
    }

    #[test]
    fn a_short_run_of_jobs_that_are_dear_on_the_module_never_tries_it() {
        let turns = Turns::new(1, 2);
        let due = |c, turn, waiting| turns.is_due(0, &TrialCost { waiting, ..trial(c, turn, false) });
        assert!(!due(22, 220, 4_000), "6 ms of 88");
        assert!(due(300, 250, 4_000) && due(300, 250, 600));
        assert!(!due(300, 250, 20), "the end of a run");
    }

    #[test]
    fn one_turn_at_a_time() {
        let mut turns = Turns::new(2, 2);
        turns.begin_core(0, &trial(400, 300, true));
        assert!(!turns.is_due(1, &trial(300, 300, false)));
    }

    #[test]
    fn a_pair_is_one_half_of_each_and_used_once() {
        let mut turns = Turns::new(1, 2);
        turns.begin_module(0, &trial(300, 250, false), us(0));
        assert_eq!(turns.record_module(0, &sample(12, 900), true), None, "it warms up");
        assert_eq!(turns.record_module(0, &sample(9, 250), true), None, "in its turn");
        turns.phase = Phase::ByPlan;
        assert_eq!(turns.record_core(0, Some(us(300)), us(0)), Some((sample(9, 250), us(300))));
        assert_eq!(turns.record_core(0, Some(us(300)), us(0)), None);
        // The module is in force: the core has a turn, and requests behind it complete the pair.
        turns.begin_core(0, &trial(300, 250, true));
        turns.phase = Phase::ByPlan;
        assert_eq!(turns.record_core(0, Some(us(310)), us(0)), None);
        (0..2).for_each(|_| assert_eq!(turns.record_module(0, &sample(6, 900), true), None, "it warms up"));
        assert_eq!(turns.record_module(0, &sample(5, 240), true), None);
        assert_eq!(turns.record_module(0, &sample(1, 240), true), Some((sample(6, 240), us(310))));
    }

    #[test]
    fn what_was_seen_beside_a_core_that_works_is_no_half_of_a_pair() {
        let mut turns = Turns::new(1, 2);
        turns.record_core(0, Some(us(300)), us(0));
        assert_eq!(turns.record_module(0, &sample(12, 700), false), None);
        assert_eq!(turns.record_module(0, &sample(9, 250), true), Some((sample(9, 250), us(300))));
    }

    #[test]
    fn requests_of_long_ago_count_less_and_less() {
        let mut turns = Turns::new(1, 2);
        (0..100).for_each(|_| _ = turns.record_module(0, &sample(1, 800), true));
        (0..100).for_each(|_| _ = turns.record_module(0, &sample(1, 200), true));
        let (sample, _) = turns.record_core(0, Some(us(300)), us(0)).unwrap();
        assert!(sample.jobs <= 32 && sample.d < Nanos(us(230).0 * sample.jobs), "{sample:?}");
    }
}
