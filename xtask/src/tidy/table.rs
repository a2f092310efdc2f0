//! The tables for people: each crate with what it holds, may use and has of unsafe code, and each room with its first sentence and what
//! it may use; made from what the checks go by.

use super::{directions, unsafe_code};
use crate::crate_graph::Room;
use crate::tree::{Package, TextFile};

/// The document that has the tables.
pub(super) const DOCUMENT: &str = "docs/ARCHITECTURE.md";

const CRATES_BEGIN: &str = "<!-- The crates: made by `cargo xtask rooms`. -->\n";
const CRATES_END: &str = "<!-- The end of the crates. -->\n";
const BEGIN: &str = "<!-- The rooms: made by `cargo xtask rooms`. -->\n";
const END: &str = "<!-- The end of the rooms. -->\n";

/// Most files with unsafe code that a crate's row names one by one; of more it names the rooms.
const NAMED_FILES_MAX: usize = 7;

/// The document with the tables as they are to be; nothing where it has no place for one of them.
pub(super) fn with_tables(document: &str, packages: &[Package], files: &[TextFile]) -> Option<String> {
    let with_crates = with(document, (CRATES_BEGIN, CRATES_END), &crates(packages, files))?;
    with(&with_crates, (BEGIN, END), &rooms(packages, files))
}

fn with(document: &str, (begin, end): (&str, &str), table: &str) -> Option<String> {
    let (before, rest) = document.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}{table}{end}{after}"))
}

/// One row per crate, in the order of the directions: who is used stands above who uses.
fn crates(packages: &[Package], files: &[TextFile]) -> String {
    let mut text = "\n| crate | folder | holds | may use | unsafe code |\n|---|---|---|---|---|\n".to_owned();
    for (name, may_use) in directions::rows() {
        let Some(package) = packages.iter().find(|package| package.name == name) else { continue };
        let folder = &package.folder;
        let holds = description(folder, files).replace('|', "\\|");
        let unsafe_code = unsafe_places(unsafe_code::files_of(name));
        text.push_str(&format!("| `{name}` | `{folder}` | {holds} | {may_use} | {unsafe_code} |\n"));
    }
    text.push('\n');
    text
}

/// What a crate's manifest says of it.
fn description<'f>(folder: &str, files: &'f [TextFile]) -> &'f str {
    let manifest = files.iter().find(|file| file.path == format!("{folder}/Cargo.toml"));
    let lines = manifest.map(|file| file.text.as_str()).unwrap_or_default().lines();
    let said = lines.filter_map(|line| line.strip_prefix("description = \"")).next();
    said.map(|said| said.trim_end_matches('"')).unwrap_or_default()
}

fn unsafe_places(listed: &[&str]) -> String {
    let sources: Vec<&str> = listed.iter().filter_map(|path| path.strip_prefix("src/")).collect();
    if sources.is_empty() {
        return if listed.is_empty() { "no".to_owned() } else { "in tests".to_owned() };
    }
    if sources.len() <= NAMED_FILES_MAX {
        return format!("`{}`", sources.join("`, `"));
    }
    let mut rooms: Vec<&str> = sources.iter().filter_map(|path| path.split('/').next()).collect();
    rooms.dedup();
    let rooms: Vec<String> = rooms
        .into_iter()
        .map(|room| if room.ends_with(".rs") { format!("`{room}`") } else { format!("`{room}/`") })
        .collect();
    format!("{} files in {}", sources.len(), rooms.join(", "))
}

fn rooms(packages: &[Package], files: &[TextFile]) -> String {
    let mut text = String::new();
    for package in packages.iter().filter(|package| !package.rooms.is_empty()) {
        text.push_str(&format!("\n### `{}`, `{}/src`\n\n", package.name, package.folder));
        text.push_str("| room | what it is for | may use |\n|---|---|---|\n");
        for room in &package.rooms {
            let sentence_text = sentence(&package.folder, room, files);
            let may_use = if room.may_use.is_empty() { "none".to_owned() } else { room.may_use.join(", ") };
            text.push_str(&format!("| `{}` | {sentence_text} | {may_use} |\n", room.name));
        }
    }
    text.push('\n');
    text
}

/// The first sentence of a room's first file.
fn sentence(folder: &str, room: &Room, files: &[TextFile]) -> String {
    let places = ["/mod.rs", ".rs"].map(|end| format!("{folder}/src/{}{end}", room.name));
    let first = files.iter().find(|file| places.contains(&file.path));
    let lines = first.map(|file| file.text.as_str()).unwrap_or_default().lines();
    let sentence_text = lines.map_while(|line| line.strip_prefix("//! "));
    let sentence_text: Vec<&str> = sentence_text.collect();
    let sentence_text = sentence_text.join(" ");
    let end = sentence_text.find(". ").map_or(sentence_text.len(), |at| at + 1);
    sentence_text[..end].trim_end_matches('.').replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_stands_there_with_its_first_sentence_and_the_rest_of_the_document_stays() {
        let package = Package {
            name: "c".to_owned(),
            folder: "crates/c".to_owned(),
            uses: vec![],
            tests_use: vec![],
            roots: vec![],
            rooms: vec![
                Room { name: "high".to_owned(), may_use: vec!["low".to_owned()] },
                Room { name: "low".to_owned(), may_use: vec![] },
            ],
        };
        let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
        let files = [
            file("crates/c/src/high/mod.rs", "//! Where jobs\n//! go in. More.\n\nuse x;"),
            file("crates/c/src/low.rs", "//! Clocks.\n"),
        ];
        let document = format!("before\n{CRATES_BEGIN}{CRATES_END}between\n{BEGIN}of before\n{END}after\n");
        let made = with_tables(&document, &[package], &files).unwrap();
        assert!(
            made.starts_with(&format!("before\n{CRATES_BEGIN}")) && made.ends_with(&format!("{END}after\n"))
        );
        assert!(made.contains(&format!("{CRATES_END}between\n{BEGIN}")));
        assert!(made.contains("| `high` | Where jobs go in | low |\n| `low` | Clocks | none |\n"), "{made}");
        assert!(!made.contains("of before"));
        assert_eq!(with_tables("no place", &[], &files), None);
    }

    #[test]
    fn a_crate_stands_there_with_its_description_and_what_the_checks_let_it_do() {
        let package = |name: &str| Package {
            name: name.to_owned(),
            folder: format!("crates/{name}"),
            uses: vec![],
            tests_use: vec![],
            roots: vec![],
            rooms: vec![],
        };
        let manifest = |name: &str, said: &str| TextFile {
            path: format!("crates/{name}/Cargo.toml"),
            text: format!("[package]\ndescription = \"{said}\"\n"),
        };
        let files = [manifest("evener-core", "Jobs; pure"), manifest("evener-vfio", "Registers")];
        let made = crates(&[package("evener-vfio"), package("evener-core")], &files);
        let rows: Vec<&str> = made.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(
            rows,
            [
                "| `evener-core` | `crates/evener-core` | Jobs; pure | none | no |",
                "| `evener-vfio` | `crates/evener-vfio` | Registers | fd, ring | `ffi.rs`, `function.rs`, `registers.rs` |",
            ]
        );
    }

    #[test]
    fn of_many_files_with_unsafe_code_the_rooms_are_named() {
        let many = ["src/a/1.rs", "src/a/2.rs", "src/b/3.rs", "src/b/4.rs", "src/c/5.rs", "src/c/6.rs"];
        assert_eq!(
            unsafe_places(&[&many[..], &["src/c/7.rs", "src/d.rs"]].concat()),
            "8 files in `a/`, `b/`, `c/`, `d.rs`"
        );
        assert_eq!(unsafe_places(&["tests/a.rs"]), "in tests");
    }
}
