//! A nonce that OpenSSL's own generator makes, which an inner context is asked for.

use evener_ring::hold_cancellation;

use super::{GcmContext, NONCE_BYTES, NONCE_BYTES_MAX};
use crate::inner_cipher::context::OwnContext;
use crate::native::{Refused, prov};

impl GcmContext {
    /// A nonce of this context's length that begins with these bytes and is random besides, from OpenSSL's own generator. None at all is fixed of
    /// one that OpenSSL makes for a program that gave none, which has 96 bits at least.
    pub(super) fn made_by_inner(&self, fixed: &[u8]) -> Result<[u8; NONCE_BYTES_MAX], Refused> {
        // OpenSSL's generator asks the kernel, at points at which a thread is cancelled; no frame of ours may be unwound.
        let _held = hold_cancellation();
        let own = OwnContext::new(self.row()).ok_or(Refused)?;
        let (inner, nonce_len, no_key) = (own.inner(), self.nonce_len(), [0; 32]);
        let no_key = no_key.get(..self.key_bytes).ok_or(Refused)?;
        let mut nonce = [0; NONCE_BYTES_MAX];
        let made = nonce.get_mut(..nonce_len).ok_or(Refused)?;
        let is_made = || {
            inner.init(true, Some(no_key), None)
                && (nonce_len == NONCE_BYTES || inner.set_nonce_bytes(nonce_len))
                && if fixed.is_empty() { inner.associate(&[0]) } else { inner.set_fixed_nonce(fixed) }
                && inner.nonce(made)
        };
        // What it says of a refusal is not what it says of the program's call.
        prov(self.row()).core.quietly(is_made).then_some(nonce).ok_or(Refused)
    }
}
