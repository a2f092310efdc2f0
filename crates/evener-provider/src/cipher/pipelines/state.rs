//! The messages of a pipeline's context.

use std::sync::Arc;

use evener_core::BLOCK_BYTES;

use crate::cipher::message::key_session::KeySession;
use crate::inner_cipher::context::OwnContext;

/// The messages of a context.
pub(crate) struct PipelineState {
    pub(super) encrypts: bool,
    pub(super) session: Arc<KeySession>,
    /// As set in the inner contexts of `all`.
    pub(super) padding: bool,
    pub(super) all: Vec<PipelineMessage>,
}

/// One message.
pub(super) struct PipelineMessage {
    /// What an init without an IV goes back to.
    pub(super) original: [u8; BLOCK_BYTES],
    /// IV of the next block.
    pub(super) chain: [u8; BLOCK_BYTES],
    pub(super) held: [u8; BLOCK_BYTES],
    pub(super) held_len: usize,
    /// Decryption only.
    pub(super) inner: Option<OwnContext<'static>>,
}

impl Drop for PipelineMessage {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.held);
    }
}

impl PipelineState {
    /// The same messages for a copy of the context.
    pub(crate) fn duplicate(&self) -> Option<Box<Self>> {
        let copy = |pipe: &PipelineMessage| {
            let inner = match &pipe.inner {
                Some(own) => Some(own.duplicate()?),
                None => None,
            };
            let PipelineMessage { original, chain, held, held_len, .. } = *pipe;
            Some(PipelineMessage { original, chain, held, held_len, inner })
        };
        let all = self.all.iter().map(copy).collect::<Option<_>>()?;
        Some(Box::new(Self {
            encrypts: self.encrypts,
            session: Arc::clone(&self.session),
            padding: self.padding,
            all,
        }))
    }
}
