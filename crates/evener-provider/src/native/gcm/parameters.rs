//! Parameters and queries, in OpenSSL's order.

use std::ffi::CStr;

use evener_ossl_sys::Param;

use super::record::RECORD_AAD_BYTES;
use super::{GcmContext, NONCE_BYTES_MAX, Nonce, TAG_BYTES};
use crate::ffi::params;
use crate::inner_cipher::context::{GENERATED, answers};
use crate::native::Refused;

impl GcmContext {
    /// Parameters, in OpenSSL's order.
    pub(crate) fn set(&mut self, list: &[Param]) -> Result<(), Refused> {
        if list.is_empty() {
            return Ok(());
        }
        if let Some(param) = params::find(list, c"tag") {
            let tag = params::octets(param, TAG_BYTES).ok_or(Refused)?;
            // Kept even where it is refused, and shown.
            self.tag.get_mut(..tag.len()).ok_or(Refused)?.copy_from_slice(tag);
            if tag.is_empty() || self.encrypts {
                return Err(Refused);
            }
            self.tag_len = Some(tag.len());
        }
        if let Some(param) = params::find(list, c"ivlen") {
            let bytes =
                params::number(param).filter(|bytes| (1..=NONCE_BYTES_MAX).contains(bytes)).ok_or(Refused)?;
            if bytes != self.nonce_len() {
                if self.nonce != Nonce::Missing {
                    self.nonce = Nonce::Used;
                }
                self.nonce_len = bytes;
            }
        }
        if let Some(param) = params::find(list, c"tlsaad") {
            let aad = params::octets(param, RECORD_AAD_BYTES).ok_or(Refused)?;
            self.take_record(aad.try_into().map_err(|_| Refused)?)?;
        }
        if let Some(param) = params::find(list, c"tlsivfixed") {
            self.fix_nonce(param)?;
        }
        if let Some(param) = params::find(list, c"tlsivinv") {
            self.set_invocation(params::octets(param, NONCE_BYTES_MAX).ok_or(Refused)?)?;
        }
        Ok(())
    }

    /// Answers queries, in OpenSSL's order.
    pub(crate) fn get(&mut self, list: &mut [Param]) -> Result<(), Refused> {
        let tag_len = self.tag_len.unwrap_or(TAG_BYTES);
        for (name, length) in
            [(c"ivlen", self.nonce_len()), (c"keylen", self.key_bytes), (c"taglen", tag_len)]
        {
            answer_length(list, name, length)?;
        }
        for name in [c"iv", c"updated-iv"] {
            if let Some(param) = params::find_mut(list, name) {
                self.answer_nonce(param)?;
            }
        }
        answer_length(list, c"tlsaadpad", self.record_padding)?;
        if let Some(param) = params::find_mut(list, c"tag") {
            self.answer_tag(param)?;
        }
        if let Some(param) = params::find_mut(list, c"tlsivgen") {
            // Of more bytes than a nonce has, as many as there are.
            let out = params::octets_mut(param, usize::MAX).ok_or(Refused)?;
            self.next_nonce(out)?;
        }
        // Since 3.4; before, no cipher knows the name, and it stays as it is.
        if let Some(param) = params::find_mut(list, GENERATED).filter(|_| answers(self.row(), GENERATED)) {
            params::answer_flag(param, self.says_made()).then_some(()).ok_or(Refused)?;
        }
        Ok(())
    }

    fn answer_nonce(&mut self, param: &mut Param) -> Result<(), Refused> {
        if self.nonce == Nonce::Missing {
            self.make_asked_nonce()?;
        }
        if param.data.is_null() {
            return self.answer_size(param);
        }
        let is_answered =
            param.data_size >= self.nonce_len() && params::answer_octets(param, self.nonce_so_far());
        is_answered.then_some(()).ok_or(Refused)
    }

    fn answer_tag(&self, param: &mut Param) -> Result<(), Refused> {
        if param.data.is_null() {
            return self.answer_size(param);
        }
        let shown = self
            .tag
            .get(..param.data_size)
            .filter(|shown| !shown.is_empty() && self.encrypts && self.tag_len.is_some());
        params::answer_octets(param, shown.ok_or(Refused)?).then_some(()).ok_or(Refused)
    }

    /// A query that has no space wants to know how much it takes: versions differ in which of them they answer.
    fn answer_size(&self, param: &mut Param) -> Result<(), Refused> {
        param.return_size = self.size_by_inner(param).ok_or(Refused)?;
        Ok(())
    }
}

fn answer_length(list: &mut [Param], name: &CStr, length: usize) -> Result<(), Refused> {
    let is_answered = params::find_mut(list, name).is_none_or(|param| params::answer_length(param, length));
    is_answered.then_some(()).ok_or(Refused)
}
