//! How jobs of one algorithm and direction are run: the method in force, a few by the other one, and the time of some.

use evener_core::driver::Clock;
use evener_core::{Class, Method, Sample};

use super::CoreDrivers;
use super::parts::{Group, kind, settle};
use crate::costs::{Chosen, CostSample};
use crate::lanes;

/// Jobs of a try that is no first one.
const WARMED_FROM: usize = 16;

impl CoreDrivers {
    /// Runs jobs of one algorithm and direction.
    pub(super) fn run_group(&mut self, group: Group<'_, '_>, clock: &dyn Clock) {
        let (class, chosen) = self.choose(&group);
        let rest =
            if chosen.wants_try { self.try_other(group, class, chosen.method.other(), clock) } else { group };
        if !rest.jobs.is_empty() {
            let is_first = chosen.is_fresh && self.costs.take_first(class, rest.jobs.len());
            let stands_for = self.sampling.turn(is_first);
            self.run_part(rest, chosen.method, stands_for, clock);
        }
    }

    /// Runs the first jobs by the method that is not in force, to see what they cost; returns the others. Its code and tables have left the
    /// caches since it was last run, so that as many jobs go before without the clock, where there are as many. Not in a first try, of few
    /// jobs: it may be much dearer.
    fn try_other<'g, 'm>(
        &mut self,
        group: Group<'g, 'm>,
        class: Class,
        other: Method,
        clock: &dyn Clock,
    ) -> Group<'g, 'm> {
        let count = group.jobs.len();
        let jobs = self.costs.take_try(class, count).unwrap_or(0);
        let warms_up = jobs >= WARMED_FROM && count >= 2 * jobs;
        let (first, group) = group.split_at(if warms_up { jobs } else { 0 });
        if warms_up {
            self.run_part(first, other, None, clock);
        }
        let (tried, rest) = group.split_at(jobs);
        if !tried.jobs.is_empty() {
            self.run_part(tried, other, Some(1), clock);
        }
        rest
    }

    /// Runs jobs by a method; takes their time where they stand for so many bursts.
    fn run_part(
        &mut self,
        mut part: Group<'_, '_>,
        method: Method,
        stands_for: Option<u64>,
        clock: &dyn Clock,
    ) {
        let captured = self.capture(part.jobs, method);
        match stands_for {
            Some(bursts) => self.run_sampled(&mut part, method, bursts, clock),
            None => self.run_by(method, &mut part),
        }
        if let Some(captured) = captured {
            self.check_lanes(part.jobs, captured);
        }
        let tally = &mut self.tallies[method as usize];
        tally.bursts += 1;
        part.jobs.iter_mut().for_each(|job| settle(tally, job));
    }

    fn run_sampled(&mut self, part: &mut Group<'_, '_>, method: Method, stands_for: u64, clock: &dyn Clock) {
        let look = self.sampling.cost_of_look(clock);
        let (core, wall) = (clock.thread_time(), clock.now());
        self.run_by(method, part);
        let (core, wall) = (clock.thread_time() - core - look, clock.now() - wall);
        let (jobs, class) = (part.jobs.len() as u64, part.jobs[0].class());
        let took = Sample { jobs, bytes: part.input_bytes().0 as u64, core, wall };
        self.tallies[method as usize].sample(took);
        // Of several classes nothing could be said of any one.
        if part.jobs.iter().all(|job| job.class() == class) {
            let sample = CostSample { class, method, took, stands_for };
            self.costs.record(&sample);
            self.sampling.push(sample);
        }
    }

    /// The method for jobs of one algorithm and direction, by their mean size.
    fn choose(&self, group: &Group<'_, '_>) -> (Class, Chosen) {
        let (first, count) = (&group.jobs[0], group.jobs.len());
        let (algorithm, direction) = kind(first);
        let (bytes, bytes_max) = group.input_bytes();
        let class = first.class_of(bytes / count);
        let chosen = match &self.multi {
            Some(multi)
                if lanes::are_in_service()
                    && multi.supports(algorithm, direction)
                    && bytes_max <= multi.job_bytes_max(algorithm, direction) =>
            {
                self.costs.choose(class, count)
            }
            _ => Chosen { is_fresh: self.costs.choose(class, count).is_fresh, ..Chosen::PLAIN },
        };
        (class, chosen)
    }

    fn run_by(&mut self, method: Method, group: &mut Group<'_, '_>) {
        group.run_by(match (method, &mut self.multi) {
            (Method::MultiBuffer, Some(multi)) => &mut **multi,
            _ => &mut *self.plain,
        });
    }
}
