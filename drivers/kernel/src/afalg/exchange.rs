//! One request over one socket: a cipher in chunks, an AEAD or a hash as a whole.

use evener_core::{Algorithm, Direction, Family};
use evener_fd::CheckedFd;

use super::ffi::Operation;
use super::transform::{Attempt, read_all, send_all, send_part};
use crate::pool::chunks::{in_chunks, last_block, next_iv};
use crate::pool::device::{Spec, Task};

/// Data of one `sendmsg`: a fraction of what a socket buffers (212,992 bytes unless the system's owner changed it), so that
/// a call neither waits for space nor comes back short. A longer chain is continued by a new request with the next IV.
pub(super) const CHUNK_BYTES: usize = 64 << 10;

/// What cannot be cut (XTS, AEAD) is taken up to this length, with associated data and tag.
pub(super) const WHOLE_BYTES_MAX: usize = 128 << 10;

pub(super) fn run_on(socket: &CheckedFd, task: &mut Task) -> Result<(), Attempt> {
    match task.spec.algorithm.family() {
        Family::Digest(_) | Family::Hmac(_) => hash(socket, task),
        Family::Gcm | Family::ChaCha20Poly1305 => aead(socket, task),
        Family::Ecb | Family::Cbc | Family::Ctr | Family::Xts => cipher(socket, task),
    }
}

/// XTS has only one ([`Device::takes`]), and so has an AEAD.
pub(super) fn chunk_bytes(algorithm: Algorithm) -> usize {
    if algorithm.is_aead() || algorithm.family() == Family::Xts { WHOLE_BYTES_MAX } else { CHUNK_BYTES }
}

/// In chunks, from one place to another.
pub(super) fn apart(
    socket: &CheckedFd,
    spec: Spec,
    iv: [u8; 16],
    input: &[u8],
    output: &mut [u8],
) -> Result<(), Attempt> {
    let Spec { algorithm, direction } = spec;
    let (bytes, mut iv) = (chunk_bytes(algorithm), iv);
    for (chunk, space) in input.chunks(bytes).zip(output.chunks_mut(bytes)) {
        let socket = send_all(socket, Operation::of(spec, &iv), chunk)?;
        read_all(socket, space)?;
        iv = next_iv(algorithm.family(), &iv, chunk, direction).unwrap_or_else(|| last_block(space));
    }
    Ok(())
}

/// In chunks.
pub(super) fn cipher(socket: &CheckedFd, task: &mut Task) -> Result<(), Attempt> {
    let Spec { algorithm, direction } = task.spec;
    let encrypts = direction == Direction::Encrypt;
    in_chunks(task, chunk_bytes(algorithm), |iv, chunk, is_first| {
        let order = Operation { encrypts, iv, aad_bytes: None };
        let sent = send_all(socket, order, chunk);
        sent.and_then(|socket| read_all(socket, chunk)).map_err(|it| it.keeping(is_first))
    })
}

/// One request over associated data, text and tag, which lie one behind the other.
pub(super) fn aead(socket: &CheckedFd, task: &mut Task) -> Result<(), Attempt> {
    let Spec { algorithm, direction } = task.spec;
    let encrypts = direction == Direction::Encrypt;
    let (iv, front) = (task.iv, task.aad_bytes + task.text_bytes);
    let (tag_bytes, aad_bytes) = (algorithm.tag_bytes(), u32::try_from(task.aad_bytes).unwrap_or(u32::MAX));
    let order = Operation { encrypts, iv: &iv[..algorithm.iv_bytes()], aad_bytes: Some(aad_bytes) };
    let (given, wanted) = if encrypts { (front, front + tag_bytes) } else { (front + tag_bytes, front) };
    let socket = send_all(socket, order, &task.space[..given])?;
    read_all(socket, &mut task.space[..wanted])
}

pub(super) fn hash(socket: &CheckedFd, task: &mut Task) -> Result<(), Attempt> {
    let socket = socket.checked()?;
    let mut rest = &task.space[..task.text_bytes];
    while !rest.is_empty() {
        let sent = send_part(socket, None, rest, true)?;
        rest = &rest[sent..];
    }
    let digest_bytes = task.spec.algorithm.tag_bytes();
    read_all(socket, &mut task.tag[..digest_bytes])
}
