//! What one core runs jobs with: the plain driver, the multi-buffer driver where there is one, and the table
//! that says which of them a burst goes to. One kit per thread.

use std::sync::Arc;

use evener_core::driver::Clock;
use evener_core::{
    Algorithm, Class, Direction, InlineDriver, Job, JobError, Method, MethodTable, Nanos, Outcome, Sample,
    Tally,
};

/// One burst in so many has its time taken. That is two looks at a thread clock of 640 ns: 40 ns per burst.
const SAMPLE_EVERY: u64 = 32;

/// The CPU's drivers for one thread, and what they did.
pub struct CpuKit {
    plain: Box<dyn InlineDriver>,
    multi: Option<Box<dyn InlineDriver>>,
    table: Arc<MethodTable>,
    tallies: [Tally; Method::ALL.len()],
    bursts: u64,
    /// What the adaptive policy is to learn from; nothing is kept for other policies.
    lessons: Option<Lessons>,
}

/// Samples for the estimator.
#[derive(Default)]
struct Lessons {
    samples: Vec<CostSample>,
    /// Classes that were sampled: the first burst of each is.
    seen: Vec<Class>,
}

/// What one burst of one class took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostSample {
    pub(crate) class: Class,
    pub(crate) method: Method,
    pub(crate) jobs: u64,
    pub(crate) bytes: u64,
    pub(crate) core: Nanos,
    pub(crate) wall: Nanos,
    /// Bursts that it is the sample of.
    pub(crate) stands_for: u64,
}

impl CpuKit {
    /// A kit; without `multi` everything is plain.
    #[must_use]
    pub fn new(
        plain: Box<dyn InlineDriver>,
        multi: Option<Box<dyn InlineDriver>>,
        table: Arc<MethodTable>,
    ) -> Self {
        Self { plain, multi, table, tallies: Default::default(), bursts: 0, lessons: None }
    }

    /// Jobs that it runs side by side at its best.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.multi.as_ref().map_or(1, |multi| multi.profile().width)
    }

    /// Runs a burst: every job leaves as Done or Failed. A burst with several algorithms or directions is
    /// sorted by them first, so the order of `burst` may change.
    pub fn run(&mut self, burst: &mut [Box<Job<'_>>], clock: &dyn Clock) {
        let mut rest = burst;
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

    /// From now on keeps samples for the estimator.
    pub(crate) fn learn(&mut self) {
        self.lessons = Some(Lessons::default());
    }

    /// Samples since the last call.
    pub(crate) fn take_samples(&mut self) -> Vec<CostSample> {
        self.lessons.as_mut().map_or_else(Vec::new, |lessons| std::mem::take(&mut lessons.samples))
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
        let (bytes, bytes_max) = group
            .iter()
            .map(|job| job.input_bytes())
            .fold((0, 0), |(sum, most), bytes| (sum + bytes, most.max(bytes)));
        let method = self.choose(group, bytes, bytes_max);
        let is_first = self.is_first_of_its_class(&group[0]);
        let is_sampled = self.bursts % SAMPLE_EVERY == 0 || is_first;
        self.bursts += 1;
        let start = is_sampled.then(|| (clock.thread_time(), clock.now()));
        self.run_by(method, group);
        let tally = &mut self.tallies[method as usize];
        if let Some((core, wall)) = start {
            let [jobs, bytes] = [group.len(), bytes].map(|n| n as u64);
            let (core, wall) = (clock.thread_time() - core, clock.now() - wall);
            tally.sample(Sample { jobs, bytes, core, wall });
            if let Some(lessons) = &mut self.lessons {
                let class = group[0].class();
                let stands_for = if is_first { 1 } else { SAMPLE_EVERY };
                // Of several classes nothing could be said of any one.
                if group.iter().all(|job| job.class() == class) {
                    lessons.samples.push(CostSample { class, method, jobs, bytes, core, wall, stands_for });
                }
            }
        }
        tally.bursts += 1;
        group.iter_mut().for_each(|job| settle(tally, job));
    }

    /// Whether something learns from this kit, and has nothing of this job's class from it yet.
    fn is_first_of_its_class(&mut self, job: &Job<'_>) -> bool {
        let Some(lessons) = &mut self.lessons else { return false };
        let class = job.class();
        let is_first = !lessons.seen.contains(&class);
        if is_first {
            lessons.seen.push(class);
        }
        is_first
    }

    fn choose(&self, group: &[Box<Job<'_>>], bytes: usize, bytes_max: usize) -> Method {
        let (algorithm, direction) = kind(&group[0]);
        match &self.multi {
            Some(multi)
                if multi.supports(algorithm, direction)
                    && bytes_max <= multi.job_bytes_max(algorithm, direction) =>
            {
                self.table.choose(algorithm, direction, bytes / group.len(), group.len())
            }
            _ => Method::Plain,
        }
    }

    fn run_by(&mut self, method: Method, group: &mut [Box<Job<'_>>]) {
        match (method, &mut self.multi) {
            (Method::MultiBuffer, Some(multi)) => multi.run(group),
            _ => self.plain.run(group),
        }
    }
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
