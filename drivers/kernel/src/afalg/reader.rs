//! A thread that reads results for whoever may leave: it alone stands in the kernel, with memory of its own.
//!
//! `read -> (asked) -> the thread: read -> (answered) -> read`. One caller at a time has a reader. A caller whose time is over leaves:
//! the thread has socket, memory and key then, gives them up when it comes back from the kernel, and ends.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use evener_core::Nanos;
use nix::sys::signal::SigSet;
use nix::time::ClockId;
use zeroize::Zeroizing;

use super::{Attempt, Transform, read_all};
use crate::keys::Entry;

/// A thread, and who has it.
pub(super) struct Reader {
    slot: Arc<Slot>,
    /// Where results come to, between two requests.
    room: Zeroizing<Vec<u8>>,
}

/// What a thread is to read: a request that was handed to the kernel already.
pub(super) struct Read {
    pub(super) socket: OwnedFd,
    /// Until it is closed, the socket needs its transform.
    pub(super) key: Arc<Entry<Transform>>,
    pub(super) bytes: usize,
}

/// A result that is there.
pub(super) struct Answered {
    pub(super) read: Read,
    pub(super) done: Result<(), Attempt>,
}

struct Slot {
    stage: Mutex<Stage>,
    /// There is something to read, or nothing will ever be.
    asked: Condvar,
    answered: Condvar,
    /// The thread's clock.
    clock: ClockId,
    /// Threads that nobody waits for any more, of all readers and runners of one module.
    stuck: Arc<AtomicUsize>,
}

enum Stage {
    Idle,
    Asked(Read, Zeroizing<Vec<u8>>),
    /// The thread is in the kernel.
    Reading,
    Answered(Answered, Zeroizing<Vec<u8>>),
    /// The caller left; with what the thread has not begun.
    Left(Option<Read>),
    /// The reader goes.
    Over,
}

impl Reader {
    /// Starts a thread.
    pub(super) fn start(stuck: &Arc<AtomicUsize>) -> io::Result<Self> {
        let (tell, told) = std::sync::mpsc::sync_channel::<Arc<Slot>>(1);
        let stuck = Arc::clone(stuck);
        let life = move || {
            let slot = Arc::new(Slot::new(own_clock(), stuck));
            if tell.send(Arc::clone(&slot)).is_ok() {
                slot.live();
            }
        };
        Builder::new().name("evener-reader".to_owned()).stack_size(STACK_BYTES).spawn(life)?;
        let slot = told.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(Self { slot, room: Zeroizing::default() })
    }

    /// Has the thread read, and waits for it until that moment. The result stands at the front of [`Reader::room`].
    ///
    /// `None` where the time is over: the reader is of no use any more.
    pub(super) fn read(&mut self, read: Read, until: Instant) -> Option<Answered> {
        if self.room.len() < read.bytes {
            // Never grown, because what was in it would stay behind unwiped.
            self.room = Zeroizing::new(vec![0; read.bytes.next_power_of_two()]);
        }
        let room = std::mem::take(&mut self.room);
        *self.slot.stage() = Stage::Asked(read, room);
        self.slot.asked.notify_one();
        let (answered, room) = self.slot.wait(until)?;
        self.room = room;
        Some(answered)
    }

    /// Its memory.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.room
    }

    /// Its thread's clock.
    pub(super) fn clock(&self) -> Clock {
        Clock(Arc::downgrade(&self.slot))
    }
}

/// The clock of a reader's thread.
pub(super) struct Clock(Weak<Slot>);

impl Clock {
    /// Whether the thread is there.
    pub(super) fn goes_on(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Core time that the thread has used so far; nothing where it has ended.
    pub(super) fn time(&self) -> Nanos {
        let time = self.0.upgrade().and_then(|slot| slot.clock.now().ok());
        let time = time.map(Duration::from).unwrap_or_default();
        Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// It reads, and nothing else.
const STACK_BYTES: usize = 128 << 10;

impl Drop for Reader {
    fn drop(&mut self) {
        let mut stage = self.slot.stage();
        if matches!(*stage, Stage::Idle) {
            *stage = Stage::Over;
            drop(stage);
            self.slot.asked.notify_one();
        }
    }
}

impl Slot {
    fn new(clock: ClockId, stuck: Arc<AtomicUsize>) -> Self {
        let (asked, answered) = Default::default();
        Self { stage: Mutex::new(Stage::Idle), asked, answered, clock, stuck }
    }

    /// What was asked for, once it is there.
    fn wait(&self, until: Instant) -> Option<(Answered, Zeroizing<Vec<u8>>)> {
        let mut stage = self.stage();
        loop {
            match std::mem::replace(&mut *stage, Stage::Idle) {
                Stage::Answered(answered, room) => return Some((answered, room)),
                under_way => *stage = under_way,
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // Relaxed: read before a driver is made, which may be a moment late.
                self.stuck.fetch_add(1, Ordering::Relaxed);
                let under_way = std::mem::replace(&mut *stage, Stage::Left(None));
                if let Stage::Asked(read, _) = under_way {
                    // To close a socket or a key may be a call that takes as long as a request: not on this thread.
                    *stage = Stage::Left(Some(read));
                    drop(stage);
                    self.asked.notify_one();
                }
                return None;
            }
            stage = self.answered.wait_timeout(stage, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The thread's life.
    fn live(&self) {
        // A signal that ended a read early would cost the request another attempt. Nothing depends on it.
        SigSet::all().thread_block().ok();
        while let Some((read, mut room)) = self.next() {
            let done = read_all(read.socket.as_fd(), &mut room[..read.bytes]);
            let mut stage = self.stage();
            if matches!(*stage, Stage::Left(_)) {
                break;
            }
            *stage = Stage::Answered(Answered { read, done }, room);
            drop(stage);
            self.answered.notify_one();
        }
        let Stage::Left(left) = std::mem::replace(&mut *self.stage(), Stage::Over) else { return };
        // Not under the lock.
        drop(left);
        self.stuck.fetch_sub(1, Ordering::Relaxed);
    }

    fn next(&self) -> Option<(Read, Zeroizing<Vec<u8>>)> {
        let mut stage = self.stage();
        loop {
            match std::mem::replace(&mut *stage, Stage::Reading) {
                Stage::Asked(read, room) => return Some((read, room)),
                over @ (Stage::Over | Stage::Left(_)) => {
                    *stage = over;
                    return None;
                }
                idle => *stage = idle,
            }
            stage = self.asked.wait(stage).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The stage is whole between any two statements, so a panic elsewhere does not spoil it.
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The clock of the calling thread, as others may ask it: `CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED` of
/// `include/linux/posix-timers_types.h`, as in glibc's `pthread_getcpuclockid`.
fn own_clock() -> ClockId {
    ClockId::from_raw(!rustix::thread::gettid().as_raw_nonzero().get() << 3 | 6)
}

#[cfg(test)]
mod tests {
    use evener_core::{Algorithm, Direction, Padding, Session};
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::keys::Keys;

    const BYTES: usize = 64;

    /// A pipe in place of a module: what is read, and where it is written.
    fn pipe() -> (Read, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let session =
            Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[7; 16]).unwrap();
        let key = Keys::default().entry(&session, drop);
        (Read { socket: ours.into(), key, bytes: BYTES }, theirs)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    fn wait_until(is_so: impl Fn() -> bool) {
        while !is_so() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn what_comes_is_in_the_reader_s_room_and_the_thread_reads_again() {
        let stuck = Arc::default();
        let mut reader = Reader::start(&stuck).unwrap();
        let (mut read, mut writer) = pipe();
        for number in 1..=3 {
            writer.write_all(&[number; BYTES]).unwrap();
            let answered = reader.read(read, soon()).unwrap();
            assert!(answered.done.is_ok() && reader.room()[..BYTES] == [number; BYTES]);
            read = answered.read;
        }
        drop(writer);
        let answered = reader.read(read, soon()).unwrap();
        assert!(matches!(answered.done, Err(Attempt::Short { is_intact: true })), "nothing came");
        assert_eq!(stuck.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn who_leaves_leaves_the_thread_with_all_it_needs_until_it_is_back() {
        let stuck = Arc::default();
        let mut reader = Reader::start(&stuck).unwrap();
        let (read, mut writer) = pipe();
        let key = Arc::clone(&read.key);
        assert!(reader.read(read, Instant::now() + Duration::from_millis(20)).is_none());
        drop(reader);
        assert_eq!((stuck.load(Ordering::Relaxed), Arc::strong_count(&key)), (1, 2));
        writer.write_all(&[1; BYTES]).unwrap();
        wait_until(|| stuck.load(Ordering::Relaxed) == 0);
        wait_until(|| Arc::strong_count(&key) == 1);
    }

    #[test]
    fn who_has_no_time_at_all_leaves_begun_or_not() {
        for _ in 0..100 {
            let stuck = Arc::default();
            let mut reader = Reader::start(&stuck).unwrap();
            let (read, writer) = pipe();
            let key = Arc::clone(&read.key);
            assert!(reader.read(read, Instant::now()).is_none());
            drop((reader, writer));
            wait_until(|| (stuck.load(Ordering::Relaxed), Arc::strong_count(&key)) == (0, 1));
        }
    }

    #[test]
    fn the_thread_of_a_reader_that_goes_ends() {
        let reader = Reader::start(&Arc::default()).unwrap();
        let slot = Arc::downgrade(&reader.slot);
        drop(reader);
        wait_until(|| slot.strong_count() == 0);
    }

    #[test]
    fn the_thread_s_core_time_is_told_to_others() {
        let mut reader = Reader::start(&Arc::default()).unwrap();
        let (mut read, mut writer) = pipe();
        let clock = reader.clock();
        let before = clock.time();
        for _ in 0..1_000 {
            writer.write_all(&[1; BYTES]).unwrap();
            read = reader.read(read, soon()).unwrap().read;
        }
        let used = clock.time() - before;
        assert!(Nanos::ZERO < before && before < used, "{before:?} {used:?}");
        drop(reader);
        wait_until(|| !clock.goes_on());
        assert_eq!(clock.time(), Nanos::ZERO);
    }
}
