//! AES-GCM (NIST SP 800-38D) of one message in pieces of any length.

mod blocks;
mod entries;
mod key;
mod product;
mod stretch;

use std::ptr;

use zeroize::Zeroize as _;

use self::blocks::Chain;
use self::entries::Entries;
pub use self::key::Key;
use self::product::product;
pub use self::stretch::Stretch;
use crate::place::begins_inside;
use crate::vector::{self, Block, Vector as _};

const BLOCK: usize = 16;

/// A message on its way. Every call takes the key that it began with, which keeps what was worked out for it; the calls come in the order associated data, text, tag.
///
/// The caller keeps the limits of SP 800-38D: 2^36 - 32 bytes of text and 2^61 - 1 of associated data in a message.
#[derive(Clone)]
pub struct Message {
    chain: Chain,
    /// The first counter, encrypted: what the tag is hidden by.
    mask: Block,
    /// Key stream of a block that text has not filled, and what is to be hashed of it, or of associated data.
    stream: [u8; BLOCK],
    pending: [u8; BLOCK],
    aad_bytes: u64,
    text_bytes: u64,
}

impl Message {
    /// Begins a message under a nonce of 1 to 2^61 - 1 bytes; 12 are quickest.
    #[must_use]
    pub fn new(key: &mut Key, nonce: &[u8]) -> Self {
        // SAFETY: a key exists only where its level's instructions do.
        unsafe { begun(key, nonce) }
    }

    /// Begins a message under no nonce: its first counter is zero and nothing hides its tag. OpenSSL's contexts are there after a key without a
    /// nonce came in the middle of a message, and nothing else should be.
    #[must_use]
    pub fn without_nonce() -> Self {
        // SAFETY: every processor of this kind has these instructions.
        unsafe { blank() }
    }

    /// Takes associated data, before all text.
    pub fn aad(&mut self, key: &mut Key, data: &[u8]) {
        debug_assert_eq!(self.text_bytes, 0, "associated data comes first");
        // SAFETY: a key exists only where its level's instructions do.
        unsafe { self.take_aad(key, data) }
    }

    /// Encrypts a piece of text in place.
    pub fn encrypt(&mut self, key: &mut Key, text: &mut [u8]) {
        let place = text.as_mut_ptr();
        // SAFETY: the text is read and written where it lies.
        unsafe { self.crypt::<true>(key, place, place, text.len()) }
    }

    /// Decrypts a piece of text in place. Nothing of it may be used before the tag has been compared.
    pub fn decrypt(&mut self, key: &mut Key, text: &mut [u8]) {
        let place = text.as_mut_ptr();
        // SAFETY: the text is read and written where it lies.
        unsafe { self.crypt::<false>(key, place, place, text.len()) }
    }

    /// Encrypts a piece of text from one place to another of the same length.
    ///
    /// # Panics
    /// Where the lengths differ.
    pub fn encrypt_to(&mut self, key: &mut Key, from: &[u8], to: &mut [u8]) {
        assert_eq!(from.len(), to.len(), "the places of a text have one length");
        // SAFETY: both are as long, and a place that is written overlaps no other.
        unsafe { self.crypt::<true>(key, from.as_ptr(), to.as_mut_ptr(), from.len()) }
    }

    /// Decrypts a piece of text from one place to another of the same length. Nothing of it may be used before the tag has been compared.
    ///
    /// # Panics
    /// Where the lengths differ.
    pub fn decrypt_to(&mut self, key: &mut Key, from: &[u8], to: &mut [u8]) {
        assert_eq!(from.len(), to.len(), "the places of a text have one length");
        // SAFETY: both are as long, and a place that is written overlaps no other.
        unsafe { self.crypt::<false>(key, from.as_ptr(), to.as_mut_ptr(), from.len()) }
    }

    /// Bytes of associated data so far.
    #[must_use]
    pub fn aad_bytes(&self) -> u64 {
        self.aad_bytes
    }

    /// Bytes of text so far.
    #[must_use]
    pub fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    /// Encrypts or decrypts a piece of text. The places may overlap in any way.
    ///
    /// # Safety
    /// `from` is good for reading and `to` for writing `bytes` bytes.
    pub unsafe fn crypt<const ENCRYPTS: bool>(
        &mut self,
        key: &mut Key,
        from: *const u8,
        to: *mut u8,
        bytes: usize,
    ) {
        let mut from = from;
        if begins_inside(from, to, bytes) {
            ptr::copy(from, to, bytes);
            from = to;
        }
        if bytes > 0 {
            self.crypt_text::<ENCRYPTS>(key, from, to, bytes);
        }
    }

    /// The tag of all that came; the message is over.
    #[must_use]
    pub fn tag(&mut self, key: &Key) -> [u8; BLOCK] {
        // SAFETY: a key exists only where its level's instructions do.
        unsafe { self.end(key) }
    }

    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,pclmulqdq,sse4.1,ssse3"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    unsafe fn take_aad(&mut self, key: &mut Key, data: &[u8]) {
        let mut data = data;
        let filled = in_block(self.aad_bytes);
        self.aad_bytes += data.len() as u64;
        if filled > 0 {
            let (begun, rest) = data.split_at(data.len().min(BLOCK - filled));
            self.pending[filled..][..begun.len()].copy_from_slice(begun);
            if filled + begun.len() < BLOCK {
                return;
            }
            self.hash_pending(key);
            data = rest;
        }
        self.hash(key, data);
    }

    /// At least one byte of text.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,pclmulqdq,sse4.1,ssse3"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    unsafe fn crypt_text<const ENCRYPTS: bool>(
        &mut self,
        key: &mut Key,
        from: *const u8,
        to: *mut u8,
        bytes: usize,
    ) {
        let (mut from, mut to, mut left) = (from, to, bytes);
        if self.text_bytes == 0 {
            self.flush(key, self.aad_bytes);
        }
        let filled = in_block(self.text_bytes);
        self.text_bytes += bytes as u64;
        if filled > 0 {
            let here = left.min(BLOCK - filled);
            self.crypt_some::<ENCRYPTS>(from, to, filled, here);
            (from, to, left) = (from.add(here), to.add(here), left - here);
            if filled + here < BLOCK {
                return;
            }
            self.hash_pending(key);
        }
        let whole = left / BLOCK;
        if whole > 0 {
            let entries = Entries::of(key);
            entries.need_powers(key, whole);
            let kernel = if ENCRYPTS { entries.encrypt } else { entries.decrypt };
            kernel(key, &mut self.chain, from.cast(), to.cast(), whole);
            (from, to, left) = (from.add(whole * BLOCK), to.add(whole * BLOCK), left % BLOCK);
        }
        if left > 0 {
            key.encrypted(self.chain.counter.reversed()).store(self.stream.as_mut_ptr().cast());
            self.chain.counter = self.chain.counter.add(vector::number(0, 1));
            self.crypt_some::<ENCRYPTS>(from, to, 0, left);
        }
    }

    /// Some bytes of a block of which `filled` are there.
    unsafe fn crypt_some<const ENCRYPTS: bool>(
        &mut self,
        from: *const u8,
        to: *mut u8,
        filled: usize,
        bytes: usize,
    ) {
        for at in 0..bytes {
            let input = *from.add(at);
            let output = input ^ self.stream[filled + at];
            *to.add(at) = output;
            self.pending[filled + at] = if ENCRYPTS { output } else { input };
        }
    }

    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,pclmulqdq,sse4.1,ssse3"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    unsafe fn end(&mut self, key: &Key) -> [u8; BLOCK] {
        let mut tag = [0; BLOCK];
        self.flush(key, if self.text_bytes == 0 { self.aad_bytes } else { self.text_bytes });
        self.hash_block(key, vector::number(bits(self.aad_bytes), bits(self.text_bytes)));
        self.chain.hash.reversed().xor(self.mask).store(tag.as_mut_ptr().cast());
        tag
    }

    /// Hashes whole blocks and keeps what is left, where nothing is pending.
    fn hash(&mut self, key: &mut Key, data: &[u8]) {
        let (whole, rest) = data.split_at(data.len() / BLOCK * BLOCK);
        if !whole.is_empty() {
            let entries = Entries::of(key);
            entries.need_powers(key, whole.len() / BLOCK);
            // SAFETY: the blocks are there, and so are the level's instructions.
            unsafe { (entries.hash)(key, &mut self.chain, whole.as_ptr().cast(), whole.len() / BLOCK) }
        }
        self.pending[..rest.len()].copy_from_slice(rest);
    }

    /// Hashes a block that `bytes` bytes have left unfinished, filled up with zeros.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,pclmulqdq,sse4.1,ssse3"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    unsafe fn flush(&mut self, key: &Key, bytes: u64) {
        let filled = in_block(bytes);
        if filled > 0 {
            self.pending[filled..].fill(0);
            self.hash_pending(key);
        }
    }

    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,pclmulqdq,sse4.1,ssse3"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    unsafe fn hash_pending(&mut self, key: &Key) {
        self.hash_block(key, Block::load(self.pending.as_ptr().cast()).reversed());
    }

    /// Hashes a block whose bytes are reversed.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,pclmulqdq,sse4.1,ssse3"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    unsafe fn hash_block(&mut self, key: &Key, block: Block) {
        self.chain.hash = product(self.chain.hash.xor(block), *key.powers(1));
    }
}

/// A message under this nonce.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,pclmulqdq,sse4.1,ssse3"))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
unsafe fn begun(key: &mut Key, nonce: &[u8]) -> Message {
    let zero = Block::zero();
    let chain = Chain { counter: zero, hash: zero };
    let mut message =
        Message { chain, mask: zero, stream: [0; BLOCK], pending: [0; BLOCK], aad_bytes: 0, text_bytes: 0 };
    let first = if nonce.len() == 12 {
        message.pending[..12].copy_from_slice(nonce);
        message.pending[15] = 1;
        Block::load(message.pending.as_ptr().cast()).reversed()
    } else {
        message.hash(key, nonce);
        message.flush(key, nonce.len() as u64);
        message.hash_block(key, vector::number(0, bits(nonce.len() as u64)));
        std::mem::replace(&mut message.chain.hash, zero)
    };
    message.mask = key.encrypted(first.reversed());
    message.chain.counter = first.add(vector::number(0, 1));
    message
}

unsafe fn blank() -> Message {
    let zero = Block::zero();
    let chain = Chain { counter: zero, hash: zero };
    Message { chain, mask: zero, stream: [0; BLOCK], pending: [0; BLOCK], aad_bytes: 0, text_bytes: 0 }
}

/// Bytes of the last block that so many bytes have begun.
fn in_block(bytes: u64) -> usize {
    usize::from(bytes.to_le_bytes()[0]) % BLOCK
}

impl Drop for Message {
    fn drop(&mut self) {
        self.stream.zeroize();
        self.mask.zeroize();
    }
}

/// Bits in so many bytes; the limits of a message keep it from overflowing.
fn bits(bytes: u64) -> u64 {
    bytes.wrapping_mul(8)
}
