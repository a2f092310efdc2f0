//! Single requests with a deadline: a thread of the driver, a reader, sleeps in the kernel in the caller's place.
//!
//! 1. A runner opens the key, for the kernel may sleep over keys.
//! 2. The caller hands a long text to the kernel, which waits for nothing (`ffi.rs`); a short one it copies to the space of a reader, who sends it
//!    (`reader/`).
//! 3. The reader sleeps in the kernel until the module has answered, and the caller gets the result from the reader's buffer; or the time is
//!    over, the caller leaves, and the reader stays behind with all that the kernel still writes to.
//!
//! Beside the pool that jobs go through (`requests/jobs.rs`) that saves what jobs of many threads need. It is for requests of one chunk.

use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use evener_core::driver::{SingleDriver, Text, Unanswered};
use evener_core::{Algorithm, Direction, HasEnded, JobError, Nanos, Padding, WithIv};

use super::Afalg;
use super::exchange::CHUNK_BYTES;
use super::ffi::Operation;
use super::reader::{Clock, Read, Reader};
use super::transform::{Attempt, send_all};
use crate::pool::device::{Failure, error_of, is_for_callers};
use crate::pool::free_list::FreeList;
use crate::pool::key_cache::KeyCache;
use crate::pool::syscall_pool::{SHUTDOWN_GRACE, SyscallPool};
use crate::process::served::{Served, leave_locked};
use crate::process::wipe::wipe;

/// Texts up to this length are sent by the reader. That costs a copy more, but of two threads that take turns on one core Linux 6.1 lets
/// the one that had the core less take it from the other when it is woken. Where callers send, that is the reader: each request wakes it
/// while its caller still runs, and puts it to sleep twice. Measured in docs/design/kernel-modules.md: up to this length the copy is cheaper.
const SENT_BY_READERS_MAX: usize = 16 << 10;

/// Of one process: a forked child makes its own.
pub(crate) struct DeadlineDriver {
    /// Where keys are opened and closed.
    pool: Served<SyscallPool<Afalg>>,
    /// Whether its runner could be started, which the first request does.
    has_runner: OnceLock<bool>,
    idle: FreeList<Reader>,
    /// Of all readers, those that have ended too until the next is started.
    clocks: Mutex<Vec<Clock>>,
    /// Threads that never came back, of the module.
    stuck: Arc<AtomicUsize>,
}

impl DeadlineDriver {
    pub(crate) fn new(device: Arc<Afalg>, stuck: Arc<AtomicUsize>) -> Self {
        let pool = Served::new(SyscallPool::new(device, Arc::clone(&stuck), 1));
        let (has_runner, idle, clocks) = Default::default();
        Self { pool, has_runner, idle, clocks, stuck }
    }

    fn reader(&self) -> io::Result<Reader> {
        if let Some(idle_one) = self.idle.take() {
            return Ok(idle_one);
        }
        let reader = Reader::start(&self.stuck)?;
        let mut clocks = self.clocks();
        clocks.retain(Clock::is_alive);
        clocks.push(reader.clock());
        Ok(reader)
    }

    fn clocks(&self) -> MutexGuard<'_, Vec<Clock>> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_runner(&self) -> bool {
        *self.has_runner.get_or_init(|| SyscallPool::start_runner(&self.pool).is_ok())
    }
}

impl SingleDriver for DeadlineDriver {
    fn takes(&self, algorithm: Algorithm, bytes: usize) -> bool {
        bytes <= CHUNK_BYTES && is_for_callers(self.pool.device(), algorithm, bytes)
    }

    fn run_single(&self, keyed: WithIv<'_>, text: &mut dyn Text, timeout: Nanos) -> Result<(), Unanswered> {
        let WithIv { session, iv } = keyed;
        let (timeout, bytes) = (Duration::from(timeout), text.input().len());
        if !self.takes(session.algorithm(), bytes) || session.padding() != Padding::None || !self.has_runner()
        {
            return Err(Unanswered::Failed(JobError::ModuleFull));
        }
        let key = self.pool.key(session);
        if !self.pool.open(&key, timeout) {
            return Err(Unanswered::Late);
        }
        let spec = key.spec;
        let failed = |failure| Unanswered::Failed(error_of(failure, spec));
        let begun = || -> Result<_, Failure> {
            let transform = KeyCache::known(&key).unwrap_or(Err(Failure::Lost))?;
            let (socket, mut reader) = (transform.request_socket()?, self.reader()?);
            let sends = (bytes <= SENT_BY_READERS_MAX).then_some(*iv);
            match sends {
                Some(_) => reader.fill(text.input()),
                None => drop(send_all(&socket, Operation::of(spec, iv), text.input())?),
            }
            Ok((reader, socket, sends))
        };
        let (mut reader, socket, sends) = begun().map_err(failed)?;
        let Some(answered) = reader.read(Read { socket, key, bytes, sends }, timeout) else {
            return Err(Unanswered::Late);
        };
        if answered.done.is_ok() {
            text.take(answered.space);
        }
        if answered.done.is_err() || spec.direction == Direction::Decrypt {
            wipe(answered.space);
        }
        let Read { socket, key, .. } = answered.read;
        let done = answered.done.map_err(|attempt| failed(attempt.into()));
        self.idle.put(reader);
        // Only a socket on which all went well is used again.
        if let (Ok(()), Some(Ok(transform))) = (&done, KeyCache::known(&key)) {
            self.pool.device().count(spec.algorithm, bytes);
            transform.keep(socket);
        }
        if let Some(last) = Arc::into_inner(key) {
            // It was given up meanwhile, but this thread does not close it.
            self.pool.release_keys(vec![Arc::new(last)]);
        }
        done
    }

    fn core_time(&self) -> Nanos {
        self.clocks().iter().fold(self.pool.core_time(), |sum, clock| sum + clock.time())
    }

    fn evict(&self, has_ended: HasEnded<'_>) {
        self.pool.release_keys(self.pool.keys.evict(has_ended));
    }
}

impl Drop for DeadlineDriver {
    fn drop(&mut self) {
        if !self.pool.is_of_this_process() {
            // A thread that is not here may hold this lock; of the rest each part knows.
            leave_locked(&mut self.clocks);
        } else {
            self.pool.release_keys(self.pool.keys.evict(&|_| true));
            self.pool.close(SHUTDOWN_GRACE);
        }
    }
}

impl From<Attempt> for Failure {
    fn from(attempt: Attempt) -> Self {
        match attempt {
            // The caller repeats it and has the input.
            Attempt::Short { .. } => Self::Errno(libc::EINTR),
            Attempt::Failed(errno) => Self::of(errno),
        }
    }
}
