//! Modes of AES that a message may be in.

/// Bytes of a block.
pub const BLOCK: usize = 16;

/// What is done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are named in full")]
pub enum Mode {
    EcbEncryption,
    EcbDecryption,
    CbcDecryption,
    Ctr,
    XtsEncryption,
    XtsDecryption,
}

impl Mode {
    /// Whether blocks are decrypted as AES decrypts them.
    pub(crate) fn inverts(self) -> bool {
        matches!(self, Self::EcbDecryption | Self::CbcDecryption | Self::XtsDecryption)
    }

    /// Whether it has two keys.
    pub(crate) fn is_xts(self) -> bool {
        matches!(self, Self::XtsEncryption | Self::XtsDecryption)
    }
}
