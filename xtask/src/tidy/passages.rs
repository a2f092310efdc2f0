//! No passage of code stands twice.
//!
//! Steps: of each source file the lines that are code, without white space at their ends ([`lines`]) -> each run of [`LINES`] of them is looked
//! up among those before -> the first of a passage that was there already is a finding, with the place where it stood.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::Finding;
use crate::tree::TextFile;

/// So many lines in a row are a passage. Assumed, not measured: 7, for six are the arguments of two functions that take the same.
const LINES: usize = 7;

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut seen: HashMap<Vec<&str>, (&str, usize)> = HashMap::new();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let lines: Vec<(usize, &str)> = lines(&file.text).collect();
        let mut was_repeated = false;
        for run in lines.windows(LINES) {
            let at = run[0].0;
            match seen.entry(run.iter().map(|(_, line)| *line).collect()) {
                Entry::Occupied(first) if !was_repeated => {
                    let (path, line) = first.get();
                    let message =
                        format!("{LINES} lines that stand at {path}:{line}, too: one helper, one place");
                    found.push(Finding::new(&file.path, at, message));
                    was_repeated = true;
                }
                Entry::Occupied(_) => {}
                Entry::Vacant(place) => {
                    place.insert((&file.path, at));
                    was_repeated = false;
                }
            }
        }
    }
    found
}

/// The lines that say something, with their numbers: no comment, import, attribute or lone punctuation.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    numbered.filter(|(_, line)| {
        let is_import = line.starts_with("use ") || line.starts_with("pub use ");
        let is_code = !line.starts_with("//") && !line.starts_with("#[") && !is_import;
        is_code && line.contains(|c: char| c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::{LINES, check};
    use crate::tree::TextFile;

    /// Lines that differ, from the number `from` on.
    fn code(from: usize, count: usize) -> String {
        (from..from + count).map(|line| format!("    let x{line} = {line};\n")).collect()
    }

    fn found(texts: &[(&str, &str)]) -> Vec<(String, usize)> {
        let files: Vec<TextFile> = texts
            .iter()
            .map(|(path, text)| TextFile { path: (*path).into(), text: (*text).into() })
            .collect();
        check(&files).into_iter().map(|finding| (finding.path, finding.line)).collect()
    }

    #[test]
    fn a_passage_is_found_where_it_stands_again_and_once_however_long() {
        let first = format!("fn one() {{\n{}}}\n", code(0, LINES + 5));
        let second = format!("fn two() {{\n    // Another one.\n{}    other();\n}}\n", code(2, LINES + 3));
        assert_eq!(found(&[("a.rs", &first), ("b.rs", &second)]), [("b.rs".to_owned(), 3)]);
        assert_eq!(found(&[("a.rs", &format!("{first}{first}"))]).len(), 1, "in one file, too");
    }

    #[test]
    fn comments_imports_and_punctuation_between_hide_no_passage_and_make_none() {
        let plain = code(0, LINES);
        let parted: String =
            plain.lines().map(|line| format!("{line}\n// why\n\n    {{\n#[rustfmt::skip]\n")).collect();
        assert_eq!(found(&[("a.rs", &plain), ("b.rs", &parted)]).len(), 1);
        let imports = "use std::fs;\n//! text\n    );\n".repeat(LINES);
        assert!(found(&[("a.rs", &imports), ("b.rs", &imports)]).is_empty());
    }

    #[test]
    fn fewer_lines_and_other_files_are_none() {
        assert!(found(&[("a.rs", &code(0, LINES - 1)), ("b.rs", &code(0, LINES - 1))]).is_empty());
        assert!(found(&[("a.md", &code(0, LINES)), ("b.md", &code(0, LINES))]).is_empty());
    }
}
