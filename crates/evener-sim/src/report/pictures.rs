//! The report as lines over sizes, for a program that draws.

use super::{Report, TableReport};

/// A picture: lines over sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Name of a file without its ending: `002.2`.
    pub name: String,
    /// What it shows, in one line, and in a second what the lines are.
    pub title: String,
    /// Label of the left axis.
    pub unit: &'static str,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// A line of a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Size in bytes, and the value there.
    pub points: Vec<(f64, f64)>,
    /// Whether it is a model's prediction; otherwise it was printed.
    pub is_model: bool,
}

impl Report {
    /// A picture for each table of which a model explains a column: the printed columns, and beside each what its
    /// last model says.
    #[must_use]
    pub fn pictures(&self) -> Vec<Picture> {
        let modelled = |table: &&TableReport| table.columns.iter().any(|column| !column.models.is_empty());
        self.tables.iter().filter(modelled).map(picture).collect()
    }
}

fn picture(table: &TableReport) -> Picture {
    let mut lines = Vec::new();
    for column in &table.columns {
        let line = |name: String, values: &[f64], is_model: bool| {
            let points = table.sizes.iter().copied().zip(values.iter().copied()).collect();
            Line { name, points, is_model }
        };
        lines.push(line(format!("{}, printed", column.name), &column.printed, false));
        // One model only: eight lines are as many as the eye keeps apart, and the last model is the finest.
        let last = column.models.last();
        lines.extend(last.map(|model| line(format!("{}, {}", column.name, model.name), &model.values, true)));
    }
    let title = format!(
        "Paper {}: {}\nsolid: printed; dashed: SIMULATED from the printed tables",
        table.id, table.title
    );
    Picture { name: table.id.to_owned(), title, unit: table.unit, lines }
}
