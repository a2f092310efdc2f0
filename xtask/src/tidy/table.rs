//! The table of rooms for people: each room with its first sentence and what it may use, made from the rows and the sources.

use crate::crate_graph::Room;
use crate::tree::{Package, TextFile};

/// The document that has the table.
pub(super) const DOCUMENT: &str = "docs/ARCHITECTURE.md";

const BEGIN: &str = "<!-- The rooms: made by `cargo xtask rooms`. -->\n";
const END: &str = "<!-- The end of the rooms. -->\n";

/// The document with the table as it is to be; nothing where it has no place for one.
pub(super) fn with_table(document: &str, packages: &[Package], files: &[TextFile]) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{}{END}{after}", table(packages, files)))
}

fn table(packages: &[Package], files: &[TextFile]) -> String {
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
        let made = with_table(&format!("before\n{BEGIN}old\n{END}after\n"), &[package], &files).unwrap();
        assert!(made.starts_with(&format!("before\n{BEGIN}")) && made.ends_with(&format!("{END}after\n")));
        assert!(made.contains("| `high` | Where jobs go in | low |\n| `low` | Clocks | none |\n"), "{made}");
        assert!(!made.contains("old"));
        assert_eq!(with_table("no place", &[], &files), None);
    }
}
