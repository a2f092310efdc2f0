//! A value that each thread has for itself, dropped at the thread's end: by a key of POSIX threads.
//!
//! Not taken: thread-locals. In a module that a program loads, the C library allocates them at a thread's first look, and ends the process
//! where it cannot (glibc, `__tls_get_addr`); the same for a note that one has a destructor.

use std::alloc::{Layout, alloc};
use std::marker::PhantomData;
use std::sync::OnceLock;

use super::ffi::drop_value;

/// One value a thread. For a `static`: it takes one of the process's keys (1024 with glibc), for good.
pub struct ThreadValue<T: 'static> {
    key: OnceLock<Option<libc::pthread_key_t>>,
    make: fn() -> T,
    /// Threads have their own and never another's.
    owns: PhantomData<fn() -> T>,
}

impl<T> ThreadValue<T> {
    /// No thread's yet; a thread's is what `make` gives. `T` is larger than nothing.
    #[must_use]
    pub const fn new(make: fn() -> T) -> Self {
        const { assert!(size_of::<T>() > 0) };
        Self { key: OnceLock::new(), make, owns: PhantomData }
    }

    /// Takes the key. To be called before threads fork: a child whose parent's other thread was about it would wait for that thread, which it
    /// has not.
    pub fn prepare(&'static self) {
        self.key.get_or_init(new_key::<T>);
    }

    /// Calls `body` with this thread's value, which is made where there is none; `None` where no memory is to be had.
    pub fn with<R>(&'static self, body: impl FnOnce(&T) -> R) -> Option<R> {
        let key = (*self.key.get_or_init(new_key::<T>))?;
        let there = value_at::<T>(key);
        let value = if there.is_null() { self.give(key)? } else { there };
        // SAFETY: this thread's, which is dropped at its end and not in a call of its own.
        Some(body(unsafe { &*value }))
    }

    /// The same with a value that is there already.
    pub fn with_made<R>(&'static self, body: impl FnOnce(&T) -> R) -> Option<R> {
        let key = (*self.key.get()?)?;
        // SAFETY: as in `with`; null where there is none.
        unsafe { value_at::<T>(key).as_ref() }.map(body)
    }

    /// Makes this thread's value.
    #[cold]
    fn give(&self, key: libc::pthread_key_t) -> Option<*const T> {
        // SAFETY: not of size zero (`new`).
        let space = unsafe { alloc(Layout::new::<T>()) }.cast::<T>();
        if space.is_null() {
            return None;
        }
        // SAFETY: as large and aligned as a `T`, and not shared.
        unsafe { space.write((self.make)()) };
        // SAFETY: a key that was made, and is never deleted.
        if unsafe { libc::pthread_setspecific(key, space.cast_const().cast()) } != 0 {
            // SAFETY: allocated and written above as a box's would be.
            drop(unsafe { Box::from_raw(space) });
            return None;
        }
        Some(space)
    }
}

fn new_key<T>() -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: writes the key. `drop_value` stays where it is: a module that has this code is never unloaded.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(drop_value::<T>)) } == 0;
    made.then_some(key)
}

fn value_at<T>(key: libc::pthread_key_t) -> *const T {
    // SAFETY: a key that was made, and is never deleted.
    unsafe { libc::pthread_getspecific(key) }.cast_const().cast()
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::thread;

    use super::ThreadValue;

    #[test]
    fn each_thread_finds_its_own_and_drops_it_at_its_end() {
        static DROPPED: AtomicU32 = AtomicU32::new(0);
        struct Counted(Cell<u32>);
        impl Drop for Counted {
            fn drop(&mut self) {
                DROPPED.fetch_add(self.0.get(), SeqCst);
            }
        }
        static VALUE: ThreadValue<Counted> = ThreadValue::new(|| Counted(Cell::new(0)));
        assert_eq!(VALUE.with_made(|_| ()), None, "nobody has looked");
        let threads = (1..=8_u32).map(|times| {
            thread::spawn(move || {
                for _ in 0..times {
                    VALUE.with(|value| value.0.set(value.0.get() + 1)).unwrap();
                }
                assert_eq!(VALUE.with_made(|value| value.0.get()), Some(times));
            })
        });
        threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(DROPPED.load(SeqCst), (1..=8).sum());
        assert_eq!(VALUE.with_made(|_| ()), None, "this thread never had one");
    }
}
