//! AES-GCM by a kernel of ours: what OpenSSL's own cipher does (providers/implementations/ciphers/ciphercommon_gcm.c, 3.0 to 3.5), call by call.
//!
//! The nonce of a message, which decides what a call may do:
//!
//! ```text
//!              a nonce is given, or made                  first data             the end
//!   Missing -----------------------------> Given ------------------> Begun -----------> Used
//!      |                                    ^  ^                       |                  |
//!      | data to encrypt: a random nonce ---+  +------ a nonce --------+------------------+
//! ```
//!
//! In `Used` nothing is encrypted or decrypted until there is another nonce, so that none serves twice. A TLS 1.2 record ([`GcmContext::record`])
//! is a message of its own: its associated data come as a parameter, its nonce lies in front of the text or is counted up here, its tag behind.
//! What needs random bytes is asked of an inner context, which has OpenSSL's own generator ([`GcmContext::made_by_inner`]).

use std::sync::OnceLock;

use evener_core::BLOCK_BYTES;
use evener_kernels::gcm::{Key, Message, Stretch};
use evener_kernels::is_same_tag;
use evener_ossl_sys::Param;
use evener_ring::hold_cancellation;
use zeroize::Zeroize as _;

use super::Refused;
use super::class::Class;
use super::kernel_check::{self, Turn};
use super::shadow::Shadow;
use super::split::{Cut, Place, Split};
use super::tally::Tally;
use crate::ffi::params;
use crate::inner_cipher::call::{Init, Update};
use crate::inner_cipher::context::OwnContext;
use crate::state::rows::{CipherRow, Native};

/// The longest key.
const KEY_BYTES_MAX: usize = 32;
/// The longest nonce that OpenSSL takes, in bytes (`GCM_IV_MAX_SIZE`).
const NONCE_BYTES_MAX: usize = 128;
/// The nonce of a new context, in bytes.
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
/// Of a TLS 1.2 record: associated data, the part of the nonce that it carries, and the part that it does not (RFC 5288, 3).
const RECORD_AAD_BYTES: usize = 13;
const EXPLICIT_BYTES: usize = 8;
const FIXED_BYTES_MIN: usize = 4;
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

/// A context. Only plain bytes but for the shadow, so that a copy of them becomes a context of its own ([`GcmContext::become_copy`]).
pub(crate) struct GcmContext {
    key: Key,
    /// As it was given, for the inner cipher.
    key_copy: [u8; KEY_BYTES_MAX],
    key_bytes: usize,
    has_key: bool,
    encrypts: bool,
    nonce: Nonce,
    nonce_len: usize,
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
        Tally::prepare(row);
        let Native { level, key_bytes, .. } = native;
        Self {
            key: Key::new(level),
            key_copy: [0; KEY_BYTES_MAX],
            key_bytes,
            has_key: false,
            encrypts: true,
            nonce: Nonce::Missing,
            nonce_len: NONCE_BYTES,
            counts_nonce: false,
            tag_len: None,
            tag: [0; TAG_BYTES],
            nonce_bytes: [0; NONCE_BYTES_MAX],
            message: None,
            is_record_due: false,
            record_padding: 0,
            records: 0,
            tally: Tally::default(),
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
            let is_set = key.len() == self.key_bytes && kernel_check::with_key(key, |key| self.key.set(key));
            if !is_set {
                return Err(Refused);
            }
            self.key_copy.get_mut(..key.len()).ok_or(Refused)?.copy_from_slice(key);
            self.turn.take_due(self.class);
            self.has_key = true;
            self.records = 0;
            if self.nonce == Nonce::Begun {
                self.count();
                self.shadow = None;
                self.message = Some(Message::without_nonce());
            }
        }
        self.set(call.params())
    }

    /// The inner context beside the message goes in the message's new direction. Without one that had its place the message is gone.
    fn turn_shadow(&mut self) {
        let Some(shadow) = self.shadow.take() else { return };
        if shadow.turn(self.encrypts) {
            self.shadow = Some(shadow);
        } else if shadow.leads() {
            self.message = None;
        }
    }

    fn take_nonce(&mut self, nonce: &[u8]) -> Result<(), Refused> {
        let place =
            self.nonce_bytes.get_mut(..nonce.len()).filter(|place| !place.is_empty()).ok_or(Refused)?;
        place.copy_from_slice(nonce);
        self.nonce_len = nonce.len();
        self.nonce = Nonce::Given;
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
            let done = self.record(call);
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

    /// The same, with an inner context beside it.
    #[cold]
    fn work_beside(&mut self, call: &Update) -> Result<usize, Refused> {
        let Some(shadow) = &mut self.shadow else { return Err(Refused) };
        if shadow.leads() {
            let is_taken = if call.is_aad() { shadow.aad(call.input()) } else { shadow.text(call) };
            if is_taken && !call.is_aad() {
                kernel_check::count_direct(self.row(), self.encrypts, call.len());
            }
            return is_taken.then(|| call.len()).ok_or(Refused);
        }
        if call.is_aad() {
            let is_beside = shadow.aad(call.input());
            self.shadow = self.shadow.take().filter(|_| is_beside);
            return self.work_alone(call);
        }
        let Some(text) = call.both().and_then(|_| shadow.checked(call)) else {
            self.shadow = None;
            return self.work_alone(call);
        };
        let bytes = self.work_alone(call)?;
        if !text.settle(call) {
            self.found_wrong(bytes);
        }
        Ok(bytes)
    }

    /// The kernel made something else of a message than the inner cipher, whose it is from here on.
    fn found_wrong(&mut self, bytes: usize) {
        kernel_check::found_wrong(self.row(), self.class);
        kernel_check::count_redone(self.row(), self.encrypts, bytes);
        self.shadow.iter_mut().for_each(Shadow::lead);
    }

    /// Whether a piece of so many bytes may take memory, locks and the kernel's time: it may be split between threads, or its message is computed again.
    #[inline]
    pub(crate) fn takes_time(&self, bytes: usize) -> bool {
        bytes >= self.split_from()
            || self.shadow.is_some()
            || self.turn.is_next()
            || kernel_check::has_wrong_ones()
    }

    /// From how many bytes on a piece may be split between threads.
    #[inline]
    fn split_from(&self) -> usize {
        self.row().native_split_from()
    }

    /// A piece of text that may be split: what is missing of a block that is begun, whole blocks, and what is left.
    fn large(&mut self, (from, to, bytes): Place) -> Result<usize, Refused> {
        let row = self.row();
        let Self { message: Some(message), key, encrypts, tally, .. } = self else { return Err(Refused) };
        let encrypts = *encrypts;
        let begun = usize::from(message.text_bytes().to_le_bytes()[0]) % BLOCK_BYTES;
        let head = if begun > 0 { bytes.min(BLOCK_BYTES - begun) } else { 0 };
        let bulk = (bytes - head) / BLOCK_BYTES * BLOCK_BYTES;
        let at = |offset: usize, bytes| (from.wrapping_add(offset), to.wrapping_add(offset), bytes);
        let split = Split::of(row, encrypts, at(head, bulk));
        if let Some(cut) = split.as_ref().and_then(Split::cut) {
            // SAFETY: within what the caller lends for the call.
            unsafe { crypt(message, key, encrypts, at(0, head)) };
            // SAFETY: as above.
            if !unsafe { shared(message, key, encrypts, &cut, bulk) } {
                self.nonce = Nonce::Used;
                return Err(Refused);
            }
            tally.take(bytes - bulk);
            // SAFETY: as above.
            unsafe { crypt(message, key, encrypts, at(head + bulk, bytes - head - bulk)) };
        } else {
            tally.take(bytes);
            // SAFETY: as above.
            unsafe { crypt(message, key, encrypts, (from, to, bytes)) };
        }
        split.into_iter().for_each(Split::end);
        Ok(bytes)
    }

    /// Begins a message where one is due.
    fn begin(&mut self) -> Result<(), Refused> {
        if !self.has_key || self.nonce == Nonce::Used {
            return Err(Refused);
        }
        if self.nonce == Nonce::Missing {
            let nonce = if self.encrypts { self.made_by_inner(&[])? } else { return Err(Refused) };
            self.nonce_bytes = nonce;
            self.nonce = Nonce::Given;
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

    /// Begins an inner context beside a message whose turn it is, and one in its place where the kernel is out of service; ends that of the message before.
    #[cold]
    fn begin_beside(&mut self) {
        self.shadow = None;
        let is_wrong = kernel_check::is_out_of_service(self.class);
        if !self.turn.has_come() && !is_wrong {
            return;
        }
        self.turn.begin_anew();
        let key = self.key_copy.get(..self.key_bytes).unwrap_or_default();
        let nonce = self.nonce_bytes.get(..self.nonce_len).unwrap_or_default();
        self.shadow = Shadow::new(self.row(), self.encrypts, key, nonce);
        match &mut self.shadow {
            Some(shadow) if is_wrong => shadow.lead(),
            // No other does it.
            None if is_wrong => self.message = None,
            _ => {}
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
        self.tally = Tally::default();
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

    /// The same, with an inner context beside it, which is asked last and answers.
    #[cold]
    fn close_beside(
        &mut self,
        expected: Option<(&[u8; TAG_BYTES], usize)>,
    ) -> Result<Option<[u8; TAG_BYTES]>, Refused> {
        let shadow = self.shadow.take().ok_or(Refused)?;
        let right = match expected {
            None => shadow.tag().map(|tag| Ok(Some(tag))),
            Some((given, bytes)) => {
                let is_right = given.get(..bytes).and_then(|tag| shadow.has_tag(tag));
                is_right.map(|is_right| if is_right { Ok(None) } else { Err(Refused) })
            }
        };
        if shadow.leads() {
            // The kernel has not seen all of it.
            self.message = None;
            return right.unwrap_or(Err(Refused));
        }
        let by_kernel = self.close(expected);
        // An inner context that cannot say is no witness.
        let Some(right) = right else { return by_kernel };
        if by_kernel != right {
            self.found_wrong(0);
        }
        right
    }

    /// A TLS 1.2 record in place: explicit nonce, text, tag. The bytes of what is there then.
    fn record(&mut self, call: &Update) -> Result<usize, Refused> {
        let (_, to, bytes) = call.both().filter(|_| call.is_in_place() && self.has_key).ok_or(Refused)?;
        let text_bytes = bytes.checked_sub(EXPLICIT_BYTES + TAG_BYTES).ok_or(Refused)?;
        let record = call.space(bytes);
        let (explicit, rest) = record.split_at_mut_checked(EXPLICIT_BYTES).ok_or(Refused)?;
        let (text, tag) = rest.split_at_mut_checked(text_bytes).ok_or(Refused)?;
        debug_assert_eq!(explicit.as_mut_ptr(), to, "a record is worked on where it lies");
        if self.encrypts {
            // One key encrypts fewer records than that (FIPS 140-2 IG, A.5).
            self.records = self.records.checked_add(1).ok_or(Refused)?;
            self.next_nonce(explicit)?;
        } else {
            self.set_invocation(explicit)?;
        }
        let aad = *self.tag.first_chunk::<RECORD_AAD_BYTES>().ok_or(Refused)?;
        let mut written = 0;
        let (place, no_place) = (text.as_mut_ptr(), std::ptr::null_mut());
        let aad = Update::of(no_place, &raw mut written, aad.len(), aad.as_ptr(), aad.len());
        let body = Update::of(place, &raw mut written, text_bytes, place, text_bytes);
        self.pieces(&aad)?;
        self.pieces(&body)?;
        if self.encrypts {
            tag.copy_from_slice(&self.close(None)?.ok_or(Refused)?);
            return Ok(bytes);
        }
        let given = <[u8; TAG_BYTES]>::try_from(&*tag).map_err(|_| Refused)?;
        if self.close(Some((&given, TAG_BYTES))).is_err() {
            text.zeroize();
            return Err(Refused);
        }
        Ok(text_bytes)
    }

    /// Begins a message under the nonce that is due, gives its last bytes and counts it up.
    fn next_nonce(&mut self, out: &mut [u8]) -> Result<(), Refused> {
        if !self.counts_nonce || !self.has_key {
            return Err(Refused);
        }
        self.begin_message();
        let nonce_len = self.nonce_len();
        let shown = if out.is_empty() || out.len() > nonce_len { nonce_len } else { out.len() };
        let nonce = self.nonce_bytes.get_mut(..nonce_len).ok_or(Refused)?;
        let out = out.get_mut(..shown).ok_or(Refused)?;
        out.copy_from_slice(nonce.get(nonce_len - shown..).ok_or(Refused)?);
        let counter = nonce.last_chunk_mut::<EXPLICIT_BYTES>().ok_or(Refused)?;
        *counter = u64::from_be_bytes(*counter).wrapping_add(1).to_be_bytes();
        self.nonce = Nonce::Begun;
        Ok(())
    }

    /// Begins a message whose nonce ends with these bytes, to be decrypted.
    fn set_invocation(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        if !self.counts_nonce || !self.has_key || self.encrypts {
            return Err(Refused);
        }
        let nonce_len = self.nonce_len();
        let first = nonce_len.checked_sub(bytes.len()).ok_or(Refused)?;
        self.nonce_bytes.get_mut(first..nonce_len).ok_or(Refused)?.copy_from_slice(bytes);
        self.begin_message();
        self.nonce = Nonce::Begun;
        Ok(())
    }

    /// Parameters, in OpenSSL's order.
    pub(crate) fn set(&mut self, list: &[Param]) -> Result<(), Refused> {
        if list.is_empty() {
            return Ok(());
        }
        if let Some(param) = params::find(list, c"tag") {
            let tag = params::octets(param, TAG_BYTES).ok_or(Refused)?;
            // Kept even where it is refused, and shown.
            self.tag.get_mut(..tag.len()).ok_or(Refused)?.copy_from_slice(tag);
            if tag.is_empty() || self.encrypts {
                return Err(Refused);
            }
            self.tag_len = Some(tag.len());
        }
        if let Some(param) = params::find(list, c"ivlen") {
            let bytes =
                params::number(param).filter(|bytes| (1..=NONCE_BYTES_MAX).contains(bytes)).ok_or(Refused)?;
            if bytes != self.nonce_len() {
                if self.nonce != Nonce::Missing {
                    self.nonce = Nonce::Used;
                }
                self.nonce_len = bytes;
            }
        }
        if let Some(param) = params::find(list, c"tlsaad") {
            let aad = params::octets(param, RECORD_AAD_BYTES).ok_or(Refused)?;
            self.take_record(aad.try_into().map_err(|_| Refused)?)?;
        }
        if let Some(param) = params::find(list, c"tlsivfixed") {
            self.fix_nonce(param)?;
        }
        if let Some(param) = params::find(list, c"tlsivinv") {
            self.set_invocation(params::octets(param, NONCE_BYTES_MAX).ok_or(Refused)?)?;
        }
        Ok(())
    }

    /// The associated data of a record: its length is that of what goes over the wire.
    fn take_record(&mut self, aad: &[u8; RECORD_AAD_BYTES]) -> Result<(), Refused> {
        let place = self.tag.first_chunk_mut::<RECORD_AAD_BYTES>().ok_or(Refused)?;
        *place = *aad;
        self.is_record_due = true;
        let length = place.last_chunk_mut::<2>().ok_or(Refused)?;
        let around = if self.encrypts { 8 } else { 8 + 16 };
        let text_bytes = u16::from_be_bytes(*length).checked_sub(around).ok_or(Refused)?;
        *length = text_bytes.to_be_bytes();
        self.record_padding = TAG_BYTES;
        Ok(())
    }

    /// The first bytes of the nonce of all records; the others are random where we encrypt.
    fn fix_nonce(&mut self, param: &Param) -> Result<(), Refused> {
        if param.data_size == usize::MAX {
            // All of it.
            let whole = Param { data_size: self.nonce_len(), ..*param };
            let nonce = params::octets(&whole, NONCE_BYTES_MAX).ok_or(Refused)?;
            self.nonce_bytes.get_mut(..nonce.len()).ok_or(Refused)?.copy_from_slice(nonce);
        } else {
            let fixed = params::octets(param, NONCE_BYTES_MAX)
                .filter(|fixed| fixed.len() >= FIXED_BYTES_MIN)
                .ok_or(Refused)?;
            if self.nonce_len().checked_sub(fixed.len()).is_none_or(|left| left < EXPLICIT_BYTES) {
                return Err(Refused);
            }
            if self.encrypts {
                self.nonce_bytes = self.made_by_inner(fixed)?;
            } else {
                self.nonce_bytes.get_mut(..fixed.len()).ok_or(Refused)?.copy_from_slice(fixed);
            }
        }
        self.counts_nonce = true;
        self.nonce = Nonce::Given;
        Ok(())
    }

    /// A nonce of this context's length that begins with these bytes and is random besides, from OpenSSL's own generator. None at all is fixed of
    /// one that OpenSSL makes for a program that gave none, which has 96 bits at least.
    fn made_by_inner(&self, fixed: &[u8]) -> Result<[u8; NONCE_BYTES_MAX], Refused> {
        // OpenSSL's generator asks the kernel, at points at which a thread is cancelled; no frame of ours may be unwound.
        let _held = hold_cancellation();
        let own = OwnContext::new(self.row()).ok_or(Refused)?;
        let (inner, nonce_len, no_key) = (own.inner(), self.nonce_len(), [0; 32]);
        let no_key = no_key.get(..self.key_bytes).ok_or(Refused)?;
        let mut nonce = [0; NONCE_BYTES_MAX];
        let is_made = inner.init(true, Some(no_key), None)
            && (nonce_len == NONCE_BYTES || inner.set_nonce_bytes(nonce_len))
            && if fixed.is_empty() { inner.associate(&[0]) } else { inner.set_fixed_nonce(fixed) }
            && inner.nonce(nonce.get_mut(..nonce_len).ok_or(Refused)?);
        is_made.then_some(nonce).ok_or(Refused)
    }

    /// Answers queries, in OpenSSL's order.
    pub(crate) fn get(&mut self, list: &mut [Param]) -> Result<(), Refused> {
        let tag_len = self.tag_len.unwrap_or(TAG_BYTES);
        let lengths = [
            (c"ivlen", self.nonce_len()),
            (c"keylen", self.key_bytes),
            (c"taglen", tag_len),
            (c"tlsaadpad", self.record_padding),
        ];
        for (name, length) in lengths {
            let answered =
                params::find_mut(list, name).is_none_or(|param| params::answer_length(param, length));
            answered.then_some(()).ok_or(Refused)?;
        }
        for name in [c"iv", c"updated-iv"] {
            if let Some(param) = params::find_mut(list, name) {
                let is_answered = self.nonce != Nonce::Missing
                    && param.data_size >= self.nonce_len()
                    && params::answer_octets(param, self.nonce_so_far());
                is_answered.then_some(()).ok_or(Refused)?;
            }
        }
        if let Some(param) = params::find_mut(list, c"tag") {
            let shown = self
                .tag
                .get(..param.data_size)
                .filter(|shown| !shown.is_empty() && self.encrypts && self.tag_len.is_some());
            params::answer_octets(param, shown.ok_or(Refused)?).then_some(()).ok_or(Refused)?;
        }
        if let Some(param) = params::find_mut(list, c"tlsivgen") {
            // Of more bytes than a nonce has, as many as there are.
            let out = params::octets_mut(param, usize::MAX).ok_or(Refused)?;
            self.next_nonce(out)?;
        }
        Ok(())
    }
}

impl Drop for GcmContext {
    fn drop(&mut self) {
        if self.has_key {
            self.key_copy.zeroize();
        }
    }
}

/// Whole blocks of a message, each part of them by a thread of its own; whether all are done.
///
/// # Safety
/// The piece's places are good for reading and writing.
unsafe fn shared(message: &mut Message, key: &mut Key, encrypts: bool, cut: &Cut<'_>, bulk: usize) -> bool {
    if !message.opens(key) {
        return false;
    }
    let part_blocks = cut.part_bytes / BLOCK_BYTES;
    let stretches: Vec<OnceLock<Stretch>> =
        (0..bulk.div_ceil(cut.part_bytes)).map(|_| OnceLock::new()).collect();
    let (begun, key) = (&*message, &*key);
    let part = |index: usize, (from, to, bytes): Place| {
        let mut stretch = begun.stretch(index * part_blocks);
        let blocks = bytes / BLOCK_BYTES;
        if encrypts {
            // SAFETY: the part's place.
            unsafe { stretch.crypt::<true>(key, from, to, blocks) };
        } else {
            // SAFETY: as above.
            unsafe { stretch.crypt::<false>(key, from, to, blocks) };
        }
        // Each part is given out once.
        stretches.get(index).map(|place| place.set(stretch).is_ok());
    };
    // SAFETY: the caller's word.
    let is_done = unsafe { cut.share(&part) };
    for stretch in &stretches {
        match stretch.get() {
            Some(stretch) if is_done => message.join(key, stretch),
            _ => return false,
        }
    }
    true
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
