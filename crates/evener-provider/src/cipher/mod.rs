//! Messages of ciphers that may take another way than the inner cipher's own: what is known of them, and each such way.
//!
//! Path of an update: `route.rs` decides by the state of the message (`message/`) -> `combining.rs` encrypts CBC together with other
//! threads, or `buffering.rs` (a message), `record.rs` (a TLS record) or `route.rs` itself (a unit of XTS) cuts it into block work ->
//! `blocks.rs` gives each piece to helpers (`split.rs`), an engine (`engine/`) or the inner cipher. GCM (`gcm/`) and pipelines
//! (`pipelines/`) have paths of their own; one-shot calls come by `one_shot.rs`. `context.rs` holds what C holds for a cipher in use, `counting.rs` what is counted of it,
//! `calls.rs` its init and its return to the inner cipher.

mod blocks;
pub(crate) mod buffering;
pub(crate) mod calls;
pub(crate) mod combining;
pub(crate) mod comparison;
pub(crate) mod context;
mod counting;
pub(crate) mod engine;
pub(crate) mod gcm;
pub(crate) mod in_flight;
pub(crate) mod lane;
pub(crate) mod message;
pub(crate) mod module_choice;
pub(crate) mod one_shot;
pub(crate) mod pipelines;
mod record;
pub(crate) mod route;
pub(crate) mod spans;
pub(crate) mod split;
