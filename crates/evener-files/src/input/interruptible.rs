//! An interruptible reader: a read from a pipe or terminal that may be silent for hours ends when the run is cancelled, and when what is read goes
//! nowhere any more.

use std::fmt;
use std::io::{self, Read};
use std::os::fd::AsFd;

use evener::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::error::FileError;

/// Longest time between two checks of the cancel flag, where no signal wakes the thread. Assumed, not measured: 100 ms, below
/// what a user takes for a delay.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A source of bytes that ends with an error when one of its causes to stop comes while it waits. Reads no more than it is requested.
pub(crate) struct InterruptibleReader<F> {
    source: F,
    causes: Vec<Cancel>,
}

impl<F: AsFd> InterruptibleReader<F> {
    pub(crate) fn new(source: F, causes: &[&Cancel]) -> Self {
        Self { source, causes: causes.iter().map(|&cause| cause.clone()).collect() }
    }

    /// Waits a moment for bytes or the end; a signal ends the moment.
    fn is_ready(&self) -> io::Result<bool> {
        match poll(&mut [PollFd::new(&self.source, PollFlags::IN)], Some(&POLL_INTERVAL)) {
            Err(Errno::INTR) => Ok(false),
            answer => Ok(answer? > 0),
        }
    }
}

impl<F: AsFd> Read for InterruptibleReader<F> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.is_ready()? {
                match rustix::io::read(&self.source, &mut *space) {
                    // Another reader of a descriptor that does not wait was faster.
                    Err(Errno::AGAIN) => {}
                    came => return Ok(came?),
                }
            }
            if self.causes.iter().any(Cancel::is_cancelled) {
                return Err(io::Error::other(Stopped));
            }
        }
    }
}

/// What a failed read means for its file.
pub(crate) fn read_error(error: io::Error) -> FileError {
    match error.get_ref() {
        Some(inner) if inner.is::<Stopped>() => FileError::Stopped,
        _ => FileError::io("read")(error),
    }
}

/// The run was cancelled while a read waited.
#[derive(Debug)]
struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped")
    }
}

impl std::error::Error for Stopped {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_waits_for_ever_ends_when_the_run_is_cancelled() {
        let (silent, _writer) = rustix::pipe::pipe().unwrap();
        let cancel = Cancel::default();
        let mut patient = InterruptibleReader::new(silent, &[&Cancel::default(), &cancel]);
        let error = std::thread::scope(|scope| {
            let reader = scope.spawn(|| patient.read(&mut [0; 8]).unwrap_err());
            cancel.cancel();
            reader.join().unwrap()
        });
        assert!(matches!(read_error(error), FileError::Stopped));
    }

    #[test]
    fn what_was_written_is_read_and_the_end_is_the_end() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&writer, b"text").unwrap();
        drop(writer);
        let mut read = Vec::new();
        InterruptibleReader::new(reader, &[&Cancel::default()]).read_to_end(&mut read).unwrap();
        assert_eq!(read, b"text");
    }
}
