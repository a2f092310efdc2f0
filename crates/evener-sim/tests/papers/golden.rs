//! Rows of tables by the names of their columns.

use evener_core::Cost;
use evener_sim::papers::am3358::Series;
use evener_sim::papers::table::Table;

pub(crate) const BOUNDS: Table =
    Table::new(include_str!("../../../../vectors/papers/golden/pred_bounds.csv"));
pub(crate) const CELLS: Table = Table::new(include_str!("../../../../vectors/papers/golden/pred_cells.csv"));
pub(crate) const FAIR: Table = Table::new(include_str!("../../../../vectors/papers/golden/pred_fair.csv"));
pub(crate) const INTERRUPT: Table =
    Table::new(include_str!("../../../../vectors/papers/golden/pred_interrupt.csv"));
pub(crate) const POLICIES: Table =
    Table::new(include_str!("../../../../vectors/papers/golden/pred_policies.csv"));

/// One row: the cells of the columns that were asked for.
pub(crate) struct Row(Vec<(&'static str, String)>);

impl Row {
    pub(crate) fn text(&self, column: &str) -> &str {
        let (_, cell) = self.0.iter().find(|(name, _)| *name == column).expect("a column that was asked for");
        cell
    }

    pub(crate) fn number(&self, column: &str) -> f64 {
        self.text(column).parse().unwrap_or_else(|_| panic!("{column}: {}", self.text(column)))
    }

    pub(crate) fn size(&self) -> u64 {
        self.text("size").parse().unwrap()
    }

    /// The series of measurements that the row's table belongs to.
    pub(crate) fn series(&self) -> Series {
        match self.text("table") {
            "seed002_table2.csv" => Series::Aes128,
            "seed002_tableA1.csv" => Series::Aes192,
            "seed002_tableA2.csv" => Series::Aes256,
            "seed000_table2.csv" => Series::Paper000,
            other => panic!("{other}"),
        }
    }
}

/// All rows with these columns.
pub(crate) fn rows(table: Table, columns: &[&'static str]) -> Vec<Row> {
    let cells: Vec<Vec<String>> = columns.iter().map(|column| table.cells(column).unwrap()).collect();
    let row =
        |at: usize| Row(columns.iter().zip(&cells).map(|(name, cells)| (*name, cells[at].clone())).collect());
    (0..cells[0].len()).map(row).collect()
}

/// The fitted cost of a size.
pub(crate) fn cost(series: Series, size: u64) -> Cost {
    series.fit().costs.iter().find(|(bytes, _)| *bytes == size).expect("a size of the table").1
}

/// A cell of a paper's table.
pub(crate) fn measured(series: Series, size: u64, column: &str) -> f64 {
    let (table, sizes) = series.table();
    let sizes = table.numbers(sizes).unwrap();
    let at = sizes.iter().position(|&listed| listed == size as f64).expect("a size of the table");
    table.numbers(column).unwrap()[at]
}

/// Errors in per cent, as the bars of a model ask for them.
pub(crate) struct Errors(pub(crate) Vec<f64>);

/// Errors of all rows of a table.
#[derive(Default)]
pub(crate) struct RowErrors {
    rows: usize,
    errors: Vec<f64>,
}

impl RowErrors {
    pub(crate) fn add(&mut self, of_row: Errors) {
        self.rows += 1;
        self.errors.extend(of_row.0);
    }

    /// Fails where there were not so many rows, or errors are above the bars, as of [`Errors::stay_within`].
    #[track_caller]
    pub(crate) fn stay_within(self, rows: usize, [largest, mean]: [f64; 2], what: &str) {
        assert_eq!(self.rows, rows, "{what}");
        Errors(self.errors).stay_within(largest, mean, what);
    }
}

impl Errors {
    pub(crate) fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self(pairs.into_iter().map(|(predicted, measured)| 100.0 * (predicted / measured - 1.0)).collect())
    }

    pub(crate) fn largest(&self) -> f64 {
        self.0.iter().fold(0.0, |most, error| error.abs().max(most))
    }

    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().map(|error| error.abs()).sum::<f64>() / self.0.len() as f64
    }

    /// Fails where an error is above `largest`, or their mean above `mean`, both in per cent.
    #[track_caller]
    pub(crate) fn stay_within(&self, largest: f64, mean: f64, what: &str) {
        println!(
            "{what}: largest {:.2} % (bar {largest}), mean {:.2} % (bar {mean})",
            self.largest(),
            self.mean()
        );
        assert!(self.largest() <= largest, "{what}: {:?}", self.0);
        assert!(self.mean() <= mean, "{what}: {:?}", self.0);
    }
}
