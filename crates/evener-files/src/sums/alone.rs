//! One file by itself, from front to back: by the SHA extensions where they are, and by libcrypto elsewhere.

use std::os::fd::OwnedFd;

use evener_evp::{Digest, Refused};
use evener_kernels::hashes::{Hash, Lanes, Running, Span};

use super::Method;
use super::opened::read_on;
use crate::error::{FileError, FormatError};

/// Bytes that are read at a time. Assumed, not measured: 256 KiB, which stay in a core's second cache.
const READ_BYTES: usize = 256 << 10;

/// A hash as it is computed for one file at a time.
pub(super) struct Alone {
    method: Method,
    /// libcrypto's, where lanes have no way for one message that is as quick.
    digest: Option<Digest>,
}

impl Alone {
    pub(super) fn new(method: Method) -> Result<Self, FileError> {
        let digest = match method.has_chain() {
            true => None,
            false => Some(Digest::fetch(method.hash.name()).ok_or_else(|| refused(method))?),
        };
        Ok(Self { method, digest })
    }

    /// Digests what is left of a file; none where that is wanted no longer.
    pub(super) fn digest(
        &self,
        file: &OwnedFd,
        lanes: Option<&mut Lanes>,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Option<Vec<u8>>, FileError> {
        let parts = Parts { file, place: vec![0; READ_BYTES], is_wanted };
        match (&self.digest, lanes) {
            (None, Some(lanes)) => by_chain(parts, self.method.hash, lanes),
            (Some(digest), _) => by_libcrypto(parts, digest, self.method),
            (None, None) => Err(refused(self.method)),
        }
    }
}

/// A file, as it is read.
struct Parts<'a, W> {
    file: &'a OwnedFd,
    place: Vec<u8>,
    is_wanted: W,
}

impl<W: Fn() -> bool> Parts<'_, W> {
    /// The next part, and whether it is the last; none where that is wanted no longer.
    fn next(&mut self) -> Result<Option<(&[u8], bool)>, FileError> {
        if !(self.is_wanted)() {
            return Ok(None);
        }
        let bytes = read_on(self.file, &mut self.place, 0)?;
        Ok(Some((&self.place[..bytes], bytes < self.place.len())))
    }
}

fn by_chain(
    mut parts: Parts<'_, impl Fn() -> bool>,
    hash: Hash,
    lanes: &mut Lanes,
) -> Result<Option<Vec<u8>>, FileError> {
    let mut running = Running::new(hash);
    while let Some((part, is_last)) = parts.next()? {
        if !is_last {
            lanes.run(&mut [Span::more(&mut running, part)]);
            continue;
        }
        lanes.run(&mut [Span::last(&mut running, part)]);
        let mut digest = vec![0; hash.digest_bytes()];
        running.digest(&mut digest);
        return Ok(Some(digest));
    }
    Ok(None)
}

fn by_libcrypto(
    mut parts: Parts<'_, impl Fn() -> bool>,
    digest: &Digest,
    method: Method,
) -> Result<Option<Vec<u8>>, FileError> {
    let refused = |_: Refused| refused(method);
    let mut running = digest.begin().map_err(refused)?;
    while let Some((part, is_last)) = parts.next()? {
        running.update(part).map_err(refused)?;
        if is_last {
            return Ok(Some(running.finish().map_err(refused)?.to_vec()));
        }
    }
    Ok(None)
}

fn refused(method: Method) -> FileError {
    FormatError::Library(format!("libcrypto does not compute {}", method.hash.name())).into()
}

impl Method {
    /// Whether one message alone is as quick by the lanes' instructions as by libcrypto.
    pub(super) fn has_chain(self) -> bool {
        let is_extended = matches!(self.hash, Hash::Sha1 | Hash::Sha224 | Hash::Sha256);
        is_extended && self.means.is_some_and(|means| means.has_sha())
    }
}
