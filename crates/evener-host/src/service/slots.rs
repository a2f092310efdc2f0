//! Memory of the host's own for what jobs work on, kept from request to request.
//!
//! A slot is a job over memory that is never given back to the system: jobs in a module outlive the function that made them, so
//! their memory lives as long as the process. What one client left in it is overwritten by the next request, and what that one
//! does not reach is wiped; all of it is when the client goes.

use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use evener_core::{Algorithm, Direction, Job, Padding, Session, TAG_BYTES_MAX};
use evener_ring::wipe;

/// Longest associated data of a request, in bytes. Protocols use 5 to 32.
pub(crate) const AAD_BYTES_MAX: usize = 4096;

/// What belongs to a job and stays behind while a module has it.
pub(crate) struct Slot {
    pub(crate) aad: Aad,
    class: usize,
    /// Whose bytes it holds, 0 for none's.
    client: u64,
    /// Bytes of the space, from its front, that may be theirs.
    used_bytes: usize,
}

/// All slots that no job is in.
pub(crate) struct Slots {
    /// By size: index `n` holds slots of [`LEAST_BYTES`] << `n`.
    free: Vec<Vec<(Box<Job<'static>>, Slot)>>,
    /// What a job that waits for work has for a session: one without a key, so that no closed session lives on in it.
    nothing: Arc<Session>,
}

impl Slots {
    pub(crate) fn new() -> Self {
        let nothing = Session::new(Algorithm::Sha256, Direction::Encrypt, Padding::None, &[]);
        Self { free: Vec::new(), nothing: Arc::new(nothing.expect("a hash takes no key")) }
    }

    /// A job with space for `bytes` in place, for a client whose bytes it will hold from now on: so many have to be written before
    /// they are read, or [`wipe_slot`] called, for another client's may stand there.
    pub(crate) fn take(&mut self, bytes: usize, client: u64) -> (Box<Job<'static>>, Slot) {
        let class = class_of(bytes);
        let kept = self.free.get_mut(class).and_then(Vec::pop);
        let (mut job, mut slot) = kept.unwrap_or_else(|| {
            let space = vec![0; LEAST_BYTES << class].leak();
            (Job::in_place(space), Slot { aad: Aad::default(), class, client, used_bytes: 0 })
        });
        if slot.client != client {
            // What the request overwrites need not be wiped before: that would write all data twice.
            wipe_beyond(bytes, &mut job, &mut slot);
            slot.client = client;
        }
        slot.used_bytes = slot.used_bytes.max(bytes);
        (job, slot)
    }

    /// Takes both back.
    pub(crate) fn put(&mut self, mut job: Box<Job<'static>>, slot: Slot) {
        job.set_aad(&[]);
        job.arm(Arc::clone(&self.nothing), &[], 0);
        if self.free.len() <= slot.class {
            self.free.resize_with(slot.class + 1, Vec::new);
        }
        self.free[slot.class].push((job, slot));
    }

    /// Wipes what is left of a client's bytes.
    pub(crate) fn wipe(&mut self, client: u64) {
        for (job, slot) in self.free.iter_mut().flatten().filter(|(_, slot)| slot.client == client) {
            wipe_slot(job, slot);
        }
    }

    /// Whether nothing of a client's is left; for tests.
    #[cfg(test)]
    fn is_clean(&mut self) -> bool {
        self.free.iter_mut().flatten().all(|(job, _)| job.space_mut().iter().all(|byte| *byte == 0))
    }
}

/// Wipes all that a slot holds of its client.
pub(crate) fn wipe_slot(job: &mut Job<'static>, slot: &mut Slot) {
    if cfg!(mutant = "host_memory_unwiped") {
        return;
    }
    wipe_beyond(0, job, slot);
    slot.client = 0;
}

/// Wipes all but the first `bytes` of the space.
fn wipe_beyond(bytes: usize, job: &mut Job<'static>, slot: &mut Slot) {
    if bytes < slot.used_bytes && !cfg!(mutant = "slot_rest_left") {
        wipe(&mut job.space_mut()[bytes..slot.used_bytes]);
    }
    slot.used_bytes = slot.used_bytes.min(bytes);
    job.set_tag(&[0; TAG_BYTES_MAX]);
    slot.aad.wipe();
}

/// Memory for associated data, made when it is first needed.
#[derive(Default)]
pub(crate) struct Aad(Option<NonNull<[u8; AAD_BYTES_MAX]>>);

impl Aad {
    /// The memory, to be filled. No job may hold what [`Aad::lend`] gave: [`Slots::put`] sees to it that none does.
    pub(crate) fn fill(&mut self) -> &mut [u8; AAD_BYTES_MAX] {
        let place = self.0.get_or_insert_with(|| NonNull::from(Box::leak(Box::new([0; AAD_BYTES_MAX]))));
        // SAFETY: the memory was leaked, so it lives, and is this value's alone; the one job that borrowed it has given it back.
        unsafe { place.as_mut() }
    }

    /// The first bytes, for the job of the same slot.
    ///
    /// # Panics
    ///
    /// Where more is asked for than there is: a bug of the caller.
    pub(crate) fn lend(&self, bytes: usize) -> &'static [u8] {
        assert!(bytes <= AAD_BYTES_MAX, "checked when the request was read");
        let Some(place) = self.0 else { return &[] };
        // SAFETY: the memory was leaked and has so many bytes; it is not written before the job has given it back.
        unsafe { slice::from_raw_parts(place.as_ptr().cast(), bytes) }
    }

    fn wipe(&mut self) {
        if self.0.is_some() {
            wipe(self.fill());
        }
    }
}

// SAFETY: the memory behind the pointer belongs to this value, whichever thread has it.
unsafe impl Send for Aad {}

/// Space of the smallest slots, in bytes.
const LEAST_BYTES: usize = 4096;

fn class_of(bytes: usize) -> usize {
    let whole = bytes.div_ceil(LEAST_BYTES).next_power_of_two();
    usize::try_from(whole.trailing_zeros()).expect("a shift")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_space_for_what_it_was_asked_for_and_comes_again() {
        let mut slots = Slots::new();
        for bytes in [0, 1, 4096, 4097, 16_384, 1 << 20, (1 << 20) + 16] {
            let (mut job, slot) = slots.take(bytes, 1);
            assert!(job.space_mut().len() >= bytes, "{bytes}");
            slots.put(job, slot);
        }
        let free = slots.free.iter().map(Vec::len).sum::<usize>();
        assert_eq!(free, 5, "4096 twice and less came from one slot");
    }

    #[test]
    fn a_client_that_goes_leaves_no_bytes() {
        let mut slots = Slots::new();
        let (mut job, mut slot) = slots.take(5000, 7);
        job.space_mut()[..5000].fill(0xA5);
        slot.aad.fill().fill(0xA5);
        slots.put(job, slot);
        slots.wipe(8);
        assert!(!slots.is_clean(), "of another client nothing is wiped");
        slots.wipe(7);
        assert!(slots.is_clean());
        assert_eq!(slots.take(5000, 9).1.aad.lend(32), [0; 32]);
    }

    #[test]
    fn what_the_next_client_does_not_overwrite_is_wiped() {
        let mut slots = Slots::new();
        for bytes in [8000, 5000] {
            let (mut job, slot) = slots.take(bytes, 7);
            job.space_mut()[..bytes].fill(0xA5);
            slots.put(job, slot);
        }
        let (mut job, slot) = slots.take(4500, 8);
        job.space_mut()[..4500].fill(0x5A);
        assert!(job.space_mut()[4500..].iter().all(|byte| *byte == 0));
        slots.put(job, slot);
        slots.wipe(8);
        assert!(slots.is_clean());
    }
}
