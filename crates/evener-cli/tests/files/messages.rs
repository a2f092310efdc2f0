//! The table of messages (docs/guide/mistakes.md): each line is run, and says what stands there.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::Path;

use crate::common::{self, EVENER, Place};

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

/// Strangers give names: to files, to members of an archive and what they link to, in a list of recipients.
#[test]
fn no_message_speaks_to_the_terminal_with_what_it_quotes() {
    let Some(place) = Place::with_programs(&["tar"]) else { return };
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    let name = "a\u{1b}[31mRED\u{7}";
    place.write(format!("in/{name}"), "text");
    place.write("one/x", "text");
    let key = "printf '\\0\\0\\0\\012a\\033[31mRED\\007' | base64";
    let key = place.program("sh").args(["-c", key]).run().succeeded();
    place.write("recipients", format!("{name} {}", key.stdout_text()));
    place.write(format!("links/{name}"), "text");
    fs::hard_link(place.join("links").join(name), place.join("links/z")).unwrap();
    place.evener().args(["encrypt", "-q", "-i", "id", "-o", "out", "in"]).run().succeeded();
    let tar = "tar -c links | \"$0\" encrypt -q -i id -o links.age - && \"$0\" decrypt --tar -q -i id -o unpacked links.age";
    place.program("sh").args(["-c", tar, EVENER]).run().succeeded();
    place.write("one.age", "");
    for words in [
        &["verify", "-i", "id", "--against", "one", "out"][..],
        &["verify", "-i", "id", "--against", "in", "one"],
        &["encrypt", "-R", "recipients", "-o", "no", "one"],
        &["encrypt", "-i", "id", "-o", &format!("in/{name}/x"), "one"],
        &["encrypt", "-i", "id", "-o", "in", &format!("in/{name}")],
        &["encrypt", "-i", "id", "-o", &format!("in/{name}"), "-"],
        &["encrypt", "-i", name, "-o", "no", "one"],
        &["decrypt", "-i", "id", "-o", "no", &format!("one/{name}")],
        // All members are there, so the first of two names is refused, and the other after it.
        &["decrypt", "--tar", "-i", "id", "-o", "unpacked", "links.age"],
        &["sum", &format!("in/{name}/x")],
        &["inspect", &format!("in/{name}")],
        &["keyset", "list", &format!("in/{name}")],
    ] {
        let ran = place.evener().args(words).input("").run();
        assert_ne!(ran.code(), Some(0), "{words:?}");
        let said = ran.stderr();
        assert!(!said.chars().any(|sign| sign.is_control() && sign != '\n'), "{words:?}: {said:?}");
        assert!(said.contains("RED"), "{words:?}: {said:?}");
    }
}

#[test]
fn each_failure_is_named_however_many_there_are() {
    let place = Place::with_key();
    for number in 0..60 {
        place.write(format!("in/{number}"), "this is none");
    }
    for command in ["decrypt --key k.json -o out in", "verify --key k.json in"] {
        let ran = place.evener().args(command.split(' ')).run().ended_with(1);
        for number in 0..60 {
            let named = format!("evener: in/{number}: ");
            assert!(ran.stderr().lines().any(|line| line.starts_with(&named)), "{command}: {named}");
        }
    }
}

/// Refusals of the system's in many commands: each names the place that failed, by its path, and what is wrong in words.
#[test]
fn what_the_system_refuses_is_told_with_its_path_and_in_words() {
    let place = Place::with_key();
    place.write("f", "text");
    place.write("d/f", "text");
    let refused = "No such file or directory";
    for (command, path, words) in [
        ("encrypt --key k.json -o /dev/full f", "f", "No space left on device"),
        ("encrypt --key k.json -o f/out d", "f", "Not a directory"),
        ("encrypt --key k.json -o out no/such", "no/such", refused),
        ("encrypt --key k.json no/such", "no/such", refused),
        ("encrypt --key k.json -q --force --json no/such.json f", "no/such.json", refused),
        ("encrypt --key no/such.json f", "no/such.json", refused),
        ("encrypt -R no/such f", "no/such", refused),
        ("decrypt -i f/id f", "f/id", "Not a directory"),
        ("verify --key k.json no/such", "no/such", refused),
        ("inspect no/such", "no/such", refused),
        ("sum no/such", "no/such", refused),
        ("keygen no/such.json", "no/such.json", refused),
        ("keyset list no/such.json", "no/such.json", refused),
        ("man no/such", "no/such", refused),
        ("sim run no/such", "no/such", refused),
        ("sim papers --csv f", "f", "File exists"),
        ("host --module emulated:am3358 --socket no/such", "no/such", refused),
    ] {
        let ran = place.evener().args(command.split(' ')).run();
        assert_ne!(ran.code(), Some(0), "{command}");
        let said = ran.stderr();
        assert!(said.contains(path) && said.contains(words), "{command}: {said}");
        assert!(!said.contains("os error"), "{command}: {said}");
    }
    // Root may write everywhere.
    if let Some(rights) = Place::open_to_all().without_rights() {
        let place = Place::open_to_all();
        place.without_rights();
        place.write("shut/f", "text");
        common::allow(&place.join("shut"), 0o700);
        let command = ["./evener", "encrypt", "--key", "k.json", "-o", "shut/g", "k.json"];
        let words = [rights, &command].concat();
        let ran =
            place.program(words[0]).args(&words[1..]).env("EVENER_CACHE_DIR", place.join("cache")).run();
        assert_ne!(ran.code(), Some(0));
        let said = ran.stderr();
        assert!(said.contains("shut") && said.contains("Permission denied"), "{said}");
        assert!(!said.contains("os error"), "{said}");
    }
    let devices = place.evener().arg("devices").run().succeeded();
    assert!(!devices.stdout_text().contains("os error"), "{}", devices.stdout_text());
}
