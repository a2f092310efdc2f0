//! Streams that are named several times, as standard input by `-` and `/dev/stdin`: one after the other has what is left by then.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::sync::mpsc::{Receiver, Sender, channel};

use evener_startup::duplicate;

/// What several names may stand for.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Stream {
    /// What is open with the same offset, a pipe or a socket: by device and inode.
    Node(u64, u64),
    /// Devices, of which several may be one, as `/dev/tty` and a terminal.
    Device,
}

impl Stream {
    /// Of a file that is opened by a name; none where each that opens it has all of it.
    pub(super) fn of(named: &Metadata) -> Option<Self> {
        let kind = named.file_type();
        if kind.is_char_device() {
            return Some(Self::Device);
        }
        (kind.is_fifo() || kind.is_socket()).then(|| Self::Node(named.dev(), named.ino()))
    }

    /// Of standard input, which has one offset even where it is a regular file.
    pub(super) fn of_stdin() -> Self {
        match duplicate(0).and_then(|stdin| File::from(stdin).metadata()) {
            Ok(stdin) if !stdin.file_type().is_char_device() => Self::Node(stdin.dev(), stdin.ino()),
            _ => Self::Device,
        }
    }
}

/// Turns at streams, in the order in which they were asked for.
#[derive(Default)]
pub(super) struct Turns {
    /// Of each stream the last turn: it is over when its sender is gone.
    last: HashMap<Stream, Receiver<Infallible>>,
}

/// A turn at a stream, over when it goes.
pub(super) struct Turn {
    before: Option<Receiver<Infallible>>,
    _until: Sender<Infallible>,
}

impl Turns {
    pub(super) fn next(&mut self, stream: Stream) -> Turn {
        let (until, over) = channel();
        Turn { before: self.last.insert(stream, over), _until: until }
    }
}

impl Turn {
    /// Waits until the one before is over.
    pub(super) fn wait(&self) {
        // Nothing is ever sent.
        self.before.iter().for_each(|before| _ = before.recv());
    }
}
