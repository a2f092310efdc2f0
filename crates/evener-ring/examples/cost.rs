//! What an item costs on its way through the ring, in nanoseconds: alone on one core, and between two threads.
//!
//! `cargo run --release -p evener-ring --example cost`; the median of the runs. Under valgrind (`--tool=callgrind`) give
//! the argument `count`, which moves a fixed number of items on one thread.
#![allow(clippy::print_stdout, reason = "a measuring tool that prints its figures")]

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use evener_ring::{Doorbell, Ring};

/// Items per run: so few that most runs end within one time slice, even on a busy machine.
const ITEM_COUNT: usize = 20_000;
const RUN_COUNT: usize = 201;
const CAPACITY: usize = 4096;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("count") {
        return alone(32, 100 * ITEM_COUNT);
    }
    println!("items per operation   alone ns/item   two threads ns/item");
    for width in [1, 4, 16, 32, 64, 128] {
        let (alone, beside) = (median(|| time(|| alone(width, ITEM_COUNT))), median(|| between_two(width)));
        println!("{width:19} {alone:15.2} {beside:21.2}");
    }
    let doorbell = Doorbell::new();
    let ringing = median(|| time(|| (0..ITEM_COUNT).for_each(|_| black_box(&doorbell).ring_one())));
    println!("a ring without a listener: {ringing:.2} ns");
}

/// Moves `count` boxes' worth of words through a ring, `width` in and `width` out at a time.
fn alone(width: usize, count: usize) {
    let ring = Ring::with_capacity(CAPACITY);
    let (mut source, mut sink) = (vec![0_u64; width], Vec::with_capacity(width));
    for _ in 0..count / width {
        black_box(&ring).push_all(&mut source);
        black_box(&ring).pop_many(&mut sink, width);
        std::mem::swap(&mut source, &mut sink);
    }
}

/// Moves the items from one thread to another, both busy; returns the nanoseconds per item.
fn between_two(width: usize) -> f64 {
    let (ring, start) = (Ring::with_capacity(CAPACITY), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            start.wait();
            give(&ring, width);
        });
        start.wait();
        time(|| take(&ring, width))
    })
}

fn give(ring: &Ring<u64>, width: usize) {
    let mut items = Vec::with_capacity(width);
    let mut left = ITEM_COUNT;
    while left > 0 {
        items.resize(width.min(left), 7);
        let moved = ring.push_all(&mut items);
        left -= moved;
        if moved == 0 {
            thread::yield_now();
        }
    }
}

fn take(ring: &Ring<u64>, width: usize) {
    let mut items = Vec::with_capacity(width);
    let mut left = ITEM_COUNT;
    while left > 0 {
        let moved = ring.pop_many(&mut items, width);
        left -= moved;
        items.clear();
        if moved == 0 {
            thread::yield_now();
        }
    }
}

/// Returns the nanoseconds that `work` takes, for each of [`ITEM_COUNT`].
fn time(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e9 / ITEM_COUNT as f64
}

fn median(mut run: impl FnMut() -> f64) -> f64 {
    let mut runs: Vec<f64> = (0..RUN_COUNT).map(|_| run()).collect();
    runs.sort_by(f64::total_cmp);
    runs[RUN_COUNT / 2]
}
