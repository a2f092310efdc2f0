//! The same ring over words that do not live in the heap: a mapping that two processes share.
#![cfg(not(any(loom, miri)))]
#![allow(unsafe_code, reason = "a mapping and a fork")]

use std::{io, ptr, thread};

use evener_ring::{CachePadded, Ring, Slot, Storage, Word};

const SLOT_COUNT: u32 = 8;
const ITEM_COUNT: u64 = 100_000;

#[repr(C)]
struct Region {
    head: CachePadded<Word>,
    tail: CachePadded<Word>,
    slots: [Slot<u64>; SLOT_COUNT as usize],
}

/// A region in memory that stays shared across a fork; mapped until the process ends.
struct Mapping(&'static Region);

impl Mapping {
    fn new() -> Self {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping touches no memory of ours.
        let memory = unsafe { libc::mmap(ptr::null_mut(), size_of::<Region>(), access, kind, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED, "{}", io::Error::last_os_error());
        let region = memory.cast::<Region>();
        let fresh = Region {
            head: CachePadded::new(Word::new(0)),
            tail: CachePadded::new(Word::new(0)),
            slots: std::array::from_fn(|index| Slot::free_for(u32::try_from(index).expect("few slots"))),
        };
        // SAFETY: the mapping begins on a page, is large enough and ours alone.
        unsafe { region.write(fresh) };
        // SAFETY: written above, never unmapped, and from here on changed only through its atomics and cells.
        Self(unsafe { &*region })
    }
}

// SAFETY: the region was set up as an empty ring of a power of two of slots, and only rings touch it; its items are
// plain data, good in every process.
unsafe impl Storage<u64> for Mapping {
    fn head(&self) -> &Word {
        &self.0.head
    }

    fn tail(&self) -> &Word {
        &self.0.tail
    }

    fn slots(&self) -> &[Slot<u64>] {
        &self.0.slots
    }
}

/// Runs `body` in a child process, which then ends; returns its process id.
fn fork(body: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child calls `body`, which allocates and locks nothing, and `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", io::Error::last_os_error());
    if child == 0 {
        body();
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { libc::_exit(0) };
    }
    child
}

/// Whether `child` has ended; afterwards its process id is no longer valid.
fn has_ended(child: libc::pid_t) -> bool {
    // SAFETY: a null status is allowed.
    unsafe { libc::waitpid(child, ptr::null_mut(), libc::WNOHANG) == child }
}

#[test]
fn two_processes_move_each_item_once_and_in_order() {
    let ring = Ring::at(Mapping::new());
    let child = fork(|| {
        for item in 0..ITEM_COUNT {
            while ring.push(item).is_err() {
                thread::yield_now();
            }
        }
    });
    let mut items = Vec::new();
    while !has_ended(child) {
        if ring.pop_many(&mut items, usize::MAX) == 0 {
            thread::yield_now();
        }
    }
    ring.pop_many(&mut items, usize::MAX);
    assert!(items.into_iter().eq(0..ITEM_COUNT));
}
