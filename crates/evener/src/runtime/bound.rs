//! Jobs that only modules may do: which module gets one, and what becomes of it where none is left.

use evener_core::{Algorithm, Direction, Job, JobError};

use super::Shared;
use crate::ModuleSetup;
use crate::cpu::is_bound;

impl<'m> Shared<'m> {
    /// Whether any module does this, so that queueing it makes sense.
    pub(crate) fn module_does(&self, job: &Job<'_>) -> bool {
        let session = job.session();
        self.module_does[session.algorithm().index()][session.direction() as usize]
    }

    /// Takes jobs whose sessions are for modules only out of `jobs` and hands them to modules, or home as failed where none
    /// does them; `left` gets those for which there is no room. Returns how many went.
    pub(crate) fn bind_all(&self, jobs: &mut Vec<Box<Job<'m>>>, left: &mut Vec<Box<Job<'m>>>) -> usize {
        if !jobs.iter().any(|job| is_bound(job)) {
            return 0;
        }
        let (bound, free): (Vec<_>, _) = jobs.drain(..).partition(|job| is_bound(job));
        *jobs = free;
        let all = bound.len();
        left.extend(bound.into_iter().filter_map(|job| self.bind(job).err()));
        all - left.len()
    }

    fn bind(&self, mut job: Box<Job<'m>>) -> Result<(), Box<Job<'m>>> {
        let Some(desk) = self.desk_for(&job) else {
            job.fail(JobError::NeedsModule);
            self.bring_home(&mut vec![job]);
            return Ok(());
        };
        self.backlog.bind(desk, job)?;
        if self.backlog.is_out(desk) {
            // It went out of service meanwhile, so perhaps nobody looks there any more.
            while let Some(mut job) = self.backlog.take_bound(desk) {
                job.fail(JobError::ModuleLost);
                self.bring_home(&mut vec![job]);
            }
        }
        Ok(())
    }

    /// Of the modules in service that do a job, the one at which the fewest wait that no other may take.
    fn desk_for(&self, job: &Job<'_>) -> Option<usize> {
        let (algorithm, direction) = (job.session().algorithm().index(), job.session().direction() as usize);
        let does = self.each_does.iter().enumerate().filter(|(_, does)| does[algorithm][direction]);
        let desks = does.map(|(module, _)| self.cpu_workers + module);
        desks.filter(|desk| !self.backlog.is_out(*desk)).min_by_key(|desk| self.backlog.bound_count(*desk))
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
