//! Knows what a job costs: `c`, `d` and `h`, as lines over the size or as tables between measured sizes (here), as learned from samples
//! (`estimate/`), and what workers counted (`tally.rs`).

pub mod estimate;
pub mod tally;

use crate::units::Nanos;

/// A cost that grows with the size: `fixed + per_byte * bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Line {
    /// Cost of a job of no bytes, in nanoseconds.
    pub fixed_ns: u64,
    /// Cost of a byte, in picoseconds (1000 per nanosecond), so that whole numbers do.
    pub per_byte_ps: u64,
}

impl Line {
    /// The cost of a job of `bytes`.
    #[must_use]
    pub const fn at(self, bytes: u64) -> Nanos {
        Nanos(self.fixed_ns + self.per_byte_ps * bytes / 1_000)
    }

    /// The line with the least squares of its distances to points (bytes, nanoseconds). It neither falls nor begins below
    /// zero, for no cost does: where it would, it is the best that is level, or that begins at zero. Nothing without points.
    #[must_use]
    pub fn fit(points: &[(u64, u64)]) -> Self {
        let count = float(points.len() as u64).max(1.0);
        let mean = |of: &dyn Fn(&(u64, u64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (bytes, ns) = (mean(&|at| float(at.0)), mean(&|at| float(at.1)));
        let wide = mean(&|at| float(at.0) * float(at.0)) - bytes * bytes;
        let steep = mean(&|at| float(at.0) * float(at.1)) - bytes * ns;
        let slope = if wide > 0.0 { (steep / wide).max(0.0) } else { 0.0 };
        let (fixed, slope) = match ns - slope * bytes {
            fixed if fixed < 0.0 => (0.0, ns / bytes.max(1.0)),
            fixed => (fixed, slope),
        };
        Self { fixed_ns: whole(fixed), per_byte_ps: whole(slope * 1_000.0) }
    }

    /// The line through two points (bytes, nanoseconds), `low` left of `high`. A falling pair gives its mean.
    #[must_use]
    pub fn through(low: (u64, u64), high: (u64, u64)) -> Self {
        let (width, rise) = (high.0.saturating_sub(low.0).max(1), high.1.checked_sub(low.1));
        let Some(rise) = rise else { return Self { fixed_ns: u64::midpoint(low.1, high.1), per_byte_ps: 0 } };
        let per_byte_ps = rise * 1_000 / width;
        Self { fixed_ns: low.1.saturating_sub(per_byte_ps * low.0 / 1_000), per_byte_ps }
    }
}

/// The three parts of a job's cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Cost {
    /// `c`: core time on the CPU path.
    pub c: Nanos,
    /// `d`: core time on the module path, all of it.
    pub d: Nanos,
    /// `h`: time in which the module works and the core is free.
    pub h: Nanos,
}

/// Costs at measured sizes; straight lines between them, the outer ones continued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostTable {
    rows: Vec<(u64, Cost)>,
}

impl CostTable {
    /// A table of `(bytes, cost)`, sizes rising.
    ///
    /// # Panics
    ///
    /// Where it has fewer than two rows or the sizes do not rise: a bug in the table.
    #[must_use]
    pub fn new(rows: Vec<(u64, Cost)>) -> Self {
        assert!(rows.len() >= 2, "a cost table has two rows or more");
        assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0), "sizes rise");
        Self { rows }
    }

    /// A table that is the three lines, for modules described by `a + b * bytes`.
    #[must_use]
    pub fn from_lines(c: Line, d: Line, h: Line) -> Self {
        let row = |bytes| (bytes, Cost { c: c.at(bytes), d: d.at(bytes), h: h.at(bytes) });
        Self::new(vec![row(0), row(1 << 20)])
    }

    /// The table with each of its costs changed.
    #[must_use]
    pub fn map(&self, change: impl Fn(Cost) -> Cost) -> Self {
        Self { rows: self.rows.iter().map(|(bytes, cost)| (*bytes, change(*cost))).collect() }
    }

    /// The cost of a job of `bytes`.
    #[must_use]
    pub fn at(&self, bytes: u64) -> Cost {
        let above = self.rows.partition_point(|row| row.0 < bytes).clamp(1, self.rows.len() - 1);
        let ((x0, low), (x1, high)) = (self.rows[above - 1], self.rows[above]);
        let between = |low: Nanos, high: Nanos| interpolate(bytes, (x0, low.0), (x1, high.0));
        Cost { c: between(low.c, high.c), d: between(low.d, high.d), h: between(low.h, high.h) }
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes and costs are far below 2^53")]
const fn float(whole: u64) -> f64 {
    whole as f64
}

/// `as` saturates.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cost is not below zero")]
fn whole(cost: f64) -> u64 {
    cost.round() as u64
}

/// Straight line through two points, never below zero.
fn interpolate(x: u64, low: (u64, u64), high: (u64, u64)) -> Nanos {
    let [x, x0, y0, x1, y1] = [x, low.0, low.1, high.0, high.1].map(i128::from);
    let y = y0 + (y1 - y0) * (x - x0) / (x1 - x0);
    Nanos(u64::try_from(y.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_passes_through_its_rows_and_straight_between_them() {
        let cost = |ns| Cost { c: Nanos(ns), d: Nanos(2 * ns), h: Nanos(0) };
        let table = CostTable::new(vec![(10, cost(100)), (20, cost(200)), (40, cost(100))]);
        for (bytes, ns) in [(10, 100), (15, 150), (20, 200), (30, 150), (40, 100), (50, 50), (0, 0), (99, 0)]
        {
            assert_eq!(table.at(bytes), cost(ns), "{bytes}");
        }
    }

    #[test]
    fn a_line_through_many_points_is_the_one_that_strays_least_and_never_falls() {
        let on_a_line = [64, 1_024, 4_096, 16_384].map(|bytes| (bytes, 60_000 + 3 * bytes));
        assert_eq!(Line::fit(&on_a_line), Line { fixed_ns: 60_000, per_byte_ps: 3_000 });
        // Errors that cancel out change nothing.
        let noisy = [(0, 900), (0, 1_100), (100, 2_200), (100, 1_800)];
        assert_eq!(Line::fit(&noisy), Line { fixed_ns: 1_000, per_byte_ps: 10_000 });
        assert_eq!(Line::fit(&[(0, 300), (100, 100)]), Line { fixed_ns: 200, per_byte_ps: 0 });
        assert_eq!(Line::fit(&[(100, 100), (300, 500)]), Line { fixed_ns: 0, per_byte_ps: 1_500 });
        assert_eq!(Line::fit(&[(4_096, 700)]), Line { fixed_ns: 700, per_byte_ps: 0 });
        assert_eq!(Line::fit(&[]), Line::default());
    }

    #[test]
    fn a_line_through_two_points_gives_them_back() {
        let line = Line::through((1_000, 5_000), (2_000, 7_000));
        assert_eq!((line.at(1_000), line.at(2_000), line.at(0)), (Nanos(5_000), Nanos(7_000), Nanos(3_000)));
    }
}
