//! The virtqueue in one thread: against the queue of the standard library, and against a peer that writes nonsense.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use evener_ring::virtqueue::{
    Chain, Device, Driver, ELEMENTS_MAX, Element, Events, Heap, Malformed, NoTables, Tables, write_table,
};
use proptest::prelude::*;

/// A driver's memory that holds one table per address.
#[derive(Default)]
struct Memory(HashMap<u64, Vec<u8>>);

impl Tables for Memory {
    fn copy_out(&self, address: u64, into: &mut [u8]) -> bool {
        match self.0.get(&address) {
            Some(bytes) if bytes.len() == into.len() => {
                into.copy_from_slice(bytes);
                true
            }
            _ => false,
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Add { readable: usize, writable: usize, by_table: bool },
    Offer,
    TakeRequest,
    GiveBack { which: usize },
    Show,
    Collect,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4_usize, 0..4_usize, any::<bool>()).prop_map(|(readable, writable, by_table)| Step::Add {
            readable,
            writable,
            by_table
        }),
        Just(Step::Offer),
        Just(Step::TakeRequest),
        (0..8_usize).prop_map(|which| Step::GiveBack { which }),
        Just(Step::Show),
        Just(Step::Collect),
    ]
}

/// Both sides beside their oracle.
struct Pair {
    driver: Driver<Arc<Heap>>,
    device: Device<Arc<Heap>>,
    memory: Memory,
    number: u32,
    /// Descriptors that no request holds.
    space: usize,
    cost: HashMap<u16, usize>,
    added: VecDeque<(u16, Vec<Element>)>,
    offered: VecDeque<(u16, Vec<Element>)>,
    held: Vec<u16>,
    given: VecDeque<(u16, u32)>,
    shown: VecDeque<(u16, u32)>,
}

impl Pair {
    fn new(size: u16, events: Events, laps: u32) -> Self {
        let heap = Heap::new(size);
        let mut pair = Self {
            driver: Driver::new(heap.clone(), events).unwrap(),
            device: Device::starting_at(heap, events, 0).unwrap(),
            memory: Memory::default(),
            number: 0,
            space: size.into(),
            cost: HashMap::new(),
            added: VecDeque::new(),
            offered: VecDeque::new(),
            held: Vec::new(),
            given: VecDeque::new(),
            shown: VecDeque::new(),
        };
        let all = [
            Step::Add { readable: 1, writable: 0, by_table: false },
            Step::Offer,
            Step::TakeRequest,
            Step::GiveBack { which: 0 },
            Step::Show,
            Step::Collect,
        ];
        (0..laps).for_each(|_| all.iter().for_each(|step| pair.take(step)));
        pair
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Add { readable, writable, by_table } => self.add(readable, writable, by_table),
            Step::Offer => {
                self.driver.publish();
                self.offered.append(&mut self.added);
            }
            Step::TakeRequest => self.take_request(),
            Step::GiveBack { which } => self.give_back(which),
            Step::Show => {
                self.device.publish();
                self.shown.append(&mut self.given);
            }
            Step::Collect => self.collect(),
        }
        assert_eq!(self.driver.space(), self.space);
        assert_eq!(usize::from(self.device.in_flight()), self.held.len());
    }

    fn add(&mut self, readable: usize, writable: usize, by_table: bool) {
        let elements: Vec<Element> =
            (0..readable + writable).map(|at| self.element(at >= readable)).collect();
        let cost = if by_table { 1 } else { elements.len() };
        // No two tables with elements have one address: each element moves the number on.
        let address = u64::from(self.number);
        let head = if by_table && !elements.is_empty() {
            let mut table = vec![0; elements.len() * 16];
            write_table(&elements, &mut table);
            self.memory.0.insert(address, table);
            self.driver.add_table(address, elements.len())
        } else {
            self.driver.add(&elements)
        };
        assert_eq!(head.is_some(), !elements.is_empty() && cost <= self.space);
        let Some(head) = head else { return };
        assert_eq!(self.cost.insert(head, cost), None, "a name belongs to one request at a time");
        self.space -= cost;
        self.added.push_back((head, elements));
    }

    fn element(&mut self, is_writable: bool) -> Element {
        self.number += 1;
        Element { address: u64::from(self.number) << 20, len: self.number, is_writable }
    }

    fn take_request(&mut self) {
        let mut chain = Chain::new();
        let came = self.device.take(&self.memory, &mut chain).unwrap();
        let Some((head, elements)) = self.offered.pop_front() else { return assert!(!came) };
        assert!(came);
        assert_eq!((chain.head(), [chain.readable(), chain.writable()].concat()), (head, elements));
        assert!(chain.writable().iter().all(|element| element.is_writable));
        self.held.push(head);
    }

    fn give_back(&mut self, which: usize) {
        if self.held.is_empty() {
            return;
        }
        let head = self.held.remove(which % self.held.len());
        self.number += 1;
        self.device.give_back(head, self.number);
        self.given.push_back((head, self.number));
    }

    fn collect(&mut self) {
        assert_eq!(usize::from(self.driver.look().unwrap()), self.shown.len());
        let used = self.driver.take().unwrap().map(|used| (used.head, used.written));
        assert_eq!(used, self.shown.pop_front());
        if let Some((head, _)) = used {
            self.space += self.cost.remove(&head).expect("it was added");
        }
    }
}

/// DPDK's back end gives back by place in the available ring what it should give back by name.
#[test]
fn requests_that_come_back_in_order_have_the_name_of_their_place() {
    let mut pair = Pair::new(8, Events::Flags, 0);
    for place in 0..100 {
        pair.take(&Step::Add { readable: 1, writable: 1, by_table: true });
        assert_eq!(pair.added.back().unwrap().0, place % 8);
        if place % 3 == 2 {
            pair.take(&Step::Offer);
            (0..3).for_each(|_| pair.take(&Step::TakeRequest));
            (0..3).for_each(|_| pair.take(&Step::GiveBack { which: 0 }));
            pair.take(&Step::Show);
            (0..3).for_each(|_| pair.take(&Step::Collect));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }) })]

    #[test]
    fn each_request_crosses_once_with_its_elements_and_comes_back_once(
        size_log in 0..5_u32,
        by_index in any::<bool>(),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let events = if by_index { Events::Index } else { Events::Flags };
        let mut pair = Pair::new(1 << size_log, events, 0);
        steps.iter().for_each(|step| pair.take(step));
    }
}

#[test]
#[cfg_attr(miri, ignore = "70,000 requests")]
fn positions_wrap_without_a_trace() {
    for events in [Events::Flags, Events::Index] {
        Pair::new(4, events, 70_000);
    }
}

fn sides(events: Events) -> (Driver<Arc<Heap>>, Device<Arc<Heap>>) {
    let heap = Heap::new(64);
    (Driver::new(heap.clone(), events).unwrap(), Device::starting_at(heap, events, 0).unwrap())
}

const ONE: Element = Element { address: 4096, len: 16, is_writable: false };

/// Offers `count` requests at once; returns whether the driver would kick.
fn offer(driver: &mut Driver<Arc<Heap>>, count: usize) -> bool {
    (0..count).for_each(|_| assert!(driver.add(&[ONE]).is_some()));
    driver.publish()
}

/// Takes all, gives all back at once; returns whether the device would call.
fn serve(device: &mut Device<Arc<Heap>>) -> bool {
    let mut chain = Chain::new();
    while device.take(&NoTables, &mut chain).unwrap() {
        device.give_back(chain.head(), 0);
    }
    device.publish()
}

#[test]
fn by_index_a_listening_device_is_kicked_once_and_a_busy_one_never() {
    let (mut driver, mut device) = sides(Events::Index);
    assert!(offer(&mut driver, 3), "a fresh device listens");
    assert!(!offer(&mut driver, 3), "one kick was enough");
    serve(&mut device);
    assert!(!offer(&mut driver, 3), "it is awake, whatever it announced");
    serve(&mut device);
    assert_eq!(device.listen(), Ok(false));
    assert!(offer(&mut driver, 1));
}

#[test]
fn by_index_a_driver_is_called_for_the_last_it_waits_for() {
    let (mut driver, mut device) = sides(Events::Index);
    offer(&mut driver, 4);
    assert_eq!(driver.wake_after(3), Ok(false));
    let mut chain = Chain::new();
    let calls: Vec<bool> = (0..4)
        .map(|_| {
            assert!(device.take(&NoTables, &mut chain).unwrap());
            device.give_back(chain.head(), 0);
            device.publish()
        })
        .collect();
    assert_eq!(calls, [false, false, true, false]);
    assert_eq!(driver.wake_after(4), Ok(true), "all are there: no sleep");
}

#[test]
fn by_flags_whoever_is_quiet_is_left_alone() {
    let (mut driver, mut device) = sides(Events::Flags);
    device.quiet();
    assert!(!offer(&mut driver, 1));
    assert_eq!(device.listen(), Ok(true), "one waits: no sleep");
    driver.quiet();
    assert!(!serve(&mut device));
    assert_eq!(driver.wake_after(1), Ok(true));
    assert!(offer(&mut driver, 1), "the device listened last");
    assert!(serve(&mut device), "the driver wants to be called");
}

#[test]
fn a_chain_of_the_greatest_length_passes_and_no_longer_one() {
    let longest = vec![ONE; ELEMENTS_MAX];
    let heap = Heap::new(2_048);
    let mut driver = Driver::new(heap.clone(), Events::Index).unwrap();
    let mut device = Device::starting_at(heap, Events::Index, 0).unwrap();
    driver.add(&longest).expect("so many descriptors");
    driver.publish();
    let mut chain = Chain::new();
    assert_eq!(device.take(&NoTables, &mut chain), Ok(true));
    assert_eq!(chain.readable(), longest);
    assert_eq!(driver.add(&[ONE; ELEMENTS_MAX + 1]), None);
}

#[test]
fn a_table_of_any_length_up_to_the_greatest_passes() {
    for count in [1, 63, 64, 65, 300, ELEMENTS_MAX] {
        let elements = vec![ONE; count];
        let mut table = vec![0; 16 * count];
        write_table(&elements, &mut table);
        assert_eq!(taken_with_table(16 * count, table), Ok(true), "{count}");
    }
    let (mut driver, _) = sides(Events::Index);
    assert_eq!(driver.add_table(7, ELEMENTS_MAX + 1), None);
}

/// What the device makes of a table with these bytes.
fn taken_with_table(len: usize, table: Vec<u8>) -> Result<bool, Malformed> {
    let (mut driver, mut device) = sides(Events::Index);
    driver.add_table(7, len.div_ceil(16)).expect("there is space");
    driver.publish();
    let memory = Memory(HashMap::from([(7, table)]));
    device.take(&memory, &mut Chain::new())
}

/// A descriptor's bytes.
fn entry(flags: u16, next: u16) -> Vec<u8> {
    let mut bytes = vec![0; 16];
    bytes[12..14].copy_from_slice(&flags.to_le_bytes());
    bytes[14..].copy_from_slice(&next.to_le_bytes());
    bytes
}

#[test]
fn tables_that_cannot_be_are_refused() {
    const NEXT: u16 = 1;
    const WRITE: u16 = 2;
    const TABLE: u16 = 4;
    let two = |one: Vec<u8>, other: Vec<u8>| taken_with_table(32, [one, other].concat());
    assert_eq!(two(entry(NEXT, 1), entry(0, 0)), Ok(true));
    assert_eq!(two(entry(NEXT, 1), entry(NEXT, 0)), Err(Malformed::Long), "a loop");
    assert_eq!(two(entry(NEXT, 2), entry(0, 0)), Err(Malformed::Next(2)));
    assert_eq!(two(entry(NEXT, 1), entry(TABLE, 0)), Err(Malformed::Nested));
    assert_eq!(two(entry(NEXT | WRITE, 1), entry(0, 0)), Err(Malformed::Order));
    assert_eq!(taken_with_table(32, entry(0, 0)), Err(Malformed::TableAddress(7)));
}

#[test]
fn a_device_that_gives_back_what_it_does_not_hold_is_found_out() {
    let (mut driver, mut device) = sides(Events::Index);
    offer(&mut driver, 2);
    let mut chain = Chain::new();
    device.take(&NoTables, &mut chain).unwrap();
    device.take(&NoTables, &mut chain).unwrap();
    device.give_back(0, 0);
    device.give_back(0, 0);
    device.publish();
    assert_eq!(driver.take().map(|used| used.map(|used| used.head)), Ok(Some(0)));
    assert_eq!(driver.take(), Err(Malformed::Head(0)));
}
