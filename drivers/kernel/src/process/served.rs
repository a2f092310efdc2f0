//! What threads of a driver serve: `evener-ring` frees it in a forked child, too, where those threads are not; where that crate is not, it stays there.

use std::mem;
use std::sync::{Mutex, PoisonError, TryLockError};

#[cfg(target_os = "linux")]
pub(crate) use evener_ring::{Inherited, Served, Service};

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{Inherited, Served, Service};

/// Forgets, in a child, what a thread of its parent has locked, which may have stopped in the middle of a change.
pub(crate) fn leave_locked<T: Default>(lock: &mut Mutex<T>) {
    if matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
        mem::forget(mem::take(lock.get_mut().unwrap_or_else(PoisonError::into_inner)));
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::ffi::CStr;
    use std::ops::Deref;
    use std::sync::Arc;
    use std::{io, process, thread};

    pub(crate) trait Inherited {
        #[expect(dead_code, reason = "asked on Linux only")]
        fn is_whole(&mut self) -> bool;
    }

    pub(crate) trait Service: Sync + 'static {
        const NAME: &'static CStr;

        fn serve(&self);
    }

    pub(crate) struct Served<T>(Arc<(u32, T)>);

    impl<T: Service + Send> Served<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(Arc::new((process::id(), value)))
        }

        pub(crate) fn start(&self, stack: usize) -> io::Result<()> {
            let this = Arc::clone(&self.0);
            let name = T::NAME.to_string_lossy().into_owned();
            let serve = move || {
                // They are for the program's own threads.
                _ = nix::sys::signal::SigSet::all().thread_block();
                this.1.serve();
            };
            thread::Builder::new().name(name).stack_size(stack).spawn(serve).map(drop)
        }

        pub(crate) fn is_of_this_process(&self) -> bool {
            self.0.0 == process::id()
        }
    }

    impl<T> Deref for Served<T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0.1
        }
    }
}
