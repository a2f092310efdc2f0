//! What is timed: each kernel with a secret that it is given first, and leaks that are planted.
#![allow(
    unsafe_code,
    reason = "kernels are told places by their addresses, and the processor's clock is an instruction"
)]

use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::hint::black_box;
use std::sync::Arc;

use evener_kernels::hashes::{self, Hash, MacKey, Means, Running, Span};
use evener_kernels::modes::{BLOCK, Mode};
use evener_kernels::{Level, bitsliced, gcm, is_same_tag, lanes, modes};

/// A turn of the widest registers, a part of one, and a part of a block.
pub(crate) const TEXT_BYTES: usize = 45 * BLOCK + 5;

/// Ticks of the processor's clock that `work` takes.
#[inline(always)]
pub(crate) fn ticks(work: impl FnOnce()) -> u64 {
    let read = || {
        // SAFETY: every x86-64 processor has it; the fences keep the work between the two readings.
        unsafe { _mm_lfence() };
        // SAFETY: as above.
        let now = unsafe { _rdtsc() };
        // SAFETY: as above.
        unsafe { _mm_lfence() };
        now
    };
    let before = read();
    work();
    read().wrapping_sub(before)
}

/// Something that may take longer for one secret than for another.
pub(crate) trait Subject {
    fn name(&self) -> String;
    fn secret_bytes(&self) -> usize;
    /// Takes a secret; not timed.
    fn arm(&mut self, secret: &[u8]);
    /// What is timed.
    fn run(&mut self);
}

/// What of a message is the secret that differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Secret {
    Key(usize),
    Text,
}

impl Secret {
    fn bytes(self) -> usize {
        if let Self::Key(bytes) = self { bytes } else { TEXT_BYTES }
    }

    /// Puts a secret where it belongs.
    fn put(self, secret: &[u8], text: &mut [u8], set_key: impl FnOnce(&[u8])) {
        match self {
            Self::Key(_) => set_key(secret),
            Self::Text => text.copy_from_slice(secret),
        }
    }
}

/// A message of AES-GCM under a key that is set before. The key's powers are made in the time where the key is the secret.
pub(crate) struct Gcm<const ENCRYPTS: bool> {
    level: Level,
    secret: Secret,
    key: gcm::Key,
    text: Vec<u8>,
}

impl<const ENCRYPTS: bool> Gcm<ENCRYPTS> {
    pub(crate) fn boxed(level: Level, secret: Secret) -> Box<dyn Subject> {
        let mut key = gcm::Key::new(level);
        assert!(key.set(&[7; 32]));
        Box::new(Self { level, secret, key, text: vec![3; TEXT_BYTES] })
    }
}

impl<const ENCRYPTS: bool> Subject for Gcm<ENCRYPTS> {
    fn name(&self) -> String {
        let does = if ENCRYPTS { "encryption" } else { "decryption" };
        format!("{} GCM {does}, {:?}", self.level.name(), self.secret)
    }

    fn secret_bytes(&self) -> usize {
        self.secret.bytes()
    }

    fn arm(&mut self, secret: &[u8]) {
        self.secret.put(secret, &mut self.text, |secret| assert!(self.key.set(secret)));
    }

    fn run(&mut self) {
        let mut message = gcm::Message::new(&mut self.key, &[9; 12]);
        message.aad(&mut self.key, &[1; 13]);
        if ENCRYPTS {
            message.encrypt(&mut self.key, &mut self.text);
        } else {
            message.decrypt(&mut self.key, &mut self.text);
        }
        black_box(message.tag(&self.key));
    }
}

/// A message of another mode under a key that is set before.
pub(crate) struct Blocks {
    level: Level,
    mode: Mode,
    secret: Secret,
    key: modes::Key,
    text: Vec<u8>,
}

impl Blocks {
    pub(crate) fn boxed(level: Level, mode: Mode, secret: Secret) -> Box<dyn Subject> {
        let mut key = modes::Key::new(level);
        assert!(key.set(mode, &vec![7; if is_xts(mode) { 64 } else { 32 }]));
        Box::new(Self { level, mode, secret, key, text: vec![3; TEXT_BYTES] })
    }
}

impl Subject for Blocks {
    fn name(&self) -> String {
        format!("{} {:?}, {:?}", self.level.name(), self.mode, self.secret)
    }

    fn secret_bytes(&self) -> usize {
        self.secret.bytes()
    }

    fn arm(&mut self, secret: &[u8]) {
        self.secret.put(secret, &mut self.text, |secret| assert!(self.key.set(self.mode, secret)));
    }

    fn run(&mut self) {
        let at = self.text.as_mut_ptr();
        if is_xts(self.mode) {
            // SAFETY: the text, in its place.
            unsafe { self.key.crypt_unit(&[9; BLOCK], at, at, TEXT_BYTES) };
        } else {
            // SAFETY: as above.
            unsafe { self.key.crypt(&mut [9; BLOCK], at, at, TEXT_BYTES / BLOCK) };
        }
    }
}

/// CBC encryption of messages of three blocks side by side, more than the narrowest level has lanes. The lanes take the round keys in the time where the
/// key is the secret.
pub(crate) struct Lanes {
    level: Level,
    secret: Secret,
    keys: [Arc<lanes::Key>; 1],
    cbc: lanes::Cbc,
    text: Vec<u8>,
}

impl Lanes {
    pub(crate) fn boxed(level: Level, secret: Secret) -> Box<dyn Subject> {
        let keys = [lane_key(level, &[7; 32])];
        Box::new(Self { level, secret, keys, cbc: lanes::Cbc::new(level), text: vec![3; TEXT_BYTES] })
    }
}

fn lane_key(level: Level, key: &[u8]) -> Arc<lanes::Key> {
    lanes::Key::new(level, key).expect("a length of AES")
}

impl Subject for Lanes {
    fn name(&self) -> String {
        format!("{} CBC encryption by lanes, {:?}", self.level.name(), self.secret)
    }

    fn secret_bytes(&self) -> usize {
        self.secret.bytes()
    }

    fn arm(&mut self, secret: &[u8]) {
        self.secret.put(secret, &mut self.text, |secret| self.keys = [lane_key(self.level, secret)]);
    }

    fn run(&mut self) {
        let places = self.text.chunks_exact_mut(3 * BLOCK);
        let messages = places.map(|place| lanes::Message::in_place(0, &[9; BLOCK], place, 3 * BLOCK));
        self.cbc.encrypt(&self.keys, &mut messages.collect::<Vec<_>>());
    }
}

/// HMAC of messages of unlike lengths side by side, more than lanes have room for. The key's states are made in the time where the key is the secret.
pub(crate) struct Macs {
    means: Means,
    hash: Hash,
    secret: Secret,
    key: Vec<u8>,
    made: Arc<MacKey>,
    lanes: hashes::Lanes,
    text: Vec<u8>,
}

impl Macs {
    pub(crate) fn boxed(means: Means, hash: Hash, secret: Secret) -> Box<dyn Subject> {
        let mut lanes = hashes::Lanes::new(means);
        let key = vec![7; if let Secret::Key(bytes) = secret { bytes } else { 32 }];
        let made = MacKey::new(&mut lanes, hash, &key);
        Box::new(Self { means, hash, secret, key, made, lanes, text: vec![3; TEXT_BYTES] })
    }
}

impl Subject for Macs {
    fn name(&self) -> String {
        format!("{} HMAC of {:?} by lanes, {:?}", self.means.name(), self.hash, self.secret)
    }

    fn secret_bytes(&self) -> usize {
        self.secret.bytes()
    }

    fn arm(&mut self, secret: &[u8]) {
        self.secret.put(secret, &mut self.text, |secret| self.key.copy_from_slice(secret));
    }

    fn run(&mut self) {
        if self.secret != Secret::Text {
            self.made = MacKey::new(&mut self.lanes, self.hash, &self.key);
        }
        let mut running: Vec<Running> = (0..20).map(|_| self.made.inner()).collect();
        let texts = (0..).map(|number| &self.text[number * 31..]);
        let spans = running.iter_mut().zip(texts).map(|(running, text)| Span::last(running, text));
        self.lanes.run(&mut spans.collect::<Vec<_>>());
        let mut places = [[0; Hash::DIGEST_BYTES_MAX]; 20];
        let spans = running.iter_mut().zip(&mut places);
        let spans = spans.map(|(running, place)| self.made.outer(running, place));
        self.lanes.run(&mut spans.collect::<Vec<_>>());
        running.iter().for_each(|running| _ = black_box(running.digest(&mut [0; Hash::DIGEST_BYTES_MAX])));
    }
}

/// A message by planes under a key that is set before.
pub(crate) struct Sliced {
    means: bitsliced::Means,
    mode: Mode,
    secret: Secret,
    key: bitsliced::modes::Key,
    text: Vec<u8>,
}

impl Sliced {
    pub(crate) fn boxed(means: bitsliced::Means, mode: Mode, secret: Secret) -> Box<dyn Subject> {
        let mut key = bitsliced::modes::Key::new(means);
        assert!(key.set(mode, &vec![7; if is_xts(mode) { 64 } else { 32 }]));
        Box::new(Self { means, mode, secret, key, text: vec![3; TEXT_BYTES] })
    }
}

impl Subject for Sliced {
    fn name(&self) -> String {
        format!("planes, {} {:?}, {:?}", self.means.name(), self.mode, self.secret)
    }

    fn secret_bytes(&self) -> usize {
        self.secret.bytes()
    }

    fn arm(&mut self, secret: &[u8]) {
        self.secret.put(secret, &mut self.text, |secret| assert!(self.key.set(self.mode, secret)));
    }

    fn run(&mut self) {
        let (at, bytes) = (self.text.as_mut_ptr(), self.text.len());
        if is_xts(self.mode) {
            // SAFETY: the text, in its place.
            unsafe { self.key.crypt_unit(&[9; BLOCK], at, at, bytes) };
        } else {
            // SAFETY: as above.
            unsafe { self.key.crypt(&mut [9; BLOCK], at, at, bytes / BLOCK) };
        }
    }
}

/// CBC encryption of messages of three blocks side by side by planes.
pub(crate) struct SlicedLanes {
    name: String,
    secret: Secret,
    keys: [Arc<bitsliced::Key>; 1],
    cbc: bitsliced::Cbc,
    text: Vec<u8>,
}

impl SlicedLanes {
    pub(crate) fn boxed(means: bitsliced::Means, secret: Secret) -> Box<dyn Subject> {
        let keys = [sliced_key(&[7; 32])];
        let name = format!("planes, {} CBC encryption by lanes, {secret:?}", means.name());
        Box::new(Self { name, secret, keys, cbc: bitsliced::Cbc::new(means), text: vec![3; TEXT_BYTES] })
    }
}

fn sliced_key(key: &[u8]) -> Arc<bitsliced::Key> {
    bitsliced::Key::new(key).expect("a length of AES")
}

impl Subject for SlicedLanes {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn secret_bytes(&self) -> usize {
        self.secret.bytes()
    }

    fn arm(&mut self, secret: &[u8]) {
        self.secret.put(secret, &mut self.text, |secret| self.keys = [sliced_key(secret)]);
    }

    fn run(&mut self) {
        let mut messages = Vec::new();
        for place in self.text.chunks_exact_mut(3 * BLOCK) {
            messages.push(lanes::Message::in_place(0, &[9; BLOCK], place, 3 * BLOCK));
        }
        self.cbc.encrypt(&self.keys, &mut messages);
    }
}

pub(crate) fn is_xts(mode: Mode) -> bool {
    matches!(mode, Mode::XtsEncryption | Mode::XtsDecryption)
}

/// A key that is set.
pub(crate) struct Setting<K> {
    name: String,
    secret: Vec<u8>,
    key: K,
    set: fn(&mut K, &[u8]) -> bool,
}

impl<K: 'static> Setting<K> {
    pub(crate) fn boxed(
        name: String,
        key: K,
        key_bytes: usize,
        set: fn(&mut K, &[u8]) -> bool,
    ) -> Box<dyn Subject> {
        Box::new(Self { name, secret: vec![0; key_bytes], key, set })
    }
}

impl<K> Subject for Setting<K> {
    fn name(&self) -> String {
        format!("{}, key of {} bytes set", self.name, self.secret.len())
    }

    fn secret_bytes(&self) -> usize {
        self.secret.len()
    }

    fn arm(&mut self, secret: &[u8]) {
        self.secret.copy_from_slice(secret);
    }

    fn run(&mut self) {
        assert!((self.set)(&mut self.key, &self.secret));
    }
}

/// Two tags, compared. The fixed secret is the right one.
pub(crate) struct Tags {
    pub(crate) name: &'static str,
    pub(crate) given: [u8; BLOCK],
    pub(crate) compare: fn(&[u8; BLOCK], &[u8; BLOCK], usize) -> bool,
}

/// The fixed secret of every subject: bytes without a meaning, for those that are all zero may be a case of their own in a cache.
pub(crate) const FIXED: u8 = 0xa6;

impl Subject for Tags {
    fn name(&self) -> String {
        self.name.into()
    }

    fn secret_bytes(&self) -> usize {
        BLOCK
    }

    fn arm(&mut self, secret: &[u8]) {
        self.given.copy_from_slice(secret);
    }

    fn run(&mut self) {
        black_box((self.compare)(black_box(&[FIXED; BLOCK]), black_box(&self.given), BLOCK));
    }
}

/// The kernels' own comparison.
pub(crate) fn tags() -> Box<dyn Subject> {
    Box::new(Tags { name: "tags, right or wrong", given: [0; BLOCK], compare: is_same_tag })
}

/// Planted: ends at the first byte that differs.
pub(crate) fn leaking_tags() -> Box<dyn Subject> {
    fn compare(one: &[u8; BLOCK], other: &[u8; BLOCK], bytes: usize) -> bool {
        (0..bytes).all(|at| black_box(one[at]) == other[at])
    }
    Box::new(Tags { name: "planted: tags until they differ", given: [0; BLOCK], compare })
}

/// Planted: a kernel, and a multiplication more where a bit of the secret is set.
pub(crate) struct Leak {
    subject: Box<dyn Subject>,
    bit: bool,
}

impl Leak {
    pub(crate) fn boxed(subject: Box<dyn Subject>) -> Box<dyn Subject> {
        Box::new(Self { subject, bit: false })
    }
}

impl Subject for Leak {
    fn name(&self) -> String {
        format!("planted: {} and a branch", self.subject.name())
    }

    fn secret_bytes(&self) -> usize {
        self.subject.secret_bytes()
    }

    fn arm(&mut self, secret: &[u8]) {
        self.bit = secret[0] & 1 == 1;
        self.subject.arm(secret);
    }

    fn run(&mut self) {
        self.subject.run();
        if black_box(self.bit) {
            (0..8_u64).for_each(|number| _ = black_box(number.wrapping_mul(number)));
        }
    }
}
