//! A nonce that OpenSSL's own generator makes, which an inner context is asked for.

use evener_ring::hold_cancellation;

use super::{GcmContext, Made, NONCE_BYTES, NONCE_BYTES_MAX, Nonce};
use crate::inner_cipher::context::OwnContext;
use crate::native::{Refused, prov};

impl GcmContext {
    /// Makes the message's nonce for a program that asks for it before its first data, where this OpenSSL does that: 4.0 does, but for a record, and those before
    /// refuse.
    #[cold]
    pub(super) fn make_asked_nonce(&mut self) -> Result<(), Refused> {
        if self.is_record_due {
            return Err(Refused);
        }
        let _held = hold_cancellation();
        let (nonce_len, mut nonce) = (self.nonce_len(), [0; NONCE_BYTES_MAX]);
        let made = nonce.get_mut(..nonce_len).ok_or(Refused)?;
        let is_made = || {
            let own = OwnContext::new(self.row())?;
            let inner = own.inner();
            let is_ready = inner.init(self.encrypts, None, None)
                && (nonce_len == NONCE_BYTES || inner.set_nonce_bytes(nonce_len));
            (is_ready && inner.nonce(made)).then_some(())
        };
        prov(self.row()).core.quietly(is_made).ok_or(Refused)?;
        self.take_made_nonce(nonce);
        Ok(())
    }

    /// Whether this OpenSSL says of a context that it made its nonce: of one that was given another since, 3.4 to 3.6 do, and 4.0 does not.
    pub(super) fn says_made(&self) -> bool {
        match self.made {
            Made::Never => false,
            Made::Last => true,
            Made::Earlier => {
                let _held = hold_cancellation();
                prov(self.row()).core.quietly(|| self.says_made_of_given().unwrap_or(false))
            }
        }
    }

    /// What an inner context says that made a nonce, and was given another.
    #[cold]
    fn says_made_of_given(&self) -> Option<bool> {
        let own = OwnContext::new(self.row())?;
        let (inner, no_key) = (own.inner(), [0; 32]);
        let is_ready = inner.init(true, Some(no_key.get(..self.key_bytes)?), None)
            && inner.associate(&[0])
            && inner.init(true, None, Some(&[0; NONCE_BYTES]));
        is_ready.then(|| inner.says_made_nonce())
    }

    /// A nonce that a generator made is the next message's.
    pub(super) fn take_made_nonce(&mut self, nonce: [u8; NONCE_BYTES_MAX]) {
        self.nonce_bytes = nonce;
        self.nonce = Nonce::Given;
        self.made = Made::Last;
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
