//! Columns of a table over sizes: where one crosses the other.

use crate::papers::table::{Table, TableError};

/// Two columns of times over sizes.
pub(super) struct Pair {
    pub(super) sizes: Vec<f64>,
    pub(super) one: Vec<f64>,
    pub(super) other: Vec<f64>,
}

/// How to read between two sizes of a table.
#[derive(Clone, Copy)]
pub(super) enum Between {
    /// Times are straight lines over sizes.
    Linear,
    /// Times are straight lines over the logarithms of sizes.
    LogSize,
    /// Logarithms of times are straight lines over the logarithms of sizes.
    LogLog,
}

impl Pair {
    pub(super) fn read(table: &Table, sizes: &str, one: &str, other: &str) -> Result<Self, TableError> {
        Ok(Self { sizes: table.numbers(sizes)?, one: table.numbers(one)?, other: table.numbers(other)? })
    }

    /// `one / other` at each size.
    pub(super) fn ratios(&self) -> Vec<f64> {
        self.one.iter().zip(&self.other).map(|(one, other)| one / other).collect()
    }

    /// The sizes at which the ratio `one / other` passes `test`.
    pub(super) fn sizes_where(&self, test: impl Fn(f64) -> bool) -> Vec<f64> {
        let chosen = self.sizes.iter().zip(self.ratios()).filter(|&(_, ratio)| test(ratio));
        chosen.map(|(&size, _)| size).collect()
    }

    /// The size at which the columns cross for the last time; `None` where they never do.
    pub(super) fn crossing(&self, between: Between) -> Option<f64> {
        let ahead: Vec<bool> = self.ratios().into_iter().map(|ratio| ratio < 1.0).collect();
        let low = ahead.windows(2).rposition(|pair| pair[0] != pair[1])?;
        let at = |row: usize| {
            let (size, one, other) = (self.sizes[row], self.one[row], self.other[row]);
            match between {
                Between::Linear => (size, one - other),
                Between::LogSize => (size.ln(), one - other),
                Between::LogLog => (size.ln(), one.ln() - other.ln()),
            }
        };
        let ((x0, lead0), (x1, lead1)) = (at(low), at(low + 1));
        let x = x0 + (x1 - x0) * lead0 / (lead0 - lead1);
        Some(match between {
            Between::Linear => x,
            Between::LogSize | Between::LogLog => x.exp(),
        })
    }
}
