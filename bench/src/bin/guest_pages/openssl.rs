//! OpenSSL programs with the provider and a module: rates beside OpenSSL's own engine, and paper 003's uploads.

use std::fmt::Write as _;
use std::path::Path;

use evener_bench::draw::{self, Scale, Series};
use serde_json::Value;

use crate::kept::{Kept, find, list, number};

/// What a rate is to be at least, of the better of default provider and engine.
const ASKED: f64 = 0.97;
/// Ways of the provider with the module.
const WITH: [&str; 2] = ["provider", "wait = caller"];
/// What an upload is measured against.
const WITHOUT: &str = "no module";

/// Both parts, as far as they were run, with a picture in `folder`.
pub(crate) fn section(all: &[Kept], folder: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    if let Some(kept) = find(all, "openssl-speed") {
        text += &speed(&kept.report);
    }
    for (name, clock) in [("uploads", "the guest's clock"), ("uploads-counted", "counted instructions")] {
        if let Some(kept) = find(all, name) {
            text += &uploads(&kept.report, name, clock);
            draw(&kept.report, &folder.join(name).with_extension("svg"), clock)?;
        }
    }
    Ok(text)
}

fn speed(report: &Value) -> String {
    let mut text = format!(
        "\n## OpenSSL programs\n\nAES-128-CBC by an unmodified `openssl`, MB/s, ways in turn, medians of {}; in brackets the median of the \
         rounds' ratios to the better of default provider and engine, and the least and the greatest. Asked is {ASKED}.\n\n\
         | work | default | afalg engine | provider | | `wait = caller` | |\n|---|---|---|---|---|---|---|\n",
        report["rounds"]
    );
    for row in list(report, "rows") {
        let word = |name: &str| row[name].as_str().unwrap_or("-").to_owned();
        let best = ["default", "afalg engine"].map(|way| (way, median(values(&row["ways"][way]))));
        write!(
            text,
            "| {}, {} | {} | {} |",
            word("work"),
            word("of"),
            number(best[0].1, 1),
            number(best[1].1, 1)
        )
        .ok();
        let best =
            best.into_iter().max_by(|one, other| one.1.unwrap_or(0.0).total_cmp(&other.1.unwrap_or(0.0)));
        let best = best.map(|(way, _)| values(&row["ways"][way])).unwrap_or_default();
        for way in WITH {
            let ours = values(&row["ways"][way]);
            write!(text, " {} | {} |", number(median(ours.clone()), 1), told(&pairs(&ours, &best))).ok();
        }
        text.push('\n');
    }
    text
}

fn uploads(report: &Value, name: &str, clock: &str) -> String {
    let mut text = format!(
        "\n## Uploads (paper 003, table 1), by {clock}\n\n![Uploads](guest/{name}.svg)\n\n`curl` to an nginx on the host, TLS 1.2, AES-128-CBC with \
         Encrypt-then-MAC. Ratios of time and of core time with the module over those without, the median of {} rounds' ratios, in brackets \
         least and greatest; core time is what the guest was not idle for. The paper's: its times with offload over those without. \
         Asked at 18,948,662 B: core time at most 0.85, time at most 1.02; at the two smallest sizes at most 1.02.\n\n\
         | bytes | without, ms | time | core time | `wait = caller`: time | core time | paper 003 |\n|---|---|---|---|---|---|---|\n",
        report["rounds"]
    );
    for row in list(report, "rows") {
        let alone = &row["ways"][WITHOUT];
        write!(text, "| {} | {} |", row["bytes"], number(median(values(&alone["wall_ms"])), 1)).ok();
        for way in WITH {
            for clock in ["wall_ms", "core_ms"] {
                write!(
                    text,
                    " {} |",
                    told(&pairs(&values(&row["ways"][way][clock]), &values(&alone[clock])))
                )
                .ok();
            }
        }
        writeln!(text, " {} |", number(paper(row), 2)).ok();
    }
    text
}

fn draw(report: &Value, path: &Path, clock: &str) -> anyhow::Result<()> {
    let over = |value: &dyn Fn(&Value) -> Option<f64>| {
        list(report, "rows").filter_map(|row| Some((row["bytes"].as_f64()?, value(row)?))).collect()
    };
    let guest = |way: &'static str, clock: &'static str| {
        move |row: &Value| {
            let of = |way: &str| values(&row["ways"][way][clock]);
            median(pairs(&of(way), &of(WITHOUT)))
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
    Ok(draw::lines(path, &title, "upload", "with over without", Scale::Linear, &series)?)
}

/// The paper's time with offload over that without.
fn paper(row: &Value) -> Option<f64> {
    Some(row["paper"]["with_ms"].as_f64()? / row["paper"]["without_ms"].as_f64()?)
}

fn values(list: &Value) -> Vec<f64> {
    list.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// Round by round, one over the other.
fn pairs(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect()
}

fn told(ratios: &[f64]) -> String {
    let Some(median) = median(ratios.to_vec()) else { return "-".to_owned() };
    let (least, most) =
        ratios.iter().fold((f64::MAX, f64::MIN), |(least, most), &one| (least.min(one), most.max(one)));
    format!("{median:.2} [{least:.2} {most:.2}]")
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
