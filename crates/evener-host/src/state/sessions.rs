//! The sessions of one client, and what the wire's numbers mean.

use std::collections::HashMap;
use std::sync::Arc;

use crate::state::users::User;
use evener_core::{Algorithm, Direction, Padding, Session};
use evener_wire::numbers::{create, symmetric};
use evener_wire::{
    AUTH_KEY_BYTES_MAX, Config, CreateSession, KEY_BYTES_MAX, create_code, direction_of, number_of,
};

/// Sessions by the id that the client knows. Ids are never used twice on a connection.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: HashMap<u64, Arc<Session>>,
    next: u32,
    /// Whose they are, where one was opened.
    user: Option<Arc<User>>,
}

impl Sessions {
    /// Opens a session; `None` where the numbers or the key make none, where the module `does` not do it, or where `max` are open.
    pub(crate) fn open(
        &mut self,
        asked: &CreateSession<'_>,
        does: &[Algorithm],
        max: usize,
        (user, user_max): (&Arc<User>, usize),
    ) -> Option<i64> {
        let (algorithm, direction) = meaning(asked).filter(|(algorithm, _)| does.contains(algorithm))?;
        let key = if asked.op_code == create::MAC { asked.auth_key } else { asked.key };
        let session = Session::new(algorithm, direction, Padding::None, key).ok()?;
        if self.open.len() >= max && !cfg!(mutant = "host_sessions_unlimited") {
            return None;
        }
        if !user.held.sessions.take(1, user_max as u64, 0) && !cfg!(mutant = "host_user_sessions_unlimited") {
            user.refused.add(1);
            return None;
        }
        let id = self.next;
        self.next = id.checked_add(1)?;
        self.user.get_or_insert_with(|| Arc::clone(user));
        self.open.insert(id.into(), Arc::new(session));
        Some(id.into())
    }

    /// Closes a session, which is to be forgotten by the module when the last job under it is back. What is not open stays
    /// closed.
    pub(crate) fn close(&mut self, id: u64) -> Option<Arc<Session>> {
        let closed = self.open.remove(&id);
        self.give_back(closed.iter().len());
        closed
    }

    fn give_back(&self, count: usize) {
        if let Some(user) = &self.user {
            user.held.sessions.give_back(count as u64);
        }
    }

    /// Closes all.
    pub(crate) fn close_all(&mut self) -> impl Iterator<Item = Arc<Session>> + '_ {
        self.give_back(self.open.len());
        self.open.drain().map(|(_, session)| session)
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Arc<Session>> {
        let any = || self.open.values().next().filter(|_| cfg!(mutant = "host_any_session"));
        self.open.get(&id).or_else(any)
    }

    pub(crate) fn count(&self) -> usize {
        self.open.len()
    }
}

/// What a client asks for, `None` where it is nothing of ours.
fn meaning(asked: &CreateSession<'_>) -> Option<(Algorithm, Direction)> {
    let is_asked = |algorithm: &&Algorithm| {
        let (number, is_kind) = match create_code(**algorithm) {
            create::HASH | create::MAC => (asked.hash, true),
            create::CIPHER => (asked.cipher, asked.op_type == symmetric::CIPHER),
            _ => (asked.cipher, true),
        };
        let keyed = algorithm.key_bytes().is_none_or(|bytes| bytes == asked.key.len());
        let tagged =
            algorithm.tag_bytes() == 0 || u32::try_from(algorithm.tag_bytes()) == Ok(asked.hash_bytes);
        create_code(**algorithm) == asked.op_code
            && number_of(**algorithm) == number
            && is_kind
            && keyed
            && tagged
    };
    let algorithm = *Algorithm::ALL.iter().find(is_asked)?;
    let is_told = |way: &Direction| direction_of(*way) == asked.direction;
    let direction = [Direction::Encrypt, Direction::Decrypt].into_iter().find(is_told);
    // A hash has one direction, whatever the client wrote.
    let direction = if algorithm.is_cipher() { direction? } else { Direction::Encrypt };
    Some((algorithm, direction))
}

/// What a module that `does` these algorithms says of itself.
pub(crate) fn config(does: &[Algorithm], rings_max: u32, request_bytes_max: u64) -> Config {
    let mut config = Config {
        status: Config::READY,
        data_queues_max: rings_max,
        cipher_key_bytes_max: u32::try_from(KEY_BYTES_MAX).expect("64"),
        auth_key_bytes_max: u32::try_from(AUTH_KEY_BYTES_MAX).expect("512"),
        request_bytes_max,
        ..Config::default()
    };
    does.iter().for_each(|algorithm| config.add(*algorithm));
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use evener_wire::numbers::{aead, cipher, direction};

    fn asked<'k>(op_code: u64, number: u32, key: &'k [u8], hash_bytes: u32) -> CreateSession<'k> {
        let is_mac = op_code == create::MAC;
        let is_hash = is_mac || op_code == create::HASH;
        CreateSession {
            op_code,
            cipher: if is_hash { 0 } else { number },
            hash: if is_hash { number } else { 0 },
            hash_bytes,
            aad_bytes: 0,
            op_type: symmetric::CIPHER,
            direction: direction::DECRYPT,
            hash_mode: 0,
            chain_order: 0,
            key: if is_mac { &[] } else { key },
            auth_key: if is_mac { key } else { &[] },
        }
    }

    #[test]
    fn each_algorithm_has_numbers_of_its_own() {
        for &algorithm in Algorithm::ALL {
            let key: Vec<u8> = (0..64).take(algorithm.key_bytes().unwrap_or(20)).collect();
            let tag_bytes = u32::try_from(algorithm.tag_bytes()).unwrap();
            let asked = asked(create_code(algorithm), number_of(algorithm), &key, tag_bytes);
            let direction = if algorithm.is_cipher() { Direction::Decrypt } else { Direction::Encrypt };
            assert_eq!(meaning(&asked), Some((algorithm, direction)));
            let (mut sessions, user) = (Sessions::default(), Arc::default());
            assert_eq!(sessions.open(&asked, &[algorithm], 1, (&user, 9)), Some(0), "{algorithm}");
            assert_eq!(sessions.open(&asked, &[algorithm], 1, (&user, 9)), None, "a limit is a limit");
            sessions.close(0);
            assert_eq!(sessions.open(&asked, &[algorithm], 1, (&user, 9)), Some(1), "ids are not used twice");
            assert_eq!(Sessions::default().open(&asked, &[], 1, (&user, 9)), None);
        }
    }

    #[test]
    fn what_is_not_ours_makes_no_session() {
        let right = asked(create::CIPHER, cipher::AES_CBC, &[1; 16], 0);
        let chain = CreateSession { op_type: symmetric::CHAIN, ..right };
        let nowhere = CreateSession { direction: 3, ..right };
        let short = CreateSession { key: &[1; 15], ..right };
        let short_tag = asked(create::AEAD, aead::GCM, &[1; 16], 12);
        let other = CreateSession { op_code: 0x402, ..right };
        assert!(meaning(&right).is_some());
        for wrong in [chain, nowhere, short, short_tag, other] {
            assert_eq!(meaning(&wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_configuration_names_what_the_module_does() {
        let config = config(&[Algorithm::Aes128Cbc, Algorithm::Sha256], 4, 1 << 20);
        assert_eq!((config.services, config.ciphers, config.hashes), (0b11, 1 << 3, 1 << 4));
        assert_eq!((config.macs, config.aeads, config.data_queues_max), (0, 0, 4));
    }

    #[test]
    fn a_users_clients_have_so_many_sessions_together_and_no_more() {
        let (user, does) = (Arc::default(), [Algorithm::Aes128Cbc]);
        let asked = asked(create::CIPHER, cipher::AES_CBC, &[1; 16], 0);
        let [mut first, mut second] = [Sessions::default(), Sessions::default()];
        let open = |sessions: &mut Sessions| sessions.open(&asked, &does, 100, (&user, 3));
        assert_eq!([open(&mut first), open(&mut first), open(&mut second)], [Some(0), Some(1), Some(0)]);
        assert_eq!(open(&mut second), None);
        assert!(first.close(1).is_some() && first.close(1).is_none());
        assert_eq!([open(&mut second), open(&mut second)], [Some(1), None]);
        assert_eq!((first.close_all().count(), second.close_all().count()), (1, 2));
        assert_eq!(user.held.sessions.value(), 0);
    }
}
