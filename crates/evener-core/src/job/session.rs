//! A session: key, algorithm, direction and padding, checked once and never changed.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use zeroize::Zeroizing;

use crate::job::algorithm::{Algorithm, Direction, Family};

/// Name of a session inside this process; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// What happens at the end of input that is not a whole block (ECB and CBC only).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Input must end on a block boundary.
    None,
    /// PKCS#7 (RFC 5652, 6.3): 1 to 16 bytes are added at encryption, checked and removed at decryption.
    Pkcs7,
}

/// A session that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionError {
    /// The key has the wrong length for the algorithm.
    KeyLength {
        /// The algorithm asked for.
        algorithm: Algorithm,
        /// Length of the key that was given, in bytes.
        given: usize,
    },
    /// Padding belongs to ECB and CBC only.
    Padding(Algorithm),
    /// Hashes and MACs cannot be decrypted.
    Direction(Algorithm),
    /// Both halves of an XTS key are the same (forbidden by SP 800-38E's implementation guidance).
    XtsHalvesEqual,
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyLength { algorithm, given } => match algorithm.key_bytes() {
                Some(needed) => write!(f, "{algorithm} takes a key of {needed} bytes, not {given}"),
                None => write!(f, "{algorithm} takes a key of at least one byte, not {given}"),
            },
            Self::Padding(algorithm) => write!(f, "{algorithm} takes no padding"),
            Self::Direction(algorithm) => write!(f, "{algorithm} has nothing to decrypt"),
            Self::XtsHalvesEqual => f.write_str("both halves of the XTS key are the same"),
        }
    }
}

impl std::error::Error for SessionError {}

/// A session with the IV of one request.
#[derive(Clone, Copy, Debug)]
pub struct WithIv<'a> {
    /// The session.
    pub session: &'a Session,
    /// The IV; of a nonce its first bytes.
    pub iv: &'a [u8; 16],
}

/// Key + algorithm + direction + padding. The key is wiped when the session is dropped.
pub struct Session {
    id: SessionId,
    algorithm: Algorithm,
    direction: Direction,
    padding: Padding,
    key: Zeroizing<Box<[u8]>>,
    is_for_modules_only: bool,
}

impl Session {
    /// Checks the parts and gives the session a name of its own.
    ///
    /// `key` has [`Algorithm::key_bytes`] bytes: empty for hashes, any length for HMAC, both halves for XTS.
    ///
    /// # Errors
    ///
    /// A [`SessionError`] that names the part that does not fit.
    pub fn new(
        algorithm: Algorithm,
        direction: Direction,
        padding: Padding,
        key: &[u8],
    ) -> Result<Self, SessionError> {
        check_key(algorithm, key)?;
        if padding == Padding::Pkcs7 && !algorithm.needs_whole_blocks() {
            return Err(SessionError::Padding(algorithm));
        }
        if direction == Direction::Decrypt && !algorithm.is_cipher() {
            return Err(SessionError::Direction(algorithm));
        }
        // Relaxed: only uniqueness matters, and fetch_add gives that.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = SessionId(NEXT.fetch_add(1, Ordering::Relaxed));
        let key = Zeroizing::new(key.into());
        Ok(Self { id, algorithm, direction, padding, key, is_for_modules_only: false })
    }

    /// Binds the session to modules, for a key that must not be used, or cannot be had, elsewhere: its jobs run on modules
    /// only, are neither redone nor checked on a core, and fail where no module does them.
    #[must_use]
    pub fn for_modules_only(self) -> Self {
        Self { is_for_modules_only: true, ..self }
    }

    /// Whether only modules may use it.
    #[must_use]
    #[inline]
    pub const fn is_for_modules_only(&self) -> bool {
        self.is_for_modules_only
    }

    /// Returns it with the IV of one request.
    #[must_use]
    pub const fn with_iv<'a>(&'a self, iv: &'a [u8; 16]) -> WithIv<'a> {
        WithIv { session: self, iv }
    }

    /// The session's name.
    #[must_use]
    pub const fn id(&self) -> SessionId {
        self.id
    }

    /// The algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The direction.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// The padding.
    #[must_use]
    pub const fn padding(&self) -> Padding {
        self.padding
    }

    /// The key: for drivers, which must wipe what they make of it.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Bytes that a job of `input_bytes` may write at most (without the tag).
    #[must_use]
    pub const fn output_bytes_max(&self, input_bytes: usize) -> usize {
        if !self.algorithm.is_cipher() {
            return 0;
        }
        match (self.padding, self.direction) {
            (Padding::Pkcs7, Direction::Encrypt) => {
                let whole = input_bytes / crate::units::BLOCK_BYTES * crate::units::BLOCK_BYTES;
                whole.saturating_add(crate::units::BLOCK_BYTES)
            }
            _ => input_bytes,
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({} {} {}, key hidden)", self.id.0, self.algorithm, self.direction)
    }
}

fn check_key(algorithm: Algorithm, key: &[u8]) -> Result<(), SessionError> {
    let fits = match algorithm.key_bytes() {
        Some(needed) => key.len() == needed,
        None => !key.is_empty(),
    };
    if !fits {
        return Err(SessionError::KeyLength { algorithm, given: key.len() });
    }
    let (left, right) = key.split_at(key.len() / 2);
    // Branches on key material once per session, and only to refuse a key that is not one.
    match algorithm.family() {
        Family::Xts if left == right => Err(SessionError::XtsHalvesEqual),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_the_wrong_length_is_refused_for_every_algorithm() {
        for &algorithm in Algorithm::ALL {
            let Some(right) = algorithm.key_bytes() else { continue };
            let key: Vec<u8> = (0..=u8::try_from(right).unwrap()).collect();
            let open = |key: &[u8]| Session::new(algorithm, Direction::Encrypt, Padding::None, key);
            assert!(open(&key[..right]).is_ok(), "{algorithm}");
            assert_eq!(
                open(&key).err(),
                Some(SessionError::KeyLength { algorithm, given: right + 1 }),
                "{algorithm}"
            );
        }
    }

    #[test]
    fn an_xts_key_with_equal_halves_is_refused() {
        let open = |key: &[u8]| Session::new(Algorithm::Aes128Xts, Direction::Encrypt, Padding::None, key);
        assert_eq!(open(&[7; 32]).err(), Some(SessionError::XtsHalvesEqual));
    }

    #[test]
    fn a_session_never_shows_its_key() {
        let session =
            Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[0xA5; 16]).unwrap();
        let shown = format!("{session:?}");
        assert!(!shown.contains("165") && !shown.to_lowercase().contains("a5"), "{shown}");
    }
}
