//! The report against the printed tables and the reference predictions.

use std::sync::LazyLock;

use super::*;
use crate::papers::claims::Verdict;
use crate::papers::table::{SEED002_TABLE2, SEED004_TABLE5, split};

/// The same for all tests: it takes a while.
fn report() -> Report {
    static REPORT: LazyLock<Report> = LazyLock::new(|| Report::new().unwrap());
    REPORT.clone()
}

fn column<'r>(report: &'r Report, table: &str, name: &str) -> &'r Column {
    let table = report.tables.iter().find(|it| it.id == table).unwrap();
    table.columns.iter().find(|it| it.name == name).unwrap()
}

#[test]
fn every_table_is_there_with_every_row_of_it() {
    let report = report();
    let shapes: Vec<(&str, usize, usize)> =
        report.tables.iter().map(|table| (table.id, table.sizes.len(), table.columns.len())).collect();
    let expected = [
        ("000.2", 9, 3),
        ("002.2", 8, 5),
        ("002.3", 8, 2),
        ("002.A1", 8, 3),
        ("002.A2", 8, 3),
        ("004.2", 5, 4),
        ("004.3", 5, 4),
        ("004.4", 5, 4),
        ("004.5", 5, 4),
    ];
    assert_eq!(shapes, expected);
    assert_eq!(column(&report, "002.2", "polling").printed, SEED002_TABLE2.numbers("polling_ms").unwrap());
    assert_eq!(column(&report, "004.5", "Mars").printed, SEED004_TABLE5.numbers("mars_mbps").unwrap());
}

#[test]
fn a_column_has_either_a_model_with_its_basis_or_a_reason() {
    for column in report().tables.iter().flat_map(|table| &table.columns) {
        assert_eq!(column.models.is_empty(), !column.why_no_model.is_empty(), "{}", column.name);
        for model in &column.models {
            assert!(!model.basis.is_empty());
            assert_eq!(model.values.len(), column.printed.len());
            assert_eq!(model.standing.len(), column.printed.len());
        }
    }
}

#[test]
fn cells_that_were_fitted_do_not_count_as_predicted() {
    let report = report();
    let [ecb, cbc] = ["004.4", "004.5"].map(|table| column(&report, table, "proposed"));
    let fitted =
        |column: &Column| column.models[0].standing.iter().filter(|it| **it == Standing::Fitted).count();
    assert_eq!((fitted(ecb), fitted(cbc)), (2, 0));
    let (mean, most) = ecb.mean_and_greatest_percent(&ecb.models[0]).unwrap();
    // 0.1, 1.2 and 5.7 % are left.
    assert!((mean - 2.36).abs() < 0.1 && (most - 5.7).abs() < 0.1, "{mean} {most}");
}

#[test]
fn the_models_are_as_good_as_the_reference_says() {
    let report = report();
    // Mean and greatest error in per cent, of the reference simulation.
    let expected = [
        ("000.2", "both", "halves of a core", 10.2, 32.3),
        ("000.2", "both", "events, HZ 250", 10.6, 26.2),
        ("002.2", "round robin", "work conservation", 2.9, 6.1),
        ("002.2", "round robin", "events, HZ 250", 1.9, 3.3),
        ("002.2", "polling", "events, HZ 250", 22.4, 31.0),
        ("002.2", "proposed", "work conservation", 2.4, 4.5),
        ("002.2", "proposed", "halves of a core", 7.6, 16.5),
        ("002.2", "proposed", "events, HZ 250", 3.1, 5.9),
        ("002.A1", "proposed", "halves of a core", 7.7, 20.3),
        ("002.A1", "proposed", "events, HZ 250", 2.6, 9.5),
        ("002.A2", "proposed", "halves of a core", 10.8, 22.5),
        ("002.A2", "proposed", "events, HZ 250", 6.2, 14.2),
        ("004.5", "proposed", "mean value analysis", 4.9, 11.2),
    ];
    for (table, name, model, mean, most) in expected {
        let column = column(&report, table, name);
        let model = column.models.iter().find(|it| it.name == model).unwrap();
        let (our_mean, our_most) = column.mean_and_greatest_percent(model).unwrap();
        let near = |predicted: f64, measured: f64| (predicted - measured).abs() <= 0.5;
        assert!(near(our_mean, mean) && near(our_most, most), "{table} {name}: {our_mean} {our_most}");
    }
}

#[test]
fn what_constants_were_chosen_on_or_what_is_not_claimed_is_marked() {
    let report = report();
    let standing = |table, name, model: &str| {
        let models = &column(&report, table, name).models;
        models.iter().find(|it| it.name == model).unwrap().standing[0]
    };
    assert_eq!(standing("002.2", "proposed", "events, HZ 250"), Standing::Chosen);
    assert_eq!(standing("002.3", "proposed", "events, HZ 250"), Standing::Chosen);
    assert_eq!(standing("002.2", "polling", "events, HZ 250"), Standing::NotClaimed);
    assert_eq!(standing("002.A1", "proposed", "events, HZ 250"), Standing::Predicted);
    let text = report.to_text();
    for mark in ["~", "*", "?"] {
        assert!(text.lines().any(|line| line.contains("error %") && line.contains(mark)), "{mark}");
    }
}

#[test]
fn every_line_of_a_csv_file_has_as_many_cells_as_its_head() {
    let files = report().to_csv();
    assert_eq!(files.len(), 9 + 3);
    for file in &files {
        let mut lines = file.text.lines();
        let head = split(lines.next().unwrap()).len();
        assert!(lines.clone().count() > 0, "{}", file.name);
        for line in lines {
            assert_eq!(split(line).len(), head, "{}: {line}", file.name);
        }
    }
}

#[test]
fn the_csv_of_a_table_repeats_what_was_printed_and_says_how_far_the_model_is_off() {
    let files = report().to_csv();
    let table = files.iter().find(|file| file.name == "004.5.csv").unwrap();
    let rows: Vec<Vec<String>> = table.text.lines().map(split).collect();
    let large = rows.iter().find(|row| row[0] == "proposed" && row[1] == "8192").unwrap();
    assert_eq!(large[2..], ["Mbit/s", "2282.47", "mean value analysis", "2539.17", "11.25", "predicted"]);
    let mars = rows.iter().find(|row| row[0] == "Mars" && row[1] == "16").unwrap();
    assert_eq!(mars[2..], ["Mbit/s", "8.17", "", "", "", ""]);
}

#[test]
fn the_text_names_every_table_every_claim_and_everything_that_is_not_reproduced() {
    let report = report();
    let text = report.to_text();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let all = words(&text);
    for table in &report.tables {
        assert!(text.contains(&format!("{}: {}", table.id, table.title)));
    }
    for claim in &report.claims {
        assert!(all.contains(&words(&claim.finding.because)), "{claim:?}");
    }
    for part in report.not_reproduced {
        assert!(all.contains(&words(&format!("{}: {}: {}", part.paper, part.what, part.why))), "{part:?}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 130), "{text}");
}

#[test]
fn claims_that_the_tables_contradict_stand_apart() {
    let report = report();
    let text = report.to_text();
    let from = text.find("contradict").unwrap();
    let group = text[from..].split("\n\n").next().unwrap();
    for claim in &report.claims {
        let named = group.contains(&format!("\n  {} {}: ", claim.paper, claim.id));
        assert_eq!(named, claim.finding.verdict == Verdict::False, "{claim:?}");
    }
}

#[test]
fn pictures_show_what_was_printed_and_mark_what_is_simulated() {
    let pictures = report().pictures();
    let names: Vec<&str> = pictures.iter().map(|picture| picture.name.as_str()).collect();
    assert_eq!(names, ["000.2", "002.2", "002.3", "002.A1", "002.A2", "004.4", "004.5"]);
    for picture in &pictures {
        assert!(picture.title.contains("SIMULATED"));
        assert!(picture.lines.len() <= 8, "colours repeat");
        assert!(
            picture.lines.iter().any(|line| line.is_model) && picture.lines.iter().any(|line| !line.is_model)
        );
    }
}
