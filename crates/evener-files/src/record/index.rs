//! Rows by their spots. A spot is the start of a hash, so its first bits say where among all others it is: a look-up costs three steps
//! however many rows there are.

use super::Known;
use super::row::Spot;

#[derive(Default)]
pub(super) struct Index {
    rows: Vec<Known>,
    /// Numbers of rows, those of one bucket side by side, the newest last; each behind further bits of its spot, so that no other row is
    /// looked at.
    order: Vec<(u32, u32)>,
    /// Where each bucket begins in `order`, and where the last one ends.
    begins: Vec<u32>,
}

impl Index {
    /// Of rows as they were written, the oldest first.
    pub(super) fn new(mut rows: Vec<Known>) -> Self {
        // More are not noted by any run; what is left out is proven from what it holds.
        rows.truncate(ROWS_MAX);
        let buckets = rows.len().next_power_of_two();
        let mut begins = vec![0_u32; buckets + 1];
        for row in &rows {
            begins[bucket(row.row.spot, buckets) + 1] += 1;
        }
        for bucket in 0..buckets {
            begins[bucket + 1] += begins[bucket];
        }
        let (mut next, mut order) = (begins.clone(), vec![(0, 0); rows.len()]);
        for (number, row) in (0_u32..).zip(&rows) {
            let next = &mut next[bucket(row.row.spot, buckets)];
            order[*next as usize] = (further_bits(row.row.spot), number);
            *next += 1;
        }
        Self { rows, order, begins }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All rows of a spot, the newest first.
    pub(super) fn rows_of(&self, spot: Spot) -> impl Iterator<Item = &Known> {
        let bucket = bucket(spot, self.begins.len() - 1);
        let (begin, end) = (self.begins[bucket] as usize, self.begins[bucket + 1] as usize);
        let further = further_bits(spot);
        let likely = self.order[begin..end].iter().rev().filter(move |(bits, _)| *bits == further);
        likely.map(|&(_, number)| &self.rows[number as usize]).filter(move |known| known.row.spot == spot)
    }
}

/// Most rows: a number of a row has 32 bits.
const ROWS_MAX: usize = u32::MAX as usize;

/// Bits of a spot that no number of buckets uses: these are at most as many as rows.
fn further_bits(spot: Spot) -> u32 {
    u32::try_from(spot.first_bits() >> 32).unwrap_or(0)
}

/// The bucket of a spot among so many, a power of two.
fn bucket(spot: Spot, buckets: usize) -> usize {
    usize::try_from(spot.first_bits()).unwrap_or(0) & (buckets - 1)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::super::block::{Group, Request};
    use super::super::row::{Row, Stamp};
    use super::*;

    fn known(name: usize, inode: u64) -> Known {
        let spot = Spot::default().join(OsStr::new(&name.to_string()));
        let row = Row { spot, output: Stamp { inode, ..Stamp::default() }, ..Row::default() };
        Known { row, request: Request::default(), group: Group::default() }
    }

    #[test]
    fn the_rows_of_each_spot_are_found_the_newest_first_and_no_other() {
        for count in [0, 1, 2, 3, 100, 1_025] {
            let rows = (0..3 * count).map(|number| known(number % count.max(1), number as u64));
            let index = Index::new(rows.collect());
            for name in 0..2 * count {
                let found = index.rows_of(known(name, 0).row.spot).map(|known| known.row.output.inode);
                let rows = if name < count { 3 } else { 0 };
                let newest_first = (0..rows).rev().map(|turn| (turn * count + name) as u64);
                assert!(found.eq(newest_first), "{name} of {count}");
            }
            assert!(index.rows_of(Spot::default()).next().is_none());
        }
    }
}
