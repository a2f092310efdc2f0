//! The report as CSV files (RFC 4180, with line feeds).

use super::Report;

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name: `002.2.csv`.
    pub name: String,
    /// Its content.
    pub text: String,
}

impl Report {
    /// A file for each table, one line for each cell and model; and `models.csv` (what was fitted on what),
    /// `claims.csv`, `not_reproduced.csv`.
    #[must_use]
    pub fn to_csv(&self) -> Vec<File> {
        let mut files: Vec<File> = self.tables.iter().map(table).collect();
        files.push(self.models());
        files.push(self.claims());
        files.push(self.limits());
        files
    }

    fn models(&self) -> File {
        let mut rows =
            vec![cells(["table", "column", "model", "basis", "mean_error_pct", "greatest_error_pct"])];
        for table in &self.tables {
            for column in &table.columns {
                if column.models.is_empty() {
                    rows.push(cells([table.id, column.name, "", column.why_no_model, "", ""]));
                }
                for model in &column.models {
                    let errors = column.mean_and_greatest_percent(model);
                    let [mean, most] = errors.map_or([const { String::new() }; 2], |(mean, most)| {
                        [format!("{mean:.2}"), format!("{most:.2}")]
                    });
                    rows.push(cells([table.id, column.name, model.name, model.basis, &mean, &most]));
                }
            }
        }
        file("models.csv", &rows)
    }

    fn claims(&self) -> File {
        let mut rows = vec![cells(["paper", "id", "claim", "verdict", "because"])];
        rows.extend(self.claims.iter().map(|claim| {
            let finding = &claim.finding;
            cells([claim.paper, claim.id, claim.claim, finding.verdict.as_str(), &finding.because])
        }));
        file("claims.csv", &rows)
    }

    fn limits(&self) -> File {
        let mut rows = vec![cells(["paper", "what", "why"])];
        rows.extend(self.not_reproduced.iter().map(|part| cells([part.paper, part.what, part.why])));
        file("not_reproduced.csv", &rows)
    }
}

fn table(table: &super::TableReport) -> File {
    let mut rows = vec![cells([
        "column",
        "size_bytes",
        "unit",
        "printed",
        "model",
        "predicted",
        "error_pct",
        "standing",
    ])];
    for column in &table.columns {
        for (at, (size, printed)) in table.sizes.iter().zip(&column.printed).enumerate() {
            let (size, printed) = (size.to_string(), printed.to_string());
            if column.models.is_empty() {
                rows.push(cells([column.name, &size, table.unit, &printed, "", "", "", ""]));
            }
            for model in &column.models {
                let value = format!("{:.2}", model.values[at]);
                let error = format!("{:.2}", column.errors_percent(model)[at]);
                let standing = model.standing[at].as_str();
                rows.push(cells([
                    column.name,
                    &size,
                    table.unit,
                    &printed,
                    model.name,
                    &value,
                    &error,
                    standing,
                ]));
            }
        }
    }
    file(&format!("{}.csv", table.id), &rows)
}

fn file(name: &str, rows: &[String]) -> File {
    File { name: name.to_owned(), text: rows.join("\n") + "\n" }
}

/// One line; cells that contain commas or quotes stand in quotes.
fn cells<const N: usize>(cells: [&str; N]) -> String {
    cells.map(quoted).join(",")
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}
