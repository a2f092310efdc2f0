//! Paper 003: uploads from Android's browser.

use super::{Claim, Finding, Tables};
use crate::papers::android::Uploads;
use crate::papers::table::TableError;

pub(super) const CLAIMS: &[Claim] = claims! {
    "C1" "small files get slower" => small_files_lose;
    "C2" "at 18 948 662 B uploads are about 44 % faster" => gain_at_the_end;
    "C3" "the difference grows with the size of the file" => difference_grows;
};

/// What each claim says of other uploads than those that were printed, in the order of [`CLAIMS`].
pub(super) fn of_uploads(uploads: &Uploads) -> [Finding; 3] {
    [small_files_lose_in(uploads), gain_at_the_end_of(uploads), difference_grows_in(uploads)]
}

fn small_files_lose(tables: &Tables) -> Result<Finding, TableError> {
    Ok(small_files_lose_in(&Uploads::of(&tables.seed003_table1)?))
}

fn gain_at_the_end(tables: &Tables) -> Result<Finding, TableError> {
    Ok(gain_at_the_end_of(&Uploads::of(&tables.seed003_table1)?))
}

fn difference_grows(tables: &Tables) -> Result<Finding, TableError> {
    Ok(difference_grows_in(&Uploads::of(&tables.seed003_table1)?))
}

fn small_files_lose_in(uploads: &Uploads) -> Finding {
    let losses: Vec<f64> =
        uploads.rows.iter().map(|row| row.saved_percent()).filter(|&saved| saved < 0.0).collect();
    let words: Vec<String> = losses.iter().map(|saved| format!("{saved:.1}")).collect();
    let because = match uploads.crossover() {
        Some((from, _)) => format!("time saved at the sizes up to {from} B: {} %", words.join(", ")),
        None if losses.is_empty() => "time is saved at every size".to_owned(),
        None => {
            format!("time is saved at {} sizes of {}", uploads.rows.len() - losses.len(), uploads.rows.len())
        }
    };
    Finding::that(uploads.crossover().is_some() && !losses.is_empty(), losses, because)
}

fn gain_at_the_end_of(uploads: &Uploads) -> Finding {
    let saved = uploads.rows.last().map_or(f64::NAN, |row| row.saved_percent());
    let because =
        format!("{saved:.1} % of the time is saved; as a rate that is {:.2} times", 100.0 / (100.0 - saved));
    Finding::that((saved - 44.0).abs() < 0.5, vec![saved], because)
}

fn difference_grows_in(uploads: &Uploads) -> Finding {
    let differences: Vec<f64> = uploads.rows.iter().map(|row| row.ms[1] - row.ms[0]).collect();
    let falls = differences.windows(2).find(|pair| pair[1] <= pair[0]);
    let because = falls.map_or_else(
        || "it does at every step".to_owned(),
        |pair| format!("it falls from {} to {} ms", tenths(pair[0]), tenths(pair[1])),
    );
    Finding::that(falls.is_none(), falls.unwrap_or_default().to_vec(), because)
}

/// Rounded: measured times have more digits than they know.
fn tenths(ms: f64) -> f64 {
    (ms * 10.0).round() / 10.0
}
