//! Requests that clients leave and fetch later: `CIOCASYNCCRYPT`, `CIOCASYNCFETCH`.
//!
//! `leave -> (waiting) -> run, with the others that wait -> (finished) -> offer -> take`. A client gets its requests back in the
//! order in which it left them, as from cryptodev-linux, so that it knows which one it was that failed.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;

use evener_core::{Algorithm, Job, Session, SessionId};
use evener_driver_kernel::ocf::CryptOp;
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::fuse::{CAN_FETCH, CAN_LEAVE};
use crate::outcome::result;

/// Requests that one client may have left and not fetched, as many as cryptodev-linux begins with, and those of all clients,
/// whose texts the server keeps. The second is a guess: 15 MiB.
pub(crate) const LEFT_MAX: usize = 16;
const ALL_LEFT_MAX: usize = 128;

/// A request that is left.
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
    client: u64,
    op: CryptOp,
    algorithm: Algorithm,
    stage: Stage,
    /// The thread that was told where its result is to go, and is to come again with that memory.
    offered_to: Option<u32>,
}

/// How far a request is.
enum Stage {
    /// It waits, with what was brought when it was left.
    Waits { session: Arc<Session>, text: Zeroizing<Vec<u8>>, iv: Vec<u8> },
    /// What goes to the client's memory.
    Came(Result<Zeroizing<Vec<u8>>, Errno>),
}

impl Left {
    fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waits { .. })
    }
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
        let Request { client, op, session, text, iv } = request;
        let algorithm = session.algorithm();
        let stage = Stage::Waits { session, text, iv };
        self.left.push_back(Left { client, op, algorithm, stage, offered_to: None });
        Ok(())
    }

    /// The oldest finished request of a client that no other of its threads is about to fetch: it is kept for `thread`. `EBUSY`
    /// where there is none; where it failed, its error, and then it is gone.
    pub(crate) fn offer(&mut self, client: u64, thread: u32) -> Result<(CryptOp, Algorithm), Errno> {
        // One that was offered to this thread before was not fetched then.
        let place = self.finished(client, Some(thread)).or_else(|| self.finished(client, None));
        let Some(place) = place else {
            self.is_missed = true;
            return Err(Errno::BUSY);
        };
        if let Stage::Came(Err(errno)) = self.left[place].stage {
            self.left.remove(place);
            return Err(errno);
        }
        let left = &mut self.left[place];
        left.offered_to = Some(thread);
        Ok((left.op, left.algorithm))
    }

    /// What was offered to `thread`, and what goes to the client's memory.
    pub(crate) fn take(&mut self, client: u64, thread: u32) -> Result<(CryptOp, Zeroizing<Vec<u8>>), Errno> {
        let place = self.finished(client, Some(thread)).ok_or(Errno::BUSY)?;
        match self.left.remove(place) {
            Some(Left { op, stage: Stage::Came(came), .. }) => Ok((op, came?)),
            _ => Err(Errno::BUSY),
        }
    }

    fn finished(&self, client: u64, offered_to: Option<u32>) -> Option<usize> {
        let is_it =
            |left: &Left| left.client == client && !left.is_waiting() && left.offered_to == offered_to;
        self.left.iter().position(is_it)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.left.iter().any(Left::is_waiting)
    }

    /// Whether a request that waits has that session.
    pub(crate) fn needs(&self, session: SessionId) -> bool {
        let is_its =
            |left: &Left| matches!(&left.stage, Stage::Waits { session: its, .. } if its.id() == session);
        self.left.iter().any(is_its)
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
        let waiting = self.left.iter_mut().filter(|left| left.is_waiting());
        let mut waiting: Vec<&mut Left> = waiting.take(jobs.len()).collect();
        let idle = jobs.split_off(waiting.len());
        for (job, left) in jobs.iter_mut().zip(&waiting) {
            if let Stage::Waits { session, text, iv } = &left.stage {
                job.room_mut()[..text.len()].copy_from_slice(text);
                job.arm(Arc::clone(session), iv, text.len());
            }
        }
        run(jobs);
        for (job, left) in jobs.iter_mut().zip(&mut waiting) {
            if let Stage::Waits { text, iv, .. } = &left.stage {
                let came = result(job, &left.op, text, iv).map(Zeroizing::new);
                job.room_mut()[..text.len()].fill(0);
                job.disarm();
                left.stage = Stage::Came(came);
            }
        }
        jobs.extend(idle);
        waiting.len() as u64
    }

    /// A client has gone, and nobody fetches what it left.
    pub(crate) fn go(&mut self, client: u64) {
        self.left.retain(|left| left.client != client);
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
        let of_client = self.left.iter().filter(|left| left.client == client).count();
        of_client < LEFT_MAX && self.left.len() < ALL_LEFT_MAX
    }
}
