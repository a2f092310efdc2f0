//! A client's memory: sealed files that were mapped, found by the addresses that the client uses.
//!
//! Addresses are cookies: they are compared with the table and never taken for pointers. Bytes are copied, each once, or lent as atomics; the
//! process that shares the memory may change it at any time.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use evener_ring::Region;
use evener_ring::virtqueue::{Element, Tables};
use evener_wire::{MemoryTable, Region as Row};

use crate::state::faults::{Backing, Departed, Faults, NoPages, PAGE, Touch};
use crate::state::users::User;

/// Why memory is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryRefusal {
    /// Another number of files than of regions.
    #[error("{files} files for {regions} regions")]
    Files {
        /// Files that came.
        files: usize,
        /// Regions in the table.
        regions: usize,
    },
    /// A region that ends beyond all addresses.
    #[error("a region ends beyond all addresses")]
    Overflow,
    /// Two regions share addresses.
    #[error("two regions overlap")]
    Overlap,
    /// More than a client may map.
    #[error("{0} bytes of memory are more than a client may map (--client-memory)")]
    TooMuch(u64),
    /// More than all clients of a user may map.
    #[error(
        "{bytes} bytes of memory are more than user {uid} may have mapped with those of its other clients (--user-memory)"
    )]
    TooMuchForUser {
        /// Bytes that were to be mapped.
        bytes: u64,
        /// Whose client it is.
        uid: u32,
    },
    /// A file that cannot be trusted with a mapping.
    #[error("a region's file: {0}")]
    File(io::Error),
}

/// All that a client has mapped.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    spans: Vec<Span>,
    /// What is counted of it; none where there is none.
    faults: Option<Faults>,
}

/// How much may be mapped.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    pub(crate) user: Arc<User>,
    /// Bytes, of one client and of all that the user has.
    pub(crate) bytes_max: u64,
    pub(crate) user_bytes_max: u64,
    /// Bytes that the client has mapped already, which this memory takes the place of.
    pub(crate) replaced_bytes: u64,
    /// Bytes of the user's that the host may make pages for.
    pub(crate) faulted_bytes_max: u64,
}

#[derive(Debug)]
struct Span {
    row: Row,
    backing: Backing,
}

impl Memory {
    /// Maps the regions of a table, whose files came in the same order.
    pub(crate) fn map(
        table: &MemoryTable,
        files: &[File],
        allowance: &Allowance,
    ) -> Result<Self, MemoryRefusal> {
        let rows = table.regions();
        if rows.len() != files.len() {
            return Err(MemoryRefusal::Files { files: files.len(), regions: rows.len() });
        }
        check_addresses(rows)?;
        let bytes = rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.size_bytes));
        if bytes > allowance.bytes_max && !cfg!(mutant = "host_memory_unlimited") {
            return Err(MemoryRefusal::TooMuch(bytes));
        }
        let user = &allowance.user;
        let is_mapped =
            user.held.mapped_bytes.take(bytes, allowance.user_bytes_max, allowance.replaced_bytes);
        if !is_mapped && !cfg!(mutant = "host_user_memory_unlimited") {
            user.refused.add(1);
            return Err(MemoryRefusal::TooMuchForUser { bytes, uid: user.uid });
        }
        // From here on it is given back when this goes, whatever comes.
        let reserved = Reserved { user, bytes };
        let mut spans: Vec<Span> = Vec::with_capacity(rows.len());
        for (row, file) in rows.iter().zip(files) {
            let region = Region::of_peer(file, row.offset_bytes, row.size_bytes);
            let region = Arc::new(region.map_err(MemoryRefusal::File)?);
            let known: Vec<_> = spans.iter().map(|span| &span.backing).collect();
            let backing = Backing::of(file, &known, region, row.offset_bytes);
            spans.push(Span { row: *row, backing });
        }
        let memory =
            Self { spans, faults: Some(Faults::new(Arc::clone(user), allowance.faulted_bytes_max / PAGE)) };
        std::mem::forget(reserved);
        Ok(memory)
    }

    /// Counts that a span is about to be touched, at once or later.
    fn touch(&self, span: &Span, at: usize, len: usize) -> Touch {
        self.faults.as_ref().map_or(Touch::Counted, |faults| faults.touch(&span.backing, at, len))
    }

    /// The same; `false` where it is not to be touched now.
    fn may_touch(&self, span: &Span, at: usize, len: usize) -> bool {
        self.touch(span, at, len) != Touch::Refused
    }

    /// Takes over what was counted in the memory that this one takes the place of.
    pub(crate) fn take_over(&self, before: &Self) {
        if let (Some(faults), Some(of_before)) = (&self.faults, &before.faults) {
            faults.take_over(&self.backings(), (of_before, &before.backings()));
        }
    }

    /// Why the client is to go, where its memory has no pages and is given none.
    pub(crate) fn refusal(&self) -> Option<NoPages> {
        self.faults.as_ref().and_then(Faults::refusal)
    }

    fn backings(&self) -> Vec<&Backing> {
        self.spans.iter().map(|span| &span.backing).collect()
    }

    /// Hands over the count of what the host made in it, before it goes.
    pub(crate) fn depart(&self, departed: &mut Departed) {
        if let Some(faults) = &self.faults {
            departed.add(faults, &self.backings());
        }
    }

    /// Bytes that are mapped.
    pub(crate) fn bytes(&self) -> u64 {
        self.spans.iter().map(|span| span.row.size_bytes).sum()
    }

    /// The region and the offset in it that a user address stands for, where at least `len` bytes follow in the region.
    pub(crate) fn by_user(&self, address: u64, len: usize) -> Option<(Arc<Region>, usize)> {
        let (span, at) = self.find(address, len, |row| row.user_address)?;
        self.may_touch(span, at, len).then(|| (Arc::clone(span.backing.region()), at))
    }

    /// Whether all bytes of an element are the client's. An element without bytes lies nowhere.
    pub(crate) fn holds(&self, element: &Element) -> bool {
        let len = usize::try_from(element.len).unwrap_or(usize::MAX);
        len == 0 || self.find(element.address, len, |row| row.guest_address).is_some()
    }

    /// Copies bytes in; `false` where some of them would not be the client's.
    #[must_use]
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> bool {
        let place = self.find(address, bytes.len(), |row| row.guest_address);
        place.is_some_and(|(span, at)| {
            self.may_touch(span, at, bytes.len()) && span.backing.region().copy_in(at, bytes).is_ok()
        })
    }

    /// The bytes of an element for later, where all are the client's and in one region, and their pages are counted.
    pub(crate) fn lend(&self, element: &Element) -> Option<&[AtomicU8]> {
        let len = usize::try_from(element.len).ok()?;
        let (span, at) = self.find(element.address, len, |row| row.guest_address)?;
        let is_counted = self.touch(span, at, len) == Touch::Counted || cfg!(mutant = "host_lends_uncounted");
        span.backing.region().bytes(at, len).ok().filter(|_| is_counted)
    }

    fn find(&self, address: u64, len: usize, first: impl Fn(&Row) -> u64) -> Option<(&Span, usize)> {
        let len = u64::try_from(len).ok()?;
        let at = |span: &Span| {
            let offset = address.checked_sub(first(&span.row))?;
            let fits = offset.checked_add(len)? <= span.row.size_bytes;
            usize::try_from(offset).ok().filter(|_| fits)
        };
        self.spans.iter().find_map(|span| Some((span, at(span)?)))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(faults) = &self.faults {
            faults.user().held.mapped_bytes.give_back(self.bytes());
        }
    }
}

/// Bytes that were taken of a user's share and are given back where nothing is mapped.
struct Reserved<'u> {
    user: &'u User,
    bytes: u64,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.user.held.mapped_bytes.give_back(self.bytes);
    }
}

impl Tables for Memory {
    fn copy_out(&self, address: u64, into: &mut [u8]) -> bool {
        let place = self.find(address, into.len(), |row| row.guest_address);
        place.is_some_and(|(span, at)| {
            self.may_touch(span, at, into.len()) && span.backing.region().copy_out(at, into).is_ok()
        })
    }
}

fn check_addresses(rows: &[Row]) -> Result<(), MemoryRefusal> {
    for first in [|row: &Row| row.guest_address, |row: &Row| row.user_address] {
        let mut ranges = Vec::with_capacity(rows.len());
        for row in rows {
            let end = first(row).checked_add(row.size_bytes).ok_or(MemoryRefusal::Overflow)?;
            ranges.push((first(row), end));
        }
        ranges.sort_unstable();
        let overlap = ranges.windows(2).any(|pair| pair[0].1 > pair[1].0);
        if overlap && !cfg!(mutant = "host_overlap") {
            return Err(MemoryRefusal::Overlap);
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn table(rows: &[[u64; 4]]) -> MemoryTable {
        let row = |[guest_address, size_bytes, user_address, offset_bytes]: &[u64; 4]| Row {
            guest_address: *guest_address,
            size_bytes: *size_bytes,
            user_address: *user_address,
            offset_bytes: *offset_bytes,
        };
        MemoryTable::new(&rows.iter().map(row).collect::<Vec<_>>()).unwrap()
    }

    pub(crate) fn map(rows: &[[u64; 4]]) -> Result<Memory, MemoryRefusal> {
        let (_region, file) = Region::create(c"memory", 16_384).unwrap();
        let files: Vec<File> = rows.iter().map(|_| file.try_clone().unwrap()).collect();
        Memory::map(&table(rows), &files, &allowance())
    }

    fn allowance() -> Allowance {
        Allowance {
            user: Arc::default(),
            bytes_max: 1 << 20,
            user_bytes_max: 1 << 20,
            replaced_bytes: 0,
            faulted_bytes_max: 1 << 20,
        }
    }

    #[test]
    fn an_address_is_found_in_its_region_and_not_beyond() {
        let memory = map(&[[0x1000, 4096, 0x7000_0000, 0], [0x4000, 8192, 0x8000_0000, 4096]]).unwrap();
        assert!(memory.write(0x5FFE, b"hi"));
        assert!(!memory.write(0x5FFF, b"hi"));
        assert!(!memory.write(0x1FFF, b"hi"), "two regions are not joined");
        assert!(!memory.write(0xFFF, b"h"));
        assert!(!memory.write(u64::MAX, b"hi"));
        let (region, at) = memory.by_user(0x8000_1FFE, 2).unwrap();
        let mut seen = [0; 2];
        region.copy_out(at, &mut seen).unwrap();
        assert_eq!((&seen, at), (b"hi", 8190));
        assert!(memory.by_user(0x4000, 1).is_none(), "user addresses are not guest addresses");
        assert_eq!(memory.bytes(), 12_288);
    }

    #[test]
    fn tables_that_cannot_be_are_refused() {
        let refused = |rows: &[[u64; 4]]| map(rows).map(drop).unwrap_err();
        assert!(matches!(refused(&[[0, 8192, 0, 0], [4096, 4096, 1 << 32, 0]]), MemoryRefusal::Overlap));
        assert!(matches!(refused(&[[0, 4096, 0, 0], [8192, 4096, 4095, 0]]), MemoryRefusal::Overlap));
        assert!(matches!(refused(&[[u64::MAX - 4094, 4096, 0, 0]]), MemoryRefusal::Overflow));
        assert!(matches!(refused(&[[0, 4096, u64::MAX, 0]]), MemoryRefusal::Overflow));
        assert!(matches!(refused(&[[0, (1 << 20) + 1, 0, 0]]), MemoryRefusal::TooMuch(1_048_577)));
        assert!(matches!(refused(&[[0, 20_480, 0, 0]]), MemoryRefusal::File(_)));
        let none = Memory::map(&table(&[[0, 4096, 0, 0]]), &[], &allowance()).map(drop).unwrap_err();
        assert!(matches!(none, MemoryRefusal::Files { files: 0, regions: 1 }));
    }

    #[test]
    fn pages_beyond_the_users_share_are_copied_at_once_and_not_lent_for_later() {
        let (region, file) = Region::create(c"memory", 16_384).unwrap();
        region.copy_in(0, &[7; 12_288]).unwrap();
        let allowance = Allowance { faulted_bytes_max: 4096, ..allowance() };
        let memory = Memory::map(&table(&[[0, 16_384, 0, 0]]), &[file], &allowance).unwrap();
        let lends = |address| memory.lend(&Element { address, len: 4096, is_writable: true }).is_some();
        assert!(lends(0) && lends(0), "its only page");
        // The client has pages there, and may take them away at any time.
        assert!(!lends(4096) && memory.copy_out(4096, &mut [0; 4096]) && memory.write(8192, &[1; 4096]));
        assert!(memory.refusal().is_none() && !memory.write(12_288, &[1]) && memory.refusal().is_some());
    }

    #[test]
    fn what_a_users_clients_map_together_has_a_limit_and_comes_back() {
        let (_region, file) = Region::create(c"memory", 16_384).unwrap();
        let mut allowance = Allowance { user_bytes_max: 20_000, ..allowance() };
        let map = |allowance: &Allowance| {
            Memory::map(&table(&[[0, 16_384, 0, 0]]), &[file.try_clone().unwrap()], allowance)
        };
        let first = map(&allowance).unwrap();
        let refused = map(&allowance).map(drop).unwrap_err();
        assert!(matches!(refused, MemoryRefusal::TooMuchForUser { bytes: 16_384, .. }), "{refused}");
        allowance.replaced_bytes = first.bytes();
        let second = map(&allowance).unwrap();
        drop((first, second));
        assert_eq!(allowance.user.held.mapped_bytes.value(), 0);
        let unsealed = Memory::map(&table(&[[0, 20_480, 0, 0]]), &[file.try_clone().unwrap()], &allowance);
        assert!(unsealed.is_err() && allowance.user.held.mapped_bytes.value() == 0);
    }
}
