//! A key of AF_ALG and the sockets of its requests, and what goes through such a socket: all of a request out, all of its answer in.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use evener_core::Direction;
use evener_fd::{CheckedFd, not_in_children, note_call};
use rustix::io::{Errno, retry_on_intr};

use super::ffi::{self, Operation};
use crate::pool::device::{Spec, Task};

/// A key: the transform, and sockets for requests that no request uses now.
pub(crate) struct Transform {
    pub(super) socket: CheckedFd,
    idle: Mutex<[Option<CheckedFd>; IDLE_MAX]>,
}

/// Sockets that are kept. Their place is there from the beginning, for threads of the driver's allocate nothing. Assumed, not measured: 8, because so
/// many requests under one key at once are usual.
const IDLE_MAX: usize = 8;

impl Transform {
    pub(super) fn new(socket: CheckedFd) -> Self {
        Self { socket, idle: Mutex::default() }
    }

    /// A socket for one request.
    pub(super) fn request_socket(&self) -> io::Result<CheckedFd> {
        // The lock must not be held while a new one is made.
        let idle_one = self.idle().iter_mut().find_map(Option::take);
        idle_one.map_or_else(|| ffi::accept(self.socket.checked()?).and_then(not_in_children), Ok)
    }

    /// Keeps a socket for the next request.
    pub(super) fn keep(&self, socket: CheckedFd) {
        let mut surplus = Some(socket);
        if let Some(place) = self.idle().iter_mut().find(|place| place.is_none()) {
            *place = surplus.take();
        }
        // Not under the lock.
        drop(surplus);
    }

    #[cfg(test)]
    pub(super) fn idle_count(&self) -> usize {
        self.idle().iter().flatten().count()
    }

    fn idle(&self) -> MutexGuard<'_, [Option<CheckedFd>; IDLE_MAX]> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a request failed.
pub(super) enum Attempt {
    /// Fewer bytes went through than were given; with `is_intact` the input is as it was.
    Short {
        is_intact: bool,
    },
    Failed(Errno),
}

impl Attempt {
    /// Hashes only read their input.
    pub(super) const fn keeps_input(task: &Task) -> bool {
        !task.spec.algorithm.is_cipher()
    }
}

impl From<Errno> for Attempt {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno)
    }
}

impl From<io::Error> for Attempt {
    fn from(error: io::Error) -> Self {
        Self::Failed(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

impl<'a> Operation<'a> {
    /// The request of a cipher, with as much of `iv` as the cipher has.
    pub(super) fn of(spec: Spec, iv: &'a [u8; 16]) -> Self {
        let encrypts = spec.direction == Direction::Encrypt;
        Self { encrypts, iv: &iv[..spec.algorithm.iv_bytes()], aad_bytes: None }
    }
}

/// Hands over all of a request, and lends the socket for the answer. What comes back short has lost its end, and is given up.
pub(super) fn send_all<'s>(
    socket: &'s CheckedFd,
    order: Operation<'_>,
    data: &[u8],
) -> Result<BorrowedFd<'s>, Attempt> {
    let socket = socket.checked()?;
    match send_part(socket, Some(order), data, false)? {
        sent if sent == data.len() => Ok(socket),
        _ => Err(Attempt::Short { is_intact: true }),
    }
}

pub(super) fn send_part(
    socket: BorrowedFd<'_>,
    order: Option<Operation<'_>>,
    data: &[u8],
    more: bool,
) -> Result<usize, Attempt> {
    loop {
        note_call();
        match ffi::send(socket, order, data, more) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) if !data.is_empty() => return Err(Attempt::Short { is_intact: true }),
            sent => return Ok(sent?),
        }
    }
}

/// Sleeps until the driver has answered, and reads all of it.
pub(super) fn read_all(socket: BorrowedFd<'_>, space: &mut [u8]) -> Result<(), Attempt> {
    let mut filled = 0;
    while filled < space.len() {
        note_call();
        match retry_on_intr(|| rustix::io::read(socket, &mut space[filled..]))? {
            0 => return Err(Attempt::Short { is_intact: filled == 0 }),
            read => filled += read,
        }
    }
    Ok(())
}

impl Attempt {
    /// Where earlier chunks have been replaced already, the input is not what it was, whatever became of this one.
    pub(super) fn keeping(self, is_first: bool) -> Self {
        match self {
            Self::Short { is_intact } => Self::Short { is_intact: is_intact && is_first },
            failed @ Self::Failed(_) => failed,
        }
    }
}
