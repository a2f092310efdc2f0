//! A nonce that OpenSSL's own generator makes, which an inner context is asked for.

use evener_ring::hold_cancellation;

use super::{GcmContext, NONCE_BYTES, NONCE_BYTES_MAX, Nonce};
use crate::inner_cipher::context::OwnContext;
use crate::native::{Refused, prov};

impl GcmContext {
    /// Makes the message's nonce for a program that asks for it before its first data, where this OpenSSL does that: 4.0 does, and those before refuse.
    #[cold]
    pub(super) fn make_asked_nonce(&mut self) -> Result<(), Refused> {
        let _held = hold_cancellation();
        let no_key = [0; 32];
        let no_key = no_key.get(..self.key_bytes).filter(|_| self.has_key);
        let (nonce_len, mut nonce) = (self.nonce_len(), [0; NONCE_BYTES_MAX]);
        let made = nonce.get_mut(..nonce_len).ok_or(Refused)?;
        let is_made = || {
            let own = OwnContext::new(self.row())?;
            let inner = own.inner();
            let is_ready = inner.init(self.encrypts, no_key, None)
                && (nonce_len == NONCE_BYTES || inner.set_nonce_bytes(nonce_len));
            (is_ready && inner.nonce(made)).then_some(())
        };
        prov(self.row()).core.quietly(is_made).ok_or(Refused)?;
        self.take_made_nonce(nonce);
        Ok(())
    }

    /// A nonce that a generator made is the next message's.
    pub(super) fn take_made_nonce(&mut self, nonce: [u8; NONCE_BYTES_MAX]) {
        self.nonce_bytes = nonce;
        self.nonce = Nonce::Given;
        self.is_nonce_made = true;
    }

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
