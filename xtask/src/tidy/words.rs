//! Words that no file of the repository contains.

use super::Finding;
use crate::rust::has_word;
use crate::tree::TextFile;

// Written in two halves, so that this file is held to its own rule.
const UNFINISHED: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const PLACES: &[&str] = &[concat!("/wo", "rk/"), concat!("../sha", "red"), concat!("/ro", "ot/")];

/// Findings for marks of unfinished work and for paths that exist on one machine only.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    files.iter().flat_map(check_file).collect()
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
    fn paths_of_one_machine_are_found() {
        for place in PLACES {
            assert_eq!(found_in(&format!("see {place}notes")).len(), 1);
        }
    }
}
