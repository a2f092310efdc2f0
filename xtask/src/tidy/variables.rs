//! Every environment variable of Evener stands in one table, and nothing stands there that is not read.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::rust::is_word;
use crate::tree::TextFile;

const TABLE: &str = "docs/reference/environment.md";

/// Files whose names are those of the interface for programs in C.
const INTERFACE: [&str; 2] = ["crates/evener-c/include/evener.h", "crates/evener-c/libevener.map"];

/// Findings for variables that occur but are not documented, and for rows that no source mentions.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let (tables, others): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.path == TABLE);
    let rows: BTreeMap<_, _> = occurrences(&tables).into_iter().filter(|(_, place)| place.in_row).collect();
    let used = occurrences(&others);
    let of_interface: BTreeSet<&str> = others
        .iter()
        .filter(|file| INTERFACE.contains(&&*file.path))
        .flat_map(|file| names(&file.text))
        .collect();
    let undocumented =
        used.iter().filter(|(name, _)| !rows.contains_key(*name) && !of_interface.contains(name.as_str()));
    let undocumented =
        undocumented.map(|(name, place)| place.finding(format!("`{name}` has no row in {TABLE}")));
    let read = |name: &str| used.get(name).is_some_and(|place| place.in_source);
    let unread = rows.iter().filter(|(name, _)| !read(name));
    let unread = unread.map(|(name, place)| place.finding(format!("no source mentions `{name}`")));
    undocumented.chain(unread).collect()
}

/// The first place where a name occurs, and what else is known about its places.
struct Place {
    path: String,
    line: usize,
    /// It is the first cell of a table's row somewhere.
    in_row: bool,
    /// It occurs in a file that is not a document.
    in_source: bool,
}

impl Place {
    fn finding(&self, message: String) -> Finding {
        Finding::new(&self.path, self.line, message)
    }
}

fn occurrences(files: &[&TextFile]) -> BTreeMap<String, Place> {
    let mut places = BTreeMap::new();
    for file in files {
        for (number, line) in file.text.lines().enumerate() {
            for name in names(line) {
                let path = file.path.clone();
                let first = Place { path, line: number + 1, in_row: false, in_source: false };
                let place: &mut Place = places.entry(name.to_owned()).or_insert(first);
                place.in_row |= line.starts_with(&format!("| `{name}`"));
                place.in_source |= !file.path.ends_with(".md");
            }
        }
    }
    places
}

fn names(line: &str) -> impl Iterator<Item = &str> {
    const PREFIX: &str = concat!("EVENER", "_");
    let words = line.split(|c| !is_word(c));
    words.filter(|word| word.strip_prefix(PREFIX).is_some_and(|tail| !tail.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEED: &str = concat!("EVENER", "_SPEED");

    fn found_in(texts: &[(&str, String)]) -> Vec<String> {
        let file = |(path, text): &(&str, String)| TextFile { path: (*path).into(), text: text.clone() };
        check(&texts.iter().map(file).collect::<Vec<_>>()).iter().map(Finding::to_string).collect()
    }

    fn row() -> (&'static str, String) {
        (TABLE, format!("# Variables\n\n| variable | meaning |\n|---|---|\n| `{SPEED}` | none |\n"))
    }

    fn source() -> (&'static str, String) {
        ("src/a.rs", format!("\nlet a = var(\"{SPEED}\");"))
    }

    #[test]
    fn a_variable_without_a_row_is_found_where_it_stands() {
        assert_eq!(found_in(&[source()]), [format!("src/a.rs:2: `{SPEED}` has no row in {TABLE}")]);
        assert!(found_in(&[source(), row()]).is_empty());
    }

    #[test]
    fn a_mention_in_prose_is_no_row() {
        let prose = (TABLE, format!("Set `{SPEED}` to 1."));
        assert_eq!(found_in(&[source(), prose]).len(), 1);
    }

    #[test]
    fn a_row_that_no_source_mentions_is_found() {
        let readme = ("README.md", format!("Set {SPEED}."));
        assert_eq!(found_in(&[row(), readme]), [format!("{TABLE}:5: no source mentions `{SPEED}`")]);
    }

    #[test]
    fn the_prefix_alone_is_no_variable() {
        assert!(found_in(&[("a.md", concat!("`EVENER", "_*`").into())]).is_empty());
    }
}
