//! Where a listing is cut into shards, in memory that does not grow with it.
//!
//! Names come in order, one by one; neighbours are kept as pieces, and two neighbouring pieces become one when there are too many. At the end pieces
//! become shards of about equal weight. A cut is the shortest text between two names, as separators are in a prefix B-tree (Bayer and
//! Unterauer, 1977), so that it takes few bytes and names nothing more than it must. An object that weighs more than a shard's fair share becomes
//! shards of its own where it may be cut ([`Ranged`]).

use crate::ranges::{Candidates, OBJECT_WEIGHT, Ranged, by_bytes};

/// Pieces that are kept for each shard, so that no shard is off by more than a thirtieth.
const PIECES_PER_SHARD: usize = 32;

/// What shards are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wanted {
    /// So many, or fewer where objects are: one for each, and for each 64 MiB of one that may be cut.
    Shards(u32),
    /// Each of about so many bytes, of which an object counts 64 KiB more than its own; an object that is larger is cut, or a shard by itself.
    Bytes(u64),
}

/// Part of a listing: names that are greater than `after`, up to and with where the next shard begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shard {
    /// No name up to and with this is its own.
    pub after: String,
    /// Objects that the listing had in it.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Shard {
    const fn weight(&self) -> u64 {
        self.bytes.saturating_add(self.objects.saturating_mul(OBJECT_WEIGHT))
    }

    /// Takes the neighbour behind it in.
    const fn join(&mut self, behind: &Self) {
        self.objects += behind.objects;
        self.bytes = self.bytes.saturating_add(behind.bytes);
    }
}

/// A listing that is being cut.
#[derive(Debug)]
pub struct Cuts {
    wanted: Wanted,
    pieces: Vec<Shard>,
    /// A piece that weighs so much takes no further object.
    grain: u64,
    last: Option<String>,
    /// Those in pieces that may be cut, and those that are, which are in none.
    candidates: Candidates,
    ranged: Vec<Ranged>,
}

/// A name came that is not greater than the one before it: the listing is not in the order of bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the listing is not in the order of bytes: {0:?} came late")]
pub struct OutOfOrder(pub String);

impl Cuts {
    /// Begins a listing.
    #[must_use]
    pub fn new(wanted: Wanted) -> Self {
        let grain = match wanted {
            Wanted::Shards(_) => 0,
            Wanted::Bytes(bytes) => bytes,
        };
        let (candidates, ranged) = (Candidates::default(), Vec::new());
        Self { wanted, pieces: Vec::new(), grain, last: None, candidates, ranged }
    }

    /// Takes the next object, which may be cut where it has a `tag`, a strong entity tag.
    ///
    /// # Errors
    ///
    /// [`OutOfOrder`] where its name is not greater than the last one.
    pub fn add(&mut self, name: &str, bytes: u64, tag: Option<&str>) -> Result<(), OutOfOrder> {
        if self.last.as_deref().is_some_and(|last| name <= last) {
            return Err(OutOfOrder(name.to_owned()));
        }
        self.candidates.count(bytes);
        match (self.wanted, tag) {
            (Wanted::Shards(count), Some(tag)) => self.candidates.add(name, bytes, tag, count),
            (Wanted::Bytes(shard_bytes), Some(tag)) => {
                if let Some(ranged) = by_bytes(name, bytes, tag, shard_bytes) {
                    self.ranged.push(ranged);
                    self.last = Some(name.to_owned());
                    return Ok(());
                }
            }
            (_, None) => {}
        }
        self.add_whole(name, bytes);
        Ok(())
    }

    fn add_whole(&mut self, name: &str, bytes: u64) {
        let object = Shard { after: String::new(), objects: 1, bytes };
        let grain = self.grain;
        match self.pieces.last_mut() {
            Some(piece) if piece.weight().saturating_add(object.weight()) <= grain => piece.join(&object),
            last => {
                let after = match (last, &self.last) {
                    (Some(_), Some(before)) => between(before, name).to_owned(),
                    _ => String::new(),
                };
                self.pieces.push(Shard { after, ..object });
            }
        }
        self.last = Some(name.to_owned());
        self.thin_out();
    }

    /// The shards of names, of which the first begins before every name, and the objects that are cut, in order, which are in none of these. There
    /// are none of an empty listing; else one at least is of names, for objects that come later.
    #[must_use]
    pub fn finish(mut self) -> (Vec<Shard>, Vec<Ranged>) {
        let Wanted::Shards(count) = self.wanted else {
            return (with_one(self.pieces, &self.ranged), self.ranged);
        };
        let ranged = std::mem::take(&mut self.candidates).finish(count);
        self.leave_out(&ranged);
        let ranges: u32 = ranged.iter().map(|object| object.count).sum();
        (with_one(self.shards(count.saturating_sub(ranges)), &ranged), ranged)
    }

    /// Takes objects out of their pieces.
    fn leave_out(&mut self, ranged: &[Ranged]) {
        for object in ranged {
            let behind = self.pieces.partition_point(|piece| piece.after < object.name);
            if let Some(piece) = behind.checked_sub(1).and_then(|place| self.pieces.get_mut(place)) {
                piece.objects -= 1;
                piece.bytes = piece.bytes.saturating_sub(object.bytes);
            }
        }
        self.pieces.retain(|piece| piece.objects > 0);
        if let Some(first) = self.pieces.first_mut() {
            first.after.clear();
        }
    }

    /// So many shards of the pieces.
    fn shards(self, count: u32) -> Vec<Shard> {
        let total: u128 = self.pieces.iter().map(|piece| u128::from(piece.weight())).sum();
        let (mut shards, mut weight): (Vec<Shard>, u128) = (Vec::new(), 0);
        let pieces_count = self.pieces.len();
        for (place, piece) in self.pieces.into_iter().enumerate() {
            let (made, left, before) = (shards.len(), pieces_count - place, weight);
            weight += u128::from(piece.weight());
            // The shard in work is full where it has its part of the weight, or where each piece that is left is needed for a shard.
            let is_full = before * u128::from(count) >= total * made as u128;
            let is_needed = left <= (count as usize).saturating_sub(made);
            match shards.last_mut() {
                Some(last) if made == count as usize || !(is_full || is_needed) => last.join(&piece),
                _ => shards.push(piece),
            }
        }
        shards
    }

    /// Joins neighbours where there are too many pieces.
    fn thin_out(&mut self) {
        let Wanted::Shards(count) = self.wanted else { return };
        if self.pieces.len() < PIECES_PER_SHARD * count.max(1) as usize {
            return;
        }
        let mut joined: Vec<Shard> = Vec::with_capacity(self.pieces.len());
        for (place, piece) in self.pieces.drain(..).enumerate() {
            match joined.last_mut() {
                Some(last) if place % 2 == 1 => last.join(&piece),
                _ => joined.push(piece),
            }
        }
        self.pieces = joined;
        let total: u64 = self.pieces.iter().fold(0, |sum, piece| sum.saturating_add(piece.weight()));
        self.grain = total / self.pieces.len() as u64;
    }
}

/// Shards of names, and one without objects where all that were listed are cut.
fn with_one(mut shards: Vec<Shard>, ranged: &[Ranged]) -> Vec<Shard> {
    if shards.is_empty() && !ranged.is_empty() {
        shards.push(Shard::default());
    }
    shards
}

/// The shortest text that is not less than `left` and less than `right`, among the beginnings of `right` and `left` itself.
fn between<'n>(left: &'n str, right: &'n str) -> &'n str {
    let ends = right.char_indices().map(|(place, _)| place).skip(1);
    ends.map(|end| &right[..end]).find(|start| *start >= left).unwrap_or(left)
}
