//! The clients that have the node open, and the sessions of each.
//!
//! `add -> key -> remove, or close -> take_ended`: a session that ended leaves nothing in any driver of the run.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use evener_core::{Algorithm, Direction, Padding, Session, SessionId};
use evener_driver_kernel::ocf;
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::async_queue::AsyncQueue;

/// Programs that may have the node open at once, and sessions of each. Assumed, not measured: 256 each, to bound the
/// memory of a server that any process may call.
const CLIENTS_MAX: usize = 256;
const SESSIONS_MAX: usize = 256;

/// The open clients.
#[derive(Default)]
pub(crate) struct Clients {
    sessions: BTreeMap<u64, BTreeMap<u32, Key>>,
    /// Numbers given so far.
    given: u64,
    /// Sessions that have ended, which were not reported to the run yet.
    ended: Vec<SessionId>,
    /// Asynchronous requests that are not fetched yet.
    pub(crate) queue: AsyncQueue,
}

/// A session in OCF's sense: both directions of one key.
pub(crate) struct Key {
    pub(crate) algorithm: Algorithm,
    bytes: Zeroizing<Vec<u8>>,
    /// By direction, made with the first request.
    sessions: [Option<Arc<Session>>; 2],
}

impl Clients {
    pub(crate) fn open(&mut self) -> Result<u64, Errno> {
        if self.sessions.len() >= CLIENTS_MAX {
            return Err(Errno::NFILE);
        }
        self.given += 1;
        self.sessions.insert(self.given, BTreeMap::new());
        Ok(self.given)
    }

    /// A client closed the node: its keys go.
    pub(crate) fn close(&mut self, client: u64) {
        self.queue.close(client);
        let keys = self.sessions.remove(&client).into_iter().flat_map(BTreeMap::into_values);
        keys.for_each(|key| self.ended.extend(key.made()));
    }

    /// A new session; its number.
    pub(crate) fn add(&mut self, client: u64, key: Key) -> Result<u32, Errno> {
        let sessions = self.sessions.get_mut(&client).ok_or(Errno::BADF)?;
        if sessions.len() >= SESSIONS_MAX {
            return Err(Errno::NOSPC);
        }
        let number = sessions.last_key_value().map_or(1, |(last, _)| last.wrapping_add(1));
        sessions.insert(number, key);
        Ok(number)
    }

    pub(crate) fn remove(&mut self, client: u64, session: u32) -> Result<(), Errno> {
        let sessions = self.sessions.get_mut(&client).ok_or(Errno::BADF)?;
        let key = sessions.remove(&session).ok_or(Errno::INVAL)?;
        self.ended.extend(key.made());
        Ok(())
    }

    /// Sessions that have ended and that nothing needs any more: requests that were submitted with one run before.
    pub(crate) fn take_ended(&mut self) -> Vec<SessionId> {
        let needed =
            |session: &SessionId| self.queue.needs(*session) && !cfg!(mutant = "ended_before_its_requests");
        let (needed, over) = mem::take(&mut self.ended).into_iter().partition(needed);
        self.ended = needed;
        over
    }

    pub(crate) fn key(&mut self, client: u64, session: u32) -> Result<&mut Key, Errno> {
        let sessions = self.sessions.get_mut(&client).ok_or(Errno::BADF)?;
        sessions.get_mut(&session).ok_or(Errno::INVAL)
    }
}

impl Key {
    /// The algorithm that OCF's numbers and the key's length name.
    pub(crate) fn new(cipher: u32, mac: u32, bytes: Zeroizing<Vec<u8>>) -> Result<Self, Errno> {
        let is_meant = |algorithm: &Algorithm| {
            let number = if algorithm.is_cipher() { cipher } else { mac };
            let fits = algorithm.key_bytes().is_none_or(|key_bytes| key_bytes == bytes.len());
            number != 0 && ocf::number_of(*algorithm) == Some(number) && fits
        };
        // One that encrypts and signs at once is none of ours.
        if cipher != 0 && mac != 0 {
            return Err(Errno::INVAL);
        }
        let algorithm = Algorithm::ALL.iter().copied().find(is_meant).ok_or(Errno::INVAL)?;
        let mut key = Self { algorithm, bytes, sessions: [None, None] };
        key.session(Direction::Encrypt)?;
        Ok(key)
    }

    /// Those that were made of it.
    fn made(&self) -> impl Iterator<Item = SessionId> {
        self.sessions.iter().flatten().map(|session| session.id())
    }

    pub(crate) fn session(&mut self, direction: Direction) -> Result<Arc<Session>, Errno> {
        let made = &mut self.sessions[direction as usize];
        if made.is_none() {
            let session = Session::new(self.algorithm, direction, Padding::None, &self.bytes);
            *made = Some(Arc::new(session.map_err(|_| Errno::INVAL)?));
        }
        made.as_ref().map(Arc::clone).ok_or(Errno::INVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(cipher: u32, mac: u32, bytes: usize) -> Result<Key, Errno> {
        Key::new(cipher, mac, Zeroizing::new((0..=254).take(bytes).collect()))
    }

    #[test]
    fn numbers_and_length_of_the_key_name_the_algorithm() {
        let algorithm = |key: Result<Key, Errno>| key.map(|key| key.algorithm);
        assert_eq!(algorithm(key(11, 0, 24)), Ok(Algorithm::Aes192Cbc));
        assert_eq!(algorithm(key(0, 18, 7)), Ok(Algorithm::HmacSha256));
        assert_eq!(algorithm(key(11, 0, 15)), Err(Errno::INVAL));
        assert_eq!(algorithm(key(11, 18, 16)), Err(Errno::INVAL));
        assert_eq!(algorithm(key(0, 0, 0)), Err(Errno::INVAL));
    }

    #[test]
    fn a_client_sees_its_own_sessions_alone_and_they_go_with_it() {
        let mut clients = Clients::default();
        let (one, other) = (clients.open().unwrap(), clients.open().unwrap());
        let session = clients.add(one, key(11, 0, 16).unwrap()).unwrap();
        assert!(clients.key(one, session).is_ok());
        assert_eq!(clients.key(other, session).err(), Some(Errno::INVAL));
        clients.close(one);
        assert_eq!(clients.key(one, session).err(), Some(Errno::BADF));
    }

    #[test]
    fn a_client_gets_so_many_sessions_and_no_more() {
        let mut clients = Clients::default();
        let client = clients.open().unwrap();
        let all: Vec<_> = (0..SESSIONS_MAX).map(|_| clients.add(client, key(11, 0, 16).unwrap())).collect();
        assert!(all.iter().all(Result::is_ok));
        assert_eq!(clients.add(client, key(11, 0, 16).unwrap()), Err(Errno::NOSPC));
    }
}
