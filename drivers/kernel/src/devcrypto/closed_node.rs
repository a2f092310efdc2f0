//! A program that has a file of its own where a session's node was.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use super::mock_node::{Fate, MockNode, NODE};
use super::*;
use crate::afalg::put_over;
use crate::ocf::Call;
use crate::pool::sample::{task, text};

const KEY: Spec = Spec { algorithm: Algorithm::Aes128Ctr, direction: Direction::Encrypt };
const LONG: usize = 4 * CHUNK_BYTES;

/// Puts a file of the program's at the session's number; its other end sees what is done there.
fn replace(key: &OpenSession) -> UnixStream {
    let (foreign, end) = UnixStream::pair().unwrap();
    end.set_nonblocking(true).unwrap();
    put_over(key.node.known().number(), foreign.as_fd());
    end
}

fn is_untouched(mut end: &UnixStream) -> bool {
    matches!(end.read(&mut [0; 64]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

fn open() -> Option<(MockNode, DevCrypto)> {
    match MockNode::new() {
        Ok(node) => {
            let device = DevCrypto::open(Path::new(NODE)).unwrap();
            Some((node, device))
        }
        Err(error) => {
            println!("skipped: no filter for system calls: {error}");
            None
        }
    }
}

#[test]
fn no_call_is_made_where_the_program_has_another_file_by_now() {
    let Some((node, device)) = open() else { return };
    let key = device.open_key(KEY, &[7; 16]).unwrap();
    node.ends(|_, _| Fate::Answered);
    let end = replace(&key);
    let mut task = task(KEY, LONG);
    assert_eq!(device.run(&key, &mut task), Err(Failure::Lost));
    assert_eq!(task.text(), text(LONG), "the thread that does it again has the input");
    drop(key);
    let made = Call::ALL.map(|call| node.calls(call).len());
    assert!(made.iter().all(|&count| count == 0), "no session is closed there either: {made:?}");
    assert!(is_untouched(&end));
}

#[test]
fn memory_that_was_left_with_a_node_whose_descriptor_is_gone_is_never_used_again() {
    let Some((node, plain)) = open() else { return };
    drop(plain);
    node.keep();
    let device = DevCrypto::open(Path::new(NODE)).unwrap();
    device.queue().unwrap().store(true, Ordering::Relaxed);
    let key = device.open_key(KEY, &[7; 16]).unwrap();
    let (number, (foreign, end)) = (key.node.known().number(), UnixStream::pair().unwrap());
    end.set_nonblocking(true).unwrap();
    // While the second chunk is left.
    node.ends(move |call, before| {
        if call == Call::Leave && before == 1 {
            put_over(number, foreign.as_fd());
        }
        Fate::Answered
    });
    let mut task = task(KEY, LONG);
    assert_eq!(device.run(&key, &mut task), Err(Failure::Lost));
    assert!(task.space.is_empty(), "it stays with the node");
    drop(key);
    assert!(node.calls(Call::Fetch).is_empty() && is_untouched(&end));
}
