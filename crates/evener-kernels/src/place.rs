//! Where text comes from and goes to.

/// Whether what is written begins in what is read, behind its beginning: then the text is moved to its new place first, and worked on there.
#[inline(always)]
pub(crate) fn begins_inside(from: *const u8, to: *const u8, bytes: usize) -> bool {
    let ahead = to.addr().wrapping_sub(from.addr());
    ahead > 0 && ahead < bytes
}
