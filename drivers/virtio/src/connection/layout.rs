//! Where everything lies in the region that a connection shares: the queue's parts, a slot per request (header, IV, status, table), of a device
//! the control queue, and the pool of data.

use evener_ring::OutOfRegion;
use evener_wire::DATA_HEADER_BYTES;

/// What the first byte of the region is called on the wire, for descriptors and for the ring's parts: a number, no pointer of this
/// process. Not 0, which some back ends take for no address.
pub(crate) const BASE: u64 = 1 << 20;

/// Where a queue lies in the region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    /// Its entries.
    pub(crate) size: u16,
    /// Offsets of its descriptors, its available ring and its used ring.
    pub(crate) places: [usize; 3],
}

impl Parts {
    /// What the three places are called on the wire.
    pub(crate) fn addresses(&self) -> [u64; 3] {
        self.places.map(|place| BASE + place as u64)
    }
}

/// Requests of one connection that are under way at the same time: two batches of sixteen, the lanes of a multi-buffer core.
pub(crate) const DEPTH: usize = 32;

/// Bytes for data: a full queue of 64 KiB, or two requests of 1 MiB with padding or tag.
pub(crate) const POOL_BYTES: usize = (4 << 20) + (64 << 10);

/// Longest data of one request, both ways together: half of the pool, so that two are under way.
pub(crate) const DATA_BYTES_MAX: usize = POOL_BYTES / 2;

pub(crate) const PARTS: Parts = Parts { size: 64, places: [0, 1024, 2048] };
pub(crate) const SLOTS_AT: usize = 4096;
pub(crate) const SLOT_BYTES: usize = 256;
pub(crate) const IV_AT: usize = DATA_HEADER_BYTES;
pub(crate) const STATUS_AT: usize = 96;
pub(crate) const TABLE_AT: usize = 128;
/// The control queue of a device; of a host nothing.
pub(crate) const CONTROL_AT: usize = SLOTS_AT + DEPTH * SLOT_BYTES;
pub(crate) const CONTROL_BYTES: usize = 4096;
pub(crate) const POOL_AT: usize = CONTROL_AT + CONTROL_BYTES;
pub(crate) const REGION_BYTES: usize = POOL_AT + POOL_BYTES;

/// What a device reaches at first; space for three requests of 16 KiB. Each page that is lent is made, cleared, pinned and given back: 18 us of
/// a core as slow as paper 000's, 19 ms for all (docs/design/virtio.md).
#[cfg(target_arch = "x86_64")]
pub(crate) const LENT_FIRST: usize = 64 << 10;
pub(crate) const PAGE: usize = 4096;
const _: () = assert!(POOL_AT % PAGE == 0 && REGION_BYTES % PAGE == 0);

/// A slot lies inside the region, and its data inside its span.
pub(crate) fn inside(result: Result<(), OutOfRegion>) {
    result.expect("slots and spans lie inside the region");
}
