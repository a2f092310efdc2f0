//! Decryption of CBC (NIST SP 800-38A, 6.2). Encryption is one chain, which wider registers do not shorten.

use crate::aes::Schedule;
use crate::turn::{Step, first_key, loaded, middle_rounds, store_all, walk};
use crate::vector::{Block, Vector};

struct Cbc<'k> {
    key: &'k Schedule,
    /// The block of ciphertext before.
    before: Block,
}

impl<V: Vector> Step<V> for Cbc<'_> {
    #[inline(always)]
    unsafe fn take<const COUNT: usize, const FULL: bool>(
        &mut self,
        from: *const Block,
        to: *mut Block,
        blocks: usize,
    ) {
        let first_key = first_key::<V>(self.key);
        let first_before = loaded::<V, COUNT, FULL>(from, 0, blocks).behind(V::everywhere(self.before));
        self.before = Block::load(from.add(blocks - 1));
        let mut texts = [first_key; COUNT];
        for (register, text) in texts.iter_mut().enumerate() {
            *text = text.xor(loaded::<V, COUNT, FULL>(from, register, blocks));
        }
        let last_key = middle_rounds::<V, COUNT, false>(self.key, &mut texts);
        for (register, text) in texts.iter_mut().enumerate() {
            let before = if register == 0 {
                first_before
            } else {
                loaded::<V, COUNT, FULL>(from.wrapping_sub(1), register, blocks)
            };
            *text = text.last_inverse_round(last_key.xor(before));
        }
        store_all::<V, COUNT, FULL>(texts, to, blocks);
    }
}

/// Decrypts blocks behind the block of ciphertext in `chain`, which is the last of them then.
///
/// # Safety
/// As [`Vector`]; both are good for that many blocks.
#[inline(always)]
pub(super) unsafe fn decrypt<V: Vector>(
    key: &Schedule,
    chain: &mut Block,
    from: *const Block,
    to: *mut Block,
    blocks: usize,
) {
    let mut step = Cbc { key, before: *chain };
    walk::<V, _>(&mut step, from, to, blocks);
    *chain = step.before;
}
