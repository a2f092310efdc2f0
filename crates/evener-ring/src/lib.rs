//! Bounded queue and doorbell between Evener's threads, and the combining of callers that lend their buffers.
//!
//! The path of one item: [`Ring::push_all`] (producer: claims positions at the tail, writes, publishes)
//! -> [`Doorbell::ring_one`] (wakes a sleeper, if there is one) -> [`Ring::pop_many`] (consumer: claims positions at
//! the head, reads, gives the slots back). The protocol, its proof sketch and the ways not taken stand in `docs/design/ring.md`.
//!
//! Beside it, for what processes show each other: [`Mapping`], words of a file or words that a fork wipes; [`Counter`], a
//! count of 64 bits in two words; [`Segment`], words of System V shared memory, which cannot be shortened; [`PerProcess`], a value that a forked child makes anew, and [`ProcessValue`], such a one in a `static`; [`Inherited`] says when those of a
//! grandparent are freed.
//!
//! The path of one loan: [`CombiningList::lend`] (caller: fills a slot of its own, puts it on the list, waits) ->
//! [`CombiningList::take`] (a holder of a [`Permit`]: takes the whole list) -> [`Batch::run`] (works, answers) -> the caller
//! returns with a [`LendOutcome`]. The protocol stands in `docs/design/combining.md`.
//!
//! Between processes, with another program at the other end: [`virtqueue`], the split queue of VIRTIO, and [`Region`], the
//! sealed memory that it lies in. `docs/design/virtqueue.md` says what is believed of the peer. What held a caller's data is
//! overwritten by [`wipe()`].
//!
//! | room | what it does |
//! |---|---|
//! | `lending/` | lends a caller's buffers to other threads for the time of one call |
//! | `queue/` | queues items between threads: the ring |
//! | [`virtqueue`] | moves requests between two programs that map the same memory |
//! | `wait/` | lets a thread sleep until another rings, or wait for an event |
//! | `process/` | shares memory and counts between processes, and keeps apart what a fork must part |
//! | `thread/` | starts threads inside a program of others, and keeps a value for each of its threads |
//! | `sync.rs`, `cache_padded.rs` | give the words that threads share: std's, or loom's |
//!
//! # Checking
//!
//! Everything that threads share goes through [`Word`] and the cell in a [`Slot`], which are loom's under `cfg(loom)`:
//!
//! ```text
//! # properties, stress, another process
//! cargo test -p evener-ring
//! # every interleaving of small models; with a mutant it must fail
//! RUSTFLAGS='--cfg loom' cargo test -p evener-ring --release --test loom
//! RUSTFLAGS='--cfg loom --cfg mutant="publish_relaxed"' cargo test -p evener-ring --release --test loom
//! # undefined behaviour
//! cargo +nightly miri test -p evener-ring
//! # data races; with its sources std is built along, or its own synchronisation would go unseen
//! RUSTFLAGS=-Zsanitizer=thread \
//!     cargo +nightly test -Zbuild-std -p evener-ring --lib --tests --target x86_64-unknown-linux-gnu
//! ```
//!
//! `docs/design/ring.md` lists the mutants and the model that turns red for each.
#![allow(unsafe_code, reason = "room: cells that threads share, mappings, and the futex call")]

mod cache_padded;
mod lending;
mod process;
mod queue;
mod sync;
mod thread;
pub mod virtqueue;
mod wait;

pub use cache_padded::CachePadded;
pub use lending::{
    Batch, Claims, CombiningList, HELPER_SLOTS_MAX, HelperSlot, LendCounts, LendOutcome, LentWork, Look,
    ObjectPool, PERMITS_MAX, Part, PartBytes, Parts, Permit, lend,
};
pub use process::{Counter, Inherited, PerFork, PerProcess, Words, value};
#[cfg(not(any(loom, miri)))]
pub use process::{Creator, Mapping, OutOfRegion, ProcessValue, Refusal, Region, Segment, wipe};
pub use queue::{CAPACITY_MAX, Heap, Ring, Slot, Storage};
pub use sync::{Word, Word16, Word64, fence};
#[cfg(not(any(loom, miri)))]
pub use thread::Served;
pub use thread::{
    CancellationHeld, PutAside, Service, ThreadValue, hold_cancellation, put_aside, start_service,
    with_signals_blocked,
};
pub use wait::{Doorbell, Readiness, Ticket};
#[cfg(not(any(loom, miri)))]
pub use wait::{sleep_shared, wake_shared};
