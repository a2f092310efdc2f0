//! The plan: which tree goes where, and where it is cut. It holds no key, and two numbers and a short name for each shard.

use serde::{Deserialize, Serialize};

use crate::cuts::Shard;

/// Bytes of the random number of a plan.
pub const SALT_BYTES: usize = 16;

/// The version of the file.
const VERSION: u32 = 1;

/// Which way objects go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Plaintext in, encrypted objects out.
    Encrypt,
    /// Encrypted objects in, plaintext out.
    Decrypt,
}

/// A tree of objects, its place in another, and its shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Which way.
    pub direction: Direction,
    /// Where objects are, as a URI; names are what follows it.
    pub source: String,
    /// Where results go.
    pub destination: String,
    /// What names get where they are encrypted, and lose where they are decrypted.
    pub suffix: String,
    /// A random number, so that marks of finished outputs tell nothing of recipients.
    pub salt: [u8; SALT_BYTES],
    /// Whether the store lists in the order of bytes, so that a shard need not list more than its own names.
    pub is_ordered: bool,
    /// The shards, in the order of their names.
    pub shards: Vec<Shard>,
}

/// Why a file is no plan, or has no such shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// It is no plan.
    #[error("no plan of evener: {0}")]
    Malformed(String),
    /// It is a plan of another version.
    #[error("a plan of version {0}, and this command reads version {VERSION}")]
    Version(u32),
    /// Its shards are not in order, so that a name would be in two of them or in none.
    #[error("its shards are not in order")]
    Order,
    /// It has fewer shards.
    #[error("it has {shards} shards, counted from 0, and none of number {number}")]
    NoSuchShard {
        /// How many there are.
        shards: usize,
        /// Which one was asked for.
        number: u32,
    },
}

/// As it stands in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "evener-plan")]
    version: u32,
    direction: Direction,
    source: String,
    destination: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    suffix: String,
    salt: String,
    #[serde(default = "yes", skip_serializing_if = "is_yes", rename = "ordered")]
    is_ordered: bool,
    /// After which name each begins, its objects and their bytes.
    shards: Vec<(String, u64, u64)>,
}

impl File {
    fn text(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers can be written") + "\n"
    }
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_yes(is_ordered: &bool) -> bool {
    *is_ordered
}

/// The version alone.
#[derive(Deserialize)]
struct Version {
    #[serde(rename = "evener-plan")]
    version: u32,
}

impl Plan {
    /// The plan as the text of a file.
    #[must_use]
    pub fn written(&self) -> String {
        let shards = self.shards.iter().map(|shard| (shard.after.clone(), shard.objects, shard.bytes));
        let file = File {
            version: VERSION,
            direction: self.direction,
            source: self.source.clone(),
            destination: self.destination.clone(),
            suffix: self.suffix.clone(),
            is_ordered: self.is_ordered,
            salt: self.salt.iter().map(|byte| format!("{byte:02x}")).collect(),
            shards: shards.collect(),
        };
        file.text()
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// [`PlanError`] where it is no plan of this version, or its shards overlap.
    pub fn read(text: &str) -> Result<Self, PlanError> {
        let malformed = |error: serde_json::Error| PlanError::Malformed(error.to_string());
        let Version { version } = serde_json::from_str(text).map_err(malformed)?;
        if version != VERSION {
            return Err(PlanError::Version(version));
        }
        let file: File = serde_json::from_str(text).map_err(malformed)?;
        let salt = salt_of(&file.salt).ok_or_else(|| PlanError::Malformed("its salt is none".into()))?;
        let shards = file.shards.into_iter().map(|(after, objects, bytes)| Shard { after, objects, bytes });
        let shards: Vec<_> = shards.collect();
        let is_in_order = shards.windows(2).all(|pair| pair[0].after < pair[1].after)
            && shards.first().is_none_or(|first| first.after.is_empty());
        if !is_in_order {
            return Err(PlanError::Order);
        }
        let File { direction, source, destination, suffix, is_ordered, .. } = file;
        Ok(Self { direction, source, destination, suffix, salt, is_ordered, shards })
    }

    /// A shard and the last name that may be its own; there is none for the last shard.
    ///
    /// # Errors
    ///
    /// [`PlanError::NoSuchShard`].
    pub fn shard(&self, number: u32) -> Result<(&Shard, Option<&str>), PlanError> {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        let no_such = PlanError::NoSuchShard { shards: self.shards.len(), number };
        let shard = self.shards.get(place).ok_or(no_such)?;
        Ok((shard, self.shards.get(place + 1).map(|next| next.after.as_str())))
    }
}

fn salt_of(digits: &str) -> Option<[u8; SALT_BYTES]> {
    let digits = digits.as_bytes();
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?);
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    bytes?.try_into().ok()
}
