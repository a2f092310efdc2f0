//! Messages of ciphers that may take another way than the inner cipher's own: what is known of them, and each such way.

mod blocks;
pub(crate) mod buffering;
pub(crate) mod calls;
pub(crate) mod combining;
pub(crate) mod context;
pub(crate) mod engine;
pub(crate) mod gcm;
pub(crate) mod in_flight;
pub(crate) mod message;
mod module_choice;
pub(crate) mod pipelines;
mod record;
pub(crate) mod route;
pub(crate) mod spans;
mod split;
