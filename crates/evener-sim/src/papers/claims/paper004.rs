//! Paper 004: the Cell/B.E. with six processes, against one, Mars and its own main processor.

use super::{Claim, Finding, Tables, Verdict};
use crate::papers::table::{Table, TableError};

/// In the order of `vectors/papers/seed004_claims.csv`.
pub(super) const CLAIMS: &[Claim] = claims! {
    "C1" "8192 B, ECB: six processes are a 310 % improvement over one" => large_gain;
    "C2" "16 B, ECB: six processes are about 30 % better than one" => small_gain;
    "C3" "the proposal beats Mars in nearly all items" => beats_mars;
    "C4" "up to 256 or 1024 B both are slower than the main processor alone" => small_calls_lose;
    "C5" "8192 B grows linearly with the processes (figure 8)" => grows_linearly;
};

/// "About 30 %" is 25 to 35 %. The bound is ours, not the paper's.
const ABOUT_PERCENT: f64 = 5.0;
/// "Nearly all" is nine of ten and more. The bound is ours, not the paper's.
const NEARLY_ALL: f64 = 0.9;
/// Six processes that grow "linearly" reach at least nine tenths of six times one. The bound is ours.
const LINEAR: f64 = 0.9;

/// Rate with six processes over rate with one, ECB, in the row of `size_bytes`.
fn gain(tables: &Tables, size_bytes: f64) -> Result<f64, TableError> {
    let [one, _, six, _] = &tables.seed004;
    let sizes = one.numbers("data_size_bytes")?;
    let row = sizes.iter().position(|&size| size == size_bytes).expect("a size of table 2");
    Ok(six.numbers("proposed_mbps")?[row] / one.numbers("proposed_mbps")?[row])
}

fn large_gain(tables: &Tables) -> Result<Finding, TableError> {
    let ratio = gain(tables, 8192.0)?;
    let better_percent = 100.0 * (ratio - 1.0);
    let near_310 = |percent: f64| (percent - 310.0).abs() < ABOUT_PERCENT;
    // The number is right as a ratio, the word "improvement" is not.
    let parts = [near_310(100.0 * ratio), near_310(better_percent)];
    let because = format!("{ratio:.3} times, which is +{better_percent:.0} %");
    Ok(Finding::of_parts(&parts, vec![ratio, better_percent], because))
}

fn small_gain(tables: &Tables) -> Result<Finding, TableError> {
    let better_percent = 100.0 * (gain(tables, 16.0)? - 1.0);
    let holds = (better_percent - 30.0).abs() < ABOUT_PERCENT;
    Ok(Finding::that(holds, vec![better_percent], format!("+{better_percent:.0} %")))
}

fn beats_mars(tables: &Tables) -> Result<Finding, TableError> {
    let mut pairs = Vec::new();
    for table in &tables.seed004 {
        let rates = table.numbers("proposed_mbps")?.into_iter().zip(table.numbers("mars_mbps")?);
        pairs.extend(rates);
    }
    let lost: Vec<(f64, f64)> = pairs.iter().copied().filter(|(ours, mars)| ours <= mars).collect();
    let (all, won) = (count(pairs.len()), count(pairs.len() - lost.len()));
    let words: Vec<String> =
        lost.iter().map(|(ours, mars)| format!("{ours} against {mars} Mbit/s")).collect();
    let because = format!("{won} of {all}; lost: {}", words.join(", "));
    let mut numbers = vec![won, all];
    numbers.extend(lost.iter().flat_map(|&(ours, mars)| [ours, mars]));
    Ok(Finding::that(won >= NEARLY_ALL * all, numbers, because))
}

/// The sizes at which the system of `column` is slower than the main processor, and whether these are all sizes up to
/// 256 or up to 1024 bytes and no other.
fn slower(table: &Table, column: &str) -> Result<(Vec<f64>, bool), TableError> {
    let sizes = table.numbers("data_size_bytes")?;
    let up_to = |border: f64| sizes.iter().copied().filter(|&size| size <= border).collect::<Vec<f64>>();
    let rates = table.numbers(column)?.into_iter().zip(table.numbers("ppe_mbps")?);
    let slower = sizes.iter().zip(rates).filter(|(_, (rate, ppe))| rate < ppe);
    let slower: Vec<f64> = slower.map(|(&size, _)| size).collect();
    let as_claimed = slower == up_to(256.0) || slower == up_to(1024.0);
    Ok((slower, as_claimed))
}

fn small_calls_lose(tables: &Tables) -> Result<Finding, TableError> {
    let (mut parts, mut borders) = (Vec::new(), Vec::new());
    for column in ["proposed_mbps", "mars_mbps"] {
        for table in &tables.seed004 {
            let (slower, as_claimed) = slower(table, column)?;
            parts.push(as_claimed);
            borders.push(slower.last().copied().unwrap_or(0.0));
        }
    }
    let listed = |sizes: &[f64]| sizes.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
    let (proposal, mars) = borders.split_at(tables.seed004.len());
    let because = format!(
        "the largest slower sizes in tables 2 to 5 are {} B for the proposal, {} B for Mars",
        listed(proposal),
        listed(mars)
    );
    Ok(Finding::of_parts(&parts, borders, because))
}

fn grows_linearly(tables: &Tables) -> Result<Finding, TableError> {
    let ratio = gain(tables, 8192.0)?;
    let efficiency_percent = 100.0 * ratio / 6.0;
    let because = format!(
        "six processes reach {ratio:.2} times one, {efficiency_percent:.0} % of six times; between one and six the text has no values"
    );
    let verdict = if ratio >= 6.0 * LINEAR { Verdict::NoNumbers } else { Verdict::False };
    Ok(Finding::new(verdict, vec![ratio, 6.0, efficiency_percent], because))
}

fn count(items: usize) -> f64 {
    f64::from(u32::try_from(items).expect("a table is small"))
}
