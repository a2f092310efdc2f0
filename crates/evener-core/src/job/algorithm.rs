//! The algorithms that Evener knows, in one table.
//!
//! Names are those of the field (`AES-256-CBC`); lengths are in bytes. Sources: FIPS 197 and SP 800-38A
//! (ECB, CBC, CTR), SP 800-38D (GCM), SP 800-38E (XTS, which has no 192-bit form), RFC 8439
//! (ChaCha20-Poly1305), FIPS 180-4 (SHA), RFC 1321 (MD5), RFC 2104 (HMAC).

use std::fmt;
use std::str::FromStr;

use crate::named::is_same_name;

/// What a session does with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// Plaintext in, ciphertext out; for hashes and MACs: data in, digest out.
    Encrypt,
    /// Ciphertext in, plaintext out. Hashes and MACs have no such direction.
    Decrypt,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Encrypt => "encrypt",
            Self::Decrypt => "decrypt",
        })
    }
}

/// The hash inside a digest or an HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hash {
    /// 20-byte digest.
    Sha1,
    /// 32-byte digest.
    Sha256,
    /// 16-byte digest.
    Md5,
}

impl Hash {
    /// Length of the digest in bytes.
    #[must_use]
    #[inline]
    pub const fn digest_bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Md5 => 16,
        }
    }
}

/// The construction that an algorithm belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// AES, electronic code book.
    Ecb,
    /// AES, cipher block chaining.
    Cbc,
    /// AES, counter mode with a 128-bit big-endian counter.
    Ctr,
    /// AES, Galois/counter mode, 96-bit nonce, 128-bit tag.
    Gcm,
    /// AES, XTS; one job is one data unit of at least 16 bytes.
    Xts,
    /// ChaCha20 with Poly1305, 96-bit nonce, 128-bit tag.
    ChaCha20Poly1305,
    /// A plain hash.
    Digest(Hash),
    /// A keyed hash.
    Hmac(Hash),
}

macro_rules! algorithms {
    ($($variant:ident $name:literal $family:expr, key $key:expr, iv $iv:literal;)*) => {
        /// An algorithm with its key length.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each name says what it is; the module's head names the sources")]
        pub enum Algorithm { $($variant),* }

        impl Algorithm {
            /// All of them, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name as in configuration files: `AES-256-CBC`.
            #[must_use]
            #[inline]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// The construction.
            #[must_use]
            #[inline]
            pub const fn family(self) -> Family {
                match self { $(Self::$variant => $family),* }
            }

            /// Length of the key in bytes; `None` where any length will do (HMAC).
            #[must_use]
            #[inline]
            pub const fn key_bytes(self) -> Option<usize> {
                match self { $(Self::$variant => $key),* }
            }

            /// Length of the IV, nonce, counter or tweak in bytes, 0 where there is none.
            #[must_use]
            #[inline]
            pub const fn iv_bytes(self) -> usize {
                match self { $(Self::$variant => $iv),* }
            }
        }
    };
}

algorithms! {
    Aes128Ecb "AES-128-ECB" Family::Ecb, key Some(16), iv 0;
    Aes192Ecb "AES-192-ECB" Family::Ecb, key Some(24), iv 0;
    Aes256Ecb "AES-256-ECB" Family::Ecb, key Some(32), iv 0;
    Aes128Cbc "AES-128-CBC" Family::Cbc, key Some(16), iv 16;
    Aes192Cbc "AES-192-CBC" Family::Cbc, key Some(24), iv 16;
    Aes256Cbc "AES-256-CBC" Family::Cbc, key Some(32), iv 16;
    Aes128Ctr "AES-128-CTR" Family::Ctr, key Some(16), iv 16;
    Aes192Ctr "AES-192-CTR" Family::Ctr, key Some(24), iv 16;
    Aes256Ctr "AES-256-CTR" Family::Ctr, key Some(32), iv 16;
    Aes128Gcm "AES-128-GCM" Family::Gcm, key Some(16), iv 12;
    Aes192Gcm "AES-192-GCM" Family::Gcm, key Some(24), iv 12;
    Aes256Gcm "AES-256-GCM" Family::Gcm, key Some(32), iv 12;
    Aes128Xts "AES-128-XTS" Family::Xts, key Some(32), iv 16;
    Aes256Xts "AES-256-XTS" Family::Xts, key Some(64), iv 16;
    ChaCha20Poly1305 "CHACHA20-POLY1305" Family::ChaCha20Poly1305, key Some(32), iv 12;
    Sha1 "SHA-1" Family::Digest(Hash::Sha1), key Some(0), iv 0;
    Sha256 "SHA-256" Family::Digest(Hash::Sha256), key Some(0), iv 0;
    Md5 "MD5" Family::Digest(Hash::Md5), key Some(0), iv 0;
    HmacSha1 "HMAC-SHA-1" Family::Hmac(Hash::Sha1), key None, iv 0;
    HmacSha256 "HMAC-SHA-256" Family::Hmac(Hash::Sha256), key None, iv 0;
    HmacMd5 "HMAC-MD5" Family::Hmac(Hash::Md5), key None, iv 0;
}

impl Algorithm {
    /// Length of the tag or digest in bytes, 0 where there is none.
    #[must_use]
    #[inline]
    pub const fn tag_bytes(self) -> usize {
        match self.family() {
            Family::Gcm | Family::ChaCha20Poly1305 => 16,
            Family::Digest(hash) | Family::Hmac(hash) => hash.digest_bytes(),
            Family::Ecb | Family::Cbc | Family::Ctr | Family::Xts => 0,
        }
    }

    /// Whether input must end on a block boundary unless padding is on.
    #[must_use]
    #[inline]
    pub const fn needs_whole_blocks(self) -> bool {
        matches!(self.family(), Family::Ecb | Family::Cbc)
    }

    /// The least length of at least `bytes` that is taken without padding.
    #[must_use]
    pub fn fitting(self, bytes: usize) -> usize {
        match self.family() {
            Family::Ecb | Family::Cbc => bytes.max(1).next_multiple_of(16),
            Family::Xts => bytes.max(16),
            _ => bytes.max(1),
        }
    }

    /// Whether the data is replaced (ciphers) or only read (hashes and MACs).
    #[must_use]
    #[inline]
    pub const fn is_cipher(self) -> bool {
        !matches!(self.family(), Family::Digest(_) | Family::Hmac(_))
    }

    /// Whether a wrong tag makes decryption fail.
    #[must_use]
    #[inline]
    pub const fn is_aead(self) -> bool {
        matches!(self.family(), Family::Gcm | Family::ChaCha20Poly1305)
    }

    /// Position in [`Algorithm::ALL`], for tables.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is in no row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm(pub String);

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown algorithm {:?}; known are ", self.0)?;
        for (place, algorithm) in Algorithm::ALL.iter().enumerate() {
            write!(f, "{}{algorithm}", if place == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownAlgorithm {}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    /// Finds an algorithm by name, in any case.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|algorithm| is_same_name(algorithm.name(), name));
        found.copied().ok_or_else(|| UnknownAlgorithm(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_algorithm_in_any_case() {
        for &algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().to_lowercase().parse(), Ok(algorithm));
            assert_eq!(Algorithm::ALL[algorithm.index()], algorithm);
        }
        assert!("AES-192-XTS".parse::<Algorithm>().is_err());
    }
}
