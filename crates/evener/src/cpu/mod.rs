//! What one core runs jobs with: the plain driver and the multi-buffer driver where there is one. One set of drivers per thread; which
//! of the two a burst goes to says the run's table (`costs/`).
//!
//! Path of a burst: [`CoreDrivers::run`] -> parts of one session and length that stay in the nearest cache (`parts.rs`); from the first job on that is another's,
//! jobs for modules only are failed, and the others sorted into groups -> the method in force, or a few jobs by the other one (`group.rs`) -> the driver -> one burst in some is sampled (`sampling.rs`), of
//! some that lanes did a job is done again (`lane_check.rs`) -> tallies.

mod capture;
mod group;
mod lane_check;
mod live_tallies;
mod parts;
mod sampling;

use std::sync::{Arc, Weak};

use evener_core::driver::Clock;
use evener_core::{HasEnded, InlineDriver, Job, JobError, Method, Tally};

pub(crate) use self::capture::Capture;
use self::lane_check::LaneCheck;
pub(crate) use self::live_tallies::LiveTallies;
use self::parts::{Group, are_alike, is_uniform, kind, part_jobs};
pub(crate) use self::parts::{count, is_module_only};
use self::sampling::Sampling;
use crate::Costs;
use crate::costs::CostSample;

/// The CPU's drivers for one thread, and what they did.
pub struct CoreDrivers {
    plain: Box<dyn InlineDriver>,
    multi: Option<Box<dyn InlineDriver>>,
    costs: Arc<Costs>,
    tallies: [Tally; Method::ALL.len()],
    sampling: Sampling,
    /// Where lanes are watched.
    lane_check: Option<LaneCheck>,
    /// Where others may ask for the tallies.
    live: Option<Arc<LiveTallies>>,
}

impl CoreDrivers {
    /// A set of drivers; without `multi` everything is plain. In a [run](crate::run()) it goes by the run's costs
    /// ([`Setup::learned`](crate::Setup::learned)), by itself by its own, of which nothing is known.
    #[must_use]
    pub fn new(plain: Box<dyn InlineDriver>, multi: Option<Box<dyn InlineDriver>>) -> Self {
        Self {
            plain,
            multi,
            costs: Arc::default(),
            tallies: Default::default(),
            sampling: Sampling::default(),
            lane_check: None,
            live: None,
        }
    }

    /// From now on goes by these costs, and adds to them.
    #[must_use]
    pub fn sharing(mut self, costs: &Arc<Costs>) -> Self {
        self.share(costs);
        self
    }

    /// The same for a set of drivers that is somewhere already.
    pub(crate) fn share(&mut self, costs: &Arc<Costs>) {
        self.costs = Arc::clone(costs);
    }

    /// Jobs that it runs side by side at its best.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.multi.as_ref().map_or(1, |multi| multi.profile().width)
    }

    /// Whether its drivers work in memory that another process may change ([`InlineDriver::takes_shared`]).
    #[must_use]
    pub fn takes_shared(&self) -> bool {
        self.plain.takes_shared() && self.multi.as_ref().is_none_or(|multi| multi.takes_shared())
    }

    /// Runs a burst: every job leaves as Done or Failed. A burst with several algorithms or directions is
    /// sorted by them first, so the order of `burst` may change.
    pub fn run(&mut self, burst: &mut [Box<Job<'_>>], clock: &dyn Clock) {
        let Some(first) = burst.first() else { return };
        self.sampling.count_work(burst.len(), first.input_bytes());
        let mut rest = burst;
        // Part by part, so that jobs are still in the nearest cache when the driver, and then the tally, come to them.
        while let Some(first) = rest.first() {
            let part_jobs = part_jobs(first.input_bytes()).min(rest.len());
            if is_module_only(first) || !are_alike(&rest[..part_jobs]) {
                return self.run_mixed(rest, clock);
            }
            let (part, others) = rest.split_at_mut(part_jobs);
            self.run_group(Group::alike(part), clock);
            rest = others;
        }
    }

    /// Runs jobs of several sessions or lengths, those of one length part by part.
    fn run_mixed(&mut self, burst: &mut [Box<Job<'_>>], clock: &dyn Clock) {
        let mut rest = self.reject_module_only(burst);
        while let Some(first) = rest.first() {
            let part_jobs = part_jobs(first.input_bytes());
            if rest.len() <= part_jobs || !is_uniform(&rest[..part_jobs]) {
                break;
            }
            let (part, others) = rest.split_at_mut(part_jobs);
            self.run_group(Group::of_one_kind(part), clock);
            rest = others;
        }
        self.run_whole(rest, clock);
    }

    /// Fails jobs whose sessions are for modules only; returns the others.
    fn reject_module_only<'b, 'm>(&mut self, burst: &'b mut [Box<Job<'m>>]) -> &'b mut [Box<Job<'m>>] {
        if !burst.iter().any(|job| is_module_only(job)) {
            return burst;
        }
        burst.sort_by_key(|job| is_module_only(job));
        let (rest, bound) = burst.split_at_mut(burst.partition_point(|job| !is_module_only(job)));
        for job in bound {
            job.fail(if job.lengths_fit() { JobError::NeedsModule } else { JobError::BadLength });
            count(&mut self.tallies[Method::Plain as usize], job);
        }
        rest
    }

    /// Runs a burst of any jobs in one go, or in one per algorithm and direction.
    fn run_whole(&mut self, burst: &mut [Box<Job<'_>>], clock: &dyn Clock) {
        if burst.windows(2).any(|pair| kind(&pair[0]) != kind(&pair[1])) {
            burst.sort_by_key(|job| (kind(job).0.index(), kind(job).1));
            burst
                .chunk_by_mut(|one, next| kind(one) == kind(next))
                .for_each(|group| self.run_group(Group::of_one_kind(group), clock));
        } else if !burst.is_empty() {
            self.run_group(Group::of_one_kind(burst), clock);
        }
    }

    /// Drops, and wipes, what its drivers have made of sessions that have ended ([`InlineDriver::evict`]).
    pub fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.plain.evict(has_ended);
        if let Some(multi) = &mut self.multi {
            multi.evict(has_ended);
        }
    }

    /// From now on keeps samples for the adaptive policy.
    pub(crate) fn learn(&mut self) {
        self.sampling.keep();
    }

    /// Whether there are samples worth telling, or it is time to look: what is asked after each burst, and mostly `false`.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.sampling.has_news()
    }

    /// Tells samples since the last time: at once, or where they are worth it.
    pub(crate) fn flush_samples(&mut self, at_once: bool, tell: impl FnOnce(&[CostSample])) {
        self.sampling.flush(at_once, tell);
    }

    /// Tells no samples since the last time.
    pub(crate) fn drop_samples(&mut self) {
        self.flush_samples(true, |_| ());
    }

    /// Whether some bursts have passed since this was last so.
    pub(crate) fn take_look_due(&mut self) -> bool {
        self.sampling.take_look_due()
    }

    /// From now on lets others see its tallies, until it is dropped or they are taken.
    pub(crate) fn go_live(&mut self) -> Weak<LiveTallies> {
        Arc::downgrade(self.live.insert(Arc::default()))
    }

    /// Lets others see what was done so far.
    pub(crate) fn publish(&self) {
        if let Some(live) = &self.live {
            live.set(&self.tallies);
        }
    }

    /// What was done so far, by method; starts again from nothing.
    #[must_use]
    pub fn take_tallies(&mut self) -> [Tally; Method::ALL.len()] {
        self.live = None;
        std::mem::take(&mut self.tallies)
    }

    /// Gives up a burst that was not started.
    pub(crate) fn fail_all(&mut self, burst: &mut [Box<Job<'_>>], error: JobError) {
        burst.iter_mut().for_each(|job| job.fail(error));
        self.tallies[Method::Plain as usize].failed += burst.len() as u64;
    }

    /// Runs jobs plainly and counts nothing: for checking what others did.
    pub(crate) fn run_uncounted(&mut self, burst: &mut [Box<Job<'_>>]) {
        self.plain.run(burst);
    }

    /// Counts a job that is run next because a module had failed it.
    pub(crate) fn count_redone(&mut self) {
        self.tallies[Method::Plain as usize].redone += 1;
    }

    /// Counts a job that a module did wrong and whose right result, made here for the check, took its place.
    pub(crate) fn count_corrected(&mut self, job: &Job<'_>) {
        self.count_redone();
        count(&mut self.tallies[Method::Plain as usize], job);
        self.publish();
    }
}

#[cfg(test)]
mod tests;
