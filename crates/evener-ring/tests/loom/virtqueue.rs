//! The virtqueue between a driver and a device that sleep whenever they may: a lost wake-up shows as a deadlock.

use evener_ring::virtqueue::{Chain, Device, Driver, Element, Events, Heap, NoTables};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::model;

/// What an eventfd does: a ring is kept until it was waited for.
#[derive(Default)]
struct Event {
    is_rung: Mutex<bool>,
    rung: Condvar,
}

impl Event {
    fn ring(&self) {
        *self.is_rung.lock().unwrap() = true;
        self.rung.notify_one();
    }

    fn wait(&self) {
        let mut is_rung = self.is_rung.lock().unwrap();
        while !*is_rung {
            is_rung = self.rung.wait(is_rung).unwrap();
        }
        *is_rung = false;
    }
}

type QueueMemory = std::sync::Arc<Heap>;

fn sides(events: Events) -> (Driver<QueueMemory>, Device<QueueMemory>) {
    let heap = Heap::new(2);
    (Driver::new(heap.clone(), events).unwrap(), Device::starting_at(heap, events, 0).unwrap())
}

fn element(number: u64) -> Element {
    Element { address: 0x1000 + number, len: 1, is_writable: false }
}

/// Offers two requests, each by itself.
fn offer_two(driver: &mut Driver<QueueMemory>, kick: &Event) {
    for number in 0..2 {
        driver.add(&[element(number)]).expect("there is space for two");
        if driver.publish() {
            kick.ring();
        }
    }
}

/// Takes two requests and sleeps for each that is not there.
fn take_two(device: &mut Device<QueueMemory>, kick: &Event) {
    let mut chain = Chain::new();
    for number in 0..2 {
        while !device.take(&NoTables, &mut chain).unwrap() {
            if !device.listen().unwrap() {
                kick.wait();
            }
            device.quiet();
        }
        assert_eq!(chain.readable(), [element(number)]);
    }
}

/// Gives two requests back, each by itself.
fn give_back_two(device: &mut Device<QueueMemory>, call: &Event) {
    for head in [1, 0] {
        device.give_back(head, 100 + u32::from(head));
        if device.publish() {
            call.ring();
        }
    }
}

/// Collects two requests, `at_once` so many, and sleeps until they are there.
fn collect_two(driver: &mut Driver<QueueMemory>, call: &Event, at_once: u16) {
    for (place, head) in [1, 0].into_iter().enumerate() {
        let used = loop {
            if place == 0 || at_once == 1 {
                while !driver.wake_after(at_once).unwrap() {
                    call.wait();
                }
                driver.quiet();
            }
            if let Some(used) = driver.take().unwrap() {
                break used;
            }
        };
        assert_eq!((used.head, used.written), (head, 100 + u32::from(head)));
    }
}

fn kicks(events: Events) {
    model(2, move || {
        let (mut driver, mut device) = sides(events);
        let kick = Arc::new(Event::default());
        let at_device = kick.clone();
        let device = thread::spawn(move || take_two(&mut device, &at_device));
        offer_two(&mut driver, &kick);
        device.join().unwrap();
    });
}

fn calls(events: Events, at_once: u16) {
    model(2, move || {
        let (mut driver, mut device) = sides(events);
        let (call, kick) = (Arc::new(Event::default()), Event::default());
        // Heads come from the front: 0, then 1.
        offer_two(&mut driver, &kick);
        take_two(&mut device, &kick);
        let at_device = call.clone();
        let device = thread::spawn(move || give_back_two(&mut device, &at_device));
        collect_two(&mut driver, &call, at_once);
        device.join().unwrap();
    });
}

#[test]
fn a_device_that_sleeps_by_index_misses_no_request() {
    kicks(Events::Index);
}

#[test]
fn a_device_that_sleeps_by_flags_misses_no_request() {
    kicks(Events::Flags);
}

#[test]
fn a_driver_that_sleeps_by_index_misses_no_result() {
    calls(Events::Index, 1);
}

#[test]
fn a_driver_that_sleeps_by_flags_misses_no_result() {
    calls(Events::Flags, 1);
}

#[test]
fn a_driver_that_asks_for_two_is_woken_for_the_second() {
    calls(Events::Index, 2);
}

#[test]
fn a_driver_by_index_wakes_a_device_that_was_told_of_flags_only() {
    model(2, || {
        let heap = Heap::new(2);
        let mut driver = Driver::new(heap.clone(), Events::Index).unwrap();
        let mut device = Device::starting_at(heap, Events::Flags, 0).unwrap();
        let kick = Arc::new(Event::default());
        let at_device = kick.clone();
        let device = thread::spawn(move || take_two(&mut device, &at_device));
        offer_two(&mut driver, &kick);
        device.join().unwrap();
    });
}
