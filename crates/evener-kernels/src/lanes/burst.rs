//! Which message is in which lane: a lane whose message is at its end takes the next at once.

use std::sync::Arc;

use super::register::Lanes;
use super::space::{LINE, Space};
use super::{Key, Message, blocks};

/// Blocks from which on a burst's messages are taken for long: then the registers begin one after the other, a line of the cache apart, so that
/// messages which begin on pages, as long ones do, are in different parts of the cache all the time. Shorter ones would end before.
const LONG: u32 = 192;

/// Encrypts messages under keys of one size. Where they are short and alike they begin together and end together, and nothing is asked of a lane by itself.
///
/// # Safety
/// As [`Vector`](crate::vector::Vector).
#[inline(always)]
pub(super) unsafe fn encrypt<V: Lanes>(
    space: &mut Space,
    keys: &[Arc<Key>],
    messages: &[Message<'_>],
    are_alike: bool,
) {
    let lanes = V::REGISTERS * V::BLOCKS;
    let Some(first) = messages.first() else { return };
    let rounds = keys[first.key].rounds.last();
    let (mut next, mut active) = (0, 0);
    let mut open = if first.blocks >= LONG { V::BLOCKS } else { lanes };
    space.clear();
    loop {
        if are_alike {
            active = (messages.len() - next).min(lanes);
            space.begin_alike(active, lanes, keys, &messages[next..]);
            next += active;
        }
        while active < open && next < messages.len() {
            space.begin(active, lanes, keys, &messages[next..]);
            (active, next) = (active + 1, next + 1);
        }
        if active == 0 {
            return;
        }
        let registers = blocks::registers_for(active.div_ceil(V::BLOCKS));
        // The same blocks once more. In shared memory they may have changed in between: then the message is spoilt by whichever is written last.
        for lane in active..registers * V::BLOCKS {
            space.copy(0, lane, lanes, rounds);
        }
        let mut least = if are_alike { first.blocks } else { space.least_left(active) };
        if open < lanes {
            least = least.min(LINE);
            open += V::BLOCKS;
        }
        blocks::encrypt::<V>(space, registers, rounds, least as usize);
        if are_alike {
            continue;
        }
        for lane in (0..active).rev() {
            if !space.advance(lane, least) {
                continue;
            }
            if next < messages.len() {
                space.begin(lane, lanes, keys, &messages[next..]);
                next += 1;
            } else {
                active -= 1;
                if lane < active {
                    space.copy(active, lane, lanes, rounds);
                }
            }
        }
    }
}
