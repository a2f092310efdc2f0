//! The one module of a host: a core with the CPU's drivers, or an emulated module.

use std::sync::Arc;
use std::time::Duration;

use evener::{CpuKit, SystemClock};
use evener_core::{Algorithm, Direction, Job, JobError, Nanos, Profile, QueuedDriver, Refusal, Session};
use evener_driver_emulated::{Control, Emulated};

/// What a host owns and serves.
pub struct Module {
    pub(crate) profile: Profile,
    pub(crate) does: Vec<Algorithm>,
    pub(crate) control: Option<Control>,
    work: Work,
}

enum Work {
    /// Works while it is asked.
    Core(Box<CpuKit>),
    /// Works by itself, on as many jobs as it takes.
    Queued(Box<dyn QueuedDriver<'static>>),
}

impl Module {
    /// A core that does nothing else, with what a core runs jobs with. It does what `does` names.
    #[must_use]
    pub fn core(profile: Profile, kit: CpuKit, does: Vec<Algorithm>) -> Self {
        Self { profile, does, control: None, work: Work::Core(Box::new(kit)) }
    }

    /// A module with programmed time and faults.
    #[must_use]
    pub fn emulated(driver: Emulated<'static>) -> Self {
        let profile = QueuedDriver::profile(&driver).clone();
        let does = |algorithm: &&Algorithm| driver.supports(**algorithm, Direction::Encrypt);
        let does = Algorithm::ALL.iter().filter(does).copied().collect();
        let control = Some(driver.control());
        Self { profile, does, control, work: Work::Queued(Box::new(driver)) }
    }

    pub(crate) fn into_bench(self) -> Bench {
        Bench { work: self.work, waiting: Vec::new(), spare: Vec::new(), is_gone: false }
    }
}

/// The module as its thread works with it.
pub(crate) struct Bench {
    work: Work,
    /// Refused for now, because the module is full.
    waiting: Vec<Box<Job<'static>>>,
    spare: Vec<Box<Job<'static>>>,
    is_gone: bool,
}

/// How many requests a round may take, in all and from one ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    pub(crate) all: usize,
    pub(crate) each: usize,
}

impl Bench {
    /// What may be taken now. A core takes fills of its lanes, so that results go out while the next fill is worked on; a
    /// module takes one after the other from each ring, and none while it is full.
    pub(crate) fn quota(&self, rings: usize) -> Quota {
        match &self.work {
            Work::Core(kit) => {
                let all = usize::try_from(kit.width()).unwrap_or(1).max(FILL_LEAST);
                Quota { all, each: all.div_ceil(rings.clamp(1, SHARES_MAX)) }
            }
            Work::Queued(_) if self.waiting.is_empty() => Quota { all: rings, each: 1 },
            Work::Queued(_) => Quota { all: 0, each: 0 },
        }
    }

    /// Works on `jobs`; those that are finished stand in `done` afterwards, in any order. Sleeps only for jobs that it holds,
    /// and only while it takes no more.
    pub(crate) fn run(&mut self, jobs: &mut Vec<Box<Job<'static>>>, done: &mut Vec<Box<Job<'static>>>) {
        match &mut self.work {
            Work::Core(kit) => {
                kit.run(jobs, &SystemClock);
                done.append(jobs);
            }
            Work::Queued(driver) => {
                self.waiting.append(jobs);
                let has_all =
                    submit(&mut **driver, &mut self.waiting, &mut self.spare, done, &mut self.is_gone);
                let patience = if has_all { Nanos::ZERO } else { FULL_PATIENCE };
                driver.poll(done, patience);
            }
        }
    }

    /// Whether some jobs wait because the module holds as many as it can.
    pub(crate) fn is_full(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether a ring may give more than its share where the others give less. A module's queue is filled by turns.
    pub(crate) const fn takes_more(&self) -> bool {
        matches!(self.work, Work::Core(_))
    }

    /// How long a round may sleep for new requests: a module that holds jobs has to be looked at, the less often the longer
    /// it has been quiet.
    pub(crate) fn patience(&self, quiet_rounds: u32) -> Option<Duration> {
        match &self.work {
            Work::Queued(driver) if driver.in_flight() > 0 => {
                Some((GLANCE * (1 << quiet_rounds.min(5))).min(GLANCE_LONGEST))
            }
            _ => None,
        }
    }

    /// Gives back all that the module holds, as after a reset.
    pub(crate) fn reset(&mut self, done: &mut Vec<Box<Job<'static>>>) {
        if let Work::Queued(driver) = &mut self.work {
            driver.abandon(done);
        }
        self.waiting.iter_mut().for_each(|job| job.fail(JobError::ModuleLost));
        done.append(&mut self.waiting);
    }

    /// Has the module's drivers drop what they made of sessions that were closed.
    pub(crate) fn forget(&mut self, over: &[Arc<Session>]) {
        let is_over = |id| over.iter().any(|session| session.id() == id);
        match &mut self.work {
            Work::Core(kit) => kit.forget(&is_over),
            Work::Queued(driver) => driver.forget(&is_over),
        }
    }

    /// Whether the module was removed.
    pub(crate) const fn is_gone(&self) -> bool {
        self.is_gone
    }
}

/// Hands over what the module takes; `false` where some has to wait. A module that is gone fails all.
fn submit(
    driver: &mut dyn QueuedDriver<'static>,
    waiting: &mut Vec<Box<Job<'static>>>,
    spare: &mut Vec<Box<Job<'static>>>,
    done: &mut Vec<Box<Job<'static>>>,
    is_gone: &mut bool,
) -> bool {
    spare.append(waiting);
    for job in spare.drain(..) {
        let refused = if waiting.is_empty() { driver.submit(job) } else { Err((job, Refusal::Full)) };
        match refused {
            Ok(()) => {}
            Err((mut job, Refusal::Lost)) => {
                *is_gone = true;
                job.fail(JobError::ModuleLost);
                done.push(job);
            }
            Err((job, _)) => waiting.push(job),
        }
    }
    waiting.is_empty()
}

/// Most shares that a round on a core is cut into. A client is woken once for what a round did of it, and a wake-up costs as much
/// core time as two copies of 16 KiB: a few large shares are cheaper than many small ones, and who is left out is first in the next.
const SHARES_MAX: usize = 4;

/// Least requests of a round on a core. A guess: half a fill of the widest lanes.
const FILL_LEAST: usize = 8;

/// Longest sleep in a module that is full; then clients are looked after.
const FULL_PATIENCE: Nanos = Nanos::from_millis(1);

/// Longest sleep for new requests while a module that could take some holds others. A guess: a tenth of a typical request.
const GLANCE: Duration = Duration::from_micros(50);
const GLANCE_LONGEST: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_clients_there_are_a_core_takes_shares_that_are_worth_a_wake_up() {
        let plain = evener_driver_libcrypto::Libcrypto::new().unwrap();
        let profile = evener_core::InlineDriver::profile(&plain).clone();
        let bench = Module::core(profile, CpuKit::new(Box::new(plain), None), Vec::new()).into_bench();
        let shares = [0, 1, 2, 4, 8, 64].map(|rings| bench.quota(rings).each);
        assert_eq!((bench.quota(8).all, shares), (8, [8, 8, 4, 2, 2, 2]));
    }
}
