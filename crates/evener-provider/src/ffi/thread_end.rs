//! A function that runs at the end of each thread that asked for it, and of the process: by a key of POSIX threads, and `atexit`.
//!
//! Not taken: a thread-local with a destructor. Where the C library has no memory to note one, it ends the process
//! (`__cxa_thread_atexit_impl`); here the answer is no.

use std::ffi::c_void;
use std::sync::OnceLock;

/// The key, where the system gave one, and what runs.
static AT_END: OnceLock<(Option<libc::pthread_key_t>, fn())> = OnceLock::new();

/// Has `hook` called in each thread that [arms](arm) it, and in the one that ends the process. Called while a provider is loaded; the first
/// call counts.
pub(crate) fn prepare(hook: fn()) {
    AT_END.get_or_init(|| {
        let mut key = 0;
        // SAFETY: writes the key; the function is in a module that is never unmapped (build.rs).
        let made = unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) } == 0;
        // SAFETY: as above. Where it has no space, what the last thread would have done is not done.
        unsafe { libc::atexit(process_ends) };
        (made.then_some(key), hook)
    });
}

/// Has the hook called at this thread's end; false where that cannot be.
pub(crate) fn arm() -> bool {
    let Some(&(Some(key), _)) = AT_END.get() else { return false };
    // SAFETY: a key that was made and is never deleted; any value but null has the destructor called.
    unsafe { libc::pthread_setspecific(key, (&raw const AT_END).cast()) == 0 }
}

/// Has `hook` called at the end of the process's first thread, if this is it: by `pthread_exit`, after which other threads go on. Its end by `exit` or a return from
/// `main` is the process's. Called while a provider is loaded, after [`prepare`]; the first call counts.
pub(crate) fn watch_first(hook: fn()) {
    AT_FIRST_END.get_or_init(|| hook);
    if is_first() {
        arm();
    }
}

static AT_FIRST_END: OnceLock<fn()> = OnceLock::new();

fn is_first() -> bool {
    // SAFETY: takes nothing.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    // SAFETY: as above.
    thread == libc::c_long::from(unsafe { libc::getpid() })
}

fn run() {
    if let Some((_, hook)) = AT_END.get() {
        hook();
    }
}

unsafe extern "C" fn thread_ends(_: *mut c_void) {
    run();
    if let Some(hook) = AT_FIRST_END.get().filter(|_| is_first()) {
        hook();
    }
}

extern "C" fn process_ends() {
    run();
}
