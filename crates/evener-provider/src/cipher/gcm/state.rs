//! What is known of a GCM message.

use evener_core::BLOCK_BYTES;
use evener_core::ghash::{Block, HashKey, Lengths};

use crate::inner_cipher::context::{InnerContext, OwnContext};

/// Text of one message in bytes, 2^36 - 32 (SP 800-38D, section 5.2.1.1).
pub(super) const TEXT_MAX: u64 = (1 << 36) - 32;

/// Bytes of a nonce that can be split: 96 bits.
pub(super) const NONCE_BYTES: usize = 12;

/// The longest nonce that OpenSSL takes, in bytes (`GCM_IV_MAX_SIZE`).
pub(super) const NONCE_BYTES_MAX: usize = 128;

/// What is known about a message, beside key and direction.
#[derive(Default)]
pub(crate) struct Gcm {
    /// The message began with a nonce of 96 bits and all that came is counted here.
    pub(super) is_known: bool,
    /// Something was set that a new context would not have: TLS's IV, or an unknown parameter. For good.
    pub(super) has_foreign_parameter: bool,
    pub(super) nonce: [u8; NONCE_BYTES],
    pub(super) aad_bytes: u64,
    pub(super) text_bytes: u64,
    /// Where the text goes, once the message was split. The inner context is then its shadow.
    pub(super) data: Option<DataContext>,
    /// From the captured key, when it was first needed.
    pub(super) hash: Option<HashKey>,
}

impl Gcm {
    /// A message begins; it is known where it has a nonce of 96 bits.
    pub(super) fn begin(&mut self, nonce: Option<&[u8; NONCE_BYTES]>) {
        self.is_known = nonce.is_some();
        (self.nonce, self.aad_bytes, self.text_bytes) = (nonce.copied().unwrap_or_default(), 0, 0);
    }

    /// The message's J0.
    pub(super) fn counter(&self) -> Block {
        let mut counter = [0; BLOCK_BYTES];
        counter[..NONCE_BYTES].copy_from_slice(&self.nonce);
        counter[15] = 1;
        counter
    }

    /// What the message's own hash ends with.
    pub(super) fn lengths(&self) -> Lengths {
        Lengths { aad_bytes: self.aad_bytes, text_bytes: self.text_bytes }
    }

    /// Bytes of the block that is not whole yet.
    pub(super) fn open_bytes(&self) -> usize {
        usize::try_from(self.text_bytes % BLOCK_BYTES as u64).unwrap_or(0)
    }

    /// ECB of the message that was split.
    pub(super) fn ecb(&self) -> Option<InnerContext<'static>> {
        Some(self.data.as_ref()?.ecb.inner())
    }

    /// Whole blocks of the message so far.
    pub(super) fn blocks(&self) -> u64 {
        self.text_bytes / BLOCK_BYTES as u64
    }

    /// A copy in the same state; `None` where the inner provider makes none.
    pub(crate) fn duplicate(&self) -> Option<Box<Self>> {
        let data = match &self.data {
            Some(data) => Some(data.duplicate()?),
            None => None,
        };
        Some(Box::new(Self { data, hash: self.hash.clone(), ..*self }))
    }
}

/// A context that stands where the message does.
pub(super) struct DataContext {
    pub(super) own: OwnContext<'static>,
    /// Makes masks; here, so that a message that was split needs no more memory.
    pub(super) ecb: OwnContext<'static>,
    /// Where it began, when that was solved for and is not the message's beginning.
    pub(super) solved_start: Option<SolvedStart>,
    /// Ciphertext of the block that is not whole yet.
    pub(super) open: Block,
}

/// A beginning that was solved for.
#[derive(Clone, Copy)]
pub(super) struct SolvedStart {
    /// The context's J0.
    pub(super) counter: Block,
    /// Text before it. Of associated data it got one block.
    pub(super) text_bytes: u64,
}

impl DataContext {
    fn duplicate(&self) -> Option<Self> {
        let (own, ecb) = (self.own.duplicate()?, self.ecb.duplicate()?);
        Some(Self { own, ecb, solved_start: self.solved_start, open: self.open })
    }
}

/// How one update falls: to the block boundary, whole blocks, the rest.
pub(super) struct Cut {
    pub(super) head: usize,
    pub(super) bulk: usize,
}
