//! A chain of elements: where the data of one request lies.

use super::{ELEMENTS_MAX, Malformed, NEXT, TABLE, WRITE};

/// Bytes of a descriptor, in the queue and in a table.
pub const DESCRIPTOR_BYTES: usize = 16;

/// A span of the driver's memory, as its address says. Whether it is one is for the memory's owner to check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// Where it begins, in the addresses that the two sides agreed on (a guest's physical ones).
    pub address: u64,
    /// Its length in bytes.
    pub len: u32,
    /// Whether the device writes it; it reads it otherwise.
    pub is_writable: bool,
}

/// The driver's memory, for reading a table of descriptors out of it.
pub trait Tables {
    /// Copies the bytes at `address`, each once; `false` where some of them are not the driver's.
    fn copy_out(&self, address: u64, into: &mut [u8]) -> bool;
}

/// A driver that has no tables.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTables;

impl Tables for NoTables {
    fn copy_out(&self, _address: u64, _into: &mut [u8]) -> bool {
        false
    }
}

/// One request as the device took it. The memory is kept from request to request.
#[derive(Debug)]
pub struct Chain {
    head: u16,
    elements: Vec<Element>,
}

impl Chain {
    /// Makes an empty chain, with space for the longest.
    #[must_use]
    pub fn new() -> Self {
        Self { head: 0, elements: Vec::with_capacity(ELEMENTS_MAX) }
    }

    /// Returns its name, to give it back with.
    #[must_use]
    pub const fn head(&self) -> u16 {
        self.head
    }

    /// Lends the elements that the device reads.
    #[must_use]
    pub fn readable(&self) -> &[Element] {
        &self.elements[..self.readable_count()]
    }

    /// Lends the elements that the device writes.
    #[must_use]
    pub fn writable(&self) -> &[Element] {
        &self.elements[self.readable_count()..]
    }

    fn readable_count(&self) -> usize {
        self.elements.partition_point(|element| !element.is_writable)
    }

    pub(crate) fn begin(&mut self, head: u16) {
        self.head = head;
        self.elements.clear();
    }

    pub(crate) fn push(&mut self, element: Element) -> Result<(), Malformed> {
        if self.elements.len() >= ELEMENTS_MAX {
            return Err(Malformed::Long);
        }
        if !element.is_writable && self.elements.last().is_some_and(|last| last.is_writable) {
            return Err(Malformed::Order);
        }
        self.elements.push(element);
        Ok(())
    }
}

impl Default for Chain {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes a table of `elements` as the device reads it, each followed by the next.
///
/// # Panics
///
/// Where `into` has not exactly [`DESCRIPTOR_BYTES`] for each of at most [`ELEMENTS_MAX`] elements.
pub fn write_table(elements: &[Element], into: &mut [u8]) {
    assert!(
        elements.len() <= ELEMENTS_MAX && into.len() == elements.len() * DESCRIPTOR_BYTES,
        "a table has space for its elements"
    );
    for (place, (element, bytes)) in
        (1_u16..).zip(elements.iter().zip(into.chunks_exact_mut(DESCRIPTOR_BYTES)))
    {
        let has_next = usize::from(place) < elements.len();
        let flags = if has_next { NEXT } else { 0 } | if element.is_writable { WRITE } else { 0 };
        bytes[..8].copy_from_slice(&element.address.to_le_bytes());
        bytes[8..12].copy_from_slice(&element.len.to_le_bytes());
        bytes[12..14].copy_from_slice(&flags.to_le_bytes());
        bytes[14..].copy_from_slice(&(if has_next { place } else { 0 }).to_le_bytes());
    }
}

/// A descriptor as it was copied out of shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Copied {
    pub(crate) element: Element,
    /// Whether the element is a table with the rest of the chain.
    pub(crate) is_table: bool,
    /// Where the chain goes on.
    pub(crate) next: Option<u16>,
}

impl Copied {
    pub(crate) const fn new((address, len): (u64, u32), flags: u16, next: u16) -> Self {
        Self {
            element: Element { address, len, is_writable: flags & WRITE != 0 },
            is_table: flags & TABLE != 0,
            next: if flags & NEXT != 0 { Some(next) } else { None },
        }
    }

    pub(crate) fn from_bytes(bytes: &[u8; DESCRIPTOR_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *bytes;
        let address = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let len = u32::from_le_bytes([i, j, k, l]);
        Self::new((address, len), u16::from_le_bytes([m, n]), u16::from_le_bytes([o, p]))
    }
}
