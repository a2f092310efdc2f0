//! An inner context beside a message of GCM that a kernel computes: it goes the same way, and what differs is the kernel's fault.
//!
//! ```text
//!   Beside: a copy of the text by the inner cipher, compared --(differs)--> Leads: the inner cipher alone, to the end of the message
//! ```

use evener_core::job::Memory;
use zeroize::Zeroizing;

use crate::ffi::reserve::zeroed;
use crate::inner_cipher::call::Update;
use crate::inner_cipher::context::OwnContext;
use crate::native::kernel_check::CHECKED_BYTES_MAX;
use crate::state::rows::CipherRow;

/// The inner context, and what became of the comparison.
pub(super) struct Shadow {
    own: OwnContext<'static>,
    /// Whether its answers are the message's.
    leads: bool,
    /// Text that was compared; the tag is, where that is all of it.
    text_bytes: usize,
}

/// A piece of text as it was before the kernel had it, done by the inner cipher.
pub(super) struct CheckedText(Zeroizing<Vec<u8>>);

impl Shadow {
    /// A context with this key and nonce.
    pub(super) fn new(row: &'static CipherRow, encrypts: bool, key: &[u8], nonce: &[u8]) -> Option<Self> {
        let own = OwnContext::new(row)?;
        let inner = own.inner();
        let is_begun = inner.init(encrypts, Some(key), None)
            && (nonce.len() == 12 || inner.set_nonce_bytes(nonce.len()))
            && inner.init(encrypts, None, Some(nonce));
        is_begun.then_some(Self { own, leads: false, text_bytes: 0 })
    }

    /// Has the inner context answer from here on.
    pub(super) fn lead(&mut self) {
        self.leads = true;
    }

    /// Whether it does.
    pub(super) fn leads(&self) -> bool {
        self.leads
    }

    /// Has the message go on in this direction; whether the inner cipher does.
    pub(super) fn turn(&self, encrypts: bool) -> bool {
        self.own.inner().init(encrypts, None, None)
    }

    /// The state of another context, in which the message goes on as here.
    pub(super) fn duplicate(&self) -> Option<Self> {
        Some(Self { own: self.own.duplicate()?, ..*self })
    }

    /// Associated data; whether the inner cipher takes it.
    pub(super) fn aad(&self, data: &[u8]) -> bool {
        data.is_empty() || self.own.inner().associate(data)
    }

    /// Text, where it leads; whether the inner cipher takes it.
    pub(super) fn text(&self, call: &Update) -> bool {
        self.own.inner().update(call)
    }

    /// Computes a copy of a piece of text before the kernel has it; `None` where the message is not compared any further.
    pub(super) fn checked(&mut self, call: &Update) -> Option<CheckedText> {
        let bytes = self.text_bytes.checked_add(call.len()).filter(|&bytes| bytes <= CHECKED_BYTES_MAX)?;
        if !call.can_work(0, 0, call.len()) {
            return None;
        }
        let mut copy = Zeroizing::new(zeroed(call.len())?);
        copy.copy_from_slice(call.input());
        let input_bytes = copy.len();
        if !self.own.inner().work(&mut Memory::InPlace { space: &mut copy, input_bytes }) {
            return None;
        }
        self.text_bytes = bytes;
        Some(CheckedText(copy))
    }

    /// The end of an encryption: the tag.
    pub(super) fn tag(&self) -> Option<[u8; 16]> {
        let inner = self.own.inner();
        inner.finish().then(|| inner.tag()).flatten()
    }

    /// The end of a decryption: whether the message has this tag; `None` where it does not take one.
    pub(super) fn has_tag(&self, tag: &[u8]) -> Option<bool> {
        let inner = self.own.inner();
        inner.set_tag(tag).then(|| inner.finish())
    }
}

impl CheckedText {
    /// Whether the kernel made the same of it; puts the inner cipher's there where not.
    pub(super) fn settle(&self, call: &Update) -> bool {
        let output = call.space(self.0.len());
        let is_right = output == &self.0[..];
        if !is_right {
            output.copy_from_slice(&self.0);
        }
        is_right
    }
}
