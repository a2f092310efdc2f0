//! Asynchronous jobs of libcrypto, as a program runs them.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

type Opaque = *mut c_void;

#[link(name = "crypto")]
unsafe extern "C" {
    fn ASYNC_start_job(
        job: *mut Opaque,
        wait: Opaque,
        answer: *mut c_int,
        body: unsafe extern "C" fn(Opaque) -> c_int,
        arguments: Opaque,
        size: usize,
    ) -> c_int;
    fn ASYNC_WAIT_CTX_new() -> Opaque;
    fn ASYNC_WAIT_CTX_free(wait: Opaque);
    fn ASYNC_WAIT_CTX_get_all_fds(wait: Opaque, fds: *mut c_int, count: *mut usize) -> c_int;
    fn ASYNC_WAIT_CTX_set_callback(
        wait: Opaque,
        callback: unsafe extern "C" fn(Opaque) -> c_int,
        argument: Opaque,
    ) -> c_int;
    fn ASYNC_cleanup_thread();
}

unsafe extern "C" {
    /// POSIX's, which the `libc` crate does not declare for Linux.
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// Has `pthread_cancel` of this thread be heard, or wait; whether it was heard before.
pub fn set_cancellable(may: bool) -> bool {
    let mut before = 0;
    // SAFETY: glibc's and musl's `PTHREAD_CANCEL_ENABLE` or `_DISABLE`, and space for the state before.
    unsafe { pthread_setcancelstate(c_int::from(!may), &raw mut before) };
    before == 0
}

/// Whether `pthread_cancel` of this thread would be heard.
pub fn may_be_cancelled() -> bool {
    let may = set_cancellable(false);
    set_cancellable(may);
    may
}

/// What libcrypto says of a job that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Paused,
    Finished,
}

/// What runs inside a job.
type Body<'b> = dyn FnMut() + Send + 'b;

/// A job that is not finished, and its wait context.
pub struct Fibre<'b> {
    job: Opaque,
    wait: Opaque,
    // Behind one address, which libcrypto copies.
    body: Box<Box<Body<'b>>>,
}

// SAFETY: a job that is paused may be started again by any thread.
unsafe impl Send for Fibre<'_> {}

impl<'b> Fibre<'b> {
    pub fn new(body: impl FnMut() + Send + 'b) -> Self {
        // SAFETY: takes nothing.
        let wait = unsafe { ASYNC_WAIT_CTX_new() };
        Self { job: ptr::null_mut(), wait, body: Box::new(Box::new(body)) }
    }

    /// Starts the job, or goes on with it.
    pub fn step(&mut self) -> Step {
        let mut body: *mut Box<Body<'b>> = &raw mut *self.body;
        let mut answer = 0;
        let argument = (&raw mut body).cast();
        let size = size_of_val(&body);
        // SAFETY: the body lives until the job is finished, since `drop` insists on that.
        let code =
            unsafe { ASYNC_start_job(&raw mut self.job, self.wait, &raw mut answer, run, argument, size) };
        if code == 2 {
            return Step::Paused;
        }
        assert_eq!(code, 3, "what ASYNC_start_job says of a job that is finished");
        self.job = ptr::null_mut();
        Step::Finished
    }

    /// The descriptors that the program is to wait for.
    pub fn descriptors(&self) -> Vec<c_int> {
        let mut count = 0;
        // SAFETY: asks for the number.
        unsafe { ASYNC_WAIT_CTX_get_all_fds(self.wait, ptr::null_mut(), &raw mut count) };
        let mut fds = vec![-1; count];
        // SAFETY: space for so many.
        unsafe { ASYNC_WAIT_CTX_get_all_fds(self.wait, fds.as_mut_ptr(), &raw mut count) };
        fds
    }

    /// Has `calls` count the calls back.
    pub fn call_back(&self, calls: &'static AtomicU32) {
        let argument = ptr::from_ref(calls).cast_mut().cast();
        // SAFETY: the counter lives for ever.
        assert_eq!(unsafe { ASYNC_WAIT_CTX_set_callback(self.wait, called, argument) }, 1);
    }
}

impl Drop for Fibre<'_> {
    fn drop(&mut self) {
        assert!(self.job.is_null() || std::thread::panicking(), "a job that is paused still uses its memory");
        // SAFETY: ours.
        unsafe { ASYNC_WAIT_CTX_free(self.wait) };
    }
}

/// Gives back the stacks that this thread's jobs had.
pub fn clean_up() {
    // SAFETY: no job of this thread is left.
    unsafe { ASYNC_cleanup_thread() };
}

/// Whether each of the descriptors can be read within ten seconds.
pub fn are_ready(descriptors: &[c_int]) -> bool {
    descriptors.iter().all(|&fd| {
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry.
        unsafe { libc::poll(&raw mut poll, 1, 10_000) == 1 }
    })
}

unsafe extern "C" fn run(argument: Opaque) -> c_int {
    let body: *mut *mut Box<Body<'static>> = argument.cast();
    // SAFETY: `step` passed this.
    let body = unsafe { *body };
    // SAFETY: as above; the program waits.
    let body = unsafe { &mut *body };
    body();
    1
}

unsafe extern "C" fn called(argument: Opaque) -> c_int {
    let calls: *const AtomicU32 = argument.cast_const().cast();
    // SAFETY: `call_back` passed this.
    let calls = unsafe { &*calls };
    calls.fetch_add(1, Relaxed);
    1
}
