//! `evener sim scale`: what it prints and writes of a part of its grid.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;

use crate::common::Place;

#[test]
fn a_part_of_the_grid_is_printed_and_written_and_says_what_was_measured() {
    let place = Place::new();
    let part = ["sim", "scale", "--cores", "1", "--streams", "1000", "--csv", "grid.csv"];
    let ran = place.evener().args(part).run().succeeded();
    let text = ran.stdout_text();
    assert!(text.contains("Simulated") && text.contains("Measured on this machine"), "{text}");
    let csv = fs::read_to_string(place.join("grid.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|it| *it == name).unwrap();
    assert_eq!(rows.len(), 1 + 2 * 4);
    for row in &rows[1..] {
        let number = |name: &str| row[column(name)].parse::<f64>().unwrap();
        assert_eq!((number("cores"), number("streams")), (1.0, 1_000.0), "{row:?}");
        // Jobs pile up on one core; a run of so many ends near the bound and not below it.
        assert!(number("load") > 1.0 && (0.9..1.01).contains(&number("of_best")), "{row:?}");
        assert!(number("measured_decision_ns_per_job") > 0.0 && number("measured_questions_per_job") >= 1.0);
        assert!(text.contains(&format!("{:.3}", number("of_best"))), "{row:?}");
    }
}

#[test]
fn a_cell_that_the_grid_lacks_stops_it() {
    let place = Place::new();
    place
        .evener()
        .args(["sim", "scale", "--cores", "3"])
        .run()
        .ended_with(2)
        .saying("no such cell; cores are [1, 2, 8");
}

/// The page is redrawn when what is simulated changes; its last three columns were measured.
#[test]
fn the_page_that_is_kept_shows_what_is_simulated() {
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/scale.txt")).unwrap();
    let columns = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let page_rows: Vec<Vec<String>> = page.lines().map(columns).collect();
    let ran = Place::new().evener().args(["sim", "scale", "--cores", "2"]).run().succeeded();
    // The sentences below the rows are about all rows of a page: those of a part of the grid differ.
    let is_row = |line: &&str| line.ends_with(|last: char| last.is_ascii_digit()) && !line.contains(':');
    let mut compared = 0;
    for line in ran.stdout_text().lines().filter(is_row).map(columns) {
        let simulated = &line[..line.len() - 3];
        assert!(page_rows.iter().any(|row| row.starts_with(simulated)), "{simulated:?}");
        compared += 1;
    }
    assert_eq!(compared, 24, "2 mixes, 3 numbers of streams, 4 of modules");
}
