//! Descriptors that children close, in a process that forks while another thread is about one.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::File;
use std::sync::Barrier;
use std::thread;

use evener_fd::{CheckedFd, close_in_children};
use evener_testing::programs::is_right_in_child;

/// Processes that have not asked for it before: only in such a one the handler is still to be registered.
const PROCESSES: u32 = 200;

#[test]
fn a_child_that_is_forked_while_a_thread_asks_for_the_first_time_asks_and_goes_on() {
    let ask = || {
        let file = CheckedFd::new(File::open("/dev/null").unwrap().into()).unwrap();
        close_in_children(&file).unwrap();
    };
    for _ in 0..PROCESSES {
        assert!(is_right_in_child(|| {
            let both = Barrier::new(2);
            thread::scope(|scope| {
                scope.spawn(|| {
                    both.wait();
                    ask();
                });
                both.wait();
                // A child that stands still is ended, and is no right one.
                (0..4).for_each(|_| assert!(is_right_in_child(ask)));
            });
        }));
    }
}
