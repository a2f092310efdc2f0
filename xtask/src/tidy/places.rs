//! Paths that documents and the heads of sources name lead somewhere.
//!
//! Path of one name: what stands in backticks and is a Rust file, a folder with its `/` or lies below a folder of the root ([`named`]) ->
//! looked up from the root, then from where it is named: in a page within the folder that the page named last, in a head from the file's
//! own folder up to its crate -> else it is the end of one path, and of no second one. Links of pages lead from the page's own folder,
//! to a heading of the page that they name where they say one.
//! Pages of results and the list of changes tell of their own day; they are checked for links only.

use std::collections::BTreeSet;
use std::iter;

use super::Finding;
use crate::tree::TextFile;

/// Folders that are made and not there before: what `.gitignore` names.
const PRODUCTS: [&str; 2] = ["target", "demo"];

/// Stands in a path for what the reader puts there.
const ANY_NAME: &str = "NAME";

/// Findings for paths in pages and heads that lead nowhere, or to more than one place.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let places = Places::of(files);
    let mut all = Vec::new();
    for file in files {
        if file.path.ends_with(".md") {
            all.extend(links(file, &places, files));
            if !is_of_its_day(&file.path) {
                all.extend(in_page(file, &places));
            }
        } else if file.path.ends_with(".rs") {
            all.extend(in_head(file, &places));
        }
    }
    all
}

fn is_of_its_day(page: &str) -> bool {
    page.starts_with("docs/results/") || page == "CHANGELOG.md"
}

/// What is there: files and folders, from the root of the workspace.
struct Places<'f>(BTreeSet<&'f str>);

impl<'f> Places<'f> {
    fn of(files: &'f [TextFile]) -> Self {
        Self(
            files.iter().flat_map(|file| iter::once(file.path.as_str()).chain(folders(&file.path))).collect(),
        )
    }

    fn has(&self, path: &str) -> bool {
        self.0.contains(path.trim_end_matches('/'))
    }

    /// How many lie somewhere below `folder` under a path that ends so.
    fn count_below(&self, folder: &str, path: &str) -> usize {
        let end = format!("/{}", path.trim_end_matches('/'));
        self.0.iter().filter(|place| is_below(folder, place) && place.ends_with(&end)).count()
    }

    /// Whether a path leads on from `folder` or from its `src`, or is the end of one path below it.
    fn is_within(&self, folder: &str, path: &str) -> bool {
        self.has(&join(folder, path))
            || self.has(&join(&join(folder, "src"), path))
            || !folder.is_empty() && self.count_below(folder, path) == 1
    }

    /// The folder of the crate that a file belongs to; the root's where it belongs to none.
    fn crate_of(&self, path: &'f str) -> &'f str {
        folders(path).find(|folder| self.has(&join(folder, "Cargo.toml"))).unwrap_or_default()
    }
}

/// The folders that a path lies in, the innermost first.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    let folder = |path: &'_ str| path.rsplit_once('/').map(|(folder, _)| folder.len());
    iter::successors(folder(path), move |&len| folder(&path[..len])).map(|len| &path[..len])
}

fn is_below(folder: &str, path: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn join(folder: &str, path: &str) -> String {
    if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") }
}

/// The paths that a line names.
fn named<'t>(line: &'t str, places: &Places<'_>) -> Vec<&'t str> {
    line.split('`').skip(1).step_by(2).filter(|text| is_path(text, places)).collect()
}

fn is_path(text: &str, places: &Places<'_>) -> bool {
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c));
    let first = text.split('/').next().unwrap_or_default();
    if !is_plain || first.is_empty() || PRODUCTS.contains(&first) || text.contains(ANY_NAME) {
        return false;
    }
    let is_from_root = text.contains('/') && places.has(first);
    text.trim_start_matches('.') != "rs" && (text.ends_with(".rs") || text.ends_with('/') || is_from_root)
}

/// Findings for the paths that a page names.
fn in_page(page: &TextFile, places: &Places<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut last_folder = "";
    for (number, line) in page.text.lines().enumerate() {
        for path in named(line, places) {
            if places.has(path) {
                if !path.ends_with(".rs") && !path.ends_with(".md") {
                    last_folder = path.trim_end_matches('/');
                }
            } else if !places.is_within(last_folder, path) {
                all.extend(end_of_one(path, "", places).map(|why| Finding::new(&page.path, number + 1, why)));
            }
        }
    }
    all
}

/// Findings for the paths that the head of a source names.
fn in_head(file: &TextFile, places: &Places<'_>) -> Vec<Finding> {
    let krate = places.crate_of(&file.path);
    let sources = join(krate, "src");
    let own_folder = file.path.trim_end_matches(".rs");
    let near: Vec<&str> = iter::once(own_folder)
        .chain(folders(&file.path).take_while(|folder| *folder == krate || is_below(krate, folder)))
        .chain([sources.as_str()])
        .collect();
    let mut all = Vec::new();
    for (number, line) in file.text.lines().enumerate().filter(|(_, line)| line.starts_with("//!")) {
        for path in named(line, places) {
            let is_near = near.iter().any(|folder| places.has(&join(folder, path)));
            if is_near || places.has(path) || places.count_below(krate, path) == 1 {
                continue;
            }
            // Without a folder it is a file of the crate: some other crate has a file of nearly every name.
            let is_bare = !path.trim_end_matches('/').contains('/');
            let within = if is_bare { krate } else { "" };
            all.extend(end_of_one(path, within, places).map(|why| Finding::new(&file.path, number + 1, why)));
        }
    }
    all
}

/// What is wrong with a path that is to be the end of one below `folder`.
fn end_of_one(path: &str, folder: &str, places: &Places<'_>) -> Option<String> {
    match places.count_below(folder, path) {
        1 => None,
        0 => Some(format!("`{path}` is not there")),
        count => Some(format!("`{path}` may be {count} places: say below which folder it lies")),
    }
}

/// Findings for links of a page to files or headings that are not there.
fn links(page: &TextFile, places: &Places<'_>, files: &[TextFile]) -> Vec<Finding> {
    let folder = folders(&page.path).next().unwrap_or_default();
    let mut all = Vec::new();
    for (number, line) in page.text.lines().enumerate() {
        for rest in line.split("](").skip(1) {
            let whole = rest.split(')').next().unwrap_or_default();
            let (link, heading) = whole.split_once('#').unwrap_or((whole, ""));
            let target = if link.is_empty() { page.path.clone() } else { from(folder, link) };
            let leads = link.contains(':') || places.has(&target) && has_heading(&target, heading, files);
            if !leads {
                all.push(Finding::new(&page.path, number + 1, format!("the link to {whole} leads nowhere")));
            }
        }
    }
    all
}

/// Whether the page at `path` has a heading that a link names so; what is no page, or where none is named, passes.
fn has_heading(path: &str, name: &str, files: &[TextFile]) -> bool {
    let page = files.iter().find(|file| file.path == path && path.ends_with(".md"));
    name.is_empty()
        || page.is_none_or(|page| page.text.lines().any(|line| heading(line).as_deref() == Some(name)))
}

/// The name of a heading, as links have it: small letters and digits, hyphens for blanks.
fn heading(line: &str) -> Option<String> {
    let title = line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?;
    let title = title.split("](").map(|part| part.split_once(')').map_or(part, |(_, rest)| rest));
    let title = title.collect::<String>().to_lowercase();
    let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    Some(kept.map(|c| if c == ' ' { '-' } else { c }).collect())
}

/// Where a link leads from a folder.
fn from(folder: &str, link: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace of two crates, and what is found in one more file of it.
    fn found_in(path: &str, text: &str) -> Vec<String> {
        let names = [
            "Cargo.toml",
            "docs/a.md",
            "crates/one/Cargo.toml",
            "crates/one/src/lib.rs",
            "crates/one/src/queue/ring.rs",
            "crates/one/src/queue/wait.rs",
            "crates/two/Cargo.toml",
            "crates/two/src/lib.rs",
            "crates/two/src/wait.rs",
            "crates/two/src/later.rs",
        ];
        let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
        let mut files: Vec<TextFile> = names.iter().map(|name| file(name, "")).collect();
        files.push(file(path, text));
        check(&files).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_file_that_moved_is_found_with_its_line() {
        let page = "| question | way | file |\n|---|---|---|\n| Where? | `a` | `crates/two/src/wait.rs` |\n\
                    | And? | `b` | `crates/two/src/gone.rs` |\n";
        let found = found_in("docs/where.md", page);
        assert_eq!(found, ["docs/where.md:4: `crates/two/src/gone.rs` is not there"]);
    }

    #[test]
    fn a_page_may_name_the_end_of_a_path_where_only_one_ends_so_or_the_folder_was_named_before() {
        assert!(found_in("docs/b.md", "`ring.rs`, `queue/wait.rs`, `queue/`, `target/x/`").is_empty());
        assert!(found_in("docs/b.md", "below `crates/two/src`:\n`wait.rs`").is_empty());
        assert!(
            found_in("docs/b.md", "| `crates/two` | `wait.rs` |\n| `crates/one` | `wait.rs` |").is_empty()
        );
        assert_eq!(
            found_in("docs/b.md", "`wait.rs`"),
            ["docs/b.md:1: `wait.rs` may be 2 places: say below which folder it lies"]
        );
        assert_eq!(found_in("docs/b.md", "`docs/gone.json`, `gone/`").len(), 2);
        assert!(found_in("docs/results/b.md", "`wait.rs`, `gone.rs`").is_empty(), "of its day");
    }

    #[test]
    fn a_head_names_files_of_its_own_crate_or_says_the_folder() {
        let head =
            |text: &str| found_in("crates/one/src/queue/mod.rs", &format!("//! Queues.\n//! {text}\n"));
        assert!(head("`ring.rs`, `wait.rs`, `queue/wait.rs`, `lib.rs`, `crates/two/src/wait.rs`").is_empty());
        assert!(head("`src/later.rs`, `/dev/shm/`, `NAME.rs`, `.rs`").is_empty());
        assert_eq!(head("`later.rs`"), ["crates/one/src/queue/mod.rs:2: `later.rs` is not there"]);
        assert_eq!(head("`gone/`").len(), 1);
        assert!(found_in("crates/one/src/x.rs", "// `gone.rs` stands in no head\n").is_empty());
    }

    #[test]
    fn a_link_leads_from_the_folder_of_its_page() {
        let page =
            "[a](a.md) [b](../crates/one/src/lib.rs#L1) [c](https://x.org/gone.md#x) [d](#here)\n## Here";
        assert!(found_in("docs/b.md", page).is_empty());
        assert_eq!(found_in("docs/b.md", "\n[a](b/a.md)"), ["docs/b.md:2: the link to b/a.md leads nowhere"]);
        assert_eq!(found_in("docs/results/b.md", "[a](a.md) [a](../a.md)").len(), 1);
    }

    #[test]
    fn a_link_to_a_heading_that_its_page_has_not_is_found() {
        let page = "# A page\n[a](#the-provider-evenerso-and-1) [b](b.md#gone) [c](a.md#gone)\n## The `provider`: evener.so and 1\n";
        let found = found_in("docs/b.md", page);
        let at = |link| format!("docs/b.md:2: the link to {link} leads nowhere");
        assert_eq!(found, [at("b.md#gone"), at("a.md#gone")]);
    }
}
