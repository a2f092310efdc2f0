//! Descriptors as a daemon treats them: closed though others opened them, and others put at their numbers.

use std::ffi::c_int;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

/// More than the provider has open.
const NUMBERS: c_int = 64;

/// Closes every descriptor but the standard ones, ours or not.
pub fn close_all() {
    for number in 3..NUMBERS {
        // SAFETY: takes a number. That they belong to other owners is the point of the test; owners check before they use or close them.
        unsafe { libc::close(number) };
    }
}

/// The program's own at the numbers that became free: events, files and sockets in turn.
pub struct Occupied {
    sockets: Vec<UnixStream>,
    files: Vec<File>,
    events: Vec<OwnedFd>,
}

impl Occupied {
    pub fn new() -> Self {
        let mut this = Self { sockets: Vec::new(), files: Vec::new(), events: Vec::new() };
        for _ in 0..NUMBERS / 4 {
            let (one, other) = UnixStream::pair().unwrap();
            for socket in [one, other] {
                socket.set_nonblocking(true).unwrap();
                this.sockets.push(socket);
            }
            this.files.push(tempfile::tempfile().unwrap());
            // SAFETY: takes numbers.
            let event = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK) };
            // SAFETY: just opened, and nothing else owns it.
            this.events.push(unsafe { OwnedFd::from_raw_fd(event) });
        }
        this
    }

    /// What of them is not as it was made: closed, written to, rung.
    pub fn touched(mut self) -> Vec<String> {
        let mut touched = Vec::new();
        for socket in &mut self.sockets {
            let number = socket.as_raw_fd();
            match socket.read(&mut [0; 2_048]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => touched.push(format!("socket {number}: {other:?}")),
            }
        }
        for file in &self.files {
            match file.metadata().map(|seen| seen.len()) {
                Ok(0) => {}
                other => touched.push(format!("file {}: {other:?}", file.as_raw_fd())),
            }
        }
        for event in &self.events {
            let (number, mut count) = (event.as_raw_fd(), [0; 8]);
            // SAFETY: space for the eight bytes that an event gives.
            let came = unsafe { libc::read(number, count.as_mut_ptr().cast(), count.len()) };
            match (came, std::io::Error::last_os_error().kind()) {
                (-1, ErrorKind::WouldBlock) => {}
                other => touched.push(format!("event {number}: {other:?}")),
            }
        }
        touched
    }
}
