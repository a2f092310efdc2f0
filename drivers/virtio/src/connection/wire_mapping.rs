//! Evener's algorithms in the wire's numbers: what opens a session, what stands in front of a request.

use evener_core::{Algorithm, Direction, Family, JobError};
use evener_wire::numbers::{create, symmetric};
use evener_wire::{
    AUTH_KEY_BYTES_MAX, Config, CreateSession, DataRequest, KEY_BYTES_MAX, Operation, Status, create_code,
    direction_of, number_of, operation_of,
};

/// An algorithm in one direction as the wire says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) algorithm: Algorithm,
    pub(crate) direction: Direction,
}

/// Lengths of a request in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lengths {
    /// Text, with padding, without tag.
    pub(crate) text: usize,
    pub(crate) aad: usize,
}

impl Shape {
    /// Whether a host with this configuration does it. Without one it is a back end that knows AES-CBC only, as all do.
    pub(crate) fn is_in(self, config: Option<&Config>) -> bool {
        match config {
            Some(config) => config.does(self.algorithm),
            None => self.algorithm.family() == Family::Cbc,
        }
    }

    /// Whether the wire has space for the key.
    pub(crate) const fn takes_key(self, key: &[u8]) -> bool {
        match self.algorithm.family() {
            Family::Hmac(_) => key.len() <= AUTH_KEY_BYTES_MAX,
            _ => key.len() <= KEY_BYTES_MAX,
        }
    }

    /// What opens a session with this key.
    pub(crate) fn create(self, key: &[u8]) -> CreateSession<'_> {
        let digest_bytes = u32::try_from(self.algorithm.tag_bytes()).expect("a tag has a few bytes");
        let (op_code, number) = (create_code(self.algorithm), number_of(self.algorithm));
        let (cipher, hash) = if self.algorithm.is_cipher() { (number, 0) } else { (0, number) };
        let op_type = if op_code == create::CIPHER { symmetric::CIPHER } else { 0 };
        let is_mac = op_code == create::MAC;
        CreateSession {
            op_code,
            cipher,
            hash,
            hash_bytes: digest_bytes,
            aad_bytes: 0,
            op_type,
            direction: direction_of(self.direction),
            hash_mode: 0,
            chain_order: 0,
            key: if is_mac { &[] } else { key },
            auth_key: if is_mac { key } else { &[] },
        }
    }

    /// What the host reads behind header and IV, and what it writes in front of the status.
    pub(crate) const fn data_bytes(self, lengths: Lengths) -> (usize, usize) {
        let tag = self.algorithm.tag_bytes();
        let Lengths { text, aad } = lengths;
        match (self.algorithm.is_cipher(), self.algorithm.is_aead(), self.direction) {
            (false, _, _) => (text, tag),
            (true, false, _) => (text, text),
            (true, true, Direction::Encrypt) => (text + aad, text + tag),
            (true, true, Direction::Decrypt) => (text + tag + aad, text),
        }
    }

    /// Whether the result takes the text's place: where both are of one length, one span serves both, so that only half as much
    /// memory goes to and fro between two cores, and no text is left to be wiped.
    pub(crate) const fn is_in_place(self) -> bool {
        self.algorithm.is_cipher() && !self.algorithm.is_aead()
    }

    /// The header of a request; lengths fit into 32 bits because the region does.
    pub(crate) fn request(self, session: u64, lengths: Lengths) -> DataRequest {
        let bytes = |count: usize| u32::try_from(count).expect("a request fits into the region");
        let (readable, writable) = self.data_bytes(lengths);
        let (iv_bytes, aad_bytes) = (bytes(self.algorithm.iv_bytes()), bytes(lengths.aad));
        let tag_bytes = bytes(self.algorithm.tag_bytes());
        let (src_bytes, dst_bytes) = (bytes(readable - lengths.aad), bytes(writable));
        let operation = match create_code(self.algorithm) {
            create::CIPHER => Operation::Cipher { iv_bytes, src_bytes, dst_bytes },
            create::AEAD => Operation::Aead { iv_bytes, aad_bytes, src_bytes, dst_bytes, tag_bytes },
            _ => Operation::Digest { src_bytes, hash_bytes: tag_bytes },
        };
        let opcode = operation_of(self.algorithm, self.direction);
        DataRequest { opcode, algorithm: number_of(self.algorithm), session, operation }
    }
}

/// What a status says; a number that the wire does not have is the module's error too.
pub(crate) fn verdict(status: u8, shape: Shape) -> Result<(), JobError> {
    let opens = shape.algorithm.is_aead() && shape.direction == Direction::Decrypt;
    match Status::from_number(status) {
        Some(Status::Ok) => Ok(()),
        Some(Status::BadMessage) if opens => Err(JobError::NotAuthentic),
        Some(Status::NotSupported) => Err(JobError::Unsupported),
        Some(Status::NoSpace) => Err(JobError::ModuleFull),
        _ => Err(JobError::Module { code: status.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evener_wire::DATA_HEADER_BYTES;

    #[test]
    fn what_the_host_reads_and_writes_is_what_the_header_says() {
        let lengths = Lengths { text: 48, aad: 5 };
        for &algorithm in Algorithm::ALL {
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                let shape = Shape { algorithm, direction };
                let lengths = if algorithm.is_aead() { lengths } else { Lengths { aad: 0, ..lengths } };
                let told = shape.request(7, lengths).lengths();
                let (readable, writable) = shape.data_bytes(lengths);
                let readable = DATA_HEADER_BYTES + algorithm.iv_bytes() + readable;
                assert_eq!(
                    (told.readable, told.writable),
                    (readable as u64, writable as u64 + 1),
                    "{algorithm}"
                );
            }
        }
    }

    #[test]
    fn a_host_is_asked_for_what_its_configuration_names_and_one_without_for_cbc() {
        let gcm = Shape { algorithm: Algorithm::Aes128Gcm, direction: Direction::Encrypt };
        let cbc = Shape { algorithm: Algorithm::Aes256Cbc, ..gcm };
        let sha = Shape { algorithm: Algorithm::Sha256, ..gcm };
        let config = Config { aeads: 1 << 1, hashes: 1 << 4, ..Config::default() };
        assert!(gcm.is_in(Some(&config)) && sha.is_in(Some(&config)) && !cbc.is_in(Some(&config)));
        assert!(!gcm.is_in(None) && !sha.is_in(None) && cbc.is_in(None));
    }

    #[test]
    fn a_mac_s_key_stands_where_macs_keys_stand() {
        let shape = Shape { algorithm: Algorithm::HmacSha256, direction: Direction::Encrypt };
        let session = shape.create(b"key");
        assert_eq!((session.op_code, session.hash, session.hash_bytes), (create::MAC, 4, 32));
        assert_eq!((session.key, session.auth_key), (&b""[..], &b"key"[..]));
        assert!(shape.takes_key(&[0; 512]) && !shape.takes_key(&[0; 513]));
    }
}
