//! How jobs of one algorithm and direction are run: the method in force, a few by the other one, and the time of some.

use evener_core::driver::Clock;
use evener_core::{Class, Job, Method, Sample};

use super::CoreDrivers;
use super::parts::{kind, settle};
use crate::costs::{Chosen, CostSample};
use crate::lanes;

/// Jobs of a try that is no first one.
const WARMED_FROM: usize = 16;

impl CoreDrivers {
    /// Runs jobs of one algorithm and direction.
    pub(super) fn run_alike(&mut self, group: &mut [Box<Job<'_>>], clock: &dyn Clock) {
        let (class, chosen) = self.choose(group);
        let rest =
            if chosen.wants_try { self.try_other(group, class, chosen.method.other(), clock) } else { group };
        if !rest.is_empty() {
            let is_first = chosen.is_fresh && self.costs.take_first(class, rest.len());
            let stands_for = self.sampling.turn(is_first);
            self.run_part(rest, chosen.method, stands_for, clock);
        }
    }

    /// Runs the first jobs by the method that is not in force, to see what they cost; returns the others. Its code and tables have left the
    /// caches since it was last run, so that as many jobs go before without the clock, where there are as many. Not in a first try, of few
    /// jobs: it may be much dearer.
    fn try_other<'g, 'm>(
        &mut self,
        group: &'g mut [Box<Job<'m>>],
        class: Class,
        other: Method,
        clock: &dyn Clock,
    ) -> &'g mut [Box<Job<'m>>] {
        let jobs = self.costs.take_try(class, group.len()).unwrap_or(0);
        let warms_up = jobs >= WARMED_FROM && group.len() >= 2 * jobs;
        let (first, group) = group.split_at_mut(if warms_up { jobs } else { 0 });
        if warms_up {
            self.run_part(first, other, None, clock);
        }
        let (tried, rest) = group.split_at_mut(jobs);
        if !tried.is_empty() {
            self.run_part(tried, other, Some(1), clock);
        }
        rest
    }

    /// Runs jobs by a method; takes their time where they stand for so many bursts.
    fn run_part(
        &mut self,
        part: &mut [Box<Job<'_>>],
        method: Method,
        stands_for: Option<u64>,
        clock: &dyn Clock,
    ) {
        let captured = self.capture(part, method);
        match stands_for {
            Some(bursts) => self.run_sampled(part, method, bursts, clock),
            None => self.run_by(method, part),
        }
        if let Some(captured) = captured {
            self.check_lanes(part, captured);
        }
        let tally = &mut self.tallies[method as usize];
        tally.bursts += 1;
        part.iter_mut().for_each(|job| settle(tally, job));
    }

    fn run_sampled(&mut self, part: &mut [Box<Job<'_>>], method: Method, stands_for: u64, clock: &dyn Clock) {
        let look = self.sampling.cost_of_look(clock);
        let (core, wall) = (clock.thread_time(), clock.now());
        self.run_by(method, part);
        let (core, wall) = (clock.thread_time() - core - look, clock.now() - wall);
        let (jobs, class) = (part.len() as u64, part[0].class());
        let bytes = part.iter().map(|job| job.input_bytes() as u64).sum();
        let took = Sample { jobs, bytes, core, wall };
        self.tallies[method as usize].sample(took);
        // Of several classes nothing could be said of any one.
        if part.iter().all(|job| job.class() == class) {
            let sample = CostSample { class, method, took, stands_for };
            self.costs.record(&sample);
            self.sampling.push(sample);
        }
    }

    /// The method for jobs of one algorithm and direction, by their mean size.
    fn choose(&self, group: &[Box<Job<'_>>]) -> (Class, Chosen) {
        let (algorithm, direction) = kind(&group[0]);
        let (bytes, bytes_max) = group
            .iter()
            .map(|job| job.input_bytes())
            .fold((0, 0), |(sum, most), bytes| (sum + bytes, most.max(bytes)));
        let class = group[0].class_of(bytes / group.len());
        let chosen = match &self.multi {
            Some(multi)
                if lanes::are_in_service()
                    && multi.supports(algorithm, direction)
                    && bytes_max <= multi.job_bytes_max(algorithm, direction) =>
            {
                self.costs.choose(class, group.len())
            }
            _ => Chosen { is_fresh: self.costs.choose(class, group.len()).is_fresh, ..Chosen::PLAIN },
        };
        (class, chosen)
    }

    fn run_by(&mut self, method: Method, group: &mut [Box<Job<'_>>]) {
        match (method, &mut self.multi) {
            (Method::MultiBuffer, Some(multi)) => multi.run(group),
            _ => self.plain.run(group),
        }
    }
}
