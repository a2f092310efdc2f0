//! Parts of a burst: which jobs may be run together, how many of them at a time, and what each counts as.

use std::ptr;

use evener_core::{Algorithm, Direction, InlineDriver, Job, JobError, Outcome, Tally};

/// Most jobs of a part of a uniform burst: eight fills of 16 lanes, 24 KiB of jobs.
const PART_JOBS_MAX: usize = 128;

/// Least jobs of a part: one fill of 16 lanes.
const PART_JOBS_MIN: usize = 16;

/// Input of a part in bytes: with its output half of the second cache of current cores, so that what a driver
/// comes back to (a last block with its padding) is still there.
const PART_BYTES: usize = 256 << 10;

/// Jobs of one algorithm and direction, at least one.
pub(super) struct Group<'g, 'm> {
    pub(super) jobs: &'g mut [Box<Job<'m>>],
    /// Whether they are known to be [alike](are_alike): then nothing has to be asked of each.
    are_alike: bool,
}

impl<'g, 'm> Group<'g, 'm> {
    /// Jobs of one algorithm and direction.
    pub(super) fn of_one_kind(jobs: &'g mut [Box<Job<'m>>]) -> Self {
        Self { jobs, are_alike: false }
    }

    /// Jobs that are [alike](are_alike).
    pub(super) fn alike(jobs: &'g mut [Box<Job<'m>>]) -> Self {
        Self { jobs, are_alike: true }
    }

    /// The first jobs, so many, and the others.
    pub(super) fn split_at(self, count: usize) -> (Self, Self) {
        let (front, rest) = self.jobs.split_at_mut(count);
        let part = |jobs| Self { jobs, are_alike: self.are_alike };
        (part(front), part(rest))
    }

    /// Has a driver run them.
    pub(super) fn run_by(&mut self, driver: &mut dyn InlineDriver) {
        match self.are_alike {
            true => driver.run_alike(self.jobs),
            false => driver.run(self.jobs),
        }
    }

    /// Input in bytes of all of them, and of the longest.
    pub(super) fn input_bytes(&self) -> (usize, usize) {
        let all = if self.are_alike { &self.jobs[..1] } else { &*self.jobs };
        let (sum, most) = all
            .iter()
            .map(|job| job.input_bytes())
            .fold((0, 0), |(sum, most), bytes| (sum + bytes, most.max(bytes)));
        (sum * (self.jobs.len() / all.len()), most)
    }
}

/// Jobs of a part, for a burst of equal ones.
pub(super) fn part_jobs(bytes: usize) -> usize {
    let fills = PART_BYTES / bytes.max(1) / PART_JOBS_MIN * PART_JOBS_MIN;
    fills.clamp(PART_JOBS_MIN, PART_JOBS_MAX)
}

/// Whether all are of one algorithm, direction and length.
pub(super) fn is_uniform(part: &[Box<Job<'_>>]) -> bool {
    let first = (kind(&part[0]), part[0].input_bytes());
    part.iter().all(|job| (kind(job), job.input_bytes()) == first)
}

/// Whether all have one session, told by its address, and one length.
pub(super) fn are_alike(burst: &[Box<Job<'_>>]) -> bool {
    let Some((first, others)) = burst.split_first() else { return true };
    let (session, bytes) = (first.session(), first.input_bytes());
    others.iter().all(|job| ptr::eq(job.session(), session) && job.input_bytes() == bytes)
}

/// Whether no core may run it.
pub(crate) fn is_module_only(job: &Job<'_>) -> bool {
    job.session().is_for_modules_only()
}

/// What may be run together.
pub(super) fn kind(job: &Job<'_>) -> (Algorithm, Direction) {
    (job.session().algorithm(), job.session().direction())
}

/// Adds a job to a tally after its run.
pub(super) fn settle(tally: &mut Tally, job: &mut Job<'_>) {
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
