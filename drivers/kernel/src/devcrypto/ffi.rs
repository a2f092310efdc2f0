//! The calls of `/dev/crypto`.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::{io, mem};

use evener_fd::{CheckedFd, note_call};
use rustix::ioctl::{Getter, Setter, Updater, ioctl};
use zeroize::Zeroizing;

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
    note_call();
    // SAFETY: the callers above lend the memory that the record names through the call, space for output exclusively.
    Ok(unsafe { ioctl(node, call) }?)
}

/// Memory of which parts are left with a node, which writes to them until it gives them back.
pub(super) struct LentMemory<'n> {
    node: &'n CheckedFd,
    space: Zeroizing<Vec<u8>>,
    /// Addresses of the parts that are out, the oldest first.
    out: VecDeque<usize>,
    /// Where the last part ended: none overlaps another.
    end: usize,
    /// A signal ended a call, or the program closed the node's descriptor, so that what is out is unknown.
    is_lost: bool,
}

/// What a node says of requests that were left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Back {
    /// The oldest is done.
    Done,
    /// It failed, by its number.
    Failed(i32),
    /// None is finished.
    NotYet,
}

impl<'n> LentMemory<'n> {
    /// One for each descriptor at a time: another that fetches there gets results that are meant for this one.
    pub(super) fn new(node: &'n CheckedFd, space: Zeroizing<Vec<u8>>) -> Self {
        Self { node, space, out: VecDeque::new(), end: 0, is_lost: false }
    }

    /// How many parts are out.
    pub(super) fn out(&self) -> usize {
        self.out.len()
    }

    /// Bytes that are not out and were not.
    pub(super) fn rest(&self) -> &[u8] {
        &self.space[self.end..]
    }

    /// Leaves `part`, which begins at the end of the last one or behind it, to be worked on in place.
    pub(super) fn submit(&mut self, session: u32, op: u16, iv: &[u8], part: Range<usize>) -> io::Result<()> {
        assert!(self.end <= part.start && part.end <= self.space.len(), "parts do not overlap");
        let node = self.node.checked()?;
        let start = self.space[part.clone()].as_mut_ptr().expose_provenance();
        let iv = if iv.is_empty() { 0 } else { iv.as_ptr().expose_provenance() };
        let len = length(part.len())?;
        let op = CryptOp { session, op, len, src: start, dst: start, iv, ..CryptOp::default() };
        // SAFETY: the number belongs to this record.
        let call = unsafe { Setter::<{ Call::Leave.number() }, CryptOp>::new(op) };
        note_call();
        // SAFETY: the IV is read during the call. The part is the node's from now on: no thread reaches it through this type, and its
        // memory is not given back or freed before the node has.
        let left = unsafe { ioctl(node, call) };
        self.is_lost |= left == Err(rustix::io::Errno::INTR);
        left?;
        self.out.push_back(start);
        self.end = part.end;
        Ok(())
    }

    /// Asks for the oldest. A node gives requests back in the order in which they were left, so one that failed is known.
    pub(super) fn fetch(&mut self) -> io::Result<Back> {
        let node = self.node.checked().inspect_err(|_| self.is_lost = true)?;
        // SAFETY: the number belongs to this record.
        let call = unsafe { Getter::<{ Call::Fetch.number() }, CryptOp>::new() };
        note_call();
        // SAFETY: what the node writes besides the record are the parts that are out here.
        match unsafe { ioctl(node, call) } {
            Ok(op) if Some(&op.src) == self.out.front() => {
                self.out.pop_front();
                Ok(Back::Done)
            }
            Err(rustix::io::Errno::BUSY) => Ok(Back::NotYet),
            Err(errno) if errno != rustix::io::Errno::INTR => {
                self.out.pop_front();
                Ok(Back::Failed(errno.raw_os_error()))
            }
            // A signal, or the result of another process.
            _ => {
                self.is_lost = true;
                Err(io::Error::from_raw_os_error(libc::EINTR))
            }
        }
    }

    /// The memory, where all of it is back.
    pub(super) fn take(mut self) -> Option<Zeroizing<Vec<u8>>> {
        self.is_back().then(|| mem::take(&mut self.space))
    }

    fn is_back(&self) -> bool {
        self.out.is_empty() && !self.is_lost
    }
}

impl Drop for LentMemory<'_> {
    fn drop(&mut self) {
        if !self.is_back() {
            // The node may write to it at any time.
            mem::forget(mem::take(&mut self.space));
        }
    }
}

/// Whether a node keeps requests until they are fetched: then it says of a new descriptor that none is finished.
pub(super) fn is_queue(node: &CheckedFd) -> bool {
    matches!(LentMemory::new(node, Zeroizing::default()).fetch(), Ok(Back::NotYet))
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
