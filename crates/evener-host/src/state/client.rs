//! What the host knows of one client: memory, sessions, rings. The front sets it up, one of the module's threads serves it.

use std::mem;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evener_ring::virtqueue::{Device, Events, Mapped};

use crate::access::Peer;
use crate::limits::Limits;
use crate::state::memory::Memory;
use crate::state::report::Counts;
use crate::state::ring::{RINGS_MAX, Ring, events};
use crate::state::sessions::Sessions;
use crate::state::shard::Shard;
use crate::state::users::User;

/// One client.
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) peer: Peer,
    /// What it has together with the other clients of its user.
    pub(crate) user: Arc<User>,
    /// How many shares of a burst it has.
    pub(crate) weight: usize,
    /// Who serves it.
    pub(crate) shard: Arc<Shard>,
    pub(crate) counts: Counts,
    state: Mutex<State>,
    stream: UnixStream,
    is_over: AtomicBool,
}

/// What changes.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) features: u64,
    /// Requests that are worked on in it have it, too.
    pub(crate) memory: Arc<Memory>,
    pub(crate) sessions: Sessions,
    pub(crate) rings: [Ring; RINGS_MAX],
    pub(crate) load: InFlightLoad,
    /// Something was given back and is to be shown. Of the thread that serves it.
    pub(crate) is_touched: bool,
    /// The front waits until rings of it hold nothing.
    pub(crate) is_awaited: bool,
}

impl State {
    /// Whether the client says by index when it wants to be called.
    pub(crate) fn counts_by_index(&self) -> bool {
        events(self.features) == Events::Index
    }
}

/// Requests of a client that were taken and did not come back, and their bytes.
#[derive(Default)]
pub(crate) struct InFlightLoad {
    requests: usize,
    bytes: usize,
}

impl InFlightLoad {
    /// Whether nothing more may be taken now. What waits stays in the ring, which is no failure.
    pub(crate) const fn is_at(&self, limits: &Limits) -> bool {
        let has_place = cfg!(mutant = "host_in_flight_unlimited") || self.requests < limits.in_flight_max;
        let has_space =
            cfg!(mutant = "host_bytes_in_flight_unlimited") || self.bytes < limits.bytes_in_flight_max;
        !(has_place && has_space)
    }

    pub(crate) const fn add(&mut self, bytes: usize) {
        self.requests += 1;
        self.bytes += bytes;
    }

    pub(crate) const fn take_off(&mut self, bytes: usize) {
        self.requests -= 1;
        self.bytes -= bytes;
    }

    pub(crate) const fn requests(&self) -> usize {
        self.requests
    }
}

/// Where the answer to a request goes.
pub(crate) struct AnswerPlace {
    pub(crate) client: Arc<Client>,
    pub(crate) ring: usize,
    /// The life of the ring in which it was taken.
    pub(crate) life: u64,
    pub(crate) head: u16,
}

impl Client {
    pub(crate) fn new(
        id: u64,
        (peer, user): (Peer, Arc<User>),
        weight: usize,
        stream: UnixStream,
        shard: Arc<Shard>,
    ) -> Self {
        let is_over = AtomicBool::new(false);
        Self {
            id,
            peer,
            user,
            weight,
            shard,
            counts: Counts::default(),
            state: Mutex::default(),
            stream,
            is_over,
        }
    }

    /// Where its messages come.
    pub(crate) const fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// The state is whole between any two statements, so a panic elsewhere does not spoil it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_over(&self) -> bool {
        // Relaxed: the front, which ends a client, empties its state under the lock.
        self.is_over.load(Relaxed)
    }

    /// Ends the connection; the front sees that and cleans up.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Relaxed);
        // It fails where the client was faster.
        self.stream.shutdown(Shutdown::Both).ok();
    }

    /// Forgets all that the client had: descriptors are closed. Gives back its sessions, which the module is to evict, and its memory, which is
    /// unmapped when it is dropped: that may take long, so not by a thread that serves others.
    pub(crate) fn clear(&self) -> (Sessions, Arc<Memory>) {
        self.is_over.store(true, Relaxed);
        let mut state = self.lock();
        state.rings.iter_mut().for_each(|ring| {
            ring.stop();
            *ring = Ring { life: ring.life, ..Ring::default() };
        });
        (mem::take(&mut state.sessions), mem::take(&mut state.memory))
    }

    /// From now on nothing more is taken from the rings that `which` names; says whether they hold nothing and have shown all. Where
    /// they do not, the front is told when that may have changed.
    pub(crate) fn is_quiet(&self, which: impl Fn(usize) -> bool) -> bool {
        let mut state = self.lock();
        let mut is_busy = false;
        for (_, ring) in state.rings.iter_mut().enumerate().filter(|(index, _)| which(*index)) {
            ring.is_closing = true;
            is_busy |= ring.device.as_ref().is_some_and(holds_any);
        }
        state.is_awaited = is_busy;
        !is_busy
    }
}

/// Between the end of a request and its call the module's thread leaves the lock: then it is in the device's memory only.
fn holds_any(device: &Device<Mapped>) -> bool {
    device.in_flight() > 0 || device.has_unshown() && !cfg!(mutant = "host_stops_unshown")
}

#[cfg(test)]
mod tests {
    use evener_ring::virtqueue::Chain;
    use evener_wire::RingAddresses;

    use super::*;
    use crate::state::memory::tests::map;
    use crate::state::ring::Kick;

    const USER: u64 = 0x7000_0000;
    const GUEST: u64 = 0x1000;
    const AVAILABLE: u64 = 0x400;
    const USED: u64 = 0x800;

    /// A client whose only request was taken and given back, and not shown yet.
    fn with_one_unshown() -> Client {
        let (stream, _) = UnixStream::pair().unwrap();
        let shard = Arc::new(Shard::new().unwrap());
        let client =
            Client::new(1, (Peer { pid: 1, uid: 0, gid: 0 }, Arc::default()), 1, stream, Arc::clone(&shard));
        let kick = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
        let mut state = client.lock();
        let memory = map(&[[GUEST, 8192, USER, 0]]).unwrap();
        // One descriptor of 8 bytes; entry 0 is its index, and one is available.
        assert!(
            memory.write(GUEST, &[&(GUEST + 4096).to_le_bytes()[..], &8_u32.to_le_bytes(), &[0; 4]].concat())
        );
        assert!(memory.write(GUEST + AVAILABLE + 2, &1_u16.to_le_bytes()));
        let addresses = RingAddresses {
            descriptors: USER,
            available: USER + AVAILABLE,
            used: USER + USED,
            ring: 0,
            flags: 0,
            log: 0,
        };
        let State { rings: [ring, ..], memory: kept, .. } = &mut *state;
        *kept = Arc::new(memory);
        (ring.size, ring.addresses, ring.kick) =
            (4, Some(addresses), Some(Kick::new(kick, &shard.watch, 1).unwrap()));
        ring.try_start(kept, 0).unwrap();
        let device = ring.device.as_mut().unwrap();
        assert!(device.take(&**kept, &mut Chain::new()).unwrap());
        device.give_back(0, 0);
        drop(state);
        client
    }

    fn shown(state: &State) -> u16 {
        let (region, at) = state.memory.by_user(USER + USED + 2, 2).unwrap();
        let mut index = [0; 2];
        region.copy_out(at, &mut index).unwrap();
        u16::from_le_bytes(index)
    }

    #[test]
    fn a_ring_that_is_to_stop_shows_first_what_was_done() {
        let client = with_one_unshown();
        assert!(!client.is_quiet(|_| true), "one is not shown");
        assert!(client.is_quiet(|ring| ring > 0), "of other rings nothing is");
        assert!(!client.is_quiet(|_| true) && client.lock().is_awaited);
        // As the module's thread, which has left the lock in between.
        client.lock().rings[0].device.as_mut().unwrap().publish();
        assert!(client.is_quiet(|_| true));
        assert_eq!(shown(&client.lock()), 1);
        let client = with_one_unshown();
        let mut state = client.lock();
        assert_eq!(shown(&state), 0);
        assert_eq!((state.rings[0].stop(), shown(&state)), (1, 1), "where nobody shows it in time");
    }
}
