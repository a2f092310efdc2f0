//! Whether messages go by a kernel of ours or by the inner cipher, on this machine with this libcrypto: measured once for each class, and kept for
//! the user's other processes.
//!
//! ```text
//!              a first context                    20 ms of work                    measured
//!   NotLooked ----------------> kept? -no-> Open -----------------> both in turns ----------> Kernel | Inner
//!                                 `---yes------------------------------------------------------^
//! ```
//!
//! However that was chosen, a kernel answers a known question in each process before it works on a program's message, and one that computes something else than
//! the inner cipher is not used there.
//!
//! Until it is settled the inner cipher works, and what it works is added up by context, so that no counter is shared between threads on the way of
//! a request. Each millisecond of it is told to the user's other processes, so that programs that live shortly settle together: who brings a key behind 20 ms of all
//! of them compares, and takes those for that, so that it is one. A program that encrypts little settles nothing and pays for nothing but a look at the kept choice. What is
//! told and settled goes into words of a file that was mapped at that look: nothing is opened later, when the program may have forbidden it.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, TryLockError};

use evener_ring::Mapping;

pub(crate) use super::class::Class;
use super::{choice_file, kernel_check, kernel_timing};
use crate::state::rows::{CipherRow, Native};

/// Who does the messages of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Not settled: the inner cipher, and its work is added up.
    Open,
    Inner,
    Kernel,
}

impl Choice {
    pub(super) const fn word(self) -> u32 {
        match self {
            Self::Open => 0,
            Self::Inner => 1,
            Self::Kernel => 2,
        }
    }

    /// A word that is none says nothing.
    pub(super) const fn of(word: u32) -> Self {
        match word {
            1 => Self::Inner,
            2 => Self::Kernel,
            _ => Self::Open,
        }
    }
}

/// What the process knows.
struct Choices {
    /// 1 once a thread looks, or has looked, for what is kept.
    looked: AtomicU32,
    settled: [AtomicU32; Class::COUNT],
    /// 1 once the kernel was asked a known answer.
    answers: [AtomicU32; Class::COUNT],
    /// Predicted core time of the inner cipher's messages, in nanoseconds.
    worked: [AtomicU32; Class::COUNT],
    /// Where it is kept. Only ever tried: of a forked child another thread may have had the lock.
    file: Mutex<Option<Mapping>>,
}

static CHOICES: Choices = Choices {
    looked: AtomicU32::new(0),
    settled: [const { AtomicU32::new(0) }; Class::COUNT],
    answers: [const { AtomicU32::new(0) }; Class::COUNT],
    worked: [const { AtomicU32::new(0) }; Class::COUNT],
    file: Mutex::new(None),
};

/// Work behind which the two ways are compared, in nanoseconds. Assumed, not measured: 20 ms, ten times what comparing takes, so that a program
/// that ends right after it was slower by a tenth of that work, once for a machine.
const WORKED_NS: u32 = 20_000_000;

/// Work of a process after which it tells the others, in nanoseconds: programs that live shortly settle together what none of them would alone. Assumed, not
/// measured: 1 ms, which at 4 KiB a message is 800 of them.
const TOLD_NS: u32 = 1_000_000;

/// What is predicted of the inner cipher: of a message, and of a byte of text, in nanoseconds by 4 bytes. OpenSSL 3.0 on a core of 2023, 16 bytes to
/// 16 KiB (`docs/results/kernels.md`); off by a factor of two it does no harm.
const MESSAGE_NS: u64 = 300;
const BYTES_IN_NS: u64 = 4;

/// A context that lives long tells of its work behind so much, by the same prediction about [`TOLD_NS`]: one may have its key for ever, and end without being freed.
const MUCH_MESSAGES: u32 = 4_096;
const MUCH_BYTES: u64 = 4 << 20;

/// Work of one context that is not in the process's sum yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    messages: u32,
    bytes: u64,
    /// Whether others were told within a message, and what they have said is not looked at yet.
    has_told: bool,
}

impl Work {
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.messages = self.messages.wrapping_add(1);
    }

    /// More text; whether it is time to tell of it.
    #[inline]
    pub(crate) fn text(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.wrapping_add(bytes as u64);
        self.bytes >= MUCH_BYTES
    }

    /// Whether it is time to tell of it, or to look at what is settled by then.
    #[inline]
    pub(crate) fn is_much(&self) -> bool {
        self.messages >= MUCH_MESSAGES || self.bytes >= MUCH_BYTES || self.has_told
    }

    /// Others were told within a message.
    pub(crate) fn told(&mut self) {
        self.has_told = true;
    }

    /// In nanoseconds, for a short message is less than a microsecond; nothing is left here.
    fn take_ns(&mut self) -> u32 {
        let Self { messages, bytes, .. } = std::mem::take(self);
        let ns = (u64::from(messages) * MESSAGE_NS).saturating_add(bytes / BYTES_IN_NS);
        u32::try_from(ns).unwrap_or(WORKED_NS)
    }
}

/// To be called when a provider is loaded: looks at what may change later.
pub(crate) fn prepare() {
    choice_file::prepare();
}

/// What was settled so far.
fn known(class: Class) -> Choice {
    // Relaxed: a word that says all.
    Choice::of(class.word(&CHOICES.settled).load(Relaxed))
}

/// Who does messages of a class whose key comes now; `None` where [`settle`] has something to do first.
pub(crate) fn at_once(native: &Native, class: Class) -> Option<Choice> {
    let choice = if native.is_told { Choice::Kernel } else { known(class) };
    // Relaxed: each says all.
    match (choice, class.word(&CHOICES.answers).load(Relaxed)) {
        (Choice::Kernel, _) if kernel_check::is_out_of_service(class) => Some(Choice::Inner),
        (Choice::Kernel, 0) => None,
        (Choice::Open, _) if CHOICES.looked.load(Relaxed) == 0 => None,
        (Choice::Open, _) if class.word(&CHOICES.worked).load(Relaxed) >= WORKED_NS => None,
        (choice, _) => Some(choice),
    }
}

/// Adds up the work of a context.
pub(crate) fn worked(class: Class, mut work: Work) {
    let worked = class.word(&CHOICES.worked);
    let before = worked.load(Relaxed);
    let sum = before.saturating_add(work.take_ns());
    // Relaxed, and not added in one step: what two threads do at once may count once.
    worked.store(sum, Relaxed);
    let steps = sum / TOLD_NS - before / TOLD_NS;
    if steps > 0 {
        tell(class, steps.saturating_mul(TOLD_NS));
    }
}

/// Tells other processes of work, and hears what they have settled meanwhile, or that all of them have worked enough.
#[cold]
fn tell(class: Class, ns: u32) {
    with_file(|file| {
        let Some(told) = choice_file::worked(file, class) else { return };
        // Relaxed: a word that says all. Saturating: work that wraps would be none.
        _ = told.fetch_update(Relaxed, Relaxed, |sum| Some(sum.saturating_add(ns)));
        hear(file, class);
    });
}

/// Looks at what the file has of a class.
fn hear(file: &Mapping, class: Class) {
    let (Some(settled), Some(told)) = (choice_file::settled(file, class), choice_file::worked(file, class))
    else {
        return;
    };
    // Relaxed: each word says all.
    class.word(&CHOICES.settled).store(Choice::of(settled.load(Relaxed)).word(), Relaxed);
    if told.load(Relaxed) >= WORKED_NS {
        class.word(&CHOICES.worked).store(WORKED_NS, Relaxed);
    }
}

/// Whether it is this thread that compares: work that is enough is taken, by one of all processes that heard of it.
fn takes_work(class: Class) -> bool {
    // Relaxed: who is second goes on as before.
    let own = class.word(&CHOICES.worked).swap(0, Relaxed) >= WORKED_NS;
    let take = |file: &Mapping| {
        let told = choice_file::worked(file, class)?;
        let is_taken = told.fetch_update(Relaxed, Relaxed, |sum| (sum >= WORKED_NS).then_some(0)).is_ok();
        Some(is_taken)
    };
    own && with_file(take).flatten().unwrap_or(true)
}

/// Looks at what is kept, compares, and asks a known answer, where that is due.
pub(crate) fn settle(row: &CipherRow, native: &Native, encrypts: bool) -> Choice {
    let class = Class::of(native, encrypts);
    if !native.is_told && known(class) == Choice::Open {
        // Relaxed: who is second goes on as before.
        if CHOICES.looked.swap(1, Relaxed) == 0 {
            look(row, native);
        }
        if known(class) == Choice::Open && takes_work(class) {
            compare(row, native, encrypts);
        }
    }
    if native.is_told || known(class) == Choice::Kernel {
        let is_right =
            kernel_timing::kernel_is_right(row, *native, encrypts) && !cfg!(mutant = "kernel_answers_wrong");
        if !is_right && !kernel_check::is_out_of_service(class) {
            kernel_check::found_wrong(row, class);
        }
        class.word(&CHOICES.answers).store(1, Relaxed);
    }
    at_once(native, class).unwrap_or(Choice::Open)
}

fn look(row: &CipherRow, native: &Native) {
    let Ok(file) = choice_file::open(row, native) else { return };
    Class::all().for_each(|class| hear(&file, class));
    if let Some(mut place) = tried(&CHOICES.file) {
        *place = Some(file);
    }
}

fn compare(row: &CipherRow, native: &Native, encrypts: bool) {
    let class = Class::of(native, encrypts);
    let is_quicker = kernel_timing::kernel_wins(row, *native, encrypts);
    let choice = if is_quicker { Choice::Kernel } else { Choice::Inner };
    class.word(&CHOICES.settled).store(choice.word(), Relaxed);
    with_file(|file| {
        if let Some(word) = choice_file::settled(file, class) {
            word.store(choice.word(), Relaxed);
        }
    });
}

/// Asks the file, where there is one and no other thread does.
fn with_file<T>(ask: impl FnOnce(&Mapping) -> T) -> Option<T> {
    tried(&CHOICES.file)?.as_ref().map(ask)
}

fn tried<T>(lock: &Mutex<T>) -> Option<std::sync::MutexGuard<'_, T>> {
    match lock.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_messages_with_a_key_each_are_work_that_adds_up() {
        for bytes in [0, 16, 64, 1_400] {
            let sum: u32 = (0..100_000)
                .map(|_| {
                    let mut work = Work::default();
                    work.begin();
                    work.text(bytes);
                    work.take_ns()
                })
                .sum();
            assert!(sum >= WORKED_NS, "{bytes} bytes: {sum} ns");
        }
    }

    #[test]
    fn work_of_hours_is_no_more_than_the_sum_can_hold() {
        let mut work = Work { messages: u32::MAX, bytes: u64::MAX, ..Work::default() };
        assert!(work.take_ns() >= WORKED_NS);
        assert_eq!(work.take_ns(), 0);
    }
}
