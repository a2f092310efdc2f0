//! The calls of `/dev/crypto`.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::ioctl::{Setter, Updater, ioctl};

use crate::ocf::{Call, CryptOp, SESSION_INFO_BYTES, SessionOp};

/// One session with its key or keys, which the kernel copies. Returns its number.
pub(super) fn open_session(
    node: BorrowedFd<'_>,
    numbers: (u32, u32),
    key: &[u8],
    mac_key: &[u8],
) -> io::Result<u32> {
    let bytes = |key: &[u8]| u32::try_from(key.len()).unwrap_or(u32::MAX);
    let mut op = SessionOp {
        cipher: numbers.0,
        mac: numbers.1,
        key_bytes: bytes(key),
        key: key.as_ptr().expose_provenance(),
        mac_key_bytes: bytes(mac_key),
        mac_key: mac_key.as_ptr().expose_provenance(),
        session: 0,
    };
    // SAFETY: the number belongs to this record.
    let call = unsafe { Updater::<{ Call::OpenSession.number() }, SessionOp>::new(&mut op) };
    // SAFETY: the node only reads the keys, which live through the call and are as long as the record says.
    unsafe { ioctl(node, call) }?;
    Ok(op.session)
}

/// Forgets a session.
pub(super) fn close_session(node: BorrowedFd<'_>, session: u32) -> io::Result<()> {
    // SAFETY: the number belongs to a call that reads an unsigned number.
    let call = unsafe { Setter::<{ Call::CloseSession.number() }, u32>::new(session) };
    // SAFETY: the call reads nothing else.
    Ok(unsafe { ioctl(node, call) }?)
}

/// Works on `text` in place; `iv` is empty where the algorithm has none.
pub(super) fn crypt(
    node: BorrowedFd<'_>,
    session: u32,
    op: u16,
    iv: &[u8],
    text: &mut [u8],
) -> io::Result<()> {
    let start = text.as_mut_ptr().expose_provenance();
    let iv = if iv.is_empty() { 0 } else { iv.as_ptr().expose_provenance() };
    call(
        node,
        CryptOp { session, op, len: length(text.len())?, src: start, dst: start, iv, ..CryptOp::default() },
    )
}

/// Digest of `message` into `digest`, which has the algorithm's length.
pub(super) fn hash(node: BorrowedFd<'_>, session: u32, message: &[u8], digest: &mut [u8]) -> io::Result<()> {
    let (src, mac) = (message.as_ptr().expose_provenance(), digest.as_mut_ptr().expose_provenance());
    call(node, CryptOp { session, len: length(message.len())?, src, mac, ..CryptOp::default() })
}

fn call(node: BorrowedFd<'_>, mut op: CryptOp) -> io::Result<()> {
    // SAFETY: the number belongs to this record.
    let call = unsafe { Updater::<{ Call::Crypt.number() }, CryptOp>::new(&mut op) };
    // SAFETY: the callers above lend the memory that the record names through the call, room for output exclusively.
    Ok(unsafe { ioctl(node, call) }?)
}

/// What stands behind a session (cryptodev-linux).
pub(super) fn session_info(node: BorrowedFd<'_>, session: u32) -> io::Result<[u8; SESSION_INFO_BYTES]> {
    let mut record = Info([0; SESSION_INFO_BYTES]);
    record.0[..4].copy_from_slice(&session.to_ne_bytes());
    // SAFETY: the number belongs to a record of this length.
    let call = unsafe { Updater::<{ Call::SessionInfo.number() }, Info>::new(&mut record) };
    // SAFETY: the call writes into the record and nowhere else.
    unsafe { ioctl(node, call) }?;
    Ok(record.0)
}

/// `struct session_info_op`.
#[repr(C, align(4))]
struct Info([u8; SESSION_INFO_BYTES]);

fn length(bytes: usize) -> io::Result<u32> {
    u32::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EMSGSIZE))
}
