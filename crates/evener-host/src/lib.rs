//! A process that owns a module and serves it to others: local programs through Evener's client, QEMU guests as a virtio-crypto
//! device. The wire is vhost-user-crypto.
//!
//! The path of one client: [`run`] has one thread in front (`front/event_loop/mod.rs`), which accepts it (`front/listener.rs`), asks the kernel who it is
//! ([`Access`]), reads its messages (`front/connection.rs`, `front/socket.rs`) and sets up what the host knows of it (`front/messages.rs`,
//! `state/client.rs`: `state/users.rs`, `state/memory.rs`, `state/faults.rs`, `state/sessions.rs`, `state/ring.rs`) -> one of the module's threads (`service/service_loop.rs`) takes its
//! requests in its turn (`service/run_queue.rs`, `service/shares.rs`, `service/intake.rs`, `service/request.rs`), has them done ([`Module`]) in the client's memory or in
//! a copy (`service/in_flight.rs`, `service/client_span.rs`, `service/slots.rs`), and gives them back (`service/answers.rs`, `service/notify.rs`) -> the client goes and all that it had is wiped.
//! Beside it `front/control.rs` takes commands (`front/admin_command.rs`), and [`Report`] says what was done. The design stands in `docs/design/host.md`.
#![allow(unsafe_code, reason = "room: memory of jobs that outlive their function; asynchronous reads")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod access;
mod activation;
mod error;
mod front;
mod host;
mod limits;
mod machine_memory;
mod module;
mod service;
mod state;

pub use access::{Access, Peer};
pub use activation::listener_of_activation;
pub use error::HostError;
pub use host::{Setup, Socket, run};
pub use limits::{Limits, TooFewFiles};
pub use machine_memory::memory_of_machine;
pub use module::Module;
pub use state::memory::MemoryRefusal;
pub use state::report::{
    ClientReport, ConnectionReport, LimitsReport, ModuleReport, Report, Totals, UserReport,
};
