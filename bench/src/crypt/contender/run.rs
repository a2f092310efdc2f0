//! Evener's rounds: one run, its workers held at a barrier while the jobs of a round are submitted; and the paper's clock, which counts the making of threads.

use evener::core::driver::Clock as _;
use evener::{Setup, Submitted, SystemClock};
use evener_core::{Direction, Job, Nanos, TAG_BYTES_MAX};

use crate::crypt::round_budget::RoundBudget;
use crate::crypt::visit::{Visit, arm_all};
use crate::crypt::workload::{Memory, Span, Workload};

/// Tags that the contender made, where they are its output.
pub(super) fn tags(jobs: &[Box<Job<'_>>], load: &Workload) -> Option<Vec<[u8; TAG_BYTES_MAX]>> {
    let makes_tags =
        load.session.algorithm().tag_bytes() > 0 && load.session.direction() == Direction::Encrypt;
    let whole = |job: &Job<'_>| {
        let mut tag = [0; TAG_BYTES_MAX];
        tag[..job.tag().len()].copy_from_slice(job.tag());
        tag
    };
    makes_tags.then(|| jobs.iter().map(|job| whole(job)).collect())
}

pub(super) fn jobs<'m>(load: &Workload, memory: &'m mut Memory) -> Vec<Box<Job<'m>>> {
    let job = |span: Span<'m>| match span.source {
        Some(source) => Job::apart(source, span.space),
        None => Job::in_place(span.space),
    };
    load.spans(memory).into_iter().map(job).collect()
}

/// Submits all jobs and takes all back, in order.
pub(super) fn pass_through<'m>(
    mut sender: evener::StreamSender<'_, 'm>,
    mut receiver: evener::StreamReceiver<'_, 'm>,
    jobs: &mut Vec<Box<Job<'m>>>,
    load: &'m Workload,
) {
    arm_all(jobs, load);
    let submitted = sender.submit_all(jobs);
    debug_assert_eq!(submitted, Submitted::Yes, "the outlet is there");
    drop(sender);
    jobs.extend(std::iter::from_fn(|| receiver.next()));
}

pub(super) fn evener_visit<'m>(
    load: &'m Workload,
    memory: &'m mut Memory,
    setup: impl Fn() -> Setup<'m>,
    budget: Nanos,
) -> Visit {
    let clock = SystemClock;
    let mut jobs = jobs(load, memory);
    let visit = evener_rounds(load, &mut jobs, setup(), budget);
    arm_all(&mut jobs, load);
    let paper_setup = setup();
    let start = clock.now();
    let ((), _) = evener::run(paper_setup, |runtime| {
        let (sender, receiver) = runtime.stream();
        pass_through(sender, receiver, &mut jobs, load);
    });
    let paper_clock = (clock.now() - start).0 * load.turns as u64;
    Visit { paper_clock: Some(Nanos(paper_clock)), ..visit }
}

/// Rounds until `budget` is used up, at least one.
pub(super) fn evener_rounds<'m>(
    load: &'m Workload,
    jobs: &mut Vec<Box<Job<'m>>>,
    setup: Setup<'m>,
    budget: Nanos,
) -> Visit {
    let mut round_budget = RoundBudget::new(budget);
    let ((), report) = evener::run(setup, |runtime| {
        let (mut sender, mut receiver) = runtime.stream();
        while round_budget.wants_more() {
            round_budget.round(load.turns, || {
                arm_all(jobs, load);
                runtime.hold();
                let count = jobs.len();
                let submitted = sender.submit_all(jobs);
                debug_assert_eq!(submitted, Submitted::Yes, "the outlet is there");
                let is_spread = runtime.spread();
                let start = runtime.release();
                // Asleep until the end, because two workers want two cores.
                receiver.wait_for_all();
                jobs.extend(std::iter::from_fn(|| receiver.next()).take(count));
                (runtime.last_done() - start, is_spread)
            });
        }
    });
    let RoundBudget { rounds, crowded, .. } = round_budget;
    let core = report.total().core_time().map(|core| Nanos(core.0 / rounds.len() as u64));
    Visit { rounds, crowded, core, report: Some(report), ..Visit::default() }
}
