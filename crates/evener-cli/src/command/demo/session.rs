//! A tree of files: a user's session with it, then the same work in turns with programs that people use today.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use evener_bench::files::usual_folders;
use serde_json::Value;

use super::page::{Part, Section};
use super::stage::{Stage, say, say_indented};
use super::{Demo, Shown, sample};

const SAMPLE: &str = "sample";

/// The session that a user would have.
const SESSION: [&str; 3] = [
    "keygen key.json",
    "encrypt --key key.json -o encrypted sample",
    "decrypt --key key.json -o decrypted encrypted",
];

pub(super) fn there_and_back(stage: &Stage<'_>, arguments: &Demo) -> anyhow::Result<Shown> {
    let made = sample::make(&stage.path(SAMPLE), arguments.size).context("cannot make the sample tree")?;
    say(format!(
        "{} files, {} MB, from 700 bytes to {} MB",
        made.files,
        made.bytes / 1_000_000,
        made.bytes * 2 / 5_000_000
    ))?;
    let mut screen = String::new();
    for words in SESSION {
        let said = stage.evener(words)?;
        say_indented(&said)?;
        screen.push_str(&format!("$ evener {words}\n{said}"));
    }
    let compared = format!("$ diff -r {SAMPLE} decrypted");
    say(&compared)?;
    let mut diff = stage.command("diff");
    diff.args(["-r", SAMPLE, "decrypted"]);
    stage.run(diff).context("what came back is not what was encrypted")?;
    say("  every byte is the same")?;
    screen.push_str(&compared);
    for tree in ["encrypted", "decrypted"] {
        fs::remove_dir_all(stage.path(tree)).with_context(|| format!("cannot remove {tree}"))?;
    }
    let sentence = format!(
        "{} files with {} MB were encrypted and decrypted; the last command found no difference.",
        made.files,
        made.bytes / 1_000_000
    );
    let parts = vec![Part::Sentence(sentence), Part::Screen(screen)];
    Ok(Shown { section: Section { title: "Files, there and back".to_owned(), parts }, ..Shown::default() })
}

pub(super) fn beside_others(stage: &Stage<'_>, arguments: &Demo) -> anyhow::Result<Shown> {
    let place = memory_for(arguments).unwrap_or_else(|| stage.path("."));
    let json = stage.kept("files.json");
    let words = format!("bench files --source {SAMPLE} --runs {}", arguments.runs);
    stage.evener_with(&words, &[("--dir", &place), ("--json", &json)])?;
    let report = read(&json)?;
    let rows = rows(&report);
    for row in &rows {
        say(format!("  {:<14}{:>12} MB/s encrypting{:>12} MB/s decrypting", row[0], row[1], row[2]))?;
    }
    let missing: Vec<String> = missing(&report);
    let result = result(&report);
    let mut parts = vec![Part::Sentence(
        "The same tree again. cp writes the same bytes without encrypting them: nobody is much faster than that. openssl enc does not notice \
         changed bytes; it and age take one file at a time, so they were started once for each file, on all cores."
            .to_owned(),
    )];
    parts.push(Part::Table { head: vec!["program", "MB/s encrypting", "MB/s decrypting"], rows });
    parts.extend(result.iter().map(|line| Part::Sentence(format!("In short: {line}."))));
    Ok(Shown {
        section: Section { title: "The same beside other programs".to_owned(), parts },
        result,
        missing,
    })
}

/// Memory, so that no disk hides what the programs do; nothing where there is none, or too little.
pub(super) fn memory_for(arguments: &Demo) -> Option<PathBuf> {
    let memory = usual_folders().into_iter().find(|folder| folder.is_absolute())?;
    let space = rustix::fs::statvfs(&memory).ok()?;
    let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
    (free_bytes > arguments.size.saturating_mul(sample::COPIES_MAX + 1)).then_some(memory)
}

/// A report that a command of ours wrote.
pub(super) fn read(path: &Path) -> anyhow::Result<Value> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(serde_json::from_slice(&text)?)
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

/// Who, with the rates of both directions.
fn rows(report: &Value) -> Vec<Vec<String>> {
    let cells = list(report, "cells");
    let rate = |cell: &Value, name: &Value| {
        let one = list(cell, "contenders").iter().find(|one| one["contender"] == *name);
        let rate = one.and_then(|one| one["megabytes_per_second"]["median"].as_f64());
        rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"))
    };
    let names =
        cells.first().map_or(&[][..], |cell| list(cell, "contenders")).iter().map(|one| &one["contender"]);
    let row = |name: &Value| {
        let rates = cells.iter().map(|cell| rate(cell, name));
        std::iter::once(name.as_str().unwrap_or_default().to_owned()).chain(rates).collect()
    };
    names.map(row).collect()
}

fn missing(report: &Value) -> Vec<String> {
    let absent = list(report, "programs").iter().filter(|program| program["version"].is_null());
    let line = |program: &Value| {
        let name = program["name"].as_str().unwrap_or_default();
        format!(
            "Without {name}: it is not installed, so nothing is compared with it (on Debian: apt install {name})."
        )
    };
    absent.map(line).collect()
}

/// How evener's encryption compares, in the same format where age is there.
fn result(report: &Value) -> Option<String> {
    let cell = list(report, "cells").first()?;
    let ours = list(cell, "contenders").iter().find(|one| one["contender"] == "evener age")?;
    let faster_than = |rival: &str| {
        let ratio = list(ours, "time_against").iter().find(|ratio| ratio["rival"] == rival)?;
        Some(1.0 / ratio["ratio"]["median"].as_f64()?)
    };
    let told = |rival: &str, name: &str| Some(format!("{:.1} times as fast as {name}", faster_than(rival)?));
    let told: Vec<String> = [told("age", "age"), told("openssl enc", "openssl enc"), told("cp", "cp")]
        .into_iter()
        .flatten()
        .collect();
    (!told.is_empty()).then(|| format!("evener encrypted this tree {}", told.join(", ")))
}
