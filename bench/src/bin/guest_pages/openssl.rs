//! OpenSSL programs with the provider and a module: rates beside OpenSSL's own engine, and paper 003's uploads.

use std::fmt::Write as _;
use std::path::Path;

use evener_bench::medians::Spread;
use evener_bench::plot::{self, Panel, Scale, Series};
use serde_json::Value;

use crate::stored_report::{StoredReport, find, list, number};

/// What a rate is to be at least, of the better of default provider and engine.
const ASKED: f64 = 0.97;
/// Ways without the provider.
const PEERS: [&str; 2] = ["default", "afalg engine"];
/// Ways of the provider with the module.
const WITH: [&str; 3] = ["provider", "wait = caller", "virtio"];
/// What every round of a way gave.
const RATE: &str = "megabytes_per_second";
const CORE: &str = "core_ns_per_byte";
/// What an upload is measured against.
const WITHOUT: &str = "no module";

/// Both parts, as far as they were run, with a picture in `folder`.
pub(crate) fn section(all: &[StoredReport], folder: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    for (name, clock) in by_clocks("openssl-speed") {
        if let Some(kept) = find(all, &name) {
            text += &speed(&kept.report, &name, clock);
            draw_speed(&kept.report, &folder.join(&name).with_extension("svg"), clock)?;
        }
    }
    for (name, clock) in by_clocks("uploads") {
        if let Some(kept) = find(all, &name) {
            text += &uploads(&kept.report, &name, clock);
            draw_uploads(&kept.report, &folder.join(&name).with_extension("svg"), clock)?;
        }
    }
    Ok(text)
}

/// What a report is called by each clock of a guest, and the clock.
fn by_clocks(name: &str) -> [(String, &'static str); 2] {
    [(name.to_owned(), "the guest's clock"), (format!("{name}-counted"), "counted instructions")]
}

fn speed(report: &Value, name: &str, clock: &str) -> String {
    let rounds = report["rounds"].as_u64().unwrap_or(0);
    let ratios = |way| list(report, "rows").filter_map(move |row| over_best(row, way));
    let level = ratios(WITH[0]).map(|ratio| ratio.level).fold(1.0, f64::min) * 100.0;
    let mut text = format!(
        "\n## OpenSSL programs, by {clock}\n\n![{name}](guest/{name}.svg)\n\nEncryption by an unmodified \
         `openssl`, ways in turn; medians of {rounds} rounds: MB/s / nanoseconds of the core a byte. Over best: the provider's rate over that of the better of default \
         provider and engine, with bounds that hold with {level:.0} %. Asked: {ASKED}. `virtio`: by a second module, which the program drives itself ([virtio](../design/virtio.md)).\n"
    );
    for algorithm in algorithms(report) {
        write!(
            text,
            "\n### {algorithm}\n\n| | default | afalg engine | provider | over best | `wait = caller` | over best | virtio | over best |\n\
             |---|---|---|---|---|---|---|---|---|\n"
        )
        .ok();
        for row in list(report, "rows").filter(|row| row["algorithm"] == algorithm) {
            let word = |name: &str| row[name].as_str().unwrap_or("-");
            write!(text, "| {}, {} |", word("work"), word("of")).ok();
            for way in PEERS {
                write!(text, " {} |", rate_and_core(row, way)).ok();
            }
            for way in WITH {
                write!(text, " {} | {} |", rate_and_core(row, way), told(over_best(row, way))).ok();
            }
            text.push('\n');
        }
    }
    text.push('\n');
    for way in WITH {
        let all: Vec<Spread> = ratios(way).collect();
        let good = all.iter().filter(|ratio| ratio.median >= ASKED).count();
        let short = all.iter().filter(|ratio| ratio.high < ASKED).count();
        let count = all.len();
        writeln!(
            text,
            "- {way}: as asked in {good} of {count} rows, surely not (bounds below {ASKED}) in {short}"
        )
        .ok();
    }
    text
}

/// The algorithms of the rows, each once.
fn algorithms(report: &Value) -> Vec<&str> {
    let mut all: Vec<&str> = list(report, "rows").filter_map(|row| row["algorithm"].as_str()).collect();
    all.dedup();
    all
}

fn rate_and_core(row: &Value, way: &str) -> String {
    let of = |what: &str| significant(median(&values(&row["ways"][way][what])));
    format!("{} / {}", of(RATE), of(CORE))
}

/// A way's rate over that of the better of those without the provider, by their medians.
fn over_best(row: &Value, way: &str) -> Option<Spread> {
    let rates = |way: &str| values(&row["ways"][way][RATE]);
    let best = PEERS.into_iter().filter_map(|way| Some((rates(way), median(&rates(way))?)));
    let (best, _) = best.max_by(|one, other| one.1.total_cmp(&other.1))?;
    Spread::of(&pairs(&rates(way), &best))
}

/// Rates and core time of ways over the default provider's.
fn draw_speed(report: &Value, path: &Path, clock: &str) -> anyhow::Result<()> {
    let mut panels = Vec::new();
    for (what, kind) in [(RATE, "rate"), (CORE, "core time of a byte")] {
        for algorithm in algorithms(report) {
            let series = PEERS.into_iter().chain(WITH).map(|way| {
                let of = |row: &Value, way: &str| values(&row["ways"][way][what]);
                let ratio = |row| median(&pairs(&of(row, way), &of(row, PEERS[0])));
                let rows = list(report, "rows")
                    .filter(|row| row["algorithm"] == algorithm && row["work"] == "openssl speed");
                let points = rows.filter_map(|row| Some((row["bytes"].as_f64()?, ratio(row)?))).collect();
                Series { name: way.to_owned(), points, dashed: PEERS.contains(&way) }
            });
            panels.push(Panel { name: format!("{algorithm}, {kind}"), series: series.collect() });
        }
    }
    let title = format!(
        "openssl speed over the default provider\nGuest of the test bed, by {clock}, medians of the rounds' ratios"
    );
    Ok(plot::panels(path, &title, "bytes of an update", "times the default's", Scale::Logarithmic, &panels)?)
}

fn uploads(report: &Value, name: &str, clock: &str) -> String {
    let mut text = format!(
        "\n## Uploads (paper 003, table 1), by {clock}\n\n![{name}](guest/{name}.svg)\n\n`curl` to an nginx on the host, TLS 1.2, AES-128-CBC with \
         Encrypt-then-MAC: time and core time with the module over those without, medians of {} rounds' ratios with bounds. \
         Asked at 18,948,662 B: core time at most 0.85, time at most 1.02; at the two smallest sizes at most 1.02.\n\n\
         | bytes | without, ms | time | core time | `wait = caller`: time | core time | virtio: time | core time | paper 003 |\n|---|---|---|---|---|---|---|---|---|\n",
        report["rounds"]
    );
    for row in list(report, "rows") {
        let alone = &row["ways"][WITHOUT];
        write!(text, "| {} | {} |", row["bytes"], number(median(&values(&alone["wall_ms"])), 1)).ok();
        for way in WITH {
            for clock in ["wall_ms", "core_ms"] {
                write!(
                    text,
                    " {} |",
                    told(Spread::of(&pairs(&values(&row["ways"][way][clock]), &values(&alone[clock]))))
                )
                .ok();
            }
        }
        writeln!(text, " {} |", number(paper(row), 2)).ok();
    }
    text
}

fn draw_uploads(report: &Value, path: &Path, clock: &str) -> anyhow::Result<()> {
    let over = |value: &dyn Fn(&Value) -> Option<f64>| {
        list(report, "rows").filter_map(|row| Some((row["bytes"].as_f64()?, value(row)?))).collect()
    };
    let guest = |way: &'static str, clock: &'static str| {
        move |row: &Value| {
            let of = |way: &str| values(&row["ways"][way][clock]);
            median(&pairs(&of(way), &of(WITHOUT)))
        }
    };
    let mut series = vec![Series { name: "paper, time".to_owned(), points: over(&paper), dashed: true }];
    for (what, clock) in [("time", "wall_ms"), ("core time", "core_ms")] {
        for way in WITH {
            let name = format!("guest, {way}, {what}");
            series.push(Series { name, points: over(&guest(way, clock)), dashed: false });
        }
    }
    let title = format!(
        "Uploads with a module over those without\nGuest of the test bed, by {clock}, beside the paper's board"
    );
    Ok(plot::lines(path, &title, "upload", "with over without", Scale::Linear, &series)?)
}

/// The paper's time with offload over that without.
fn paper(row: &Value) -> Option<f64> {
    Some(row["paper"]["with_ms"].as_f64()? / row["paper"]["without_ms"].as_f64()?)
}

pub(crate) fn values(list: &Value) -> Vec<f64> {
    list.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// Round by round, one over the other.
pub(crate) fn pairs(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect()
}

pub(crate) fn told(spread: Option<Spread>) -> String {
    let told = |Spread { median, low, high, .. }| format!("{median:.2} [{low:.2} {high:.2}]");
    spread.map_or_else(|| "-".to_owned(), told)
}

fn median(values: &[f64]) -> Option<f64> {
    Spread::of(values).map(|spread| spread.median)
}

/// A number with three digits that count, or a dash.
fn significant(value: Option<f64>) -> String {
    let decimals = match value {
        Some(value) if value < 0.1 => 4,
        Some(value) if value < 1.0 => 3,
        Some(value) if value < 10.0 => 2,
        Some(value) if value < 100.0 => 1,
        _ => 0,
    };
    number(value, decimals)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(name: &str, report: Value) -> StoredReport {
        StoredReport { name: name.to_owned(), command: String::new(), circumstances: String::new(), report }
    }

    /// One row of `openssl speed`: rates by way and round, and the same core time everywhere.
    fn row(algorithm: &str, bytes: u32, rates: [[f64; 3]; 5]) -> Value {
        let ways: serde_json::Map<_, _> = PEERS
            .iter()
            .chain(&WITH)
            .zip(rates)
            .map(|(way, rates)| ((*way).to_owned(), json!({ RATE: rates, CORE: [20.0, 30.0, 25.0] })))
            .collect();
        let of = format!("{bytes} B");
        json!({ "algorithm": algorithm, "work": "openssl speed", "bytes": bytes, "of": of, "ways": ways })
    }

    #[test]
    fn the_provider_is_held_round_by_round_against_the_better_of_default_and_engine() {
        let folder = tempfile::tempdir().unwrap();
        let (slow, fast) = ([1.0, 2.0, 4.0], [10.0, 20.0, 40.0]);
        let rows = [
            row("AES-128-CBC", 16, [fast, slow, [9.0, 20.0, 80.0], [9.0, 19.0, 38.0], fast]),
            row("AES-128-CBC", 16384, [slow, fast, fast, slow, fast]),
            row("AES-256-CBC", 16, [fast, slow, fast, fast, slow]),
        ];
        let text =
            section(&[run("openssl-speed", json!({ "rounds": 3, "rows": rows }))], folder.path()).unwrap();
        for line in [
            "| openssl speed, 16 B | 20.0 / 25.0 | 2.00 / 25.0 | 20.0 / 25.0 | 1.00 [0.90 2.00] | 19.0 / 25.0 \
             | 0.95 [0.90 0.95] | 20.0 / 25.0 | 1.00 [1.00 1.00] |",
            "| openssl speed, 16384 B | 2.00 / 25.0 | 20.0 / 25.0 | 20.0 / 25.0 | 1.00 [1.00 1.00] | 2.00 / 25.0 \
             | 0.10 [0.10 0.10] | 20.0 / 25.0 | 1.00 [1.00 1.00] |",
            "### AES-128-CBC",
            "### AES-256-CBC",
            "- provider: as asked in 3 of 3 rows, surely not (bounds below 0.97) in 0",
            "- wait = caller: as asked in 1 of 3 rows, surely not (bounds below 0.97) in 2",
            "- virtio: as asked in 2 of 3 rows, surely not (bounds below 0.97) in 1",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in\n{text}");
        }
        let svg = std::fs::read_to_string(folder.path().join("openssl-speed.svg")).unwrap();
        for panel in ["AES-128-CBC, rate", "AES-256-CBC, core time of a byte"] {
            assert!(svg.lines().any(|line| line == panel), "{panel}");
        }
    }

    #[test]
    fn uploads_are_told_beside_the_papers_and_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let way =
            |factor: f64| json!({ "wall_ms": [100.0 * factor, 300.0 * factor], "core_ms": [50.0, 70.0] });
        let ways = json!({ WITHOUT: way(1.0), WITH[0]: way(0.5), WITH[1]: way(1.5), WITH[2]: way(0.5) });
        let rows = [json!({ "bytes": 70, "paper": { "with_ms": 402, "without_ms": 201 }, "ways": ways })];
        let text = section(&[run("uploads", json!({ "rounds": 2, "rows": rows }))], folder.path()).unwrap();
        let line = "| 70 | 200.0 | 0.50 [0.50 0.50] | 1.00 [1.00 1.00] | 1.50 [1.50 1.50] | 1.00 [1.00 1.00] | 0.50 [0.50 0.50] | 1.00 [1.00 1.00] | 2.00 |";
        assert!(text.lines().any(|it| it == line), "{text}");
        assert!(
            folder.path().join("uploads.svg").exists() && !folder.path().join("openssl-speed.svg").exists()
        );
    }

    #[test]
    fn numbers_have_three_digits_that_count() {
        let told = [0.0345, 4.321, 43.21, 432.1, 43_210.0].map(|value| significant(Some(value)));
        assert_eq!(told, ["0.0345", "4.32", "43.2", "432", "43210"]);
    }
}
