//! Hashes of many messages side by side (FIPS 180-4), and HMAC over them (RFC 2104).
//!
//! Path of a burst: [`Span`]s of hashes that are [`Running`] -> [`Lanes::run`] -> `burst.rs` puts them into lanes (`space.rs`), and the next where one is at its
//! end -> a kernel (`entries.rs`) takes as many blocks of all lanes as the shortest has: `sha2.rs` and `sha1.rs` by a register that has a word of each lane
//! (`words.rs`), `extensions.rs` by the SHA extensions, of which two chains fill each other's latency.

mod burst;
mod constants;
#[cfg(hash_kernels)]
mod entries;
#[cfg(not(hash_kernels))]
#[path = "absent.rs"]
mod entries;
#[cfg(hash_kernels)]
mod extensions;
mod mac;
mod means;
#[cfg(hash_kernels)]
mod sha1;
#[cfg(hash_kernels)]
mod sha2;
mod space;
mod tail;
#[cfg(hash_kernels)]
mod words;

use std::cmp::Reverse;
use std::marker::PhantomData;
use std::sync::atomic::AtomicU8;

use zeroize::Zeroize as _;

use self::entries::Kernels;
use self::space::{STATE_WORDS, Space};
use self::tail::Tails;
pub use crate::stack::with_stack_wiped;
pub use mac::MacKey;
pub use means::Means;

/// Most lanes.
const LANES_MAX: usize = 16;

/// A hash of FIPS 180-4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name says what it is")]
pub enum Hash {
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Sha1, Self::Sha224, Self::Sha256, Self::Sha384, Self::Sha512];

    /// Longest digest in bytes.
    pub const DIGEST_BYTES_MAX: usize = 64;

    /// Its name as options and, in capitals, BSD's lists of checksums have it; libcrypto takes either.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha224 => "sha224",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    /// Length of its digest in bytes.
    #[must_use]
    pub const fn digest_bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha224 => 28,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// Length of its block in bytes.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        self.width().block_bytes()
    }

    const fn width(self) -> Width {
        match self {
            Self::Sha1 | Self::Sha224 | Self::Sha256 => Width::Narrow,
            Self::Sha384 | Self::Sha512 => Width::Long,
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::Sha1 => Kind::One,
            Self::Sha224 | Self::Sha256 => Kind::Narrow,
            Self::Sha384 | Self::Sha512 => Kind::Long,
        }
    }

    fn first_state(self) -> [u64; STATE_WORDS] {
        match self {
            Self::Sha1 => constants::SHA_1,
            Self::Sha224 => constants::SHA_224,
            Self::Sha256 => constants::SHA_256,
            Self::Sha384 => constants::SHA_384,
            Self::Sha512 => constants::SHA_512,
        }
    }
}

/// Kernels that differ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// SHA-1.
    One,
    /// SHA-224 and SHA-256.
    Narrow,
    /// SHA-384 and SHA-512.
    Long,
}

/// How wide a hash's words are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    /// 32 bits.
    Narrow,
    /// 64 bits.
    Long,
}

impl Width {
    const fn block_bytes(self) -> usize {
        match self {
            Self::Narrow => 64,
            Self::Long => 128,
        }
    }

    const fn word_bytes(self) -> usize {
        self.block_bytes() / 16
    }

    /// Of the message's length, behind its padding.
    const fn length_bytes(self) -> usize {
        2 * self.word_bytes()
    }
}

/// A hash on its way. Wiped when it goes.
pub struct Running {
    hash: Hash,
    /// Words of 32 bits are the low halves.
    state: [u64; STATE_WORDS],
    /// Bytes before what comes next.
    bytes: u64,
}

impl Running {
    /// A hash of nothing as yet.
    #[must_use]
    pub fn new(hash: Hash) -> Self {
        Self { hash, state: hash.first_state(), bytes: 0 }
    }

    /// Writes the digest, which is there once the [last span](Span::last) was run, to the front of a place; returns its length in bytes.
    ///
    /// # Panics
    /// Where the place is shorter than the digest.
    pub fn digest(&self, place: &mut [u8]) -> usize {
        let place = &mut place[..self.hash.digest_bytes()];
        match self.hash.width() {
            Width::Narrow => {
                put_words(place, self.state.map(|word| ((word & 0xffff_ffff) as u32).to_be_bytes()));
            }
            Width::Long => put_words(place, self.state.map(u64::to_be_bytes)),
        }
        place.len()
    }
}

/// Writes as much of words as there is space for.
fn put_words<const BYTES: usize>(place: &mut [u8], words: [[u8; BYTES]; STATE_WORDS]) {
    let words = words.as_flattened();
    place.copy_from_slice(&words[..place.len()]);
}

impl Drop for Running {
    fn drop(&mut self) {
        self.state.zeroize();
    }
}

/// What a running hash takes next.
pub struct Span<'m> {
    running: &'m mut Running,
    from: *const u8,
    blocks: usize,
    /// Bytes behind whole blocks, where nothing comes behind them.
    rest: usize,
    /// Blocks of those and their padding.
    tail_blocks: usize,
    /// Whether another process may change it.
    is_shared: bool,
    memory: PhantomData<&'m [u8]>,
}

// SAFETY: it is what it was made of: borrowed memory.
unsafe impl Send for Span<'_> {}

impl<'m> Span<'m> {
    /// Whole blocks, behind which more will come.
    ///
    /// # Panics
    /// Where it ends within a block.
    #[must_use]
    pub fn more(running: &'m mut Running, text: &'m [u8]) -> Self {
        assert!(text.len() % running.hash.block_bytes() == 0, "what is behind it begins a block");
        Self::of(running, text.as_ptr(), text.len())
    }

    /// What is left of the message: any number of bytes.
    #[must_use]
    #[inline]
    pub fn last(running: &'m mut Running, text: &'m [u8]) -> Self {
        Self::of(running, text.as_ptr(), text.len()).ended(text.len())
    }

    /// The same in memory that another process may change at any time: what is changed there spoils this hash and nothing else. Whole blocks are read
    /// by plain loads of vectors, as there are no atomic ones; nothing is decided by what they hold.
    #[must_use]
    pub fn last_shared(running: &'m mut Running, text: &'m [AtomicU8]) -> Self {
        let span = Self::of(running, text.as_ptr().cast(), text.len()).ended(text.len());
        Self { is_shared: true, ..span }
    }

    #[inline]
    fn of(running: &'m mut Running, from: *const u8, bytes: usize) -> Self {
        running.bytes = running.bytes.wrapping_add(bytes as u64);
        let blocks = bytes / running.hash.block_bytes();
        Self { running, from, blocks, rest: 0, tail_blocks: 0, is_shared: false, memory: PhantomData }
    }

    /// Whose text of so many bytes is the message's last.
    #[inline]
    fn ended(self, bytes: usize) -> Self {
        let width = self.running.hash.width();
        let rest = bytes % width.block_bytes();
        let fits =
            rest < width.block_bytes() - width.length_bytes() || cfg!(mutant = "hashes_padding_in_one_block");
        Self { rest, tail_blocks: if fits { 1 } else { 2 }, ..self }
    }

    fn all_blocks(&self) -> usize {
        self.blocks + self.tail_blocks
    }
}

/// Lanes, which keep states of what they had until they [forget](Self::forget) them, or go.
pub struct Lanes {
    space: Box<Space>,
    tails: Box<Tails>,
    means: Means,
    /// Kept for its memory.
    order: Vec<u32>,
}

impl Lanes {
    /// Lanes by these instructions.
    #[must_use]
    pub fn new(means: Means) -> Self {
        Self { space: Space::new(), tails: Box::default(), means, order: Vec::new() }
    }

    /// Messages of a hash that go side by side by these instructions; 0 where there is no kernel for it.
    #[must_use]
    pub fn count(hash: Hash, means: Means) -> usize {
        Kernels::of(hash, means).map_or(0, |kernels| kernels.lanes)
    }

    /// Takes spans into their hashes, those of unlike lengths in the order of their lengths.
    ///
    /// # Panics
    /// Where they are of several hashes whose kernels differ, or there is no kernel for them ([`count`](Self::count)).
    pub fn run(&mut self, spans: &mut [Span<'_>]) {
        let Some(first) = spans.first() else { return };
        let hash = first.running.hash;
        let are_alike = spans.iter().all(|span| span.running.hash.kind() == hash.kind());
        assert!(are_alike, "one kernel is for all of them");
        let kernels = Kernels::of(hash, self.means).expect("a kernel for this hash");
        let numbers = (0_u32..).zip(spans.iter()).filter(|(_, span)| span.all_blocks() > 0);
        self.order.clear();
        self.order.extend(numbers.map(|(number, _)| number));
        if spans.windows(2).any(|pair| pair[0].all_blocks() != pair[1].all_blocks()) {
            // The longest first, so that no lane is left alone with one at the end.
            self.order.sort_unstable_by_key(|number| Reverse(spans[*number as usize].all_blocks()));
        }
        // SAFETY: means exist only where the processor has them.
        unsafe { burst::run(&mut self.space, &mut self.tails, &kernels, spans, &self.order) }
        self.tails.wipe(kernels.lanes.min(self.order.len()), kernels.width);
    }

    /// Wipes the states that it still has.
    pub fn forget(&mut self) {
        self.space.forget();
        self.tails.forget();
    }
}

#[cfg(all(test, hash_kernels))]
mod tests {
    use super::*;

    #[test]
    fn lanes_have_no_byte_of_a_message_s_end_behind_a_run() {
        let Some(means) = Means::best() else { return println!("skipped: this processor has no kernels") };
        for hash in Hash::ALL.into_iter().filter(|hash| Lanes::count(*hash, means) > 0) {
            let text = vec![7; 2 * hash.block_bytes()];
            for count in 1..40 {
                let mut lanes = Lanes::new(means);
                let mut running: Vec<_> = (0..count).map(|_| Running::new(hash)).collect();
                let spans = running.iter_mut().zip(0..);
                let spans = spans.map(|(running, it)| Span::last(running, &text[it * 37 % text.len()..]));
                lanes.run(&mut spans.collect::<Vec<_>>());
                assert!(lanes.tails.is_empty(), "{hash:?}, {count} messages");
            }
        }
    }
}
