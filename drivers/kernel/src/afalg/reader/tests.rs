//! Readers with a pipe in place of a module.

use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;

use evener_core::{Algorithm, Direction, Padding, Session};

use super::*;
use crate::pool::key_cache::KeyCache;

const BYTES: usize = 64;

/// A pipe in place of a module: what is read, and where it is written.
fn pipe() -> (Read, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let session = Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[7; 16]).unwrap();
    let key = KeyCache::default().entry(&session, drop);
    (Read { socket: CheckedFd::new(ours.into()).unwrap(), key, bytes: BYTES, sends: None }, theirs)
}

const SOON: Duration = Duration::from_secs(60);

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_comes_is_in_the_reader_s_space_and_the_thread_reads_again() {
    let stuck = Arc::default();
    let mut reader = Reader::start(&stuck).unwrap();
    let (mut read, mut writer) = pipe();
    for number in 1..=3 {
        writer.write_all(&[number; BYTES]).unwrap();
        let answered = reader.read(read, SOON).unwrap();
        assert!(answered.done.is_ok() && *answered.space == [number; BYTES]);
        read = answered.read;
    }
    drop(writer);
    let answered = reader.read(read, SOON).unwrap();
    assert!(matches!(answered.done, Err(Attempt::Short { is_intact: true })), "nothing came");
    assert_eq!(stuck.load(Ordering::Relaxed), 0);
}

/// As where this process was stopped while it waited: its time is over, and the thread has not read yet what is there.
#[test]
fn the_thread_has_a_moment_more_when_the_time_of_who_waits_is_over() {
    let is_read = || {
        let mut reader = Reader::start(&Arc::default()).unwrap();
        let (read, mut module) = pipe();
        module.write_all(&[3; BYTES]).unwrap();
        reader.read(read, Duration::ZERO).is_some_and(|answered| *answered.space == [3; BYTES])
    };
    // A busy machine may have the thread wait for longer.
    assert!((0..10).any(|_| is_read()));
}

#[test]
fn what_the_thread_is_to_send_is_there_before_it_reads() {
    let mut reader = Reader::start(&Arc::default()).unwrap();
    let (read, mut module) = pipe();
    module.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let module = std::thread::spawn(move || {
        let mut text = [0; BYTES];
        module.read_exact(&mut text).unwrap();
        module.write_all(&text.map(|byte| byte + 1)).unwrap();
    });
    reader.fill(&[4; BYTES]);
    let answered = reader.read(Read { sends: Some([0; 16]), ..read }, SOON / 6).unwrap();
    assert!(answered.done.is_ok() && *answered.space == [5; BYTES]);
    module.join().unwrap();
}

#[test]
fn a_result_is_not_read_from_a_file_that_the_program_has_there_by_now() {
    let mut reader = Reader::start(&Arc::default()).unwrap();
    for sends in [None, Some([0; 16])] {
        let (read, _module) = pipe();
        let (theirs, mut end) = UnixStream::pair().unwrap();
        end.write_all(&[9; BYTES]).unwrap();
        crate::afalg::ffi::put_over(read.socket.known().number(), theirs.as_fd());
        let answered = reader.read(Read { sends, ..read }, SOON).unwrap();
        assert!(matches!(answered.done, Err(Attempt::Failed(rustix::io::Errno::BADF))));
        drop(answered.read);
        let (mut theirs, mut came) = (theirs, [0; BYTES]);
        theirs.read_exact(&mut came).unwrap();
        assert_eq!(came, [9; BYTES], "what came for the program is there");
        end.set_nonblocking(true).unwrap();
        assert!(end.read(&mut came).is_err(), "nothing was sent to it");
    }
}

#[test]
fn who_leaves_leaves_the_thread_with_all_it_needs_until_it_is_back() {
    let stuck = Arc::default();
    let mut reader = Reader::start(&stuck).unwrap();
    let (read, mut writer) = pipe();
    let key = Arc::clone(&read.key);
    assert!(reader.read(read, Duration::from_millis(20)).is_none());
    drop(reader);
    assert_eq!((stuck.load(Ordering::Relaxed), Arc::strong_count(&key)), (1, 2));
    writer.write_all(&[1; BYTES]).unwrap();
    wait_until(|| stuck.load(Ordering::Relaxed) == 0);
    wait_until(|| Arc::strong_count(&key) == 1);
}

#[test]
fn who_has_no_time_at_all_leaves_begun_or_not() {
    for _ in 0..100 {
        let stuck = Arc::default();
        let mut reader = Reader::start(&stuck).unwrap();
        let (read, writer) = pipe();
        let key = Arc::clone(&read.key);
        assert!(reader.read(read, Duration::ZERO).is_none());
        drop((reader, writer));
        wait_until(|| (stuck.load(Ordering::Relaxed), Arc::strong_count(&key)) == (0, 1));
    }
}

#[test]
fn the_thread_of_a_reader_that_goes_ends() {
    let reader = Reader::start(&Arc::default()).unwrap();
    let clock = reader.clock();
    drop(reader);
    wait_until(|| !clock.is_alive());
}

#[test]
fn the_thread_s_core_time_is_told_to_others() {
    let mut reader = Reader::start(&Arc::default()).unwrap();
    let (mut read, mut writer) = pipe();
    let clock = reader.clock();
    wait_until(|| clock.time() > Nanos::ZERO);
    let before = clock.time();
    for _ in 0..1_000 {
        writer.write_all(&[1; BYTES]).unwrap();
        read = reader.read(read, SOON).unwrap().read;
    }
    let used = clock.time() - before;
    assert!(Nanos::ZERO < before && before < used, "{before:?} {used:?}");
    drop(reader);
    wait_until(|| !clock.is_alive());
    assert_eq!(clock.time(), Nanos::ZERO);
}
