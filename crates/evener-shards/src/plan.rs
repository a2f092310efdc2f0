//! The plan: which tree goes where, and where it is cut. It holds no key, and two numbers and a short name for each shard of names, and for each
//! object that is cut its name and entity tag.

use serde::{Deserialize, Serialize};

use crate::cuts::Shard;
use crate::ranges::Ranged;

/// Bytes of the random number of a plan.
pub const SALT_BYTES: usize = 16;

/// The newest version of the file.
const VERSION: u32 = 2;
/// That of a plan in which no object is cut, which earlier commands read too.
const VERSION_OF_NAMES: u32 = 1;

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
    /// The shards of names, in the order of these.
    pub shards: Vec<Shard>,
    /// Objects that are in none of these, in the order of their names: their ranges are the shards behind.
    pub ranged: Vec<Ranged>,
}

/// What one shard has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Portion<'p> {
    /// Names: its own begin behind a name of its, and end with this one, where they end before the last; but not those of objects that are cut.
    Names(&'p Shard, Option<&'p str>),
    /// A range of an object, by its number, counted from 0.
    Range(&'p Ranged, u32),
}

/// Why a file is no plan, or has no such shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// It is no plan.
    #[error("no plan of evener: {0}")]
    Malformed(String),
    /// It is a plan of another version.
    #[error("a plan of version {0}, and this command reads versions {VERSION_OF_NAMES} and {VERSION}")]
    Version(u32),
    /// Its shards are not in order, so that a name would be in two of them or in none.
    #[error("its shards are not in order")]
    Order,
    /// An object is cut into no ranges, or too many.
    #[error("its ranges are none")]
    Ranges,
    /// It has fewer shards.
    #[error("it has {shards} shards, counted from 0, and none of number {number}")]
    NoSuchShard {
        /// How many there are.
        shards: u32,
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
    /// The name of each object that is cut, its bytes, its entity tag and its ranges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ranges: Vec<(String, u64, String, u32)>,
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
        let ranges = self.ranged.iter();
        let ranges = ranges.map(|one| (one.name.clone(), one.bytes, one.tag.clone(), one.count));
        let file = File {
            version: if self.ranged.is_empty() { VERSION_OF_NAMES } else { VERSION },
            direction: self.direction,
            source: self.source.clone(),
            destination: self.destination.clone(),
            suffix: self.suffix.clone(),
            is_ordered: self.is_ordered,
            salt: self.salt.iter().map(|byte| format!("{byte:02x}")).collect(),
            shards: shards.collect(),
            ranges: ranges.collect(),
        };
        file.text()
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// [`PlanError`] where it is no plan of a version that is known, or its shards overlap.
    pub fn read(text: &str) -> Result<Self, PlanError> {
        let malformed = |error: serde_json::Error| PlanError::Malformed(error.to_string());
        let Version { version } = serde_json::from_str(text).map_err(malformed)?;
        if !(VERSION_OF_NAMES..=VERSION).contains(&version) {
            return Err(PlanError::Version(version));
        }
        let file: File = serde_json::from_str(text).map_err(malformed)?;
        let salt = salt_of(&file.salt).ok_or_else(|| PlanError::Malformed("its salt is none".into()))?;
        let shards = file.shards.into_iter().map(|(after, objects, bytes)| Shard { after, objects, bytes });
        let shards: Vec<_> = shards.collect();
        let is_in_order = shards.windows(2).all(|pair| pair[0].after < pair[1].after)
            && shards.first().is_none_or(|first| first.after.is_empty());
        let ranged = ranged(file.ranges)?;
        if !is_in_order || !ranged.is_sorted_by(|one, next| one.name < next.name) {
            return Err(PlanError::Order);
        }
        let File { direction, source, destination, suffix, is_ordered, .. } = file;
        let plan = Self { direction, source, destination, suffix, salt, is_ordered, shards, ranged };
        plan.counted().map(|_| plan).ok_or(PlanError::Ranges)
    }

    /// How many shards there are, those of names and ranges.
    #[must_use]
    pub fn shard_count(&self) -> u32 {
        self.counted().unwrap_or(u32::MAX)
    }

    fn counted(&self) -> Option<u32> {
        let names = u32::try_from(self.shards.len()).ok()?;
        self.ranged.iter().try_fold(names, |count, object| count.checked_add(object.count))
    }

    /// What a shard has.
    ///
    /// # Errors
    ///
    /// [`PlanError::NoSuchShard`].
    pub fn shard(&self, number: u32) -> Result<Portion<'_>, PlanError> {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        if let Some(shard) = self.shards.get(place) {
            return Ok(Portion::Names(shard, self.shards.get(place + 1).map(|next| next.after.as_str())));
        }
        let mut range = number - u32::try_from(self.shards.len()).unwrap_or(number);
        for object in &self.ranged {
            match range.checked_sub(object.count) {
                None => return Ok(Portion::Range(object, range)),
                Some(behind) => range = behind,
            }
        }
        Err(PlanError::NoSuchShard { shards: self.shard_count(), number })
    }

    /// Whether an object is cut, so that no shard of names has it.
    #[must_use]
    pub fn is_ranged(&self, name: &str) -> bool {
        self.ranged.binary_search_by(|object| object.name.as_str().cmp(name)).is_ok()
    }
}

fn ranged(rows: Vec<(String, u64, String, u32)>) -> Result<Vec<Ranged>, PlanError> {
    let object = |(name, bytes, tag, count): (String, u64, String, u32)| {
        let is_sound = count > 0 && !name.is_empty() && !tag.is_empty();
        is_sound.then_some(Ranged { name, bytes, tag, count }).ok_or(PlanError::Ranges)
    };
    rows.into_iter().map(object).collect()
}

fn salt_of(digits: &str) -> Option<[u8; SALT_BYTES]> {
    let digits = digits.as_bytes();
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?);
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    bytes?.try_into().ok()
}
