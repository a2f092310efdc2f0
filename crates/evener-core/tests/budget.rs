//! The CPU budget in virtual time: several workers, charged after the fact, over every window of one second.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZero;

use evener_core::{Budget, Nanos, PercentOutOfRange};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const RUN: u64 = 4 * SECOND;
/// Step in which core time is added up.
const STEP: u64 = 100_000;

fn cores(count: usize) -> NonZero<usize> {
    NonZero::new(count).expect("at least one core")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A worker asks for its next claim.
    Ask { worker: usize },
    /// Core time becomes known.
    Charge { core_ns: u64 },
}

/// One kind of work: core time of a job, and for module jobs what follows it.
#[derive(Clone, Copy, Debug)]
struct Work {
    job_ns: u64,
    /// Time in which the module works and the core is free; 0: a CPU job.
    module_ns: u64,
    /// The interrupt's part, in percent of `job_ns`.
    interrupt_percent: u64,
    /// From the end of the job until its interrupt is charged.
    interrupt_late_ns: u64,
}

/// Workers that always have work, under a budget.
struct Machine {
    budget: Budget,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    /// Core time that was really used in each step.
    used: Vec<u64>,
}

impl Machine {
    fn at(&mut self, time: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((time, self.scheduled, event)));
    }

    /// Core time used from `start` on.
    fn uses(&mut self, start: u64, length: u64) {
        let (mut from, end) = (start, (start + length).min(RUN));
        while from < end {
            let until = end.min((from / STEP + 1) * STEP);
            self.used[usize::try_from(from / STEP).expect("small")] += until - from;
            from = until;
        }
    }

    /// Runs as many jobs as `granted` covers, at least one; the time when the worker asks again.
    fn claims(&mut self, now: u64, granted: u64, work: &Work) -> u64 {
        let jobs = (granted / work.job_ns).clamp(1, 64);
        let mut time = now;
        for _ in 0..jobs {
            self.uses(time, work.job_ns);
            time += work.job_ns;
            self.at(time, Event::Charge { core_ns: work.job_ns });
            let interrupt_ns = work.job_ns * work.interrupt_percent / 100;
            if interrupt_ns > 0 {
                self.uses(time + work.module_ns, interrupt_ns);
                self.at(time + work.interrupt_late_ns, Event::Charge { core_ns: interrupt_ns });
            }
            time += work.module_ns;
        }
        time
    }

    fn run(percent: u32, core_count: usize, worker_count: usize, works: &[Work]) -> Self {
        let steps = usize::try_from(RUN / STEP).expect("small");
        let budget = Budget::new(percent, cores(core_count)).expect("a valid share");
        let mut machine = Self { budget, events: BinaryHeap::new(), scheduled: 0, used: vec![0; steps] };
        for worker in 0..worker_count {
            machine.at(0, Event::Ask { worker });
        }
        let mut claims = 0;
        while let Some(Reverse((now, _, event))) = machine.events.pop() {
            match event {
                Event::Charge { core_ns } => machine.budget.spent(Nanos(core_ns)),
                Event::Ask { .. } if now >= RUN => {}
                Event::Ask { worker } => {
                    let next = match machine.budget.may_spend(Nanos(now)) {
                        Ok(granted) => {
                            claims += 1;
                            machine.claims(now, granted.0, &works[claims % works.len()])
                        }
                        Err(wait) => {
                            assert!(wait > Nanos::ZERO);
                            now + wait.0
                        }
                    };
                    machine.at(next, Event::Ask { worker });
                }
            }
        }
        machine
    }

    /// Least and largest share of the cores, in percent, over all windows of one second that begin at `from` or later.
    fn shares(&self, core_count: usize, from: u64) -> (f64, f64) {
        let whole = Nanos(SECOND * core_count as u64).as_secs_f64();
        let width = usize::try_from(SECOND / STEP).expect("small");
        let first = usize::try_from(from / STEP).expect("small");
        let mut window: u64 = self.used[first..first + width].iter().sum();
        let (mut least, mut most) = (window, window);
        for end in first + width..self.used.len() {
            window = window + self.used[end] - self.used[end - width];
            (least, most) = (least.min(window), most.max(window));
        }
        (Nanos(least).as_secs_f64() / whole * 100.0, Nanos(most).as_secs_f64() / whole * 100.0)
    }
}

fn cpu_work() -> impl Strategy<Value = Work> {
    (1_000u64..=2 * MS).prop_map(|job_ns| Work {
        job_ns,
        module_ns: 0,
        interrupt_percent: 0,
        interrupt_late_ns: 0,
    })
}

fn module_work() -> impl Strategy<Value = Work> {
    let parts = (1_000u64..=2 * MS, 1u64..3 * MS, 0u64..=20, 1u64..10 * MS);
    parts.prop_map(|(job_ns, module_ns, interrupt_percent, late)| Work {
        job_ns,
        module_ns,
        interrupt_percent,
        interrupt_late_ns: module_ns + late,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn no_second_takes_two_points_more_than_the_budget(
        percent in 1u32..100, // More workers than cores would exceed 100 % here: cores in this test are never full.
        core_count in 1usize..=8,
        workers_per_core in 1usize..=3,
        works in prop::collection::vec(prop_oneof![cpu_work(), module_work()], 1..40),
    ) {
        let machine = Machine::run(percent, core_count, core_count * workers_per_core, &works);
        let (_, most) = machine.shares(core_count, 0);
        prop_assert!(most <= f64::from(percent) + 2.0, "{most} of {percent} %");
    }

    #[test]
    fn workers_that_always_have_work_get_their_budget_in_every_second(
        percent in 1u32..=100,
        core_count in 1usize..=8,
        works in prop::collection::vec(cpu_work(), 1..40),
    ) {
        let (least, most) = Machine::run(percent, core_count, core_count, &works).shares(core_count, SECOND);
        prop_assert!(least >= f64::from(percent) - 2.0 && most <= f64::from(percent) + 2.0, "{least}..{most} of {percent} %");
    }
}

#[test]
fn a_debt_is_paid_back_before_anything_starts() {
    let mut budget = Budget::new(50, cores(2)).expect("a valid share");
    assert_eq!(budget.may_spend(Nanos::ZERO), Ok(Nanos::from_millis(4)));
    budget.spent(Nanos::from_millis(108));
    // 8 ms were there; 100 ms of debt and 1 ms for each core are earned at one core's speed.
    assert_eq!(budget.may_spend(Nanos::ZERO), Err(Nanos::from_millis(102)));
    assert_eq!(budget.may_spend(Nanos(102 * MS - 1)), Err(Nanos(1)));
    assert_eq!(budget.may_spend(Nanos::from_millis(102)), Ok(Nanos::from_millis(1)));
}

#[test]
fn an_idle_hour_saves_four_milliseconds_per_core() {
    let mut budget = Budget::new(10, cores(3)).expect("a valid share");
    budget.spent(Nanos::from_millis(12));
    assert!(budget.may_spend(Nanos::ZERO).is_err());
    assert_eq!(budget.may_spend(Nanos(3_600 * SECOND)), Ok(Nanos::from_millis(4)));
}

#[test]
fn all_of_the_cores_is_no_limit() {
    let mut budget = Budget::new(100, cores(1)).expect("a valid share");
    budget.spent(Nanos(3_600 * SECOND));
    assert!(budget.may_spend(Nanos::ZERO).is_ok());
}

#[test]
fn a_clock_that_steps_back_earns_nothing_twice() {
    let mut budget = Budget::new(10, cores(1)).expect("a valid share");
    budget.spent(Nanos::from_millis(14));
    assert_eq!(budget.may_spend(Nanos::from_millis(50)), Err(Nanos::from_millis(60)));
    assert_eq!(budget.may_spend(Nanos::ZERO), Err(Nanos::from_millis(60)));
    assert_eq!(budget.may_spend(Nanos::from_millis(50)), Err(Nanos::from_millis(60)));
}

#[test]
fn shares_outside_of_one_to_a_hundred_percent_are_refused_with_their_number() {
    for percent in [0, 101, 257, u32::MAX] {
        let refused = Budget::new(percent, cores(4)).map(|budget| budget.percent());
        assert_eq!(refused, Err(PercentOutOfRange(percent)));
    }
    assert_eq!(PercentOutOfRange(101).to_string(), "a CPU budget of 101 % is not between 1 and 100");
    assert_eq!(
        [1, 100].map(|percent| Budget::new(percent, cores(4)).map(|budget| budget.percent())),
        [Ok(1), Ok(100)]
    );
}
