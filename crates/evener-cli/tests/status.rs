//! `evener status`: what a process counts is shown while it runs, in text and JSON; what cannot be read is named.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process;

use common::schema::misfits;
use common::{Place, Run};
use evener::core::Direction::{Decrypt, Encrypt};
use evener::core::statistics::{Count, Kind, Row};
use evener::statistics::{Directories, Statistics};
use serde_json::Value;

fn status(place: &Place) -> Run {
    place.evener().env("EVENER_STATISTICS_DIR", place.join("stats")).arg("status")
}

/// A place in which this process counts.
fn counting() -> (Place, Statistics) {
    let place = Place::new();
    let statistics = Statistics::new(Directories::only(place.join("stats"))).unwrap();
    let cbc = Kind::named("AES-128-CBC");
    (0..3).for_each(|_| statistics.request(cbc, Encrypt, 16_384, Count::Direct));
    statistics.request(cbc, Encrypt, 1 << 20, Count::Routed);
    statistics.request(Kind::named("AES-256-GCM"), Decrypt, 2 << 20, Count::Split);
    (place, statistics)
}

fn answer(run: Run) -> Value {
    let ran = run.arg("--json").run();
    let value: Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert_eq!(misfits("status.schema.json", &value), [""; 0]);
    value
}

#[test]
fn a_running_process_is_shown_with_what_it_did_so_far() {
    let (place, statistics) = counting();
    let shown = |options: &[&str]| {
        let ran = status(&place).args(options).run().succeeded();
        ran.stdout_text()
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
    };
    let lines = shown(&[]);
    assert!(lines[0].starts_with(&format!("{} ", process::id())), "{lines:?}");
    assert_eq!(lines[1], "requests bytes direct combined split routed");
    assert_eq!(lines[2], "AES-128-CBC encrypt 4 1.05 MiB 75.0 % - - 25.0 %");
    assert_eq!(lines[3], "AES-256-GCM decrypt 1 2.00 MiB - - 100.0 % -");
    assert_eq!(lines.len(), 4);
    assert_eq!(
        shown(&["--sizes"])[2..4],
        [
            "AES-128-CBC encrypt, to 16.0 KiB 3 48.0 KiB 100.0 % - - -",
            "AES-128-CBC encrypt, to 1.00 MiB 1 1.00 MiB - - - 100.0 %"
        ]
    );
    let row = Row::of(Kind::named("AES-128-CBC"), Encrypt, 1 << 20);
    for (count, number) in [(Count::TakenBack, 1), (Count::Redone, 2), (Count::Locked, 3)] {
        statistics.add(row, count, number);
    }
    let lines = shown(&["--pid", &process::id().to_string()]);
    for (line, words) in lines[4..].iter().zip([
        "1 part taken back",
        "2 requests that a module failed",
        "3 times a class was locked",
    ]) {
        assert!(line.starts_with(words), "{lines:?}");
    }
    assert_eq!(lines.len(), 7);
}

#[test]
fn json_holds_every_class_and_fits_its_schema() {
    let (place, statistics) = counting();
    let value = answer(status(&place));
    let classes = value["processes"][0]["classes"].as_array().unwrap();
    let of = |index: usize, name: &str| classes[index][name].clone();
    assert_eq!(classes.len(), 3);
    assert_eq!(
        (of(0, "requests"), of(0, "bytes"), of(0, "bytes_max")),
        (3.into(), 49_152.into(), 16_384.into())
    );
    assert_eq!(
        (of(2, "algorithm"), of(2, "split"), of(2, "bytes_max")),
        ("AES-256-GCM".into(), 1.into(), Value::Null)
    );
    statistics.request(Kind::OTHER, Encrypt, 0, Count::Direct);
    assert_eq!(answer(status(&place))["processes"][0]["classes"].as_array().unwrap().len(), 4);
}

#[test]
fn a_process_that_has_ended_is_shown_once_more_and_then_removed() {
    let (place, _statistics) = counting();
    let mut child = process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let own = fs::read(place.join(format!("stats/{}.stats", process::id()))).unwrap();
    let mut theirs = own;
    theirs[12..16].copy_from_slice(&child.id().to_ne_bytes());
    let path = place.write(format!("stats/{}.stats", child.id()), theirs);
    let ended = |pid: u32, value: &Value| {
        let processes = value["processes"].as_array().unwrap();
        processes.iter().find(|one| one["pid"] == pid).map(|one| one["ended"].as_bool().unwrap())
    };
    let value = answer(status(&place));
    assert_eq!((ended(child.id(), &value), ended(process::id(), &value)), (Some(true), Some(false)));
    assert!(!path.exists());
    assert_eq!(answer(status(&place))["processes"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_no_statistics_is_named_in_one_line_and_the_others_are_shown() {
    let (place, _statistics) = counting();
    let own = fs::read(place.join(format!("stats/{}.stats", process::id()))).unwrap();
    // Process 1 runs, so its file is not removed.
    for (bytes, words) in [
        (&own[..9_999], "process 1: cut off after 2499 words"),
        (&own[..], "process 1: this is no statistics file"),
        (b"hello", "process 1: this is no statistics file"),
        (b"", "process 1: this is no statistics file"),
    ] {
        place.write("stats/1.stats", bytes);
        let ran = status(&place).run().ended_with(1).saying(words);
        assert!(ran.stdout_text().contains("AES-256-GCM"));
        assert_eq!(answer(status(&place))["unreadable"][0]["pid"], 1);
    }
}

#[test]
fn nothing_to_show_is_said() {
    let place = Place::new();
    assert!(status(&place).run().succeeded().stdout_text().starts_with("no program of this user counts"));
    status(&place).args(["--pid", "1"]).run().ended_with(2).saying("process 1 has no statistics");
    fs::create_dir(place.join("stats")).unwrap();
    fs::set_permissions(place.join("stats"), fs::Permissions::from_mode(0o777)).unwrap();
    place.write("stats/1.stats", "planted by somebody");
    assert!(status(&place).run().succeeded().stdout_text().starts_with("no program of this user counts"));
}
