//! Costs of a module behind the kernel, from what clocks show of runs in which it was alone.

use std::time::Duration;

use evener::Report;
use evener::core::Nanos;
use evener::core::plan::adaptive::all_of_turn;
use evener_sim::lab::Opening;
use evener_sim::live::MeasuredOnModule;

/// What clocks show of a run in which a module was alone, checks left out.
#[derive(Clone, Copy, Default)]
pub(super) struct Path {
    jobs: u64,
    /// Time that passed.
    wall: Nanos,
    /// Core time of the worker, and of the driver's own threads.
    own: Nanos,
    driver: Nanos,
}

impl Path {
    /// `c`: what a check takes.
    pub(super) fn of(run: &Report, makespan: Nanos, index: usize, c: Nanos) -> Option<Self> {
        let report = run.workers.iter().filter_map(|worker| worker.module.as_ref()).nth(index)?;
        let checks = Nanos(c.0.saturating_mul(report.checked));
        let driver = report.driver_core;
        let own = report.tally.sampled.core - checks - driver;
        Some(Self { jobs: report.tally.jobs, wall: makespan - checks, own, driver })
    }

    /// What `few` requests took beyond their part of what the others took, and the others alone.
    fn beyond(self, few: Self) -> [Self; 2] {
        let jobs = self.jobs.saturating_sub(few.jobs);
        let take = |of: fn(&Self) -> Nanos| {
            let others = of(&self) - of(&few);
            [of(&few) - Nanos(others.0.saturating_mul(few.jobs) / jobs.max(1)), others]
        };
        let times = [take(|it| it.wall), take(|it| it.own), take(|it| it.driver)];
        [0, 1].map(|at| {
            let [wall, own, driver] = times.map(|time| time[at]);
            Self { jobs, wall, own, driver }
        })
    }
}

/// Costs of a module behind the kernel, kept busy by itself with many requests and with a `few`: from what clocks show of them, what of
/// each they do not, `overhead`, and the time in which no core works for a single one. What the few took beyond their part is the first one's.
pub(super) fn behind_the_kernel([many, few]: [Path; 2], overhead: Nanos, waits: Nanos) -> MeasuredOnModule {
    let [first, usual] = many.beyond(few);
    // A run too short to tell.
    let (first, usual) = if usual.jobs == 0 { (Path::default(), many) } else { (first, usual) };
    let [between, own, driver] =
        [usual.wall, usual.own, usual.driver].map(|time| Nanos(time.0 / usual.jobs.max(1)));
    let cores = evener::core_budget().workers() as u64;
    let [d, overhead, h] = shares(own + driver, overhead, between, waits, cores);
    // Each thread's part of what is no other's, by their clocks.
    let part = driver.as_secs_f64() / (own + driver).as_secs_f64().max(1e-9);
    let driver = Nanos::from(Duration::from_secs_f64((d - overhead).as_secs_f64() * part));
    let opens = first.driver.min(first.wall);
    let begins = first.own.min(first.wall - opens);
    let opening = Opening { own: begins, driver: opens, wait: first.wall - opens - begins };
    MeasuredOnModule { d, overhead, driver, opening, h, ..Default::default() }
}

/// A request as `d`, what of it is `overhead`, and `h`: from what clocks show of it, what they do not, the time between two results, and
/// that in which no core works for a single one.
///
/// The kernel has one request worked on at a time, so while the module works on one, that time less the kernel's part, the thread of
/// the path prepares the next. Where a path takes the only core, the time between two results says nothing of the module, which
/// may have been done long before; then single requests say it, and what is left of the core is of no use (docs/design/adaptive.md, turns).
fn shares(clocked: Nanos, overhead: Nanos, between: Nanos, waits: Nanos, cores: u64) -> [Nanos; 3] {
    // No request takes more core time than all cores have until the next is done, whatever a calibration says.
    let overhead = overhead.min(Nanos(between.0 * cores) - clocked).min(between);
    let (d, h) = (clocked + overhead, between - overhead);
    if cores > 1 || cfg!(mutant = "module_works_all_the_time") {
        return [d, overhead, h];
    }
    [all_of_turn(d, between - d, 1), overhead, h.min(waits - overhead)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_of_which_the_path_takes_the_only_core_works_as_long_as_single_requests_wait_for_it() {
        let of = |clocked, overhead, waits, cores| {
            let [clocked, overhead, waits] = [clocked, overhead, waits].map(Nanos::from_micros);
            shares(clocked, overhead, Nanos::from_micros(255), waits, cores).map(|time| time.0 / 1_000)
        };
        assert_eq!(of(180, 67, 110, 1), [255, 67, 43]);
        assert_eq!(of(180, 67, 50, 1), [255, 67, 0], "it was done before the kernel was");
        // A path that leaves most of the core waits for its module, and no longer than that takes.
        assert_eq!(of(30, 40, 900, 1), [70, 40, 215]);
        assert_eq!(of(180, 67, 110, 2), [247, 67, 188]);
        assert_eq!(of(180, 500, 110, 1), [255, 75, 35]);
    }

    #[test]
    fn what_a_run_of_a_few_takes_beyond_its_part_is_the_first_requests() {
        // The first one takes 300 us of the worker, 700 of the driver and 200 asleep; each 75, 85 and 10 more.
        let path = |jobs: u64| {
            let [wall, own, driver] = [[1_200, 170], [300, 75], [700, 85]]
                .map(|[first, each]| Nanos::from_micros(first + each * jobs));
            Path { jobs, wall, own, driver }
        };
        let [first, usual] = path(500).beyond(path(16));
        assert_eq!([first.wall, first.own, first.driver], [1_200, 300, 700].map(Nanos::from_micros));
        assert_eq!((usual.jobs, usual.wall), (484, Nanos::from_micros(484 * 170)));
        let [_, none] = path(16).beyond(path(16));
        assert_eq!(none.jobs, 0);
        let on = behind_the_kernel([path(500), path(16)], Nanos::from_micros(10), Nanos::from_micros(12));
        assert_eq!(
            [on.opening.own, on.opening.driver, on.opening.wait],
            [300, 700, 200].map(Nanos::from_micros)
        );
        let short = behind_the_kernel([path(16); 2], Nanos::from_micros(10), Nanos::from_micros(12));
        assert_eq!(short.opening, Opening::default());
    }
}
