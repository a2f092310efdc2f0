//! A thread that serves for the life of its process, inside a program of others: deaf to signals, and an error where it cannot be had.
//!
//! Not taken: `std::thread`, whose handle is allocated past the program's allocator, and which ends the process where that fails.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::{io, ptr};

use super::ffi::{Service, serve};

/// Starts a thread that has `service` serve on a stack of `stack` bytes; it is not joined. All signals are blocked there: they are for the program's own
/// threads. Nothing is allocated: a process that is forked before the thread has begun would have for good what only the thread frees.
///
/// # Errors
///
/// The system's: no memory, no space for another thread, a stack below its least.
pub fn start_service<T: Service>(stack: usize, service: &'static T) -> io::Result<()> {
    let argument = ptr::from_ref(service).cast_mut().cast();
    // SAFETY: `serve::<T>` takes what `service` is, and only looks at it.
    with_attributes(stack, |attributes, thread| unsafe {
        libc::pthread_create(thread, attributes, serve::<T>, argument)
    })
}

/// Has `create` make a thread that is not joined.
pub(super) fn with_attributes(
    stack: usize,
    create: impl FnOnce(*const libc::pthread_attr_t, *mut libc::pthread_t) -> c_int,
) -> io::Result<()> {
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: initializes what it is given.
    checked(unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) })?;
    // SAFETY: initialized above.
    let mut attributes = unsafe { attributes.assume_init() };
    let started = create_detached(&mut attributes, stack, create);
    // SAFETY: initialized above, and not used again.
    unsafe { libc::pthread_attr_destroy(&raw mut attributes) };
    started
}

fn create_detached(
    attributes: &mut libc::pthread_attr_t,
    stack: usize,
    create: impl FnOnce(*const libc::pthread_attr_t, *mut libc::pthread_t) -> c_int,
) -> io::Result<()> {
    // SAFETY: initialized attributes.
    checked(unsafe { libc::pthread_attr_setstacksize(attributes, stack) })?;
    // SAFETY: as above.
    checked(unsafe { libc::pthread_attr_setdetachstate(attributes, libc::PTHREAD_CREATE_DETACHED) })?;
    let mut thread = MaybeUninit::uninit();
    checked(with_signals_blocked(|| create(attributes, thread.as_mut_ptr()))?)
}

/// Runs `start` with all signals blocked: threads that it starts inherit that, and leave signals to the program's own.
///
/// # Errors
///
/// The system's; `start` was not called.
pub fn with_signals_blocked<R>(start: impl FnOnce() -> R) -> io::Result<R> {
    let _before = MaskBefore(block_signals()?);
    Ok(start())
}

/// This thread's mask comes back, also behind a panic.
struct MaskBefore(libc::sigset_t);

impl Drop for MaskBefore {
    fn drop(&mut self) {
        // SAFETY: the mask that `block_signals` found.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

/// Blocks all signals of this thread, whose mask a new one inherits; returns the mask before.
fn block_signals() -> io::Result<libc::sigset_t> {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: initializes what it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: `all` is initialized; `before` is written where it returns 0.
    checked(unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) })?;
    // SAFETY: written above.
    Ok(unsafe { before.assume_init() })
}

fn checked(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use std::ffi::CStr;
    use std::sync::Mutex;
    use std::sync::mpsc::{self, RecvTimeoutError, Sender};
    use std::time::Duration;

    use super::{Service, start_service};

    const STACK: usize = 256 << 10;

    /// Says what the system tells of its thread, or panics.
    struct Teller {
        to: Mutex<Option<Sender<String>>>,
        panics: bool,
    }

    impl Service for Teller {
        const NAME: &'static CStr = c"evener-test";

        fn serve(&self) {
            let to = self.to.lock().ok().and_then(|mut to| to.take());
            assert!(!self.panics, "on purpose");
            if let (Some(to), Ok(status)) = (to, std::fs::read_to_string("/proc/thread-self/status")) {
                _ = to.send(status);
            }
        }
    }

    fn told(stack: usize, panics: bool) -> Result<String, RecvTimeoutError> {
        let (to, told) = mpsc::channel();
        let teller = Box::leak(Box::new(Teller { to: Mutex::new(Some(to)), panics }));
        start_service(stack, teller).map_err(|_| RecvTimeoutError::Timeout)?;
        told.recv_timeout(Duration::from_secs(20))
    }

    #[test]
    fn a_thread_serves_under_its_name_and_blocks_every_signal() {
        let status = told(STACK, false).unwrap();
        assert!(status.starts_with("Name:\tevener-test\n"), "{status}");
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).unwrap();
        // All but SIGKILL, SIGSTOP and the two that the C library keeps.
        assert_eq!(u64::from_str_radix(blocked, 16).unwrap() | 0x1_8004_0100, !0, "{blocked}");
    }

    /// Whether this thread lets SIGTERM in.
    fn is_open_to_signals() -> bool {
        let before = super::block_signals().expect("a thread may block signals");
        let guard = super::MaskBefore(before);
        // SAFETY: an initialized set.
        let is_blocked = unsafe { libc::sigismember(&raw const guard.0, libc::SIGTERM) } == 1;
        !is_blocked
    }

    #[test]
    fn a_thread_that_is_started_with_signals_blocked_keeps_them_so_and_who_starts_it_gets_its_mask_back() {
        assert!(is_open_to_signals());
        let started = super::with_signals_blocked(|| std::thread::spawn(is_open_to_signals)).unwrap();
        assert!(!started.join().unwrap() && is_open_to_signals());
        let panicked = std::panic::catch_unwind(|| super::with_signals_blocked(|| panic!("on the way")));
        assert!(panicked.is_err() && is_open_to_signals());
    }

    #[test]
    fn a_stack_that_cannot_be_had_is_an_error_and_signals_stay_as_they_were() {
        static NEVER: Teller = Teller { to: Mutex::new(None), panics: true };
        let mask = || std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let blocked =
            |status: String| status.lines().find(|line| line.starts_with("SigBlk")).map(str::to_owned);
        let before = blocked(mask());
        assert!(start_service((usize::MAX / 2) & !0xffff, &NEVER).is_err());
        assert_eq!(blocked(mask()), before);
    }

    #[test]
    fn a_panic_ends_the_thread_alone() {
        assert_eq!(told(STACK, true), Err(RecvTimeoutError::Disconnected));
    }
}
