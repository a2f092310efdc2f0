//! Requests that whoever waits for them begins himself and may leave: `sendmsg`, then an asynchronous read.
//!
//! The way of one: its key, which a runner opens and closes, for the kernel may sleep over keys -> `sendmsg` copies the input to the
//! kernel -> the read is begun into memory of a [`Reader`]'s own -> the result is there, often before the core gets to sleep; or the
//! time is over, and the reader's memory stays behind. Nobody else's thread is woken, and nobody stands in the kernel.
//!
//! A driver of the kernel that computes on this core does so within the call that begins the read; only such as answer later can be
//! left.

use std::cell::OnceCell;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use evener_aio::{ReadError, Reader};
use evener_core::driver::{LaunchedDriver, Text, Unlaunched};
use evener_core::{Direction, IsOver, JobError, Nanos, Session};
use evener_ring::wipe;

use super::ffi::Order;
use super::{Afalg, Attempt, Transform, last_block, next_iv, piece_bytes, send_all};
use crate::birthplace::Birthplace;
use crate::called::is_for_callers;
use crate::desk::{Desk, Failure, Spec};
use crate::keys::Keys;
use crate::queued::{FAREWELL, error_of};

/// Readers that are kept for the next requests; each has as much memory as the longest so far.
const READERS_KEPT: usize = 8;

/// Of one process: a forked child makes its own.
pub(crate) struct Launched {
    /// Where keys are opened and closed.
    desk: Arc<Desk<Afalg>>,
    /// Whether its runner could be started, which the first request does.
    has_runner: OnceLock<bool>,
    idle: Mutex<Vec<Reader>>,
    /// The process whose keys and runner these are.
    home: Birthplace,
}

impl Launched {
    /// `None` where the system has no asynchronous reads, or forbids them.
    pub(crate) fn new(device: Arc<Afalg>) -> Option<Self> {
        let reader = Reader::new().ok()?;
        let nobodys = Arc::new(AtomicUsize::new(0));
        let desk = Arc::new(Desk::new(device, nobodys, 1));
        Some(Self {
            desk,
            has_runner: OnceLock::new(),
            idle: Mutex::new(vec![reader]),
            home: Birthplace::here(),
        })
    }

    /// A reader with room for so many bytes.
    fn reader(&self, bytes: usize) -> io::Result<Reader> {
        // The lock must not be held while a new one is made.
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut reader = kept.map_or_else(Reader::new, Ok)?;
        reader.make_room(bytes)?;
        Ok(reader)
    }

    fn keep(&self, reader: Reader) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !reader.is_left() && idle.len() < READERS_KEPT {
            idle.push(reader);
        }
    }

    fn has_runner(&self) -> bool {
        *self.has_runner.get_or_init(|| self.desk.start_runner().is_ok())
    }
}

impl LaunchedDriver for Launched {
    fn launch(
        &self,
        session: &Session,
        iv: &[u8; 16],
        text: &mut dyn Text,
        patience: Nanos,
    ) -> Result<(), Unlaunched> {
        let bytes = text.input().len();
        // Most requests end before anybody looks at a clock.
        let began = OnceCell::new();
        let until = || *began.get_or_init(Instant::now) + Duration::from(patience);
        if !is_for_callers(self.desk.device(), session, bytes) || !self.has_runner() {
            return Err(Unlaunched::Failed(JobError::ModuleFull));
        }
        let key = self.desk.key(session);
        if !self.desk.open(&key, until) {
            return Err(Unlaunched::Late);
        }
        let spec = key.spec;
        let failed = |failure| Unlaunched::Failed(error_of(failure, spec));
        let mut reader = self.reader(bytes).map_err(|_| failed(Failure::Full))?;
        let done = match Keys::known(&key).unwrap_or(Err(Failure::Lost)) {
            Ok(transform) => {
                Request { spec, iv: *iv, input: text.input() }.run(transform, &mut reader, until)
            }
            Err(failure) => Err(Ended::Failed(failure)),
        };
        let room = reader.memory().get_mut(..bytes).unwrap_or_default();
        if done.is_ok() {
            text.take(room);
            self.desk.device().count(spec.algorithm, bytes);
        }
        if done.is_err() || spec.direction == Direction::Decrypt {
            wipe(room);
        }
        self.keep(reader);
        // A key that was given up meanwhile goes with its last request, but its thread does not close it.
        self.desk.give_up(Arc::into_inner(key).map(Arc::new).into_iter().collect());
        done.map_err(|ended| match ended {
            Ended::Late => Unlaunched::Late,
            Ended::Failed(failure) => failed(failure),
        })
    }

    fn forget(&self, is_over: IsOver<'_>) {
        self.desk.give_up(self.desk.keys.forget(is_over));
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // In a forked child there is no runner, and locks may be held by threads that are not here.
        if self.home.is_here() && self.desk.close(FAREWELL) {
            self.desk.keys.close_idle();
        }
    }
}

/// Whole blocks of a cipher.
struct Request<'a> {
    spec: Spec,
    iv: [u8; 16],
    input: &'a [u8],
}

/// How a request ended without a result.
enum Ended {
    Late,
    Failed(Failure),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Attempt> for Ended {
    fn from(attempt: Attempt) -> Self {
        Self::Failed(match attempt {
            // No signal cuts short what nobody waits for inside the kernel; whoever does it again has the input.
            Attempt::Short { .. } => Failure::Errno(libc::EINTR),
            Attempt::Failed(errno) => Failure::of(errno),
        })
    }
}

impl From<ReadError> for Ended {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Late => Self::Late,
            ReadError::Failed(error) => Self::Failed(error.into()),
        }
    }
}

impl Request<'_> {
    /// In pieces, one behind the other in the reader's memory. Only a socket on which all went well is used again.
    fn run(
        &self,
        transform: &Transform,
        reader: &mut Reader,
        until: impl Fn() -> Instant,
    ) -> Result<(), Ended> {
        let socket = transform.seat().map_err(Failure::from)?;
        let Spec { algorithm, direction } = self.spec;
        let encrypts = direction == Direction::Encrypt;
        let (iv_bytes, mut iv, mut start) = (algorithm.iv_bytes(), self.iv, 0);
        for piece in self.input.chunks(piece_bytes(algorithm)) {
            send_all(socket.as_fd(), Order { encrypts, iv: &iv[..iv_bytes], aad_bytes: None }, piece)?;
            if reader.read(socket.as_fd(), start, piece.len(), &until)? != piece.len() {
                return Err(Attempt::Short { is_intact: true }.into());
            }
            let next = next_iv(algorithm.family(), &iv, piece, direction);
            iv = next.unwrap_or_else(|| last_block(&reader.memory()[start..start + piece.len()]));
            start += piece.len();
        }
        transform.idle().push(socket);
        Ok(())
    }
}
