//! Linux's asynchronous reads (`io_submit(2)`), as far as Evener needs them.
//!
//! [`Place`] is the kernel's place for reads that have ended: for whoever only wants an eventfd raised. A [`Reader`] reads into
//! memory of its own and is left where the read does not end: what the kernel may still write to stays behind.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "room: memory that the kernel writes to after a call")]

mod place;
mod reader;

pub use place::{Place, Read};
pub use reader::{ReadError, Reader};
