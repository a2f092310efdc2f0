//! Messages on a client's stream, with the descriptors that come beside them: in pieces as they come, without ever waiting.

use std::io;
use std::mem;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use evener_wire::{HEADER_BYTES, Header, Message, PAYLOAD_BYTES_MAX, REGION_COUNT_MAX, WireError};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use zeroize::Zeroizing;

use crate::state::closer::{Closer, Foreign, brings_descriptors, receive};

/// Why no message comes any more.
#[derive(Debug)]
pub(crate) enum NoMessage {
    /// The client has closed the stream, in the middle of a message or not.
    Ended,
    /// What came is none.
    Wire(WireError),
    /// More descriptors beside one message than any has.
    Descriptors,
    /// Too many descriptors of its user wait to be closed.
    Closing,
}

impl From<Errno> for NoMessage {
    fn from(_: Errno) -> Self {
        Self::Ended
    }
}

/// A message as it came. Its payload may hold keys and is wiped when it goes.
pub(crate) struct Received {
    pub(crate) message: Message,
    pub(crate) payload: Zeroizing<Vec<u8>>,
    pub(crate) descriptors: Vec<Foreign>,
}

/// What came on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Bytes(usize),
    /// Bytes beside descriptors that were not received.
    Descriptors,
}

/// What came of the next message so far.
pub(crate) struct Incoming {
    closer: Arc<Closer>,
    head: [u8; HEADER_BYTES],
    head_bytes: usize,
    header: Option<Header>,
    payload: Zeroizing<Vec<u8>>,
    payload_bytes: usize,
    descriptors: Vec<Foreign>,
}

impl Incoming {
    /// Nothing came. What does and is not needed is closed by `closer`.
    pub(crate) fn new(closer: Arc<Closer>) -> Self {
        Self {
            closer,
            head: [0; HEADER_BYTES],
            head_bytes: 0,
            header: None,
            payload: Zeroizing::default(),
            payload_bytes: 0,
            descriptors: Vec::new(),
        }
    }

    /// The next message, where all of it is there.
    pub(crate) fn receive(&mut self, stream: &UnixStream) -> Result<Option<Received>, NoMessage> {
        let header = loop {
            if let Some(header) = self.header.filter(|_| self.payload_bytes == self.payload.len()) {
                break header;
            }
            match self.receive_part(stream) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Ok(Part::Descriptors) => return Err(NoMessage::Closing),
                step if step? == Part::Bytes(0) => return Err(NoMessage::Ended),
                _ => self.parse_head()?,
            }
        };
        let next = Self::new(Arc::clone(&self.closer));
        let Self { payload, descriptors, .. } = mem::replace(self, next);
        Ok(Some(Received { message: header.message, payload, descriptors }))
    }

    /// Receives more of the head, or of the payload behind it. Where too many descriptors of the user wait, none is received with it.
    fn receive_part(&mut self, stream: &UnixStream) -> Result<Part, Errno> {
        let (into, received) = match self.header {
            None => (&mut self.head[..], &mut self.head_bytes),
            Some(_) => (&mut self.payload[..], &mut self.payload_bytes),
        };
        let into = &mut into[*received..];
        if self.closer.is_full() && brings_descriptors(stream, into)? {
            return Ok(Part::Descriptors);
        }
        let got = receive(stream, into, &self.closer, &mut self.descriptors)?;
        *received += got;
        Ok(Part::Bytes(got))
    }

    fn parse_head(&mut self) -> Result<(), NoMessage> {
        if self.descriptors.len() > REGION_COUNT_MAX && !cfg!(mutant = "host_descriptors_unlimited") {
            return Err(NoMessage::Descriptors);
        }
        if !self.descriptors.is_empty() && self.closer.is_full() {
            return Err(NoMessage::Closing);
        }
        if self.header.is_none() && self.head_bytes == HEADER_BYTES {
            let header = Header::parse(&self.head).map_err(NoMessage::Wire)?;
            let bytes = usize::try_from(header.payload_bytes).expect("at most PAYLOAD_BYTES_MAX");
            (self.header, self.payload) = (Some(header), Zeroizing::new(vec![0; bytes]));
        }
        Ok(())
    }
}

/// An answer, as far as it was not sent. No further message is read before it was: so a client that reads nothing costs the memory of one.
#[derive(Default)]
pub(crate) struct Outgoing {
    bytes: Zeroizing<Vec<u8>>,
    sent: usize,
}

impl Outgoing {
    /// Answers a message, as much as goes at once.
    pub(crate) fn answer(&mut self, stream: &UnixStream, message: Message, payload: &[u8]) -> io::Result<()> {
        let bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        debug_assert!(bytes <= PAYLOAD_BYTES_MAX, "no answer is longer than a session");
        self.bytes.extend_from_slice(&Header::reply(message, bytes).to_bytes());
        self.bytes.extend_from_slice(payload);
        self.go_on(stream)
    }

    /// Sends as much of the rest as goes at once.
    pub(crate) fn go_on(&mut self, stream: &UnixStream) -> io::Result<()> {
        while !self.is_empty() {
            // A client that has gone is an error, not a signal that ends the process.
            match send(stream, &self.bytes[self.sent..], SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                sent => self.sent += sent?,
            }
        }
        *self = Self::default();
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }
}
