//! Directories that are not what they were: a mount is missing, or a file system keeps no attributes. Nothing of that is a success, and nothing is made
//! elsewhere.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod support;

use std::fs;
use std::process::{Command, Output};

use evener_shards::{Ask, Existing, ShardRun, Wanted};
use evener_testing::Folder;
use evener_testing::programs::{skipped, there_is};
use support::{Person, Tree, ended_with, folder, planning, program, read, report, shard, some_tree, write};

/// A planned tree, of two shards.
fn planned(tree: &Tree) -> Folder {
    let place = folder();
    write(tree, &place.join("plain"));
    let [plain, sealed] = ["plain", "sealed"].map(|name| place.join(name).to_str().unwrap().to_owned());
    let planning = planning(&plain, &sealed, Wanted::Shards(2), &place.join("plan.json"));
    ended_with(0, program(&Ask::Plan(planning)));
    place
}

fn asked(place: &Folder, person: &Person) -> ShardRun {
    shard(&place.join("plan.json"), 0, person.as_recipient())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_place_that_is_not_there_may_come_and_is_not_made() {
    let (place, person) = (planned(&some_tree(5, 1)), Person::new());
    assert!(place.join("sealed").is_dir(), "the plan makes it, and no run does");
    for missing in ["sealed", "plain"] {
        let (there, away) = (place.join(missing), place.join("away"));
        fs::rename(&there, &away).unwrap();
        let said = said(&ended_with(1, program(&Ask::RunShard(asked(&place, &person)))));
        assert!(said.contains("a mount that is missing") && said.lines().count() == 1, "{said}");
        assert!(!there.exists());
        fs::rename(&away, &there).unwrap();
    }
    ended_with(0, program(&Ask::RunShard(asked(&place, &person))));
}

#[test]
fn a_shard_that_finds_nothing_where_the_plan_had_objects_is_no_success() {
    let (tree, person) = (some_tree(5, 2), Person::new());
    let place = planned(&tree);
    // As an empty mount point.
    fs::rename(place.join("plain"), place.join("away")).unwrap();
    fs::create_dir(place.join("plain")).unwrap();
    for number in [0, 1] {
        let run = ShardRun { number, ..asked(&place, &person) };
        let (objects, totals) = report(&ended_with(1, program(&Ask::RunShard(run))));
        assert_eq!((objects.len(), &totals["failed"], &totals["try_again"]), (1, &1.into(), &1.into()));
        assert!(objects["(listing)"]["error"].as_str().unwrap().contains("plan again"), "{objects:?}");
    }
    // One object is there again: what was removed is no matter.
    write(&[("a".to_owned(), tree["a"].clone())].into(), &place.join("plain"));
    ended_with(0, program(&Ask::RunShard(asked(&place, &person))));
}

#[test]
fn where_a_file_system_keeps_no_marks_a_run_ends_before_anything_is_named_unless_it_is_forced() {
    if !there_is("strace") {
        return skipped("strace is not installed");
    }
    let (tree, person) = (some_tree(20, 3), Person::new());
    let place = planned(&tree);
    fs::create_dir_all(place.join("sealed")).unwrap();
    let ran = |status: i32, run: &ShardRun, errno: &str| {
        let asked = program(&Ask::RunShard(run.clone()));
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", &format!("--inject=fsetxattr:error={errno}")]);
        strace.arg(asked.get_program()).args(asked.get_args());
        ended_with(status, strace)
    };
    let run = asked(&place, &person);
    let output = ran(2, &run, "EOPNOTSUPP");
    let said = said(&output);
    assert!(said.contains("extended attributes") && said.lines().count() == 1, "{said}");
    assert!(output.stdout.is_empty() && read(&place.join("sealed")).is_empty());
    // What another run may find otherwise is a failure of each object.
    for errno in ["ENOSPC", "EIO"] {
        let (_, totals) = report(&ran(1, &ShardRun { timeout_s: 0, ..run.clone() }, errno));
        assert_eq!((&totals["done"], &totals["failed"]), (&0.into(), &totals["objects"]), "{totals}");
        assert!(read(&place.join("sealed")).is_empty());
    }
    // All of them, in each run.
    let force = ShardRun { existing: Existing::Replace, ..run.clone() };
    for _ in 0..2 {
        let (_, totals) = report(&ran(0, &force, "EOPNOTSUPP"));
        assert_eq!(totals["done"], totals["objects"], "{totals}");
    }
    let sealed = read(&place.join("sealed"));
    assert!(!sealed.is_empty() && sealed.iter().all(|(name, file)| person.opens(file) == tree[name]));
}
