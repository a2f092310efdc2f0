//! Paper 002: the shared queue against four other policies, on the AM3358.

use super::sizes::{Between, Pair};
use super::{Claim, Finding, Tables, Verdict};
use crate::papers::table::TableError;

/// By the ids of `vectors/papers/seed002_claims.csv`.
pub(super) const CLAIMS: &[Claim] = claims! {
    "C1" "16384 B: proposed is 2.11 times CPU only" => |tables| speed_up(tables, "cpu_only_ms", 2.11);
    "C2" "16384 B: proposed is 1.32 times module only" => |tables| speed_up(tables, "module_only_ms", 1.32);
    "C3" "16384 B: proposed is 1.38 times round robin" => |tables| speed_up(tables, "round_robin_ms", 1.38);
    "C4" "16384 B: proposed is 1.5 times polling" => |tables| speed_up(tables, "polling_ms", 1.5);
    "C5" "CPU only and proposed cross between 1500 and 2048 B" => crossover;
    "C6" "round robin is very near to proposed from 1024 to 4096 B" => round_robin_is_near;
    "C7" "round robin is slower than module only above about 13 000 B only" => round_robin_falls_behind;
    "C8" "polling is faster than CPU only from about 10 000 B on" => polling_gets_ahead;
    "C9" "polling is slowest below about 10 000 B" => polling_is_slowest;
    "C10" "proposed always shows high performance" => always_fast;
    "C11" "a queue of 4000 files of 16384 B takes 64 Mbyte, 12.5 % of 512" => queue_memory;
    "C12" "figure 11 covers 1500 to 3500 B" => |_| in_a_figure();
    "C13" "decryption ranks the ways as encryption does (figure A.3)" => |_| in_a_figure();
    "C14" "a file of a minimal Ubuntu 14.04.1 has 26 676 bytes on average" => |_| quoted();
    "C15" "a web page has about 1600 kbyte on average" => |_| quoted();
    "C16" "under polling the CPU thread gets fewer files than under proposed" => cpu_share;
    "C17" "under CPU load the module's share rises" => |_| never_measured();
    "C18" "other programs suffer less than without the design" => |_| never_measured();
};

/// How far a ratio may be from the one that the paper prints with two decimals.
const RATIO_TOLERANCE: f64 = 0.01;
/// "Very near" is within 5 %, and so is "high performance" of the fastest policy. The bound is ours, not the paper's.
const NEAR: f64 = 0.05;
/// "About" so many bytes is within 10 %. The bound is ours, not the paper's.
const ABOUT: f64 = 0.1;
/// The policies of table 2.
const WAYS: [&str; 5] = ["cpu_only_ms", "module_only_ms", "round_robin_ms", "polling_ms", "proposed_ms"];

/// The name of a policy as text.
fn spoken(column: &str) -> String {
    column.trim_end_matches("_ms").replace('_', " ")
}

fn pair(tables: &Tables, one: &str, other: &str) -> Result<Pair, TableError> {
    Pair::read(&tables.seed002_table2, "file_size_bytes", one, other)
}

fn speed_up(tables: &Tables, over: &str, claimed: f64) -> Result<Finding, TableError> {
    let ratios = pair(tables, over, "proposed_ms")?.ratios();
    let ratio = ratios.last().copied().unwrap_or(f64::NAN);
    let holds = (ratio - claimed).abs() < RATIO_TOLERANCE;
    Ok(Finding::that(holds, vec![ratio], format!("{ratio:.3} times")))
}

fn crossover(tables: &Tables) -> Result<Finding, TableError> {
    let pair = pair(tables, "cpu_only_ms", "proposed_ms")?;
    let ways = [Between::Linear, Between::LogSize, Between::LogLog];
    let crossings = ways.map(|way| pair.crossing(way).unwrap_or(f64::NAN));
    let inside = crossings.iter().filter(|size| (1500.0..=2048.0).contains(*size)).count();
    let verdict = match inside {
        0 => Verdict::False,
        3 => Verdict::True,
        _ => Verdict::Undecidable,
    };
    let [linear, log_size, log_log] = crossings;
    let because = format!(
        "between the sizes of table 2 they cross at {linear:.0} B (linear), {log_size:.0} B (linear in the logarithm \
         of the size) or {log_log:.0} B (logarithms of both); figure 11 has no values in the text"
    );
    Ok(Finding::new(verdict, crossings.to_vec(), because))
}

fn round_robin_is_near(tables: &Tables) -> Result<Finding, TableError> {
    let pair = pair(tables, "round_robin_ms", "proposed_ms")?;
    let rows = pair.sizes.iter().zip(pair.ratios());
    let rows: Vec<(f64, f64)> = rows
        .filter(|(size, _)| (1024.0..=4096.0).contains(*size))
        .map(|(&size, ratio)| (size, ratio - 1.0))
        .collect();
    let parts: Vec<bool> = rows.iter().map(|(_, more)| *more <= NEAR).collect();
    let words: Vec<String> =
        rows.iter().map(|(size, more)| format!("{:+.1} % at {size}", more * 100.0)).collect();
    let numbers = rows.iter().flat_map(|&(size, more)| [more * 100.0, size]).collect();
    Ok(Finding::of_parts(&parts, numbers, words.join(", ")))
}

/// Whether `one` becomes slower than `other` (or faster, where `then_faster`) about `claimed_bytes` and nowhere else.
fn changes_about(pair: &Pair, claimed_bytes: f64, then_faster: bool) -> Finding {
    let crossing = pair.crossing(Between::Linear).unwrap_or(f64::NAN);
    let as_claimed = |size: f64, ratio: f64| (ratio < 1.0) == ((size > claimed_bytes) == then_faster);
    let sides = pair.sizes.iter().zip(pair.ratios()).all(|(&size, ratio)| as_claimed(size, ratio));
    let about = (crossing / claimed_bytes - 1.0).abs() <= ABOUT;
    let below = pair.sizes.iter().copied().filter(|&size| size < crossing).fold(0.0, f64::max);
    let above = pair.sizes.iter().copied().filter(|&size| size > crossing).fold(f64::INFINITY, f64::min);
    let [first, then] = if then_faster { ["slower", "faster"] } else { ["faster", "slower"] };
    let because = format!("{first} at {below} B, {then} at {above} B; linear interpolation {crossing:.0} B");
    Finding::that(sides && about, vec![below, above, crossing], because)
}

fn round_robin_falls_behind(tables: &Tables) -> Result<Finding, TableError> {
    Ok(changes_about(&pair(tables, "round_robin_ms", "module_only_ms")?, 13_000.0, false))
}

fn polling_gets_ahead(tables: &Tables) -> Result<Finding, TableError> {
    Ok(changes_about(&pair(tables, "polling_ms", "cpu_only_ms")?, 10_000.0, true))
}

fn polling_is_slowest(tables: &Tables) -> Result<Finding, TableError> {
    let (mut slower_at, mut words) = (Vec::new(), Vec::new());
    for other in WAYS.into_iter().filter(|way| *way != "polling_ms") {
        let sizes = pair(tables, "polling_ms", other)?.sizes_where(|ratio| ratio <= 1.0);
        for size in sizes.into_iter().filter(|&size| size < 10_000.0) {
            words.push(format!("{} is slower at {size} B", spoken(other)));
            slower_at.push(size);
        }
    }
    let because = if words.is_empty() { "no way is slower".to_owned() } else { words.join(", ") };
    Ok(Finding::that(slower_at.is_empty(), slower_at, because))
}

fn always_fast(tables: &Tables) -> Result<Finding, TableError> {
    let mut beaten = Vec::new();
    for other in WAYS.into_iter().filter(|way| *way != "proposed_ms") {
        let pair = pair(tables, "proposed_ms", other)?;
        let rows = pair.sizes.iter().copied().zip(pair.ratios());
        beaten
            .extend(rows.filter(|(_, ratio)| *ratio > 1.0 + NEAR).map(|(size, ratio)| (other, size, ratio)));
    }
    if beaten.is_empty() {
        return Ok(Finding::that(true, Vec::new(), "no way is faster by more than 5 % at any size"));
    }
    let extent = |value: fn(&(&str, f64, f64)) -> f64| {
        let values = beaten.iter().map(value);
        values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)))
    };
    let ((least, most), (from, to)) = (extent(|row| row.2), extent(|row| row.1));
    let mut ways: Vec<String> = beaten.iter().map(|row| spoken(row.0)).collect();
    ways.dedup();
    let because = format!("{} is {least:.2} to {most:.2} times faster at {from} to {to} B", ways.join(", "));
    Ok(Finding::that(false, vec![least, most, from, to], because))
}

fn queue_memory(_: &Tables) -> Result<Finding, TableError> {
    let bytes: f64 = 4000.0 * 16_384.0;
    let (decimal, binary) = (bytes / 1e6, bytes / f64::from(1 << 20));
    let share_percent = 100.0 * decimal / 512.0;
    let holds = (decimal / 64.0 - 1.0).abs() < NEAR && (share_percent / 12.5 - 1.0).abs() < NEAR;
    let because = format!("{decimal:.3} MB, which is {binary:.1} MiB and {share_percent:.1} % of 512 MB");
    Ok(Finding::that(holds, vec![decimal, binary, share_percent], because))
}

fn cpu_share(tables: &Tables) -> Result<Finding, TableError> {
    let table = &tables.seed002_table3;
    let pair = Pair::read(table, "file_size_bytes", "polling_cpu_files", "proposed_cpu_files")?;
    let mut numbers = Vec::new();
    let mut words = Vec::new();
    for ((size, polling), proposed) in pair.sizes.iter().zip(&pair.one).zip(&pair.other) {
        if polling >= proposed {
            numbers.extend([*size, *polling, *proposed]);
            words.push(format!("{polling} under polling, {proposed} under proposed at {size} B"));
        }
    }
    let holds_at = pair.sizes.len() - words.len();
    words.push(format!("fewer at {holds_at} of {} sizes", pair.sizes.len()));
    numbers.push(f64::from(u32::try_from(holds_at).expect("a table is small")));
    Ok(Finding::that(words.len() == 1, numbers, words.join("; ")))
}

fn in_a_figure() -> Result<Finding, TableError> {
    Ok(Finding::without_numbers(Verdict::NoNumbers, "the figure has no values in the text"))
}

fn quoted() -> Result<Finding, TableError> {
    Ok(Finding::without_numbers(Verdict::NoNumbers, "quoted from elsewhere; no table of the paper"))
}

fn never_measured() -> Result<Finding, TableError> {
    Ok(Finding::without_numbers(Verdict::NotMeasured, "no run had any other load"))
}
