//! What the programs and hosts of this user do: read at one moment, and compared with an earlier one.
//!
//! Path: [`Sources`] (where to look) -> statistics files (`process.rs`) and hosts that answer at their control sockets (`host.rs`)
//! -> [`Reading`] -> [`Change`] between two of them.

mod change;
mod directory;
mod host;
mod process;
mod reading;

pub(crate) use change::Change;
pub(crate) use host::{ConnectionCounts, Host, HostReport};
pub(crate) use process::Process;
pub(crate) use reading::{Reading, Sources};
