//! AES-GCM by a kernel of ours: what OpenSSL's own cipher does (providers/implementations/ciphers/ciphercommon_gcm.c, 3.0 to 4.0), call by call.
//!
//! The nonce of a message, which decides what a call may do:
//!
//! ```text
//!              a nonce is given, or made                  first data             the end
//!   Missing -----------------------------> Given ------------------> Begun -----------> Used
//!      |                                    ^  ^                       |                  |
//!      | data to encrypt: a random nonce ---+  +------ a nonce --------+------------------+
//!      | (or a question for it, where this OpenSSL makes one then)
//! ```
//!
//! Path of a piece of text: [`GcmContext::update`] -> a message begins where one is due -> the kernel, or several threads' (`sharing.rs`), or with an inner context
//! beside it that judges (`beside.rs`) -> [`GcmContext::last`]. In `Used` nothing is encrypted or decrypted until there is another nonce, so that none serves twice. A TLS 1.2 record is a message of its
//! own (`record.rs`). What needs random bytes is asked of an inner context, which has OpenSSL's own generator (`random_nonce.rs`).

mod beside;
mod parameters;
mod random_nonce;
mod record;
mod refusal;
mod shadow;
mod sharing;

use evener_kernels::gcm::{Key, Message};
use evener_kernels::is_same_tag;
use evener_ossl_sys::Param;
use zeroize::{Zeroize as _, Zeroizing};

use self::shadow::Shadow;
use super::Refused;
use super::class::Class;
use super::kernel_check::{self, Turn};
use super::tally::Tally;
use crate::ffi::{params, reserve};
use crate::inner_cipher::call::{Init, Update};
use crate::state::rows::{CipherRow, Native};

/// The longest key.
const KEY_BYTES_MAX: usize = 32;
/// The longest nonce that OpenSSL takes, in bytes (`GCM_IV_MAX_SIZE`).
const NONCE_BYTES_MAX: usize = 128;
/// The nonce of a new context, in bytes.
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
/// Text of one message in bytes, 2^36 - 32, and associated data, 2^61 - 1 (SP 800-38D, 5.2.1.1).
const TEXT_MAX: u64 = (1 << 36) - 32;
const AAD_MAX: u64 = (1 << 61) - 1;

/// How far the message's nonce has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nonce {
    Missing,
    Given,
    Begun,
    Used,
}

/// Whether a generator made one of a context's nonces, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    Never,
    /// And one was given since.
    Earlier,
    Last,
}

/// A context. Only plain bytes but for the shadow, so that a copy of them becomes a context of its own ([`GcmContext::become_copy`]).
pub(crate) struct GcmContext {
    key: Key,
    /// As it was given, for the inner cipher.
    key_copy: [u8; KEY_BYTES_MAX],
    key_bytes: usize,
    has_key: bool,
    /// Whether there is a copy of a key that the inner cipher has.
    keeps_key: bool,
    encrypts: bool,
    nonce: Nonce,
    nonce_len: usize,
    made: Made,
    /// Whether records count the nonce up.
    counts_nonce: bool,
    /// Bytes of the tag that was made or given.
    tag_len: Option<usize>,
    /// The tag; after [`take_record`](Self::take_record) the first bytes are a record's associated data, as in OpenSSL's context, which has one
    /// place for both and shows it.
    tag: [u8; TAG_BYTES],
    nonce_bytes: [u8; NONCE_BYTES_MAX],
    message: Option<Message>,
    /// A record comes next.
    is_record_due: bool,
    record_padding: usize,
    /// Records encrypted under this key.
    records: u64,
    tally: Tally,
    turn: Turn,
    class: Class,
    /// Beside a message that is computed again.
    shadow: Option<Shadow>,
    row: *const CipherRow,
}

impl GcmContext {
    /// A context of `row`, without a key.
    pub(crate) fn new(row: &CipherRow, native: Native) -> Self {
        let tally = Tally::of(row);
        tally.prepare(row);
        let Native { level, key_bytes, .. } = native;
        Self {
            key: Key::new(level),
            key_copy: [0; KEY_BYTES_MAX],
            key_bytes,
            has_key: false,
            keeps_key: false,
            encrypts: true,
            nonce: Nonce::Missing,
            nonce_len: NONCE_BYTES,
            made: Made::Never,
            counts_nonce: false,
            tag_len: None,
            tag: [0; TAG_BYTES],
            nonce_bytes: [0; NONCE_BYTES_MAX],
            message: None,
            is_record_due: false,
            record_padding: 0,
            records: 0,
            tally,
            turn: Turn::default(),
            class: Class::of(&native, true),
            shadow: None,
            row,
        }
    }

    pub(crate) fn row<'p>(&self) -> &'p CipherRow {
        // SAFETY: rows go with their provider, which the core keeps while a context of it lives.
        unsafe { &*self.row }
    }

    /// Bytes of the nonce that is set or will be.
    pub(crate) fn nonce_len(&self) -> usize {
        self.nonce_len
    }

    /// The nonce that was given and not used yet.
    pub(crate) fn given_nonce(&self) -> Option<&[u8]> {
        (self.nonce == Nonce::Given).then(|| self.nonce_so_far())
    }

    fn nonce_so_far(&self) -> &[u8] {
        self.nonce_bytes.get(..self.nonce_len()).unwrap_or_default()
    }

    /// An init with a key, a nonce, both or neither, and parameters.
    pub(crate) fn init(&mut self, call: &Init<'_>) -> Result<(), Refused> {
        if call.encrypts != self.encrypts {
            self.flush();
            self.encrypts = call.encrypts;
            self.turn_shadow();
        }
        if let Some(nonce) = call.iv {
            self.take_nonce(nonce)?;
        }
        if let Some(key) = call.key {
            self.take_key(key)?;
            if self.nonce == Nonce::Begun {
                self.count();
                self.shadow = None;
                self.message = Some(Message::without_nonce());
            }
        }
        self.set(call.params())
    }

    fn take_key(&mut self, key: &[u8]) -> Result<(), Refused> {
        let is_set = key.len() == self.key_bytes && kernel_check::with_key(key, |key| self.key.set(key));
        if !is_set {
            return Err(Refused);
        }
        self.key_copy.get_mut(..key.len()).ok_or(Refused)?.copy_from_slice(key);
        self.turn.take_due(self.class);
        self.has_key = true;
        self.records = 0;
        Ok(())
    }

    /// Keeps a key that the inner cipher has got for this direction, or notes that it has another or none.
    pub(crate) fn keep_key(&mut self, encrypts: bool, key: Option<&[u8]>) {
        let place = self.key_copy.get_mut(..self.key_bytes);
        let places = key.zip(place).filter(|(key, place)| key.len() == place.len());
        let is_kept = places.map(|(key, place)| place.copy_from_slice(key)).is_some();
        if self.keeps_key && !is_kept {
            self.key_copy.zeroize();
        }
        (self.encrypts, self.keeps_key) = (encrypts, is_kept);
    }

    /// The key that was kept is this context's; whether there is one.
    pub(crate) fn takes_kept_key(&mut self) -> bool {
        let key = Zeroizing::new(self.key_copy);
        self.keeps_key && key.get(..self.key_bytes).is_some_and(|key| self.take_key(key).is_ok())
    }

    /// Notes what the inner cipher was told in our place; whether all of that is known here.
    pub(crate) fn note(&mut self, list: &[Param]) -> bool {
        let is_known =
            |param: &Param| matches!(params::key(param).to_bytes(), b"tag" | b"ivlen" | b"padding");
        list.iter().all(is_known) && self.set(list).is_ok()
    }

    fn take_nonce(&mut self, nonce: &[u8]) -> Result<(), Refused> {
        let place =
            self.nonce_bytes.get_mut(..nonce.len()).filter(|place| !place.is_empty()).ok_or(Refused)?;
        place.copy_from_slice(nonce);
        self.nonce_len = nonce.len();
        self.nonce = Nonce::Given;
        if self.made == Made::Last {
            self.made = Made::Earlier;
        }
        Ok(())
    }

    /// A piece of associated data or text, or the end; bytes written.
    pub(crate) fn update(&mut self, call: &Update) -> Result<usize, Refused> {
        if call.len() == 0 {
            return Ok(0);
        }
        if call.has_space(call.len()) { self.work(call) } else { Err(Refused) }
    }

    /// The same in one call, in which no bytes and no input are the end; bytes written.
    pub(crate) fn one_shot(&mut self, call: &Update) -> Result<usize, Refused> {
        let is_fit = call.has_space(call.len());
        if is_fit { self.work(call).map(|_| call.len()) } else { Err(Refused) }
    }

    fn work(&mut self, call: &Update) -> Result<usize, Refused> {
        if std::mem::take(&mut self.is_record_due) {
            let done = self.tls_record(call);
            self.nonce = Nonce::Used;
            return done;
        }
        self.begin()?;
        if call.is_end() {
            return self.end().map(|()| 0);
        }
        self.pieces(call)
    }

    /// Associated data or text.
    #[inline(always)]
    fn pieces(&mut self, call: &Update) -> Result<usize, Refused> {
        if self.shadow.is_some() { self.work_beside(call) } else { self.work_alone(call) }
    }

    /// Associated data or text, by the kernel.
    #[inline(always)]
    fn work_alone(&mut self, call: &Update) -> Result<usize, Refused> {
        let Self { message: Some(message), key, .. } = self else { return Err(Refused) };
        if call.is_aad() {
            let is_in_time =
                message.text_bytes() == 0 && message.aad_bytes().saturating_add(call.len() as u64) <= AAD_MAX;
            if !is_in_time {
                return Err(Refused);
            }
            message.aad(key, call.input());
            return Ok(call.len());
        }
        let (from, to, bytes) = call.both().ok_or(Refused)?;
        if message.text_bytes().saturating_add(bytes as u64) > TEXT_MAX {
            return Err(Refused);
        }
        if bytes >= self.split_from() {
            return self.large((from, to, bytes));
        }
        let Self { message: Some(message), key, encrypts, .. } = self else { return Err(Refused) };
        self.tally.take(bytes);
        // SAFETY: the caller lends both for the call.
        unsafe { crypt(message, key, *encrypts, (from, to, bytes)) };
        Ok(bytes)
    }

    /// Whether a piece of so many bytes may take memory, locks and the kernel's time: it may be split between threads, or its message is computed again.
    #[inline]
    pub(crate) fn takes_time(&self, bytes: usize) -> bool {
        bytes >= self.split_from()
            || self.shadow.is_some()
            || self.turn.is_next() && !reserve::is_short()
            || kernel_check::has_wrong_ones()
    }

    /// Begins a message where one is due.
    fn begin(&mut self) -> Result<(), Refused> {
        if !self.has_key || self.nonce == Nonce::Used {
            return Err(Refused);
        }
        if self.nonce == Nonce::Missing {
            let nonce = if self.encrypts { self.made_by_inner(&[])? } else { return Err(Refused) };
            self.take_made_nonce(nonce);
        }
        if self.nonce == Nonce::Given {
            self.begin_message();
            self.nonce = Nonce::Begun;
        }
        Ok(())
    }

    /// A message under the nonce as it is now.
    fn begin_message(&mut self) {
        self.count();
        let nonce = self.nonce_bytes.get(..self.nonce_len).unwrap_or_default();
        self.message = Some(Message::new(&mut self.key, nonce));
        if self.turn.comes() || self.shadow.is_some() || kernel_check::has_wrong_ones() {
            self.begin_beside();
        }
    }

    /// Counts the message that is over.
    fn count(&mut self) {
        self.tally.end_message(self.row(), self.encrypts);
    }

    /// Shows what was counted: before another direction, and at the end.
    pub(crate) fn flush(&mut self) {
        self.tally.flush(self.row(), self.encrypts);
    }

    /// The context ends.
    pub(crate) fn end_and_flush(&mut self) {
        self.flush();
        self.turn.end(self.class);
    }

    /// The tag of the message that was encrypted last; none while one is not over.
    pub(super) fn made_tag(&self) -> Option<[u8; TAG_BYTES]> {
        self.tag_len.filter(|_| self.encrypts && self.nonce == Nonce::Used).map(|_| self.tag)
    }

    /// What was counted is not counted again.
    pub(crate) fn forget_counts(&mut self) {
        self.tally.forget();
    }

    /// This context is timed, or asked a known question.
    pub(super) fn leave_unchecked(&mut self) {
        self.turn = Turn::NEVER;
    }

    /// After a copy of another's bytes was made here; false where the state of its message is not to be had.
    pub(crate) fn become_copy(&mut self) -> bool {
        self.forget_counts();
        self.turn = Turn::default();
        // It is the original's.
        let original = std::mem::ManuallyDrop::new(self.shadow.take());
        let Some(original) = original.as_ref().filter(|shadow| shadow.leads()) else { return true };
        self.shadow = original.duplicate();
        self.shadow.is_some()
    }

    /// The end of a message.
    pub(crate) fn last(&mut self) -> Result<(), Refused> {
        if std::mem::take(&mut self.is_record_due) {
            // A record has no end of its own.
            self.nonce = Nonce::Used;
            return Err(Refused);
        }
        self.begin()?;
        self.end()
    }

    fn end(&mut self) -> Result<(), Refused> {
        let expected = match (self.encrypts, self.tag_len) {
            (true, _) => None,
            (false, Some(bytes)) => Some(bytes),
            (false, None) => return Err(Refused),
        };
        let given = self.tag;
        if let Some(tag) = self.close(expected.map(|bytes| (&given, bytes)))? {
            self.tag = tag;
            self.tag_len = Some(TAG_BYTES);
        }
        self.nonce = Nonce::Used;
        Ok(())
    }

    /// Whether what is missing at the end of a decryption is its tag.
    pub(crate) fn lacks_tag(&self) -> bool {
        !self.encrypts && self.tag_len.is_none() && self.nonce == Nonce::Begun
    }

    /// The tag of an encryption; of a decryption whether these first bytes are those of its tag.
    #[inline]
    fn close(
        &mut self,
        expected: Option<(&[u8; TAG_BYTES], usize)>,
    ) -> Result<Option<[u8; TAG_BYTES]>, Refused> {
        if self.shadow.is_some() {
            return self.close_beside(expected);
        }
        let tag = self.message.as_mut().ok_or(Refused)?.tag(&self.key);
        match expected {
            None => Ok(Some(tag)),
            Some((given, bytes)) if is_same_tag(&tag, given, bytes) => Ok(None),
            Some(_) => Err(Refused),
        }
    }
}

impl Drop for GcmContext {
    fn drop(&mut self) {
        if self.has_key || self.keeps_key {
            self.key_copy.zeroize();
        }
    }
}

/// A piece of text, in place or apart.
///
/// # Safety
/// Both places are good for so many bytes.
unsafe fn crypt(
    message: &mut Message,
    key: &mut Key,
    encrypts: bool,
    (from, to, bytes): (*const u8, *mut u8, usize),
) {
    if encrypts {
        // SAFETY: as the caller says.
        unsafe { message.crypt::<true>(key, from, to, bytes) }
    } else {
        // SAFETY: as the caller says.
        unsafe { message.crypt::<false>(key, from, to, bytes) }
    }
}
