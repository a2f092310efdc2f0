//! The trait [`Engine`]: what does block work (whole blocks with a key and an IV, no buffering, no padding) another way than the inner cipher.
//!
//! `buffering.rs` cuts a message into block work; an [`Engine`] does it, and where none wants it or one fails, [`Fallback`].

pub(crate) mod choice;
pub(crate) mod registry;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use evener::offload::SharedModule;
use evener::offload::policy::Measurement;
use evener_core::job::Memory;
use evener_core::{Algorithm, Direction, Job, Nanos, Session, SessionId};

use crate::ffi::async_job::CurrentJob;
use crate::inner_cipher::context::OwnContext;
use crate::state::Counts;
use crate::state::rows::CipherRow;

/// Whole blocks of one message, or for XTS one data unit.
pub struct BlockRequest<'r> {
    /// ECB, CBC, CTR or XTS with AES.
    pub algorithm: Algorithm,
    /// What to do with the blocks.
    pub direction: Direction,
    /// The key; for XTS both halves.
    pub key: &'r [u8],
    /// IV, first counter block or tweak; zeros for ECB.
    pub iv: [u8; 16],
    /// As much comes out as goes in. Input and output are the same or do not overlap.
    pub memory: Memory<'r>,
    /// The inner provider's own way, for parts that an engine does not do itself.
    pub fallback: Fallback<'r>,
    /// Makes the session of its key, or has made it.
    pub(crate) session: &'r dyn Fn() -> Option<Arc<Session>>,
    /// What the guard says of it.
    pub(crate) turn: Option<&'r Measurement>,
    /// The `ASYNC_JOB` that the call runs in.
    pub(crate) job: Option<CurrentJob<'r>>,
    /// Where pauses of it are counted.
    pub(crate) counts: &'r Counts,
}

impl BlockRequest<'_> {
    /// A session of its key, made once for a message; `None` where Evener has none of such a key.
    #[must_use]
    pub fn session(&self) -> Option<Arc<Session>> {
        (self.session)()
    }

    /// Runs `rest`, in which this thread may do other things and after which another may go on.
    pub(crate) fn while_suspended(&self, rest: impl FnOnce()) {
        self.counts.paused.fetch_add(1, Relaxed);
        match self.turn {
            Some(turn) => turn.while_suspended(rest),
            None => rest(),
        }
    }

    /// Runs `work`, whose time is not the engine's.
    pub(crate) fn excluding<T>(&self, work: impl FnOnce() -> T) -> T {
        match self.turn {
            Some(turn) => turn.excluding(work),
            None => work(),
        }
    }

    /// Time that a module takes for it, as far as that is known; else nothing.
    #[must_use]
    pub fn expected(&self) -> Nanos {
        self.turn.map_or(Nanos::ZERO, Measurement::expected)
    }
}

/// Block work of several messages under one key, of one call that waits for all of it.
pub struct BlockBatch<'r, 'j> {
    /// Each of whole blocks, with a session that may be shared.
    pub jobs: &'r mut [Box<Job<'j>>],
    /// As that of [`BlockRequest`].
    pub fallback: Fallback<'r>,
    /// What the guard says of it.
    pub(crate) turn: Option<&'r Measurement>,
}

impl BlockBatch<'_, '_> {
    /// As [`BlockRequest::excluding`].
    pub(crate) fn excluding<T>(&self, work: impl FnOnce() -> T) -> T {
        match self.turn {
            Some(turn) => turn.excluding(work),
            None => work(),
        }
    }
}

/// How block work failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockError {
    /// The input is what it was, in place too: it is done again on this core.
    Undone,
    /// The same, and nothing was tried: the module is other processes' for longer than this core takes.
    Refused,
    /// In-place input is gone: the message fails.
    Lost,
}

/// Another way to do block work.
pub trait Engine: Sync {
    /// Whether it wants work of this kind and length now; called for each update of at least the threshold. It takes no lock that is held for long, and does not
    /// panic: nothing catches that here.
    fn takes(&self, algorithm: Algorithm, direction: Direction, len_bytes: usize) -> bool;

    /// Requests that a new one would find before it.
    fn ahead(&self) -> u32 {
        0
    }

    /// Core time that its own threads used so far.
    fn core_time(&self) -> Nanos {
        Nanos::ZERO
    }

    /// How other processes share it, where they do.
    fn shared(&self) -> Option<&SharedModule> {
        None
    }

    /// Makes what later requests need: called by the first update of a process that an engine may want, after which a program may shut
    /// itself into a sandbox. An engine that needs nothing need not have it.
    fn prepare(&self) {}

    /// Does the work before it returns; nothing may touch the memory afterwards.
    ///
    /// # Errors
    ///
    /// What became of the input, [`BlockError`].
    fn run(&self, block_request: &mut BlockRequest<'_>) -> Result<(), BlockError>;

    /// Does many jobs at once before it returns: all of them, or none. An engine that does one after the other need not have it.
    ///
    /// # Errors
    ///
    /// What became of their input.
    fn run_batch(&self, _batch: &mut BlockBatch<'_, '_>) -> Result<(), BlockError> {
        Err(BlockError::Undone)
    }

    /// Releases what it has made of a session, with which no request comes any more: its context was freed or has another key. The calling
    /// thread is the program's and waits for nothing here. An engine that keeps nothing between requests need not have it.
    fn close_session(&self, _session: SessionId) {}
}

/// The inner cipher of the libcrypto that loaded us, in contexts of our own. May be used by several threads at once.
#[derive(Clone, Copy)]
pub struct Fallback<'r> {
    row: &'r CipherRow,
    direction: Direction,
    key: &'r [u8],
}

impl<'r> Fallback<'r> {
    pub(crate) fn new(row: &'r CipherRow, direction: Direction, key: &'r [u8]) -> Self {
        Self { row, direction, key }
    }

    /// Does block work on `memory`, starting from `iv`. Costs a context, a key schedule and the work.
    ///
    /// # Errors
    ///
    /// [`BlockError::Undone`] before anything was touched, [`BlockError::Lost`] afterwards.
    pub fn run(&self, iv: &[u8; 16], memory: &mut Memory<'_>) -> Result<(), BlockError> {
        let own = OwnContext::new(self.row).ok_or(BlockError::Undone)?;
        let inner = own.inner();
        let iv = self.row.has_iv().then_some(&iv[..]);
        let ready = inner.init(self.direction == Direction::Encrypt, Some(self.key), iv);
        if !ready || self.row.is_padded() && !inner.set_padding(false) {
            return Err(BlockError::Undone);
        }
        if inner.work(memory) { Ok(()) } else { Err(BlockError::Lost) }
    }
}
