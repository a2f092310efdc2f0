//! Requests that clients leave and fetch later: `CIOCASYNCCRYPT`, `CIOCASYNCFETCH`.
//!
//! `leave -> (waiting) -> run, with the others that wait -> (finished) -> offer -> take`. A client gets its requests back in the
//! order in which it left them, as from cryptodev-linux, so that it knows which one it was that failed.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;

use evener_core::{Job, Session};
use evener_driver_kernel::ocf::CryptOp;
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::call::result;
use crate::fuse::{CAN_FETCH, CAN_LEAVE};

/// Requests that one client may have left and not fetched, as many as cryptodev-linux begins with, and those of all clients,
/// whose texts the server keeps. The second is a guess: 15 MiB.
pub(crate) const LEFT_MAX: usize = 16;
const ALL_LEFT_MAX: usize = 128;

/// A request that was left.
pub(crate) struct Request {
    pub(crate) client: u64,
    pub(crate) op: CryptOp,
    pub(crate) session: Arc<Session>,
    /// Brought when it was left.
    pub(crate) text: Zeroizing<Vec<u8>>,
    pub(crate) iv: Vec<u8>,
}

/// One in the queue.
struct Left {
    request: Request,
    /// What goes to the client's memory; none while it waits.
    came: Option<Result<Zeroizing<Vec<u8>>, Errno>>,
    /// The thread that was told where its result is to go, and is to come again with that memory.
    offered_to: Option<u32>,
}

/// Who sleeps until he may go on, and what he could do before he slept.
struct Sleeper {
    number: u64,
    could: u32,
}

/// Those of all clients, the oldest first.
#[derive(Default)]
pub(crate) struct Queue {
    left: VecDeque<Left>,
    sleepers: BTreeMap<u64, Sleeper>,
    /// A client asked for what still waits, so that it will leave no more before it has that.
    is_missed: bool,
}

impl Queue {
    /// Takes a request; `EBUSY` where there are too many.
    pub(crate) fn leave(&mut self, request: Request) -> Result<(), Errno> {
        if !self.has_room(request.client) {
            return Err(Errno::BUSY);
        }
        self.left.push_back(Left { request, came: None, offered_to: None });
        Ok(())
    }

    /// The oldest finished request of a client that no other of its threads is about to fetch: it is kept for `thread`. `EBUSY`
    /// where there is none; where it failed, its error, and then it is gone.
    pub(crate) fn offer(&mut self, client: u64, thread: u32) -> Result<&Request, Errno> {
        // One that was offered to this thread before was not fetched then.
        let place = self.finished(client, Some(thread)).or_else(|| self.finished(client, None));
        let Some(place) = place else {
            self.is_missed = true;
            return Err(Errno::BUSY);
        };
        if let Some(Err(errno)) = self.left[place].came {
            self.left.remove(place);
            return Err(errno);
        }
        let left = &mut self.left[place];
        left.offered_to = Some(thread);
        Ok(&left.request)
    }

    /// What was offered to `thread`, and what goes to the client's memory.
    pub(crate) fn take(&mut self, client: u64, thread: u32) -> Result<(Request, Zeroizing<Vec<u8>>), Errno> {
        let place = self.finished(client, Some(thread)).ok_or(Errno::BUSY)?;
        let left = self.left.remove(place).ok_or(Errno::BUSY)?;
        Ok((left.request, left.came.ok_or(Errno::BUSY)??))
    }

    fn finished(&self, client: u64, offered_to: Option<u32>) -> Option<usize> {
        let is_it = |left: &Left| {
            left.request.client == client && left.came.is_some() && left.offered_to == offered_to
        };
        self.left.iter().position(is_it)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.left.iter().any(|left| left.came.is_none())
    }

    /// Whether somebody has asked for what waits.
    pub(crate) const fn is_missed(&self) -> bool {
        self.is_missed
    }

    /// Has those that wait run as one burst, as many as there are jobs; how many that were.
    pub(crate) fn run<'m>(
        &mut self,
        jobs: &mut Vec<Box<Job<'m>>>,
        run: impl FnOnce(&mut Vec<Box<Job<'m>>>),
    ) -> u64 {
        self.is_missed = false;
        let waiting = self.left.iter_mut().filter(|left| left.came.is_none());
        let mut waiting: Vec<&mut Left> = waiting.take(jobs.len()).collect();
        let idle = jobs.split_off(waiting.len());
        for (job, Left { request, .. }) in jobs.iter_mut().zip(&waiting) {
            job.room_mut()[..request.text.len()].copy_from_slice(&request.text);
            job.arm(Arc::clone(&request.session), &request.iv, request.text.len());
        }
        run(jobs);
        for (job, Left { request, came, .. }) in jobs.iter_mut().zip(&mut waiting) {
            *came = Some(result(job, &request.op, &request.text, &request.iv).map(Zeroizing::new));
            job.room_mut()[..request.text.len()].fill(0);
            job.disarm();
            request.text = Zeroizing::default();
        }
        jobs.extend(idle);
        waiting.len() as u64
    }

    /// A client has gone, and nobody fetches what it left.
    pub(crate) fn go(&mut self, client: u64) {
        self.left.retain(|left| left.request.client != client);
        self.sleepers.remove(&client);
    }

    /// What a client may do now; a `sleeper` is woken when that becomes more.
    pub(crate) fn poll(&mut self, client: u64, sleeper: Option<u64>) -> u32 {
        let could = self.can(client);
        self.is_missed |= could & CAN_FETCH == 0;
        if let Some(number) = sleeper {
            self.sleepers.insert(client, Sleeper { number, could });
        }
        could
    }

    /// The sleepers of clients that may do more than when they fell asleep.
    pub(crate) fn woken(&mut self) -> Vec<u64> {
        let sleepers = mem::take(&mut self.sleepers);
        let (woken, asleep) =
            sleepers.into_iter().partition(|(client, sleeper)| self.can(*client) & !sleeper.could != 0);
        self.sleepers = asleep;
        let woken: BTreeMap<u64, Sleeper> = woken;
        woken.into_values().map(|sleeper| sleeper.number).collect()
    }

    fn can(&self, client: u64) -> u32 {
        let fetch = if self.finished(client, None).is_some() { CAN_FETCH } else { 0 };
        fetch | if self.has_room(client) { CAN_LEAVE } else { 0 }
    }

    fn has_room(&self, client: u64) -> bool {
        let of_client = self.left.iter().filter(|left| left.request.client == client).count();
        of_client < LEFT_MAX && self.left.len() < ALL_LEFT_MAX
    }
}
