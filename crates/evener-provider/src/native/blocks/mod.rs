//! ECB, CBC decryption, CTR and XTS by a kernel of ours: what OpenSSL's own ciphers do (providers/implementations/ciphers/ciphercommon.c and
//! cipher_aes_xts.c, 3.0 to 3.5), call by call.
//!
//! What is rare is not done again here: a call that a cipher refuses, parameters of TLS, a direction for which there is no key. Then the inner cipher takes
//! the message over in the state that it has reached (`handover.rs`), and answers itself.
//!
//! Path of a piece of text: [`BlockContext::update`] -> a stream (`stream.rs`), a unit of XTS, or blocks of which the last is padded (`padding.rs`) -> whole blocks by the
//! kernel, by this thread or by several (`sharing.rs`). A sample of pieces is computed again ([`BlockContext::update_beside`]).

mod handover;
mod padding;
mod parameters;
mod part_starts;
mod sharing;
mod stream;

use evener_core::Family;
pub(crate) use evener_kernels::modes::BLOCK;
use evener_kernels::modes::{Key, Mode};
use zeroize::{Zeroize as _, Zeroizing};

use self::stream::Stream;
use super::Refused;
use super::class::Class;
use super::kernel_check::{self, Sample, Turn};
use super::split::{Place, Split};
use super::tally::Tally;
use crate::ffi::key_copy::copy_key;
use crate::inner_cipher::call::{Init, Update};
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
    /// Whether there is a copy of a key that the inner cipher has.
    keeps_key: bool,
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
    #[inline(always)]
    pub(crate) fn new(row: &CipherRow, native: Native) -> Self {
        Self {
            key: Key::new(native.level),
            key_copy: [0; KEY_BYTES_MAX],
            has_key: false,
            keeps_key: false,
            is_lost: false,
            encrypts: true,
            has_iv: false,
            first_iv: [0; BLOCK],
            iv: [0; BLOCK],
            pads: true,
            held: [0; BLOCK],
            held_bytes: 0,
            tally: Tally::of(row),
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

    /// Whether a key is one that OpenSSL refuses, or not, by the direction and how it was built: two halves for XTS that are the same. A context goes on with the
    /// key before then.
    pub(crate) fn may_refuse(&self, key: &[u8]) -> bool {
        let (one, other) = key.split_at(key.len() / 2);
        let differs = || one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
        self.family() == Family::Xts && std::hint::black_box(differs()) == 0
    }

    fn take_key(&mut self, key: &[u8], encrypts: bool) -> Option<()> {
        let mode = self.mode(encrypts)?;
        if key.len() != self.native.key_bytes {
            return None;
        }
        if self.may_refuse(key) {
            return None;
        }
        if !kernel_check::with_key(key, |key| self.key.set(mode, key)) {
            return None;
        }
        // With the first key and no earlier: a program for which the inner cipher works has no counts of these.
        self.tally.prepare(self.row());
        copy_key(self.key_copy.get_mut(..key.len())?, key);
        (self.has_key, self.is_lost) = (true, false);
        self.turn.take_due(Class::of(&self.native, encrypts));
        Some(())
    }

    /// Keeps a key that the inner cipher has got, or notes that it has another or none.
    pub(crate) fn keep_key(&mut self, key: Option<&[u8]>) {
        let place = self.key_copy.get_mut(..self.native.key_bytes);
        let places = key.zip(place).filter(|(key, place)| key.len() == place.len());
        let is_kept = places.map(|(key, place)| copy_key(place, key)).is_some();
        if self.keeps_key && !is_kept {
            self.key_copy.zeroize();
        }
        self.keeps_key = is_kept;
    }

    /// Whether a key is kept.
    pub(crate) fn keeps_key(&self) -> bool {
        self.keeps_key
    }

    /// That key, and what is behind it.
    pub(crate) fn kept_key(&self) -> Option<Zeroizing<[u8; KEY_BYTES_MAX]>> {
        self.keeps_key.then(|| Zeroizing::new(self.key_copy))
    }

    /// The key that the kernel has.
    pub(crate) fn known_key(&self) -> Option<&[u8]> {
        (self.has_key && !self.is_lost).then(|| self.key_bytes())
    }

    /// The key that is kept.
    pub(crate) fn kept_key_bytes(&self) -> Option<&[u8]> {
        self.keeps_key.then(|| self.key_bytes())
    }

    /// The IV of the message that the kernel has, zeros where the cipher has none; `None` where none came.
    pub(crate) fn known_iv(&self) -> Option<[u8; BLOCK]> {
        (self.has_iv || self.iv_bytes() == 0).then_some(self.first_iv)
    }

    /// The IV that the program gave last, while the kernel had the message.
    pub(crate) fn first_iv(&self) -> &[u8; BLOCK] {
        &self.first_iv
    }

    /// What the kernel's key is for.
    pub(crate) fn encrypts(&self) -> bool {
        self.encrypts
    }

    /// Whether it pads the last block.
    pub(crate) fn pads(&self) -> bool {
        self.pads
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

    /// Whole blocks of which none is held back, as nearly all are, where no thread shares them and none is computed again: straight to the kernel. Whether that
    /// was so.
    #[inline]
    pub(crate) fn went_straight(&mut self, call: &Update) -> bool {
        let bytes = call.len();
        let holds = match self.family() {
            Family::Ctr => false,
            Family::Xts => !self.has_iv || bytes > UNIT_BYTES_MAX,
            _ => self.pads && !self.encrypts,
        };
        let is_whole = bytes > 0 && bytes % BLOCK == 0 && self.held_bytes == 0 && !holds;
        if !is_whole || bytes >= self.split_from() || !self.goes_on() || self.turn_comes() {
            return false;
        }
        let Some(place) = call.both() else { return false };
        // SAFETY: the caller lends both for the call.
        unsafe { self.crypt_whole(place) };
        self.tally.take(bytes);
        true
    }

    /// Whether the kernel goes on with the message, which where it is out of service is the inner cipher's from here.
    #[inline]
    fn goes_on(&self) -> bool {
        self.has_key && !self.is_lost && !self.is_out_of_service()
    }

    /// A piece of text; bytes written.
    pub(crate) fn update(&mut self, call: &Update) -> Option<usize> {
        let written = self.text(call)?;
        self.tally.take(call.len());
        Some(written)
    }

    /// The same in one call, which is a request of its own and holds nothing back; bytes written.
    pub(crate) fn one_shot(&mut self, call: &Update) -> Option<usize> {
        let before = self.tally.taken();
        let written = if matches!(self.family(), Family::Ctr | Family::Xts) {
            self.text(call)?
        } else {
            self.raw_blocks(call)?
        };
        self.tally.end_call(self.row(), self.encrypts, before, call.len());
        Some(written)
    }

    fn text(&mut self, call: &Update) -> Option<usize> {
        if !self.goes_on() {
            return None;
        }
        match self.family() {
            Family::Ctr => self.stream(call),
            Family::Xts => self.unit(call),
            _ => self.blocks(call),
        }
    }

    /// Of ECB a part of a block stays as it is; what is done with one of CBC is the inner cipher's.
    fn raw_blocks(&mut self, call: &Update) -> Option<usize> {
        let (from, to, bytes) = call.both().filter(|_| self.goes_on())?;
        if bytes % BLOCK != 0 && self.family() == Family::Cbc {
            return None;
        }
        // SAFETY: the caller lends both for the call.
        unsafe { self.crypt((from, to, bytes / BLOCK * BLOCK)) }?;
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

    /// The context ends.
    pub(crate) fn end_and_flush(&mut self) {
        self.tally.flush(self.row(), self.encrypts);
        self.turn.end(self.class());
    }

    /// The inner cipher has what was the kernel's, and messages are counted as its from here on. It has the key as well.
    pub(crate) fn leave_kernel(&mut self) {
        self.keeps_key |= self.has_key;
        self.tally.prepare(self.row());
        self.tally.set_direct(self.row(), self.encrypts, true);
    }

    /// The kernel has what was the inner cipher's.
    pub(crate) fn enter_kernel(&mut self) {
        self.tally.set_direct(self.row(), self.encrypts, false);
    }

    /// More text by the inner cipher, which is counted here.
    #[inline]
    pub(crate) fn take_direct(&mut self, bytes: usize) {
        self.tally.take(bytes);
    }

    /// A call of its own by the inner cipher, which is counted here.
    #[inline]
    pub(crate) fn count_direct_call(&mut self, bytes: usize) {
        self.tally.end_call(self.row(), self.encrypts, self.tally.taken(), bytes);
    }

    /// The next message is the inner cipher's.
    pub(crate) fn next_direct(&mut self, encrypts: bool) {
        self.tally.end_message(self.row(), self.encrypts);
        if encrypts != self.encrypts {
            self.tally.flush(self.row(), self.encrypts);
            self.encrypts = encrypts;
        }
    }

    /// Messages are counted here, also where they might be by ways before the kernel.
    pub(crate) fn take_counts(&mut self) {
        self.tally.set_hidden(self.row(), self.encrypts, false);
    }

    /// From here on the ways before the kernel count. Bytes of this message that are not counted yet.
    pub(crate) fn give_counts_up(&mut self) -> usize {
        let taken = self.tally.give_up();
        self.tally.set_hidden(self.row(), self.encrypts, true);
        taken
    }

    /// What was counted is not counted again.
    pub(crate) fn forget_counts(&mut self) {
        self.tally.forget();
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
        if self.has_key || self.keeps_key {
            self.key_copy.zeroize();
            self.held.zeroize();
        }
    }
}
