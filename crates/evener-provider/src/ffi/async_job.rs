//! OpenSSL's asynchronous jobs: a call that runs inside one can be put aside, so that its thread starts others.
//!
//! Path of one pause: [`Jobs::current`] says whether the call runs in a job -> the program's callback is called, or
//! its wait descriptor made readable -> `ASYNC_pause_job`, which returns when the program starts the job again, maybe
//! on another thread -> the descriptor is emptied. The descriptor is readable before the pause already: no other thread
//! works on what waits, so the program is to come back as soon as it has looked at everything else that is ready
//! (the same as in OpenSSL's engines/e_dasync.c). A job that waits for a module is another matter ([`CurrentJob::waiting`]):
//! [`WaitingJob::doorbell`] gives the thread that brings the result what it makes a descriptor readable by, and [`WaitingJob::wait`] shows
//! that descriptor to the program and pauses. Where the result is there before, the program never sees one.
//!
//! The descriptor is in the program's hands, which may close it: each use and the end begin with a look whether it is ours still
//! (`evener_fd`).
//!
//! The functions are looked up by name in the libcrypto that loaded us; where it hides them there are no jobs to see.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr::{self, NonNull};

use evener::offload::Waker;
use evener_fd::{CheckedFd, KnownFd};
use evener_ossl_sys::Function;
use evener_ring::put_aside;

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
type ClearFd = unsafe extern "C" fn(*mut c_void, *const c_void) -> c_int;
type ChangedFds = unsafe extern "C" fn(*mut c_void, *mut c_int, *mut usize, *mut c_int, *mut usize) -> c_int;
type SetFd = unsafe extern "C" fn(*mut c_void, *const c_void, c_int, *mut c_void, Cleanup) -> c_int;

/// libcrypto's functions for jobs.
pub(crate) struct Jobs {
    current: GetCurrentJob,
    pause: PauseJob,
    wait_ctx: GetWaitCtx,
    get_fd: GetFd,
    set_fd: SetFd,
    clear_fd: ClearFd,
    changed_fds: ChangedFds,
    /// Since OpenSSL 3.0.
    callback: Option<GetCallback>,
}

/// The job that the calling thread runs at this moment.
#[derive(Clone, Copy)]
pub(crate) struct CurrentJob<'j> {
    jobs: &'j Jobs,
    job: *mut c_void,
}

/// What keeps a job's descriptors for the program.
type WaitCtx = NonNull<c_void>;

/// When the program hears of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Before,
    WithThisPause,
}

/// Its address is the key of our descriptor in a wait context.
static KEY: u8 = 0;

fn key() -> *const c_void {
    (&raw const KEY).cast()
}

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
            clear_fd: symbol!(library, c"ASYNC_WAIT_CTX_clear_fd": ClearFd)?,
            changed_fds: symbol!(library, c"ASYNC_WAIT_CTX_get_changed_fds": ChangedFds)?,
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

impl<'j> CurrentJob<'j> {
    /// Puts the job aside until the program starts it again. Returns at once where the program does not allow it.
    pub(crate) fn pause(self) {
        let wait_ctx = self.wait_ctx().filter(|wait_ctx| !self.calls_back(*wait_ctx));
        let entry = wait_ctx.and_then(|wait_ctx| match self.stored(wait_ctx) {
            Some(fd) => Some((fd, Told::Before)),
            None => Some((self.store(wait_ctx, CheckedFd::new(event()?).ok()?)?, Told::WithThisPause)),
        });
        if let Some((fd, _)) = entry {
            ring(fd);
        }
        self.pause_by(wait_ctx, entry);
    }

    /// The job as one that may have to wait for another thread. The program hears nothing of it yet.
    pub(crate) fn waiting(self) -> WaitingJob<'j> {
        let asked = self.wait_ctx().filter(|wait_ctx| self.callback(*wait_ctx).is_none());
        let unshown = asked
            .filter(|wait_ctx| self.stored(*wait_ctx).is_none())
            .and_then(|_| CheckedFd::new(event()?).ok());
        WaitingJob { job: self, unshown }
    }

    /// Pauses, with that descriptor as what the program may wait for. False where the program allows no pause; it is told of no
    /// descriptor then, for OpenSSL tells of new ones with the pause that follows, and forgets afterwards that they were new.
    fn pause_by(self, wait_ctx: Option<WaitCtx>, entry: Option<(KnownFd, Told)>) -> bool {
        let aside = put_aside();
        // SAFETY: within a job, and nothing is locked.
        unsafe { (self.jobs.pause)() };
        drop(aside);
        let (Some(wait_ctx), Some((fd, told))) = (wait_ctx, entry) else { return true };
        if told == Told::WithThisPause && self.has_new(wait_ctx) {
            self.withdraw(wait_ctx);
            return false;
        }
        drain(fd);
        true
    }

    /// Where the job's descriptors are kept.
    fn wait_ctx(self) -> Option<WaitCtx> {
        // SAFETY: the job is the one that runs.
        WaitCtx::new(unsafe { (self.jobs.wait_ctx)(self.job) })
    }

    /// Calls the program back, where it gave a function for that.
    fn calls_back(self, wait_ctx: WaitCtx) -> bool {
        let Some((callback, argument)) = self.callback(wait_ctx) else { return false };
        // SAFETY: the program's function with its own argument.
        unsafe { callback(argument) };
        true
    }

    /// The program's function and its argument.
    fn callback(
        self,
        wait_ctx: WaitCtx,
    ) -> Option<(unsafe extern "C" fn(*mut c_void) -> c_int, *mut c_void)> {
        let get = self.jobs.callback?;
        let (mut callback, mut argument): (Callback, _) = (None, ptr::null_mut());
        // SAFETY: the job's wait context, and space for both answers.
        let is_set = unsafe { get(wait_ctx.as_ptr(), &raw mut callback, &raw mut argument) } == 1;
        callback.filter(|_| is_set).map(|callback| (callback, argument))
    }

    /// Our descriptor in the wait context.
    fn stored(self, wait_ctx: WaitCtx) -> Option<KnownFd> {
        let (mut number, mut stored) = (-1, ptr::null_mut());
        // SAFETY: the job's wait context, and space for both answers.
        let is_there =
            unsafe { (self.jobs.get_fd)(wait_ctx.as_ptr(), key(), &raw mut number, &raw mut stored) };
        if is_there != 1 {
            return None;
        }
        // SAFETY: put there by `store` under our key, and not freed by `closed`, for the wait context has it.
        Some(unsafe { &*stored.cast::<CheckedFd>() }.known())
    }

    /// Puts a descriptor into the wait context, which keeps beside its number how it is known; `None` where there is no memory for that, and
    /// the program then has nothing to wait for and starts the job again when it likes.
    fn store(self, wait_ctx: WaitCtx, fd: CheckedFd) -> Option<KnownFd> {
        let (known, stored) = (fd.known(), Box::into_raw(Box::new(fd)));
        // SAFETY: the job's wait context, which owns both from here on and ends them by `closed`.
        let is_stored =
            unsafe { (self.jobs.set_fd)(wait_ctx.as_ptr(), key(), known.number(), stored.cast(), closed) };
        if is_stored == 1 {
            return Some(known);
        }
        // SAFETY: made above, and given away to no other owner.
        drop(unsafe { Box::from_raw(stored) });
        None
    }

    /// Whether the wait context has descriptors that the program was not told of: after a pause it has none.
    fn has_new(self, wait_ctx: WaitCtx) -> bool {
        let (mut added_count, mut deleted_count) = (0, 0);
        let (none, counts) = (ptr::null_mut(), (&raw mut added_count, &raw mut deleted_count));
        // SAFETY: the job's wait context, and space for both counts; no lists are asked for.
        unsafe {
            (self.jobs.changed_fds)(wait_ctx.as_ptr(), none, counts.0, none, counts.1) == 1 && added_count > 0
        }
    }

    /// Takes our descriptor back that the program was not told of.
    fn withdraw(self, wait_ctx: WaitCtx) {
        let (mut number, mut stored) = (-1, ptr::null_mut());
        // SAFETY: as in `stored`.
        let is_there =
            unsafe { (self.jobs.get_fd)(wait_ctx.as_ptr(), key(), &raw mut number, &raw mut stored) };
        // SAFETY: the job's wait context. What is new goes at once, and its end is left to who takes it back.
        if is_there == 1 && unsafe { (self.jobs.clear_fd)(wait_ctx.as_ptr(), key()) } == 1 {
            // SAFETY: put there by `store`, and now not shared.
            drop(unsafe { Box::from_raw(stored.cast::<CheckedFd>()) });
        }
    }
}

/// A job that waits for another thread, if that has not answered by then. The program is told of a descriptor by the pause alone: of one that it
/// never heard of, because the answer was quick, it would be asked to let go at the end of the connection.
pub(crate) struct WaitingJob<'j> {
    job: CurrentJob<'j>,
    /// Not in the wait context yet.
    unshown: Option<CheckedFd>,
}

impl WaitingJob<'_> {
    /// What another thread wakes the job by. A program that gave a function is not called by a thread that it does not know: it is to come
    /// back after each pause, as where there is no descriptor.
    pub(crate) fn doorbell(&self) -> Doorbell {
        let asked = self.job.wait_ctx().filter(|wait_ctx| self.job.callback(*wait_ctx).is_none());
        let known = match &self.unshown {
            Some(fd) => Some(fd.known()),
            None => asked.and_then(|wait_ctx| self.job.stored(wait_ctx)),
        };
        // A descriptor of its own: the wait context may be freed when it is rung.
        Doorbell(known.and_then(|fd| fd.try_clone().ok()))
    }

    /// Puts the job aside until its doorbell is rung, or the program starts it again for another reason. False where the program allows no
    /// pause.
    pub(crate) fn wait(&mut self) -> bool {
        let wait_ctx = self.job.wait_ctx().filter(|wait_ctx| self.job.callback(*wait_ctx).is_none());
        let entry = wait_ctx.and_then(|wait_ctx| match self.unshown.take() {
            Some(fd) => Some((self.job.store(wait_ctx, fd)?, Told::WithThisPause)),
            None => Some((self.job.stored(wait_ctx)?, Told::Before)),
        });
        if entry.is_none() {
            self.job.pause();
            return true;
        }
        self.job.pause_by(wait_ctx, entry)
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
