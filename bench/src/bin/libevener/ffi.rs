//! `libevener.so.0` as a program in C has it: found by name, called through the linker's table.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;

use anyhow::{bail, ensure};
use evener_c::abi::{Job, Options};

type RuntimeOpen = unsafe extern "C" fn(*mut *mut c_void, *const Options) -> c_int;
type SessionOpen = unsafe extern "C" fn(
    *mut c_void,
    *mut *mut c_void,
    *const c_char,
    c_int,
    c_uint,
    *const c_void,
    usize,
) -> c_int;
type QueueOpen = unsafe extern "C" fn(*mut c_void, *mut *mut c_void, c_uint) -> c_int;
type Take = unsafe extern "C" fn(*mut c_void, *const *mut Job, c_uint) -> c_int;
type Reap = unsafe extern "C" fn(*mut c_void, *mut *mut Job, c_uint, c_uint, i64) -> c_int;

/// The library.
#[derive(Clone, Copy)]
pub(crate) struct Library {
    runtime_open: RuntimeOpen,
    session_open: SessionOpen,
    queue_open: QueueOpen,
    crypt: Take,
    submit: Take,
    reap: Reap,
}

/// An address of the library's own that threads may pass on.
#[derive(Clone, Copy)]
pub(crate) struct Handle(*mut c_void);

// SAFETY: the library lets any thread use runtimes and sessions, and a queue goes to one thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Library {
    /// Loads it, for as long as the program runs.
    pub(crate) fn load(path: &Path) -> anyhow::Result<Self> {
        let name = CString::new(path.as_os_str().as_encoded_bytes())?;
        // SAFETY: the string ends with a NUL.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        ensure!(!library.is_null(), "{} cannot be loaded", path.display());
        let symbol = |name: &CStr| {
            // SAFETY: the library is loaded, the string ends with a NUL.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            if found.is_null() { bail!("{name:?} is not there") } else { Ok(found) }
        };
        macro_rules! function {
            ($name:literal as $kind:ty) => {
                // SAFETY: the header declares it so, and both have one version.
                unsafe { std::mem::transmute::<*mut c_void, $kind>(symbol($name)?) }
            };
        }
        Ok(Self {
            runtime_open: function!(c"evener_runtime_open" as RuntimeOpen),
            session_open: function!(c"evener_session_open" as SessionOpen),
            queue_open: function!(c"evener_queue_open" as QueueOpen),
            crypt: function!(c"evener_crypt" as Take),
            submit: function!(c"evener_submit" as Take),
            reap: function!(c"evener_reap" as Reap),
        })
    }

    /// A runtime with so many threads.
    pub(crate) fn runtime(&self, threads: i32) -> anyhow::Result<Handle> {
        let mut runtime = ptr::null_mut();
        let size = size_of::<Options>();
        let options = Options { size, threads, flags: 0, modules: ptr::null(), policy: ptr::null() };
        // SAFETY: a place, and a whole struct.
        let answer = unsafe { (self.runtime_open)(&raw mut runtime, &raw const options) };
        ensure!(answer == 0, "no runtime: {answer}");
        Ok(Handle(runtime))
    }

    /// A session that encrypts.
    pub(crate) fn session(&self, runtime: Handle, algorithm: &CStr, key: &[u8]) -> anyhow::Result<Handle> {
        let mut session = ptr::null_mut();
        // SAFETY: an open runtime, a place, a string and so many bytes.
        let answer = unsafe {
            (self.session_open)(
                runtime.0,
                &raw mut session,
                algorithm.as_ptr(),
                0,
                0,
                key.as_ptr().cast(),
                key.len(),
            )
        };
        ensure!(answer == 0, "no session: {answer}");
        Ok(Handle(session))
    }

    /// A queue.
    pub(crate) fn queue(&self, runtime: Handle, depth: u32) -> anyhow::Result<Handle> {
        let mut queue = ptr::null_mut();
        // SAFETY: an open runtime and a place.
        let answer = unsafe { (self.queue_open)(runtime.0, &raw mut queue, depth) };
        ensure!(answer == 0, "no queue: {answer}");
        Ok(Handle(queue))
    }

    /// Runs jobs, in bursts.
    pub(crate) fn crypt(&self, queue: Handle, jobs: &[*mut Job], burst: usize) {
        for burst in jobs.chunks(burst) {
            // SAFETY: the queue is this thread's; the jobs and their memory are left alone during the call.
            let answer =
                unsafe { (self.crypt)(queue.0, burst.as_ptr(), c_uint::try_from(burst.len()).unwrap_or(0)) };
            assert_eq!(usize::try_from(answer), Ok(burst.len()), "each is done");
        }
    }

    /// The same by the library's threads.
    pub(crate) fn through(&self, queue: Handle, jobs: &[*mut Job], burst: usize) {
        let (mut rest, mut left) = (jobs, jobs.len());
        let mut came = vec![ptr::null_mut(); burst];
        let wanted = c_uint::try_from(burst).unwrap_or(0);
        while left > 0 {
            let part = &rest[..burst.min(rest.len())];
            // SAFETY: the queue is this thread's; the jobs and their memory are left alone until all have come back.
            let taken =
                unsafe { (self.submit)(queue.0, part.as_ptr(), c_uint::try_from(part.len()).unwrap_or(0)) };
            let taken = usize::try_from(taken).expect("a count");
            rest = &rest[taken..];
            let min = if taken == 0 { wanted } else { 0 };
            // SAFETY: as above; there is space for so many.
            let count = unsafe { (self.reap)(queue.0, came.as_mut_ptr(), wanted, min, -1) };
            left -= usize::try_from(count).expect("a count");
        }
    }

    /// Jobs in place over equal parts of some memory.
    pub(crate) fn jobs(session: Handle, space: &mut [u8], bytes: usize) -> Vec<Job> {
        let job = |part: &mut [u8]| Job {
            session: session.0.cast(),
            src: part.as_ptr().cast(),
            src_len: bytes,
            dst: part.as_mut_ptr().cast(),
            dst_space: bytes,
            iv: [9; 16],
            ..Job::ZERO
        };
        space.chunks_exact_mut(bytes).map(job).collect()
    }
}
