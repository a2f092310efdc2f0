//! Decryption of CBC (NIST SP 800-38A, 6.2). Encryption is one chain, which wider registers do not shorten.

use crate::aes::Schedule;
use crate::turn::{Step, first_key, loaded, middle_rounds, store_one, walk};
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
        let mut texts = [first_key; COUNT];
        for (register, text) in texts.iter_mut().enumerate() {
            *text = text.xor(loaded::<V, COUNT, FULL>(from, register, blocks));
        }
        let last_key = middle_rounds::<V, COUNT, false>(self.key, &mut texts);
        // Read once more, each before its place may be written.
        let mut before = V::everywhere(self.before);
        self.before = Block::load(from.add(blocks - 1));
        for (register, text) in texts.into_iter().enumerate() {
            let here = loaded::<V, COUNT, FULL>(from, register, blocks);
            let text = text.last_inverse_round(last_key.xor(here.behind(before)));
            before = here;
            store_one::<V, COUNT, FULL>(text, to, register, blocks);
        }
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
