//! Ways that may come before a kernel's context (`entry/native/front.rs`): from which length on the message under way is for them to look at, and where it stands.

use std::ffi::c_void;
use std::ptr;

use evener_kernels::modes::BLOCK;
use evener_ossl_sys::Param;

use crate::ffi::params;
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
    /// Bytes of this message so far, by which it is known where it stands in its block. Bytes that were refused are among them.
    pub(crate) taken: usize,
    /// The direction that the key is for; `None` without one that is known.
    key_encrypts: Option<bool>,
    /// Whether an IV came, or none is needed.
    has_iv: bool,
    /// Whether something was told that lasts and that other ways know nothing of.
    is_lost: bool,
}

impl Front {
    pub(crate) const NONE: Self = Self {
        row: ptr::null(),
        ways: ptr::null_mut(),
        thresh: usize::MAX,
        first_thresh: [usize::MAX; 2],
        taken: 0,
        key_encrypts: None,
        has_iv: false,
        is_lost: false,
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

    /// An init comes, which the kernel's context takes, or refuses and then knows no key; without an IV where the cipher has none.
    #[inline]
    pub(crate) fn begin(&mut self, encrypts: bool, has_key: bool, iv_bytes: Option<usize>) {
        self.taken = 0;
        if has_key {
            self.key_encrypts = Some(encrypts);
        }
        if let Some(iv_bytes) = iv_bytes {
            self.has_iv = iv_bytes == BLOCK;
        }
        let is_known = self.has_iv && self.key_encrypts == Some(encrypts) && !self.is_lost;
        self.thresh = if is_known { self.first_thresh[usize::from(encrypts)] } else { usize::MAX };
    }

    /// Parameters come: in the middle of a message, or where they are not known here, it stays the kernel's. `key_bytes` is the cipher's length of a key.
    pub(crate) fn told(&mut self, list: &[Param], key_bytes: usize) {
        for param in list {
            match (params::key(param).to_bytes(), params::number(param)) {
                (b"padding", Some(_)) if self.taken == 0 => continue,
                // EVP sets the length that is the cipher's already; another one takes the key away.
                (b"keylen", Some(bytes)) if bytes == key_bytes && self.taken == 0 => continue,
                (b"keylen", _) => self.key_encrypts = None,
                (name, _) => self.is_lost |= name.starts_with(b"tls"),
            }
            self.thresh = usize::MAX;
        }
    }

    /// A key came that is not known here.
    pub(crate) fn lose_key(&mut self) {
        (self.key_encrypts, self.thresh) = (None, usize::MAX);
    }

    /// After a copy of another's bytes was made here: what stands before that is not before this.
    pub(crate) fn become_copy(&mut self) {
        if !self.ways.is_null() {
            (self.ways, self.thresh) = (ptr::null_mut(), usize::MAX);
        }
    }
}
