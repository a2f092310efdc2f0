//! What a call does to what is known about the message, beside what the inner function does.
//!
//! | call | what is known afterwards |
//! |---|---|
//! | an init with nothing but an IV ([`CipherCtx::next_message`]) | a new message, as the one before |
//! | any other call ([`CipherCtx::end_iv_only`]) | the next such init is looked at as a whole |
//! | parameters ([`CipherCtx::set`]) | what they say; the inner context's own affair where they came in mid-message |
//! | an update that is refused ([`CipherCtx::refused`]) | nothing more comes out of a message that is ours |
//! | a key object ([`CipherCtx::lose_sight`]) | everything is the inner context's |

use evener_core::Family;

use super::{CipherCtx, IvOnly};
use crate::cipher::message::State;
use crate::inner_cipher::call::Init;

impl CipherCtx {
    /// Whether an init in this direction with nothing but an IV is a short one.
    #[inline]
    pub(crate) fn is_iv_only(&self, encrypts: bool) -> bool {
        self.hot.iv_only == IvOnly::of(encrypts)
    }

    /// What a short init does. The inner function, whose turn is next, refuses none of a key that it has taken; were it to, an
    /// update would still start where the inner context says.
    #[inline]
    pub(crate) fn next_message(&mut self, encrypts: bool, iv: &[u8; 16]) {
        debug_assert!(
            self.message.is_as_begun() && self.hot.elsewhere.get() == 0,
            "a call did not say that it came"
        );
        if self.hot.taken > 0 && self.hot.direct.record(self.hot.taken) {
            // The next one shows it.
            self.hot.iv_only = IvOnly::None;
        }
        self.hot.taken = 0;
        self.message.iv = *iv;
        self.hot.thresh = self.hot.first_thresh[usize::from(encrypts)];
    }

    /// A call came that is not the hot one.
    pub(crate) fn end_iv_only(&mut self) {
        self.hot.iv_only = IvOnly::None;
    }

    /// The program's IV, where an init without one would make OpenSSL take the moved one for it.
    pub(crate) fn iv_again(&self, is_given: bool) -> Option<[u8; 16]> {
        (!is_given && self.message.iv_moved && self.family() == Some(Family::Cbc)).then_some(self.message.iv)
    }

    /// Lets updates in where the message may take another way.
    pub(crate) fn settle(&mut self) {
        let routable = self.row().algorithm.is_some_and(|algorithm| self.message.is_routable(algorithm));
        if self.message.state == State::Direct && routable {
            self.hot.thresh = self.row().context_thresh(self.message.encrypts);
        } else {
            self.message.state = State::InnerOnly;
            self.hot.thresh = usize::MAX;
        }
    }

    /// Parameters were set, or refused after some of them were.
    pub(crate) fn set(&mut self, all: bool, call: &Init<'_>) {
        self.end_iv_only();
        call.each_param(|key, number| self.message.parameter(key, number));
        // In mid-message a change of padding also changes what is held back inside.
        if !all || self.hot.taken > 0 {
            self.message.state = State::InnerOnly;
        }
        // After final nothing is let in until the next init.
        if self.hot.thresh != usize::MAX {
            self.settle();
        }
    }

    /// Padding was set, and nothing else, in a message that is the inner context's: as [`Self::set`], in fewer steps.
    pub(crate) fn set_padding(&mut self, padding: bool) {
        self.end_iv_only();
        self.message.padding = padding;
        if self.hot.taken > 0 {
            self.message.state = State::InnerOnly;
            self.hot.thresh = usize::MAX;
        }
    }

    /// An update was refused. What the inner function refuses is handed back before; in a message that is still ours
    /// something broke, and nothing more may come out of it.
    pub(crate) fn refused(&mut self) {
        if self.message.state == State::Owned {
            self.message.state = State::Failed;
        }
    }

    /// A key came that was not seen: everything is the inner context's.
    pub(crate) fn lose_sight(&mut self) {
        self.inner.is_usual = false;
        self.end_iv_only();
        self.message.forget_key();
        self.message.state = State::InnerOnly;
        self.hot.thresh = usize::MAX;
        if self.row().splits_gcm() {
            self.hot.iv_bytes = 0;
        }
    }
}
