//! The call that lends: work is on the slots of helpers from its beginning to its end, and nowhere else afterwards.

use std::mem;

use super::helper_slot::{HelperSlot, Work};

/// How the slots answered to one [`lend`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LendCounts {
    /// Slots at which the work was begun.
    pub served: u32,
    /// Slots from which it was taken back, since no helper had begun.
    pub taken_back: u32,
}

/// Most slots that one call lends to.
pub const HELPER_SLOTS_MAX: usize = 64;

/// Lends `work` to the helpers that serve `slots`, runs `own` beside them, and returns when no helper runs `work` any more.
///
/// Slots that are not free are passed over, and of more than [`HELPER_SLOTS_MAX`] the rest. Perhaps no helper comes, so `own` must get
/// everything done that is left. A panic in `own` is passed on, after the same wait; one in `work` unwinds the thread
/// that serves and counts as its end.
pub fn lend<R>(slots: &[HelperSlot], work: &(dyn Fn() + Sync), own: impl FnOnce() -> R) -> (R, LendCounts) {
    let mut loan = Loan { slots, offered: 0 };
    // SAFETY: only the lifetime changes. `loan` is dropped before `lend` returns or unwinds, and its drop ends only when
    // no slot holds the pointer in a state in which it is read.
    let work = unsafe { mem::transmute::<*const (dyn Fn() + Sync + '_), Work>(work) };
    for (place, slot) in slots.iter().take(HELPER_SLOTS_MAX).enumerate() {
        if slot.offer(work) {
            loan.offered |= 1 << place;
        }
    }
    let own = own();
    (own, loan.end())
}

/// The slots that hold the work; their states are settled when it goes.
struct Loan<'s> {
    slots: &'s [HelperSlot],
    /// One bit per slot.
    offered: u64,
}

impl Loan<'_> {
    fn end(&mut self) -> LendCounts {
        let mut lent = LendCounts::default();
        let offered = mem::take(&mut self.offered);
        let of = |(place, slot)| (offered >> place & 1 == 1).then_some(slot);
        let offered = self.slots.iter().take(HELPER_SLOTS_MAX).enumerate().filter_map(of);
        // First take back everywhere, so that no helper begins while another is waited for.
        let mut begun = [None; HELPER_SLOTS_MAX];
        for (place, slot) in begun.iter_mut().zip(offered) {
            match slot.take_back() {
                true => lent.taken_back += 1,
                false => *place = Some(slot),
            }
        }
        for slot in begun.into_iter().flatten() {
            slot.wait_done();
            lent.served += 1;
        }
        lent
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
