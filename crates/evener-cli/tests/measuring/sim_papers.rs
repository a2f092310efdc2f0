//! `evener sim papers`: what it prints, writes and draws is whole, and says what is simulated.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;

use crate::common::{Place, files};

const TABLES: [&str; 9] = ["000.2", "002.2", "002.3", "002.A1", "002.A2", "004.2", "004.3", "004.4", "004.5"];

#[test]
fn the_papers_tables_are_printed_with_the_models_errors_and_the_false_claims() {
    let ran = Place::new().evener().args(["sim", "papers"]).run().succeeded();
    let text = ran.stdout_text();
    for table in TABLES {
        assert!(text.contains(&format!("{table}: AES-")), "{table}");
    }
    // As paper 002 prints it for 16384 B, and paper 004 for 8192 B and six processes.
    let row = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    assert!(row("polling, printed").contains("3348.39") && text.contains("2282.47"), "{text}");
    let (_, contradicted) = text.split_once("Claims that the tables contradict\n").unwrap();
    let contradicted = contradicted.split("\n\n").next().unwrap();
    for id in ["002 C9:", "002 C10:", "002 C16:", "003 C3:", "004 C5:"] {
        assert!(contradicted.contains(id), "{id} in {contradicted}");
    }
    assert!(text.contains("Not reproduced") && text.contains("simulated"));
}

#[test]
fn the_page_among_the_results_is_what_the_simulator_says_today() {
    let ran = Place::new().evener().args(["sim", "papers"]).run().succeeded();
    let page = include_str!("../../../../docs/results/papers.txt");
    assert!(ran.stdout_text() == page, "draw it again: cargo xtask figures papers");
}

#[test]
fn csv_and_pictures_lie_in_the_directories_that_were_named() {
    let place = Place::new();
    place.evener().args(["sim", "papers", "--csv", "a/csv", "--svg", "a/svg"]).run().succeeded();
    let names = |folder: &str| -> Vec<String> {
        files(&place.join(folder)).iter().map(|path| path.display().to_string()).collect()
    };
    let mut expected: Vec<String> = TABLES.iter().map(|table| format!("{table}.csv")).collect();
    expected.extend(["claims.csv", "models.csv", "not_reproduced.csv"].map(str::to_owned));
    assert_eq!(names("a/csv"), expected);
    assert_eq!(
        names("a/svg"),
        ["000.2", "002.2", "002.3", "002.A1", "002.A2", "004.4", "004.5"].map(|it| format!("{it}.svg"))
    );
    for picture in names("a/svg") {
        let svg = fs::read_to_string(place.join("a/svg").join(&picture)).unwrap();
        assert!(svg.contains("SIMULATED") && svg.contains("</svg>"), "{picture}");
    }
    let printed = include_str!("../../../../vectors/papers/seed002_table2.csv");
    let written = fs::read_to_string(place.join("a/csv/002.2.csv")).unwrap();
    let rows: Vec<Vec<&str>> = printed.lines().map(|line| line.split(',').collect()).collect();
    let names = ["CPU only", "module only", "round robin", "polling", "proposed"];
    for row in &rows[1..] {
        for (name, value) in names.iter().zip(&row[1..]) {
            let cell = format!("{name},{},ms,{value},", row[0]);
            assert!(written.lines().any(|line| line.starts_with(&cell)), "{cell}");
        }
    }
}

#[test]
fn a_directory_that_cannot_be_made_stops_it_with_one_line() {
    let place = Place::new();
    place.write("file", "x");
    for option in ["--csv", "--svg"] {
        place
            .evener()
            .args(["sim", "papers", option, "file/below"])
            .run()
            .ended_with(2)
            .saying("cannot create file/below");
    }
}
