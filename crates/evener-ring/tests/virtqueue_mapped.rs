//! The virtqueue in memory that a peer can write to: bytes of a hostile one, and a device from other hands.
#![cfg(all(not(any(loom, miri)), target_pointer_width = "64"))]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs::File;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::sync::Arc;

use evener_ring::virtqueue::{
    Chain, Device, Driver, Element, Events, Mapped, Misfit, Tables, part_bytes, write_table,
};
use evener_ring::{OutOfRegion, Region};
use proptest::prelude::*;
use virtio_queue::{Queue, QueueT as _};
use vm_memory::{Bytes as _, FileOffset, GuestAddress, GuestMemoryMmap};

/// Offsets of descriptors, available ring and used ring in a region of 64 KiB, for queues up to 256 entries.
const PARTS: [usize; 3] = [0, 8192, 16384];
const REGION_BYTES: usize = 65_536;
const TABLES_AT: u64 = 32_768;

fn queue(region: &Arc<Region>, size: u16) -> Mapped {
    Mapped::new(size, PARTS.map(|at| (region.clone(), at))).unwrap()
}

fn region() -> (Arc<Region>, File) {
    let (region, file) = Region::create(c"test", REGION_BYTES).unwrap();
    (Arc::new(region), file)
}

struct Addresses<'r>(&'r Region);

impl Tables for Addresses<'_> {
    fn copy_out(&self, address: u64, into: &mut [u8]) -> bool {
        usize::try_from(address).is_ok_and(|at| self.0.copy_out(at, into).is_ok())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn neither_side_panics_whatever_stands_in_the_memory(
        writes in prop::collection::vec((0..40_000_usize, prop::collection::vec(any::<u8>(), 1..40)), 0..40),
        heads in prop::collection::vec((0..9_u16, any::<u16>(), 0..6_u16), 0..9),
        offered in 0..9_u16,
        by_index in any::<bool>(),
    ) {
        let (region, _file) = region();
        let events = if by_index { Events::Index } else { Events::Flags };
        let mut driver = Driver::new(queue(&region, 8), events).unwrap();
        let mut device = Device::starting_at(queue(&region, 8), events, 0).unwrap();
        while driver.add_table(TABLES_AT, 5).is_some() {}
        driver.publish();
        for (at, bytes) in &writes {
            region.copy_in(*at, bytes).unwrap();
        }
        for (at, (head, next, flags)) in heads.iter().enumerate() {
            region.copy_in(PARTS[1] + 4 + 2 * at, &head.to_le_bytes()).unwrap();
            region.copy_in(16 * at + 12, &flags.to_le_bytes()).unwrap();
            region.copy_in(16 * at + 14, &(next % 9).to_le_bytes()).unwrap();
        }
        region.copy_in(PARTS[1] + 2, &offered.to_le_bytes()).unwrap();
        let mut chain = Chain::new();
        while let Ok(true) = device.take(&Addresses(&region), &mut chain) {
            prop_assert!(chain.readable().len() + chain.writable().len() <= 64);
            device.give_back(chain.head(), 1);
        }
        device.publish();
        let mut taken = 0;
        while let Ok(Some(used)) = driver.take() {
            prop_assert!(used.head < 8);
            taken += 1;
        }
        prop_assert!(taken <= 8);
    }
}

#[test]
fn parts_outside_the_region_or_not_aligned_make_no_queue() {
    let (region, _file) = region();
    let at = |parts: [usize; 3], size| Mapped::new(size, parts.map(|at| (region.clone(), at))).map(drop);
    assert_eq!(at(PARTS, 256), Ok(()));
    assert_eq!(at(PARTS, 255), Err(Misfit));
    assert_eq!(at(PARTS, 0), Err(Misfit));
    assert_eq!(at([8, 8192, 16384], 256), Err(Misfit));
    assert_eq!(at([0, 8193, 16384], 256), Err(Misfit));
    assert_eq!(at([0, 8192, 16386], 256), Err(Misfit));
    let [descriptors, available, used] = part_bytes(256);
    assert_eq!([descriptors, available, used], [4096, 518, 2054]);
    assert_eq!(at([REGION_BYTES - descriptors, 0, 0], 256), Ok(()));
    assert_eq!(at([REGION_BYTES - descriptors + 16, 0, 0], 256), Err(Misfit));
    assert_eq!(at([0, REGION_BYTES - available, 0], 256), Ok(()));
    assert_eq!(at([0, REGION_BYTES - available + 2, 0], 256), Err(Misfit));
    assert_eq!(at([0, 0, REGION_BYTES - used - 2], 256), Ok(()));
    assert_eq!(at([0, 0, REGION_BYTES - used + 2], 256), Err(Misfit));
    assert_eq!(at([usize::MAX - 15, 0, 0], 256), Err(Misfit));
}

#[test]
fn spans_outside_a_region_are_neither_read_nor_written() {
    let (region, _file) = region();
    let mut bytes = [7; 32];
    for at in [REGION_BYTES - 31, REGION_BYTES, usize::MAX] {
        assert_eq!(region.copy_in(at, &bytes), Err(OutOfRegion));
        assert_eq!(region.copy_out(at, &mut bytes), Err(OutOfRegion));
        assert_eq!(region.wipe(at, 32), Err(OutOfRegion));
    }
    region.copy_in(REGION_BYTES - 32, &bytes).unwrap();
    region.wipe(REGION_BYTES - 32, 31).unwrap();
    region.copy_out(REGION_BYTES - 32, &mut bytes).unwrap();
    assert_eq!(bytes, std::array::from_fn(|at| if at < 31 { 0 } else { 7 }));
}

#[test]
fn a_peer_s_file_is_mapped_only_where_it_cannot_shrink_and_has_all_its_bytes() {
    let (ours, file) = region();
    let theirs = Region::of_peer(&file, 4096, 8192).unwrap();
    ours.copy_in(4096, b"hello").unwrap();
    let mut bytes = [0; 5];
    theirs.copy_out(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"hello");
    let all = REGION_BYTES as u64;
    assert!(Region::of_peer(&file, 0, all + 1).is_err());
    assert!(Region::of_peer(&file, 4096, all).is_err());
    assert!(Region::of_peer(&file, u64::MAX - 4095, 4096).is_err());
    assert!(Region::of_peer(&file, 0, 0).is_err());
    assert!(Region::of_peer(&file, 1, 4096).is_err());
    assert!(Region::of_peer(&unsealed(), 0, 4096).is_err());
    let plain = std::env::current_exe().and_then(File::open).unwrap();
    assert!(Region::of_peer(&plain, 0, 4096).is_err());
}

/// A memfd that its owner may shorten at any time.
#[allow(unsafe_code, reason = "a memfd without seals")]
fn unsealed() -> File {
    // SAFETY: the name is a C string, and the call makes a file and nothing else.
    let file = unsafe { libc::memfd_create(c"test".as_ptr(), libc::MFD_ALLOW_SEALING) };
    assert!(file.as_raw_fd() >= 0);
    // SAFETY: the call above made this descriptor, and nothing else owns it.
    let file = unsafe { File::from_raw_fd(file) };
    file.set_len(4096).unwrap();
    file
}

/// rust-vmm's device over the same file.
fn foreign(file: File, size: u16, by_index: bool) -> (Queue, GuestMemoryMmap) {
    let whole = (GuestAddress(0), REGION_BYTES, Some(FileOffset::new(file, 0)));
    let memory = GuestMemoryMmap::from_ranges_with_files([whole]).unwrap();
    let mut queue = Queue::new(size).unwrap();
    let [descriptors, available, used] = PARTS.map(|at| Some(u32::try_from(at).unwrap()));
    queue.set_desc_table_address(descriptors, None);
    queue.set_avail_ring_address(available, None);
    queue.set_used_ring_address(used, None);
    queue.set_event_idx(by_index);
    queue.set_ready(true);
    assert!(queue.is_valid(&memory));
    (queue, memory)
}

#[test]
fn a_device_from_other_hands_understands_our_driver_past_the_wrap_of_positions() {
    for by_index in [false, true] {
        let (region, file) = region();
        let events = if by_index { Events::Index } else { Events::Flags };
        let mut driver = Driver::new(queue(&region, 16), events).unwrap();
        let (mut device, memory) = foreign(file, 16, by_index);
        let (mut asleep, mut kicks, mut calls) = (true, 0, 0);
        for round in 0..12_000_u64 {
            // Six at a time, half of them by table, the other half by two descriptors each.
            let heads: Vec<u16> = (0..6).map(|at| request(&region, &mut driver, round, at)).collect();
            let kick = driver.publish();
            assert!(!asleep || kick, "a sleeping device is kicked");
            kicks += u32::from(kick);
            assert_eq!(driver.wake_after(6), Ok(false));
            let mut served = Vec::new();
            while let Some(chain) = device.pop_descriptor_chain(&memory) {
                let head = chain.head_index();
                let at = served.len() as u64;
                let elements: Vec<_> = chain.map(|it| (it.addr().0, it.len(), it.is_write_only())).collect();
                assert_eq!(elements, expected(round, at).map(|p| (p.address, p.len, p.is_writable)));
                memory.write_obj(at, GuestAddress(expected(round, at)[1].address)).unwrap();
                device.add_used(&memory, head, u32::try_from(at).unwrap()).unwrap();
                calls += u32::from(device.needs_notification(&memory).unwrap());
                served.push(head);
            }
            assert_eq!(served, heads);
            let back: Vec<_> =
                std::iter::from_fn(|| driver.take().unwrap()).map(|it| (it.head, it.written)).collect();
            assert_eq!(back, heads.into_iter().zip(0..6).collect::<Vec<_>>());
            // Every other round the device says that it goes to sleep.
            asleep = round % 2 == 1;
            if asleep {
                assert!(!device.enable_notification(&memory).unwrap(), "nothing waits");
            } else {
                device.disable_notification(&memory).unwrap();
            }
        }
        let once_a_round = 12_000;
        assert!(if by_index { calls == once_a_round } else { calls >= once_a_round }, "{calls}");
        assert!(kicks <= 12_000, "{kicks}");
    }
}

fn expected(round: u64, at: u64) -> [Element; 2] {
    let address = 40_960 + at * 64;
    [
        Element { address, len: u32::try_from(round).unwrap(), is_writable: false },
        Element { address: address + 32, len: 8, is_writable: true },
    ]
}

fn request(region: &Region, driver: &mut Driver<Mapped>, round: u64, at: u64) -> u16 {
    let elements = expected(round, at);
    if at % 2 == 0 {
        return driver.add(&elements).unwrap();
    }
    let (mut table, address) = ([0; 32], TABLES_AT + at * 32);
    write_table(&elements, &mut table);
    region.copy_in(address.try_into().unwrap(), &table).unwrap();
    driver.add_table(address, 2).unwrap()
}
