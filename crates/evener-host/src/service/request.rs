//! One request: from the elements of a chain to what a job is armed with, and back.
//!
//! Header and IV are copied once and then checked. Source and associated data are worked on where they lie (`client_span.rs`), or copied once into memory
//! of the host's own (`slots.rs`). What does not fit its chain is
//! [`BadRequest`]: no client of good faith sends it, and the connection ends. What is well formed but cannot be done is answered.

use std::fmt;
use std::sync::Arc;

use evener_core::{Direction, Session};
use evener_ring::virtqueue::{Chain, Element, Malformed, Tables as _};
use evener_wire::{DATA_HEADER_BYTES, DataRequest, Operation, Status, operation_of};

use crate::state::memory::Memory;
use crate::state::sessions::Sessions;

/// Something that no client of good faith does: which rule it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadRequest(pub(crate) &'static str);

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl From<Malformed> for BadRequest {
    fn from(malformed: Malformed) -> Self {
        Self(match malformed {
            Malformed::Index { .. } => "a ring's index moved by more than it has entries",
            Malformed::Head(_) | Malformed::Next(_) => "a descriptor that is not there",
            Malformed::Long => "a chain of more than 1024 descriptors, or a loop",
            Malformed::TableBytes(_) => "an indirect table of a size that there is not",
            Malformed::TableAddress(_) => "an indirect table outside the client's memory",
            Malformed::Nested => "an indirect table that is nested or continued",
            Malformed::Order => "a readable descriptor behind a writable one",
            _ => "a ring that cannot be",
        })
    }
}

/// What came of reading a request.
pub(crate) enum Taken {
    /// It can be done; source and associated data are still to be read, in this order.
    Work(Work),
    /// It is answered at once.
    Refused(Status),
}

/// A request that can be done.
pub(crate) struct Work {
    pub(crate) session: Arc<Session>,
    pub(crate) iv: [u8; 16],
    /// Bytes of the source, with the tag where there is one to check.
    pub(crate) src_bytes: usize,
    pub(crate) aad_bytes: usize,
}

impl Work {
    /// Bytes that a job works on.
    pub(crate) fn input_bytes(&self) -> usize {
        self.src_bytes - self.tag_bytes_in()
    }

    /// Bytes of the tag behind the source.
    pub(crate) fn tag_bytes_in(&self) -> usize {
        let algorithm = self.session.algorithm();
        let checks = algorithm.is_aead() && self.session.direction() == Direction::Decrypt;
        if checks { algorithm.tag_bytes() } else { 0 }
    }
}

/// Largest requests that are taken, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) request_bytes_max: usize,
    pub(crate) aad_bytes_max: usize,
}

/// Reads the head of a request from a chain; `reader` stands before the source afterwards.
pub(crate) fn read(
    chain: &Chain,
    reader: &mut Reader<'_>,
    sessions: &Sessions,
    sizes: Sizes,
) -> Result<Taken, BadRequest> {
    let all = chain.readable().iter().chain(chain.writable());
    let is_held = all.into_iter().all(|element| reader.memory.holds(element));
    if !is_held && !cfg!(mutant = "host_pieces_unchecked") {
        return Err(BadRequest("a descriptor names memory that is not the client's"));
    }
    if total(chain.writable()) == 0 {
        return Err(BadRequest("a request has no space for its status"));
    }
    let mut header = [0; DATA_HEADER_BYTES];
    reader.copy(&mut header)?;
    let Ok(request) = DataRequest::parse(&header) else { return Ok(Taken::Refused(Status::NotSupported)) };
    let lengths = request.lengths();
    let is_whole = lengths.readable <= total(chain.readable()) && lengths.writable <= total(chain.writable());
    if !is_whole && !cfg!(mutant = "host_lengths_unchecked") {
        return Err(BadRequest("a request's lengths are beyond its descriptors"));
    }
    let Some(session) = sessions.get(request.session) else {
        return Ok(Taken::Refused(Status::InvalidSession));
    };
    match parts(&request, session, sizes) {
        Err(status) => Ok(Taken::Refused(status)),
        Ok(mut parts) => {
            if cfg!(mutant = "host_header_twice") {
                Reader::new(reader.memory, chain.readable()).copy(&mut header)?;
                let src_bytes = header[28..32].try_into().expect("four of them");
                parts.src_bytes = bytes(u32::from_le_bytes(src_bytes));
            }
            let mut iv = [0; 16];
            reader.copy(&mut iv[..parts.iv_bytes])?;
            let session = Arc::clone(session);
            Ok(Taken::Work(Work { session, iv, src_bytes: parts.src_bytes, aad_bytes: parts.aad_bytes }))
        }
    }
}

struct Parts {
    iv_bytes: usize,
    src_bytes: usize,
    aad_bytes: usize,
}

/// The parts of a request that fits its session.
fn parts(request: &DataRequest, session: &Session, sizes: Sizes) -> Result<Parts, Status> {
    let algorithm = session.algorithm();
    let tag_bytes = algorithm.tag_bytes();
    if request.opcode != operation_of(algorithm, session.direction()) {
        return Err(Status::NotSupported);
    }
    let (iv, src, aad, fits) = match request.operation {
        Operation::Cipher { iv_bytes, src_bytes, dst_bytes } => {
            (iv_bytes, src_bytes, 0, dst_bytes >= src_bytes)
        }
        Operation::Digest { src_bytes, hash_bytes } => (0, src_bytes, 0, bytes(hash_bytes) == tag_bytes),
        Operation::Aead { iv_bytes, aad_bytes, src_bytes, dst_bytes, tag_bytes: told } => {
            let (src, dst) = (bytes(src_bytes), bytes(dst_bytes));
            let fits = match session.direction() {
                Direction::Encrypt => dst == src + tag_bytes,
                Direction::Decrypt => src == dst + tag_bytes,
            };
            (iv_bytes, src_bytes, aad_bytes, fits && bytes(told) == tag_bytes)
        }
        Operation::Chain { .. } => return Err(Status::NotSupported),
    };
    let is_small = bytes(src) <= sizes.request_bytes_max && bytes(aad) <= sizes.aad_bytes_max
        || cfg!(mutant = "host_request_unlimited");
    let fits = fits || cfg!(mutant = "host_space_unchecked");
    let has_iv = bytes(iv) == algorithm.iv_bytes() || cfg!(mutant = "host_iv_unchecked");
    if !(fits && is_small && has_iv) {
        return Err(Status::Error);
    }
    Ok(Parts { iv_bytes: bytes(iv), src_bytes: bytes(src), aad_bytes: bytes(aad) })
}

fn bytes(told: u32) -> usize {
    usize::try_from(told).unwrap_or(usize::MAX)
}

fn total(elements: &[Element]) -> u64 {
    elements.iter().map(|element| u64::from(element.len)).sum()
}

/// Copies what a chain's readable elements hold, from front to back, each byte once.
pub(crate) struct Reader<'c> {
    memory: &'c Memory,
    elements: &'c [Element],
    /// Bytes of the first element that were read.
    at: u32,
}

impl<'c> Reader<'c> {
    pub(crate) const fn new(memory: &'c Memory, elements: &'c [Element]) -> Self {
        Self { memory, elements, at: 0 }
    }

    /// The next `len` bytes as one element, where they lie in one and are not none.
    pub(crate) fn next_element(&self, len: usize) -> Option<Element> {
        let element =
            self.elements.first().filter(|element| len > 0 && bytes(element.len - self.at) >= len)?;
        let len = u32::try_from(len).ok()?;
        Some(Element { address: element.address + u64::from(self.at), len, is_writable: element.is_writable })
    }

    /// Fills `into` with the next bytes.
    pub(crate) fn copy(&mut self, mut into: &mut [u8]) -> Result<(), BadRequest> {
        while !into.is_empty() {
            let Some((element, rest)) = self.elements.split_first() else {
                return Err(BadRequest("a request ends before what it announced"));
            };
            let here = bytes(element.len - self.at).min(into.len());
            let (now, later) = into.split_at_mut(here);
            if here > 0 && !self.memory.copy_out(element.address + u64::from(self.at), now) {
                return Err(BadRequest("a descriptor names memory that is not the client's"));
            }
            into = later;
            self.at += u32::try_from(here).expect("no more than the element has");
            if self.at == element.len {
                (self.elements, self.at) = (rest, 0);
            }
        }
        Ok(())
    }
}

/// Writes an answer: `parts` one behind the other, then the status into the last byte of all. Returns the bytes written from
/// the front of the chain on. The elements were checked against the same memory when the chain was read.
pub(crate) fn write(memory: &Memory, elements: &[Element], parts: [&[u8]; 2], status: Status) -> u32 {
    let mut written = 0_u32;
    let mut rest = elements.iter().filter(|element| element.len > 0).copied();
    let mut element = rest.next().unwrap_or_default();
    for mut part in parts {
        while !part.is_empty() {
            if element.len == 0 {
                let Some(next) = rest.next() else { break };
                element = next;
            }
            let here = part.len().min(bytes(element.len));
            let (now, later) = part.split_at(here);
            let count = u32::try_from(here).expect("no more than the element has");
            if memory.write(element.address, now) {
                written += count;
            }
            element.address += u64::from(count);
            element.len -= count;
            part = later;
        }
    }
    let last = elements.iter().rev().find(|element| element.len > 0);
    let place = last.map(|last| last.address + u64::from(last.len) - 1);
    written + u32::from(place.is_some_and(|place| memory.write(place, &[status as u8])))
}
