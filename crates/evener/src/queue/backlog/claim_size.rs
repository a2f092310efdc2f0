//! What a claim takes out of a queue, and in what order a queue is filled for it.

use std::cmp::Reverse;

use evener_core::Job;
use evener_core::plan::{CLAIM_BYTES_MAX, LONG_JOB_BYTES, Take};
use evener_ring::Ring;

/// Moves one claim: as many jobs as `take` says, or fewer where they are long.
pub(super) fn claim_from<'m>(queue: &Ring<Box<Job<'m>>>, take: &Take, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
    let most = take.claim(queue.len());
    let fill = most.min(take.jobs_min as usize);
    let mut claimed = queue.pop_many(jobs, fill);
    let bytes_of = |jobs: &[Box<Job<'m>>]| jobs.iter().map(|job| job.input_bytes() as u64).sum::<u64>();
    let mut bytes = bytes_of(&jobs[jobs.len() - claimed..]);
    let are_long = bytes > claimed as u64 * LONG_JOB_BYTES;
    while claimed > 0 && claimed < most && bytes < CLAIM_BYTES_MAX {
        let came = queue.pop_many(jobs, if are_long { fill.min(most - claimed) } else { most - claimed });
        if came == 0 {
            break;
        }
        bytes += bytes_of(&jobs[jobs.len() - came..]);
        claimed += came;
    }
    claimed
}

/// Puts long jobs in front, for a worker that takes a long one last ends last. Each of them has its turn in its stream
/// already, so the order in which they come out stays.
pub(super) fn sort_longest_first(jobs: &mut [Box<Job<'_>>]) {
    let bytes = |job: &Job<'_>| job.input_bytes();
    if jobs.windows(2).any(|pair| bytes(&pair[0]) < bytes(&pair[1])) {
        jobs.sort_by_key(|job| Reverse(bytes(job)));
    }
}

#[cfg(test)]
mod tests {
    use evener_core::plan::{Dispatch, Plan, Policy, Snapshot};

    use super::*;
    use crate::queue::backlog::Backlog;
    use crate::queue::backlog::tests::{job_of, plan};

    #[test]
    fn cores_take_long_jobs_first_and_not_more_than_the_cache_holds() {
        let take = Take { jobs_max: 64, jobs_min: 2, share: 1 };
        let plan = Plan { dispatch: Dispatch::SharedQueue, cpu: take, module: Take::NOTHING };
        let backlog = Backlog::new(&plan, 16, 1, 0);
        let lengths = [64, 300_000, 100, 300_000, 200_000, 5_000, 100_000];
        let mut jobs: Vec<_> = lengths.into_iter().map(job_of).collect();
        backlog.submit(&mut jobs);
        let claim = || {
            let mut claimed = Vec::new();
            backlog.claim(Some(0), &take, &mut claimed);
            claimed.iter().map(|job| job.input_bytes()).collect::<Vec<_>>()
        };
        let claims = [claim(), claim(), claim()];
        assert_eq!(claims, [vec![300_000, 300_000], vec![200_000, 100_000, 5_000, 100], vec![64]]);
    }

    #[test]
    fn claims_make_no_more_fills_of_the_lanes_than_the_jobs_need() {
        let lanes = 16;
        let plan = Policy::CpuOnly.plan(&Snapshot { cpu_workers: 2, module_workers: 0, cpu_width: 16 });
        for (jobs, bytes) in [(128, 16_384), (256, 8_192), (512, 4_096), (1_000, 64), (7, 64)] {
            let backlog = Backlog::new(&plan, jobs, 2, 0);
            backlog.submit(&mut (0..jobs).map(|_| job_of(bytes)).collect());
            let claims = std::iter::from_fn(|| match backlog.claim(Some(0), &plan.cpu, &mut Vec::new()) {
                0 => None,
                claimed => Some(claimed),
            });
            let fills: usize = claims.map(|claimed| claimed.div_ceil(lanes)).sum();
            assert_eq!(fills, jobs.div_ceil(lanes), "{jobs} jobs of {bytes} bytes");
        }
    }

    #[test]
    fn the_papers_policies_keep_the_order_of_submission() {
        let backlog = Backlog::new(&plan(Dispatch::SharedQueue), 4, 1, 0);
        backlog.submit(&mut vec![job_of(10), job_of(20)]);
        let mut claimed = Vec::new();
        backlog.claim(Some(0), &Take::ONE, &mut claimed);
        assert_eq!(claimed[0].input_bytes(), 10);
    }
}
