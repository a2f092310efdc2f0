//! Requests that go through in parts, and answers that end early: what AF_ALG may do and no driver of this machine shows.
//!
//! A socket pair stands for the kernel's socket: a thread at its other end inverts each byte that comes, so a byte that was
//! lost, came twice or went through twice is seen.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_send_buffer_size, set_socket_timeout};

use super::exchange::CHUNK_BYTES;
use super::*;
use crate::pool::sample::{is_inverted_once, task, text};
use evener_core::Direction;
use evener_fd::CheckedFd;

const KEY: Spec = Spec { algorithm: Algorithm::Aes128Ctr, direction: Direction::Encrypt };
const GIVEN_UP: Result<(), Failure> = Err(Failure::Errno(libc::EINTR));

/// Our end of a pair at whose other end `serve` stands for the kernel.
fn request_socket(serve: impl FnOnce(UnixStream) + Send + 'static) -> CheckedFd {
    let (driver_end, kernel_end) = UnixStream::pair().unwrap();
    // A driver that waits for what never comes has failed; it must not wait here for ever.
    driver_end.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    thread::spawn(move || serve(kernel_end));
    checked(driver_end)
}

/// Reads `bytes` bytes and inverts them.
fn inverted(stream: &mut UnixStream, bytes: usize) -> Vec<u8> {
    let mut text = vec![0; bytes];
    stream.read_exact(&mut text).unwrap();
    text.iter_mut().for_each(|byte| *byte = !*byte);
    text
}

/// Answers each of `chunks` requests of so many bytes in parts of `part` bytes.
fn in_parts(chunks: &'static [usize], part: usize) -> CheckedFd {
    request_socket(move |mut stream| {
        for &bytes in chunks {
            for part in inverted(&mut stream, bytes).chunks(part) {
                stream.write_all(part).unwrap();
            }
        }
    })
}

/// Answers `whole` requests and of the next, which has `bytes` bytes, `answered` bytes.
fn ends_early(whole: &'static [usize], bytes: usize, answered: usize) -> CheckedFd {
    request_socket(move |mut stream| {
        for &bytes in whole {
            let text = inverted(&mut stream, bytes);
            stream.write_all(&text).unwrap();
        }
        let text = inverted(&mut stream, bytes);
        stream.write_all(&text[..answered]).unwrap();
    })
}

fn checked(stream: UnixStream) -> CheckedFd {
    CheckedFd::new(stream.into()).unwrap()
}

/// A key with sockets that are taken in this order. No other can be accepted from it: a request for one fails.
fn transform(sockets: Vec<CheckedFd>) -> Transform {
    let (socket, _) = UnixStream::pair().unwrap();
    let key = Transform::new(checked(socket));
    sockets.into_iter().for_each(|socket| key.keep(socket));
    key
}

/// Has `task` done at `sockets`, of which the first is taken first; says how many are left besides.
fn run(task: &mut Task, sockets: Vec<CheckedFd>) -> (Result<(), Failure>, usize) {
    let key = transform(sockets);
    let done =
        Afalg { entry: CryptoEntry::default(), door: "skcipher", answered: Arc::default() }.run(&key, task);
    (done, key.idle_count())
}

#[test]
fn an_answer_that_comes_in_parts_is_read_whole() {
    for part in [1, 999, 4_096] {
        let mut task = task(KEY, CHUNK_BYTES + 100);
        assert_eq!(run(&mut task, vec![in_parts(&[CHUNK_BYTES, 100], part)]), (Ok(()), 1));
        assert!(is_inverted_once(&task), "parts of {part}");
    }
}

#[test]
fn a_request_that_was_not_answered_at_all_is_asked_once_more_elsewhere() {
    let mut task = task(KEY, 4_096);
    let sockets = vec![ends_early(&[], 4_096, 0), in_parts(&[4_096], 4_096)];
    assert_eq!(run(&mut task, sockets), (Ok(()), 1), "a slot that failed is not kept");
    assert!(is_inverted_once(&task));
}

#[test]
fn what_was_answered_in_part_is_given_up_and_never_worked_on_twice() {
    let early: [(&'static [usize], usize, usize); 3] =
        [(&[], 4_096, 1_000), (&[CHUNK_BYTES], 4_096, 1_000), (&[CHUNK_BYTES], 4_096, 0)];
    for (whole, bytes, answered) in early {
        let mut task = task(KEY, whole.len() * CHUNK_BYTES + bytes);
        let again =
            if whole.is_empty() { in_parts(&[4_096], 4_096) } else { in_parts(&[CHUNK_BYTES, 4_096], 4_096) };
        let sockets = vec![ends_early(whole, bytes, answered), again];
        assert_eq!(run(&mut task, sockets), (GIVEN_UP, 1), "{} pieces, then {answered} bytes", whole.len());
    }
}

/// Has a text of `bytes` bytes worked on from one place to another at `sockets`; what came, and how many sockets are left besides.
fn work(bytes: usize, sockets: Vec<CheckedFd>) -> (Result<(), Failure>, Vec<u8>, usize) {
    let key = transform(sockets);
    let device = Afalg { entry: CryptoEntry::default(), door: "skcipher", answered: Arc::default() };
    let mut output = vec![0; bytes];
    let done = device.work(&key, KEY, [0; 16], &text(bytes), &mut output);
    (done, output, key.idle_count())
}

#[test]
fn from_one_place_to_another_whatever_was_answered_in_part_is_asked_once_more() {
    let bytes = CHUNK_BYTES + 4_096;
    let inverted: Vec<u8> = text(bytes).iter().map(|byte| !byte).collect();
    let whole = || in_parts(&[CHUNK_BYTES, 4_096], 999);
    assert_eq!(work(bytes, vec![whole()]), (Ok(()), inverted.clone(), 1));
    let early: [(&'static [usize], usize, usize); 3] =
        [(&[], CHUNK_BYTES, 1_000), (&[CHUNK_BYTES], 4_096, 1_000), (&[CHUNK_BYTES], 4_096, 0)];
    for (before, next, answered) in early {
        let sockets = vec![ends_early(before, next, answered), whole()];
        assert_eq!(
            work(bytes, sockets),
            (Ok(()), inverted.clone(), 1),
            "{} pieces, then {answered}",
            before.len()
        );
    }
}

/// Our end takes a few thousand bytes before it waits for the other, and then only so long: what it took is what a call says.
fn narrow(request_socket: CheckedFd, timeout: Duration) -> CheckedFd {
    let stream = request_socket.checked().unwrap();
    set_socket_send_buffer_size(stream, 4_096).unwrap();
    set_socket_timeout(stream, Timeout::Send, Some(timeout)).unwrap();
    request_socket
}

#[test]
fn a_request_that_went_out_in_part_is_asked_once_more_elsewhere() {
    // It reads nothing until its other end is given up.
    let deaf = request_socket(|mut stream| {
        thread::sleep(Duration::from_millis(500));
        stream.read_to_end(&mut Vec::new()).unwrap();
    });
    let mut task = task(KEY, CHUNK_BYTES);
    let deaf = narrow(deaf, Duration::from_millis(50));
    assert_eq!(run(&mut task, vec![deaf, in_parts(&[CHUNK_BYTES], 4_096)]), (Ok(()), 1));
    assert!(is_inverted_once(&task));
}

#[test]
fn a_request_for_which_the_kernel_has_no_space_waits_for_none() {
    // It never reads, and leaves when the request is done, or after so long that the driver waits for it.
    let ((done, is_done), (told, was_in_time)) = (mpsc::channel(), mpsc::channel());
    let deaf = request_socket(move |stream| {
        told.send(is_done.recv_timeout(Duration::from_secs(20)).is_ok()).unwrap();
        drop(stream);
    });
    set_socket_send_buffer_size(deaf.checked().unwrap(), 4_096).unwrap();
    let mut task = task(KEY, CHUNK_BYTES);
    assert_eq!(run(&mut task, vec![deaf, in_parts(&[CHUNK_BYTES], 4_096)]), (Ok(()), 1));
    assert!(is_inverted_once(&task));
    // Whether it is still there is what is asked.
    done.send(()).ok();
    assert!(was_in_time.recv().unwrap(), "it waited");
}

#[test]
fn a_message_to_hash_that_goes_out_in_parts_is_hashed_whole() {
    let bytes = 3 * CHUNK_BYTES;
    // The sum of all bytes is the digest. Longer than one call waits, shorter than two.
    let slow = request_socket(move |mut stream| {
        let (mut sum, mut count, mut part) = (0_u128, 0, [0; 1_500]);
        thread::sleep(Duration::from_millis(3_000));
        while count < bytes {
            let read = stream.read(&mut part).unwrap();
            sum += part[..read].iter().map(|&byte| u128::from(byte)).sum::<u128>();
            count += read;
        }
        stream.write_all(&sum.to_be_bytes()).unwrap();
    });
    let mut task = task(Spec { algorithm: Algorithm::Md5, direction: Direction::Encrypt }, bytes);
    assert_eq!(run(&mut task, vec![narrow(slow, Duration::from_millis(2_000))]), (Ok(()), 1));
    let expected: u128 = text(bytes).iter().map(|&byte| u128::from(byte)).sum();
    assert_eq!(task.tag[..16], expected.to_be_bytes());
}

/// Puts a file of the program's at the number of `driver_end`; returns its other end, which sees what is done there.
fn put_over(driver_end: &CheckedFd) -> UnixStream {
    let (kernel_end, end) = UnixStream::pair().unwrap();
    end.set_nonblocking(true).unwrap();
    ffi::put_over(driver_end.known().number(), kernel_end.as_fd());
    end
}

fn is_untouched(mut end: &UnixStream) -> bool {
    matches!(end.read(&mut [0; 64]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

#[test]
fn a_request_is_not_sent_where_the_program_has_another_file_by_now() {
    let request_socket = in_parts(&[4_096], 4_096);
    let end = put_over(&request_socket);
    let mut task = task(KEY, 4_096);
    assert_eq!(run(&mut task, vec![request_socket]), (Err(Failure::Lost), 0));
    assert_eq!(task.text(), text(4_096), "the thread that does it again has the input");
    assert!(is_untouched(&end), "nothing was sent, and it is not closed");
}

#[test]
fn a_key_s_socket_that_is_the_program_s_by_now_accepts_no_seat_and_is_not_closed() {
    let key = transform(Vec::new());
    let end = put_over(&key.socket);
    let lost = key.request_socket().map(drop).map_err(Failure::from);
    drop(key);
    assert_eq!(lost, Err(Failure::Lost));
    assert!(is_untouched(&end));
}
