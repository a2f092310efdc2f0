//! The table of messages (docs/guide/mistakes.md): each line is run, and says what stands there.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::fs;
use std::path::Path;

use common::{EVENER, Place};

/// Command, message and status of each row.
fn rows() -> Vec<[String; 3]> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/mistakes.md");
    let page = fs::read_to_string(page).unwrap().replace("\\|", "\u{0}");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let cell = |cell: &str| cell.trim().trim_matches('`').replace('\u{0}', "|");
    rows.map(|row| row.trim_matches('|').split('|').map(cell).collect::<Vec<_>>().try_into().unwrap())
        .collect()
}

#[test]
fn every_line_of_the_table_says_what_stands_there() {
    let place = Place::with_key();
    place.keyset("other.json");
    place.write("f", "text");
    place.write("d/a", "another text");
    place.write("up/in/in/x", "deep");
    place.program("mkfifo").arg("up/pipe").run().succeeded();
    fs::create_dir_all(place.join("taken/f")).unwrap();
    place.evener().args(["encrypt", "--key", "k.json", "-q", "-o", "f.sealed", "f"]).run().succeeded();
    let rows = rows();
    assert!(rows.len() > 30);
    for [command, message, status] in rows {
        let line = command.replacen("evener", EVENER, 1);
        // Without a terminal, wherever the test is run.
        let ran = place.program("setsid").args(["-w", "sh", "-c", &line]).env("EVENER_ARBITER", "off").run();
        assert_eq!(ran.stderr().trim_end(), format!("evener: {message}"), "{command}");
        assert_eq!(ran.code().unwrap().to_string(), status, "{command}");
    }
}
