//! What is read is what the file has, wherever the reader is told to put it, and what cannot be read is said.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::thread;
use std::time::{Duration, Instant};

use evener_aio::{ReadError, Reader};
use rustix::pipe::pipe;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

#[test]
fn pieces_stand_one_behind_the_other_and_a_reader_that_grows_begins_anew() {
    let (from, into) = pipe().unwrap();
    let mut into = File::from(into);
    let mut reader = Reader::new().unwrap();
    for bytes in [100_usize, 40_000, 200] {
        reader.make_room(2 * bytes).unwrap();
        for (number, start) in [(1, 0), (2, bytes)] {
            into.write_all(&vec![number; bytes]).unwrap();
            assert_eq!(reader.read(from.as_fd(), start, bytes, soon).unwrap(), bytes);
        }
        let (first, second) = reader.memory()[..2 * bytes].split_at(bytes);
        assert!(first.iter().all(|&byte| byte == 1) && second.iter().all(|&byte| byte == 2));
    }
    assert!(!reader.is_left());
}

#[test]
fn a_read_that_ends_early_says_how_far_it_came_and_one_that_fails_why() {
    let mut reader = Reader::new().unwrap();
    reader.make_room(64).unwrap();
    let nothing = File::open("/dev/null").unwrap();
    assert_eq!(reader.read(nothing.as_fd(), 0, 64, soon).unwrap(), 0);
    let unreadable = File::options().write(true).open("/dev/null").unwrap();
    let failed = reader.read(unreadable.as_fd(), 0, 64, soon);
    assert!(matches!(failed, Err(ReadError::Failed(error)) if error.raw_os_error() == Some(libc::EBADF)));
    let zeros = File::open("/dev/zero").unwrap();
    reader.memory()[..64].fill(9);
    assert_eq!(reader.read(zeros.as_fd(), 16, 32, soon).unwrap(), 32);
    let expected: Vec<u8> = (0..64).map(|at| if (16..48).contains(&at) { 0 } else { 9 }).collect();
    assert_eq!(reader.memory()[..64], expected);
}

#[test]
#[should_panic(expected = "do not fit")]
fn nothing_is_read_behind_the_memory() {
    let mut reader = Reader::new().unwrap();
    reader.make_room(100).unwrap();
    let zeros = File::open("/dev/zero").unwrap();
    drop(reader.read(zeros.as_fd(), 1 << 20, 1, soon));
}

#[test]
fn a_reader_and_what_it_read_go_to_another_thread() {
    let mut reader = Reader::new().unwrap();
    let reader = thread::spawn(move || {
        reader.make_room(64).unwrap();
        let zeros = File::open("/dev/zero").unwrap();
        reader.read(zeros.as_fd(), 0, 64, soon).unwrap();
        reader.memory()[..64].fill(5);
        reader
    });
    let mut reader = reader.join().unwrap();
    assert!(reader.memory()[..64].iter().all(|&byte| byte == 5));
}
