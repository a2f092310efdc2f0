//! What it costs to wait for AF_ALG in different ways: bare ones, OpenSSL's engine and the provider's.

use std::fmt::Write as _;

use evener_bench::medians::Spread;
use serde_json::Value;

use crate::openssl::{pairs, told, values};
use crate::stored_report::{StoredReport, find, list};

/// The report's name.
const NAME: &str = "waits-counted";

/// What all are measured against.
const ENGINE: &str = "afalg engine";

/// The ways in the order of the page, and what each does.
const WAYS: [(&str, &str); 8] = [
    (ENGINE, "`openssl speed -engine afalg`"),
    ("caller, in place", "the calling thread sends and reads, over its own text: what fails is lost"),
    ("caller, copied", "the same into a buffer, and a copy: the text is whole until the result is there"),
    ("wait = caller", "`openssl speed` by the provider, which does it so"),
    ("thread", "a thread sends and reads for the caller, who may leave; a copy to a buffer and one from it"),
    ("thread reads", "the caller sends and the thread reads; a copy from a buffer"),
    ("thread reads before", "the same, and the thread sleeps in `recv` before the caller sends"),
    (
        "provider",
        "`openssl speed` by the provider, which does it as `thread` (longer texts as `thread reads`)",
    ),
];

/// The table, where that was run.
pub(crate) fn section(all: &[StoredReport]) -> String {
    let Some(kept) = find(all, NAME) else { return String::new() };
    let rows: Vec<&Value> = list(&kept.report, "rows").collect();
    let mut text = format!(
        "\n## Ways to wait for AF_ALG, by counted instructions\n\nRequests of AES-128-CBC encryption in place, one at a time, {} together; bare ways have nothing of Evener's. Microseconds of a request / of the core for it, medians of {} rounds, and the engine's over \
         them: what a rate can be of the engine's. The provider's rows have its policy and comparisons in them.\n\n| |",
        kept.report["requests"], kept.report["rounds"]
    );
    rows.iter().for_each(|row| _ = write!(text, " {} B |", row["bytes"]));
    text += "\n|---|";
    rows.iter().for_each(|_| text += "---|");
    for (way, what) in WAYS {
        write!(text, "\n| {way}: {what} |").ok();
        for row in &rows {
            let of = |way: &str, clock: &str| values(&row["ways"][way][clock]);
            let median = |values: &[f64]| Spread::of(values).map_or(f64::NAN, |spread| spread.median);
            let over = |clock: &str| pairs(&of(ENGINE, clock), &of(way, clock));
            let [wall, core] = ["wall_us", "core_us"].map(|clock| median(&of(way, clock)));
            let (rate, core_over) = (told(Spread::of(&over("wall_us"))), median(&over("core_us")));
            write!(text, " {wall:.1} / {core:.1}, {rate} / {core_over:.2} |").ok();
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_way_that_takes_twice_the_engine_s_time_is_told_as_half_of_its_rate() {
        let ways: serde_json::Map<_, _> = WAYS
            .iter()
            .map(|(way, _)| {
                let times = if *way == "thread" { [40.0, 44.0, 36.0] } else { [20.0, 22.0, 18.0] };
                ((*way).to_owned(), json!({ "wall_us": times, "core_us": [20.0, 22.0, 18.0] }))
            })
            .collect();
        let report = json!({ "rounds": 3, "requests": 4_000, "rows": [{ "bytes": 4_096, "ways": ways }] });
        let kept = StoredReport {
            name: NAME.to_owned(),
            command: String::new(),
            circumstances: String::new(),
            report,
        };
        let text = section(&[kept]);
        let line = |start: &str| text.lines().find(|line| line.starts_with(start)).map(str::to_owned);
        assert!(
            line("| thread:").is_some_and(|line| line.ends_with("| 40.0 / 20.0, 0.50 [0.50 0.50] / 1.00 |")),
            "{text}"
        );
        assert!(
            line("| provider:")
                .is_some_and(|line| line.ends_with("| 20.0 / 20.0, 1.00 [1.00 1.00] / 1.00 |")),
            "{text}"
        );
        assert_eq!(section(&[]), "");
    }
}
