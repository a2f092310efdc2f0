//! Ways that may come before a kernel's context (`entry/native/front.rs`): from which length on the message under way is for them to look at.

use std::ffi::c_void;
use std::ptr;

use evener_kernels::modes::BLOCK;

use crate::state::rows::CipherRow;

/// What a kernel's context has for the ways before it.
pub(crate) struct Front {
    /// Theirs; null where there are none.
    row: *const CipherRow,
    /// The context before this one; null until it is needed.
    pub(crate) ways: *mut c_void,
    /// A shorter update is the kernel's alone: `usize::MAX` where all are, 0 once there is a context before this one.
    pub(crate) thresh: usize,
    /// `thresh` of a message that may take another way, decrypting and encrypting.
    first_thresh: [usize; 2],
    /// The direction that the key is for; `None` without one.
    key_encrypts: Option<bool>,
    has_iv: bool,
}

impl Front {
    pub(crate) const NONE: Self = Self {
        row: ptr::null(),
        ways: ptr::null_mut(),
        thresh: usize::MAX,
        first_thresh: [usize::MAX; 2],
        key_encrypts: None,
        has_iv: false,
    };

    pub(crate) fn of(row: &CipherRow) -> Self {
        let first_thresh = [row.context_thresh(false), row.context_thresh(true)];
        Self { row, first_thresh, has_iv: !row.has_iv(), ..Self::NONE }
    }

    /// The ways' row, and the direction of a message that they may have; `None` where there is none of them, or no key.
    pub(crate) fn row_and_direction(&self) -> Option<(*const CipherRow, bool)> {
        Some((self.row, self.key_encrypts?)).filter(|_| self.is_there())
    }

    /// Whether ways may come before the kernel.
    pub(crate) fn is_there(&self) -> bool {
        !self.row.is_null()
    }

    /// An init comes, which the kernel's context takes, or refuses and then knows no key.
    #[inline]
    pub(crate) fn begin(&mut self, encrypts: bool, has_key: bool, iv_bytes: Option<usize>, has_params: bool) {
        if has_key {
            self.key_encrypts = Some(encrypts);
        }
        if let Some(iv_bytes) = iv_bytes {
            self.has_iv = iv_bytes == BLOCK;
        }
        let is_known = !has_params && self.has_iv && self.key_encrypts == Some(encrypts);
        self.thresh = if is_known { self.first_thresh[usize::from(encrypts)] } else { usize::MAX };
    }

    /// After a copy of another's bytes was made here, of whose message so many bytes had come: in the middle of one the copy stays the kernel's.
    pub(crate) fn become_copy(&mut self, taken: usize) {
        if taken > 0 || !self.ways.is_null() {
            self.thresh = usize::MAX;
        }
        self.ways = ptr::null_mut();
    }
}
