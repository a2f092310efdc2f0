//! Paper 003: uploads by Android's browser, with the crypto module and without.
//!
//! Path of one figure: table 1 -> a straight line through the first and the last upload of each column
//! ([`Line::through_ends`]) -> how far the seven uploads between lie from it ([`Upload::residual_percent`]) -> where
//! the lines cross. Server, network and cipher suite are not stated, so no line follows from what the module costs:
//! what can be said is the sign at each size, and between which two sizes it changes ([`Uploads::crossover`]).

use super::table::{SEED003_TABLE1, Table, TableError};

/// A straight line over sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Milliseconds at size 0.
    pub at_zero_ms: f64,
    /// Milliseconds per byte.
    pub ms_per_byte: f64,
}

impl Line {
    /// The line through the first and the last of `points`, bytes and milliseconds; `None` where there are not two.
    #[must_use]
    pub fn through_ends(points: &[(f64, f64)]) -> Option<Self> {
        let (&(x0, y0), &(x1, y1)) = (points.first()?, points.last()?);
        let ms_per_byte = (y1 - y0) / (x1 - x0);
        (x1 != x0).then_some(Self { at_zero_ms: y0 - ms_per_byte * x0, ms_per_byte })
    }

    /// Milliseconds at `size_bytes`.
    #[must_use]
    pub fn at_ms(&self, size_bytes: f64) -> f64 {
        self.at_zero_ms + self.ms_per_byte * size_bytes
    }

    /// The size in bytes where both lines meet.
    #[must_use]
    pub fn meets(&self, other: &Self) -> f64 {
        (self.at_zero_ms - other.at_zero_ms) / (other.ms_per_byte - self.ms_per_byte)
    }
}

/// A row of table 1, and how far the lines are from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Upload {
    /// Bytes of the file.
    pub size_bytes: f64,
    /// Milliseconds from request to response: with the module, without.
    pub ms: [f64; 2],
    /// By how many per cent of what was measured the line is off: with the module, without.
    pub residual_percent: [f64; 2],
}

impl Upload {
    /// Time saved by the module, in per cent of the time without it; negative where it costs time.
    #[must_use]
    pub fn saved_percent(&self) -> f64 {
        100.0 * (1.0 - self.ms[0] / self.ms[1])
    }
}

/// What can be said about a table of uploads.
#[derive(Clone, Debug, PartialEq)]
pub struct Uploads {
    /// The rows, by size.
    pub rows: Vec<Upload>,
    /// The lines through the ends: with the module, without.
    pub lines: [Line; 2],
}

impl Uploads {
    /// Reads table 1 as it was printed.
    ///
    /// # Errors
    ///
    /// As [`Self::of`].
    pub fn printed() -> Result<Self, TableError> {
        Self::of(&SEED003_TABLE1)
    }

    /// Reads a table of the shape of table 1.
    ///
    /// # Errors
    ///
    /// [`TableError`] where a column is missing or a cell is no number.
    ///
    /// # Panics
    ///
    /// Where the table has fewer than two rows of different sizes.
    pub fn of(table: &Table) -> Result<Self, TableError> {
        let sizes = table.numbers("file_size_bytes")?;
        let columns = [table.numbers("offload_ms")?, table.numbers("no_offload_ms")?];
        let pairs = columns[0].iter().copied().zip(columns[1].iter().copied());
        let rows: Vec<_> = sizes.into_iter().zip(pairs.map(|(with, without)| [with, without])).collect();
        Ok(Self::measured(&rows))
    }

    /// From bytes and milliseconds, with the module and without, by size.
    ///
    /// # Panics
    ///
    /// As [`Self::of`].
    #[must_use]
    pub fn measured(measured: &[(f64, [f64; 2])]) -> Self {
        let lines = [0, 1].map(|way| {
            let points: Vec<(f64, f64)> = measured.iter().map(|(bytes, ms)| (*bytes, ms[way])).collect();
            Line::through_ends(&points).expect("there are uploads of two sizes")
        });
        let row = |&(size_bytes, ms): &(f64, [f64; 2])| {
            let residual = |way: usize| 100.0 * (lines[way].at_ms(size_bytes) / ms[way] - 1.0);
            Upload { size_bytes, ms, residual_percent: [residual(0), residual(1)] }
        };
        Self { rows: measured.iter().map(row).collect(), lines }
    }

    /// The two neighbouring sizes, in bytes, between which the module begins to save time; `None` where it never does,
    /// always does, or stops again.
    #[must_use]
    pub fn crossover(&self) -> Option<(f64, f64)> {
        let saves: Vec<bool> = self.rows.iter().map(|row| row.saved_percent() > 0.0).collect();
        let first = saves.iter().position(|&saves| saves)?;
        let stays = saves[first..].iter().all(|&saves| saves);
        let before = first.checked_sub(1).filter(|_| stays)?;
        Some((self.rows[before].size_bytes, self.rows[first].size_bytes))
    }

    /// The size in bytes where the two lines meet: inside [`Self::crossover`], and no measurement.
    #[must_use]
    pub fn lines_meet_at(&self) -> f64 {
        self.lines[0].meets(&self.lines[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_through_the_ends_have_the_slopes_of_the_two_ways() {
        let [with, without] = Uploads::printed().unwrap().lines;
        // Computed by hand: (7784 - 402) ms and (13848 - 362) ms over 18 948 592 bytes.
        assert!((with.ms_per_byte * 1e6 - 389.58).abs() < 0.01, "{with:?}");
        assert!((without.ms_per_byte * 1e6 - 711.71).abs() < 0.01, "{without:?}");
        assert!((with.at_zero_ms - 402.0).abs() < 0.05 && (without.at_zero_ms - 362.0).abs() < 0.05);
    }

    #[test]
    fn the_uploads_between_the_ends_lie_where_the_reference_found_them() {
        let rows = Uploads::printed().unwrap().rows;
        let extremes = |way: usize| {
            let off = rows.iter().map(|row| row.residual_percent[way]);
            off.fold((0.0_f64, 0.0_f64), |(low, high), off| (low.min(off), high.max(off)))
        };
        let near = |(low, high): (f64, f64), expected: (f64, f64)| {
            (low - expected.0).abs() < 0.06 && (high - expected.1).abs() < 0.06
        };
        assert!(near(extremes(0), (-4.0, 14.5)), "{:?}", extremes(0));
        assert!(near(extremes(1), (-21.2, 0.2)), "{:?}", extremes(1));
        for end in [rows[0], rows[8]] {
            assert!(end.residual_percent.iter().all(|off| off.abs() < 1e-9), "{end:?}");
        }
    }

    #[test]
    fn the_module_costs_time_at_two_sizes_and_saves_it_at_the_seven_above() {
        let uploads = Uploads::printed().unwrap();
        let saved: Vec<f64> = uploads.rows.iter().map(|row| row.saved_percent().round()).collect();
        assert_eq!(saved, [-11.0, -1.0, 53.0, 52.0, 53.0, 47.0, 45.0, 50.0, 44.0]);
        assert_eq!(uploads.crossover(), Some((57_654.0, 2_359_350.0)));
        let meet = uploads.lines_meet_at();
        assert!((meet - 124_000.0).abs() < 500.0, "{meet}");
    }

    #[test]
    fn there_is_no_crossover_where_the_sign_changes_twice_or_never() {
        const HEAD: &str = "file_size_bytes,offload_ms,no_offload_ms\n";
        for rows in ["1,9,8\n2,7,8\n3,9,8\n", "1,9,8\n2,9,8\n", "1,7,8\n2,7,8\n"] {
            let table = Table::new(Box::leak(format!("{HEAD}{rows}").into_boxed_str()));
            assert_eq!(Uploads::of(&table).unwrap().crossover(), None, "{rows}");
        }
    }
}
