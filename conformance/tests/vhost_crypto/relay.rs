//! Stands between our front end and DPDK before 25.03, whose message that opens a session is a shorter one: 632 bytes and the
//! answer in front, where QEMU since version 8, later DPDKs and we have 1072 and the answer at the end. Nothing else is touched;
//! the rings lie in memory that the two sides share.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;

use evener_wire::{HEADER_BYTES, SESSION_BYTES};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Number of the message that opens a session, and its bytes in DPDK before 25.03.
const CREATE_SESSION: u32 = 26;
const SHORT_BYTES: usize = 632;

/// Descriptors that come with one message at most: one for each region of memory.
const FILES_MAX: usize = 8;

/// Listens at `from` and passes each connection on to `to`, until the test's process ends.
pub(crate) fn start(from: PathBuf, to: PathBuf) -> io::Result<()> {
    let listener = UnixListener::bind(from)?;
    thread::spawn(move || {
        for front in listener.incoming().filter_map(Result::ok) {
            if let Ok(back) = UnixStream::connect(&to) {
                // Each way ends with its connection, and closes it for the other.
                thread::spawn(|| pass(front, back));
            }
        }
    });
    Ok(())
}

fn pass(front: UnixStream, back: UnixStream) {
    if let (Ok(answers), Ok(asker)) = (back.try_clone(), front.try_clone()) {
        thread::spawn(move || while message(&answers, &asker, lengthened).is_ok() {});
    }
    while message(&front, &back, shortened).is_ok() {}
    front.shutdown(std::net::Shutdown::Both).unwrap_or_default();
    back.shutdown(std::net::Shutdown::Both).unwrap_or_default();
}

/// Passes one message on, with what came beside it.
fn message(from: &UnixStream, to: &UnixStream, change: fn(Vec<u8>) -> Vec<u8>) -> io::Result<()> {
    let mut header = [0; HEADER_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::WAITALL | RecvFlags::CMSG_CLOEXEC;
    let came = recvmsg(from, &mut [IoSliceMut::new(&mut header)], &mut beside, flags)?;
    if came.bytes != HEADER_BYTES {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let files: Vec<OwnedFd> = beside
        .drain()
        .flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => files.collect(),
            _ => Vec::new(),
        })
        .collect();
    let [number, flags, bytes] = [0, 4, 8].map(|at| word(&header, at));
    let mut payload = vec![0; usize::try_from(bytes).expect("a length")];
    let mut reader = from;
    reader.read_exact(&mut payload)?;
    if number == CREATE_SESSION {
        payload = change(payload);
    }
    let bytes = u32::try_from(payload.len()).expect("a short message");
    let header = [number, flags, bytes].map(u32::to_ne_bytes).concat();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let files: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
    if !files.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(&files));
    }
    let whole = [header, payload].concat();
    let sent = sendmsg(to, &[IoSlice::new(&whole)], &mut beside, SendFlags::NOSIGNAL)?;
    let mut writer = to;
    writer.write_all(&whole[sent..])
}

/// What opens a session, as DPDK before 25.03 reads it: number, operation, words, then pointers that no reader follows, keys.
fn shortened(long: Vec<u8>) -> Vec<u8> {
    if long.len() != SESSION_BYTES {
        return long;
    }
    let mut short = vec![0; SHORT_BYTES];
    short[8..12].copy_from_slice(&long[..4]);
    short[12..40].copy_from_slice(&long[8..36]);
    short[56..].copy_from_slice(&long[56..SHORT_BYTES]);
    short
}

/// Its answer: the number of the session alone counts.
fn lengthened(short: Vec<u8>) -> Vec<u8> {
    if short.len() != SHORT_BYTES {
        return short;
    }
    let mut long = vec![0; SESSION_BYTES];
    long[SESSION_BYTES - 8..].copy_from_slice(&short[..8]);
    long
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
