//! The algebra of XTS's tweaks (IEEE 1619, NIST SP 800-38E), so that a data unit may be entered in its middle.
//!
//! The tweak of block j is T * x^j in the field of GHASH, with the bits of each byte the other way round. It depends on no
//! key here: T itself is secret, and [`Element`] does not branch on it.

use crate::math::ghash::{Block, Element};

/// So many blocks on: x to their number, made once for many tweaks.
#[derive(Clone, Copy)]
pub struct Stride(Element);

impl Stride {
    /// The way over `blocks` blocks.
    #[must_use]
    pub fn over(blocks: u64) -> Self {
        /// x^1: the second bit of a block.
        const X: Block = [0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        Self(Element::from(X).pow(blocks))
    }

    /// The tweak that lies so far behind `tweak`.
    #[must_use]
    pub fn after(self, tweak: &Block) -> Block {
        mirrored((Element::from(mirrored(*tweak)) * self.0).into())
    }
}

fn mirrored(block: Block) -> Block {
    block.map(u8::reverse_bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// SP 800-38E by IEEE 1619, section 5.2: one step, on bytes.
    fn doubled(tweak: Block) -> Block {
        let (mut carry, mut out) = (0, tweak);
        for byte in &mut out {
            (*byte, carry) = (*byte << 1 | carry, *byte >> 7);
        }
        if carry == 1 {
            out[0] ^= 0x87;
        }
        out
    }

    proptest! {
        #[test]
        fn a_tweak_moves_as_by_single_steps(tweak in any::<Block>(), blocks in 0u64..600) {
            let stepped = (0..blocks).fold(tweak, |tweak, _| doubled(tweak));
            prop_assert_eq!(Stride::over(blocks).after(&tweak), stepped);
        }
    }
}
