//! What a program does to descriptors and limits, each in a process of its own: numbers are the process's.

#![allow(unsafe_code, reason = "room: forks, and descriptors by number")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic; what is skipped is printed")]

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Barrier;
use std::thread;

use evener_fd::{CheckedFd, close_in_children, may_extend_to};

/// Assumed, not measured: a minute, because claims take milliseconds.
const ALONE_SECONDS_MAX: u32 = 60;

/// Runs `claim` in a child, which has all numbers to itself, and says whether it held.
fn alone(claim: impl FnOnce() -> bool) {
    // SAFETY: the child runs the claim, which uses system calls and its own memory, and ends without destructors of the parent's.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: takes a number. What stands still is ended.
        unsafe { libc::alarm(ALONE_SECONDS_MAX) };
        let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(claim)).unwrap_or(false);
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!held)) };
    }
    let mut status = 0;
    // SAFETY: the child is ours, and the place is.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the claim did not hold in the child");
}

/// What a call has just opened.
fn opened(number: RawFd) -> OwnedFd {
    assert!(number >= 0);
    // SAFETY: nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(number) }
}

fn event() -> OwnedFd {
    // SAFETY: takes numbers only.
    opened(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
}

fn epoll() -> OwnedFd {
    // SAFETY: takes numbers only.
    opened(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
}

fn socket() -> OwnedFd {
    UnixStream::pair().unwrap().0.into()
}

fn node() -> OwnedFd {
    File::open("/dev/null").unwrap().into()
}

const KINDS: [fn() -> OwnedFd; 4] = [event, epoll, socket, node];

/// Closes a number behind its owner's back, as `closefrom` does.
fn close(number: RawFd) {
    // SAFETY: that this is wrong is what the test is about; the owner looks before it closes.
    assert_eq!(unsafe { libc::close(number) }, 0);
}

fn is_open(number: RawFd) -> bool {
    // SAFETY: takes numbers only.
    unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
}

fn is_bad(checked: &CheckedFd) -> bool {
    checked.checked().is_err_and(|error| error.raw_os_error() == Some(libc::EBADF))
}

#[test]
fn a_descriptor_is_lent_and_closed_as_long_as_nobody_touched_it() {
    alone(|| {
        KINDS.iter().all(|make| {
            let checked = CheckedFd::new(make()).unwrap();
            let number = checked.known().number();
            let is_lent = checked.checked().unwrap().as_raw_fd() == number;
            drop(checked);
            is_lent && !is_open(number)
        })
    });
}

#[test]
fn what_the_program_closed_is_not_used_and_what_it_opened_there_is_not_closed() {
    alone(|| {
        KINDS.iter().all(|of_library| {
            KINDS.iter().all(|of_program| {
                let checked = CheckedFd::new(of_library()).unwrap();
                let number = checked.known().number();
                close(number);
                let none = is_bad(&checked);
                let other = of_program();
                assert_eq!(other.as_raw_fd(), number, "the system gives the lowest number that is free");
                let refused = is_bad(&checked);
                drop(checked);
                none && refused && is_open(other.as_raw_fd())
            })
        })
    });
}

#[test]
fn the_next_of_ours_at_the_same_number_is_another_one() {
    alone(|| {
        KINDS.iter().all(|make| {
            let first = CheckedFd::new(make()).unwrap();
            close(first.known().number());
            let second = CheckedFd::new(make()).unwrap();
            assert_eq!(first.known().number(), second.known().number());
            let told_apart = is_bad(&first);
            drop(first);
            told_apart && second.checked().is_ok()
        })
    });
}

#[test]
fn a_file_put_over_ours_by_dup2_is_left_alone() {
    alone(|| {
        let (of_program, mut peer) = UnixStream::pair().unwrap();
        let checked = CheckedFd::new(event()).unwrap();
        // SAFETY: takes numbers only; the owner looks before it closes.
        assert!(unsafe { libc::dup2(of_program.as_raw_fd(), checked.known().number()) } >= 0);
        drop(of_program);
        let refused = is_bad(&checked);
        let number = checked.known().number();
        drop(checked);
        let mut file = File::from(opened(number));
        file.write_all(b"alive").unwrap();
        let mut came = [0; 5];
        peer.read_exact(&mut came).unwrap();
        refused && &came == b"alive"
    });
}

/// Open files that a program may have at most, whatever its limit is.
fn open_files_max() -> libc::rlim_t {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the place is ours.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }, 0);
    limit.rlim_max
}

const HIGH_LIMIT: libc::rlim_t = 8_192;

/// A descriptor at a number that few programs reach.
fn at_a_high_number(fd: &OwnedFd) -> OwnedFd {
    const HIGH: RawFd = 5_000;
    let limit = libc::rlimit { rlim_cur: HIGH_LIMIT, rlim_max: HIGH_LIMIT };
    // SAFETY: the place is ours, and the limit is the child's.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    // SAFETY: takes numbers only.
    opened(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, HIGH) })
}

#[test]
fn a_socket_beyond_all_counts_is_known_by_its_inode() {
    if open_files_max() < HIGH_LIMIT {
        return println!("skipped: the limit of open files cannot be so high");
    }
    alone(|| {
        let high = at_a_high_number(&socket());
        let number = high.as_raw_fd();
        let checked = CheckedFd::new(high).unwrap();
        let is_lent = number >= 5_000 && checked.checked().is_ok();
        close(number);
        let other = at_a_high_number(&socket());
        assert_eq!(other.as_raw_fd(), number);
        let refused = is_bad(&checked);
        drop(checked);
        is_lent && refused && is_open(number)
    });
}

#[test]
fn a_descriptor_lies_above_the_standard_ones() {
    alone(|| {
        (0..3).for_each(close);
        let low = event();
        assert_eq!(low.as_raw_fd(), 0);
        let checked = CheckedFd::new(low).unwrap();
        checked.known().number() > 2 && !is_open(0) && checked.checked().is_ok()
    });
}

#[test]
fn a_twin_is_known_by_the_same_file() {
    alone(|| {
        KINDS.iter().all(|make| {
            let checked = CheckedFd::new(make()).unwrap();
            let twin = checked.known().try_clone().unwrap();
            let both = checked.checked().is_ok() && twin.checked().is_ok();
            close(checked.known().number());
            both && is_bad(&checked) && twin.checked().is_ok()
        })
    });
}

#[test]
fn a_child_s_copy_is_known_in_the_child() {
    let all = KINDS.map(|make| CheckedFd::new(make()).unwrap());
    alone(|| all.iter().all(|checked| checked.checked().is_ok()));
}

/// Processes that have not asked before: only in such a one the handler is still to be registered.
const NEW_PROCESSES: u32 = 200;

#[test]
fn a_child_that_is_forked_while_a_thread_asks_for_the_first_time_asks_and_goes_on() {
    let asks = || close_in_children(&CheckedFd::new(node()).unwrap()).is_ok();
    for _ in 0..NEW_PROCESSES {
        alone(|| {
            let both = Barrier::new(2);
            thread::scope(|scope| {
                let other = scope.spawn(|| {
                    both.wait();
                    asks()
                });
                both.wait();
                (0..4).for_each(|_| alone(asks));
                other.join().unwrap()
            })
        });
    }
}

#[test]
fn a_file_is_not_made_longer_than_the_limit_allows_and_nobody_gets_a_signal() {
    alone(|| {
        let limit = libc::rlimit { rlim_cur: 8192, rlim_max: 8192 };
        // SAFETY: the place is ours, and the limit is the child's.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
        let refused = may_extend_to(8193).unwrap_err();
        // SAFETY: takes a name and a number.
        let file = opened(unsafe { libc::memfd_create(c"limit".as_ptr(), 0) });
        // The system is the judge: as long as was allowed is no signal.
        File::from(file).set_len(8192).unwrap();
        may_extend_to(8192).is_ok() && refused.kind() == io::ErrorKind::FileTooLarge
    });
}

#[test]
fn without_a_limit_any_length_is_allowed() {
    assert!(may_extend_to(1 << 40).is_ok());
}
