//! What goes over the host's wire, as types: bytes in, checked values out, and back.
//!
//! Path of one session: [`Header`] and a payload (`message.rs`) set up memory and rings ([`MemoryTable`],
//! [`RingAddresses`], `payload.rs`) -> [`CreateSession`] (`session.rs`) -> data requests in a ring, each with a
//! [`DataRequest`] in front (`request.rs`), numbers from `numbers.rs` (Evener's algorithms in them: `algorithm.rs`), answered by a [`Status`] -> close. What a host does is
//! in its [`Config`] (`config.rs`). A device that has no socket in front of it gets sessions by its control queue (`control.rs`).
//!
//! Sources: QEMU docs/interop/vhost-user.rst (messages), QEMU include/hw/virtio/vhost-user.h and backends/cryptodev-vhost.c
//! (session payload, 1072 bytes since QEMU 8), virtio 1.2, 5.9 (crypto device), Linux include/uapi/linux/virtio_crypto.h (data
//! request without the feature REVISION_1). Messages are in the machine's byte order, what lies in a ring is little-endian.
//!
//! Nothing here allocates, reads a clock or touches shared memory: callers copy bytes first and then parse.
#![forbid(unsafe_code)]

mod algorithm;
mod bytes;
mod config;
mod control;
mod message;
pub mod numbers;
mod payload;
mod request;
mod session;

pub use algorithm::{create_code, direction_of, number_of, operation_of};
pub use config::{CONFIG_BYTES, Config, ConfigMessage};
pub use control::{ANSWER_BYTES, CONTROL_BYTES, close_request, opened_id};
pub use message::{HEADER_BYTES, Header, Message, PAYLOAD_BYTES_MAX, features, protocol_features};
pub use payload::{MemoryTable, REGION_COUNT_MAX, Region, RingAddresses, RingDescriptor, RingState, number};
pub use request::{DATA_HEADER_BYTES, DataRequest, Lengths, Operation, Status};
pub use session::{AUTH_KEY_BYTES_MAX, CreateSession, KEY_BYTES_MAX, SESSION_BYTES};

/// Bytes that are none of what they are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// A length differs from what the message is made of.
    #[error("{what} has {given} bytes, not {needed}")]
    Length {
        /// What was read.
        what: &'static str,
        /// Bytes that it has by its definition.
        needed: usize,
        /// Bytes that came.
        given: usize,
    },
    /// The low two bits of a header's flags are no version 1.
    #[error("vhost-user flags {0:#x} are not of version 1")]
    Version(u32),
    /// A payload longer than any message's.
    #[error("a payload of {0} bytes is longer than any message's")]
    Oversized(u32),
    /// A message that this wire has no use for.
    #[error("unknown message {0}")]
    UnknownMessage(u32),
    /// More memory regions than a table may have.
    #[error("{0} memory regions, the most is {REGION_COUNT_MAX}")]
    Regions(u32),
    /// A number that names nothing.
    #[error("{what} {number} is unknown")]
    Number {
        /// What the number stands for.
        what: &'static str,
        /// As it was sent.
        number: u64,
    },
    /// A key longer than its field.
    #[error("a key of {0} bytes is longer than its field")]
    KeyLength(u32),
}
