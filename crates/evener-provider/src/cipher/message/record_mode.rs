//! What libssl has set about the records of a context: their version, and whether a MAC is inside the ciphertext.

use evener_core::BLOCK_BYTES;

/// What libssl has set about the records of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct RecordMode {
    /// As on the wire; `None` where it was no number.
    pub(crate) version: Option<usize>,
    /// Bytes of the MAC inside the ciphertext: 0 under Encrypt-then-MAC. Unknown until it was set.
    pub(crate) mac_bytes: Option<usize>,
}

/// TLS 1.0, whose records have no IV of their own.
const TLS_1_0: usize = 0x0301;

/// TLS 1.1 and 1.2, DTLS 1.0 before its standard, 1.0 and 1.2: each record begins with its IV.
const EXPLICIT_IV: [usize; 5] = [0x0302, 0x0303, 0x0100, 0xFEFF, 0xFEFD];

impl RecordMode {
    /// Whether records of this kind may be worked on here. SSL 3.0 pads otherwise and is left alone.
    pub(crate) fn are_ours(self, encrypts: bool) -> bool {
        let known = self.version.is_some_and(|version| version == TLS_1_0 || EXPLICIT_IV.contains(&version));
        known && (encrypts || self.mac_bytes == Some(0))
    }

    pub(crate) fn iv_bytes(self) -> usize {
        if self.version == Some(TLS_1_0) { 0 } else { BLOCK_BYTES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_then_encrypt_is_never_decrypted_here() {
        for version in [0x0301, 0x0302, 0x0303, 0xFEFF, 0xFEFD] {
            let records = |mac_bytes| RecordMode { version: Some(version), mac_bytes };
            assert!(records(Some(0)).are_ours(false));
            assert!(!records(Some(20)).are_ours(false));
            assert!(!records(None).are_ours(false));
            assert!(records(None).are_ours(true));
        }
        for version in [Some(0x0300), Some(0), Some(0x0304), None] {
            assert!(!RecordMode { version, mac_bytes: Some(0) }.are_ours(true), "{version:?}");
        }
    }
}
