//! A driver for modules that another process owns, `evener host` or any back end that speaks vhost-user-crypto, and for virtio-crypto devices
//! on the PCI bus, which this process drives itself.
//!
//! The path of one job: `submit` finds its session at the host (`connection/session_cache.rs`), space in shared memory (`connection/pool.rs`), copies
//! the input there and adds a request to the queue (`connection/mod.rs`) -> `poll` shows the whole batch to the host with at most one kick, waits
//! (`connection/shared_connection.rs`, `connection/wait.rs`) and copies out what came back -> `Done | Failed` (`requests/jobs.rs`). A single request of
//! a caller who waits goes over the same connection (`requests/single.rs`). A device may be taken with the first request only (`module/lazy.rs`).
//!
//! A connection ([`Module`] opens it) has one queue and one region of its own memory, which holds the queue, the requests and the data; the
//! job's own memory is never shared. What differs between a host and a device stands behind `connection/link.rs`: a socket (`connection/control.rs`), or
//! registers and a control queue (`device/`). A host that goes away or stops answering
//! loses the connection, and the jobs are redone from their own memory. A forked child gets a connection of its own: nothing of the
//! parent's is mapped there; of a device it gets none. `docs/design/hosted.md` and `docs/design/virtio.md` say what is sent and what that costs.
#![allow(unsafe_code, reason = "room: a test that forks; the driver itself has none")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod connection;
#[cfg(target_arch = "x86_64")]
mod device;
mod module;
mod module_name;
mod requests;

pub use crate::connection::error::ConnectionError;
pub use crate::module::{DEPTH, LazyModule, Module, OpenError, PERMITS};
pub use crate::module_name::{ModuleName, NameError, Offer, Place};
