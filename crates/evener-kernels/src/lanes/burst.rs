//! Which message is in which lane: a lane whose message is at its end takes the next at once.

use std::ptr;
use std::sync::Arc;

use super::register::Lanes;
use super::space::{LINE, Space};
use super::{Key, Message, blocks};

/// Blocks from which on a burst's messages are taken for long: then the registers begin one after the other, a line of the cache apart, so that
/// messages which begin on pages, as long ones do, are in different parts of the cache all the time. Shorter ones would end before.
const LONG: u32 = 192;

/// Lanes for long messages that go from one place to another, too many of them for the caches: memory serves eight places that are read and eight
/// that are written faster than twice as many. On Zen 4 (both cores, 64 MB) eight lanes of 256 or 512 bits took 0.6 to 0.8 of the time of sixteen from
/// 4 KiB on; where all lay in the caches, 1.15 times as long by 256 bits and 1.45 times by 512.
const APART: usize = 8;

/// Blocks of a burst that the caches next to a core do not hold twice: 256 KiB.
const COLD: u64 = 16 << 10;

/// How many lanes are used of so many.
fn lanes_for(messages: &[Message<'_>], lanes: usize) -> usize {
    let goes_apart = |first: &Message<'_>| first.blocks >= LONG && !ptr::eq(first.from, first.to);
    if !messages.first().is_some_and(goes_apart) {
        return lanes;
    }
    let blocks: u64 = messages.iter().map(|message| u64::from(message.blocks)).sum();
    if blocks < COLD { lanes } else { lanes.min(APART) }
}

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
    let used = lanes_for(messages, lanes);
    let mut open = if first.blocks >= LONG { V::BLOCKS } else { used };
    space.clear(used);
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
        if open < used {
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
