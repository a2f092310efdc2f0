//! Parameters and queries.

use evener_core::Family;
use evener_kernels::modes::BLOCK;
use evener_ossl_sys::Param;

use super::BlockContext;
use crate::ffi::params;

impl BlockContext {
    /// Parameters, all of them or none.
    pub(crate) fn set(&mut self, list: &[Param]) -> Option<()> {
        let (mut pads, mut used) = (None, None);
        for param in list {
            let place = match params::key(param).to_bytes() {
                b"padding" => &mut pads,
                b"num" if self.family() == Family::Ctr => &mut used,
                b"use-bits" => continue,
                name if self.family() != Family::Ctr || name.starts_with(b"tls") => return None,
                // Nothing to a counter, which the inner cipher would not take over whole.
                _ => continue,
            };
            let value = params::number(param)?;
            // The first of a name counts.
            place.get_or_insert(value);
        }
        if used.is_some_and(|used| used >= BLOCK) {
            return None;
        }
        self.held_bytes = used.unwrap_or(self.held_bytes);
        // OpenSSL's XTS does not look at it.
        if let Some(pads) = pads.filter(|_| self.family() != Family::Xts) {
            self.pads = pads != 0;
        }
        Some(())
    }

    /// Notes whether the inner cipher, which works in our place, pads.
    pub(crate) fn note_padding(&mut self, pads: bool) {
        self.pads = pads || self.family() == Family::Xts;
    }

    /// Answers queries; what OpenSSL's cipher has no answer to is left as it is.
    pub(crate) fn get(&self, list: &mut [Param]) -> Option<()> {
        if params::find(list, c"tls-mac").is_some() {
            return None;
        }
        let iv_bytes = self.iv_bytes();
        let used = if self.family() == Family::Ctr { self.held_bytes } else { 0 };
        let lengths = [
            (c"ivlen", iv_bytes),
            (c"keylen", self.native.key_bytes),
            (c"padding", usize::from(self.pads)),
            (c"num", used),
        ];
        for (name, length) in lengths {
            let is_fit =
                params::find_mut(list, name).is_none_or(|param| params::answer_length(param, length));
            is_fit.then_some(())?;
        }
        for (name, iv) in [(c"iv", &self.first_iv), (c"updated-iv", &self.iv)] {
            let iv = iv.get(..iv_bytes)?;
            let is_fit = params::find_mut(list, name).is_none_or(|param| params::answer_octets(param, iv));
            is_fit.then_some(())?;
        }
        Some(())
    }

    /// Bytes of an IV.
    pub(crate) fn iv_bytes(&self) -> usize {
        if self.family() == Family::Ecb { 0 } else { BLOCK }
    }
}
