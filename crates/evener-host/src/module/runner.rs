//! The module as one of the host's threads works with it: how much a round may take, and what becomes of it.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evener::SystemClock;
use evener_core::driver::LAST_WAIT;
use evener_core::{Job, JobError, Nanos, Session};

use super::Work;
use super::queue::{is_lost, submit};

/// The module as its thread works with it.
pub(crate) struct ModuleRunner {
    work: Work,
    /// Refused for now, because the module is full.
    waiting: Vec<Box<Job<'static>>>,
    spare: Vec<Box<Job<'static>>>,
    is_gone: bool,
}

/// How many requests a round may take, in all and from one client of the usual weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    pub(crate) all: usize,
    pub(crate) each: usize,
    /// Bytes for which a longer request counts as one more, and so on.
    pub(crate) unit_bytes: usize,
    /// Long requests of which pieces are done side by side, of one user and of all; none where requests are not cut.
    pub(crate) pieces: usize,
    /// Whether several users are served.
    pub(crate) is_shared: bool,
}

impl Quota {
    /// Where a request counts once, however long it is, and is not cut.
    pub(crate) const fn whole(all: usize, each: usize) -> Self {
        Self { all, each, unit_bytes: usize::MAX, pieces: 0, is_shared: false }
    }

    /// As how many requests one of so many bytes counts.
    pub(crate) fn units(self, bytes: usize) -> usize {
        bytes.div_ceil(self.unit_bytes).max(1)
    }
}

impl ModuleRunner {
    pub(super) const fn new(work: Work) -> Self {
        Self { work, waiting: Vec::new(), spare: Vec::new(), is_gone: false }
    }

    /// What may be taken now from so many clients. A core takes fills of its lanes, so that results go out while the next fill is worked
    /// on; a module takes one after the other from each client, and none while it is full. Where there are several users few wait at a module, for who comes
    /// later waits behind them, whosever they are.
    pub(crate) fn quota(&self, clients: usize, users: usize) -> Quota {
        match &self.work {
            Work::Core(core_drivers) => {
                let is_shared = users > 1 && !cfg!(mutant = "host_long_rounds");
                let width = usize::try_from(core_drivers.width()).unwrap_or(1);
                // Lanes gain by long requests side by side; a core without them does one after the other.
                let unit_bytes = if is_shared || width == 1 { UNIT_BYTES } else { PIECE_BYTES };
                let all = width.max(if is_shared { FILL_LEAST_OF_USERS } else { FILL_LEAST });
                let pieces = (width * unit_bytes / PIECE_BYTES).max(1);
                Quota { all, each: all.div_ceil(clients.clamp(1, SHARES_MAX)), unit_bytes, pieces, is_shared }
            }
            Work::Queued(_) if !self.waiting.is_empty() => Quota::whole(0, 0),
            Work::Queued(_) | Work::Lost => {
                let most = if users > 1 { TURNS_OF_USER * users } else { TURNS_MAX };
                Quota::whole(clients.min(most), 1)
            }
        }
    }

    /// Works on `jobs`; those that are finished stand in `done` afterwards, in any order. Sleeps only for jobs that it holds,
    /// and only while it takes no more.
    pub(crate) fn run(&mut self, jobs: &mut Vec<Box<Job<'static>>>, done: &mut Vec<Box<Job<'static>>>) {
        match &mut self.work {
            Work::Core(core_drivers) => {
                core_drivers.run(jobs, &SystemClock);
                done.append(jobs);
            }
            Work::Queued(queue) => {
                self.waiting.append(jobs);
                let silent = queue.silent();
                let is_last = queue.is_dead_after(silent);
                let has_turn = self.waiting.is_empty() || queue.has_turn();
                let driver = &mut *queue.driver;
                let has_all =
                    has_turn && submit(driver, &mut self.waiting, &mut self.spare, done, &mut self.is_gone);
                // Who has no turn has slept for it, unless the module holds something.
                let is_rested = !has_turn && driver.in_flight() == 0;
                let timeout = match has_all || is_rested {
                    // This process may have been stopped, and who brings the answer goes on only now.
                    _ if is_last => LAST_WAIT,
                    true => Nanos::ZERO,
                    false => FULL_TIMEOUT,
                };
                let before = done.len();
                driver.poll(done, timeout);
                queue.turns.count(&done[before..]);
                if driver.in_flight() == 0 && self.waiting.is_empty() {
                    queue.turns.rest();
                }
                self.is_gone |= done[before..].iter().any(|job| is_lost(job));
                if done.len() > before {
                    queue.progress = Instant::now();
                }
                if done.len() > before || queue.driver.in_flight() == 0 || queue.silence.is_none() {
                    queue.evict();
                } else if queue.is_dead_after(silent) {
                    self.give_up(done);
                }
            }
            Work::Lost => {
                self.waiting.append(jobs);
                self.reset(done);
            }
        }
    }

    /// Whether some jobs wait because the module holds as many as it can.
    pub(crate) fn is_full(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether a client may give more than one share where the others give less. A module's queue is filled by turns.
    pub(crate) const fn takes_more(&self) -> bool {
        matches!(self.work, Work::Core(_))
    }

    /// Whether it works in memory of clients, which is given to it for this call only: a module that holds jobs would hold that, too.
    pub(crate) fn takes_shared(&self) -> bool {
        matches!(&self.work, Work::Core(core_drivers) if core_drivers.takes_shared())
    }

    /// How long a round may sleep for new requests: a module that holds jobs has to be looked at, the less often the longer
    /// it has been quiet.
    pub(crate) fn timeout(&self, quiet_rounds: u32) -> Option<Duration> {
        match &self.work {
            Work::Queued(queue) if queue.driver.in_flight() > 0 => {
                Some((GLANCE * (1 << quiet_rounds.min(5))).min(GLANCE_LONGEST))
            }
            _ => None,
        }
    }

    /// Gives back all that the module holds, as after a reset.
    pub(crate) fn reset(&mut self, done: &mut Vec<Box<Job<'static>>>) {
        if let Work::Queued(queue) = &mut self.work {
            queue.driver.abandon(done);
        }
        self.waiting.iter_mut().for_each(|job| job.fail(JobError::ModuleLost));
        done.append(&mut self.waiting);
    }

    /// Gives back all that the module holds, and never asks it again.
    fn give_up(&mut self, done: &mut Vec<Box<Job<'static>>>) {
        self.reset(done);
        if let Work::Queued(queue) = &mut self.work {
            queue.turns.rest();
        }
        self.is_gone = true;
        // Not dropped: to close a key of a module that hangs is a call that may never return, and this thread has answers to give.
        mem::forget(mem::replace(&mut self.work, Work::Lost));
    }

    /// Has the module's drivers drop what they made of sessions that were closed.
    pub(crate) fn evict(&mut self, over: &[Arc<Session>]) {
        let is_over = |id| over.iter().any(|session| session.id() == id);
        match &mut self.work {
            Work::Core(core_drivers) => core_drivers.evict(&is_over),
            Work::Queued(queue) => queue.over.extend(over.iter().map(|session| session.id())),
            Work::Lost => {}
        }
    }

    /// Whether the module was removed, or given up.
    pub(crate) const fn is_gone(&self) -> bool {
        self.is_gone
    }
}

/// Most shares that a round on a core is cut into. A client is woken once for what a round did of it, and a wake-up costs as much
/// core time as two copies of 16 KiB: a few large shares are cheaper than many small ones, and who is left out is first in the next.
const SHARES_MAX: usize = 4;

/// Most clients of which a module that works by itself takes one request in a round: what it has no space for waits in the host's memory. Assumed,
/// not measured: 64, more than any such module holds.
const TURNS_MAX: usize = 64;

/// The same for each user, where there are several. Assumed, not measured: 2, one that the module takes next and one behind it.
const TURNS_OF_USER: usize = 2;

/// Least requests of a round on a core. Assumed, not measured: 8, because that is half a fill of the widest lanes.
const FILL_LEAST: usize = 8;

/// The same where there are several users: who comes while a round is worked on waits for its end, and then for that of its own. Assumed, not measured: 2, one of each.
const FILL_LEAST_OF_USERS: usize = 2;

/// Bytes for which a request counts once where there are several users, or no lanes. Assumed, not measured: 16 KiB, a record of TLS, so that a round of 16 lanes ends
/// within what a few requests of that length take alone.
const UNIT_BYTES: usize = 16 << 10;

/// Bytes of a piece of a long request, and most that go whole. Measured beside a hostile user's requests of 512 KiB
/// (docs/results/hosted.md): 64 KiB take a core some 50 us, which is what a wake-up takes.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// Longest sleep in a module that is full; then clients are looked after.
const FULL_TIMEOUT: Nanos = Nanos::from_millis(1);

/// Longest sleep for new requests while a module that could take some holds others. Assumed, not measured: 50 us,
/// because that is a tenth of a typical request.
const GLANCE: Duration = Duration::from_micros(50);
const GLANCE_LONGEST: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use evener::CoreDrivers;

    use crate::module::Module;

    #[test]
    fn however_many_clients_there_are_a_core_takes_shares_that_are_worth_a_wake_up() {
        let plain = evener_driver_libcrypto::Libcrypto::new().unwrap();
        let profile = evener_core::InlineDriver::profile(&plain).clone();
        let module = Module::core(profile, CoreDrivers::new(Box::new(plain), None), Vec::new());
        let runner = module.into_runners().remove(0);
        let shares = [0, 1, 2, 4, 8, 64].map(|rings| runner.quota(rings, 1).each);
        assert_eq!((runner.quota(8, 1).all, shares), (8, [8, 8, 4, 2, 2, 2]));
        let of_users = runner.quota(8, 2);
        assert_eq!((of_users.all, of_users.each), (2, 1), "users wait for each other");
        let units = [0, 1, 16_384, 16_385, 1 << 20].map(|bytes| of_users.units(bytes));
        assert_eq!(units, [1, 1, 1, 2, 64], "and for a long request no longer than for many short ones");
        assert_eq!(runner.quota(8, 1).units(1 << 20), 64, "another user may come");
    }
}
