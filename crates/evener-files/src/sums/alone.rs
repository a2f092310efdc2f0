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
            false => Some(Digest::fetch(method.name()).ok_or_else(|| refused(method))?),
        };
        Ok(Self { method, digest })
    }

    /// Digests what is left of a file.
    pub(super) fn digest(&self, file: &OwnedFd, lanes: Option<&mut Lanes>) -> Result<Vec<u8>, FileError> {
        match (&self.digest, lanes) {
            (None, Some(lanes)) => by_chain(file, self.method.hash, lanes),
            (Some(digest), _) => by_libcrypto(file, digest, self.method),
            (None, None) => Err(refused(self.method)),
        }
    }
}

fn by_chain(file: &OwnedFd, hash: Hash, lanes: &mut Lanes) -> Result<Vec<u8>, FileError> {
    let mut running = Running::new(hash);
    let mut place = vec![0; READ_BYTES];
    loop {
        let bytes = read_on(file, &mut place, 0)?;
        if bytes < place.len() {
            lanes.run(&mut [Span::last(&mut running, &place[..bytes])]);
            let mut digest = vec![0; hash.digest_bytes()];
            running.digest(&mut digest);
            return Ok(digest);
        }
        lanes.run(&mut [Span::more(&mut running, &place)]);
    }
}

fn by_libcrypto(file: &OwnedFd, digest: &Digest, method: Method) -> Result<Vec<u8>, FileError> {
    let refused = |_: Refused| refused(method);
    let mut running = digest.begin().map_err(refused)?;
    let mut place = vec![0; READ_BYTES];
    loop {
        let bytes = read_on(file, &mut place, 0)?;
        running.update(&place[..bytes]).map_err(refused)?;
        if bytes < place.len() {
            return Ok(running.finish().map_err(refused)?.to_vec());
        }
    }
}

fn refused(method: Method) -> FileError {
    FormatError::Library(format!("libcrypto does not compute {}", method.name())).into()
}

impl Method {
    /// The name that libcrypto has for the hash.
    fn name(self) -> &'static str {
        match self.hash {
            Hash::Sha1 => "SHA1",
            Hash::Sha224 => "SHA2-224",
            Hash::Sha256 => "SHA2-256",
            Hash::Sha384 => "SHA2-384",
            Hash::Sha512 => "SHA2-512",
        }
    }

    /// Whether one message alone is as quick by the lanes' instructions as by libcrypto.
    pub(super) fn has_chain(self) -> bool {
        let is_extended = matches!(self.hash, Hash::Sha1 | Hash::Sha224 | Hash::Sha256);
        is_extended && self.means.is_some_and(|means| means.has_sha())
    }
}
