//! The report as text.

use std::fmt::Write as _;

use super::{Column, Report, Standing, TableReport};
use crate::papers::claims::Verdict;

impl Report {
    /// The report as text for people, in lines of at most 120 characters as far as words allow.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for table in &self.tables {
            table.write(&mut text);
        }
        line(&mut text, LEGEND);
        line(&mut text, "\nNot reproduced");
        for part in self.not_reproduced {
            wrapped(&mut text, "  ", &format!("{}: {}: {}", part.paper, part.what, part.why));
        }
        self.write_claims(&mut text);
        text
    }

    fn write_claims(&self, text: &mut String) {
        let groups = [
            ("Claims that the tables contradict", &[Verdict::False][..]),
            (
                "Claims that hold in part, or that the tables do not decide",
                &[Verdict::Partly, Verdict::Undecidable],
            ),
            (
                "Claims that were never measured, or of which the text has no numbers",
                &[Verdict::NotMeasured, Verdict::NoNumbers],
            ),
            ("Claims that the tables bear out", &[Verdict::True]),
        ];
        for (heading, verdicts) in groups {
            line(text, &format!("\n{heading}"));
            for claim in self.claims.iter().filter(|claim| verdicts.contains(&claim.finding.verdict)) {
                let (verdict, because) = (claim.finding.verdict.as_str(), &claim.finding.because);
                wrapped(
                    text,
                    "  ",
                    &format!("{} {}: {}: {verdict}: {because}", claim.paper, claim.id, claim.claim),
                );
            }
        }
    }
}

impl TableReport {
    fn write(&self, text: &mut String) {
        line(text, &format!("{}: {}, {}", self.id, self.title, self.unit));
        row(text, "size, bytes", self.sizes.iter().map(|size| format!("{size}")));
        for column in &self.columns {
            column.write(text);
        }
        for (column, model) in
            self.columns.iter().flat_map(|column| column.models.iter().map(move |model| (column, model)))
        {
            let errors = column.mean_and_greatest_percent(model);
            let errors = errors.map_or_else(String::new, |(mean, most)| {
                format!(" Error {mean:.1} % on average, {most:.1} % at most.")
            });
            wrapped(text, "  ", &format!("{}, {}: {}.{errors}", column.name, model.name, model.basis));
        }
        text.push('\n');
    }
}

impl Column {
    fn write(&self, text: &mut String) {
        row(text, &format!("{}, printed", self.name), self.printed.iter().map(|value| number(*value)));
        for model in &self.models {
            row(text, &format!("  {}", model.name), model.values.iter().map(|value| number(*value)));
            let errors = self.errors_percent(model).into_iter().zip(&model.standing);
            row(text, "  error %", errors.map(|(error, standing)| format!("{error:+.1}{}", mark(*standing))));
        }
        if self.models.is_empty() {
            line(text, &format!("    {}", self.why_no_model));
        }
    }
}

const LEGEND: &str = "Marks of errors: none: predicted without looking at the cell; ~ a constant was chosen while looking \
                      at the column; * a constant\nwas fitted on the cell; ? shown, not claimed. Everything is \
                      simulated from the printed tables; none of the machines was at hand.";

fn mark(standing: Standing) -> char {
    match standing {
        Standing::Predicted => ' ',
        Standing::Chosen => '~',
        Standing::Fitted => '*',
        Standing::NotClaimed => '?',
    }
}

/// A value with as many decimals as the papers print, at most two.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn row(text: &mut String, name: &str, cells: impl Iterator<Item = String>) {
    let mut row = format!("  {name:26}");
    for cell in cells {
        // The sign or blank behind an error stands outside the column of digits.
        let (digits, mark) = cell.split_at(cell.trim_end_matches([' ', '~', '*', '?']).len());
        write!(row, "{digits:>9}{mark:1}").expect("a String takes everything");
    }
    line(text, row.trim_end());
}

fn line(text: &mut String, words: &str) {
    text.push_str(words);
    text.push('\n');
}

/// `words` in lines of at most [`WIDTH`], all but the first set in further.
fn wrapped(text: &mut String, indent: &str, words: &str) {
    let mut row = indent.to_owned();
    for word in words.split_whitespace() {
        if row.chars().count() + 1 + word.chars().count() > WIDTH && !row.trim().is_empty() {
            line(text, row.trim_end());
            row = format!("{indent}  ");
        }
        row.push_str(word);
        row.push(' ');
    }
    line(text, row.trim_end());
}

const WIDTH: usize = 120;
