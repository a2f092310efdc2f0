//! Paper 000: module and CPU at the same time.

use super::sizes::{Between, Pair};
use super::{Claim, Finding, Tables, Verdict};
use crate::papers::table::TableError;

pub(super) const CLAIMS: &[Claim] = claims! {
    "C1" "below 1000 B the CPU alone is fastest" => cpu_is_fastest_below;
    "C2" "above 1000 B module and CPU together are fastest" => both_are_fastest_above;
    "C3" "at 7 KB both are more than twice as fast as the CPU alone" => twice_at_the_end;
    "C4" "both are faster than the module alone at all nine sizes" => both_beat_the_module;
    "C5" "it pays only where the CPU has time to spare" => time_to_spare;
};

/// Where the paper draws the line between small and large files, in bytes.
const BORDER_BYTES: f64 = 1000.0;

fn pair(tables: &Tables, one: &str, other: &str) -> Result<Pair, TableError> {
    Pair::read(&tables.seed000_table2, "file_size_bytes_nominal", one, other)
}

/// The three policies by size: CPU only, module only, both.
fn ways(tables: &Tables) -> Result<Vec<(f64, [f64; 3])>, TableError> {
    let single = pair(tables, "cpu_only_ms", "module_only_ms")?;
    let both = tables.seed000_table2.numbers("module_and_cpu_ms")?;
    let rows = single.sizes.iter().zip(single.one.iter().zip(&single.other)).zip(both);
    Ok(rows.map(|((&size, (&cpu, &module)), both)| (size, [cpu, module, both])).collect())
}

fn cpu_is_fastest_below(tables: &Tables) -> Result<Finding, TableError> {
    let rows = ways(tables)?;
    let small = rows.iter().filter(|(size, _)| *size < BORDER_BYTES);
    let leads: Vec<f64> = small.map(|(_, [cpu, module, both])| module.min(*both) / cpu).collect();
    let least = leads.iter().copied().fold(f64::INFINITY, f64::min);
    let because = format!("the next best takes at least {least:.2} times as long at {} sizes", leads.len());
    Ok(Finding::that(least > 1.0, vec![least], because))
}

fn both_are_fastest_above(tables: &Tables) -> Result<Finding, TableError> {
    let rows = ways(tables)?;
    let large = rows.iter().filter(|(size, _)| *size > BORDER_BYTES);
    let leads: Vec<f64> = large.map(|(_, [cpu, module, both])| cpu.min(*module) / both).collect();
    let crossing = pair(tables, "module_and_cpu_ms", "cpu_only_ms")?.crossing(Between::Linear);
    let crossing = crossing.unwrap_or(f64::NAN);
    let because = format!(
        "both are faster than the better single one at {} of {} sizes; the columns cross at {crossing:.0} B (linear)",
        leads.iter().filter(|&&lead| lead > 1.0).count(),
        leads.len()
    );
    let parts: Vec<bool> = leads.iter().map(|&lead| lead > 1.0).collect();
    Ok(Finding::of_parts(&parts, vec![crossing], because))
}

fn twice_at_the_end(tables: &Tables) -> Result<Finding, TableError> {
    let ratios = pair(tables, "cpu_only_ms", "module_and_cpu_ms")?.ratios();
    let last = ratios.last().copied().unwrap_or(f64::NAN);
    Ok(Finding::that(last > 2.0, vec![last], format!("{last:.2} times")))
}

fn both_beat_the_module(tables: &Tables) -> Result<Finding, TableError> {
    let ratios = pair(tables, "module_only_ms", "module_and_cpu_ms")?.ratios();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    let parts: Vec<bool> = ratios.iter().map(|&ratio| ratio > 1.0).collect();
    Ok(Finding::of_parts(&parts, vec![least, most], format!("{least:.2} to {most:.2} times as fast")))
}

fn time_to_spare(_: &Tables) -> Result<Finding, TableError> {
    Ok(Finding::without_numbers(Verdict::NotMeasured, "no run had any other load"))
}
