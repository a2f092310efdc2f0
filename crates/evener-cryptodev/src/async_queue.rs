//! Asynchronous requests: submitted by `CIOCASYNCCRYPT`, fetched later by `CIOCASYNCFETCH`.
//!
//! | state of a request | entered by | left by |
//! |---|---|---|
//! | waiting | `submit` | `run`, as one burst with all others that wait |
//! | finished | `run` | `offer`: a thread of its client gets the place of the result |
//! | offered to a thread | `offer` | `take`, by that thread; a failed request ends at its offer; a thread that ends leaves it finished |
//!
//! A client gets its requests back in the order in which it submitted them, as from cryptodev-linux, so that it knows which one
//! failed.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;

use evener_core::{Algorithm, Job, Session, SessionId};
use evener_driver_kernel::ocf::CryptOp;
use evener_ring::wipe;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::fuse::{POLL_IN, POLL_OUT};
use crate::outcome::result;
use crate::wiped::Wiped;

/// Requests that one client may have submitted and not fetched, as many as cryptodev-linux begins with, and those of all clients,
/// whose texts the server keeps. The second is assumed, not measured: 128, which are 15 MiB of texts.
pub(crate) const CLIENT_REQUESTS_MAX: usize = 16;
const ALL_REQUESTS_MAX: usize = 128;

/// A request as it is submitted.
pub(crate) struct AsyncRequest {
    pub(crate) client: u64,
    pub(crate) op: CryptOp,
    pub(crate) session: Arc<Session>,
    /// Copied from the client's memory when it was submitted.
    pub(crate) text: Wiped,
    pub(crate) iv: Vec<u8>,
}

/// A request in the queue.
struct Entry {
    client: u64,
    op: CryptOp,
    algorithm: Algorithm,
    stage: Stage,
    /// The thread that got the place of its result, and is to come again with that memory.
    offered_to: Option<u32>,
}

/// State of a request; one that is offered is finished, too.
enum Stage {
    /// It waits, with its text and IV.
    Waiting { session: Arc<Session>, text: Wiped, iv: Vec<u8> },
    /// What goes to the client's memory.
    Finished(Result<Wiped, Errno>),
}

impl Entry {
    fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting { .. })
    }
}

/// A client that sleeps in `poll`, and what it was ready for before that.
struct PollWaiter {
    number: u64,
    ready: u32,
}

/// The requests of all clients, the oldest first.
pub(crate) struct AsyncQueue {
    entries: VecDeque<Entry>,
    /// Whether a thread of a client has ended.
    pub(crate) has_ended: fn(u32) -> bool,
    waiters: BTreeMap<u64, PollWaiter>,
    /// A client fetched a request that still waits, so it will submit no more before it has that.
    is_wanted: bool,
}

impl Default for AsyncQueue {
    fn default() -> Self {
        Self { entries: VecDeque::new(), has_ended, waiters: BTreeMap::new(), is_wanted: false }
    }
}

impl AsyncQueue {
    /// Queues a request; `EBUSY` where there are too many.
    pub(crate) fn submit(&mut self, request: AsyncRequest) -> Result<(), Errno> {
        if !self.has_space(request.client) {
            return Err(Errno::BUSY);
        }
        let AsyncRequest { client, op, session, text, iv } = request;
        let algorithm = session.algorithm();
        let stage = Stage::Waiting { session, text, iv };
        self.entries.push_back(Entry { client, op, algorithm, stage, offered_to: None });
        Ok(())
    }

    /// The oldest finished request of a client that no other of its threads is about to fetch: it is kept for `thread`. `EBUSY`
    /// where there is none; where it failed, its error, and then it is gone.
    pub(crate) fn offer(&mut self, client: u64, thread: u32) -> Result<(CryptOp, Algorithm), Errno> {
        // One that was offered to this thread before was not fetched then.
        let place = self.finished(client, Some(thread)).or_else(|| self.free(client));
        let Some(place) = place else {
            self.is_wanted = true;
            return Err(Errno::BUSY);
        };
        if let Stage::Finished(Err(errno)) = self.entries[place].stage {
            self.entries.remove(place);
            return Err(errno);
        }
        let entry = &mut self.entries[place];
        entry.offered_to = Some(thread);
        Ok((entry.op, entry.algorithm))
    }

    /// What was offered to `thread`, and what goes to the client's memory.
    pub(crate) fn take(&mut self, client: u64, thread: u32) -> Result<(CryptOp, Wiped), Errno> {
        let place = self.finished(client, Some(thread)).ok_or(Errno::BUSY)?;
        match self.entries.remove(place) {
            Some(Entry { op, stage: Stage::Finished(outcome), .. }) => Ok((op, outcome?)),
            _ => Err(Errno::BUSY),
        }
    }

    fn finished(&self, client: u64, offered_to: Option<u32>) -> Option<usize> {
        let is_it =
            |entry: &Entry| entry.client == client && !entry.is_waiting() && entry.offered_to == offered_to;
        self.entries.iter().position(is_it)
    }

    /// The oldest finished request of a client that no thread of it is about to fetch: one that was killed before it came again is not.
    fn free(&self, client: u64) -> Option<usize> {
        let is_free = |entry: &Entry| entry.offered_to.is_none_or(self.has_ended);
        let is_it = |entry: &Entry| entry.client == client && !entry.is_waiting() && is_free(entry);
        self.entries.iter().position(is_it)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.entries.iter().any(Entry::is_waiting)
    }

    /// Whether a request that waits has that session.
    pub(crate) fn needs(&self, session: SessionId) -> bool {
        let is_its = |entry: &Entry| matches!(&entry.stage, Stage::Waiting { session: its, .. } if its.id() == session);
        self.entries.iter().any(is_its)
    }

    /// Whether a client has tried to fetch a request that still waits.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Runs those that wait as one burst, as many as there are jobs, and returns how many that were.
    pub(crate) fn run<'m>(
        &mut self,
        jobs: &mut Vec<Box<Job<'m>>>,
        run: impl FnOnce(&mut Vec<Box<Job<'m>>>),
    ) -> u64 {
        self.is_wanted = false;
        let waiting = self.entries.iter_mut().filter(|entry| entry.is_waiting());
        let mut waiting: Vec<&mut Entry> = waiting.take(jobs.len()).collect();
        let idle = jobs.split_off(waiting.len());
        for (job, entry) in jobs.iter_mut().zip(&waiting) {
            if let Stage::Waiting { session, text, iv } = &entry.stage {
                job.space_mut()[..text.len()].copy_from_slice(text);
                job.arm(Arc::clone(session), iv, text.len());
            }
        }
        run(jobs);
        for (job, entry) in jobs.iter_mut().zip(&mut waiting) {
            if let Stage::Waiting { text, iv, .. } = &entry.stage {
                let outcome = result(job, &entry.op, text, iv);
                wipe(&mut job.space_mut()[..text.len()]);
                job.disarm();
                entry.stage = Stage::Finished(outcome);
            }
        }
        jobs.extend(idle);
        waiting.len() as u64
    }

    /// A client has closed the node: its requests are dropped.
    pub(crate) fn close(&mut self, client: u64) {
        self.entries.retain(|entry| entry.client != client);
        self.waiters.remove(&client);
    }

    /// What a client is ready for now; a `sleeper` is woken when that becomes more.
    pub(crate) fn poll(&mut self, client: u64, sleeper: Option<u64>) -> u32 {
        let ready = self.can(client);
        self.is_wanted |= ready & POLL_IN == 0;
        if let Some(number) = sleeper {
            self.waiters.insert(client, PollWaiter { number, ready });
        }
        ready
    }

    /// Numbers of the waiters whose clients are ready for more than when they fell asleep.
    pub(crate) fn take_wakeups(&mut self) -> Vec<u64> {
        let waiters = mem::take(&mut self.waiters);
        let (woken, asleep) =
            waiters.into_iter().partition(|(client, sleeper)| self.can(*client) & !sleeper.ready != 0);
        self.waiters = asleep;
        let woken: BTreeMap<u64, PollWaiter> = woken;
        woken.into_values().map(|sleeper| sleeper.number).collect()
    }

    fn can(&self, client: u64) -> u32 {
        let fetch = if self.free(client).is_some() { POLL_IN } else { 0 };
        fetch | if self.has_space(client) { POLL_OUT } else { 0 }
    }

    fn has_space(&self, client: u64) -> bool {
        let of_client = self.entries.iter().filter(|entry| entry.client == client).count();
        of_client < CLIENT_REQUESTS_MAX && self.entries.len() < ALL_REQUESTS_MAX
    }
}

/// Whether no thread has that number any more.
fn has_ended(thread: u32) -> bool {
    let number = i32::try_from(thread).ok().and_then(Pid::from_raw);
    number.is_none_or(|number| test_kill_process(number) == Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_thread_has_ended_when_it_has_and_no_sooner() {
        let ((told, number), (end, wait)) = (mpsc::channel(), mpsc::channel::<()>());
        let thread = thread::spawn(move || {
            told.send(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
            wait.recv().ok();
        });
        let number = number.recv().unwrap();
        assert!(!has_ended(number));
        drop(end);
        thread.join().unwrap();
        // The system may take a moment to forget it.
        while !has_ended(number) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
