//! Paper 003: uploads from Android's browser.

use super::{Claim, Finding, Tables};
use crate::papers::android::Uploads;
use crate::papers::table::TableError;

pub(super) const CLAIMS: &[Claim] = claims! {
    "C1" "small files get slower" => small_files_lose;
    "C2" "at 18 948 662 B uploads are about 44 % faster" => gain_at_the_end;
    "C3" "the difference grows with the size of the file" => difference_grows;
};

fn small_files_lose(tables: &Tables) -> Result<Finding, TableError> {
    let uploads = Uploads::of(&tables.seed003_table1)?;
    let losses: Vec<f64> =
        uploads.rows.iter().map(|row| row.saved_percent()).filter(|&saved| saved < 0.0).collect();
    let from = uploads.crossover().map_or(f64::NAN, |(low, _)| low);
    let words: Vec<String> = losses.iter().map(|saved| format!("{saved:.1}")).collect();
    let because = format!("time saved at the sizes up to {from} B: {} %", words.join(", "));
    Ok(Finding::that(uploads.crossover().is_some(), losses, because))
}

fn gain_at_the_end(tables: &Tables) -> Result<Finding, TableError> {
    let uploads = Uploads::of(&tables.seed003_table1)?;
    let saved = uploads.rows.last().map_or(f64::NAN, |row| row.saved_percent());
    let because =
        format!("{saved:.1} % of the time is saved; as a rate that is {:.2} times", 100.0 / (100.0 - saved));
    Ok(Finding::that((saved - 44.0).abs() < 0.5, vec![saved], because))
}

fn difference_grows(tables: &Tables) -> Result<Finding, TableError> {
    let uploads = Uploads::of(&tables.seed003_table1)?;
    let differences: Vec<f64> = uploads.rows.iter().map(|row| row.ms[1] - row.ms[0]).collect();
    let falls = differences.windows(2).find(|pair| pair[1] <= pair[0]);
    let because = falls.map_or_else(
        || "it does at every step".to_owned(),
        |pair| format!("it falls from {} to {} ms", pair[0], pair[1]),
    );
    Ok(Finding::that(falls.is_none(), falls.unwrap_or_default().to_vec(), because))
}
