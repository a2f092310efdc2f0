//! Payloads of the messages about memory and rings.

use crate::WireError;
use crate::bytes::{put, put_all, u32_at, u64_at};

/// Most regions of a memory table (the protocol's own limit without further features).
pub const REGION_COUNT_MAX: usize = 8;

/// Reads a payload that is one number.
///
/// # Errors
///
/// Another length than eight bytes.
pub fn number(payload: &[u8]) -> Result<u64, WireError> {
    exact(payload, "a number", 8)?;
    Ok(u64_at(payload, 0))
}

/// One piece of a client's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Address by which descriptors name its first byte.
    pub guest_address: u64,
    /// Length in bytes.
    pub size_bytes: u64,
    /// Address by which [`RingAddresses`] name its first byte: a cookie, never a pointer.
    pub user_address: u64,
    /// Where it begins in the file that came with it, in bytes.
    pub offset_bytes: u64,
}

/// All of a client's memory; the files come beside it, in the same order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryTable {
    regions: [Region; REGION_COUNT_MAX],
    count: u8,
}

impl MemoryTable {
    /// A table of these regions; `None` where there are more than [`REGION_COUNT_MAX`].
    #[must_use]
    pub fn new(regions: &[Region]) -> Option<Self> {
        let mut table = Self { count: u8::try_from(regions.len()).ok()?, ..Self::default() };
        table.regions.get_mut(..regions.len())?.copy_from_slice(regions);
        Some(table)
    }

    /// The regions.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        &self.regions[..usize::from(self.count)]
    }

    /// Reads a table: count, four bytes of padding, 32 bytes per region.
    ///
    /// # Errors
    ///
    /// Too many regions, or a length that does not fit their count.
    pub fn parse(payload: &[u8]) -> Result<Self, WireError> {
        if payload.len() < TABLE_HEAD_BYTES {
            exact(payload, "a memory table", TABLE_HEAD_BYTES)?;
        }
        let count = u32_at(payload, 0);
        let few = u8::try_from(count).ok().filter(|few| usize::from(*few) <= REGION_COUNT_MAX);
        let few = few.ok_or(WireError::Regions(count))?;
        let count = usize::from(few);
        exact(payload, "a memory table", TABLE_HEAD_BYTES + count * REGION_BYTES)?;
        let mut table = Self { count: few, ..Self::default() };
        for (index, region) in table.regions[..count].iter_mut().enumerate() {
            let field = |place: usize| u64_at(payload, TABLE_HEAD_BYTES + index * REGION_BYTES + place * 8);
            *region = Region {
                guest_address: field(0),
                size_bytes: field(1),
                user_address: field(2),
                offset_bytes: field(3),
            };
        }
        Ok(table)
    }

    /// The table as a payload.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; TABLE_HEAD_BYTES];
        put(&mut bytes, 0, u32::from(self.count).to_ne_bytes());
        for region in self.regions() {
            let fields = [region.guest_address, region.size_bytes, region.user_address, region.offset_bytes];
            fields.iter().for_each(|field| bytes.extend_from_slice(&field.to_ne_bytes()));
        }
        bytes
    }
}

/// A ring and a number: its entries, its next entry, or whether it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingState {
    /// Which ring of the connection.
    pub ring: u32,
    /// The number.
    pub number: u32,
}

impl RingState {
    /// Reads the eight bytes.
    ///
    /// # Errors
    ///
    /// Another length.
    pub fn parse(payload: &[u8]) -> Result<Self, WireError> {
        exact(payload, "a ring's state", 8)?;
        Ok(Self { ring: u32_at(payload, 0), number: u32_at(payload, 4) })
    }

    /// The eight bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        put_all!(bytes, to_ne_bytes, 0: self.ring, 4: self.number);
        bytes
    }
}

/// Where the parts of a ring lie, in user addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingAddresses {
    /// Which ring of the connection.
    pub ring: u32,
    /// Bit 0: writes are to be logged; this wire never offers that.
    pub flags: u32,
    /// Descriptor table.
    pub descriptors: u64,
    /// Used ring.
    pub used: u64,
    /// Available ring.
    pub available: u64,
    /// Address of the log; not used.
    pub log: u64,
}

impl RingAddresses {
    /// Reads the 40 bytes.
    ///
    /// # Errors
    ///
    /// Another length.
    pub fn parse(payload: &[u8]) -> Result<Self, WireError> {
        exact(payload, "a ring's addresses", 40)?;
        Ok(Self {
            ring: u32_at(payload, 0),
            flags: u32_at(payload, 4),
            descriptors: u64_at(payload, 8),
            used: u64_at(payload, 16),
            available: u64_at(payload, 24),
            log: u64_at(payload, 32),
        })
    }

    /// The 40 bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 40] {
        let mut bytes = [0; 40];
        put_all!(
            bytes, to_ne_bytes,
            0: self.ring, 4: self.flags, 8: self.descriptors, 16: self.used, 24: self.available,
            32: self.log
        );
        bytes
    }
}

/// Which ring a file descriptor is for, and whether one comes at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingDescriptor {
    /// Which ring of the connection, up to 255.
    pub ring: u8,
    /// Whether a descriptor stands beside the message; without one the ring is to be polled.
    pub has_file: bool,
}

impl RingDescriptor {
    /// Reads the number: ring in the low byte, bit 8 where no descriptor comes.
    ///
    /// # Errors
    ///
    /// Another length than eight bytes.
    pub fn parse(payload: &[u8]) -> Result<Self, WireError> {
        let number = number(payload)?;
        let [ring, ..] = number.to_le_bytes();
        Ok(Self { ring, has_file: number & NO_FILE == 0 })
    }

    /// The eight bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 8] {
        (u64::from(self.ring) | if self.has_file { 0 } else { NO_FILE }).to_ne_bytes()
    }
}

/// Refuses what is not of this length.
pub(crate) const fn exact(payload: &[u8], what: &'static str, needed: usize) -> Result<(), WireError> {
    if payload.len() == needed {
        return Ok(());
    }
    Err(WireError::Length { what, needed, given: payload.len() })
}

const TABLE_HEAD_BYTES: usize = 8;
const REGION_BYTES: usize = 32;
const NO_FILE: u64 = 1 << 8;

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_one_region_has_forty_bytes() {
        #[rustfmt::skip]
        let image = [
            1, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0x10, 0, 0, 0, 0, 0,
            0, 0x20, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0xF0, 0x7F, 0, 0,
            0, 0x10, 0, 0, 0, 0, 0, 0,
        ];
        let region = Region {
            guest_address: 0x10_0000,
            size_bytes: 0x2000,
            user_address: 0x7FF0_0000_0000,
            offset_bytes: 0x1000,
        };
        let table = MemoryTable::new(&[region]).unwrap();
        assert_eq!(MemoryTable::parse(&image), Ok(table));
        assert_eq!(table.to_bytes(), image);
        assert_eq!(table.regions(), [region]);
    }

    #[test]
    fn a_table_whose_length_does_not_fit_its_count_is_refused() {
        let mut image = MemoryTable::new(&[Region::default(); 2]).unwrap().to_bytes();
        image.pop();
        let error = WireError::Length { what: "a memory table", needed: 72, given: 71 };
        assert_eq!(MemoryTable::parse(&image), Err(error));
        image[0] = 9;
        assert_eq!(MemoryTable::parse(&image), Err(WireError::Regions(9)));
        image[3] = 0xFF;
        assert_eq!(MemoryTable::parse(&image), Err(WireError::Regions(0xFF00_0009)));
        assert!(MemoryTable::parse(&[0; 7]).is_err());
        assert_eq!(MemoryTable::new(&[Region::default(); 9]), None);
    }

    #[test]
    fn the_addresses_of_a_ring_stand_in_the_protocols_order() {
        let mut image = [0; 40];
        (image[0], image[8], image[16], image[24], image[32]) = (3, 0xD0, 0xE0, 0xA0, 0xB0);
        let addresses =
            RingAddresses { ring: 3, flags: 0, descriptors: 0xD0, used: 0xE0, available: 0xA0, log: 0xB0 };
        assert_eq!(RingAddresses::parse(&image), Ok(addresses));
        assert_eq!(addresses.to_bytes(), image);
        assert!(RingAddresses::parse(&image[..39]).is_err());
    }

    #[test]
    fn bit_eight_says_that_no_descriptor_comes() {
        let read = |bytes: [u8; 8]| RingDescriptor::parse(&bytes).unwrap();
        assert_eq!(read([2, 0, 0, 0, 0, 0, 0, 0]), RingDescriptor { ring: 2, has_file: true });
        assert_eq!(read([2, 1, 0, 0, 0, 0, 0, 0]), RingDescriptor { ring: 2, has_file: false });
        assert_eq!(RingDescriptor { ring: 2, has_file: false }.to_bytes(), [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(RingState { ring: 1, number: 256 }.to_bytes(), [1, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(RingState::parse(&[1, 0, 0, 0, 0, 1, 0, 0]), Ok(RingState { ring: 1, number: 256 }));
    }
}
