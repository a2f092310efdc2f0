//! Single requests: one caller brings jobs one at a time and waits for each, so that under the adaptive policy each goes
//! where it ends soonest, core time at its price.

use evener::core::driver::Clock as _;
use evener::{Caller, CoreDrivers, Setup, SystemClock};
use evener_core::{Job, Nanos};

use crate::crypt::round_budget::RoundBudget;
use crate::crypt::visit::{Visit, arm_all};
use crate::crypt::workload::Workload;
use crate::medians::Quantiles;

/// Rounds of so many turns until `budget` is used up, at least one. `jobs` come back in their order.
pub(crate) fn rounds<'m>(
    load: &'m Workload,
    jobs: &mut Vec<Box<Job<'m>>>,
    setup: Setup<'m>,
    core_drivers: CoreDrivers,
    (turns, budget): (usize, Nanos),
) -> Visit {
    let (mut round_budget, mut times) = (RoundBudget::new(budget), Vec::new());
    let ((), report) = evener::run(setup, |runtime| {
        let mut caller = runtime.caller(core_drivers);
        while round_budget.wants_more() {
            round_budget.round(turns, || {
                arm_all(jobs, load);
                let before = times.len();
                one_by_one(&mut caller, jobs, &mut times);
                (times[before..].iter().copied().sum(), true)
            });
        }
    });
    let core = report.total().core_time().map(|core| Nanos(core.0 / round_budget.rounds.len() as u64));
    Visit {
        rounds: round_budget.rounds,
        core,
        report: Some(report),
        requests: Quantiles::of(times),
        ..Visit::default()
    }
}

fn one_by_one<'m>(caller: &mut Caller<'_, 'm>, jobs: &mut Vec<Box<Job<'m>>>, times: &mut Vec<Nanos>) {
    let (mut single, mut done) = (Vec::with_capacity(1), Vec::with_capacity(jobs.len()));
    for job in jobs.drain(..) {
        single.push(job);
        let start = SystemClock.now();
        caller.crypt(&mut single);
        times.push(SystemClock.now() - start);
        done.append(&mut single);
    }
    *jobs = done;
}
