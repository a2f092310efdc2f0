//! A node in the kernel's place whose calls end when and how a test wants: answered, or by a signal that really comes.
//!
//! A thread of the test makes a call -> a filter holds it (`ffi.rs`) -> this node's thread does all, half or nothing of it in the
//! caller's memory, signals the caller, and answers only a thread that still waits. What it computes is each byte inverted, so that a byte
//! which was lost or went through twice is seen.

mod ffi;

use std::collections::VecDeque;
use std::fs::{File, OpenOptions, read_to_string};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::set_no_new_privs;

use crate::ocf::{Call, CryptOp, SESSION_INFO_BYTES, SESSION_INFO_PLACES, SessionOp};
use ffi::{Notice, Waiter};

/// Any file that opens: it is never used.
pub(super) const NODE: &str = "/dev/null";

/// How far a call has got when the signal comes to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// None comes.
    Answered,
    /// Nothing is done.
    Before,
    /// Of a text the first half is done, of other calls nothing.
    Midst,
    /// All is done, and not answered yet.
    After,
    /// Nothing is done, and the call fails with this number.
    Refused(i32),
}

/// A call that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedCall {
    pub(super) call: Call,
    /// It ended by the signal.
    pub(super) is_interrupted: bool,
    /// Requests that were left and not fetched, when it had ended.
    pub(super) left: usize,
}

/// This thread, and those that it starts, may have no socket of `family` from now on: that fails with `errno`.
pub(crate) fn forbid(family: i32, errno: i32) -> io::Result<()> {
    set_no_new_privs(true)?;
    ffi::forbid(family, errno)
}

/// The node; the calls of the thread that made it, and of threads started by that one, come here.
pub(super) struct MockNode {
    shared: Arc<Shared>,
    serves: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// What was left and not fetched; none at a node that keeps nothing.
    queue: Mutex<Option<VecDeque<CryptOp>>>,
    is_over: AtomicBool,
}

struct State {
    /// Of each call, and how many of its kind came before it.
    fate: Box<dyn FnMut(Call, usize) -> Fate + Send>,
    calls: Vec<RecordedCall>,
}

impl Default for State {
    fn default() -> Self {
        Self { fate: Box::new(|_, _| Fate::Answered), calls: Vec::new() }
    }
}

impl MockNode {
    /// Answers all calls, until another fate is set. The error where the system has no such filters.
    pub(super) fn new() -> io::Result<Self> {
        ffi::take_signals();
        set_no_new_privs(true)?;
        let listener = ffi::answer_for(&Call::ALL.map(Call::number))?;
        let shared = Arc::new(Shared::default());
        let served = Arc::clone(&shared);
        let serves = thread::spawn(move || serve(&listener, &served));
        Ok(Self { shared, serves: Some(serves) })
    }

    /// From now on it keeps requests until they are fetched.
    pub(super) fn keep(&self) {
        *self.shared.queue.lock().unwrap() = Some(VecDeque::new());
    }

    /// From now on calls end so; those that came before are forgotten.
    pub(super) fn ends(&self, fate: impl FnMut(Call, usize) -> Fate + Send + 'static) {
        *self.shared.state() = State { fate: Box::new(fate), calls: Vec::new() };
    }

    /// Calls of a kind since then.
    pub(super) fn calls(&self, call: Call) -> Vec<RecordedCall> {
        self.shared.state().calls.iter().copied().filter(|made| made.call == call).collect()
    }
}

impl Drop for MockNode {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Relaxed);
        self.serves.take().into_iter().for_each(|serves| drop(serves.join()));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often the node looks whether it is over.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The node's thread. Where it panics, the listener goes and all that waits fails.
fn serve(listener: &OwnedFd, shared: &Shared) {
    let memory = OpenOptions::new().read(true).write(true).open("/proc/self/mem").unwrap();
    while !shared.is_over.load(Relaxed) {
        let mut asked = [PollFd::new(listener, PollFlags::IN)];
        if poll(&mut asked, Some(&GLANCE)).is_ok_and(|count| count == 0) {
            continue;
        }
        let Some(notice) = ffi::next(listener.as_fd()) else { continue };
        let is_it = |call: &Call| u64::from(call.number()) == notice.number;
        let call = Call::ALL.into_iter().find(is_it).unwrap();
        // Locked until it is known how the call ended, so that a reader of the state sees that.
        let mut state = shared.state();
        let before = state.calls.iter().filter(|made| made.call == call).count();
        let fate = (state.fate)(call, before);
        let mut queue = shared.queue.lock().unwrap();
        let ended = end(listener, &memory, &mut queue, notice, call, fate);
        let left = queue.as_ref().map_or(0, VecDeque::len);
        state.calls.push(RecordedCall { call, is_interrupted: ended.is_none(), left });
        if let Some(errno) = ended {
            ffi::answer(listener.as_fd(), notice.waiter.id, errno);
        }
    }
}

/// Does a call as far as it shall get, then the rest where the signal was held off; the number that it then ends with.
fn end(
    listener: &OwnedFd,
    memory: &File,
    queue: &mut Option<VecDeque<CryptOp>>,
    notice: Notice,
    call: Call,
    fate: Fate,
) -> Option<i32> {
    let done = match fate {
        Fate::Refused(errno) => {
            if call == Call::Fetch && errno != libc::EBUSY {
                // A request that failed is back as well.
                queue.as_mut().and_then(VecDeque::pop_front);
            }
            return Some(errno);
        }
        Fate::Before => 0,
        Fate::Midst => 1,
        Fate::Answered | Fate::After => 2,
    };
    let errno = work(memory, queue, notice, call, [0, done]);
    let ended = fate != Fate::Answered && is_ended(listener, notice.waiter);
    if ended {
        return None;
    }
    Some(work(memory, queue, notice, call, [done, 2]).max(errno))
}

/// Signals the thread that made a call; false where that thread holds signals off.
fn is_ended(listener: &OwnedFd, waiter: Waiter) -> bool {
    // Asked before the signal comes: its handler holds the next one off.
    let holds_off = holds_off(waiter.thread);
    ffi::signal(waiter.thread);
    if holds_off {
        return false;
    }
    // It will be: nothing else answers it.
    while ffi::is_waiting(listener.as_fd(), waiter.id) {
        thread::yield_now();
    }
    true
}

/// Whether a thread of ours blocks SIGUSR1.
fn holds_off(thread: u32) -> bool {
    let status = read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (libc::SIGUSR1 - 1) & 1 == 1
}

/// Halves `from..to` of a call's work; what has no halves is done with the second. The number that it fails with, or 0.
fn work(
    memory: &File,
    queue: &mut Option<VecDeque<CryptOp>>,
    notice: Notice,
    call: Call,
    [from, to]: [usize; 2],
) -> i32 {
    let read = |bytes: usize, at: u64| {
        let mut read = vec![0; bytes];
        memory.read_exact_at(&mut read, at).unwrap();
        read
    };
    let is_whole = from < 2 && to == 2;
    match call {
        Call::OpenSession if is_whole => {
            let op = SessionOp::read(&read(SessionOp::BYTES, notice.argument)).unwrap();
            // A session is called by its algorithm.
            let op = SessionOp { session: op.cipher + op.mac, ..op };
            memory.write_all_at(&op.bytes(), notice.argument).unwrap();
        }
        Call::SessionInfo if is_whole => {
            let mut info = read(SESSION_INFO_BYTES, notice.argument);
            let name = format!("stand-in-{}", u32::from_ne_bytes(info[..4].try_into().unwrap()));
            for place in &SESSION_INFO_PLACES[..2] {
                info[*place..place + name.len()].copy_from_slice(name.as_bytes());
            }
            memory.write_all_at(&info, notice.argument).unwrap();
        }
        Call::Crypt => {
            invert(memory, &CryptOp::read(&read(CryptOp::BYTES, notice.argument)).unwrap(), [from, to]);
        }
        Call::Leave if is_whole => {
            let Some(queue) = queue else { return libc::EINVAL };
            queue.push_back(CryptOp::read(&read(CryptOp::BYTES, notice.argument)).unwrap());
        }
        Call::Fetch if is_whole => {
            let Some(queue) = queue else { return libc::EINVAL };
            let Some(op) = queue.pop_front() else { return libc::EBUSY };
            invert(memory, &op, [0, 2]);
            memory.write_all_at(&op.bytes(), notice.argument).unwrap();
        }
        _ => {}
    }
    0
}

/// Halves `from..to` of a request.
fn invert(memory: &File, op: &CryptOp, [from, to]: [usize; 2]) {
    let half = usize::try_from(op.len).unwrap() / 2;
    let mut text = vec![0; (to - from) * half];
    memory.read_exact_at(&mut text, (op.src + from * half) as u64).unwrap();
    text.iter_mut().for_each(|byte| *byte = !*byte);
    memory.write_all_at(&text, (op.dst + from * half) as u64).unwrap();
}
