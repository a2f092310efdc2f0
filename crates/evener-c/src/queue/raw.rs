//! A job of the program: looked at, and taken apart into what a job of the runtime is armed with. What cannot be is refused before
//! anything refers to its memory.

use std::ffi::c_void;
use std::slice;
use std::sync::Arc;

use evener::core::Job;
use evener::core::job::Loan;

use super::kept_sessions::KeptSessions;
use crate::abi;
use crate::error::OK;
use crate::runtime::Runtime;
use crate::session::Shape;

/// What a box was armed with.
#[derive(Clone, Copy)]
pub(super) struct Armed {
    /// Row of the session.
    pub(super) row: usize,
    /// Length of the tag or digest that comes out.
    pub(super) tag_out: usize,
}

/// Arms a box for a job of the program; `None` where the job cannot be done.
///
/// # Safety
///
/// As [`Queue::submit`](super::Queue::submit).
#[inline(always)]
pub(super) unsafe fn arm(
    armed: &mut Job<'static>,
    job: *mut abi::Job,
    runtime: &Arc<Runtime>,
    sessions: &mut KeptSessions,
) -> Option<Armed> {
    let place = (job.addr(), size_of::<abi::Job>());
    // SAFETY: the caller promised that it is whole and that no other thread writes to it. Jobs under way may have it as source: it is read.
    let job = unsafe { &*job };
    if job.session.is_null() || !are_reserved_zero(job) {
        return None;
    }
    // SAFETY: the caller promised that the session is open.
    let session = unsafe { &*job.session };
    let shape = session.shape();
    let spans = Spans::of(job, shape);
    if !Arc::ptr_eq(session.runtime(), runtime) || !spans.fit(shape) || overlap(spans.dst, place) {
        return None;
    }
    // SAFETY: the caller promised that the spans are memory of these lengths, lent for as long as the job is under way. They were just
    // seen not to overlap.
    unsafe { lend(armed, job, spans) };
    // SAFETY: the session is open; the box is disarmed before the row is let go of.
    let (row, keyed) = unsafe { sessions.acquire(job.session) };
    match shape.iv_bytes {
        // Copied without asking how long it is.
        16 => armed.arm(keyed, &job.iv, job.src_len),
        bytes => armed.arm(keyed, &job.iv[..bytes], job.src_len),
    }
    if shape.tag_in > 0 {
        armed.set_tag(&job.tag[..shape.tag_in]);
    }
    if armed.lengths_fit() {
        return Some(Armed { row, tag_out: shape.tag_out });
    }
    armed.disarm();
    sessions.release(row);
    None
}

/// Writes what came of it into the program's struct: status, bytes written, and where the job was done and makes one, its tag, which is empty
/// where it makes none.
///
/// # Safety
///
/// The struct is whole, and no other thread writes to it.
#[inline]
pub(super) unsafe fn settle(settled: *mut abi::Job, (status, written): (i32, usize), tag: &[u8]) {
    // Field by field, with no reference to the whole: other jobs under way may have some of it as source.
    // SAFETY: as the caller promised.
    let field = unsafe { &raw mut (*settled).status };
    // SAFETY: as the caller promised.
    unsafe { field.write(status) };
    // SAFETY: as the caller promised.
    let field = unsafe { &raw mut (*settled).written };
    // SAFETY: as the caller promised.
    unsafe { field.write(written) };
    if status != OK || tag.is_empty() {
        return;
    }
    // SAFETY: as the caller promised.
    let field = unsafe { &raw mut (*settled).tag };
    // SAFETY: as the caller promised; the tag is the box's own, and no more of it is written than the field has space for.
    unsafe {
        field
            .cast::<u8>()
            .copy_from_nonoverlapping(tag.as_ptr(), tag.len().min(size_of_val(&abi::Job::ZERO.tag)));
    };
}

fn are_reserved_zero(job: &abi::Job) -> bool {
    job.reserved0 == 0 && job.reserved == [0; 4]
}

/// Where a job's spans lie, as numbers.
#[derive(Clone, Copy)]
struct Spans {
    src: (usize, usize),
    /// Nothing where there is no output.
    dst: (usize, usize),
    aad: (usize, usize),
    in_place: bool,
}

impl Spans {
    #[inline]
    fn of(job: &abi::Job, shape: Shape) -> Self {
        let dst_space = if shape.is_cipher { job.dst_space } else { 0 };
        Self {
            src: (job.src.addr(), job.src_len),
            dst: (job.dst.addr(), dst_space),
            aad: (job.aad.addr(), job.aad_len),
            in_place: shape.is_cipher && job.src.addr() == job.dst.addr() && !job.dst.is_null(),
        }
    }

    /// Whether they are memory, and output overlaps nothing but input that it replaces.
    #[inline]
    fn fit(self, shape: Shape) -> bool {
        let Self { src, dst, aad, in_place } = self;
        if in_place && aad.1 == 0 {
            // As most are. What is read lies within what is written.
            return is_memory(dst) && dst.1 >= src.1;
        }
        let apart = match in_place {
            true => dst.1 >= src.1,
            false => !overlap(src, dst),
        };
        let may_have_aad = aad.1 == 0 || shape.has_aad;
        is_memory(src) && is_memory(dst) && is_memory(aad) && apart && !overlap(aad, dst) && may_have_aad
    }
}

/// Not null unless empty, and not beyond the end of all memory.
#[inline]
const fn is_memory((start, length): (usize, usize)) -> bool {
    length == 0 || start != 0 && length <= isize::MAX as usize && start.checked_add(length).is_some()
}

#[inline]
const fn overlap((one, one_length): (usize, usize), (other, other_length): (usize, usize)) -> bool {
    one_length > 0
        && other_length > 0
        && one < other.saturating_add(other_length)
        && other < one.saturating_add(one_length)
}

/// Lends the job's memory to the box.
///
/// # Safety
///
/// The spans are memory of their lengths, lent for as long as the box is armed, and fit.
#[inline(always)]
unsafe fn lend(armed: &mut Job<'static>, job: &abi::Job, spans: Spans) {
    // SAFETY: as the caller promised.
    let dst = unsafe { written(job.dst, spans.dst.1) };
    armed.lend(match spans.in_place {
        true => Loan::InPlace(dst),
        // SAFETY: as the caller promised.
        false => Loan::Apart { src: unsafe { read(job.src, job.src_len) }, dst },
    });
    // SAFETY: as the caller promised.
    armed.set_aad(unsafe { read(job.aad, job.aad_len) });
}

/// # Safety
///
/// So many bytes are there, and no thread writes to them while the slice lives.
unsafe fn read(start: *const c_void, length: usize) -> &'static [u8] {
    match length {
        0 => &[],
        // SAFETY: as the caller promised.
        _ => unsafe { slice::from_raw_parts(start.cast(), length) },
    }
}

/// # Safety
///
/// So many bytes are there, and no other thread touches them while the slice lives.
unsafe fn written(start: *mut c_void, length: usize) -> &'static mut [u8] {
    match length {
        0 => &mut [],
        // SAFETY: as the caller promised.
        _ => unsafe { slice::from_raw_parts_mut(start.cast(), length) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_overlap_where_they_share_a_byte_and_empty_ones_never() {
        assert!(overlap((10, 5), (14, 1)) && overlap((14, 1), (10, 5)) && overlap((10, 5), (11, 2)));
        assert!(!overlap((10, 5), (15, 5)) && !overlap((15, 5), (10, 5)));
        assert!(!overlap((10, 0), (10, 5)) && !overlap((10, 5), (12, 0)));
    }

    #[test]
    fn memory_is_not_null_and_ends_before_all_memory_does() {
        assert!(is_memory((0, 0)) && is_memory((1, 4)));
        assert!(!is_memory((0, 1)) && !is_memory((usize::MAX, 2)) && !is_memory((1, usize::MAX)));
    }
}
