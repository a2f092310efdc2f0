//! Queues: open, close, and the way of jobs.

use std::ffi::{c_int, c_uint};
use std::slice;
use std::sync::Arc;

use evener::core::Nanos;

use super::{answer, count, give, invalid, whole_mut};
use crate::abi::Job;
use crate::queue::Queue;
use crate::runtime::Runtime;
use crate::{Error, Failure};

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_queue_open(
    runtime: *const Runtime,
    queue: *mut *const Queue,
    depth: c_uint,
) -> c_int {
    answer(|| {
        if runtime.is_null() || queue.is_null() {
            return Err(invalid("runtime or queue is NULL"));
        }
        // SAFETY: `open` gave the handle away, and it is not closed during this call, so that a count may be added.
        unsafe { Arc::increment_strong_count(runtime) };
        // SAFETY: that count is this one's.
        let runtime = unsafe { Arc::from_raw(runtime) };
        let opened = Queue::open(&runtime, usize::try_from(depth).unwrap_or(usize::MAX))?;
        // SAFETY: the program gives a place for a handle.
        unsafe { give(queue, Box::into_raw(Box::new(opened))) };
        Ok(0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_queue_close(queue: *mut Queue) -> c_int {
    answer(|| {
        if queue.is_null() {
            return Ok(0);
        }
        // SAFETY: `open` gave it away, and the program gives it back once.
        let queue = unsafe { Box::from_raw(queue) };
        queue.close()?;
        Ok(0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_submit(queue: *mut Queue, jobs: *const *mut Job, n: c_uint) -> c_int {
    // SAFETY: the program keeps to the header, which demands what `submit` does.
    let submit = |queue: &mut Queue, jobs: &[*mut Job]| unsafe { queue.submit(jobs) };
    // SAFETY: the program gives an open queue that no other thread uses, and so many pointers.
    unsafe { with_jobs(queue, jobs, n, submit) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_crypt(queue: *mut Queue, jobs: *const *mut Job, n: c_uint) -> c_int {
    // SAFETY: the program keeps to the header, which demands what `crypt` does.
    let crypt = |queue: &mut Queue, jobs: &[*mut Job]| unsafe { queue.crypt(jobs) }.map(|()| jobs.len());
    // SAFETY: as above.
    unsafe { with_jobs(queue, jobs, n, crypt) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_reap(
    queue: *mut Queue,
    jobs: *mut *mut Job,
    n: c_uint,
    min: c_uint,
    timeout_ns: i64,
) -> c_int {
    let reap = |queue: &mut Queue| {
        let jobs = match n {
            0 => &mut [],
            _ if jobs.is_null() || !jobs.is_aligned() => return Err(invalid("jobs is no pointer to one")),
            // SAFETY: the program gives space for so many pointers.
            n => unsafe { slice::from_raw_parts_mut(jobs, length(n)) },
        };
        let timeout = u64::try_from(timeout_ns).ok().map(Nanos);
        Ok(queue.reap(jobs, length(min), timeout)?)
    };
    // SAFETY: the program gives an open queue that no other thread uses.
    unsafe { with_queue(queue, reap) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_queue_fd(queue: *mut Queue) -> c_int {
    // SAFETY: the program gives an open queue that no other thread uses.
    unsafe { with_queue(queue, |queue| queue.event().map(|fd| usize::try_from(fd).unwrap_or_default())) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_cancel(queue: *mut Queue) -> c_int {
    // SAFETY: as above.
    unsafe { with_queue(queue, |queue| Ok(queue.cancel().map(|()| 0)?)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_in_flight(queue: *mut Queue) -> c_int {
    // SAFETY: as above.
    unsafe { with_queue(queue, |queue| Ok(queue.in_flight())) }
}

/// Does a call with pointers to jobs.
///
/// # Safety
///
/// As [`with_queue`]; the pointers are so many.
unsafe fn with_jobs(
    queue: *mut Queue,
    jobs: *const *mut Job,
    n: c_uint,
    call: impl FnOnce(&mut Queue, &[*mut Job]) -> Result<usize, Error>,
) -> c_int {
    let call = |queue: &mut Queue| {
        let jobs = match n {
            0 => &[],
            _ if jobs.is_null() => return Err(invalid("jobs is NULL")),
            // SAFETY: as the caller promised.
            n => unsafe { slice::from_raw_parts(jobs, length(n)) },
        };
        if jobs.iter().any(|job| job.is_null() || !job.is_aligned()) {
            return Err(invalid("one of jobs is no pointer to a struct evener_job"));
        }
        Ok(call(queue, jobs)?)
    };
    // SAFETY: as the caller promised.
    unsafe { with_queue(queue, call) }
}

/// Does a call with a queue, which takes no more work after a panic.
///
/// # Safety
///
/// Null, or an open queue that no other thread uses.
unsafe fn with_queue(queue: *mut Queue, call: impl FnOnce(&mut Queue) -> Result<usize, Failure>) -> c_int {
    // SAFETY: as the caller promised.
    let queue = match unsafe { whole_mut(queue, "queue") } {
        Ok(queue) => queue,
        Err(failure) => return answer(|| Err(failure)),
    };
    let answered = answer(|| call(&mut *queue).map(count));
    if answered == Error::Panic as i32 {
        queue.set_broken();
    }
    answered
}

fn length(n: c_uint) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
