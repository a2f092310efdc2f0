//! The driver that the runtime sees: it holds jobs, and runners work on copies of them.
//!
//! `submit -> (copy: copies.rs) -> pool: runner -> poll -> (publish)`. A job's own memory is touched when its result is
//! published, and at no other time; so a runner that hangs in the kernel holds nothing of the caller's.
//!
//! | a job is | from | until |
//! |---|---|---|
//! | held | `submit`, its request at the pool | its request comes back (`poll`), or all is given up (`abandon`, fork) |
//! | answered | `submit`, where it has no work or is too long, or all is given up | the next `poll` |
//! | done | `poll` | |

mod copies;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use evener_core::{Algorithm, Direction, HasEnded, Job, JobError, Nanos, Profile, QueuedDriver, Refusal};
use zeroize::Zeroizing;

use crate::pool::device::{Device, Task, error_of};
use crate::pool::syscall_pool::{SHUTDOWN_GRACE, SyscallPool};
use crate::process::served::Served;

/// A module behind the kernel, of one run.
pub(crate) struct JobDriver<'m, D: Device> {
    profile: Profile,
    algorithms: Arc<[Algorithm]>,
    device: Arc<D>,
    stuck: Arc<AtomicUsize>,
    /// Of the process whose threads its runners are.
    pool: Served<SyscallPool<D>>,
    /// Those that could be started.
    runners: u32,
    runners_max: u32,
    held: Vec<(u64, Box<Job<'m>>)>,
    /// Answered without the module.
    answered: Vec<Box<Job<'m>>>,
    /// Memory of finished requests, for the next ones.
    spare: Vec<Zeroizing<Vec<u8>>>,
    taken: u64,
    /// A run that failed to start, or whose module has runners that never came back.
    is_lost: bool,
}

impl<'m, D: Device> JobDriver<'m, D> {
    /// With so many runners; what `profile` is wider waits at the pool, so that a runner that has finished need not sleep until there
    /// is more to do.
    pub(crate) fn new(
        profile: Profile,
        runners_max: u32,
        algorithms: Arc<[Algorithm]>,
        device: Arc<D>,
        stuck: Arc<AtomicUsize>,
    ) -> Self {
        let pool = pool(&profile, &device, &stuck);
        // Relaxed: a number that may be a moment old.
        let is_lost = stuck.load(Ordering::Relaxed) > 0;
        let mut this = Self {
            profile,
            algorithms,
            device,
            stuck,
            pool,
            runners: 0,
            runners_max,
            held: Vec::new(),
            answered: Vec::new(),
            spare: Vec::new(),
            taken: 0,
            is_lost,
        };
        this.start();
        this
    }

    fn start(&mut self) {
        for _ in 0..self.runners_max {
            match SyscallPool::start_runner(&self.pool) {
                Ok(()) => self.runners += 1,
                Err(_) => self.is_lost = self.runners == 0,
            }
        }
    }

    /// Requests that it may hold: less where not all runners could be started.
    fn space(&self) -> usize {
        let missing = self.runners_max - self.runners;
        self.profile.width.saturating_sub(missing) as usize
    }

    /// In a forked child there are no runners, and what lies in the kernel is the parent's: what was held is lost here, and
    /// everything begins anew.
    fn check_fork(&mut self) {
        if self.pool.is_of_this_process() {
            return;
        }
        self.lose_held();
        self.runners = 0;
        self.pool = pool(&self.profile, &self.device, &self.stuck);
        self.start();
    }

    fn is_for_it(&self, job: &Job<'_>) -> bool {
        let (session, aad_bytes) = (job.session(), job.aad().len());
        // With padding, of which hashes, whose messages are no output, have none.
        let text_bytes = session.output_bytes_max(job.input_bytes()).max(job.input_bytes());
        self.pool.device().takes(session.algorithm(), text_bytes, aad_bytes)
    }

    /// Gives a job back with what came of its request.
    fn publish(&mut self, task: Task, done: &mut Vec<Box<Job<'m>>>) {
        let Some(place) = self.held.iter().position(|(number, _)| *number == task.number) else { return };
        let (_, mut job) = self.held.swap_remove(place);
        match task.answer {
            Ok(()) if task.is_in_jobs_space => job.done(task.text_bytes),
            Ok(()) => copies::publish(&task, &mut job),
            Err(failure) => job.fail(error_of(failure, task.spec)),
        }
        if task.is_in_jobs_space {
            job.put_space(task.space);
        } else {
            self.spare.push(task.space);
        }
        done.push(job);
    }

    fn lose_held(&mut self) {
        self.answered.extend(self.held.drain(..).map(|(_, mut job)| {
            job.fail(JobError::ModuleLost);
            job
        }));
    }
}

impl<'m, D: Device> QueuedDriver<'m> for JobDriver<'m, D> {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn supports(&self, algorithm: Algorithm, _direction: Direction) -> bool {
        self.algorithms.contains(&algorithm)
    }

    fn submit(&mut self, mut job: Box<Job<'m>>) -> Result<(), (Box<Job<'m>>, Refusal)> {
        self.check_fork();
        if self.is_lost {
            return Err((job, Refusal::Lost));
        }
        if self.in_flight() >= self.space() {
            return Err((job, Refusal::Full));
        }
        if !self.is_for_it(&job) {
            job.fail(JobError::ModuleFull);
            self.answered.push(job);
        } else if job.input_bytes() == 0 && !needs_work(&job) {
            job.done(0);
            self.answered.push(job);
        } else {
            self.taken += 1;
            let task = self.task(&mut job);
            self.pool.submit(task, self.pool.key(job.session()));
            self.held.push((self.taken, job));
        }
        Ok(())
    }

    fn poll(&mut self, done: &mut Vec<Box<Job<'m>>>, timeout: Nanos) -> usize {
        self.check_fork();
        let before = done.len();
        done.append(&mut self.answered);
        let timeout = if done.len() > before || self.held.is_empty() { Nanos::ZERO } else { timeout };
        for task in self.pool.take(timeout.into()) {
            self.publish(task, done);
        }
        done.len() - before
    }

    fn in_flight(&self) -> usize {
        self.held.len() + self.answered.len()
    }

    fn core_time(&self) -> Nanos {
        self.pool.core_time()
    }

    fn abandon(&mut self, given_back: &mut Vec<Box<Job<'m>>>) {
        self.check_fork();
        self.pool.drop_waiting();
        self.lose_held();
        given_back.append(&mut self.answered);
    }

    fn evict(&mut self, has_ended: HasEnded<'_>) {
        // In a forked child the keys are the parent's, and locks may be held by threads that are not here.
        if self.pool.is_of_this_process() {
            self.pool.release_keys(self.pool.keys.evict(has_ended));
        }
    }
}

impl<D: Device> Drop for JobDriver<'_, D> {
    fn drop(&mut self) {
        if !self.pool.is_of_this_process() {
            return;
        }
        self.pool.drop_waiting();
        self.pool.release_keys(self.pool.keys.evict(&|_| true));
        if self.pool.close(SHUTDOWN_GRACE) {
            // They have nothing to do any more: keys are closed when this returns.
            self.pool.wait_for_runners();
        }
        // Else runners close them when they come back: beside requests that hang, that may hang as well.
    }
}

fn pool<D: Device>(profile: &Profile, device: &Arc<D>, stuck: &Arc<AtomicUsize>) -> Served<SyscallPool<D>> {
    Served::new(SyscallPool::new(Arc::clone(device), Arc::clone(stuck), together(profile) as usize))
}

/// Results for which the caller is woken together: half of what may be held, so that as many again are there to be handed over meanwhile.
pub(crate) const fn together(profile: &Profile) -> u32 {
    profile.width / 2
}

/// Whether a job without input has output: a digest, a tag, or padding.
fn needs_work(job: &Job<'_>) -> bool {
    let session = job.session();
    session.algorithm().tag_bytes() > 0 || session.output_bytes_max(0) > 0
}

#[cfg(test)]
mod tests;
