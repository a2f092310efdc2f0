//! The algebra of XTS's tweaks (IEEE 1619, NIST SP 800-38E), so that a data unit may be entered in its middle.
//!
//! The tweak of block j is T * x^j in the field of GHASH, with the bits of each byte the other way round. It depends on no
//! key here: T itself is secret, and [`Element`] does not branch on it.

use crate::ghash::{Block, Element};

/// The tweak that is `blocks` after `tweak`.
#[must_use]
pub fn tweak_after(tweak: &Block, blocks: u64) -> Block {
    /// x^1: the second bit of a block.
    const X: Block = [0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    mirrored((Element::from(mirrored(*tweak)) * Element::from(X).pow(blocks)).into())
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
            prop_assert_eq!(tweak_after(&tweak, blocks), stepped);
        }
    }
}
