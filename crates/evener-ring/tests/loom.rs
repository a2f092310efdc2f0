//! Small models of ring, doorbell and, in `loom/combining_list.rs`, the gathering of callers, each run through every interleaving
//! with few preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p evener-ring --release --test loom`. loom knows which write happened before which
//! access of a place, so a model fails when an item crosses without its order, not only when a wrong value comes out. A
//! lost wake-up shows as a deadlock.
//!
//! Each mutant in `src` must turn a model red (`docs/design/ring.md` says which):
//!
//! ```text
//! for name in $(grep -rhoE 'mutant = "[a-z_]+"' crates/evener-ring/src | cut -d'"' -f2 | sort -u); do
//!     RUSTFLAGS="--cfg loom --cfg mutant=\"$name\"" cargo test -p evener-ring --release --test loom &&
//!         echo "mutant $name survives"
//! done
//! ```
#![cfg(loom)]

#[path = "loom/combining_list.rs"]
mod combining_list;
#[path = "loom/virtqueue.rs"]
mod virtqueue;

use std::collections::BTreeSet;

use evener_ring::{Counter, Doorbell, Heap, PerProcess, Readiness, Ring, Word};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use loom::thread;

/// A ring of two slots whose second position is the last before positions wrap.
fn ring() -> Ring<u32> {
    Ring::at(Heap::starting_at(u32::MAX - 1, 2))
}

/// A full ring, one position further than [`ring`]: the wrap lies between its two items.
fn full_ring() -> Ring<u32> {
    let ring = Ring::at(Heap::starting_at(u32::MAX, 2));
    assert_eq!(ring.push_all(&mut vec![1, 2]), 2);
    ring
}

/// Runs `body` in every interleaving with up to `preemptions` preemptions.
fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// Runs both bodies beside each other, the second in the caller's thread, and returns what they return.
fn beside<A: 'static, B>(other: impl FnOnce() -> A + 'static, own: impl FnOnce() -> B) -> (A, B) {
    let other = thread::spawn(other);
    let own = own();
    (other.join().expect("the other body ends"), own)
}

/// A thing for two threads.
fn shared<T>(thing: T) -> (Arc<T>, Arc<T>) {
    let thing = Arc::new(thing);
    (thing.clone(), thing)
}

fn join(threads: [thread::JoinHandle<()>; 2]) {
    threads.into_iter().for_each(|thread| thread.join().expect("the thread ends"));
}

fn push_all(ring: &Ring<u32>, items: impl Into<Vec<u32>>) -> usize {
    ring.push_all(&mut items.into())
}

fn pop_many(ring: &Ring<u32>, max: usize) -> Vec<u32> {
    let mut out = Vec::with_capacity(2);
    ring.pop_many(&mut out, max);
    out
}

#[test]
fn a_model_tries_both_orders_of_a_push_and_a_pop() {
    let observed = std::sync::Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    let outcomes = observed.clone();
    model(1, move || {
        let (ring, producer) = shared(ring());
        let (_, popped) = beside(move || producer.push(7), || ring.pop());
        observed.lock().unwrap().insert(popped);
    });
    assert_eq!(*outcomes.lock().unwrap(), BTreeSet::from([None, Some(7)]));
}

#[test]
fn an_item_is_written_before_it_is_published() {
    model(3, || {
        let (ring, producer) = shared(ring());
        let (pushed, popped) = beside(move || producer.push(7), || ring.pop());
        assert_eq!(pushed, Ok(()));
        assert_eq!(popped.or_else(|| ring.pop()), Some(7));
    });
}

#[test]
fn a_slot_is_emptied_before_it_is_filled_again() {
    model(3, || {
        let (ring, producer) = shared(full_ring());
        let (pushed, popped) = beside(move || producer.push(3), || ring.pop());
        assert_eq!(popped, Some(1));
        let rest = if pushed.is_ok() { vec![2, 3] } else { vec![2] };
        assert_eq!(pop_many(&ring, 2), rest);
    });
}

#[test]
fn batches_of_one_producer_leave_in_order_across_the_wrap() {
    model(3, || {
        let (ring, producer) = shared(ring());
        let (pushed, mut popped) = beside(
            move || {
                let mut items = vec![1, 2, 3];
                while !items.is_empty() && producer.push_all(&mut items) > 0 {}
                3 - items.len()
            },
            || [pop_many(&ring, 1), pop_many(&ring, 2)].concat(),
        );
        popped.extend(pop_many(&ring, 2));
        assert!(pushed >= 2, "two slots were free");
        assert_eq!(popped, [1, 2, 3][..pushed]);
    });
}

#[test]
fn a_single_push_does_not_split_a_batch() {
    model(3, || {
        let (ring, producer) = shared(Ring::at(Heap::starting_at(u32::MAX - 1, 4)));
        let (count, single) = beside(move || push_all(&producer, [1, 2]), || ring.push(9));
        assert_eq!((count, single), (2, Ok(())));
        let mut popped = pop_many(&ring, 4);
        popped.extend(pop_many(&ring, 4));
        assert!(popped == [9, 1, 2] || popped == [1, 2, 9], "{popped:?}");
    });
}

#[test]
fn producers_are_refused_only_by_a_full_ring() {
    model(3, || {
        let (ring, producer) = shared(ring());
        let (other, own) = beside(move || producer.push(1), || ring.push(2));
        assert_eq!((other, own), (Ok(()), Ok(())));
        let mut popped = pop_many(&ring, 2);
        popped.sort_unstable();
        assert_eq!(popped, [1, 2]);
    });
}

#[test]
fn consumers_leave_only_an_empty_ring() {
    model(3, || {
        let (ring, consumer) = shared(full_ring());
        let (other, own) = beside(move || consumer.pop(), || ring.pop());
        let mut popped = [other, own];
        popped.sort_unstable();
        assert_eq!(popped, [Some(1), Some(2)]);
    });
}

#[test]
fn a_batch_and_a_single_pop_take_each_item_once() {
    model(3, || {
        let (ring, consumer) = shared(full_ring());
        let (mut popped, single) = beside(move || pop_many(&consumer, 2), || ring.pop());
        assert!(popped.is_sorted());
        popped.extend(single);
        popped.sort_unstable();
        assert_eq!(popped, [1, 2]);
    });
}

#[test]
fn three_threads_move_each_item_once() {
    model(2, || {
        let ring = Arc::new(ring());
        let (batch, single) = (ring.clone(), ring.clone());
        let batch = thread::spawn(move || push_all(&batch, [1, 2]));
        let single = thread::spawn(move || single.push(9).is_ok());
        let mut popped = pop_many(&ring, 2);
        let expected = batch.join().unwrap() + usize::from(single.join().unwrap());
        popped.extend(pop_many(&ring, 2));
        assert_eq!(popped.len(), expected);
        let of_batch: Vec<u32> = popped.iter().copied().filter(|&item| item != 9).collect();
        assert_eq!(of_batch, [1, 2][..of_batch.len()]);
    });
}

#[test]
fn the_length_stays_within_the_capacity() {
    model(3, || {
        let (ring, other) = shared(full_ring());
        let ((), len) = beside(
            move || {
                other.pop();
                other.push(3).expect("one slot is free");
                other.pop();
            },
            || ring.len(),
        );
        assert!(len <= 2);
        assert_eq!(ring.len(), 1);
    });
}

#[test]
fn what_is_ready_is_what_its_only_consumer_gets() {
    model(3, || {
        let (ring, producer) = shared(ring());
        let (other, own) = (producer.clone(), producer);
        let others = thread::spawn(move || other.push(1).is_ok());
        let more = thread::spawn(move || own.push(2).is_ok());
        let ready = ring.ready(2);
        assert!(pop_many(&ring, 2).len() >= ready);
        assert!(others.join().unwrap() && more.join().unwrap());
    });
}

#[test]
fn what_is_left_is_dropped_with_the_ring() {
    model(3, || {
        // loom reports an Arc that is never dropped.
        let ring = Arc::new(Ring::at(Heap::starting_at(u32::MAX, 2)));
        let producer = ring.clone();
        let item = Arc::new(());
        let own = item.clone();
        beside(move || producer.push(item).is_ok(), || ring.push(own).is_ok());
    });
}

/// Ring and doorbell as a worker uses them: sleep until there is an item, and ring on when more is left.
#[derive(Clone)]
struct Inbox(Arc<(Ring<u32>, Doorbell)>);

impl Inbox {
    fn new() -> Self {
        Self(Arc::new((ring(), Doorbell::new())))
    }

    fn put(&self, items: impl Into<Vec<u32>>) {
        let items = items.into();
        let count = items.len();
        assert_eq!(push_all(&self.0.0, items), count);
        self.0.1.ring_one();
    }

    fn take(&self) -> u32 {
        let (ring, doorbell) = &*self.0;
        loop {
            let ticket = doorbell.listen();
            if let Some(item) = ring.pop() {
                if !ring.is_empty() {
                    doorbell.ring_one();
                }
                return item;
            }
            doorbell.wait(ticket, None);
        }
    }
}

#[test]
fn a_sleeper_misses_no_ring() {
    model(3, || {
        let inbox = Inbox::new();
        let producer = inbox.clone();
        let ((), item) = beside(move || producer.put([7]), || inbox.take());
        assert_eq!(item, 7);
    });
}

#[test]
fn one_sleeper_hears_two_producers() {
    model(2, || {
        let inbox = Inbox::new();
        let producers = [1, 2].map(|item| {
            let inbox = inbox.clone();
            thread::spawn(move || inbox.put([item]))
        });
        assert_eq!(inbox.take() + inbox.take(), 3);
        join(producers);
    });
}

#[test]
fn a_ring_for_one_reaches_a_second_sleeper_through_the_first() {
    model(2, || {
        let inbox = Inbox::new();
        let (one, two) = (inbox.clone(), inbox.clone());
        let one = thread::spawn(move || one.take());
        let two = thread::spawn(move || two.take());
        inbox.put([1, 2]);
        assert_eq!(one.join().unwrap() + two.join().unwrap(), 3);
    });
}

#[test]
fn a_ring_for_all_ends_every_wait() {
    model(2, || {
        let doorbell = Arc::new((Doorbell::new(), AtomicBool::new(false)));
        let sleepers = [(); 2].map(|()| {
            let doorbell = doorbell.clone();
            thread::spawn(move || {
                let ticket = doorbell.0.listen();
                if !doorbell.1.load(Relaxed) {
                    doorbell.0.wait(ticket, None);
                }
            })
        });
        doorbell.1.store(true, Relaxed);
        doorbell.0.ring_all();
        join(sleepers);
    });
}

#[test]
fn a_count_is_never_read_too_high_or_too_low_while_its_top_bit_changes() {
    const START: u64 = (1 << 31) - 1;
    model(3, || {
        let words: Arc<Box<[Word]>> = Arc::new((0..2).map(|_| Word::new(0)).collect());
        Counter::at(&words, 0).expect("two words").add(START);
        let others = words.clone();
        let add = move || {
            let counter = Counter::at(&others, 0).expect("two words");
            counter.add(1);
            counter.add(START);
            counter.add(1);
        };
        let ((), observed) = beside(add, || Counter::at(&words, 0).expect("two words").value());
        assert!([START, START + 1, 2 * START + 1, 2 * START + 2].contains(&observed), "{observed}");
        assert_eq!(Counter::at(&words, 0).expect("two words").value(), 2 * START + 2);
    });
}

#[test]
fn a_value_is_made_once_and_seen_whole() {
    model(3, || {
        let place = Arc::new(PerProcess::new((0..1).map(|_| Word::new(0)).collect::<Box<[Word]>>()));
        let other = place.clone();
        let look = |place: &PerProcess<AtomicU32, Box<[Word]>>| {
            let value = place.get_or_make(|| {
                let value = AtomicU32::new(0);
                value.fetch_add(7, Relaxed);
                Some(value)
            });
            value.map(|value| value.load(Relaxed))
        };
        let (one, two) = beside(move || look(&other), || look(&place));
        assert!(
            [(Some(7), Some(7)), (Some(7), None), (None, Some(7))].contains(&(one, two)),
            "{one:?} {two:?}"
        );
    });
}

#[test]
fn an_event_is_readable_while_something_waits_and_written_once_for_all_of_it() {
    model(3, || {
        let (theirs, own) = shared((ring(), Readiness::default(), AtomicU32::new(0)));
        let signal = |event: &AtomicU32| assert_eq!(event.fetch_add(1, Relaxed), 0, "written once");
        let producer = move || {
            for item in [1, 2] {
                theirs.0.push(item).expect("there is space");
                theirs.1.raise(|| signal(&theirs.2));
            }
        };
        let (ring, readiness, event) = &*own;
        let reap = || {
            pop_many(ring, 2);
            let clear = || assert_eq!(event.swap(0, Relaxed), 1, "what is read was written");
            if ring.is_empty() && readiness.lower(clear) && !ring.is_empty() {
                readiness.raise(|| signal(event));
            }
        };
        beside(producer, || {
            reap();
            reap();
        });
        assert!(ring.is_empty() || event.load(Relaxed) == 1, "nobody would come for what waits");
    });
}
