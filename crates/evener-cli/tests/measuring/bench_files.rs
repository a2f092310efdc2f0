//! `evener bench files`: what it reports holds together, and it notices a program that cheats. Times are never judged.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::PathBuf;

use crate::common::{Place, Run, misfits, noise, skipped, there_is, tree};
use evener_testbed::write_program;
use serde_json::Value;

const LARGE: [&str; 2] = ["--size", "300K"];
const TREE: [&str; 3] = ["--files=6", "--file-size", "1K"];

/// A place with an empty folder `ground`.
fn place() -> Place {
    let place = Place::new();
    fs::create_dir(place.join("ground")).unwrap();
    place
}

/// The command on a ground of its own, with few runs and only those works that are asked for.
fn bench(place: &Place, works: &[&str]) -> Run {
    let run = place.evener().args(["bench", "files", "--dir", "ground", "--runs", "3"]).args(works);
    let left_out = [("--size", "--size=0"), ("--files", "--files=0")];
    let left_out = left_out.iter().filter(|(name, _)| !works.iter().any(|work| work.starts_with(name)));
    run.args(left_out.map(|row| row.1))
}

fn entries(folder: PathBuf) -> usize {
    fs::read_dir(folder).unwrap().count()
}

/// A program under another's name, found first.
fn impostor(place: &Place, name: &str, script: &str) -> String {
    let folder = place.join("bin");
    fs::create_dir_all(&folder).unwrap();
    write_program(&folder.join(name), format!("#!/bin/sh\n{script}\n").as_bytes()).unwrap();
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

#[test]
fn the_report_fits_its_schema_and_holds_together() {
    let place = place();
    let ran = bench(&place, &[&LARGE[..], &TREE].concat())
        .args(["--rivals", "cp,openssl", "--json", "report.json"])
        .run()
        .succeeded();
    let report: Value = serde_json::from_slice(&fs::read(place.join("report.json")).unwrap()).unwrap();
    assert_eq!(misfits("bench-files.schema.json", &report), [""; 0]);
    let cells = report["cells"].as_array().unwrap();
    let works: Vec<_> =
        cells.iter().map(|cell| (cell["work"].as_str(), cell["direction"].as_str())).collect();
    let (large, tree) = (Some("large file"), Some("tree"));
    let (encrypt, decrypt) = (Some("encrypt"), Some("decrypt"));
    assert_eq!(works, [(large, encrypt), (large, decrypt), (tree, encrypt), (tree, decrypt)]);
    for cell in cells {
        let files = if cell["work"] == "tree" { 6 } else { 1 };
        let bytes = if cell["work"] == "tree" { 6 << 10 } else { 300 << 10 };
        assert_eq!((cell["files"].as_u64(), cell["bytes"].as_u64()), (Some(files), Some(bytes)));
        check_contenders(cell["contenders"].as_array().unwrap());
    }
    assert!(ran.stdout_text().contains("x the time of cp"));
    assert_eq!(entries(place.join("ground")), 0, "something was left behind");
}

fn check_contenders(contenders: &[Value]) {
    check_contenders_of(contenders);
    for one in contenders {
        let seconds = &one["seconds"];
        let value = |name: &str| seconds[name].as_f64().unwrap();
        assert!(value("min") > 0.0 && value("low") <= value("median") && value("median") <= value("high"));
        assert!((value("level") - 0.75).abs() < 1e-9, "three runs bound a median with 1 - 2/8");
        let against = one["time_against"].as_array().unwrap();
        let rivals: Vec<_> = against.iter().map(|ratio| ratio["rival"].as_str().unwrap()).collect();
        let is_evener = one["contender"].as_str().unwrap().starts_with("evener");
        assert_eq!(rivals, if is_evener { vec!["cp", "openssl enc"] } else { vec![] });
    }
}

#[test]
fn files_of_ones_own_are_read_and_left_alone_and_what_programs_treat_differently_is_refused() {
    let place = place();
    place.write("own/a 'b'/\\c", "quotes and a backslash, that xargs would take for its own");
    place.write("own/d", noise(1, 3_000));
    let before = tree(&place.join("own"));
    let measure = |source: &str| {
        let run = place.evener().args([
            "bench",
            "files",
            "--dir",
            "ground",
            "--runs",
            "1",
            "--json",
            "report.json",
        ]);
        run.args(["--rivals", "cp,openssl", "--source", source]).run()
    };
    for (source, count) in [("own", 2), ("own/d", 1)] {
        measure(source).succeeded();
        let report: Value = serde_json::from_slice(&fs::read(place.join("report.json")).unwrap()).unwrap();
        assert_eq!(misfits("bench-files.schema.json", &report), [""; 0]);
        for cell in report["cells"].as_array().unwrap() {
            assert_eq!((&cell["work"], &cell["files"]), (&"own files".into(), &count.into()));
            check_contenders_of(cell["contenders"].as_array().unwrap());
        }
    }
    assert!(tree(&place.join("own")) == before && entries(place.join("ground")) == 0);
    place.write("empty/e", "");
    std::os::unix::fs::symlink("d", place.join("own/link")).unwrap();
    for (source, name) in [("own", "own/link"), ("empty", "empty/e"), ("none", "none")] {
        measure(source).ended_with(2).saying(name);
    }
}

fn check_contenders_of(contenders: &[Value]) {
    let names: Vec<_> = contenders.iter().map(|one| one["contender"].as_str().unwrap()).collect();
    assert_eq!(names, ["cp", "openssl enc", "evener tink", "evener age"]);
}

#[test]
fn age_takes_part_where_it_is_installed() {
    if !there_is("age") {
        return skipped("age is not installed");
    }
    let place = place();
    let ran = bench(&place, &TREE).args(["--rivals", "age"]).run().succeeded();
    assert!(ran.stdout_text().contains("x as fast as age"), "{}", ran.stdout_text());
}

#[test]
fn a_program_that_is_not_installed_is_named_and_left_out() {
    let place = place();
    let path = impostor(&place, "age", "exit 1");
    let ran = bench(&place, &TREE).args(["--rivals", "age"]).env("PATH", path).run();
    assert!(ran.succeeded().stdout_text().contains("age: not installed"));
}

#[test]
fn a_program_that_loses_bytes_or_changes_one_is_noticed() {
    let place = place();
    let shorter = "[ $1 = --version ] && exit; head -c 1000 \"$2\" > \"$3\"";
    let changed = "[ $1 = --version ] && exit; cat \"$2\" > \"$3\"; printf changed-in-here | dd of=\"$3\" bs=1 conv=notrunc";
    for script in [shorter, changed] {
        let path = impostor(&place, "cp", script);
        let ran = bench(&place, &LARGE).args(["--rivals", "cp"]).env("PATH", path).run();
        assert!(ran.ended_with(2).stderr().contains("cp wrote something wrong"));
    }
    assert_eq!(entries(place.join("ground")), 0, "something was left behind");
}

#[test]
fn what_cannot_be_measured_is_refused_with_one_line() {
    let place = place();
    bench(&place, &[]).run().ended_with(2).saying("nothing to measure");
    bench(&place, &LARGE).args(["--rivals", "tar"]).run().ended_with(2).saying("tar");
    let ran = bench(&place, &["--size", "8388607G"]).args(["--rivals", "cp"]).run().ended_with(2);
    assert!(ran.stderr().contains("MiB; free are"), "{}", ran.stderr());
}
