//! Help, manual pages and the version: what a reader finds on one screen, and which sections a page has.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;

use crate::common::{Place, files, skipped, there_is};

/// A screen, on which the command line and the prompt behind it stand too.
const LINES: usize = 50;
const COLUMNS: usize = 80;

/// What a command's `-h` says on a screen.
fn short_help(place: &Place, command: &str) -> String {
    let ran =
        place.evener().args(command.split_whitespace()).arg("-h").env("COLUMNS", COLUMNS.to_string()).run();
    ran.succeeded().stdout_text().to_owned()
}

/// All commands, by the names of their manual pages.
fn commands(place: &Place) -> BTreeSet<String> {
    fs::create_dir_all(place.join("man")).unwrap();
    place.evener().args(["man", "man"]).run().succeeded();
    let pages = files(&place.join("man"));
    let name =
        |page: &std::path::PathBuf| page.to_str().unwrap().trim_end_matches(".1").replacen("evener", "", 1);
    // One command has a dash of its own.
    pages.iter().map(|page| name(page).replace('-', " ").replace("run shard", "run-shard")).collect()
}

#[test]
fn the_short_help_of_every_command_fits_a_screen() {
    let place = Place::new();
    let commands = commands(&place);
    assert!(commands.len() > 25, "{commands:?}");
    for command in commands {
        let help = short_help(&place, &command);
        let widest = help.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(help.lines().count() <= LINES - 2, "evener{command} -h has {} lines", help.lines().count());
        assert!(widest.chars().count() <= COLUMNS, "evener{command} -h: {widest}");
    }
}

#[test]
fn the_long_help_names_what_the_short_one_leaves_out() {
    let place = Place::new();
    let long = place.evener().args(["encrypt", "--help"]).run().succeeded().stdout_text().to_owned();
    let short = short_help(&place, "encrypt");
    for option in ["--work-factor", "--ignore-ctime", "--policy", "--cpu-budget", "--no-xattrs"] {
        assert!(long.contains(option) && !short.contains(option), "{option}");
    }
    assert!(long.contains("Exit status:") && short.contains("--help"));
}

#[test]
fn commands_stand_in_groups_and_examples_before_options() {
    let place = Place::new();
    let help = short_help(&place, "");
    let at = |words: &str| help.find(words).unwrap_or_else(|| unreachable!("no {words:?} in {help}"));
    let places = [
        at("Usage:"),
        at("Examples:"),
        at("\nFiles:\n"),
        at("\n  encrypt "),
        at("\nObjects in stores, on many machines:\n"),
        at("\n  run-shard "),
        at("\nOpenSSL and modules:\n"),
        at("\n  provider "),
        at("\nExperiments:\n"),
        at("\n  bench "),
        at("\nOptions:\n"),
    ];
    assert!(places.is_sorted(), "{places:?} {help}");
    for command in ["encrypt", "decrypt", "verify", "keygen", "doctor", "sum", "bench tls"] {
        let help = short_help(&place, command);
        let (examples, options) = (help.find("Examples:"), help.find("  -h, --help"));
        assert!(examples.is_some() && examples < options, "{help}");
    }
    for command in ["encrypt", "decrypt"] {
        let help = short_help(&place, command);
        let scheduling = &help[help.find("\nScheduling:\n").unwrap()..];
        for option in ["--workers", "--memory", "--module"] {
            assert!(scheduling.contains(option), "{help}");
        }
    }
}

#[test]
fn every_manual_page_has_the_sections_that_readers_look_for_and_man_finds_nothing_wrong() {
    let place = Place::new();
    let commands = commands(&place);
    for command in &commands {
        let name = format!("man/evener{}.1", command.replace(' ', "-"));
        let page = fs::read_to_string(place.join(&name)).unwrap();
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"]
        {
            let is_there =
                page.contains(&format!(".SH {section}\n")) || page.contains(&format!(".SH \"{section}\"\n"));
            assert!(is_there, "{name} has no {section}");
        }
        assert!(!page.contains(".SH EXTRA"), "{name}");
    }
    for (command, words) in [("-encrypt", "evener encrypt \\-r age1"), ("-doctor", "evener doctor")] {
        let page = fs::read_to_string(place.join(format!("man/evener{command}.1"))).unwrap();
        let examples = &page[page.find(".SH \"EXAMPLES\"").unwrap()..];
        assert!(examples.contains(words), "{examples}");
    }
    let checker: &[&str] = match (there_is("mandoc"), there_is("groff")) {
        (true, _) => &["mandoc", "-T", "lint", "-W", "error"],
        (false, true) => &["groff", "-man", "-ww", "-z", "-Tutf8"],
        _ => return skipped("neither mandoc nor groff is installed"),
    };
    for command in &commands {
        let name = format!("man/evener{}.1", command.replace(' ', "-"));
        let ran = place.program(checker[0]).args(&checker[1..]).arg(&name).run().succeeded();
        assert_eq!((ran.stdout_text(), ran.stderr()), ("", ""), "{name}");
    }
}

#[test]
fn the_version_names_the_libraries_and_where_it_is_known_the_commit() {
    let place = Place::new();
    let said = place.evener().arg("--version").run().succeeded();
    let mut lines = said.stdout_text().lines();
    let first = lines.next().unwrap();
    let rest = first.strip_prefix(concat!("evener ", env!("CARGO_PKG_VERSION"))).unwrap();
    let commit = rest.strip_prefix(" (commit ").map(|rest| rest.trim_end_matches(')'));
    assert!(rest.is_empty() || commit.is_some_and(|commit| commit.len() >= 7), "{first}");
    let openssl = place.program("openssl").arg("version").run().succeeded();
    let version = openssl.stdout_text().split(' ').nth(1).unwrap().to_owned();
    assert!(
        lines.next().is_some_and(|line| line.starts_with(&format!("libcrypto: OpenSSL {version}"))),
        "{said:?}"
    );
    assert_eq!(place.evener().arg("-V").run().succeeded().stdout_text(), said.stdout_text());
}

#[test]
fn a_page_tells_of_every_option_what_it_does() {
    let place = Place::new();
    for command in commands(&place) {
        let name = format!("man/evener{}.1", command.replace(' ', "-"));
        let page = fs::read_to_string(place.join(&name)).unwrap();
        for (option, next) in
            page.lines().zip(page.lines().skip(1)).filter(|(line, _)| line.starts_with("\\fB\\-"))
        {
            assert!(!next.is_empty() && !next.starts_with('.'), "{name} says nothing of {option}");
        }
    }
}
