//! Pages stay short enough to be read, and each page of the guide and the reference stands in the site's contents.
//!
//! Prose is what stands outside of tables, fenced blocks and comments. The README counts whole: it is one page.

use super::Finding;
use crate::tree::TextFile;

const README: &str = "README.md";
const README_WORDS_MAX: usize = 1000;
const README_COLUMNS_MAX: usize = 160;
/// The line by which there is something to paste.
const README_FIRST_BLOCK_MAX: usize = 25;

const GUIDE: &str = "docs/guide/";
/// Of all pages of the guide together.
const GUIDE_WORDS_MAX: usize = 10_000;

const CONTENTS: &str = "docs/SUMMARY.md";
/// Shelves of which each page stands in the contents.
const SHELVES: [&str; 2] = [GUIDE, "docs/reference/"];

/// Most words of prose of a page, or of each below a folder; the first row that fits counts.
const PAGES: [(&str, usize); 4] = [
    ("docs/SECURITY.md", 1200),
    ("docs/guide/limits.md", 3000),
    ("docs/design/", 1500),
    ("docs/results/", 1000),
];

/// Findings for pages that are too long, and for pages that the contents leave out.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut all: Vec<Finding> = files.iter().flat_map(too_long).collect();
    all.extend(guide(files));
    if let Some(contents) = files.iter().find(|file| file.path == CONTENTS) {
        all.extend(files.iter().filter_map(|file| left_out(file, contents)));
    }
    all
}

fn too_long(file: &TextFile) -> Vec<Finding> {
    if file.path == README {
        return readme(&file.text);
    }
    if !file.path.ends_with(".md") {
        return Vec::new();
    }
    let row = PAGES.iter().find(|(path, _)| file.path.starts_with(path));
    row.and_then(|(_, most)| over(&file.path, prose_words(&file.text), *most)).into_iter().collect()
}

fn over(path: &str, words: usize, most: usize) -> Option<Finding> {
    (words > most).then(|| Finding::new(path, 1, format!("{words} words, of at most {most}")))
}

fn readme(text: &str) -> Vec<Finding> {
    let mut all: Vec<Finding> =
        over(README, text.split_whitespace().count(), README_WORDS_MAX).into_iter().collect();
    for (number, line) in
        text.lines().enumerate().filter(|(_, line)| line.chars().count() > README_COLUMNS_MAX)
    {
        let columns = line.chars().count();
        all.push(Finding::new(
            README,
            number + 1,
            format!("{columns} columns, of at most {README_COLUMNS_MAX}"),
        ));
    }
    if text.lines().position(|line| line.starts_with("```")).is_none_or(|line| line >= README_FIRST_BLOCK_MAX)
    {
        let message = format!("nothing to paste within {README_FIRST_BLOCK_MAX} lines");
        all.push(Finding::new(README, 1, message));
    }
    all
}

fn guide(files: &[TextFile]) -> Option<Finding> {
    let pages = files.iter().filter(|file| file.path.starts_with(GUIDE) && file.path.ends_with(".md"));
    over(GUIDE, pages.map(|page| prose_words(&page.text)).sum(), GUIDE_WORDS_MAX)
}

fn left_out(page: &TextFile, contents: &TextFile) -> Option<Finding> {
    let is_shelved = SHELVES.iter().any(|shelf| page.path.starts_with(shelf)) && page.path.ends_with(".md");
    let link = format!("]({})", page.path.strip_prefix("docs/").unwrap_or(&page.path));
    let is_missing = is_shelved && !contents.text.contains(&link);
    is_missing.then(|| Finding::new(&page.path, 1, format!("{CONTENTS} leaves it out")))
}

/// Words outside of tables, fenced blocks and comments.
fn prose_words(text: &str) -> usize {
    let mut is_fenced = false;
    let mut words = 0;
    for line in text.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced && !line.starts_with(['|', '<']) {
            words += line.split_whitespace().count();
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(files: &[(&str, String)]) -> Vec<String> {
        let file = |(path, text): &(&str, String)| TextFile { path: (*path).into(), text: text.clone() };
        check(&files.iter().map(file).collect::<Vec<_>>()).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_readme_that_is_long_wide_or_has_nothing_to_paste_is_found() {
        let good = format!("# A\n\n```\nevener\n```\n{}", "word ".repeat(20));
        assert!(found_in(&[(README, good.clone())]).is_empty());
        let long = format!("{good}\n{}", "word\n".repeat(1000));
        assert_eq!(found_in(&[(README, long)]), ["README.md:1: 1025 words, of at most 1000"]);
        let wide = format!("{good}\n{}", "w".repeat(161));
        assert_eq!(found_in(&[(README, wide)]), ["README.md:7: 161 columns, of at most 160"]);
        let late = format!("{}{good}", "\n".repeat(25));
        assert_eq!(found_in(&[(README, late)]), ["README.md:1: nothing to paste within 25 lines"]);
    }

    #[test]
    fn the_guide_has_so_many_words_in_all_and_tables_and_blocks_are_none() {
        let half =
            |words: usize| format!("{}\n| a | b |\n```\nc d\n```\n<!-- e -->\n", "word ".repeat(words));
        let pages = |words: usize| [("docs/guide/a.md", half(words)), ("docs/guide/b.md", half(5000))];
        assert!(found_in(&pages(5000)).is_empty());
        assert_eq!(found_in(&pages(5001)), ["docs/guide/:1: 10001 words, of at most 10000"]);
        let page = ("docs/SECURITY.md", "word ".repeat(1201));
        assert_eq!(found_in(&[page]), ["docs/SECURITY.md:1: 1201 words, of at most 1200"]);
        let note = ("docs/design/a.md", "word ".repeat(1501));
        assert_eq!(found_in(&[note]), ["docs/design/a.md:1: 1501 words, of at most 1500"]);
    }

    #[test]
    fn a_page_of_the_guide_that_the_contents_leave_out_is_found() {
        let contents = (CONTENTS, "- [A](guide/a.md)\n".to_owned());
        let page = |path| (path, "text".to_owned());
        let files = [contents, page("docs/guide/a.md"), page("docs/guide/b.md"), page("docs/design/c.md")];
        assert_eq!(found_in(&files), ["docs/guide/b.md:1: docs/SUMMARY.md leaves it out"]);
    }
}
