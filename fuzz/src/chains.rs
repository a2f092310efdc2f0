//! Descriptor chains as a hostile driver may write them: bytes -> ring in shared memory -> the device's side takes what is
//! offered, and a second reader that knows only the specification (VIRTIO 1.2, 2.7) must see the same.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use evener_ring::Region;
use evener_ring::virtqueue::{Chain, Device, Element, Events, Mapped, Tables};

/// Offsets of descriptors, available ring and used ring; what is left of the region holds tables.
const PARTS: [usize; 3] = [0, 4096, 8192];
const REGION_BYTES: usize = 16_384;

static REGION: LazyLock<Mutex<Arc<Region>>> = LazyLock::new(|| {
    let (region, _file) = Region::create(c"fuzz", REGION_BYTES).expect("the system has memfds");
    Mutex::new(Arc::new(region))
});

/// The memory at one moment, with the addresses that the device asks for.
struct Memory(Vec<u8>);

impl Tables for Memory {
    fn copy_out(&self, address: u64, into: &mut [u8]) -> bool {
        let start = usize::try_from(address).ok();
        let from = start.and_then(|start| self.0.get(start..)?.get(..into.len()));
        from.is_some_and(|from| {
            into.copy_from_slice(from);
            true
        })
    }
}

/// The first bytes choose size, events and position; the others are written into the memory, element by element.
pub fn host_chains(bytes: &[u8]) {
    let Some((&[kind, low, high], writes)) = bytes.split_first_chunk() else { return };
    let (size, position) = (1_u16 << (kind % 8), u16::from_le_bytes([low, high]));
    let events = if kind & 0x80 == 0 { Events::Index } else { Events::Flags };
    let region = REGION.lock().unwrap_or_else(PoisonError::into_inner);
    let memory = filled(&region, writes);
    let queue_memory =
        Mapped::new(size, PARTS.map(|at| (Arc::clone(&region), at))).expect("the parts lie inside");
    let mut device =
        Device::starting_at(queue_memory, events, position).expect("a queue's slices are of one size");
    let offered = memory.half(PARTS[1] + 2).wrapping_sub(position);
    let mut chain = Chain::new();
    for taken in 0..=size {
        match device.take(&memory, &mut chain) {
            Ok(true) => {
                assert!(taken < offered && offered <= size);
                let entry = usize::from(position.wrapping_add(taken) % size);
                let head = memory.half(PARTS[1] + 4 + 2 * entry);
                assert_eq!(chain.head(), head);
                assert_eq!(memory.elements(head, size).as_deref(), Some(&*elements(&chain)));
                device.give_back(head, taken.into());
            }
            Ok(false) => {
                assert_eq!(taken, offered, "all that was offered is taken");
                break;
            }
            Err(_) => {
                let entry = usize::from(position.wrapping_add(taken) % size);
                let head = memory.half(PARTS[1] + 4 + 2 * entry);
                assert!(offered > size || memory.elements(head, size).is_none(), "a chain that can be");
                break;
            }
        }
    }
    device.publish();
    _ = device.listen();
}

fn elements(chain: &Chain) -> Vec<Element> {
    assert!(chain.readable().iter().all(|element| !element.is_writable));
    assert!(chain.writable().iter().all(|element| element.is_writable));
    [chain.readable(), chain.writable()].concat()
}

/// Writes records of two bytes place, one byte length, content into the empty region, and returns what it holds then.
fn filled(region: &Region, mut writes: &[u8]) -> Memory {
    region.wipe(0, REGION_BYTES).expect("the whole region");
    while let Some((&[low, high, len], rest)) = writes.split_first_chunk() {
        let (content, later) = rest.split_at(usize::from(len).min(rest.len()));
        let at = usize::from(u16::from_le_bytes([low, high])) % (REGION_BYTES - 256);
        region.copy_in(at, content).expect("inside the region");
        writes = later;
    }
    let mut memory = vec![0; REGION_BYTES];
    region.copy_out(0, &mut memory).expect("the whole region");
    Memory(memory)
}

/// A descriptor by the specification's names: addr, len, flags, next.
type Descriptor = (u64, u32, u16, u16);

impl Memory {
    fn half(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.0[at..at + 2].try_into().expect("two bytes"))
    }

    fn descriptor(bytes: &[u8]) -> Descriptor {
        let number = |at: usize, len: usize| {
            bytes[at..at + len].iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte))
        };
        let half = |at| u16::try_from(number(at, 2)).expect("two bytes");
        (number(0, 8), u32::try_from(number(8, 4)).expect("four bytes"), half(12), half(14))
    }

    /// The elements of the chain at `head`; none where the specification, or our limit of 1024 elements, forbids it.
    fn elements(&self, head: u16, size: u16) -> Option<Vec<Element>> {
        let (mut list, mut at, mut elements) = (&self.0[..usize::from(size) * 16], head, Vec::new());
        let mut is_in_table = false;
        loop {
            let (address, len, flags, next) = Self::descriptor(list.get(usize::from(at) * 16..)?.get(..16)?);
            if flags & 4 != 0 {
                let is_table = !is_in_table && flags & 1 == 0 && len > 0 && len % 16 == 0 && len <= 1024 * 16;
                let start = usize::try_from(address).ok().filter(|_| is_table)?;
                list = self.0.get(start..)?.get(..usize::try_from(len).ok()?)?;
                (is_in_table, at) = (true, 0);
                continue;
            }
            let element = Element { address, len, is_writable: flags & 2 != 0 };
            let is_behind =
                elements.last().is_some_and(|last: &Element| last.is_writable) && !element.is_writable;
            if is_behind || elements.len() == 1024 {
                return None;
            }
            elements.push(element);
            if flags & 1 == 0 {
                return Some(elements);
            }
            at = next;
        }
    }
}
