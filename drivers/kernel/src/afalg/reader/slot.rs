//! Where a caller and the thread of a reader meet: a slot with what is asked and what came of it.
//!
//! | stage | who has the parcel | goes on by |
//! |---|---|---|
//! | idle | the caller | [`Slot::request`]: asked |
//! | asked | the slot | the thread takes it: reading; the caller's time is over: left |
//! | reading | the thread, in the kernel | the result: answered; the caller's time is over: left |
//! | answered | the slot | the caller takes it: idle |
//! | left | the slot, or the thread in the kernel | the thread comes back, gives all up and ends: over |
//! | over | none | the thread ends |

use std::ffi::CStr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use evener_core::driver::LAST_WAIT;
use evener_ring::Doorbell;
use nix::time::ClockId;
use zeroize::Zeroizing;

use super::Read;
use crate::afalg::ffi::Operation;
use crate::afalg::transform::{Attempt, read_all, send_all};
use crate::process::served::{Inherited, Service, leave_locked};

/// What goes to the thread and comes back: in one box, and the same one for all requests.
#[derive(Default)]
pub(super) struct Parcel {
    pub(super) read: Option<Read>,
    /// Where the result comes to, and before that what is to be sent.
    pub(super) space: Zeroizing<Vec<u8>>,
    pub(super) failed: Option<Attempt>,
}

/// Caller and thread of one reader.
pub(super) struct Slot {
    stage: Mutex<Stage>,
    /// Rung when there is something to read, or nothing will ever be.
    pub(super) asked: Doorbell,
    answered: Doorbell,
    /// The thread's clock; [`NOT_BEGUN`], [`ENDED`]. The thread writes it.
    clock: AtomicI32,
    /// Threads that are not waited for any more, of all readers and runners of one module.
    stuck: Arc<AtomicUsize>,
}

/// How a request stands.
#[derive(Default)]
pub(super) enum Stage {
    #[default]
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

impl Parcel {
    pub(super) fn make_space(&mut self, bytes: usize) {
        if self.space.len() < bytes {
            // Never grown, because what was in it would stay behind unwiped.
            self.space = Zeroizing::new(vec![0; bytes.next_power_of_two()]);
        }
    }

    /// Sends what is to be sent, and sleeps until the result is in the space.
    fn go_through(&mut self) {
        let Some(Read { socket, key, bytes, sends }) = &self.read else { return };
        let space = &mut self.space[..*bytes];
        let sends = sends.as_ref().filter(|_| !cfg!(mutant = "nothing_sent"));
        let sent = match sends {
            Some(iv) => send_all(socket, Operation::of(key.spec, iv), space),
            None => socket.checked().map_err(Attempt::from),
        };
        self.failed = sent.and_then(|socket| read_all(socket, space)).err();
    }
}

impl Slot {
    pub(super) fn new(stuck: Arc<AtomicUsize>) -> Self {
        let (asked, answered) = Default::default();
        Self { stage: Mutex::default(), asked, answered, clock: AtomicI32::new(NOT_BEGUN), stuck }
    }

    /// The thread's clock, while it is there. Relaxed, here and where it is written: a sum that is sampled.
    pub(super) fn clock(&self) -> Option<ClockId> {
        let clock = self.clock.load(Ordering::Relaxed);
        (!matches!(clock, NOT_BEGUN | ENDED)).then(|| ClockId::from_raw(clock))
    }

    /// Whether the thread has ended.
    pub(super) fn is_over(&self) -> bool {
        self.clock.load(Ordering::Relaxed) == ENDED
    }

    /// Asks, and returns what came back.
    pub(super) fn request(&self, parcel: Box<Parcel>, timeout: Duration) -> Option<Box<Parcel>> {
        // Before the thread can answer: no look is needed between asking and sleeping.
        let mut ticket = self.answered.listen();
        *self.stage() = Stage::Asked(parcel);
        self.asked.ring_one();
        let (mut left, mut until, mut is_last) = (timeout, None, false);
        loop {
            let is_late = left.is_zero() || !self.answered.wait(ticket, Some(left));
            ticket = self.answered.listen();
            let mut stage = self.stage();
            match std::mem::replace(&mut *stage, Stage::Reading) {
                Stage::Answered(parcel) => {
                    *stage = Stage::Idle;
                    return Some(parcel);
                }
                under_way if is_late && is_last => {
                    self.leave(stage, under_way);
                    return None;
                }
                under_way => *stage = under_way,
            }
            drop(stage);
            if is_late {
                // This process may have been stopped, and the thread goes on only now.
                (left, until, is_last) = (LAST_WAIT.into(), None, true);
                continue;
            }
            // Woken for nothing, which is rare: no clock was read before.
            let now = Instant::now();
            left = until.get_or_insert(now + left).saturating_duration_since(now);
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

    /// The thread's life. All signals are blocked: one that ended a read early would cost the request another attempt. Nothing is allocated, and freed only
    /// where the caller left.
    fn live(&self) {
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
    pub(super) fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service for Slot {
    const NAME: &'static CStr = c"evener-reader";

    fn serve(&self) {
        self.clock.store(own_clock(), Ordering::Relaxed);
        let _end = End(&self.clock);
        self.live();
    }
}

/// The end of a thread, whose clock is another's from then on.
struct End<'s>(&'s AtomicI32);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(ENDED, Ordering::Relaxed);
    }
}

impl Inherited for Slot {
    /// What the thread was changing is forgotten, and a parcel that it has, in the kernel, is not reached from here.
    fn is_whole(&mut self) -> bool {
        leave_locked(&mut self.stage);
        true
    }
}

/// No clock of a thread: these are negative.
const NOT_BEGUN: i32 = 0;
const ENDED: i32 = 1;

/// The clock of the calling thread, as others may ask it: `CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED` of
/// `include/linux/posix-timers_types.h`, as in glibc's `pthread_getcpuclockid`.
fn own_clock() -> i32 {
    !rustix::thread::gettid().as_raw_nonzero().get() << 3 | 6
}
