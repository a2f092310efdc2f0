//! A `/dev/crypto` in user space: OCF, the papers' interface, for programs that know nothing else, and for tests.
//!
//! Steps of one request (`node.rs`): the client's `ioctl` -> the kernel's CUSE -> a message on `/dev/cuse` (`fuse.rs`) -> a call with
//! the memory that it names (`call.rs`; the kernel fetches that in a second round, as this server requests it) -> a session and a
//! job (`clients.rs`) -> the runtime -> the reply. An asynchronous one waits (`async_queue.rs`)
//! until its client fetches it, or no client fetches anything, and then runs with all others that wait. A session that its client ends, or leaves
//! behind, ends in the runtime as well: no driver keeps anything of its key.
//!
//! Each request takes three or four changes of process and three copies: hundreds of microseconds where a device takes
//! tens. Of those whose clients wait for the answer one is worked on at a time.
#![forbid(unsafe_code)]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod async_queue;
mod call;
mod clients;
mod fuse;
mod node;
mod outcome;
mod wiped;

pub use call::TEXT_BYTES_MAX;
pub use node::{Error, Node, Served};
