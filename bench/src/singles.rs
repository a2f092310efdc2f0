//! Single requests: one caller brings jobs one at a time and waits for each, so that under the adaptive policy each goes
//! where it ends soonest, core time at its price.

use evener::core::driver::Clock as _;
use evener::{Caller, CpuKit, Setup, SystemClock};
use evener_core::{Job, Nanos};

use crate::contender::{Visit, arm_all};
use crate::pace::Pace;
use crate::workload::Workload;

/// How long single requests took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// Half of them took no longer.
    pub median: Nanos,
    /// 99 of 100 took no longer.
    pub p99: Nanos,
}

impl Requests {
    /// Of these times; `None` where there are none.
    fn of(mut times: Vec<Nanos>) -> Option<Self> {
        times.sort_unstable();
        let at = |percent: usize| times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        Some(Self { median: at(50)?, p99: at(99)? })
    }
}

/// Rounds until `budget` is used up, at least one. `jobs` come back in their order.
pub(crate) fn rounds<'m>(
    load: &'m Workload,
    jobs: &mut Vec<Box<Job<'m>>>,
    setup: Setup<'m>,
    kit: CpuKit,
    budget: Nanos,
) -> Visit {
    let (mut pace, mut times) = (Pace::new(budget), Vec::new());
    let ((), report) = evener::run(setup, |runtime| {
        let mut caller = runtime.caller(kit);
        while pace.wants_more() {
            pace.round(load.turns, || {
                arm_all(jobs, load);
                let before = times.len();
                one_by_one(&mut caller, jobs, &mut times);
                (times[before..].iter().copied().sum(), true)
            });
        }
    });
    let core = report.total().core_time().map(|core| Nanos(core.0 / pace.rounds.len() as u64));
    Visit {
        rounds: pace.rounds,
        core,
        report: Some(report),
        requests: Requests::of(times),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ninety_nine_of_a_hundred_took_no_longer_than_the_99th_percentile() {
        let times = |count: u64| (1..=count).rev().map(Nanos).collect();
        let of = |count| Requests::of(times(count)).map(|known| (known.median.0, known.p99.0));
        assert_eq!(
            [0, 1, 2, 100, 1_000].map(of),
            [None, Some((1, 1)), Some((1, 2)), Some((50, 99)), Some((500, 990))]
        );
    }
}
