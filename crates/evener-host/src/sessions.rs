//! The sessions of one client, and what the wire's numbers mean.

use std::collections::HashMap;
use std::sync::Arc;

use evener_core::{Algorithm, Direction, Family, Hash, Padding, Session};
use evener_wire::numbers::{aead, cipher, create, direction, hash, mac, service, symmetric};
use evener_wire::{AUTH_KEY_BYTES_MAX, Config, CreateSession, KEY_BYTES_MAX};

/// Sessions by the id that the client knows. Ids are never used twice on a connection.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: HashMap<u64, Arc<Session>>,
    next: u32,
}

impl Sessions {
    /// Opens a session; `None` where the numbers or the key make none, where the module `does` not do it, or where `max` are open.
    pub(crate) fn open(&mut self, asked: &CreateSession<'_>, does: &[Algorithm], max: usize) -> Option<i64> {
        let (algorithm, direction) = meaning(asked).filter(|(algorithm, _)| does.contains(algorithm))?;
        let key = if asked.op_code == create::MAC { asked.auth_key } else { asked.key };
        let session = Session::new(algorithm, direction, Padding::None, key).ok()?;
        if self.open.len() >= max {
            return None;
        }
        let id = self.next;
        self.next = id.checked_add(1)?;
        self.open.insert(id.into(), Arc::new(session));
        Some(id.into())
    }

    /// Closes a session, whose key is wiped when the last job under it is back. What is not open stays closed.
    pub(crate) fn close(&mut self, id: u64) {
        self.open.remove(&id);
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Arc<Session>> {
        self.open.get(&id)
    }

    pub(crate) fn count(&self) -> usize {
        self.open.len()
    }
}

/// What a client asks for, `None` where it is nothing of ours.
fn meaning(asked: &CreateSession<'_>) -> Option<(Algorithm, Direction)> {
    let direction = match asked.direction {
        direction::ENCRYPT => Some(Direction::Encrypt),
        direction::DECRYPT => Some(Direction::Decrypt),
        _ => None,
    };
    let is_asked = |algorithm: &&Algorithm| {
        let (op_code, number, is_kind) = match algorithm.family() {
            Family::Digest(_) | Family::Hmac(_) => (op_code_of(**algorithm), asked.hash, true),
            Family::Gcm | Family::ChaCha20Poly1305 => (create::AEAD, asked.cipher, true),
            Family::Ecb | Family::Cbc | Family::Ctr | Family::Xts => {
                (create::CIPHER, asked.cipher, asked.op_type == symmetric::CIPHER)
            }
        };
        let keyed = algorithm.key_bytes().is_none_or(|bytes| bytes == asked.key.len());
        let tagged =
            algorithm.tag_bytes() == 0 || u32::try_from(algorithm.tag_bytes()) == Ok(asked.hash_bytes);
        op_code == asked.op_code && number == number_of(**algorithm) && is_kind && keyed && tagged
    };
    let algorithm = *Algorithm::ALL.iter().find(is_asked)?;
    // A hash has one direction, whatever the client wrote.
    let direction = if algorithm.is_cipher() { direction? } else { Direction::Encrypt };
    Some((algorithm, direction))
}

const fn op_code_of(algorithm: Algorithm) -> u64 {
    match algorithm.family() {
        Family::Digest(_) => create::HASH,
        Family::Hmac(_) => create::MAC,
        Family::Gcm | Family::ChaCha20Poly1305 => create::AEAD,
        Family::Ecb | Family::Cbc | Family::Ctr | Family::Xts => create::CIPHER,
    }
}

/// The number within its service.
const fn number_of(algorithm: Algorithm) -> u32 {
    match algorithm.family() {
        Family::Ecb => cipher::AES_ECB,
        Family::Cbc => cipher::AES_CBC,
        Family::Ctr => cipher::AES_CTR,
        Family::Xts => cipher::AES_XTS,
        Family::Gcm => aead::GCM,
        Family::ChaCha20Poly1305 => aead::CHACHA20_POLY1305,
        Family::Digest(Hash::Md5) => hash::MD5,
        Family::Digest(Hash::Sha1) => hash::SHA1,
        Family::Digest(Hash::Sha256) => hash::SHA256,
        Family::Hmac(Hash::Md5) => mac::HMAC_MD5,
        Family::Hmac(Hash::Sha1) => mac::HMAC_SHA1,
        Family::Hmac(Hash::Sha256) => mac::HMAC_SHA256,
    }
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
    for algorithm in does {
        let number = number_of(*algorithm);
        match op_code_of(*algorithm) {
            create::CIPHER => config.ciphers |= 1 << number,
            create::HASH => config.hashes |= 1 << number,
            create::MAC => config.macs |= 1 << number,
            _ => config.aeads |= 1 << number,
        }
    }
    let services = [
        (service::CIPHER, config.ciphers != 0),
        (service::HASH, config.hashes != 0),
        (service::MAC, config.macs != 0),
        (service::AEAD, config.aeads != 0),
    ];
    config.services = services.iter().map(|(bit, is_there)| u32::from(*is_there) << bit).sum();
    config
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let asked = asked(op_code_of(algorithm), number_of(algorithm), &key, tag_bytes);
            let direction = if algorithm.is_cipher() { Direction::Decrypt } else { Direction::Encrypt };
            assert_eq!(meaning(&asked), Some((algorithm, direction)));
            let mut sessions = Sessions::default();
            assert_eq!(sessions.open(&asked, &[algorithm], 1), Some(0), "{algorithm}");
            assert_eq!(sessions.open(&asked, &[algorithm], 1), None, "a limit is a limit");
            sessions.close(0);
            assert_eq!(sessions.open(&asked, &[algorithm], 1), Some(1), "ids are not used twice");
            assert_eq!(Sessions::default().open(&asked, &[], 1), None);
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
}
