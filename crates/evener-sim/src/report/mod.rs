//! The report prints the papers' tables again, with the predictions of the models beside the printed values.
//!
//! Path of one figure: a printed table -> the models of its columns (`am3358.rs`, `cell.rs`), each with a sentence
//! about what was fitted on what -> [`Report::new`], with the claims and with what is not reproduced -> text
//! (`text.rs`), CSV (`csv.rs`), lines to draw (`pictures.rs`).

mod am3358;
mod cell;
mod csv;
mod pictures;
mod text;

pub use csv::File;
pub use pictures::{Line, Picture};

use crate::engine::Stuck;
use crate::papers::claims::{self, Checked, Tables};
use crate::papers::limits::{NotReproduced, not_reproduced};
use crate::papers::table::{Table, TableError};

/// What stops a report: a bug of this crate, whose tests exclude it for the papers' tables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A table lacks a column or a row.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A run of the simulator does not end.
    #[error(transparent)]
    Stuck(#[from] Stuck),
}

/// All tables, claims and limits.
#[derive(Clone, Debug)]
pub struct Report {
    /// The tables, by paper.
    pub tables: Vec<TableReport>,
    /// The papers' claims with their verdicts.
    pub claims: Vec<Checked>,
    /// What is not reproduced, and why.
    pub not_reproduced: &'static [NotReproduced],
}

/// A printed table with the models' predictions.
#[derive(Clone, Debug)]
pub struct TableReport {
    /// Paper and table: `002.A1`.
    pub id: &'static str,
    /// What was measured, on what.
    pub title: &'static str,
    /// Unit of every cell.
    pub unit: &'static str,
    /// Sizes of jobs in bytes, one for each row of the printed table.
    pub sizes: Vec<f64>,
    /// Its columns.
    pub columns: Vec<Column>,
}

/// A column of a printed table.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// As printed, by size.
    pub printed: Vec<f64>,
    /// The models' predictions of it.
    pub models: Vec<Model>,
    /// Why there is no model; empty where there is one.
    pub why_no_model: &'static str,
}

/// One model's predictions of one column.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its name.
    pub name: &'static str,
    /// What was fitted on which cells, and what the model reads.
    pub basis: &'static str,
    /// Its predictions, by size, in the table's unit.
    pub values: Vec<f64>,
    /// How each of these values came about.
    pub standing: Vec<Standing>,
}

/// How a value of a model came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Predicted: nothing was fitted on the cell.
    Predicted,
    /// A constant of the model was chosen while looking at the column.
    Chosen,
    /// A constant of the model was fitted so that this cell is met.
    Fitted,
    /// Shown without a claim.
    NotClaimed,
}

impl Standing {
    /// As one word or two.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Predicted => "predicted",
            Self::Chosen => "chosen on it",
            Self::Fitted => "fitted",
            Self::NotClaimed => "not claimed",
        }
    }
}

impl Report {
    /// Runs every model: some 400 short runs of the simulator.
    ///
    /// # Errors
    ///
    /// [`ReportError`].
    pub fn new() -> Result<Self, ReportError> {
        let mut tables = am3358::tables()?;
        tables.extend(cell::tables()?);
        Ok(Self { tables, claims: claims::check(&Tables::PRINTED)?, not_reproduced: not_reproduced() })
    }
}

impl Column {
    /// A column that a model reads, or that none explains.
    fn printed(
        table: &Table,
        column: &str,
        name: &'static str,
        why_no_model: &'static str,
    ) -> Result<Self, TableError> {
        Ok(Self { name, printed: table.numbers(column)?, models: Vec::new(), why_no_model })
    }

    fn modelled(
        table: &Table,
        column: &str,
        name: &'static str,
        models: Vec<Model>,
    ) -> Result<Self, TableError> {
        Ok(Self { name, printed: table.numbers(column)?, models, why_no_model: "" })
    }

    /// By how many per cent of what was printed each value of `model` is off.
    #[must_use]
    pub fn errors_percent(&self, model: &Model) -> Vec<f64> {
        model
            .values
            .iter()
            .zip(&self.printed)
            .map(|(value, printed)| 100.0 * (value / printed - 1.0))
            .collect()
    }

    /// Mean and greatest error of `model` without its sign, in per cent, over the cells that were not fitted; `None`
    /// where all were.
    #[must_use]
    pub fn mean_and_greatest_percent(&self, model: &Model) -> Option<(f64, f64)> {
        let errors = self.errors_percent(model).into_iter().zip(&model.standing);
        let errors: Vec<f64> = errors
            .filter(|(_, standing)| **standing != Standing::Fitted)
            .map(|(error, _)| error.abs())
            .collect();
        let count = f64::from(u32::try_from(errors.len()).ok().filter(|&count| count > 0)?);
        Some((errors.iter().sum::<f64>() / count, errors.into_iter().fold(0.0, f64::max)))
    }
}

impl Model {
    fn new(name: &'static str, basis: &'static str, values: Vec<f64>, standing: Standing) -> Self {
        let standing = vec![standing; values.len()];
        Self { name, basis, values, standing }
    }
}

#[cfg(test)]
mod tests;
