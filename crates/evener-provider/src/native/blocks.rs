//! ECB, CBC decryption, CTR and XTS by a kernel of ours: what OpenSSL's own ciphers do (providers/implementations/ciphers/ciphercommon.c and
//! cipher_aes_xts.c, 3.0 to 3.5), call by call.
//!
//! What is rare is not done again here: a call that a cipher refuses, parameters of TLS, a direction for which there is no key. Then the inner cipher takes
//! the message over in the state that it has reached ([`BlockContext::bring`]), and answers itself.

use evener_core::Family;
use evener_kernels::modes::{BLOCK, Key, Mode};
use evener_ossl_sys::Param;
use zeroize::{Zeroize as _, Zeroizing};

use super::Refused;
use super::class::Class;
use super::kernel_check::{self, Sample, Turn};
use super::part_starts;
use super::split::{Cut, Place, Split};
use super::stream::Stream;
use super::tally::Tally;
use crate::ffi::params;
use crate::inner_cipher::call::{Init, Update};
use crate::inner_cipher::context::InnerContext;
use crate::state::rows::{CipherRow, Native};

/// The longest key: two of AES-256 for XTS.
const KEY_BYTES_MAX: usize = 64;
/// The longest data unit of XTS in bytes, 2^20 blocks (IEEE 1619-2018, 5.1).
const UNIT_BYTES_MAX: usize = BLOCK << 20;

/// A context. Only plain bytes, so that a copy of them is a context of its own. Where a function answers `None`, nothing was done, and the call is the inner
/// cipher's.
pub(crate) struct BlockContext {
    key: Key,
    /// As it was given, for the inner cipher.
    key_copy: [u8; KEY_BYTES_MAX],
    has_key: bool,
    /// Part of the message is gone: nothing more comes out of it before the next key.
    is_lost: bool,
    /// What the key is for, and what is done.
    encrypts: bool,
    has_iv: bool,
    first_iv: [u8; BLOCK],
    /// The next counter; the last ciphertext.
    iv: [u8; BLOCK],
    /// Whether the last block is padded.
    pads: bool,
    /// Of CBC and ECB: input that waits for the rest of its block, or for more behind it. Of CTR: key stream, of which so many bytes were used.
    held: [u8; BLOCK],
    held_bytes: usize,
    tally: Tally,
    turn: Turn,
    native: Native,
    row: *const CipherRow,
}

impl BlockContext {
    /// A context of `row`, without a key.
    pub(crate) fn new(row: &CipherRow, native: Native) -> Self {
        Self {
            key: Key::new(native.level),
            key_copy: [0; KEY_BYTES_MAX],
            has_key: false,
            is_lost: false,
            encrypts: true,
            has_iv: false,
            first_iv: [0; BLOCK],
            iv: [0; BLOCK],
            pads: true,
            held: [0; BLOCK],
            held_bytes: 0,
            tally: Tally::default(),
            turn: Turn::default(),
            native,
            row,
        }
    }

    pub(crate) fn row<'p>(&self) -> &'p CipherRow {
        // SAFETY: rows go with their provider, which the core keeps while a context of it lives.
        unsafe { &*self.row }
    }

    pub(crate) fn native(&self) -> &Native {
        &self.native
    }

    fn family(&self) -> Family {
        self.native.family
    }

    fn key_bytes(&self) -> &[u8] {
        self.key_copy.get(..self.native.key_bytes).unwrap_or_default()
    }

    /// What a kernel does in this direction; none encrypts CBC.
    fn mode(&self, encrypts: bool) -> Option<Mode> {
        match (self.family(), encrypts) {
            (Family::Ecb, true) => Some(Mode::EcbEncryption),
            (Family::Ecb, false) => Some(Mode::EcbDecryption),
            (Family::Cbc, false) => Some(Mode::CbcDecryption),
            (Family::Ctr, _) => Some(Mode::Ctr),
            (Family::Xts, true) => Some(Mode::XtsEncryption),
            (Family::Xts, false) => Some(Mode::XtsDecryption),
            _ => None,
        }
    }

    /// Whether there is a kernel for this direction.
    pub(crate) fn has_kernel(&self, encrypts: bool) -> bool {
        self.mode(encrypts).is_some()
    }

    /// Whether an IV was given.
    pub(crate) fn has_iv(&self) -> bool {
        self.has_iv
    }

    /// An init with a key, an IV, both or neither, before its parameters.
    pub(crate) fn init(&mut self, call: &Init<'_>) -> Option<()> {
        let iv: Option<[u8; BLOCK]> = match call.iv.filter(|_| self.iv_bytes() > 0) {
            Some(iv) => Some(iv.try_into().ok()?),
            None => None,
        };
        match call.key {
            Some(key) => self.take_key(key, call.encrypts)?,
            // CTR is the same both ways.
            None if self.has_key && call.encrypts != self.encrypts && self.family() != Family::Ctr => {
                return None;
            }
            None => {}
        }
        self.tally.end_message(self.row(), self.encrypts);
        if call.encrypts != self.encrypts {
            self.tally.flush(self.row(), self.encrypts);
            self.encrypts = call.encrypts;
        }
        self.held_bytes = 0;
        if let Some(iv) = iv {
            (self.first_iv, self.iv, self.has_iv) = (iv, iv, true);
        } else if self.has_iv && self.family() == Family::Cbc {
            self.iv = self.first_iv;
        }
        Some(())
    }

    fn take_key(&mut self, key: &[u8], encrypts: bool) -> Option<()> {
        let mode = self.mode(encrypts)?;
        if key.len() != self.native.key_bytes {
            return None;
        }
        if self.family() == Family::Xts {
            let (one, other) = key.split_at(key.len() / 2);
            // OpenSSL refuses two keys that are the same, or not, by the direction and how it was built.
            let differs = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
            if std::hint::black_box(differs) == 0 {
                return None;
            }
        }
        if !kernel_check::with_key(key, |key| self.key.set(mode, key)) {
            return None;
        }
        // With the first key and no earlier: a program for which the inner cipher works has no counts of these.
        Tally::prepare(self.row());
        self.key_copy.get_mut(..key.len())?.copy_from_slice(key);
        (self.has_key, self.is_lost) = (true, false);
        self.turn.take_due(Class::of(&self.native, encrypts));
        Some(())
    }

    /// Parameters, all of them or none.
    pub(crate) fn set(&mut self, list: &[Param]) -> Option<()> {
        let (mut pads, mut used) = (None, None);
        for param in list {
            let place = match params::key(param).to_bytes() {
                b"padding" => &mut pads,
                b"num" if self.family() == Family::Ctr => &mut used,
                b"use-bits" => continue,
                name if self.family() != Family::Ctr || name.starts_with(b"tls") => return None,
                // Nothing to a counter, which the inner cipher would not take over whole.
                _ => continue,
            };
            let value = params::number(param)?;
            // The first of a name counts.
            place.get_or_insert(value);
        }
        if used.is_some_and(|used| used >= BLOCK) {
            return None;
        }
        self.held_bytes = used.unwrap_or(self.held_bytes);
        // OpenSSL's XTS does not look at it.
        if let Some(pads) = pads.filter(|_| self.family() != Family::Xts) {
            self.pads = pads != 0;
        }
        Some(())
    }

    /// Notes whether the inner cipher, which works in our place, pads.
    pub(crate) fn note_padding(&mut self, pads: bool) {
        self.pads = pads || self.family() == Family::Xts;
    }

    /// Answers queries.
    pub(crate) fn get(&self, list: &mut [Param]) -> Option<()> {
        for param in &mut *list {
            let name = params::key(param).to_bytes();
            if !matches!(name, b"ivlen" | b"keylen" | b"padding" | b"num" | b"iv" | b"updated-iv") {
                return None;
            }
        }
        let iv_bytes = self.iv_bytes();
        let used = if self.family() == Family::Ctr { self.held_bytes } else { 0 };
        let lengths = [
            (c"ivlen", iv_bytes),
            (c"keylen", self.native.key_bytes),
            (c"padding", usize::from(self.pads)),
            (c"num", used),
        ];
        for (name, length) in lengths {
            let is_fit =
                params::find_mut(list, name).is_none_or(|param| params::answer_length(param, length));
            is_fit.then_some(())?;
        }
        for (name, iv) in [(c"iv", &self.first_iv), (c"updated-iv", &self.iv)] {
            let iv = iv.get(..iv_bytes)?;
            let is_fit = params::find_mut(list, name).is_none_or(|param| params::answer_octets(param, iv));
            is_fit.then_some(())?;
        }
        Some(())
    }

    /// Bytes of an IV.
    pub(crate) fn iv_bytes(&self) -> usize {
        if self.family() == Family::Ecb { 0 } else { BLOCK }
    }

    /// Whether the next piece is one to be computed again ([`update_beside`](Self::update_beside)).
    #[inline]
    pub(crate) fn turn_comes(&mut self) -> bool {
        self.turn.comes()
    }

    /// A piece of text, which is computed again; bytes written, and whether the kernel was right. An error where it was not and the text is lost.
    #[cold]
    pub(crate) fn update_beside(
        &mut self,
        call: &Update,
        update: impl FnOnce(&mut Self) -> Option<usize>,
    ) -> Option<Result<(usize, bool), Refused>> {
        let sample = self.sample(call);
        let written = update(self)?;
        let Some(sample) = sample.filter(|sample| sample.is_of(written)) else {
            // The next piece has its turn.
            return Some(Ok((written, true)));
        };
        self.turn.begin_anew();
        let settled = sample.settle(self.row(), self.key_bytes(), call, written);
        if settled != Ok(true) {
            kernel_check::found_wrong(self.row(), self.class());
            kernel_check::count_redone(self.row(), self.encrypts, written);
        }
        Some(settled.map(|is_right| (written, is_right)).map_err(|()| Refused))
    }

    /// A copy of a piece, and of what the block before it holds back.
    fn sample(&self, call: &Update) -> Option<Sample> {
        let held = self.held.get(..self.held_bytes).unwrap_or_default();
        let (before, iv) = match self.family() {
            Family::Ctr => ((&[][..], (BLOCK - self.held_bytes) % BLOCK), self.iv),
            Family::Xts => ((&[][..], 0), self.first_iv),
            _ => ((held, 0), self.iv),
        };
        Sample::of(self.row(), self.encrypts, iv, before, call)
    }

    fn class(&self) -> Class {
        Class::of(&self.native, self.encrypts)
    }

    /// Whether a piece comes behind what waits for it, which a call that holds nothing back leaves alone.
    pub(crate) fn holds_back(&self) -> bool {
        self.held_bytes > 0 && self.family() != Family::Ctr
    }

    /// Whether the kernel that works here is out of service.
    #[inline]
    pub(crate) fn is_out_of_service(&self) -> bool {
        kernel_check::has_wrong_ones() && kernel_check::is_out_of_service(self.class())
    }

    /// Whether part of the message is gone, which no inner cipher may go on with.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// A piece of text; bytes written.
    pub(crate) fn update(&mut self, call: &Update) -> Option<usize> {
        if !self.has_key || self.is_lost {
            return None;
        }
        let written = match self.family() {
            Family::Ctr => self.stream(call),
            Family::Xts => self.unit(call),
            _ => self.blocks(call),
        }?;
        self.tally.take(call.len());
        Some(written)
    }

    /// The same in one call, which holds nothing back; bytes written.
    pub(crate) fn one_shot(&mut self, call: &Update) -> Option<usize> {
        if matches!(self.family(), Family::Ctr | Family::Xts) {
            return self.update(call);
        }
        let (from, to, bytes) = call.both().filter(|_| self.has_key && !self.is_lost)?;
        // Of ECB a part of a block stays as it is; what is done with one of CBC is the inner cipher's.
        if bytes % BLOCK != 0 && self.family() == Family::Cbc {
            return None;
        }
        // SAFETY: the caller lends both for the call.
        unsafe { self.crypt((from, to, bytes / BLOCK * BLOCK)) }?;
        self.tally.take(bytes);
        Some(bytes)
    }

    /// A piece of CTR.
    fn stream(&mut self, call: &Update) -> Option<usize> {
        if call.len() == 0 {
            return Some(0);
        }
        let (from, to, bytes) = call.both()?;
        let at = |offset: usize, bytes| (from.wrapping_add(offset), to.wrapping_add(offset), bytes);
        let (mut head, mut bulk) = (bytes, 0);
        if bytes >= self.split_from() && Split::fits(at(0, bytes)) {
            head = if self.held_bytes > 0 { bytes.min(BLOCK - self.held_bytes) } else { 0 };
            bulk = (bytes - head) / BLOCK * BLOCK;
        }
        // SAFETY: the caller lends both for the call.
        unsafe { self.stream_some(at(0, head)) };
        if bulk > 0 {
            // SAFETY: within both.
            unsafe { self.crypt(at(head, bulk)) }?;
        }
        // SAFETY: as above.
        unsafe { self.stream_some(at(head + bulk, bytes - head - bulk)) };
        Some(bytes)
    }

    /// A piece of CTR, by this thread.
    ///
    /// # Safety
    /// Its places are good for reading and writing.
    unsafe fn stream_some(&mut self, (from, to, bytes): Place) {
        if bytes > 0 {
            let mut stream = Stream { key: &self.key, counter: &mut self.iv, block: &mut self.held };
            // SAFETY: the caller's word.
            self.held_bytes = unsafe { stream.crypt(self.held_bytes, from, to, bytes) };
        }
    }

    /// From how many bytes on a piece may be split between threads, which takes memory, locks and the kernel's time.
    #[inline]
    pub(crate) fn split_from(&self) -> usize {
        self.row().native_split_from()
    }

    /// Whole blocks, or of XTS a data unit, by this thread or by several; `None` where threads have left a part undone.
    ///
    /// # Safety
    /// The places are good for reading and writing.
    unsafe fn crypt(&mut self, place: Place) -> Option<()> {
        if place.2 < self.split_from() {
            // SAFETY: the caller's word.
            unsafe { self.crypt_whole(place) };
            return Some(());
        }
        let split = Split::of(self.row(), self.encrypts, place);
        match split.as_ref().and_then(Split::cut) {
            // SAFETY: as above.
            Some(cut) => unsafe { self.crypt_shared(&cut, place) }?,
            // SAFETY: as above.
            None => unsafe { self.crypt_whole(place) },
        }
        split.into_iter().for_each(Split::end);
        Some(())
    }

    /// # Safety
    /// As [`crypt`](Self::crypt).
    unsafe fn crypt_whole(&mut self, (from, to, bytes): Place) {
        if self.family() == Family::Xts {
            // SAFETY: the caller's word.
            unsafe { self.key.crypt_unit(&self.iv, from, to, bytes) };
        } else {
            // SAFETY: as above.
            unsafe { self.key.crypt(&mut self.iv, from, to, bytes / BLOCK) };
        }
    }

    /// # Safety
    /// As [`crypt`](Self::crypt).
    unsafe fn crypt_shared(&mut self, cut: &Cut<'_>, place: Place) -> Option<()> {
        // SAFETY: the caller lends the input, of which nothing is overwritten yet.
        let input = unsafe { std::slice::from_raw_parts(place.0, place.2) };
        let (starts, end) = part_starts::of(self.family(), &self.key, &self.iv, input, cut.part_bytes);
        let (key, is_unit) = (&self.key, self.family() == Family::Xts);
        let part = |index: usize, (from, to, bytes): Place| {
            let mut chain = starts.get(index).copied().unwrap_or_default();
            if is_unit {
                // SAFETY: the part's place.
                unsafe { key.crypt_unit_at(&mut chain, from, to, bytes) };
            } else {
                // SAFETY: as above.
                unsafe { key.crypt(&mut chain, from, to, bytes / BLOCK) };
            }
        };
        // SAFETY: the caller's word.
        let is_done = unsafe { cut.share(&part) };
        if !is_done {
            // A thread panicked, which none has a reason to: no other way may go on with what is there.
            self.is_lost = true;
            return None;
        }
        self.iv = end;
        self.tally.went_elsewhere(place.2);
        Some(())
    }

    /// A data unit of XTS.
    fn unit(&mut self, call: &Update) -> Option<usize> {
        let (from, to, bytes) = call.both().filter(|_| self.has_iv)?;
        if !(BLOCK..=UNIT_BYTES_MAX).contains(&bytes) {
            return None;
        }
        // SAFETY: the caller lends both for the call.
        unsafe { self.crypt((from, to, bytes)) }?;
        Some(bytes)
    }

    /// A piece of CBC or ECB.
    fn blocks(&mut self, call: &Update) -> Option<usize> {
        let all = self.held_bytes.checked_add(call.len())?;
        let mut out = all / BLOCK * BLOCK;
        if self.pads && !self.encrypts && out == all {
            // It may be the last, which is padded.
            out = out.saturating_sub(BLOCK);
        }
        if out == 0 {
            let place = self.held.get_mut(self.held_bytes..all)?;
            if !place.is_empty() {
                place.copy_from_slice(call.input().get(..place.len())?);
            }
            self.held_bytes = all;
            return Some(0);
        }
        if !call.can_put(out) || call.is_end() && call.len() > 0 {
            return None;
        }
        // SAFETY: input of this length is there, and room for as much as comes out.
        unsafe { self.whole(call, all, out) }?;
        Some(out)
    }

    /// So many bytes out, of all that is there: what was held comes first, and what is behind them is held. What is read is read before it may be written over,
    /// wherever the places lie.
    ///
    /// # Safety
    /// The call has its input, and room for `out` bytes.
    unsafe fn whole(&mut self, call: &Update, all: usize, out: usize) -> Option<()> {
        let (input, output) = call.places()?;
        let before = self.held_bytes;
        let mut tail = Zeroizing::new([0; BLOCK]);
        // All of the input: what comes out has what was held.
        let tail_bytes = all - out;
        call.copy_input(call.len() - tail_bytes, &mut tail[..tail_bytes]);
        let mut first = Zeroizing::new([0; BLOCK]);
        let begun = if before > 0 { BLOCK - before } else { 0 };
        if before > 0 {
            call.copy_input(0, &mut self.held[before..]);
            let place = first.as_mut_ptr();
            // SAFETY: a block each.
            unsafe { self.key.crypt(&mut self.iv, self.held.as_ptr(), place, 1) };
        }
        let at = if before > 0 { BLOCK } else { 0 };
        if out > at {
            let (from, to) = (input.wrapping_add(begun), output.wrapping_add(at));
            // SAFETY: within the input, and within the room.
            unsafe { self.crypt((from, to, out - at)) }?;
        }
        if before > 0 {
            call.put_output(0, &*first);
        }
        self.held[..tail_bytes].copy_from_slice(&tail[..tail_bytes]);
        self.held_bytes = tail_bytes;
        Some(())
    }

    /// The end of a message; bytes written.
    #[inline]
    pub(crate) fn last(&mut self, call: &Update) -> Option<usize> {
        if !self.has_key {
            return None;
        }
        let written = match (self.family(), self.encrypts) {
            (Family::Ctr | Family::Xts, _) => 0,
            (_, true) => self.last_encrypted(call)?,
            (_, false) => self.last_decrypted(call)?,
        };
        self.tally.end_message(self.row(), self.encrypts);
        Some(written)
    }

    fn last_encrypted(&mut self, call: &Update) -> Option<usize> {
        if !self.pads {
            return (self.held_bytes == 0).then_some(0);
        }
        if !call.can_put(BLOCK) {
            return None;
        }
        let padding = BLOCK - self.held_bytes;
        self.held.get_mut(self.held_bytes..)?.fill(padding.to_le_bytes()[0]);
        let block = self.held_block();
        call.put_output(0, &*block);
        self.held_bytes = 0;
        Some(BLOCK)
    }

    fn last_decrypted(&mut self, call: &Update) -> Option<usize> {
        if self.held_bytes == 0 && !self.pads {
            return Some(0);
        }
        if self.held_bytes != BLOCK {
            return None;
        }
        let chain = self.iv;
        let block = self.held_block();
        let written = if self.pads { unpadded(&block) } else { Some(BLOCK) };
        let Some(written) = written.filter(|&bytes| bytes == 0 || call.can_put(bytes)) else {
            self.iv = chain;
            return None;
        };
        if written > 0 {
            call.put_output(0, block.get(..written)?);
        }
        self.held_bytes = 0;
        Some(written)
    }

    /// What is held, encrypted or decrypted.
    fn held_block(&mut self) -> Zeroizing<[u8; BLOCK]> {
        let mut block = Zeroizing::new(self.held);
        let place = block.as_mut_ptr();
        // SAFETY: a block, in its place.
        unsafe { self.key.crypt(&mut self.iv, place, place, 1) };
        block
    }

    /// Brings an inner context, which is new or had another message, into the state of this message, of which nothing stays `where_all_comes_anew`.
    pub(crate) fn bring(&mut self, inner: InnerContext<'_>, where_all_comes_anew: bool) -> bool {
        self.tally.flush(self.row(), self.encrypts);
        (where_all_comes_anew || self.bring_message(inner)) && inner.set_padding(self.pads)
    }

    fn bring_message(&self, inner: InnerContext<'_>) -> bool {
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

    /// A counter that was moved on takes the place of the first, too, which OpenSSL has no other way for.
    fn bring_counter(&self, inner: InnerContext<'_>) -> bool {
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
    fn bring_blocks(&self, inner: InnerContext<'_>) -> bool {
        let is_chained = self.family() == Family::Cbc && self.iv != self.first_iv;
        let held = self.held.get(..self.held_bytes).unwrap_or_default();
        (!is_chained || inner.set_padding(false) && inner.feed(&self.iv))
            && inner.set_padding(true)
            && (held.is_empty() || inner.feed(held))
    }

    /// The context ends.
    pub(crate) fn end_and_flush(&mut self) {
        self.tally.flush(self.row(), self.encrypts);
        self.turn.end(self.class());
    }

    /// What was counted is not counted again.
    pub(crate) fn forget_counts(&mut self) {
        self.tally = Tally::default();
    }

    /// This context is timed, or asked a known question.
    pub(super) fn leave_unchecked(&mut self) {
        self.turn = Turn::NEVER;
    }

    /// After a copy of another's bytes was made here.
    pub(crate) fn become_copy(&mut self) {
        self.forget_counts();
        self.turn = Turn::default();
    }
}

impl Drop for BlockContext {
    fn drop(&mut self) {
        if self.has_key {
            self.key_copy.zeroize();
            self.held.zeroize();
        }
    }
}

/// Bytes of a last block before its padding (RFC 5652, 6.3); `None` where that is none.
fn unpadded(block: &[u8; BLOCK]) -> Option<usize> {
    let padding = block[BLOCK - 1];
    let mut wrong = u8::from(padding == 0) | u8::from(padding > 16);
    for (behind, byte) in (0_u8..).zip(block.iter().rev()) {
        let counts = 0_u8.wrapping_sub(u8::from(behind < padding));
        wrong |= (byte ^ padding) & counts;
    }
    (std::hint::black_box(wrong) == 0).then(|| BLOCK - usize::from(padding))
}
