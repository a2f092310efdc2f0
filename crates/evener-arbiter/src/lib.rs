//! The arbiter: the processes of one user share crypto modules by words of one segment, without a daemon, a privilege, or trust in what the words say.
//!
//! The path of a request: [`Arbiter::attach`] (once; the segment is found or made) -> [`Arbiter::module`] (once; it is named in the segment) -> [`Module::acquire`] (a place of this process asks;
//! the permit of last time is free, or it waits in order) -> [`Permit`], and the module works -> the permit is dropped, and who is next is rung.
//! [`Module::expected_start`] says how long that would take, counting the work of all processes; [`Module::costs`] what others learned.
//!
//! | room | what it does |
//! |---|---|
//! | `arbiter/` | what a process has of it: places, modules, permits; anew in a forked child |
//! | `segment/` | finds or makes the segment, and knows who lives by locks of its anchor |
//! | `gate/` | who may use a module now: permits, waiting in order, the dead |
//! | `costs.rs` | what was learned of modules, by class |
//! | `arrival_queue.rs` | a ring of waiters |
//! | `work.rs` | what was done with permits, and how often places were served |
//! | `layout/` | where each word lies, and what is packed into it |
//! | `world.rs` | what the algorithm stands on: words, sleep, time, life |
//!
//! `docs/design/arbiter.md` tells the protocol, what each death leaves and who repairs it, and the ways not taken.
//!
//! # Checking
//!
//! ```text
//! # every state of small worlds with a death at every step; real processes, killed, stopped and forked
//! cargo test -p evener-arbiter
//! cargo test -p evener-arbiter --release -- --ignored
//! # every interleaving of two threads in the memory model
//! RUSTFLAGS='--cfg loom' cargo test -p evener-arbiter --release --test loom
//! cargo +nightly miri test -p evener-arbiter --test heap
//! ```
#![allow(unsafe_code, reason = "room: tests that fork; the arbiter itself has none")]

#[cfg(not(any(loom, miri)))]
mod arbiter;
mod arrival_queue;
mod costs;
mod gate;
mod layout;
#[cfg(not(any(loom, miri)))]
mod segment;
mod work;
mod world;

#[cfg(not(any(loom, miri)))]
pub use arbiter::{
    Arbiter, DIRECTORY_VARIABLE, HolderView, Module, ModuleView, Options, Participation, Permit, ProcessView,
    Snapshot,
};
pub use costs::{Costs, Mean};
pub use gate::{BATCH_NS, EXACT_FROM_NS, Gate, Grant, Place, Refused, Request, Turn, WEIGHT_MAX, revive};

pub use layout::{ModuleCount, Shape, WaitQueue};
#[cfg(not(any(loom, miri)))]
pub use segment::NoArbiter;
pub use work::Work;
pub use world::World;
