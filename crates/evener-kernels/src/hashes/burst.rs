//! Which span is in which lane: a lane whose span is at its end takes the next at once.

use super::Span;
use super::entries::Kernels;
use super::space::Space;
use super::tail::Tails;

/// Takes spans of one width into what they go on with, in this order. Each has blocks.
///
/// # Safety
/// The processor has the kernels' instructions.
pub(super) unsafe fn run(
    space: &mut Space,
    tails: &mut Tails,
    kernels: &Kernels,
    spans: &mut [Span<'_>],
    order: &[u32],
) {
    let (mut waiting, mut active, tails) = (order.iter().copied(), 0, tails.places());
    loop {
        while active < kernels.lanes {
            let Some(number) = waiting.next() else { break };
            // SAFETY: the lane is not in use, and its place neither, for none has moved yet.
            unsafe { space.begin(active, number, &spans[number as usize], tails) };
            active += 1;
        }
        if active == 0 {
            return;
        }
        let (first, count) = kernels.turn(active);
        let least = space.least_left(first, count);
        // SAFETY: the places of these lanes are good for as many blocks, for so many are left of each.
        unsafe { kernels.run(space, active, least) };
        for lane in (first..first + count).rev() {
            if !space.advance(lane, least, kernels.width.block_bytes()) {
                continue;
            }
            spans[space.span(lane) as usize].running.state = space.state(lane, kernels.width);
            if let Some(number) = waiting.next() {
                // SAFETY: what was in the lane is at its end, and none has moved yet.
                unsafe { space.begin(lane, number, &spans[number as usize], tails) };
                continue;
            }
            active -= 1;
            if lane < active {
                space.relocate(active, lane, kernels.width);
            }
        }
    }
}
