//! A call that is refused: an inner context is made that refuses it as well, so that the error queue has what this OpenSSL says of such a call. It answers, too, what
//! versions of OpenSSL answer each in another way.
//!
//! The context has no key, with which a cipher works on nothing; direction, nonce and the length of the tag are the message's, for what OpenSSL says hangs on these.

use evener_ossl_sys::Param;

use super::{GcmContext, Nonce};
use crate::inner_cipher::call::Update;
use crate::inner_cipher::context::{InnerContext, OwnContext};
use crate::native::prov;

impl GcmContext {
    /// Has an inner context refuse `call`; whether it did.
    #[cold]
    pub(crate) fn is_refused_by_inner(&self, call: impl FnOnce(InnerContext<'_>) -> bool) -> bool {
        let stand_in = prov(self.row()).core.quietly(|| self.stand_in());
        stand_in.is_some_and(|own| !call(own.inner()))
    }

    /// How much space the answer to a query takes that has none, as this OpenSSL says; `None` where it does not answer.
    #[cold]
    pub(super) fn size_by_inner(&self, request: &Param) -> Option<usize> {
        prov(self.row()).core.quietly(|| self.stand_in()?.inner().size_of_answer(request))
    }

    /// Has an inner context with a key of zeros refuse the end of a decryption to which no tag was given, as `call` comes; 4.0 says so on the error queue.
    #[cold]
    pub(crate) fn refuse_end_by_inner(&self, call: &Update) {
        let ready = || {
            let own = OwnContext::new(self.row())?;
            let no_key = [0; 32];
            own.inner()
                .init(false, Some(no_key.get(..self.key_bytes)?), Some(self.nonce_so_far()))
                .then_some(own)
        };
        if let Some(own) = prov(self.row()).core.quietly(ready) {
            _ = own.inner().last(call);
        }
    }

    fn stand_in(&self) -> Option<OwnContext<'static>> {
        let own = OwnContext::new(self.row())?;
        let inner = own.inner();
        if let Some(tag) = self.tag_len.and_then(|bytes| self.tag.get(..bytes)) {
            // Of a decryption, where a tag is taken.
            _ = inner.init(false, None, None) && inner.set_tag(tag);
        }
        let nonce = (self.nonce != Nonce::Missing).then(|| self.nonce_so_far());
        let is_told = inner.init(self.encrypts, None, nonce) && inner.set_nonce_bytes(self.nonce_len());
        is_told.then_some(own)
    }
}
