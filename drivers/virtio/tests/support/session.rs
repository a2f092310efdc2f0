//! The test host's sessions: the wire's words in Evener's, and libcrypto behind them.

use std::collections::HashMap;

use evener_core::{Algorithm, Direction, InlineDriver as _, Job, JobError, Outcome, Padding, Session};
use evener_driver_libcrypto::Libcrypto;
use evener_wire::numbers::{create, direction};
use evener_wire::{CreateSession, DATA_HEADER_BYTES, DataRequest, Operation, Status};

pub(super) struct Opened(Session);

impl Opened {
    pub(super) fn new(asked: &CreateSession<'_>) -> Self {
        use Algorithm as A;
        let by_key = |of: [A; 3]| of[asked.key.len() / 8 - 2];
        let algorithm = match (asked.op_code, asked.cipher, asked.hash) {
            (create::CIPHER, 2, _) => by_key([A::Aes128Ecb, A::Aes192Ecb, A::Aes256Ecb]),
            (create::CIPHER, 3, _) => by_key([A::Aes128Cbc, A::Aes192Cbc, A::Aes256Cbc]),
            (create::CIPHER, 4, _) => by_key([A::Aes128Ctr, A::Aes192Ctr, A::Aes256Ctr]),
            (create::CIPHER, 13, _) if asked.key.len() == 32 => A::Aes128Xts,
            (create::CIPHER, 13, _) => A::Aes256Xts,
            (create::AEAD, 1, _) => by_key([A::Aes128Gcm, A::Aes192Gcm, A::Aes256Gcm]),
            (create::AEAD, 3, _) => A::ChaCha20Poly1305,
            (create::HASH, _, 1) => A::Md5,
            (create::HASH, _, 2) => A::Sha1,
            (create::HASH, _, 4) => A::Sha256,
            (create::MAC, _, 1) => A::HmacMd5,
            (create::MAC, _, 2) => A::HmacSha1,
            (create::MAC, _, 4) => A::HmacSha256,
            other => panic!("no algorithm {other:?}"),
        };
        let decrypts = asked.direction == direction::DECRYPT && algorithm.is_cipher();
        let direction = if decrypts { Direction::Decrypt } else { Direction::Encrypt };
        let key = if asked.op_code == create::MAC { asked.auth_key } else { asked.key };
        Self(Session::new(algorithm, direction, Padding::None, key).unwrap())
    }
}

/// Runs a request; returns what goes in front of the status, as much as there is space, and the status.
pub(super) fn run(
    sessions: &HashMap<u64, Opened>,
    libcrypto: &mut Libcrypto,
    read: &[u8],
    space: usize,
) -> (Vec<u8>, u8) {
    let (header, read) = read.split_first_chunk::<DATA_HEADER_BYTES>().unwrap();
    let request = DataRequest::parse(header).unwrap();
    let Some(Opened(session)) = sessions.get(&request.session) else {
        return (vec![0; space], Status::InvalidSession as u8);
    };
    let count = |bytes: u32| usize::try_from(bytes).unwrap();
    let (iv_bytes, src_bytes) = match request.operation {
        Operation::Cipher { iv_bytes, src_bytes, .. } | Operation::Aead { iv_bytes, src_bytes, .. } => {
            (count(iv_bytes), count(src_bytes))
        }
        Operation::Digest { src_bytes, .. } => (0, count(src_bytes)),
        Operation::Chain { .. } => panic!("no chains"),
    };
    let (iv, read) = read.split_at(iv_bytes);
    let (src, aad) = read.split_at(src_bytes);
    let opens = session.algorithm().is_aead() && session.direction() == Direction::Decrypt;
    let (src, tag) = if opens { src.split_at(src.len() - 16) } else { (src, &[][..]) };
    let mut out = vec![0; src.len()];
    let mut burst = [Job::apart(src, &mut out)];
    burst[0].arm(session, iv, src.len());
    burst[0].set_aad(aad);
    burst[0].set_tag(tag);
    libcrypto.run(&mut burst);
    let (outcome, made) = (burst[0].outcome(), if opens { Vec::new() } else { burst[0].tag().to_vec() });
    drop(burst);
    if !session.algorithm().is_cipher() {
        out.clear();
    }
    out.extend(made);
    match outcome {
        Outcome::Done { .. } => (out, Status::Ok as u8),
        Outcome::Failed(JobError::NotAuthentic) => (vec![0; space], Status::BadMessage as u8),
        _ => (vec![0; space], Status::Error as u8),
    }
}
