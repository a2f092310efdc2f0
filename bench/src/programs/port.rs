//! A free port for a server that is told its port before it starts.

use std::io;
use std::net::{IpAddr, TcpListener};

/// A port at `listen` that was free a moment ago; another program may take it before it is used.
///
/// # Errors
///
/// Where nothing can listen there.
pub fn free(listen: IpAddr) -> io::Result<u16> {
    TcpListener::bind((listen, 0))?.local_addr().map(|address| address.port())
}
