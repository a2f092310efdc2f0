//! Threads of a scope that are gone when it ends, and not only done.
//!
//! A scope waits for what its threads were given to do. What a thread leaves to its own end, as libcrypto does with the memory that it has for
//! each, may come later: in a process that ends, libcrypto then frees it a second time.

use std::panic::resume_unwind;
use std::thread::ScopedJoinHandle;

/// Waits until threads are gone; a panic of one goes on here.
pub fn join_all<'scope, T: 'scope>(threads: impl IntoIterator<Item = ScopedJoinHandle<'scope, T>>) {
    for thread in threads {
        thread.join().map(drop).unwrap_or_else(|panic| resume_unwind(panic));
    }
}
