//! Words in mappings, counts in them, and what a fork does to them.
#![cfg(not(any(loom, miri)))]
#![allow(unsafe_code, reason = "a fork")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::ffi::CStr;
use std::fs::File;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, fs, io, mem, process, ptr, thread};

use evener_ring::{
    Counter, Doorbell, Inherited, Mapping, PerFork, PerProcess, Served, Service, Word, Words as _, put_aside,
    value,
};
use proptest::prelude::*;

/// Runs `body` in a child process and returns what it returns.
fn in_child(body: impl FnOnce() -> u8) -> u8 {
    // SAFETY: the child calls `body`, which takes no lock that another thread may hold, and `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", io::Error::last_os_error());
    if child == 0 {
        // SAFETY: takes a number; a child that stands still for so many seconds is ended by the signal.
        unsafe { libc::alarm(120) };
        let code = body();
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { libc::_exit(code.into()) };
    }
    let mut status = 0;
    // SAFETY: the status is this frame's.
    assert_eq!(unsafe { libc::waitpid(child, ptr::from_mut(&mut status), 0) }, child);
    u8::try_from(libc::WEXITSTATUS(status)).unwrap()
}

fn heap(words: impl IntoIterator<Item = u32>) -> Box<[Word]> {
    words.into_iter().map(Word::new).collect()
}

#[test]
fn a_forked_child_makes_a_value_of_its_own_and_the_parent_keeps_its() {
    let place = PerProcess::new(Mapping::wiped_by_fork(1).unwrap());
    let made = AtomicU32::new(0);
    let get = || {
        place.get_or_make(|| {
            made.fetch_add(1, Relaxed);
            Some(process::id())
        })
    };
    assert_eq!((get(), get()), (Some(&process::id()), Some(&process::id())));
    let child =
        in_child(|| u8::from(get() == Some(&process::id()) && get().is_some() && made.load(Relaxed) == 2));
    assert_eq!(child, 1, "the child has its own");
    assert_eq!((get(), made.load(Relaxed)), (Some(&process::id()), 1));
}

#[test]
fn what_could_not_be_made_is_tried_once_in_each_process() {
    let place = PerProcess::<u32, _>::new(Mapping::wiped_by_fork(1).unwrap());
    let tries = AtomicU32::new(0);
    let get = || {
        place.get_or_make(|| {
            tries.fetch_add(1, Relaxed);
            None
        })
    };
    assert_eq!((get(), get(), tries.load(Relaxed)), (None, None, 1));
    let child = in_child(|| {
        u8::from(get().is_none() && get().is_none()) + u8::try_from(tries.load(Relaxed)).unwrap()
    });
    assert_eq!(child, 3, "it failed in the child, after one try more");
}

/// The parent's thread would never come to its end in a child.
#[test]
fn a_child_forked_while_the_value_is_being_made_waits_for_nobody() {
    let place = PerProcess::new(Mapping::wiped_by_fork(1).unwrap());
    let outer = place.get_or_make(|| {
        assert_eq!(place.get_or_make(|| Some(1)), None, "another thread makes it");
        Some(in_child(|| *place.get_or_make(|| Some(7)).unwrap_or(&0)))
    });
    assert_eq!(outer, Some(&7));
}

/// Counts how many of it were dropped, in this process and in those before.
struct Counted<'c>(&'c AtomicU32, bool);

impl Inherited for Counted<'_> {
    fn is_whole(&mut self) -> bool {
        self.1
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// What the tenth of a line of processes counts, each of which makes its own value and forks the next.
fn dropped_after_ten(use_value: &dyn Fn(u32, bool), dropped: &AtomicU32, is_whole: bool) -> u8 {
    fn generation(number: u32, use_value: &dyn Fn(u32, bool), dropped: &AtomicU32, is_whole: bool) -> u8 {
        use_value(number, is_whole);
        match number {
            9 => u8::try_from(dropped.load(Relaxed)).unwrap(),
            _ => in_child(|| generation(number + 1, use_value, dropped, is_whole)),
        }
    }
    generation(0, use_value, dropped, is_whole)
}

#[test]
fn a_grandchild_frees_what_is_whole_of_its_grandparents_unless_a_call_is_put_aside() {
    static DROPPED: AtomicU32 = AtomicU32::new(0);
    let by_process = PerProcess::new(Mapping::wiped_by_fork(1).unwrap());
    let by_generation = PerFork::default();
    let in_process =
        |_, is_whole| assert!(by_process.get_or_make(|| Some(Counted(&DROPPED, is_whole))).is_some());
    let in_generation = |number, is_whole| _ = by_generation.of(number, || Counted(&DROPPED, is_whole));
    for use_value in [&in_process as &dyn Fn(u32, bool), &in_generation] {
        // All but its own and its parent's. The first process, where all three lines begin, has one value.
        assert_eq!(dropped_after_ten(use_value, &DROPPED, true), 8);
        assert_eq!(dropped_after_ten(use_value, &DROPPED, false), 1, "the first one's alone");
        let aside = put_aside();
        assert_eq!(dropped_after_ten(use_value, &DROPPED, true), 0);
        drop(aside);
    }
}

#[test]
fn a_mapped_file_holds_what_threads_counted_and_a_short_one_is_refused() {
    let path = env::temp_dir().join(format!("evener-ring-{}", process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    file.set_len(16).unwrap();
    assert_eq!(Mapping::shared(&file, 5).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert!(Mapping::shared(&file, usize::MAX).is_err());
    let mapping = Mapping::shared(&file, 4).unwrap();
    let counter = Counter::at(mapping.words(), 2).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1_000).for_each(|_| counter.add(1 << 22)));
        }
    });
    assert_eq!(counter.value(), 4_000 << 22);
    let mut bytes = [0; 16];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).unwrap();
    let word = |index: usize| u32::from_ne_bytes(bytes[4 * index..][..4].try_into().unwrap());
    assert_eq!((word(0), word(1), value(word(2), word(3))), (0, 0, 4_000 << 22));
}

#[test]
fn a_count_without_both_of_its_words_does_not_exist() {
    let words = heap([0, 0]);
    assert!(Counter::at(&words, 0).is_some());
    for index in [1, 2, 3, usize::MAX] {
        assert!(Counter::at(&words, index).is_none(), "{index}");
    }
}

proptest! {
    #[test]
    fn a_count_is_the_sum_of_what_was_added(parts in prop::collection::vec(0..1_u64 << 40, 0..20)) {
        let words = heap([0, 0]);
        let counter = Counter::at(&words, 0).unwrap();
        parts.iter().for_each(|part| counter.add(*part));
        prop_assert_eq!(counter.value(), parts.iter().sum::<u64>());
    }

    /// As if it had been killed between its two steps.
    #[test]
    fn a_count_is_right_also_where_the_upper_word_is_one_change_behind(count in 1_u64 << 31..1 << 40) {
        let (high, low) = (u32::try_from(count >> 31).unwrap(), u32::try_from(count & 0xFFFF_FFFF).unwrap());
        prop_assert_eq!(value(high, low), count);
        prop_assert_eq!(value(high - 1, low), count);
    }
}

/// Served until it is over; counts itself when it is freed.
struct Shop {
    begun: AtomicU32,
    over: AtomicU32,
    bell: Doorbell,
    lock: Mutex<()>,
    freed: Arc<AtomicU32>,
}

impl Shop {
    fn new(freed: &Arc<AtomicU32>) -> Served<Self> {
        let (begun, over, bell, lock) = Default::default();
        Served::new(Self { begun, over, bell, lock, freed: Arc::clone(freed) })
    }

    fn close(&self) {
        self.over.store(1, Relaxed);
        self.bell.ring_all();
    }
}

impl Service for Shop {
    const NAME: &'static CStr = c"evener-test";

    fn serve(&self) {
        self.begun.fetch_add(1, Relaxed);
        loop {
            let ticket = self.bell.listen();
            if self.over.load(Relaxed) == 1 {
                return;
            }
            self.bell.wait(ticket, None);
        }
    }
}

impl Inherited for Shop {
    fn is_whole(&mut self) -> bool {
        self.lock.try_lock().is_ok()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.freed.fetch_add(1, Relaxed);
    }
}

const STACK_BYTES: usize = 256 << 10;

/// With so many threads, all of which have begun.
fn served_shop(threads: u32, freed: &Arc<AtomicU32>) -> Served<Shop> {
    let shop = Shop::new(freed);
    (0..threads).for_each(|_| shop.start(STACK_BYTES).unwrap());
    while shop.begun.load(Relaxed) < threads {
        thread::yield_now();
    }
    shop
}

#[test]
fn what_threads_serve_is_freed_once_by_the_last_of_owners_and_threads() {
    for threads in 0..4 {
        let freed = Arc::default();
        let shop = served_shop(threads, &freed);
        let other = shop.clone();
        drop(shop);
        assert_eq!(freed.load(Relaxed), 0);
        other.close();
        drop(other);
        while freed.load(Relaxed) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(Arc::strong_count(&freed), 1);
    }
}

#[test]
fn a_child_frees_with_its_last_owner_what_its_parents_threads_serve_and_starts_none() {
    let freed = Arc::default();
    let (shop, kept) = (served_shop(3, &freed), Arc::clone(&freed));
    let other = shop.clone();
    let code = in_child(|| {
        let is_ours = u8::from(shop.is_of_this_process()) + u8::from(shop.start(STACK_BYTES).is_ok());
        let (mut shop, other) = (shop, other);
        let shared = u8::from(shop.is_whole());
        drop(other);
        let before = u8::from(freed.load(Relaxed) != 0 || !shop.is_whole());
        drop(shop);
        is_ours | shared << 1 | before << 2 | u8::from(kept.load(Relaxed) != 1) << 3
    });
    assert_eq!(code, 0);
}

#[test]
fn a_child_never_frees_what_a_thread_of_its_parent_was_changing() {
    let freed = Arc::default();
    let shop = served_shop(1, &freed);
    // As a thread that is not in the child leaves it.
    mem::forget(shop.lock.lock().unwrap());
    let kept = Arc::clone(&freed);
    let code = in_child(move || {
        drop(shop);
        u8::try_from(kept.load(Relaxed)).unwrap_or(u8::MAX)
    });
    assert_eq!(code, 0);
}
