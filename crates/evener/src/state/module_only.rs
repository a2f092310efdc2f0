//! Jobs that only modules may do: which module gets one, and what becomes of it where none is left.

use std::sync::atomic::Ordering;

use evener_core::{Algorithm, Direction, Job, JobError, Method, Tally};

use super::Shared;
use crate::ModuleSetup;
use crate::cpu::is_module_only;
use crate::state::report::WorkerReport;

/// The name in reports of jobs that found no module when they came.
const NO_WORKER: &str = "no worker";

impl<'m> Shared<'m> {
    /// Whether any module does this, so that queueing it makes sense.
    pub(crate) fn module_does(&self, job: &Job<'_>) -> bool {
        let session = job.session();
        self.module_does[session.algorithm().index()][session.direction() as usize]
    }

    /// Takes jobs whose sessions are for modules only out of `jobs` and hands them to modules, or home as failed where none
    /// does them; `left` gets those for which there is no space. Returns how many went.
    pub(crate) fn submit_module_only(
        &self,
        jobs: &mut Vec<Box<Job<'m>>>,
        left: &mut Vec<Box<Job<'m>>>,
    ) -> usize {
        if !jobs.iter().any(|job| is_module_only(job)) {
            return 0;
        }
        let (bound, free): (Vec<_>, _) = jobs.drain(..).partition(|job| is_module_only(job));
        *jobs = free;
        let all = bound.len();
        left.extend(bound.into_iter().filter_map(|job| self.push_module_only(job).err()));
        all - left.len()
    }

    /// The same for one job.
    ///
    /// # Errors
    ///
    /// Gives it back where there is no space.
    pub(crate) fn push_module_only(&self, job: Box<Job<'m>>) -> Result<(), Box<Job<'m>>> {
        let Some(worker) = self.module_worker_for(&job) else {
            self.reject(job, JobError::NeedsModule);
            return Ok(());
        };
        self.backlog.push_module_only(worker, job)?;
        if self.backlog.is_out_of_service(worker) {
            // It went out of service meanwhile, so perhaps its worker looks there no more.
            while let Some(job) = self.backlog.pop_module_only(worker) {
                self.reject(job, JobError::ModuleLost);
            }
        }
        Ok(())
    }

    /// Fails a job that no worker has had, and counts it.
    fn reject(&self, mut job: Box<Job<'m>>, error: JobError) {
        // Relaxed: a count, which is read when all threads are gone.
        self.rejected.fetch_add(u64::from(!cfg!(mutant = "turned_away_uncounted")), Ordering::Relaxed);
        job.fail(error);
        self.complete(&mut vec![job]);
    }

    /// What is reported of such jobs, where there were any.
    pub(super) fn report_of_rejected(&self) -> Option<WorkerReport> {
        let failed = self.rejected.load(Ordering::Relaxed);
        let mut methods = [Tally::default(); Method::ALL.len()];
        methods[Method::Plain as usize].failed = failed;
        (failed > 0).then(|| WorkerReport { name: NO_WORKER.to_owned(), methods, module: None })
    }

    /// Of the modules in service that do a job, the one at which the fewest wait that no other may take.
    fn module_worker_for(&self, job: &Job<'_>) -> Option<usize> {
        let (algorithm, direction) = (job.session().algorithm().index(), job.session().direction() as usize);
        let does = self.each_does.iter().enumerate().filter(|(_, does)| does[algorithm][direction]);
        let workers = does.map(|(module, _)| self.cpu_workers + module);
        workers
            .filter(|worker| !self.backlog.is_out_of_service(*worker))
            .min_by_key(|worker| self.backlog.module_only_count(*worker))
    }
}

/// `[algorithm][direction]`: whether any module does it.
pub(super) fn what_modules_do(modules: &[ModuleSetup<'_>]) -> Vec<[bool; 2]> {
    let any =
        |algorithm, direction| modules.iter().any(|module| module.driver.supports(algorithm, direction));
    let both =
        |&algorithm| [Direction::Encrypt, Direction::Decrypt].map(|direction| any(algorithm, direction));
    Algorithm::ALL.iter().map(both).collect()
}
