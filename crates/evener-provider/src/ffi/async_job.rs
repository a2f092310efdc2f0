//! OpenSSL's asynchronous jobs: a call that runs inside one can be put aside, so that its thread starts others.
//!
//! Path of one pause: [`Jobs::current`] says whether the call runs in a job -> the program's callback is called, or
//! its wait descriptor made readable -> `ASYNC_pause_job`, which returns when the program starts the job again, maybe
//! on another thread -> the descriptor is emptied. The descriptor is readable before the pause already: no other thread
//! works on what waits, so the program is to come back as soon as it has looked at everything else that is ready
//! (the same as in OpenSSL's engines/e_dasync.c). A job that waits for a module is another matter: [`CurrentJob::doorbell`]
//! gives the thread that brings the result what it makes the descriptor readable by, and [`CurrentJob::wait`] pauses.
//!
//! The descriptor is in the program's hands, which may close it: each use and the end begin with a look whether it is ours still
//! (`evener_fd`).
//!
//! The functions are looked up by name in the libcrypto that loaded us; where it hides them there are no jobs to see.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr;

use evener::offload::Waker;
use evener_fd::{CheckedFd, KnownFd};
use evener_ossl_sys::Function;

use super::dispatch;
use super::loaded_file::library_of;
use super::private_libctx::symbol;

type GetCurrentJob = unsafe extern "C" fn() -> *mut c_void;
type PauseJob = unsafe extern "C" fn() -> c_int;
type GetWaitCtx = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type Callback = Option<unsafe extern "C" fn(*mut c_void) -> c_int>;
type GetCallback = unsafe extern "C" fn(*mut c_void, *mut Callback, *mut *mut c_void) -> c_int;
type GetFd = unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_int, *mut *mut c_void) -> c_int;
type Cleanup = unsafe extern "C" fn(*mut c_void, *const c_void, c_int, *mut c_void);
type SetFd = unsafe extern "C" fn(*mut c_void, *const c_void, c_int, *mut c_void, Cleanup) -> c_int;

/// libcrypto's functions for jobs.
pub(crate) struct Jobs {
    current: GetCurrentJob,
    pause: PauseJob,
    wait_ctx: GetWaitCtx,
    get_fd: GetFd,
    set_fd: SetFd,
    /// Since OpenSSL 3.0.
    callback: Option<GetCallback>,
}

/// The job that the calling thread runs at this moment.
#[derive(Clone, Copy)]
pub(crate) struct CurrentJob<'j> {
    jobs: &'j Jobs,
    job: *mut c_void,
}

/// Its address is the key of our descriptor in a wait context.
static KEY: u8 = 0;

impl Jobs {
    /// Those of the libcrypto that `landmark` lies in.
    pub(crate) fn of(landmark: Function) -> Option<Self> {
        let library = library_of(landmark)?;
        Some(Self {
            current: symbol!(library, c"ASYNC_get_current_job": GetCurrentJob)?,
            pause: symbol!(library, c"ASYNC_pause_job": PauseJob)?,
            wait_ctx: symbol!(library, c"ASYNC_get_wait_ctx": GetWaitCtx)?,
            get_fd: symbol!(library, c"ASYNC_WAIT_CTX_get_fd": GetFd)?,
            set_fd: symbol!(library, c"ASYNC_WAIT_CTX_set_wait_fd": SetFd)?,
            callback: symbol!(library, c"ASYNC_WAIT_CTX_get_callback": GetCallback),
        })
    }

    /// The job that this call runs in; `None` outside of one.
    pub(crate) fn current(&self) -> Option<CurrentJob<'_>> {
        // SAFETY: takes nothing.
        let job = unsafe { (self.current)() };
        (!job.is_null()).then_some(CurrentJob { jobs: self, job })
    }
}

impl CurrentJob<'_> {
    /// Puts the job aside until the program starts it again. Returns at once where the program does not allow it.
    pub(crate) fn pause(self) {
        // SAFETY: the job is the one that runs.
        let wait_ctx = unsafe { (self.jobs.wait_ctx)(self.job) };
        let rings = !wait_ctx.is_null() && self.calls_back(wait_ctx);
        let fd = if rings || wait_ctx.is_null() { None } else { self.descriptor(wait_ctx) };
        if let Some(fd) = fd {
            ring(fd);
        }
        // SAFETY: within a job, and nothing is locked.
        unsafe { (self.jobs.pause)() };
        if let Some(fd) = fd {
            drain(fd);
        }
    }

    /// What another thread wakes the job by that [waits](CurrentJob::wait). A program that gave a function is not called by a
    /// thread that it does not know: it is to come back after each pause, as where there is no descriptor.
    pub(crate) fn doorbell(self) -> Doorbell {
        // SAFETY: the job is the one that runs.
        let wait_ctx = unsafe { (self.jobs.wait_ctx)(self.job) };
        if wait_ctx.is_null() || self.has_callback(wait_ctx) {
            return Doorbell(None);
        }
        // A descriptor of its own: the wait context may be freed when it is rung.
        Doorbell(self.descriptor(wait_ctx).and_then(|fd| fd.try_clone().ok()))
    }

    /// Puts the job aside until its doorbell is rung, or the program starts it again for another reason.
    pub(crate) fn wait(self) {
        // SAFETY: the job is the one that runs.
        let wait_ctx = unsafe { (self.jobs.wait_ctx)(self.job) };
        let fd =
            if wait_ctx.is_null() || self.has_callback(wait_ctx) { None } else { self.descriptor(wait_ctx) };
        let Some(fd) = fd else { return self.pause() };
        // SAFETY: within a job, and nothing is locked.
        unsafe { (self.jobs.pause)() };
        drain(fd);
    }

    fn has_callback(self, wait_ctx: *mut c_void) -> bool {
        self.callback(wait_ctx).is_some()
    }

    /// Calls the program back, where it gave a function for that.
    fn calls_back(self, wait_ctx: *mut c_void) -> bool {
        let Some((callback, argument)) = self.callback(wait_ctx) else { return false };
        // SAFETY: the program's function with its own argument.
        unsafe { callback(argument) };
        true
    }

    /// The program's function and its argument.
    fn callback(
        self,
        wait_ctx: *mut c_void,
    ) -> Option<(unsafe extern "C" fn(*mut c_void) -> c_int, *mut c_void)> {
        let get = self.jobs.callback?;
        let (mut callback, mut argument): (Callback, _) = (None, ptr::null_mut());
        // SAFETY: the job's wait context, and room for both answers.
        let is_set = unsafe { get(wait_ctx, &raw mut callback, &raw mut argument) } == 1;
        callback.filter(|_| is_set).map(|callback| (callback, argument))
    }

    /// Our descriptor in the wait context, made where there is none; `None` where the system has none left, and the
    /// program then has nothing to wait for and starts the job again when it likes. Beside its number the wait context keeps how it is
    /// known.
    fn descriptor(self, wait_ctx: *mut c_void) -> Option<KnownFd> {
        let key: *const c_void = (&raw const KEY).cast();
        let (mut number, mut stored) = (-1, ptr::null_mut());
        // SAFETY: the job's wait context, and room for both answers.
        if unsafe { (self.jobs.get_fd)(wait_ctx, key, &raw mut number, &raw mut stored) } == 1 {
            // SAFETY: stored under our key below, and not freed by `closed`, for the wait context has it.
            return Some(unsafe { &*stored.cast::<CheckedFd>() }.known());
        }
        let fd = CheckedFd::new(event()?).ok()?;
        let (known, stored) = (fd.known(), Box::into_raw(Box::new(fd)));
        // SAFETY: as above; the wait context owns both from here on, and ends them by `closed`.
        if unsafe { (self.jobs.set_fd)(wait_ctx, key, known.number(), stored.cast(), closed) } == 1 {
            return Some(known);
        }
        // SAFETY: made above, and given away to no other owner.
        drop(unsafe { Box::from_raw(stored) });
        None
    }
}

/// What wakes a job.
pub(crate) struct Doorbell(Option<CheckedFd>);

impl Waker for Doorbell {
    fn wake(&self) {
        self.0.iter().map(CheckedFd::known).for_each(ring);
    }
}

fn event() -> Option<OwnedFd> {
    // SAFETY: takes numbers.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    // SAFETY: just opened, and nothing else owns it.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

fn ring(fd: KnownFd) {
    let Ok(fd) = fd.checked() else { return };
    let one = 1_u64.to_ne_bytes();
    // SAFETY: our descriptor takes eight bytes, and never blocks.
    unsafe { libc::write(fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
}

fn drain(fd: KnownFd) {
    let Ok(fd) = fd.checked() else { return };
    let mut count = [0_u8; 8];
    // SAFETY: our descriptor gives eight bytes or none, and never blocks.
    unsafe { libc::read(fd.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
}

dispatch! {
    /// A wait context goes, or lets the descriptor go.
    fn closed(_wait_ctx: *mut c_void, _key: *const c_void, _fd: c_int, stored: *mut c_void) {
        // SAFETY: stored by `descriptor` for this wait context alone, which calls this once.
        drop(unsafe { Box::from_raw(stored.cast::<CheckedFd>()) });
    }
}
