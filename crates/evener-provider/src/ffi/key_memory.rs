//! Memory in which keys lie: left out of core dumps (`MADV_DONTDUMP`), in the program and in its children.
//!
//! Blocks of the module's zeroed data, claimed by setting a bit, as in `reserve.rs`: no lock, so a fork at any moment leaves nothing held, and
//! none of the system's time for a context. Each thread begins to look at a place of its own. Where all blocks are taken, `malloc` gives memory
//! that a dump has (docs/guide/limits.md). Who gives a block back has wiped it.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use evener_ring::CachePadded;

/// A context of a cipher; a key by itself, as a session has it.
pub(crate) const CONTEXT_BYTES: usize = 1_536;
const KEY_BYTES: usize = 64;

/// Blocks of each: 64 times so many. Assumed, not measured: 1024, 1.6 MB, because a server with more connections by one process than
/// that is rare; a session is of a context that a module or lanes work for.
const WORDS: usize = 16;

#[repr(align(4096))]
struct Blocks<const SIZE: usize> {
    bytes: UnsafeCell<[[[u8; SIZE]; 64]; WORDS]>,
}

// SAFETY: a block is reached by its owner alone, who set its bit.
unsafe impl<const SIZE: usize> Sync for Blocks<SIZE> {}

struct Class<const SIZE: usize> {
    blocks: &'static Blocks<SIZE>,
    /// A set bit is a block that a thread has. Threads that look at different words share no cache line.
    taken: [CachePadded<AtomicU64>; WORDS],
}

static CONTEXT_BLOCKS: Blocks<CONTEXT_BYTES> =
    Blocks { bytes: UnsafeCell::new([[[0; CONTEXT_BYTES]; 64]; WORDS]) };
static KEY_BLOCKS: Blocks<KEY_BYTES> = Blocks { bytes: UnsafeCell::new([[[0; KEY_BYTES]; 64]; WORDS]) };

static CONTEXTS: Class<CONTEXT_BYTES> = Class::of(&CONTEXT_BLOCKS);
static KEYS: Class<KEY_BYTES> = Class::of(&KEY_BLOCKS);

impl<const SIZE: usize> Class<SIZE> {
    const fn of(blocks: &'static Blocks<SIZE>) -> Self {
        Self { blocks, taken: [const { CachePadded::new(AtomicU64::new(0)) }; WORDS] }
    }

    fn first(&self) -> *mut u8 {
        self.blocks.bytes.get().cast()
    }

    /// A block, or null where all are taken.
    #[inline]
    fn take(&self) -> *mut u8 {
        let start = own_word();
        for number in 0..WORDS {
            let index = start.wrapping_add(number) % WORDS;
            let word = &self.taken[index];
            let mut seen = word.load(Ordering::Relaxed);
            while seen != u64::MAX {
                let bit = seen.trailing_ones();
                // Acquire: what the last owner wrote is before what this one writes.
                let before = word.fetch_or(1 << bit, Ordering::Acquire);
                if before & (1 << bit) == 0 {
                    return self.first().wrapping_add((index * 64 + bit as usize) * SIZE);
                }
                seen = before;
            }
        }
        ptr::null_mut()
    }

    #[inline]
    fn has(&self, block: *mut u8) -> bool {
        block.addr().wrapping_sub(self.first().addr()) < SIZE * 64 * WORDS
    }

    #[inline]
    fn give_back(&self, block: *mut u8) {
        let index = (block.addr() - self.first().addr()) / SIZE;
        // Release: pairs with the Acquire in `take`.
        self.taken[index / 64].fetch_and(!(1 << (index % 64)), Ordering::Release);
    }

    /// Has dumps leave the blocks out.
    fn hide(&self) {
        // SAFETY: whole pages of the module's own data, whose contents stay.
        _ = unsafe { libc::madvise(self.first().cast(), SIZE * 64 * WORDS, libc::MADV_DONTDUMP) };
    }
}

/// Where the calling thread begins to look, so that it gets its own blocks again and not those that another core has in its caches: by the place of
/// its stack, which others' are some hundred kilobytes from, or exactly eight megabytes; spread by Fibonacci hashing (Knuth, TAOCP 3, 6.4).
#[inline]
fn own_word() -> usize {
    let local = 0_u8;
    let stack = (ptr::from_ref(&local).addr() >> 16) as u64;
    (stack.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - WORDS.trailing_zeros())) as usize
}

/// Has dumps leave this memory out: once in a process, before there is a key.
pub(crate) fn hide() {
    CONTEXTS.hide();
    KEYS.hide();
}

/// A block for a context; null where there is none, or it is too long for one.
#[inline]
fn context(layout: Layout) -> *mut u8 {
    if layout.size() > CONTEXT_BYTES || layout.align() > KEY_BYTES {
        ptr::null_mut()
    } else {
        CONTEXTS.take()
    }
}

/// Uninitialised memory for a context, one of these blocks where one is free; null where there is no memory.
#[inline]
pub(crate) fn allocated<T>() -> *mut T {
    const { assert!(size_of::<T>() > 0) }
    let hidden = context(Layout::new::<T>());
    // SAFETY: the layout is not empty.
    if hidden.is_null() { unsafe { alloc(Layout::new::<T>()) }.cast() } else { hidden.cast() }
}

/// Drops a context, which wipes its keys, and gives its memory back.
///
/// # Safety
///
/// `ctx` is of [`allocated`] and was written; this is its last use.
#[inline]
pub(crate) unsafe fn drop_context<T>(ctx: *mut T) {
    // SAFETY: the caller's word.
    unsafe { ctx.drop_in_place() };
    if CONTEXTS.has(ctx.cast()) {
        return CONTEXTS.give_back(ctx.cast());
    }
    // SAFETY: of `allocated`, with this layout.
    unsafe { dealloc(ctx.cast(), Layout::new::<T>()) };
}

/// A block for bytes of the length of a key; null for all else. Few other texts have such a length, and they do no harm here.
#[inline]
pub(super) fn key(layout: Layout) -> *mut u8 {
    let is_key = layout.align() == 1 && matches!(layout.size(), 16 | 24 | 32 | 64);
    if is_key { KEYS.take() } else { ptr::null_mut() }
}

/// Whether bytes lie here.
#[inline]
pub(super) fn has_key(block: *mut u8) -> bool {
    KEYS.has(block)
}

/// Takes bytes back that [`has_key`] is true of.
#[inline]
pub(super) fn give_key_back(block: *mut u8) {
    KEYS.give_back(block);
}
