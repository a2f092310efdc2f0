//! What one core runs jobs with: the plain driver and the multi-buffer driver where there is one. One set of drivers per thread; which
//! of the two a burst goes to says the run's table (`costs/`).

use std::sync::Arc;

use evener_core::driver::Clock;
use evener_core::{
    Algorithm, Class, Direction, HasEnded, InlineDriver, Job, JobError, Method, Nanos, Outcome, Sample, Tally,
};

use crate::Costs;
use crate::costs::{Chosen, CostSample};

/// One burst in so many has its time taken. That is two looks at a thread clock of 640 ns: 40 ns per burst.
const SAMPLE_EVERY: u64 = 32;

/// Which of those: not a worker's first, whose code and tables are not in the caches yet. Two workers' first bursts, one after the
/// other, look like a method that costs twice what it did.
const SAMPLED: u64 = 1;

/// Samples of short bursts that wait until they are told together, at most: each telling takes a lock and 50 ns, which are 1 % of 32
/// single jobs of 8 bytes.
const SAMPLES_MAX: usize = 8;

/// Work that a sample stands for and that does not wait. Assumed, not measured: 50 us, a thousand times what telling costs.
const WORK_MAX: Nanos = Nanos::from_micros(50);

/// Work between two looks at the clock where no worker queries the adaptive policy, at least, in jobs and units of 256 bytes: a look takes
/// 30 ns, so of single jobs of 8 bytes, which take 100 ns, only one in 64 looks.
const LOOK_WORK_MIN: u64 = 64;

/// What one burst adds to that at most: a quarter of it.
const LOOK_WORK_MAX: u64 = LOOK_WORK_MIN / 4;

/// The CPU's drivers for one thread, and what they did.
pub struct CoreDrivers {
    plain: Box<dyn InlineDriver>,
    multi: Option<Box<dyn InlineDriver>>,
    costs: Arc<Costs>,
    tallies: [Tally; Method::ALL.len()],
    bursts: u64,
    /// Bursts at the last sample.
    sampled_at: u64,
    /// Work since the last look whether modules matter, in jobs and units of 256 bytes.
    unlooked: u64,
    /// What a look at the thread's clock costs; it is no cost of a burst. Measured with the first sample.
    look: Option<Nanos>,
    /// Samples for the adaptive policy; nothing is kept for other policies.
    samples: Option<Vec<CostSample>>,
    /// Whether these are worth telling.
    is_flush_due: bool,
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
            bursts: 0,
            sampled_at: 0,
            unlooked: 0,
            look: None,
            samples: None,
            is_flush_due: false,
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

    /// Runs a burst: every job leaves as Done or Failed. A burst with several algorithms or directions is
    /// sorted by them first, so the order of `burst` may change.
    pub fn run(&mut self, burst: &mut [Box<Job<'_>>], clock: &dyn Clock) {
        let Some(first) = burst.first() else { return };
        self.unlooked += LOOK_WORK_MAX.min((burst.len() + first.input_bytes() / 256) as u64);
        let mut rest = self.reject_module_only(burst);
        // Alike and of one length: part by part, so that jobs are still in the nearest cache when the driver, and
        // then the tally, come to them.
        while let Some(first) = rest.first() {
            let part_jobs = part_jobs(first.input_bytes());
            if rest.len() <= part_jobs || !is_uniform(&rest[..part_jobs]) {
                break;
            }
            let (part, others) = rest.split_at_mut(part_jobs);
            self.run_alike(part, clock);
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
                .for_each(|group| self.run_alike(group, clock));
        } else if !burst.is_empty() {
            self.run_alike(burst, clock);
        }
    }

    /// Drops, and wipes, what its drivers have made of sessions that have ended ([`InlineDriver::forget`]).
    pub fn forget(&mut self, has_ended: HasEnded<'_>) {
        self.plain.forget(has_ended);
        if let Some(multi) = &mut self.multi {
            multi.forget(has_ended);
        }
    }

    /// From now on keeps samples for the adaptive policy.
    pub(crate) fn learn(&mut self) {
        self.samples = Some(Vec::new());
    }

    /// Whether there are samples worth telling, or it is time to look: what is asked after each burst, and mostly `false`.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.is_flush_due || self.is_look_due()
    }

    #[inline]
    const fn is_look_due(&self) -> bool {
        self.unlooked >= LOOK_WORK_MIN
    }

    /// Tells samples since the last time: at once, or where they are worth it.
    pub(crate) fn flush_samples(&mut self, at_once: bool, tell: impl FnOnce(&[CostSample])) {
        if let (true, Some(samples)) = (self.is_flush_due || at_once, &mut self.samples) {
            if !samples.is_empty() {
                tell(samples);
                samples.clear();
            }
            self.is_flush_due = false;
        }
    }

    /// Tells no samples since the last time.
    pub(crate) fn drop_samples(&mut self) {
        self.flush_samples(true, |_| ());
    }

    /// Whether some bursts have passed since this was last so.
    pub(crate) fn take_look_due(&mut self) -> bool {
        let is_time = self.is_look_due();
        if is_time {
            self.unlooked = 0;
        }
        is_time
    }

    /// What was done so far, by method; starts again from nothing.
    #[must_use]
    pub fn take_tallies(&mut self) -> [Tally; Method::ALL.len()] {
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
    }

    /// Runs jobs of one algorithm and direction.
    fn run_alike(&mut self, group: &mut [Box<Job<'_>>], clock: &dyn Clock) {
        let (class, chosen) = self.choose(group);
        let rest =
            if chosen.wants_try { self.try_other(group, class, chosen.method.other(), clock) } else { group };
        if !rest.is_empty() {
            let is_first = chosen.is_fresh && self.costs.take_first(class, rest.len());
            let is_sampled = self.bursts % SAMPLE_EVERY == SAMPLED || is_first;
            self.bursts += 1;
            // The first burst of a worker stands for itself: it is no sample of what the worker did before.
            let stands_for = if is_first { 1 } else { self.bursts - self.sampled_at };
            if is_sampled {
                self.sampled_at = self.bursts;
            }
            self.run_part(rest, chosen.method, is_sampled.then_some(stands_for), clock);
        }
    }

    /// Runs the first jobs by the method that is not in force, to see what they cost; returns the others.
    fn try_other<'g, 'm>(
        &mut self,
        group: &'g mut [Box<Job<'m>>],
        class: Class,
        other: Method,
        clock: &dyn Clock,
    ) -> &'g mut [Box<Job<'m>>] {
        let jobs = self.costs.take_try(class, group.len()).unwrap_or(0);
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
        match stands_for {
            Some(bursts) => self.run_sampled(part, method, bursts, clock),
            None => self.run_by(method, part),
        }
        let tally = &mut self.tallies[method as usize];
        tally.bursts += 1;
        part.iter_mut().for_each(|job| settle(tally, job));
    }

    fn run_sampled(&mut self, part: &mut [Box<Job<'_>>], method: Method, stands_for: u64, clock: &dyn Clock) {
        let look = *self.look.get_or_insert_with(|| cost_of_look(clock));
        let (core, wall) = (clock.thread_time(), clock.now());
        self.run_by(method, part);
        let (core, wall) = (clock.thread_time() - core - look, clock.now() - wall);
        let (jobs, class) = (part.len(), part[0].class());
        let bytes = part.iter().map(|job| job.input_bytes() as u64).sum();
        self.tallies[method as usize].sample(Sample { jobs: jobs as u64, bytes, core, wall });
        // Of several classes nothing could be said of any one.
        if part.iter().all(|job| job.class() == class) {
            let sample = CostSample { class, method, jobs, bytes, core, wall, stands_for };
            self.costs.record(&sample);
            if let Some(samples) = &mut self.samples {
                samples.push(sample);
                let work = Nanos(core.0 * stands_for);
                self.is_flush_due |= stands_for == 1 || work >= WORK_MAX || samples.len() >= SAMPLES_MAX;
            }
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
                if multi.supports(algorithm, direction)
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

/// The least of a few looks at the thread's clock.
fn cost_of_look(clock: &dyn Clock) -> Nanos {
    let looks = (0..4).map(|_| clock.thread_time());
    let times: Vec<Nanos> = looks.collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or_default()
}

/// Most jobs of a part of a uniform burst: eight fills of 16 lanes, 24 KiB of jobs.
const PART_JOBS_MAX: usize = 128;

/// Least jobs of a part: one fill of 16 lanes.
const PART_JOBS_MIN: usize = 16;

/// Input of a part in bytes: with its output half of the second cache of current cores, so that what a driver
/// comes back to (a last block with its padding) is still there.
const PART_BYTES: usize = 256 << 10;

/// Jobs of a part, for a burst of equal ones.
fn part_jobs(bytes: usize) -> usize {
    let fills = PART_BYTES / bytes.max(1) / PART_JOBS_MIN * PART_JOBS_MIN;
    fills.clamp(PART_JOBS_MIN, PART_JOBS_MAX)
}

/// Whether all are of one algorithm, direction and length.
fn is_uniform(part: &[Box<Job<'_>>]) -> bool {
    let first = (kind(&part[0]), part[0].input_bytes());
    part.iter().all(|job| (kind(job), job.input_bytes()) == first)
}

/// Whether no core may run it.
pub(crate) fn is_module_only(job: &Job<'_>) -> bool {
    job.session().is_for_modules_only()
}

/// What may be run together.
fn kind(job: &Job<'_>) -> (Algorithm, Direction) {
    (job.session().algorithm(), job.session().direction())
}

/// Adds a job to a tally after its run.
fn settle(tally: &mut Tally, job: &mut Job<'_>) {
    if job.outcome() == Outcome::Pending {
        // A driver that leaves a job pending has a bug; the caller must not wait for ever because of it.
        job.fail(JobError::Library);
    }
    count(tally, job);
}

/// Adds a finished job to a tally.
pub(crate) fn count(tally: &mut Tally, finished: &Job<'_>) {
    match finished.outcome() {
        Outcome::Done { .. } => {
            tally.jobs += 1;
            tally.bytes += finished.input_bytes() as u64;
        }
        Outcome::Failed(_) | Outcome::Pending => tally.failed += 1,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use evener_core::{Padding, Session};
    use evener_driver_libcrypto::Libcrypto;

    use super::*;

    /// A burst takes so many nanoseconds, a look 100.
    struct Steady {
        work: u64,
        looks: AtomicU64,
    }

    impl Clock for Steady {
        fn now(&self) -> Nanos {
            Nanos::ZERO
        }

        fn thread_time(&self) -> Nanos {
            let looks = self.looks.fetch_add(1, Relaxed);
            Nanos(looks * 100 + looks.div_ceil(2) * self.work)
        }
    }

    /// How many samples were told at a time, of a thousand single jobs that take so long.
    fn told(work: u64) -> Vec<usize> {
        let session =
            Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[1; 16]).unwrap();
        let (session, mut room) = (Arc::new(session), [0; 16]);
        let mut burst = [Job::in_place(&mut room)];
        let (mut core_drivers, clock) = (
            CoreDrivers::new(Box::new(Libcrypto::new().unwrap()), None),
            Steady { work, looks: AtomicU64::new(0) },
        );
        core_drivers.learn();
        let mut told = Vec::new();
        for _ in 0..1_000 {
            burst[0].arm(Arc::clone(&session), &[2; 16], 16);
            core_drivers.run(&mut burst, &clock);
            core_drivers.flush_samples(false, |samples| told.push(samples.len()));
        }
        core_drivers.flush_samples(true, |samples| told.push(samples.len()));
        told
    }

    #[test]
    fn samples_of_short_jobs_are_told_eight_at_a_time_but_the_first_ones_at_once_and_none_is_kept() {
        let short = told(100);
        assert_eq!((&short[..2], short.iter().sum()), (&[1, 1][..], told(3_000).len()), "{short:?}");
        assert!(short[2..short.len() - 1].iter().all(|&count| count == SAMPLES_MAX), "{short:?}");
    }

    #[test]
    fn a_sample_that_stands_for_much_work_waits_for_no_other() {
        let long = told(3_000);
        assert!(long.len() >= 30 && long.iter().all(|&count| count == 1), "{long:?}");
    }
}
