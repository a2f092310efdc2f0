//! What is known about the message in a context: captured as it is set, believed only after the inner function agreed.
//!
//! States: `InnerOnly` (nothing may go another way: no key yet, no IV, records that only OpenSSL does, unknown
//! parameters, after final) -> `Direct` (a large update may) <-> `Owned` (this provider buffers; the inner context waits behind)
//! -> `Failed` (block work was lost; until the next init). docs/design/provider.md has the table of entries.

pub(crate) mod key_session;
pub(crate) mod record_mode;

use std::sync::{Arc, OnceLock};

use evener_core::{Algorithm, Direction, Family, Padding, Session};
use evener_kernels::with_registers_cleared;
use zeroize::{Zeroize as _, ZeroizeOnDrop};

use crate::ffi::key_copy::copy_key;
use key_session::KeySession;
use record_mode::RecordMode;

/// Which object holds the state of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The inner context, for good or until the next init.
    InnerOnly,
    /// The inner context, until an update is large enough.
    Direct,
    /// This provider. The inner context has stayed behind.
    Owned,
    /// None.
    Failed,
}

/// The longest key: XTS with two keys of 256 bits.
const KEY_BYTES_MAX: usize = 64;

/// What was captured.
pub(crate) struct Message {
    pub(crate) state: State,
    pub(crate) encrypts: bool,
    pub(crate) padding: bool,
    /// libssl's record mode, which a context never leaves.
    pub(crate) record_mode: Option<RecordMode>,
    /// Whether a key was captured, and with it the direction that its schedule is for.
    key_len: u8,
    key_encrypts: bool,
    iv_known: bool,
    /// The inner context's original IV is no longer the program's: [`Message::iv`] is.
    pub(crate) iv_moved: bool,
    /// Bytes in `held`: input of an incomplete or held-back block (ECB, CBC), key stream used (CTR).
    pub(crate) held_len: u8,
    /// The program's IV.
    pub(crate) iv: [u8; 16],
    /// Owned: IV or counter of the next block.
    pub(crate) chain: [u8; 16],
    pub(crate) held: [u8; 16],
    /// Owned, CTR: counter of the last block whose key stream was not used at once, all of it.
    pub(crate) broken: Option<[u8; 16]>,
    key: [u8; KEY_BYTES_MAX],
    /// Of the key, where one was needed. Copies of the context share it.
    session: OnceLock<Option<Arc<KeySession>>>,
}

impl Default for Message {
    fn default() -> Self {
        Self {
            state: State::InnerOnly,
            encrypts: true,
            padding: true,
            record_mode: None,
            key_len: 0,
            key_encrypts: true,
            iv_known: false,
            iv_moved: false,
            held_len: 0,
            iv: [0; 16],
            chain: [0; 16],
            held: [0; 16],
            broken: None,
            key: [0; KEY_BYTES_MAX],
            session: OnceLock::new(),
        }
    }
}

impl ZeroizeOnDrop for Message {}

impl Drop for Message {
    fn drop(&mut self) {
        self.forget_key();
        // Elsewhere it is wiped as the message is handed back.
        if matches!(self.state, State::Owned | State::Failed) {
            self.held.zeroize();
        }
    }
}

impl Message {
    /// The captured key.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key[..usize::from(self.key_len)]
    }

    /// A session of the captured key in the direction that its schedule is for, without padding; made when it is first needed.
    pub(crate) fn session(&self, algorithm: Algorithm) -> Option<Arc<Session>> {
        let direction = if self.key_encrypts { Direction::Encrypt } else { Direction::Decrypt };
        let make = || Session::new(algorithm, direction, Padding::None, self.key()).ok().map(KeySession::new);
        self.session
            .get_or_init(|| with_registers_cleared(make))
            .as_ref()
            .map(|keyed| Arc::clone(keyed.session()))
    }

    /// Whether a session of the captured key was made, which engines may keep something of.
    pub(crate) fn has_session(&self) -> bool {
        self.session.get().is_some()
    }

    pub(crate) fn direction(&self) -> Direction {
        if self.encrypts { Direction::Encrypt } else { Direction::Decrypt }
    }

    /// An init went well in the inner context.
    pub(crate) fn started(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) {
        self.encrypts = encrypts;
        self.held_len = 0;
        if let Some(key) = key {
            self.forget_key();
            if let Some(space) = self.key.get_mut(..key.len()) {
                copy_key(space, key);
                self.key_len = u8::try_from(key.len()).unwrap_or(0);
                self.key_encrypts = encrypts;
            }
        }
        if let Some(iv) = iv {
            self.iv_known = iv.len() == self.iv.len();
            self.iv_moved = false;
            if self.iv_known {
                self.iv.copy_from_slice(iv);
            }
        }
    }

    /// Becomes the same as another, of whose key nothing is left elsewhere.
    pub(crate) fn become_copy_of(&mut self, other: &Self) {
        self.forget_key();
        // By field: a message that is made first and moved leaves a copy on the stack.
        let Self { state, encrypts, padding, record_mode, key_len, key_encrypts, iv_known, .. } = *other;
        (self.state, self.encrypts, self.padding, self.record_mode) = (state, encrypts, padding, record_mode);
        (self.key_len, self.key_encrypts, self.iv_known) = (key_len, key_encrypts, iv_known);
        let Self { iv_moved, held_len, iv, chain, held, broken, ref key, ref session, .. } = *other;
        (self.iv_moved, self.held_len, self.iv, self.chain) = (iv_moved, held_len, iv, chain);
        (self.held, self.broken) = (held, broken);
        copy_key(&mut self.key, key);
        self.session.clone_from(session);
    }

    /// Whether it is where an init that went well has left it.
    pub(crate) fn is_as_begun(&self) -> bool {
        self.state == State::Direct && self.iv_known && !self.iv_moved && self.held_len == 0
    }

    /// The key in the inner context is one that was never seen.
    pub(crate) fn forget_key(&mut self) {
        if self.has_session() {
            self.session = OnceLock::new();
        }
        self.key[..usize::from(self.key_len)].zeroize();
        self.key_len = 0;
    }

    /// A parameter was set in the inner context. `number`: its value, where it is a number.
    pub(crate) fn parameter(&mut self, key: &[u8], number: Option<usize>) {
        match (key, number) {
            (b"padding", Some(value)) => self.padding = value != 0,
            // EVP sets the length that is the cipher's already; another one takes the key away.
            (b"keylen", Some(value)) if value == usize::from(self.key_len) => {}
            (b"keylen", _) => self.forget_key(),
            (b"tls-version", version) => self.record_mode.get_or_insert_default().version = version,
            (b"tls-mac-size", bytes) => self.record_mode.get_or_insert_default().mac_bytes = bytes,
            _ => self.state = State::InnerOnly,
        }
    }

    /// Whether updates of this message may take another way. A schedule that was made for the other direction gives
    /// what OpenSSL gives for it, and only OpenSSL does.
    pub(crate) fn is_routable(&self, algorithm: Algorithm) -> bool {
        self.record_mode
            .is_none_or(|records| algorithm.family() == Family::Cbc && records.are_ours(self.encrypts))
            && algorithm.key_bytes() == Some(usize::from(self.key_len))
            && (self.key_encrypts == self.encrypts)
            && (self.iv_known || algorithm.family() == Family::Ecb)
    }
}
