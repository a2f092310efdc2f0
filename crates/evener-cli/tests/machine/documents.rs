//! Every command of the README and of the guide does what stands there, and shows it; options that pages name are the command's.
//!
//! Path of a page: its blocks ([`Block`]), one after the other, in a place of the page's own -> each by `sh -eu`, both outputs together ->
//! beside what the page shows. What is left out is said in print.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{self, EVENER, Place, skipped, there_is};
use evener_testbed::{Block, write_program};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The README and the pages of the guide: name and text.
fn pages() -> BTreeMap<String, String> {
    let guide = fs::read_dir(workspace().join("docs/guide")).unwrap().map(|entry| entry.unwrap().path());
    let paths = guide.chain([workspace().join("README.md")]);
    paths
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
        })
        .collect()
}

/// A place with the command as an installed one, beside a root that has the module.
fn installed() -> Place {
    let place = Place::new();
    for folder in ["bin", "root", "run", "here"] {
        fs::create_dir(place.join(folder)).unwrap();
    }
    common::allow(&place.join("run"), 0o700);
    let module = std::env::current_exe().unwrap().with_file_name("libevener_provider.so");
    fs::copy(module, place.join("root/evener.so")).unwrap();
    let root = place.join("root").display().to_string();
    let command = format!(
        "#!/bin/sh\ncase \"$1 $2\" in\n\"provider config\") set -- \"$@\" --file {root}/evener.so ;;\n\
         \"provider install\") set -- \"$@\" --root {root} --file /evener.so ;;\n\
         \"provider uninstall\") set -- \"$@\" --root {root} ;;\nesac\nexec {EVENER} \"$@\"\n"
    );
    write_program(&place.join("bin/evener"), command.as_bytes()).unwrap();
    place
}

/// What shell commands print together, where they succeed.
fn printed(place: &Place, commands: &str) -> Result<String, String> {
    let together = format!("exec 2>&1; cd here\n{commands}");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}:/usr/local/sbin:/usr/sbin:/sbin", place.join("bin").display());
    // Without a terminal, wherever the test is run.
    let mut run = place.program("setsid").args(["-w", "sh", "-eu", "-c", &together]);
    run.command.env("PATH", path).env("HOME", place.join("here")).env("LC_ALL", "C.UTF-8");
    run.command
        .env("EVENER_STATISTICS_DIR", place.join("statistics"))
        .env("EVENER_ARBITER_DIR", place.join("arbiter"));
    run.command
        .env("XDG_RUNTIME_DIR", place.join("run"))
        .env_remove("OPENSSL_CONF")
        .env_remove("EVENER_DISABLE");
    let ran = run.run();
    let text = ran.stdout_text().to_owned();
    if ran.code() == Some(0) { Ok(text) } else { Err(format!("status {:?}\n{text}", ran.code())) }
}

/// Runs the blocks of a page; what was wrong with each.
fn failures(name: &str, page: &str) -> Vec<String> {
    let place = installed();
    let mut failures = Vec::new();
    for block in Block::all(page) {
        let at = format!("{name}:{}", block.line);
        let absent = block
            .needs
            .iter()
            .find(|program| !there_is(program))
            .map(|program| format!("{program} is not installed"));
        if let Some(reason) = block.not_run.clone().or(absent) {
            skipped(&format!("{at}: {reason}"));
            continue;
        }
        let outcome = printed(&place, &block.before).and_then(|_| printed(&place, &block.commands));
        let is_right = outcome.as_ref().is_ok_and(|text| block.shows(text));
        if !is_right {
            let (Ok(text) | Err(text)) = outcome;
            failures.push(format!(
                "{at}\n{}\n-- printed\n{text}\n-- shown\n{}",
                block.commands,
                block.shows.unwrap_or_default()
            ));
        }
    }
    failures
}

#[test]
fn every_command_of_the_readme_and_the_guide_does_and_shows_what_stands_there() {
    let failures: Vec<String> = pages().iter().flat_map(|(name, page)| failures(name, page)).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
}

/// Subcommand and long options of each call of the command in a text of code.
fn calls(code: &str) -> Vec<(String, Vec<String>)> {
    let calls = code
        .split("evener ")
        .skip(1)
        .map(|rest| rest.split(['|', ';', '&', '#', '`', '\n', ')']).next().unwrap());
    calls
        .filter_map(|call| {
            let words: Vec<&str> = call.split_whitespace().collect();
            let command =
                words.iter().take_while(|word| word.chars().all(|c| c.is_ascii_lowercase())).take(2);
            let command = command.copied().collect::<Vec<_>>().join(" ");
            let options = words.iter().filter(|word| word.starts_with("--") && word.len() > 2);
            let options: Vec<String> = options
                .map(|word| word.split('=').next().unwrap().trim_matches(['.', ',']).to_owned())
                .collect();
            (!command.is_empty() && !options.is_empty()).then_some((command, options))
        })
        .collect()
}

/// The help of `command`, or of its first word where the second is an argument.
fn help(place: &Place, command: &str) -> String {
    let words: Vec<&str> = command.split(' ').collect();
    let of = |words: &[&str]| place.evener().args(words).args(["--help"]).run();
    let whole = of(&words);
    if whole.code() == Some(0) {
        whole.stdout_text().to_owned()
    } else {
        of(&words[..1]).succeeded().stdout_text().to_owned()
    }
}

#[test]
fn every_option_that_the_readme_and_the_guide_name_beside_a_command_is_one_of_it() {
    let place = Place::new();
    let mut helps = BTreeMap::new();
    let mut count = 0;
    for (name, page) in pages() {
        let fenced = Block::all(&page).into_iter().map(|block| block.commands);
        let inline = page.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_owned);
        for (command, options) in fenced.chain(inline).flat_map(|code| calls(&code)) {
            let help: &String = helps.entry(command.clone()).or_insert_with(|| help(&place, &command));
            for option in options {
                count += 1;
                let is_there =
                    help.split(|c: char| c.is_whitespace() || "=[,`".contains(c)).any(|word| word == option);
                assert!(is_there, "{name}: `evener {command}` has no {option}");
            }
        }
    }
    assert!(count > 50, "{count}");
}

#[test]
fn the_page_of_the_command_line_is_what_the_command_says() {
    let page = fs::read_to_string(workspace().join("docs/reference/command-line.md")).unwrap();
    let made = Place::new().evener().args(["man", "--reference"]).run().succeeded();
    assert!(page == made.stdout_text(), "`cargo xtask reference` makes docs/reference/command-line.md anew");
}

#[test]
fn every_answer_of_the_reader_test_stands_on_its_page() {
    let test = fs::read_to_string(workspace().join("docs/results/reader-test.md")).unwrap();
    let pages = pages();
    let mut page = "";
    let mut counts = BTreeMap::new();
    for line in test.lines() {
        if let Some((_, name)) = line.strip_prefix("## ").and_then(|title| title.split_once("](../guide/")) {
            page = name.trim_end_matches(')');
        } else if line.starts_with("| ") && !line.starts_with("| question") {
            let answer = line.split('|').nth(2).unwrap().trim();
            assert!(pages[page].replace("**", "").contains(answer), "{page}: {answer}");
            *counts.entry(page).or_insert(0) += 1;
        }
    }
    assert!(
        pages.keys().filter(|name| *name != "README.md").all(|name| counts.get(name.as_str()) == Some(&5)),
        "{counts:?}"
    );
}

/// Cells of the rows of a table that begin with `| NAME`, by name.
fn rows(page: &str) -> BTreeMap<String, Vec<String>> {
    let rows =
        page.lines().filter(|line| line.starts_with("| ")).map(|line| line.split('|').skip(1).map(str::trim));
    rows.map(|mut cells| {
        let name = cells.next().unwrap().split(':').next().unwrap().to_owned();
        (name, cells.map(str::to_owned).collect())
    })
    .collect()
}

/// The numbers of `0.80 [0.76 0.83]`.
fn numbers(cell: &str) -> Vec<f64> {
    cell.split(['[', ']', ' ']).filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn what_ciphers_take_in_programs_is_what_was_measured() {
    let told = rows(&pages()["when-evener-cannot-help.md"]);
    let measured = rows(&fs::read_to_string(workspace().join("docs/results/programs.md")).unwrap());
    let programs =
        told.iter().filter(|(name, _)| measured.get(*name).is_some_and(|cells| !cells[0].is_empty()));
    let mut count = 0;
    for (name, cells) in programs.filter(|(name, _)| *name != "program") {
        count += 1;
        let measured = &measured[name];
        assert_eq!(cells[..2], measured[..2], "{name}");
        let (told, measured) = (numbers(&cells[2]), numbers(&measured[4]));
        let is_rounded = told.iter().zip(&measured).all(|(told, measured)| (told - measured).abs() < 0.0051);
        assert!(told.len() == 3 && measured.len() == 3 && is_rounded, "{name}: {told:?}, {measured:?}");
    }
    assert!(count >= 9, "{count}");
}
