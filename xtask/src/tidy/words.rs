//! Words that no file of the repository contains.

use super::Finding;
use crate::rust::{has_word, is_word};
use crate::tree::TextFile;

// Written in two halves, so that this file is held to its own rule.
const UNFINISHED: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const PLACES: &[&str] = &[concat!("/wo", "rk/"), concat!("../sha", "red"), concat!("/ro", "ot/")];

/// Words of sources that gave way to the field's (docs/reference/glossary.md), and what is said instead.
const RETIRED: &[(&str, &str)] = &[
    (concat!("un", "told"), "pending samples"),
    (concat!("Wei", "gher"), "adaptive policy"),
    (concat!("vi", "gil"), "spin"),
    (concat!("stre", "ak"), "run"),
    (concat!("birth", "place"), "creator"),
    (concat!("kno", "ck"), "wake, connect"),
    (concat!("furn", "ish"), "prepare"),
    (concat!("fare", "well"), "shutdown grace"),
    (concat!("mis", "spelt"), "typo"),
    (concat!("A gu", "ess"), "Assumed, not measured: a value, and why"),
    (concat!("The way", " of"), "Path of"),
    (concat!("The way", ":"), "Path:"),
    (concat!("who", "ever"), "the thread, process or user that acts"),
    (concat!("Who", "ever"), "the thread, process or user that acts"),
    (concat!("de", "sk"), "queue"),
    (concat!("Cpu", "Kit"), "core drivers"),
    (concat!("Machin", "ery"), "driver factory"),
    (concat!("In", "let"), "stream sender"),
    (concat!("Out", "let"), "stream receiver"),
    (concat!("cr", "ew"), "helper pool"),
    (concat!("Cr", "ew"), "helper pool"),
    (concat!("err", "and"), "lent work"),
    (concat!("Err", "and"), "lent work"),
    (concat!("se", "at"), "slot"),
    (concat!("se", "ats"), "slots"),
    (concat!("er", "as"), "a value per fork"),
    (concat!("pati", "ence"), "timeout"),
    (concat!("PATI", "ENCE"), "timeout"),
    (concat!("Pros", "pect"), "planner's input"),
    (concat!("Is", "Over"), "has ended"),
    (concat!("Trou", "ble"), "connection error"),
    (concat!("Equip", "ment"), "cost scope"),
    (concat!("took", "_turns"), "record pair"),
    (concat!("un", "looked"), "unchecked work"),
    (concat!("him", "self"), "itself: a caller, a thread, a process"),
    (concat!("alo", "ud"), "print"),
    (concat!("in", "let"), "stream sender"),
    (concat!("ask", "_for"), "run single"),
    (concat!("Le", "nt"), "loan, lent memory"),
    (concat!("Pie", "ce"), "element"),
];

/// Words of comments that name no subject: the thread, process, client or user that acts is named instead.
const NO_SUBJECT: &[&str] = &["nobody", "somebody", "anybody"];

/// Names of files that say what was done to something and not what the file holds.
const NO_NOUNS: &[&str] = &[
    "asked",
    "combined",
    "counted",
    "ended",
    "explained",
    "fetched",
    "hashed",
    "held",
    "kept",
    "keyed",
    "known",
    "learned",
    "left",
    "lent",
    "listed",
    "owned",
    "padded",
    "passed",
    "planned",
    "published",
    "queued",
    "seen",
    "shared",
    "timed",
    "unseen",
    "caught",
    "detached",
    "inherited",
    "later",
    "outside",
    "probed",
    "scripted",
    "simulated",
    "spent",
];

/// Findings for marks of unfinished work, for paths that exist on one machine only, and for words and names that were given up.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let sources = || files.iter().filter(|file| file.path.ends_with(".rs"));
    let mut all: Vec<Finding> = files.iter().flat_map(check_file).collect();
    all.extend(sources().flat_map(retired));
    all.extend(sources().flat_map(no_subject));
    all.extend(sources().filter_map(no_noun));
    all
}

fn retired(file: &TextFile) -> Vec<Finding> {
    let lines = file.text.lines().enumerate();
    let all = lines.flat_map(|(number, line)| {
        let retired_here = RETIRED.iter().filter(move |(word, _)| has_phrase(line, word));
        retired_here.map(move |(word, instead)| (number + 1, format!("`{word}` was given up: {instead}")))
    });
    all.map(|(line, message)| Finding::new(&file.path, line, message)).collect()
}

/// Whether `phrase` stands in `line` with nothing of a word before or behind it.
fn has_phrase(line: &str, phrase: &str) -> bool {
    line.match_indices(phrase).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let behind = line[at + phrase.len()..].chars().next();
        !before.into_iter().chain(behind).any(is_word)
    })
}

/// Comments that say who acts by none of its names; in backticks such a word is the name of a user or a key.
fn no_subject(file: &TextFile) -> Vec<Finding> {
    let lines = file.text.lines().enumerate();
    let comments = lines.filter_map(|(number, line)| Some((number + 1, line.split_once("//")?.1)));
    let all = comments.flat_map(|(number, comment)| {
        let plain = comment.split('`').step_by(2).collect::<Vec<_>>().join(" ").to_lowercase();
        NO_SUBJECT.iter().filter(move |word| has_phrase(&plain, word)).map(move |word| (number, word))
    });
    all.map(|(line, word)| {
        Finding::new(&file.path, line, format!("`{word}` acts: name the thread, process or user"))
    })
    .collect()
}

fn no_noun(file: &TextFile) -> Option<Finding> {
    let stem = file.path.rsplit('/').next()?.strip_suffix(".rs")?;
    let is_ours = file.path.contains("/src/") && NO_NOUNS.contains(&stem);
    is_ours.then(|| Finding::new(&file.path, 1, "a file is named by the noun that it holds"))
}

fn check_file(file: &TextFile) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        let mut report = |message: String| found.push(Finding::new(&file.path, number + 1, message));
        for word in UNFINISHED.iter().filter(|word| has_word(line, word)) {
            report(format!("`{word}`: finish it, or leave it out and say so in the documents"));
        }
        for place in PLACES.iter().filter(|place| line.contains(**place)) {
            report(format!("`{place}` exists on one machine only"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(text: &str) -> Vec<String> {
        check(&[TextFile { path: "a.rs".into(), text: text.into() }]).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn every_mark_of_unfinished_work_is_found_with_its_line() {
        for word in UNFINISHED {
            let found = found_in(&format!("fn a() {{}}\n// {word}: later"));
            assert!(found[0].starts_with(&format!("a.rs:2: `{word}`")), "{found:?}");
        }
        assert!(found_in(concat!("mktemp -d XX", "XX", "XX")).is_empty());
    }

    #[test]
    fn words_that_were_given_up_are_found_whole_and_in_sources_only() {
        for (word, instead) in RETIRED {
            let found = found_in(&format!("fn a() {{}}\n// {word} it"));
            assert!(found[0].starts_with("a.rs:2: ") && found[0].contains(instead), "{found:?}");
            assert!(found_in(&format!("// x{word}y")).is_empty(), "{word} within a word");
            let page = TextFile { path: "a.md".into(), text: (*word).to_owned() };
            assert!(check(&[page]).is_empty());
        }
    }

    #[test]
    fn a_comment_without_a_subject_is_found_but_for_names_and_strings() {
        for word in NO_SUBJECT {
            for comment in [format!("//! {word} waits"), format!("let a = 1; // So {word}'s is free")] {
                assert_eq!(found_in(&comment).len(), 1, "{comment}");
            }
            assert!(found_in(&format!("/// The user `{word}`\nlet a = \"{word}\";")).is_empty());
        }
    }

    #[test]
    fn a_file_that_is_no_noun_is_found() {
        let file = |path: &str| TextFile { path: path.into(), text: String::new() };
        let found =
            check(&[file("crates/c/src/kept.rs"), file("crates/c/src/cache.rs"), file("tests/kept.rs")]);
        assert_eq!(
            found,
            [Finding::new("crates/c/src/kept.rs", 1, "a file is named by the noun that it holds")]
        );
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for place in PLACES {
            assert_eq!(found_in(&format!("see {place}notes")).len(), 1);
        }
    }
}
