//! Objects that are cut into ranges, each a shard: which they are, and which parts each range has.
//!
//! Candidates come with the listing ([`Candidates::add`]); only those that may still weigh more than a shard's fair share are kept. At the end
//! shards are given out one by one, each to what has most weight for those that it has ([`Candidates::finish`]), as D'Hondt's
//! rule has it, which makes the heaviest shard as light as it can be.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::Range;

/// What an object weighs beside its bytes. Assumed, not measured: 64 KiB, what a store sends in the time of a request.
pub(crate) const OBJECT_WEIGHT: u64 = 64 << 10;

/// Least bytes of a range. Assumed, not measured: 64 MiB, eight parts, for a range costs about ten requests beside those of its parts.
pub const RANGE_BYTES_MIN: u64 = 64 << 20;

/// An object that is cut into ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranged {
    /// Its name below the source.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
    /// Its entity tag, a strong one: each read demands it.
    pub tag: String,
    /// Its ranges, at least two.
    pub count: u32,
}

impl Ranged {
    /// Which of `part_count` equal parts the range `number`, counted from 0, has: each part is in exactly one range, and some ranges are empty where
    /// there are fewer parts than ranges.
    #[must_use]
    pub fn parts(&self, number: u32, part_count: usize) -> Range<usize> {
        let border = |number: u64| {
            let place = part_count as u128 * u128::from(number) / u128::from(self.count.max(1));
            usize::try_from(place).unwrap_or(usize::MAX).min(part_count)
        };
        border(number.into())..border(u64::from(number) + 1)
    }

    const fn weight(&self) -> u64 {
        self.bytes.saturating_add(OBJECT_WEIGHT)
    }

    const fn count_max(&self) -> u64 {
        self.bytes / RANGE_BYTES_MIN
    }
}

/// Objects that may turn out to be cut.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    objects: Vec<Ranged>,
    /// All that the listing had so far.
    weight: u64,
}

impl Candidates {
    /// Counts an object that stays whole.
    pub(crate) const fn count(&mut self, bytes: u64) {
        self.weight = self.weight.saturating_add(bytes).saturating_add(OBJECT_WEIGHT);
    }

    /// Takes an object that may be cut, where it may be worth that with `shards` shards in all.
    pub(crate) fn add(&mut self, name: &str, bytes: u64, tag: &str, shards: u32) {
        let object = Ranged { name: name.to_owned(), bytes, tag: tag.to_owned(), count: 1 };
        if object.count_max() < 2 {
            return;
        }
        self.objects.push(object);
        // Fewer than `shards` objects weigh more than the fair share, so that half of these go at least.
        if self.objects.len() >= 2 * shards as usize {
            self.drop_light(shards);
        }
    }

    fn drop_light(&mut self, shards: u32) {
        let weight = u128::from(self.weight);
        self.objects.retain(|object| u128::from(object.weight()) * u128::from(shards) > weight);
    }

    /// The objects that are cut, in the order in which they came, where there are `shards` shards in all, one at least of names.
    pub(crate) fn finish(mut self, shards: u32) -> Vec<Ranged> {
        self.drop_light(shards);
        let cut: u64 = self.objects.iter().fold(0, |sum, object| sum.saturating_add(object.weight()));
        let others = Group { object: None, weight: self.weight.saturating_sub(cut), count: 1 };
        let own = self.objects.iter().enumerate();
        let own = own.map(|(place, object)| Group {
            object: Some(Reverse(place)),
            weight: object.weight(),
            count: 1,
        });
        let mut groups: BinaryHeap<Group> = own.chain([others]).collect();
        for _ in groups.len()..shards as usize {
            let Some(mut heaviest) = groups.pop() else { break };
            heaviest.count += 1;
            let object = heaviest.object.and_then(|Reverse(place)| self.objects.get_mut(place));
            let is_full = object.is_some_and(|object| {
                object.count = heaviest.count;
                u64::from(heaviest.count) >= object.count_max()
            });
            if !is_full {
                groups.push(heaviest);
            }
        }
        self.objects.retain(|object| object.count > 1);
        self.objects
    }
}

/// The object as it is cut where a shard has about so many bytes; `None` where it stays whole.
pub(crate) fn by_bytes(name: &str, bytes: u64, tag: &str, shard_bytes: u64) -> Option<Ranged> {
    let object = Ranged { name: name.to_owned(), bytes, tag: tag.to_owned(), count: 1 };
    let count = object.weight().div_ceil(shard_bytes.max(1)).min(object.count_max());
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    (count > 1).then_some(Ranged { count, ..object })
}

/// What shares shards: the ranges of an object, or all names that are no ranges.
#[derive(PartialEq, Eq)]
struct Group {
    /// Which object, those that came first being the greater ones.
    object: Option<Reverse<usize>>,
    weight: u64,
    count: u32,
}

impl Ord for Group {
    /// By weight for each shard.
    fn cmp(&self, other: &Self) -> Ordering {
        let weight = |one: &Self, by: &Self| u128::from(one.weight) * u128::from(by.count);
        weight(self, other).cmp(&weight(other, self)).then(self.object.cmp(&other.object))
    }
}

impl PartialOrd for Group {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
