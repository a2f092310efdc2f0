//! The key of a record, and what was asked as a digest under it.
//!
//! A Tink key gives the record's key, so that the record goes where the output goes. Recipients are public and passphrases can be guessed,
//! so with those it comes from a random number that Evener keeps for its user ([`local_secret`]): no other user can try guesses on it.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305};
use evener_fd::{atomic_file, open_named};
use hkdf::Hkdf;
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::block::{Group, Request};
use crate::format::KeyFacts;
use crate::random::fill_random;

/// Bytes of a secret.
const SECRET_BYTES: usize = 32;
/// The file with the random number of the user.
const SECRET_NAME: &str = "record.key";

/// What opens and seals the blocks of a record, and knows its own among them.
pub(crate) struct RequestKey {
    pub(super) cipher: XChaCha20Poly1305,
    pub(super) request: Request,
    pub(super) is_by_passphrase: bool,
}

impl RequestKey {
    /// The key for what `facts` say; `None` where it takes a secret of the user's and there is none, nor a place where one `is_made`.
    pub(crate) fn new(facts: &KeyFacts, state_dir: Option<&Path>, is_made: bool) -> Option<Self> {
        let secret = match &facts.secret {
            Some(secret) => secret.clone(),
            None => local_secret(state_dir?, is_made)?,
        };
        let derived = Hkdf::<Sha256>::new(None, &secret[..]);
        let derive = |info: &[u8], to: &mut [u8]| derived.expand(info, to).expect("32 bytes are few");
        let mut key = Zeroizing::new([0; SECRET_BYTES]);
        derive(b"evener record 1: blocks", &mut key[..]);
        // Each part with its length, so that no two requests are one text.
        let mut asked = Sha256::new();
        for part in &facts.parts {
            asked.update((part.len() as u64).to_le_bytes());
            asked.update(&part[..]);
        }
        let mut info = Zeroizing::new(b"evener record 1: request".to_vec());
        info.extend_from_slice(&asked.finalize());
        let mut request = Request::default();
        derive(&info, &mut request.0);
        let cipher = XChaCha20Poly1305::new((&*key).into());
        Some(Self { cipher, request, is_by_passphrase: facts.is_by_passphrase })
    }

    /// A group that no run had before; without random bytes none.
    pub(super) fn new_group(&self) -> Group {
        let mut group = Group::default();
        if self.is_by_passphrase {
            fill_random(&mut group.0).ok();
        }
        group
    }
}

/// The random number of the user; where there is none and one `is_made`, a new one. One that others could read or that belongs to another user is none.
fn local_secret(dir: &Path, is_made: bool) -> Option<Zeroizing<[u8; SECRET_BYTES]>> {
    let path = dir.join(SECRET_NAME);
    read_secret(&path).or_else(|| {
        if !is_made {
            return None;
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).ok()?;
        make_secret(&path).ok();
        // Another run may have been quicker: what stands there now counts for both.
        read_secret(&path)
    })
}

fn read_secret(path: &Path) -> Option<Zeroizing<[u8; SECRET_BYTES]>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut file = File::from(open_named(path, flags).ok()?);
    let metadata = file.metadata().ok()?;
    let is_ours = metadata.is_file() && metadata.uid() == rustix::process::geteuid().as_raw();
    let mut secret = Zeroizing::new([0; SECRET_BYTES]);
    file.read_exact(&mut secret[..]).ok()?;
    (is_ours && metadata.mode() & 0o077 == 0 && metadata.len() == SECRET_BYTES as u64).then_some(secret)
}

/// Writes a new secret whole or not at all, without replacing one.
fn make_secret(path: &Path) -> std::io::Result<()> {
    let mut secret = Zeroizing::new([0; SECRET_BYTES]);
    fill_random(&mut secret[..]).map_err(std::io::Error::other)?;
    atomic_file::make_durably(path, &secret[..], 0o600)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn facts(parts: &[&[u8]]) -> KeyFacts {
        let parts = parts.iter().map(|part| Zeroizing::new(part.to_vec())).collect();
        KeyFacts { secret: None, parts, is_by_passphrase: false }
    }

    #[test]
    fn the_secret_of_a_user_is_made_once_and_one_that_others_can_read_is_none() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("state");
        assert_eq!(local_secret(&dir, false), None);
        assert!(!dir.exists());
        let first = local_secret(&dir, true).unwrap();
        assert_eq!(local_secret(&dir, false), Some(first));
        let path = dir.join(SECRET_NAME);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(local_secret(&dir, true), None);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing else is left there");
    }

    #[test]
    fn requests_differ_by_every_part_and_users_by_their_secret() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = |parts: &[&[u8]], place: &tempfile::TempDir| {
            RequestKey::new(&facts(parts), Some(place.path()), true).unwrap().request
        };
        let request = key(&[b"a", b"bc"], &one);
        assert_eq!(key(&[b"a", b"bc"], &one), request);
        for parts in [&[&b"ab"[..], b"c"][..], &[b"a"], &[b"a", b"bc", b""]] {
            assert_ne!(key(parts, &one), request);
        }
        assert_ne!(key(&[b"a", b"bc"], &other), request);
        assert!(RequestKey::new(&facts(&[]), None, true).is_none());
    }
}
