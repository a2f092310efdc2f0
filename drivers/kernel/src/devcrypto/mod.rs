//! OCF: `/dev/crypto`, as cryptodev-linux and FreeBSD have it.
//!
//! A key is a session on a descriptor of its own; each runner calls `CIOCCRYPT` and sleeps there. `CIOCASYNCCRYPT` is not
//! used: it is missing in most builds, and where it is there one kernel thread does one request after the other
//! (cryptodev-linux/cryptodev-linux#90). A forked child opens everything anew (`queued.rs`).

mod ffi;
#[cfg(test)]
mod interrupted;
#[cfg(test)]
mod stand_in;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use evener_core::{Algorithm, Direction, Family};

use crate::desk::{Device, Failure, Spec, Task};
use crate::module::OpenError;
use crate::ocf;
use crate::pieces::in_pieces;

/// Data of one call: below the 64 KiB that old nodes take, and what a node in user space can be handed at once.
const PIECE_BYTES: usize = 32 << 10;

/// A node and what it does.
#[derive(Clone, Debug)]
pub(crate) struct DevCrypto {
    node: PathBuf,
    algorithms: Vec<Algorithm>,
    detail: String,
}

/// A session, closed when it goes.
pub(crate) struct OpenSession {
    file: File,
    number: u32,
}

impl DevCrypto {
    /// Opens the node and asks it for a session of each algorithm.
    pub(crate) fn open(node: &Path) -> Result<Self, OpenError> {
        let mut this = Self { node: node.to_owned(), algorithms: Vec::new(), detail: String::new() };
        this.file().map_err(|error| OpenError::Unavailable(no_node(node, &error)))?;
        let mut drivers: Vec<String> = Vec::new();
        for &algorithm in Algorithm::ALL {
            let key: Vec<u8> = (0..=254).take(algorithm.key_bytes().unwrap_or(32)).collect();
            let spec = Spec { algorithm, direction: Direction::Encrypt };
            if let (Some(_), Ok(session)) = (ocf::number_of(algorithm), this.open_key(spec, &key)) {
                this.algorithms.push(algorithm);
                drivers.extend(session.driver(algorithm));
            }
        }
        if this.algorithms.is_empty() {
            let does = "none of OCF's algorithms that Evener has".to_owned();
            return Err(OpenError::NothingForUs { name: node.display().to_string(), does });
        }
        drivers.dedup();
        this.detail = match &drivers[..] {
            [] => "OCF".to_owned(),
            drivers => format!("OCF, {}", drivers.join(", ")),
        };
        Ok(this)
    }

    pub(crate) fn algorithms(&self) -> &[Algorithm] {
        &self.algorithms
    }

    /// What stands behind it, for people: constant, because kept costs go by it.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    fn file(&self) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(&self.node)
    }
}

impl Device for DevCrypto {
    type Key = OpenSession;

    fn takes(&self, algorithm: Algorithm, text_bytes: usize, _aad_bytes: usize) -> bool {
        match algorithm.family() {
            Family::Ecb | Family::Cbc | Family::Ctr => true,
            // What cannot be cut.
            _ => text_bytes <= PIECE_BYTES,
        }
    }

    fn open_key(&self, spec: Spec, key: &[u8]) -> Result<OpenSession, Failure> {
        let number = ocf::number_of(spec.algorithm).ok_or(Failure::Errno(libc::ENOENT))?;
        let file = self.file()?;
        let opened = uninterrupted(|| match spec.algorithm.is_cipher() {
            true => ffi::open_session(file.as_fd(), (number, 0), key, &[]),
            false => ffi::open_session(file.as_fd(), (0, number), &[], key),
        });
        let number = opened.map_err(|error| match error.raw_os_error().unwrap_or(libc::EIO) {
            libc::EINVAL | libc::ENOSPC | libc::ENOMEM | libc::EBUSY | libc::EAGAIN => Failure::Full,
            errno => Failure::Errno(errno),
        })?;
        Ok(OpenSession { file, number })
    }

    fn run(&self, key: &OpenSession, task: &mut Task) -> Result<(), Failure> {
        let Spec { algorithm, direction } = task.spec;
        let node = key.file.as_fd();
        if !algorithm.is_cipher() {
            let digest = &mut task.tag[..algorithm.tag_bytes()];
            return Ok(ffi::hash(node, key.number, &task.room[..task.text_bytes], digest)?);
        }
        let op = if direction == Direction::Encrypt { ocf::ENCRYPT } else { ocf::DECRYPT };
        in_pieces(task, PIECE_BYTES, |iv, piece, _| Ok(ffi::crypt(node, key.number, op, iv, piece)?))
    }
}

impl OpenSession {
    /// The name of the kernel's driver behind it, where the node tells.
    fn driver(&self, algorithm: Algorithm) -> Option<String> {
        let info = uninterrupted(|| ffi::session_info(self.file.as_fd(), self.number)).ok()?;
        let place = ocf::SESSION_INFO_PLACES[usize::from(!algorithm.is_cipher())];
        let name = info[place..place + ocf::NAME_BYTES].split(|&byte| byte == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned()).filter(|name| !name.is_empty())
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        // The descriptor goes too, and all of its sessions with it.
        ffi::close_session(self.file.as_fd(), self.number).ok();
    }
}

/// Makes a call again as long as signals end it. Only for questions, and for sessions, of which one too many goes with its
/// descriptor: a request that a signal ended may have begun, and nobody knows on which text.
fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Why a node cannot be used; `None` where it opens.
#[must_use]
pub fn why_no_node(node: &Path) -> Option<String> {
    OpenOptions::new().read(true).write(true).open(node).err().map(|error| no_node(node, &error))
}

/// Why there is no node.
fn no_node(node: &Path, error: &io::Error) -> String {
    let shown = node.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!("there is no {shown}: on Linux cryptodev-linux or `evener cryptodev` makes one")
        }
        _ => format!("{shown} cannot be opened: {error}"),
    }
}
