//! Files that the page of questions leads to are there.

use super::Finding;
use crate::tree::TextFile;

const PAGE: &str = "docs/design/where-is.md";

/// Findings for files that the page names and that are not there.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else { return Vec::new() };
    let rows = page.text.lines().enumerate().filter(|(_, line)| line.starts_with("| ") && line.contains('`'));
    let named = rows.filter_map(|(number, line)| Some((number + 1, line.rsplit('`').nth(1)?)));
    let missing = named.filter(|(_, path)| !files.iter().any(|file| file.path == **path));
    missing.map(|(number, path)| Finding::new(PAGE, number, format!("`{path}` is not there"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_moved_is_found_with_its_line() {
        let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
        let page =
            "| question | way | file |\n|---|---|---|\n| Where? | `a` | `a.rs` |\n| And? | `b` | `b.rs` |\n";
        let found = check(&[file(PAGE, page), file("a.rs", "")]);
        assert_eq!(found, [Finding::new(PAGE, 4, "`b.rs` is not there")]);
    }
}
