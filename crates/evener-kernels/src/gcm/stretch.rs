//! Stretches of one message's text that are worked on by themselves, by several threads at once.
//!
//! Path: [`Message::begin_parts`] where whole blocks follow -> a [`Stretch`] of each of their parts, which begins where the part's counter stands and with
//! nothing hashed -> all of them in any order -> [`Message::join`] in the order of the text. The hash of what lies before a stretch of n
//! blocks is multiplied by the n-th power of the hash key, and the stretch's own is added (NIST SP 800-38D, 6.4, by Horner's rule).

use super::blocks::Chain;
use super::entries::Entries;
use super::key::{Key, MOST_POWERS};
use super::product::product;
use super::{BLOCK, Message, in_block};
use crate::place::begins_inside;
use crate::vector::{self, Block, Vector as _};

/// Whole blocks of a message, on their way. Who splits messages calls it a part; here that is what is left behind the last turn.
pub struct Stretch {
    chain: Chain,
    blocks: usize,
}

impl Message {
    /// Makes ready for stretches; false, and nothing done, where the message stands within a block of text.
    pub fn begin_parts(&mut self, key: &mut Key) -> bool {
        if in_block(self.text_bytes) > 0 {
            return false;
        }
        if self.text_bytes == 0 {
            // SAFETY: a key exists only where its level's instructions do.
            unsafe { self.flush(key, self.aad_bytes) }
        }
        Entries::of(key).need_powers(key, MOST_POWERS);
        true
    }

    /// A stretch that begins so many blocks behind what came so far.
    #[must_use]
    pub fn stretch(&self, blocks_on: usize) -> Stretch {
        // SAFETY: every processor of this kind has these instructions.
        unsafe { ahead(&self.chain, blocks_on) }
    }

    /// Takes the next stretch, which has been worked on.
    pub fn join(&mut self, key: &Key, stretch: &Stretch) {
        // SAFETY: a key exists only where its level's instructions do.
        unsafe { self.take(key, stretch) }
        self.text_bytes += (stretch.blocks * BLOCK) as u64;
    }

    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,pclmulqdq,sse4.1,ssse3"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    unsafe fn take(&mut self, key: &Key, stretch: &Stretch) {
        let mut hash = self.chain.hash;
        // By the binary digits of the number, highest first: times the hash key where one is set, squared in between.
        let (one, mut power) = (*key.powers(1), None);
        for digit in (0..usize::BITS - stretch.blocks.leading_zeros()).rev() {
            // No closure: it would be compiled without the register's instructions.
            if let Some(so_far) = power {
                power = Some(product(so_far, so_far));
            }
            if stretch.blocks >> digit & 1 == 1 {
                power = Some(match power {
                    Some(so_far) => product(so_far, one),
                    None => one,
                });
            }
        }
        if let Some(power) = power {
            hash = product(hash, power);
        }
        self.chain.hash = hash.xor(stretch.chain.hash);
        self.chain.counter = ahead(&self.chain, stretch.blocks).chain.counter;
    }
}

impl Stretch {
    /// Encrypts or decrypts its blocks, all at once. The places may overlap in any way.
    ///
    /// # Safety
    /// `from` is good for reading and `to` for writing that many blocks.
    pub unsafe fn crypt<const ENCRYPTS: bool>(
        &mut self,
        key: &Key,
        from: *const u8,
        to: *mut u8,
        blocks: usize,
    ) {
        let mut from = from;
        if begins_inside(from, to, blocks * BLOCK) {
            std::ptr::copy(from, to, blocks * BLOCK);
            from = to;
        }
        let entries = Entries::of(key);
        let kernel = if ENCRYPTS { entries.encrypt } else { entries.decrypt };
        kernel(key, &mut self.chain, from.cast(), to.cast(), blocks);
        self.blocks += blocks;
    }
}

/// The counter is a word of 32 bits, which wraps (SP 800-38D, 6.5).
unsafe fn ahead(chain: &Chain, blocks: usize) -> Stretch {
    let counter = chain.counter.add(vector::number(0, blocks as u64));
    Stretch { chain: Chain { counter, hash: Block::zero() }, blocks: 0 }
}
