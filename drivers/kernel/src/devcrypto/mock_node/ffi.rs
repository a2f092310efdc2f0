//! Calls of a thread that another thread answers in the kernel's place: seccomp's notifications (seccomp_unotify(2)), and the
//! signals that end such a call.

use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::raw::{c_int, c_long, c_uint, c_ulong};
use std::{io, mem, process, ptr};

/// A call that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notice {
    pub(super) waiter: Waiter,
    /// The call's number.
    pub(super) number: u64,
    /// Its argument: an address of ours.
    pub(super) argument: u64,
}

/// The thread that waits, and the name of its wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) id: u64,
    pub(super) thread: u32,
}

/// Where a filter finds the number of the system call, and the lower half of `ioctl`'s second argument.
const SYSTEM_CALL_AT: u32 = 0;
const NUMBER_AT: u32 = if cfg!(target_endian = "little") { 24 } else { 28 };

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// From now on each `ioctl` with one of these numbers, of this thread and of those that it starts, waits for the answer of
/// the holder of the descriptor.
pub(super) fn answer_for(numbers: &[u32]) -> io::Result<OwnedFd> {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let left = |at: usize| u8::try_from(numbers.len() - at).unwrap_or(u8::MAX);
    let ioctl = u32::try_from(libc::SYS_ioctl).unwrap_or(u32::MAX);
    let mut steps = vec![
        step(LOAD, 0, 0, SYSTEM_CALL_AT),
        step(JUMP_IF_EQUAL, 0, left(0) + 1, ioctl),
        step(LOAD, 0, 0, NUMBER_AT),
    ];
    steps.extend(numbers.iter().enumerate().map(|(at, &number)| step(JUMP_IF_EQUAL, left(at), 0, number)));
    steps.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    steps.push(step(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF));
    let file = filter(&mut steps, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)?;
    // SAFETY: the kernel has just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// From now on each `socket` of this family, of this thread and of those that it starts, fails with `errno`.
pub(super) fn forbid(family: c_int, errno: c_int) -> io::Result<()> {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let word = |number: c_long| u32::try_from(number).unwrap_or(u32::MAX);
    let fails = libc::SECCOMP_RET_ERRNO | word(errno.into());
    let mut steps = [
        step(LOAD, 0, 0, SYSTEM_CALL_AT),
        step(JUMP_IF_EQUAL, 0, 3, word(libc::SYS_socket)),
        // The first argument stands before the second.
        step(LOAD, 0, 0, NUMBER_AT - 8),
        step(JUMP_IF_EQUAL, 0, 1, word(family.into())),
        step(RETURN, 0, 0, fails),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    filter(&mut steps, 0).map(drop)
}

fn filter(steps: &mut [libc::sock_filter], flags: c_ulong) -> io::Result<RawFd> {
    let count = u16::try_from(steps.len()).unwrap_or(u16::MAX);
    let program = libc::sock_fprog { len: count, filter: steps.as_mut_ptr() };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the kernel copies the program, which lives and has as many steps as it says, and changes this thread's filters only.
    let file = unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) };
    RawFd::try_from(file).ok().filter(|&file| file >= 0).ok_or_else(io::Error::last_os_error)
}

/// The next call that waits; none where the one that waited was ended meanwhile.
pub(super) fn next(listener: BorrowedFd<'_>) -> Option<Notice> {
    // SAFETY: all zero is what the kernel wants to fill.
    let mut raw: libc::seccomp_notif = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes into the record and nowhere else.
    let code = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut raw) };
    let [number, argument] = [raw.data.args[1], raw.data.args[2]];
    // The number is one of 32 bits, however it was widened.
    let number = number & u64::from(c_uint::MAX);
    (code == 0).then_some(Notice { waiter: Waiter { id: raw.id, thread: raw.pid }, number, argument })
}

/// Lets a call return 0, or fail with `errno` where that is not 0; false where no thread waits any more.
pub(super) fn answer(listener: BorrowedFd<'_>, id: u64, errno: c_int) -> bool {
    let mut raw = libc::seccomp_notif_resp { id, val: 0, error: -errno, flags: 0 };
    // SAFETY: the kernel reads the record.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut raw) == 0 }
}

/// Whether a call still waits.
pub(super) fn is_waiting(listener: BorrowedFd<'_>, mut id: u64) -> bool {
    // SAFETY: the kernel reads one number.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw mut id) == 0 }
}

extern "C" fn nothing(_: c_int) {}

/// From now on a [`signal`] ends what a thread waits for and does nothing else.
pub(super) fn take_signals() {
    // SAFETY: all zero is an action without flags and mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = (nothing as *const ()).expose_provenance();
    // SAFETY: the action is whole, and its handler may interrupt anything.
    let code = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()) };
    assert_eq!(code, 0, "SIGUSR1 has a handler");
}

/// Sends one to a thread of this process.
pub(super) fn signal(thread: u32) {
    // SAFETY: takes numbers; a thread that has ended meanwhile gets nothing.
    unsafe { libc::syscall(libc::SYS_tgkill, process::id(), thread, libc::SIGUSR1) };
}
