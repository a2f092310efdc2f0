//! TLS 1.2 records (RFC 5288): a message each, in place, whose nonce lies in front of the text or is counted up here, and whose tag lies behind it.

use evener_kernels::with_registers_cleared;
use evener_ossl_sys::Param;
use zeroize::Zeroize as _;

use super::{GcmContext, NONCE_BYTES_MAX, Nonce, TAG_BYTES};
use crate::ffi::params;
use crate::inner_cipher::call::Update;
use crate::native::Refused;

/// Of a record: associated data, the part of the nonce that it carries, and the part that it does not (RFC 5288, 3).
pub(super) const RECORD_AAD_BYTES: usize = 13;
const EXPLICIT_BYTES: usize = 8;
const FIXED_BYTES_MIN: usize = 4;

impl GcmContext {
    /// A TLS 1.2 record in place: explicit nonce, text, tag. The bytes of what is there then.
    pub(super) fn tls_record(&mut self, call: &Update) -> Result<usize, Refused> {
        let (_, to, bytes) = call.both().filter(|_| call.is_in_place() && self.has_key).ok_or(Refused)?;
        let text_bytes = bytes.checked_sub(EXPLICIT_BYTES + TAG_BYTES).ok_or(Refused)?;
        let record = call.space(bytes);
        let (explicit, rest) = record.split_at_mut_checked(EXPLICIT_BYTES).ok_or(Refused)?;
        let (text, tag) = rest.split_at_mut_checked(text_bytes).ok_or(Refused)?;
        debug_assert_eq!(explicit.as_mut_ptr(), to, "a record is worked on where it lies");
        if self.encrypts {
            // One key encrypts fewer records than that (FIPS 140-2 IG, A.5).
            self.records = self.records.checked_add(1).ok_or(Refused)?;
            self.next_nonce(explicit)?;
        } else {
            self.set_invocation(explicit)?;
        }
        let aad = *self.tag.first_chunk::<RECORD_AAD_BYTES>().ok_or(Refused)?;
        let mut written = 0;
        let (place, no_place) = (text.as_mut_ptr(), std::ptr::null_mut());
        let aad = Update::of(no_place, &raw mut written, aad.len(), aad.as_ptr(), aad.len());
        let body = Update::of(place, &raw mut written, text_bytes, place, text_bytes);
        self.pieces(&aad)?;
        self.pieces(&body)?;
        if self.encrypts {
            tag.copy_from_slice(&self.close(None)?.ok_or(Refused)?);
            return Ok(bytes);
        }
        let given = <[u8; TAG_BYTES]>::try_from(&*tag).map_err(|_| Refused)?;
        if self.close(Some((&given, TAG_BYTES))).is_err() {
            text.zeroize();
            return Err(Refused);
        }
        Ok(text_bytes)
    }

    /// Begins a message under the nonce that is due, gives its last bytes and counts it up.
    pub(super) fn next_nonce(&mut self, out: &mut [u8]) -> Result<(), Refused> {
        if !self.counts_nonce || !self.has_key {
            return Err(Refused);
        }
        with_registers_cleared(|| self.begin_message());
        let nonce_len = self.nonce_len();
        let shown = if out.is_empty() || out.len() > nonce_len { nonce_len } else { out.len() };
        let nonce = self.nonce_bytes.get_mut(..nonce_len).ok_or(Refused)?;
        let out = out.get_mut(..shown).ok_or(Refused)?;
        out.copy_from_slice(nonce.get(nonce_len - shown..).ok_or(Refused)?);
        let counter = nonce.last_chunk_mut::<EXPLICIT_BYTES>().ok_or(Refused)?;
        *counter = u64::from_be_bytes(*counter).wrapping_add(1).to_be_bytes();
        self.nonce = Nonce::Begun;
        Ok(())
    }

    /// Begins a message whose nonce ends with these bytes, to be decrypted.
    pub(super) fn set_invocation(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        if !self.counts_nonce || !self.has_key || self.encrypts {
            return Err(Refused);
        }
        let nonce_len = self.nonce_len();
        let first = nonce_len.checked_sub(bytes.len()).ok_or(Refused)?;
        self.nonce_bytes.get_mut(first..nonce_len).ok_or(Refused)?.copy_from_slice(bytes);
        with_registers_cleared(|| self.begin_message());
        self.nonce = Nonce::Begun;
        Ok(())
    }

    /// The associated data of a record: its length is that of what goes over the wire.
    pub(super) fn take_record(&mut self, aad: &[u8; RECORD_AAD_BYTES]) -> Result<(), Refused> {
        let place = self.tag.first_chunk_mut::<RECORD_AAD_BYTES>().ok_or(Refused)?;
        *place = *aad;
        self.is_record_due = true;
        let length = place.last_chunk_mut::<2>().ok_or(Refused)?;
        let around = if self.encrypts { 8 } else { 8 + 16 };
        let text_bytes = u16::from_be_bytes(*length).checked_sub(around).ok_or(Refused)?;
        *length = text_bytes.to_be_bytes();
        self.record_padding = TAG_BYTES;
        Ok(())
    }

    /// The first bytes of the nonce of all records; the others are random where we encrypt.
    pub(super) fn fix_nonce(&mut self, param: &Param) -> Result<(), Refused> {
        if param.data_size == usize::MAX {
            // All of it.
            let whole = Param { data_size: self.nonce_len(), ..*param };
            let nonce = params::octets(&whole, NONCE_BYTES_MAX).ok_or(Refused)?;
            self.nonce_bytes.get_mut(..nonce.len()).ok_or(Refused)?.copy_from_slice(nonce);
        } else {
            let fixed = params::octets(param, NONCE_BYTES_MAX)
                .filter(|fixed| fixed.len() >= FIXED_BYTES_MIN)
                .ok_or(Refused)?;
            if self.nonce_len().checked_sub(fixed.len()).is_none_or(|left| left < EXPLICIT_BYTES) {
                return Err(Refused);
            }
            if self.encrypts {
                let nonce = self.made_by_inner(fixed)?;
                self.take_made_nonce(nonce);
            } else {
                self.nonce_bytes.get_mut(..fixed.len()).ok_or(Refused)?.copy_from_slice(fixed);
            }
        }
        self.counts_nonce = true;
        self.nonce = Nonce::Given;
        Ok(())
    }
}
