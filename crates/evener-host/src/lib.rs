//! A process that owns a module and serves it to others: local programs through Evener's client, QEMU guests as a virtio-crypto
//! device. The wire is vhost-user-crypto.
//!
//! The way of one client: [`run`] accepts it (`listener.rs`), the kernel says who it is ([`Access`]) -> a thread of its own
//! handles its messages (`connection.rs`, `socket.rs`) and sets up what the host knows of it (`client.rs`: `memory.rs`,
//! `sessions.rs`, rings) -> the module's thread (`station.rs`) takes its requests (`request.rs`), has them done
//! ([`Module`]) in memory of the host's own (`desk.rs`, `slots.rs`), and gives them back (`calls.rs`) -> the client goes
//! and all that it had is wiped.
//! Beside it `control.rs` takes orders (`order.rs`), and [`Report`] says what was done. The design stands in `docs/host.md`.
#![allow(unsafe_code, reason = "room: data of jobs that outlive their function; asynchronous reads")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod access;
mod calls;
mod client;
mod connection;
mod control;
mod desk;
mod error;
mod host;
mod limits;
mod listener;
mod memory;
mod module;
mod order;
mod report;
mod request;
mod sessions;
mod shared;
mod slots;
mod socket;
mod station;

pub use access::{Access, Peer};
pub use error::HostError;
pub use host::{Setup, run};
pub use limits::Limits;
pub use memory::MemoryRefusal;
pub use module::Module;
pub use report::{ClientReport, ModuleReport, Report, Totals};
