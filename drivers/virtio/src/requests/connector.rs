//! Connects to what a name names: a host's socket, or a device that this process takes.

use evener_vfio::{Address, Reserved};

use crate::connection::Connection;
use crate::connection::error::ConnectionError;
use crate::module_name::{ModuleName, Place};

/// Connects to what has that name.
pub(crate) fn connect(name: &ModuleName) -> Result<Connection, ConnectionError> {
    match name.place() {
        Place::Socket(path) => Connection::to_host(path, name.trusted()),
        Place::Function(address) => take(reserve(*address)?),
    }
}

/// Reserves a device, so that no other process takes it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn reserve(address: Address) -> Result<Reserved, ConnectionError> {
    crate::device::reserve(address)
}

/// Takes one.
#[cfg(target_arch = "x86_64")]
pub(crate) fn take(reserved: Reserved) -> Result<Connection, ConnectionError> {
    Connection::to_device(|region, parts, control_at| {
        crate::device::open(reserved, region, parts, control_at)
    })
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn reserve(_: Address) -> Result<Reserved, ConnectionError> {
    Err(ConnectionError::Function("devices are driven on x86-64 only".to_owned()))
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn take(_: Reserved) -> Result<Connection, ConnectionError> {
    Err(ConnectionError::Function("devices are driven on x86-64 only".to_owned()))
}
