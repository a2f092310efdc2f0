//! A thread that reads results for a caller who may leave: it alone stands in the kernel, with memory of its own.
//!
//! `fill -> read -> (asked) -> the thread: send, read -> (answered) -> read`. One caller at a time has a reader. A caller whose time is
//! over leaves: the thread has socket, memory and key then, gives them up when it comes back from the kernel, and ends.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use evener_core::Nanos;
use evener_fd::CheckedFd;
use evener_ring::Doorbell;
use nix::sys::signal::SigSet;
use nix::time::ClockId;
use zeroize::Zeroizing;

use super::ffi::Operation;
use super::transform::{Attempt, Transform, read_all, send_all};
use crate::pool::key_cache::Entry;

/// A thread, and who has it.
pub(super) struct Reader {
    slot: Arc<Slot>,
    /// `None` once the caller left.
    parcel: Option<Box<Parcel>>,
}

/// What goes to the thread and comes back: in one box, and the same one for all requests.
#[derive(Default)]
struct Parcel {
    read: Option<Read>,
    /// Where the result comes to, and before that what is to be sent.
    room: Zeroizing<Vec<u8>>,
    failed: Option<Attempt>,
}

/// What a thread is to read.
pub(super) struct Read {
    pub(super) socket: CheckedFd,
    /// Until it is closed, the socket needs its transform.
    pub(super) key: Arc<Entry<Transform>>,
    pub(super) bytes: usize,
    /// The IV with which the thread hands the front of the room to the kernel before; `None` where the caller did that.
    pub(super) sends: Option<[u8; 16]>,
}

/// A result that is there.
pub(super) struct Answered<'r> {
    pub(super) read: Read,
    /// Or what was to become it.
    pub(super) room: &'r mut [u8],
    pub(super) done: Result<(), Attempt>,
}

struct Slot {
    stage: Mutex<Stage>,
    /// Rung when there is something to read, or nothing will ever be.
    asked: Doorbell,
    answered: Doorbell,
    /// The thread's clock.
    clock: ClockId,
    /// Threads that nobody waits for any more, of all readers and runners of one module.
    stuck: Arc<AtomicUsize>,
}

enum Stage {
    Idle,
    Asked(Box<Parcel>),
    /// The thread is in the kernel.
    Reading,
    Answered(Box<Parcel>),
    /// The caller left; with what the thread has not begun.
    Left(Option<Box<Parcel>>),
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
        Ok(Self { slot, parcel: Some(Box::default()) })
    }

    /// Puts what the thread is to send into its room.
    pub(super) fn fill(&mut self, text: &[u8]) {
        if let Some(parcel) = &mut self.parcel {
            parcel.make_room(text.len());
            parcel.room[..text.len()].copy_from_slice(text);
        }
    }

    /// Has the thread read, and waits for it for so long, at most twice. `None` where the time is over: the reader is of no use any more.
    pub(super) fn read(&mut self, read: Read, timeout: Duration) -> Option<Answered<'_>> {
        let (mut parcel, bytes) = (self.parcel.take()?, read.bytes);
        parcel.make_room(bytes);
        parcel.read = Some(read);
        let parcel = self.parcel.insert(self.slot.request(parcel, timeout)?);
        let done = parcel.failed.take().map_or(Ok(()), Err);
        Some(Answered { read: parcel.read.take()?, room: &mut parcel.room[..bytes], done })
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
    pub(super) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Core time that the thread has used so far; nothing where it has ended.
    pub(super) fn time(&self) -> Nanos {
        let time = self.0.upgrade().and_then(|slot| slot.clock.now().ok());
        let time = time.map(Duration::from).unwrap_or_default();
        Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// It sends and reads, and nothing else.
const STACK_BYTES: usize = 128 << 10;

impl Drop for Reader {
    fn drop(&mut self) {
        let mut stage = self.slot.stage();
        if matches!(*stage, Stage::Idle) {
            *stage = Stage::Over;
            drop(stage);
            self.slot.asked.ring_one();
        }
    }
}

impl Parcel {
    fn make_room(&mut self, bytes: usize) {
        if self.room.len() < bytes {
            // Never grown, because what was in it would stay behind unwiped.
            self.room = Zeroizing::new(vec![0; bytes.next_power_of_two()]);
        }
    }

    /// Sends what is to be sent, and sleeps until the result is in the room.
    fn go_through(&mut self) {
        let Some(Read { socket, key, bytes, sends }) = &self.read else { return };
        let room = &mut self.room[..*bytes];
        let sends = sends.as_ref().filter(|_| !cfg!(mutant = "nothing_sent"));
        let sent = match sends {
            Some(iv) => send_all(socket, Operation::of(key.spec, iv), room),
            None => socket.checked().map_err(Attempt::from),
        };
        self.failed = sent.and_then(|socket| read_all(socket, room)).err();
    }
}

impl Slot {
    fn new(clock: ClockId, stuck: Arc<AtomicUsize>) -> Self {
        let (asked, answered) = Default::default();
        Self { stage: Mutex::new(Stage::Idle), asked, answered, clock, stuck }
    }

    /// Asks, and returns what came back.
    fn request(&self, parcel: Box<Parcel>, timeout: Duration) -> Option<Box<Parcel>> {
        // Before the thread can answer: no look is needed between asking and sleeping.
        let mut ticket = self.answered.listen();
        *self.stage() = Stage::Asked(parcel);
        self.asked.ring_one();
        let (mut left, mut until) = (timeout, None);
        loop {
            let is_late = left.is_zero() || !self.answered.wait(ticket, Some(left));
            ticket = self.answered.listen();
            let mut stage = self.stage();
            match std::mem::replace(&mut *stage, Stage::Reading) {
                Stage::Answered(parcel) => {
                    *stage = Stage::Idle;
                    return Some(parcel);
                }
                under_way if is_late => {
                    self.leave(stage, under_way);
                    return None;
                }
                under_way => *stage = under_way,
            }
            drop(stage);
            // Woken for nothing, which is rare: no clock was read before.
            let now = Instant::now();
            left = until.get_or_insert(now + timeout).saturating_duration_since(now);
        }
    }

    /// Leaves the thread to itself, with what it has not begun.
    fn leave(&self, mut stage: MutexGuard<'_, Stage>, under_way: Stage) {
        // Relaxed: read before a driver is made, which may be a moment late.
        self.stuck.fetch_add(1, Ordering::Relaxed);
        // To close a socket or a key may be a call that takes as long as a request: not on this thread.
        let parcel = if let Stage::Asked(parcel) = under_way { Some(parcel) } else { None };
        *stage = Stage::Left(parcel);
        drop(stage);
        self.asked.ring_one();
    }

    /// The thread's life.
    fn live(&self) {
        // A signal that ended a read early would cost the request another attempt. Nothing depends on it.
        SigSet::all().thread_block().ok();
        while let Some(mut parcel) = self.next() {
            parcel.go_through();
            let mut stage = self.stage();
            if matches!(*stage, Stage::Left(_)) {
                break;
            }
            *stage = Stage::Answered(parcel);
            drop(stage);
            self.answered.ring_one();
        }
        let Stage::Left(left) = std::mem::replace(&mut *self.stage(), Stage::Over) else { return };
        // Not under the lock.
        drop(left);
        self.stuck.fetch_sub(1, Ordering::Relaxed);
    }

    /// What is to be read next. Who looks before it sleeps often finds it: the caller got the core with the answer.
    fn next(&self) -> Option<Box<Parcel>> {
        loop {
            if let Some(next) = self.check() {
                return next;
            }
            let ticket = self.asked.listen();
            if let Some(next) = self.check() {
                return next;
            }
            self.asked.wait(ticket, None);
        }
    }

    /// What is to be read; `None` inside where nothing ever will be, and outside where nothing is yet.
    fn check(&self) -> Option<Option<Box<Parcel>>> {
        let mut stage = self.stage();
        match std::mem::replace(&mut *stage, Stage::Reading) {
            Stage::Asked(parcel) => Some(Some(parcel)),
            over @ (Stage::Over | Stage::Left(_)) => {
                *stage = over;
                Some(None)
            }
            idle => {
                *stage = idle;
                None
            }
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
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::pool::key_cache::KeyCache;

    const BYTES: usize = 64;

    /// A pipe in place of a module: what is read, and where it is written.
    fn pipe() -> (Read, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let session =
            Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[7; 16]).unwrap();
        let key = KeyCache::default().entry(&session, drop);
        (Read { socket: CheckedFd::new(ours.into()).unwrap(), key, bytes: BYTES, sends: None }, theirs)
    }

    const SOON: Duration = Duration::from_secs(60);

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
            let answered = reader.read(read, SOON).unwrap();
            assert!(answered.done.is_ok() && *answered.room == [number; BYTES]);
            read = answered.read;
        }
        drop(writer);
        let answered = reader.read(read, SOON).unwrap();
        assert!(matches!(answered.done, Err(Attempt::Short { is_intact: true })), "nothing came");
        assert_eq!(stuck.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_the_thread_is_to_send_is_there_before_it_reads() {
        let mut reader = Reader::start(&Arc::default()).unwrap();
        let (read, mut module) = pipe();
        module.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let module = std::thread::spawn(move || {
            let mut text = [0; BYTES];
            module.read_exact(&mut text).unwrap();
            module.write_all(&text.map(|byte| byte + 1)).unwrap();
        });
        reader.fill(&[4; BYTES]);
        let answered = reader.read(Read { sends: Some([0; 16]), ..read }, SOON / 6).unwrap();
        assert!(answered.done.is_ok() && *answered.room == [5; BYTES]);
        module.join().unwrap();
    }

    #[test]
    fn a_result_is_not_read_from_a_file_that_the_program_has_there_by_now() {
        let mut reader = Reader::start(&Arc::default()).unwrap();
        for sends in [None, Some([0; 16])] {
            let (read, _module) = pipe();
            let (theirs, mut end) = UnixStream::pair().unwrap();
            end.write_all(&[9; BYTES]).unwrap();
            super::super::ffi::put_over(read.socket.known().number(), theirs.as_fd());
            let answered = reader.read(Read { sends, ..read }, SOON).unwrap();
            assert!(matches!(answered.done, Err(Attempt::Failed(rustix::io::Errno::BADF))));
            drop(answered.read);
            let (mut theirs, mut came) = (theirs, [0; BYTES]);
            theirs.read_exact(&mut came).unwrap();
            assert_eq!(came, [9; BYTES], "what came for the program is there");
            end.set_nonblocking(true).unwrap();
            assert!(end.read(&mut came).is_err(), "nothing was sent to it");
        }
    }

    #[test]
    fn who_leaves_leaves_the_thread_with_all_it_needs_until_it_is_back() {
        let stuck = Arc::default();
        let mut reader = Reader::start(&stuck).unwrap();
        let (read, mut writer) = pipe();
        let key = Arc::clone(&read.key);
        assert!(reader.read(read, Duration::from_millis(20)).is_none());
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
            assert!(reader.read(read, Duration::ZERO).is_none());
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
            read = reader.read(read, SOON).unwrap().read;
        }
        let used = clock.time() - before;
        assert!(Nanos::ZERO < before && before < used, "{before:?} {used:?}");
        drop(reader);
        wait_until(|| !clock.is_alive());
        assert_eq!(clock.time(), Nanos::ZERO);
    }
}
