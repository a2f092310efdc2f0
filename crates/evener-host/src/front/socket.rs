//! Messages on a client's stream, with the descriptors that come beside them.

use std::io::{self, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use evener_wire::{HEADER_BYTES, Header, Message, PAYLOAD_BYTES_MAX, REGION_COUNT_MAX, WireError};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use zeroize::Zeroizing;

/// Why no message came.
#[derive(Debug)]
pub(crate) enum NoMessage {
    /// The client has closed the stream, in the middle of a message or not.
    Ended,
    /// What came is none.
    Wire(WireError),
}

impl From<io::Error> for NoMessage {
    fn from(_: io::Error) -> Self {
        Self::Ended
    }
}

/// A message as it came. Its payload may hold keys and is wiped when it goes.
pub(crate) struct Received {
    pub(crate) message: Message,
    pub(crate) payload: Zeroizing<Vec<u8>>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Waits for a whole message.
pub(crate) fn receive(stream: &mut UnixStream) -> Result<Received, NoMessage> {
    let (mut head, mut descriptors) = ([0; HEADER_BYTES], Vec::new());
    let mut filled = 0;
    // Descriptors come with the first byte, wherever the kernel cuts the rest.
    while filled < HEADER_BYTES {
        let count = receive_part(stream, &mut head[filled..], &mut descriptors)?;
        if count == 0 {
            return Err(NoMessage::Ended);
        }
        filled += count;
    }
    let header = Header::parse(&head).map_err(NoMessage::Wire)?;
    let bytes = usize::try_from(header.payload_bytes).expect("at most PAYLOAD_BYTES_MAX");
    let mut payload = Zeroizing::new(vec![0; bytes]);
    stream.read_exact(&mut payload)?;
    Ok(Received { message: header.message, payload, descriptors })
}

fn receive_part(
    stream: &UnixStream,
    into: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> Result<usize, NoMessage> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(REGION_COUNT_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let got = recvmsg(stream, &mut [IoSliceMut::new(into)], &mut beside, RecvFlags::CMSG_CLOEXEC);
        match got {
            Err(Errno::INTR) => {}
            other => break other.map_err(|_| NoMessage::Ended)?,
        }
    };
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            descriptors.extend(files);
        }
    }
    Ok(got.bytes)
}

/// Answers a message.
pub(crate) fn reply(stream: &UnixStream, message: Message, payload: &[u8]) -> io::Result<()> {
    let bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    debug_assert!(bytes <= PAYLOAD_BYTES_MAX, "no answer is longer than a session");
    let mut whole = Zeroizing::new(Header::reply(message, bytes).to_bytes().to_vec());
    whole.extend_from_slice(payload);
    let mut rest = &whole[..];
    while !rest.is_empty() {
        // A client that has gone is an error, not a signal that ends the process.
        match send(stream, rest, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            sent => rest = &rest[sent?..],
        }
    }
    Ok(())
}
