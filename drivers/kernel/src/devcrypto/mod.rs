//! Calls modules through OCF: `/dev/crypto`, as cryptodev-linux and FreeBSD have it.
//!
//! A key is a session on a descriptor of its own; each runner calls `CIOCCRYPT` and sleeps there. Where the node has
//! `CIOCASYNCCRYPT`, which most builds lack, and it proved to be faster so (`module/`), the chunks of a long request are left with it side by
//! side (`async_requests.rs`). A forked child opens everything anew (`requests/jobs.rs`).

mod async_requests;
#[cfg(test)]
mod closed_node;
mod ffi;
#[cfg(test)]
mod interruption;
#[cfg(test)]
pub(crate) mod mock_node;

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use evener_core::{Algorithm, Direction, Family};
use evener_fd::{CheckedFd, not_in_children};

use crate::error::OpenError;
use crate::ocf;
use crate::pool::chunks::in_chunks;
use crate::pool::device::{Device, Failure, Spec, Task};
use crate::pool::key_cache::why_refused;

/// Data of one call: below the 64 KiB that old nodes take, and what a node in user space can be handed at once.
pub(crate) const CHUNK_BYTES: usize = 32 << 10;

/// A node and what it does.
#[derive(Debug)]
pub(crate) struct DevCrypto {
    node: PathBuf,
    algorithms: Vec<Algorithm>,
    detail: String,
    /// Of a node that keeps requests until they are fetched: whether that is used.
    queue: Option<AtomicBool>,
}

/// A session, closed when it is dropped. The program may close the descriptor, so each use begins with a look whether it is ours still.
pub(crate) struct OpenSession {
    node: CheckedFd,
    number: u32,
    /// Held by the thread that has requests in its queue; none where it has no queue, or what it has is not known any more.
    queue: Mutex<Option<async_requests::Queue>>,
}

impl DevCrypto {
    /// Opens the node and makes a session of each algorithm.
    pub(crate) fn open(node: &Path) -> Result<Self, OpenError> {
        let mut this =
            Self { node: node.to_owned(), algorithms: Vec::new(), detail: String::new(), queue: None };
        let file = this.file().map_err(|error| OpenError::Unavailable(no_node(node, &error)))?;
        this.queue = ffi::is_queue(&file).then(AtomicBool::default);
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
        let ocf = if this.queue.is_some() { "OCF with CIOCASYNCCRYPT" } else { "OCF" };
        this.detail = match &drivers[..] {
            [] => ocf.to_owned(),
            drivers => format!("{ocf}, {}", drivers.join(", ")),
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

    /// Whether its queue is made use of; `None` where it has none. Not at first.
    pub(crate) fn queue(&self) -> Option<&AtomicBool> {
        self.queue.as_ref()
    }

    /// Not for children: what one of them closed would be closed for its parent, too.
    fn file(&self) -> io::Result<CheckedFd> {
        not_in_children(OpenOptions::new().read(true).write(true).open(&self.node)?.into())
    }
}

impl Device for DevCrypto {
    type Key = OpenSession;

    fn takes(&self, algorithm: Algorithm, text_bytes: usize, _aad_bytes: usize) -> bool {
        match algorithm.family() {
            Family::Ecb | Family::Cbc | Family::Ctr => true,
            // What cannot be cut.
            _ => text_bytes <= CHUNK_BYTES,
        }
    }

    fn open_key(&self, spec: Spec, key: &[u8]) -> Result<OpenSession, Failure> {
        let number = ocf::number_of(spec.algorithm).ok_or(Failure::Errno(libc::ENOENT))?;
        let node = self.file()?;
        let open = |key: &[u8]| {
            uninterrupted(|| match spec.algorithm.is_cipher() {
                true => ffi::open_session(node.checked()?, (number, 0), key, &[]),
                false => ffi::open_session(node.checked()?, (0, number), &[], key),
            })
        };
        let number = open(key).map_err(|error| {
            why_refused(error.raw_os_error().unwrap_or(libc::EIO), key, |other| open(other).is_ok())
        })?;
        Ok(OpenSession {
            node,
            number,
            queue: Mutex::new(self.queue.as_ref().map(|_| async_requests::Queue)),
        })
    }

    fn run(&self, key: &OpenSession, task: &mut Task) -> Result<(), Failure> {
        let Spec { algorithm, direction } = task.spec;
        if !algorithm.is_cipher() {
            let digest = &mut task.tag[..algorithm.tag_bytes()];
            return Ok(ffi::hash(key.node.checked()?, key.number, &task.space[..task.text_bytes], digest)?);
        }
        let op = if direction == Direction::Encrypt { ocf::ENCRYPT } else { ocf::DECRYPT };
        // Relaxed: either way is right.
        let uses_queue = self.queue.as_ref().is_some_and(|queue| queue.load(Ordering::Relaxed));
        if let Some(done) = uses_queue.then(|| async_requests::side_by_side(key, op, task)).flatten() {
            return done;
        }
        in_chunks(task, CHUNK_BYTES, |iv, chunk, _| {
            Ok(ffi::crypt(key.node.checked()?, key.number, op, iv, chunk)?)
        })
    }
}

impl OpenSession {
    /// The name of the kernel's driver behind it, where the node names it.
    fn driver(&self, algorithm: Algorithm) -> Option<String> {
        let info = uninterrupted(|| ffi::session_info(self.node.checked()?, self.number)).ok()?;
        let place = ocf::SESSION_INFO_PLACES[usize::from(!algorithm.is_cipher())];
        let name = info[place..place + ocf::NAME_BYTES].split(|&byte| byte == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned()).filter(|name| !name.is_empty())
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        // The descriptor goes too, and all of its sessions with it.
        if let Ok(node) = self.node.checked() {
            ffi::close_session(node, self.number).ok();
        }
    }
}

/// Makes a call again as long as signals end it. Only for questions, and for sessions, of which one too many goes with its
/// descriptor: a request that a signal ended may have begun, and on which text is unknown.
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
