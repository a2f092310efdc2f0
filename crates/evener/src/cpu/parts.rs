//! Parts of a burst: which jobs may be run together, how many of them at a time, and what each counts as.

use std::ptr;

use evener_core::{Algorithm, Direction, Job, JobError, Outcome, Tally};

/// Most jobs of a part of a uniform burst: eight fills of 16 lanes, 24 KiB of jobs.
const PART_JOBS_MAX: usize = 128;

/// Least jobs of a part: one fill of 16 lanes.
const PART_JOBS_MIN: usize = 16;

/// Input of a part in bytes: with its output half of the second cache of current cores, so that what a driver
/// comes back to (a last block with its padding) is still there.
const PART_BYTES: usize = 256 << 10;

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
pub(super) fn is_of_one_session(burst: &[Box<Job<'_>>]) -> bool {
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
