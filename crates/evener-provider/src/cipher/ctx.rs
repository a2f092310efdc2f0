//! A cipher context: the inner one, and what is known about the message in it.

use std::ffi::c_void;

use evener_ossl_sys::CipherUpdate;

use super::Row;

/// What C holds for a cipher in use. The fields that a small update reads come first, in one cache line.
#[repr(C)]
pub(crate) struct CipherCtx {
    /// The inner update.
    pub(crate) update: CipherUpdate,
    /// The inner one-shot function; the inner update where there is none, and the core then calls neither.
    pub(crate) cipher: CipherUpdate,
    /// The inner context.
    pub(crate) inner: *mut c_void,
    /// A shorter update is the inner function's and nobody else's; `usize::MAX` where all are.
    pub(crate) thresh: usize,
    /// The algorithm's other inner functions. Its provider outlives the context.
    pub(crate) row: *const Row,
}

impl CipherCtx {
    /// One around `inner`, which it owns from here on.
    pub(crate) fn new(row: &Row, inner: *mut c_void) -> Self {
        Self { update: row.update, cipher: row.cipher.unwrap_or(row.update), inner, thresh: row.thresh, row }
    }

    pub(crate) fn row<'p>(&self) -> &'p Row {
        // SAFETY: rows go with their provider, which the core keeps while a context of it lives.
        unsafe { &*self.row }
    }
}
