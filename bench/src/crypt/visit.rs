//! A visit: what one contender's rounds at one cell measured, and how their jobs are armed.

use evener::Report;
use evener_core::{Job, Nanos};

use crate::crypt::neighbours::NeighbourReport;
use crate::crypt::workload::{Spec, Workload};
use crate::medians::Quantiles;

/// What one visit measured.
#[derive(Clone, Debug, Default)]
pub struct Visit {
    /// Time of each round, from the barrier to the end of the last job.
    pub rounds: Vec<Nanos>,
    /// Rounds of these that began while two workers shared a core.
    pub crowded: usize,
    /// Core time of all threads per round, where it is known.
    pub core: Option<Nanos>,
    /// One round by the paper's clock: from before the threads are created until after they are joined.
    pub paper_clock: Option<Nanos>,
    /// What Evener's workers did, all rounds together.
    pub report: Option<Report>,
    /// How long requests took that came one at a time.
    pub requests: Option<Quantiles>,
    /// What neighbours got, where there were any.
    pub beside: Option<NeighbourReport>,
}

/// Makes jobs ready for another turn, with their input restored where a turn destroys it.
pub(crate) fn arm_all<'m>(jobs: &mut [Box<Job<'m>>], load: &'m Workload) {
    arm(jobs, &load.jobs, load);
}

/// The same of some, which these specify.
pub(crate) fn arm<'m>(jobs: &mut [Box<Job<'m>>], specs: &[Spec], load: &'m Workload) {
    for (job, spec) in jobs.iter_mut().zip(specs) {
        if load.wants_restoring() {
            job.space_mut()[..spec.input_bytes].copy_from_slice(load.input_of(spec));
        }
        job.arm(&load.session, &spec.iv, spec.input_bytes);
        if load.session.algorithm().is_aead() {
            job.set_tag(&spec.tag);
        }
    }
}
