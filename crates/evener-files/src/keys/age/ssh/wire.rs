//! SSH's binary form: strings with their length before them.

use zeroize::Zeroizing;

/// What is left to be read.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes")))
    }

    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let bytes = usize::try_from(self.number()?).ok()?;
        self.take(bytes)
    }

    /// A string that has to be text.
    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.string()?).ok()
    }

    /// A number of any length, big end first, without the zero that keeps it from being negative.
    pub(super) fn large(&mut self) -> Option<&'a [u8]> {
        let bytes = self.string()?;
        Some(&bytes[bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len())..])
    }
}

/// Some strings, each with its length before it.
pub(super) fn strings(parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
    let mut all = Zeroizing::new(Vec::with_capacity(parts.iter().map(|part| 4 + part.len()).sum()));
    for part in parts {
        all.extend_from_slice(&u32::try_from(part.len()).expect("keys are short").to_be_bytes());
        all.extend_from_slice(part);
    }
    all
}

/// A number of any length as [`Reader::large`] reads it.
pub(super) fn large(number: &[u8]) -> Vec<u8> {
    let number = &number[number.iter().position(|&byte| byte != 0).unwrap_or(number.len())..];
    let is_negative = number.first().is_some_and(|first| first & 0x80 != 0);
    let zero: &[u8] = if is_negative { &[0] } else { &[] };
    [zero, number].concat()
}
