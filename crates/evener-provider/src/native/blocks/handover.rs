//! The inner cipher takes a message over: a context of its is brought into the state that the message has reached.

use evener_core::Family;
use evener_kernels::modes::BLOCK;

use super::BlockContext;
use crate::inner_cipher::context::InnerContext;

impl BlockContext {
    /// Brings an inner context, which is new or had another message, into the state of this message, of which nothing stays `where_all_comes_anew`.
    pub(crate) fn bring(&mut self, inner: InnerContext<'_>, where_all_comes_anew: bool) -> bool {
        self.tally.flush(self.row(), self.encrypts);
        // What was lost was of the message that ends here.
        self.is_lost &= !where_all_comes_anew;
        (where_all_comes_anew || self.bring_message(inner)) && inner.set_padding(self.pads)
    }

    pub(super) fn bring_message(&self, inner: InnerContext<'_>) -> bool {
        let iv = self.has_iv.then_some(&self.first_iv[..]);
        let key = self.has_key.then(|| self.key_bytes());
        let is_begun = inner.init(self.encrypts, key, iv);
        is_begun
            && match self.family() {
                _ if !self.has_key => true,
                Family::Ctr => self.bring_counter(inner),
                Family::Xts => true,
                _ => self.bring_blocks(inner),
            }
    }

    /// Whether the inner context takes another IV for the message's first one than the program gave.
    pub(crate) fn moves_iv(&self) -> bool {
        let is_begun = self.has_key && (self.iv != self.first_iv || self.held_bytes > 0);
        self.family() == Family::Ctr && is_begun
    }

    /// A counter that was moved on takes the place of the first, too, which OpenSSL has no other way for.
    pub(super) fn bring_counter(&self, inner: InnerContext<'_>) -> bool {
        let is_begun = self.held_bytes > 0;
        if self.iv == self.first_iv && !is_begun {
            return true;
        }
        let counter = u128::from_be_bytes(self.iv).wrapping_sub(u128::from(is_begun));
        let used = [0; BLOCK];
        inner.init(self.encrypts, None, Some(&counter.to_be_bytes()))
            && used.get(..self.held_bytes).is_some_and(|used| inner.feed(used))
    }

    /// A block of ciphertext leaves itself behind as what the next is chained to; what is held is fed again.
    pub(super) fn bring_blocks(&self, inner: InnerContext<'_>) -> bool {
        let is_chained = self.family() == Family::Cbc && self.iv != self.first_iv;
        let held = self.held.get(..self.held_bytes).unwrap_or_default();
        (!is_chained || inner.set_padding(false) && inner.feed(&self.iv))
            && inner.set_padding(true)
            && (held.is_empty() || inner.feed(held))
    }
}
