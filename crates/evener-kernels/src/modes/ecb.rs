//! ECB (NIST SP 800-38A, 6.1): each block by itself.

use crate::aes::Schedule;
use crate::turn::{Step, first_key, last_round, loaded, middle_rounds, store_all, walk};
use crate::vector::{Block, Vector};

struct Ecb<'k, const ENCRYPTS: bool>(&'k Schedule);

impl<V: Vector, const ENCRYPTS: bool> Step<V> for Ecb<'_, ENCRYPTS> {
    #[inline(always)]
    unsafe fn take<const COUNT: usize, const FULL: bool>(
        &mut self,
        from: *const Block,
        to: *mut Block,
        blocks: usize,
    ) {
        let first_key = first_key::<V>(self.0);
        let mut texts = [first_key; COUNT];
        for (register, text) in texts.iter_mut().enumerate() {
            *text = text.xor(loaded::<V, COUNT, FULL>(from, register, blocks));
        }
        let last_key = middle_rounds::<V, COUNT, ENCRYPTS>(self.0, &mut texts);
        for text in &mut texts {
            *text = last_round::<V, ENCRYPTS>(*text, last_key);
        }
        store_all::<V, COUNT, FULL>(texts, to, blocks);
    }
}

/// Encrypts or decrypts blocks, by a schedule for that direction.
///
/// # Safety
/// As [`Vector`]; both are good for that many blocks.
#[inline(always)]
pub(super) unsafe fn crypt<V: Vector, const ENCRYPTS: bool>(
    key: &Schedule,
    _: &mut Block,
    from: *const Block,
    to: *mut Block,
    blocks: usize,
) {
    walk::<V, _>(&mut Ecb::<ENCRYPTS>(key), from, to, blocks);
}
