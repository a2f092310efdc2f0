//! Memory for calls of a program that has none left: what `malloc` gives, and where it refuses, a block of a reserve.
//!
//! Rust's containers end the process where an allocation fails, and a guest may not end its host program. Path: `alloc` asks `malloc`;
//! where that gives null, the smallest [`Class`] with a free block serves, so that the call at hand comes to its end; from then on
//! [`is_short`] has the entry points refuse new work ("out of memory") until blocks came back. Large buffers, whose length the program
//! chooses, are asked for fallibly by those who need them; the reserve is not for them.
//!
//! The reserve is part of the module's zeroed data: it takes address space with the module, or the module does not load, and pages when
//! it is first written. Blocks are claimed by setting a bit: no lock, so a fork at any moment leaves nothing held.
//!
//! Not taken: unwinding out of the allocator (undefined by `GlobalAlloc`), and fallible containers everywhere (the standard library's own
//! threads, locks and maps have none).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::key_memory;

/// `malloc` with the reserve behind it.
pub(crate) struct WithReserve;

#[global_allocator]
static MEMORY: WithReserve = WithReserve;

/// One size of block, as many as `WORDS` bitmaps of 64 say.
struct Class<const SIZE: usize, const WORDS: usize> {
    blocks: Blocks<SIZE, WORDS>,
    /// A set bit is a block in use.
    taken: [AtomicU64; WORDS],
    /// How many bits are set.
    used: AtomicUsize,
}

/// The blocks themselves; no caller asks a block for more alignment than a page has.
#[repr(align(4096))]
struct Blocks<const SIZE: usize, const WORDS: usize>(UnsafeCell<[[[u8; SIZE]; 64]; WORDS]>);

// SAFETY: a block is reached by its owner alone, who set its bit.
unsafe impl<const SIZE: usize, const WORDS: usize> Sync for Blocks<SIZE, WORDS> {}

/// All classes, 64 B to 32 KiB. Assumed, not measured as a bound: a call takes under 100 small blocks and under 20 large ones where
/// `malloc` gives nothing at all (`conformance/openssl/programs/failing_malloc.c` makes calls of every kind so); there are several times that.
struct Reserve {
    small: Class<64, 16>,
    middle: Class<512, 4>,
    pages: Class<4096, 1>,
    large: Class<32768, 1>,
}

static RESERVE: Reserve =
    Reserve { small: Class::new(), middle: Class::new(), pages: Class::new(), large: Class::new() };

/// How many classes have more than half of their blocks out.
static SHORT: AtomicUsize = AtomicUsize::new(0);

/// Whether new work should be refused: more than half of a class is in use, so `malloc` has refused for long.
pub(crate) fn is_short() -> bool {
    SHORT.load(Ordering::Relaxed) != 0
}

/// A buffer of a length that the program chose; `None` where neither `malloc` nor the reserve has it.
pub(crate) fn zeroed(bytes: usize) -> Option<Vec<u8>> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(bytes).ok()?;
    buffer.resize(bytes, 0);
    Some(buffer)
}

impl<const SIZE: usize, const WORDS: usize> Class<SIZE, WORDS> {
    const fn new() -> Self {
        Self {
            blocks: Blocks(UnsafeCell::new([[[0; SIZE]; 64]; WORDS])),
            taken: [const { AtomicU64::new(0) }; WORDS],
            used: AtomicUsize::new(0),
        }
    }

    fn first(&self) -> *mut u8 {
        self.blocks.0.get().cast()
    }

    fn fits(layout: Layout) -> bool {
        // Blocks lie at multiples of their size from a page's start.
        layout.size() <= SIZE && layout.align() <= if SIZE < 4096 { SIZE } else { 4096 }
    }

    /// A block for `layout`, or null.
    fn take(&self, layout: Layout) -> *mut u8 {
        if !Self::fits(layout) {
            return ptr::null_mut();
        }
        for (index, word) in self.taken.iter().enumerate() {
            let mut seen = word.load(Ordering::Relaxed);
            while seen != u64::MAX {
                let bit = seen.trailing_ones();
                // Acquire: what the last owner wrote is before what this one writes.
                let before = word.fetch_or(1 << bit, Ordering::Acquire);
                if before & (1 << bit) == 0 {
                    if self.used.fetch_add(1, Ordering::Relaxed) == WORDS * 32 {
                        SHORT.fetch_add(1, Ordering::Relaxed);
                    }
                    return self.first().wrapping_add((index * 64 + bit as usize) * SIZE);
                }
                seen = before;
            }
        }
        ptr::null_mut()
    }

    /// Takes `block` back where it is one of these.
    fn give_back(&self, block: *mut u8) -> bool {
        let Some(offset) = block.addr().checked_sub(self.first().addr()) else { return false };
        let index = offset / SIZE;
        let Some(word) = self.taken.get(index / 64) else { return false };
        if self.used.fetch_sub(1, Ordering::Relaxed) == WORDS * 32 + 1 {
            SHORT.fetch_sub(1, Ordering::Relaxed);
        }
        word.fetch_and(!(1 << (index % 64)), Ordering::Release);
        true
    }
}

impl Reserve {
    /// A block of the smallest class that has one for `layout`, or null.
    #[cold]
    fn take(&self, layout: Layout) -> *mut u8 {
        let classes: [&dyn Fn() -> *mut u8; 4] =
            [&|| self.small.take(layout), &|| self.middle.take(layout), &|| self.pages.take(layout), &|| {
                self.large.take(layout)
            }];
        classes.iter().map(|take| take()).find(|block| !block.is_null()).unwrap_or(ptr::null_mut())
    }

    fn has(&self, block: *mut u8) -> bool {
        block.addr().wrapping_sub(ptr::from_ref(self).addr()) < size_of::<Self>()
    }

    /// Takes `block`, which is one of these, back.
    #[cold]
    fn give_back(&self, block: *mut u8) {
        let taken_back = self.small.give_back(block)
            || self.middle.give_back(block)
            || self.pages.give_back(block)
            || self.large.give_back(block);
        debug_assert!(taken_back);
    }
}

// SAFETY: `System`'s promises hold for its blocks; the reserve's and those of keys are exclusive while their bit is set, of the size and alignment that
// `Class::fits` compares, and each goes back to where it is from, by its address.
unsafe impl GlobalAlloc for WithReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = key_memory::key(layout);
        if !block.is_null() {
            return block;
        }
        // SAFETY: the caller's word on `layout`.
        let block = unsafe { System.alloc(layout) };
        if block.is_null() { RESERVE.take(layout) } else { block }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's word on `layout`.
        let block = unsafe { System.alloc_zeroed(layout) };
        if !block.is_null() {
            return block;
        }
        let block = RESERVE.take(layout);
        if !block.is_null() {
            // SAFETY: the block is this caller's, and as long as `layout` says.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if RESERVE.has(block) {
            return RESERVE.give_back(block);
        }
        if key_memory::has_key(block) {
            return key_memory::give_key_back(block);
        }
        // SAFETY: not the reserve's, so `System` gave it for `layout`.
        unsafe { System.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !RESERVE.has(block) && !key_memory::has_key(block) {
            // SAFETY: not the reserve's and no key's, so `System` gave it for `layout`.
            let grown = unsafe { System.realloc(block, layout, size) };
            if !grown.is_null() {
                return grown;
            }
        }
        // SAFETY: the caller's word: `size` is not zero and does not overflow with this alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: as above.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both blocks are this caller's, and as long as the lesser of the two.
            unsafe { ptr::copy_nonoverlapping(block, moved, layout.size().min(size)) };
            // SAFETY: `block` was given for `layout`.
            unsafe { self.dealloc(block, layout) };
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::Layout;
    use std::collections::BTreeSet;

    use super::{Class, Reserve};

    #[test]
    fn blocks_are_apart_and_aligned_until_none_is_left_and_come_back() {
        static CLASS: Class<64, 2> = Class::new();
        let layout = Layout::from_size_align(40, 64).unwrap();
        for _ in 0..2 {
            let taken: BTreeSet<usize> = (0..128).map(|_| CLASS.take(layout).addr()).collect();
            assert_eq!(taken.len(), 128);
            assert!(taken.iter().all(|block| block % 64 == 0));
            assert!(taken.iter().zip(taken.iter().skip(1)).all(|(this, next)| next - this >= 64));
            assert!(CLASS.take(layout).is_null(), "all are out");
            for block in taken {
                assert!(CLASS.give_back(std::ptr::without_provenance_mut(block)));
            }
        }
        assert!(!CLASS.give_back(std::ptr::without_provenance_mut(8)), "not one of these");
    }

    #[test]
    fn the_smallest_class_that_fits_serves_and_nothing_serves_what_fits_none() {
        static OWN: Reserve =
            Reserve { small: Class::new(), middle: Class::new(), pages: Class::new(), large: Class::new() };
        let take = |size, align| OWN.take(Layout::from_size_align(size, align).unwrap());
        let of =
            |class: *mut u8, block: *mut u8, bytes: usize| block.addr().wrapping_sub(class.addr()) < bytes;
        assert!(of(OWN.small.first(), take(64, 8), 64 * 1024));
        assert!(of(OWN.middle.first(), take(65, 8), 512 * 256));
        assert!(of(OWN.pages.first(), take(8, 4096), 4096 * 64), "by its alignment");
        assert!(of(OWN.large.first(), take(32768, 8), 32768 * 64));
        assert!(take(32769, 8).is_null() && take(8, 8192).is_null());
        let block = take(1, 1);
        assert!(OWN.has(block));
        OWN.give_back(block);
    }
}
