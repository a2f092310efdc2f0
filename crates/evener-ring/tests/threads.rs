//! Ring and doorbell between real threads: what ThreadSanitizer and Miri watch, and what loom's small models leave out.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use evener_ring::{Doorbell, Heap, Ring};

/// Items per producer.
const ITEM_COUNT: u32 = if cfg!(miri) { 200 } else { 200_000 };
const PRODUCER_COUNT: u32 = 2;

/// Producer and number in one item, in the heap so that a lost or doubled one is a memory error too.
type Item = Box<(u32, u32)>;

/// How many items one operation moves: changes from call to call, 1 to 16.
fn widths() -> impl Iterator<Item = usize> {
    (0..).map(|turn: usize| 1 + turn * 7 % 16)
}

fn produce(ring: &Ring<Item>, doorbell: &Doorbell, producer: u32) {
    let mut numbers = (0..ITEM_COUNT).map(|number| Box::new((producer, number)));
    let mut items = Vec::new();
    for width in widths() {
        let lacking = width.saturating_sub(items.len());
        items.extend(numbers.by_ref().take(lacking));
        if items.is_empty() {
            return;
        }
        if ring.push_all(&mut items) == 0 {
            thread::yield_now();
        }
        doorbell.ring_one();
    }
}

/// Takes items until all of all producers are taken, by whomever.
fn consume(ring: &Ring<Item>, doorbell: &Doorbell, taken: &AtomicU32) -> Vec<Item> {
    let (mut all, mut burst) = (Vec::new(), Vec::new());
    for width in widths() {
        let ticket = doorbell.listen();
        let count = ring.pop_many(&mut burst, width);
        if taken.fetch_add(u32::try_from(count).expect("at most 16"), Relaxed) == PRODUCER_COUNT * ITEM_COUNT
        {
            doorbell.ring_all();
            break;
        }
        all.append(&mut burst);
        if count == 0 {
            doorbell.wait(ticket, None);
        } else {
            doorbell.ring_one();
        }
    }
    all
}

/// Whether the items of each producer come in its order.
fn in_order(items: &[Item]) -> bool {
    (0..PRODUCER_COUNT)
        .all(|producer| items.iter().filter(|item| item.0 == producer).is_sorted_by_key(|item| item.1))
}

#[test]
fn each_item_arrives_once_and_in_its_producers_order() {
    // Small, so that it is full and empty all the time; starting where the positions wrap soon.
    let ring = Ring::at(Heap::starting_at(u32::MAX - ITEM_COUNT / 2, 8));
    let (doorbell, taken) = (Doorbell::new(), AtomicU32::new(0));
    let consumed: Vec<Vec<Item>> = thread::scope(|scope| {
        let (ring, doorbell, taken) = (&ring, &doorbell, &taken);
        let consumers = [(); 2].map(|()| scope.spawn(move || consume(ring, doorbell, taken)));
        for producer in 0..PRODUCER_COUNT {
            scope.spawn(move || produce(ring, doorbell, producer));
        }
        consumers.map(|consumer| consumer.join().unwrap()).into()
    });
    assert!(consumed.iter().all(|items| in_order(items)));
    let mut items: Vec<(u32, u32)> = consumed.into_iter().flatten().map(|item| *item).collect();
    items.sort_unstable();
    let expected =
        (0..PRODUCER_COUNT).flat_map(|producer| (0..ITEM_COUNT).map(move |number| (producer, number)));
    assert!(items.into_iter().eq(expected));
}

#[test]
fn a_wait_without_a_ring_ends_by_the_clock() {
    let doorbell = Doorbell::new();
    let ticket = doorbell.listen();
    assert!(!doorbell.wait(ticket, Some(Duration::from_millis(1))));
}

#[test]
fn a_ring_before_the_wait_is_heard() {
    for ring in [Doorbell::ring_one, Doorbell::ring_all] {
        let doorbell = Doorbell::new();
        let ticket = doorbell.listen();
        ring(&doorbell);
        assert!(doorbell.wait(ticket, None));
    }
}

#[test]
fn a_ring_before_the_listening_is_not_heard() {
    let doorbell = Doorbell::new();
    drop(doorbell.listen());
    doorbell.ring_all();
    let ticket = doorbell.listen();
    assert!(!doorbell.wait(ticket, Some(Duration::ZERO)));
}

#[test]
fn a_ring_for_all_wakes_everyone_who_sleeps() {
    let (doorbell, listening) = (Doorbell::new(), AtomicU32::new(0));
    thread::scope(|scope| {
        let sleeper = || {
            let ticket = doorbell.listen();
            listening.fetch_add(1, Relaxed);
            assert!(doorbell.wait(ticket, None));
        };
        for _ in 0..3 {
            scope.spawn(sleeper);
        }
        while listening.load(Relaxed) < 3 {
            thread::yield_now();
        }
        doorbell.ring_all();
    });
}

#[test]
#[should_panic(expected = "a ticket is for the doorbell that made it")]
fn a_ticket_of_another_doorbell_is_refused() {
    let (doorbell, other) = (Doorbell::new(), Doorbell::new());
    other.wait(doorbell.listen(), Some(Duration::ZERO));
}
