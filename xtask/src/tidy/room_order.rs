//! The inside of each crate: no circle of files, no crowded folder, rooms that use only what their row allows.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::table::{DOCUMENT, with_tables};
use crate::crate_graph::{Arrow, Crate, Room, arrows, circles, room_of};
use crate::tree::{Package, TextFile};

/// Most source files of a folder at one level, and of a crate without rooms: what one looks over without scrolling.
const FILES_MAX: usize = 15;

/// Findings of all crates.
pub(super) fn check(packages: &[Package], files: &[TextFile]) -> Vec<Finding> {
    let mut all: Vec<Finding> = packages.iter().flat_map(|package| check_package(package, files)).collect();
    all.extend(
        files.iter().find(|file| file.path == DOCUMENT).and_then(|file| not_as_made(file, packages, files)),
    );
    all
}

/// The tables of crates and rooms are made, not written.
fn not_as_made(document: &TextFile, packages: &[Package], files: &[TextFile]) -> Option<Finding> {
    match with_tables(&document.text, packages, files) {
        Some(made) if made == document.text => None,
        Some(_) => Some(Finding::new(
            DOCUMENT,
            1,
            "its tables of crates and rooms are old: `cargo xtask rooms` makes them anew",
        )),
        None => Some(Finding::new(DOCUMENT, 1, "it has no place for the tables of crates and rooms")),
    }
}

/// Findings of one.
pub(super) fn check_package(package: &Package, files: &[TextFile]) -> Vec<Finding> {
    let mut all = crowded(package, files);
    for root in &package.roots {
        match Crate::read(root, files) {
            Ok(krate) => all.extend(check_crate(package, root, &arrows(&krate), files)),
            Err(reason) => all.push(Finding::new(root, 1, reason)),
        }
    }
    all
}

fn check_crate(package: &Package, root: &str, arrows: &[Arrow], files: &[TextFile]) -> Vec<Finding> {
    let circles = circles(arrows);
    let mut all: Vec<Finding> = circles.iter().map(|circle| in_a_circle(circle, arrows)).collect();
    all.extend(rooms(package, root, arrows, files));
    all
}

/// A circle, with what ties it.
fn in_a_circle(circle: &[String], arrows: &[Arrow]) -> Finding {
    let within = |arrow: &&Arrow| circle.contains(&arrow.from) && circle.contains(&arrow.to);
    let ties = arrows.iter().filter(within).map(|arrow| {
        let names: Vec<&str> = arrow.names.iter().map(String::as_str).collect();
        format!("\n    {} -> {} ({})", short(&arrow.from), short(&arrow.to), names.join(" "))
    });
    let ties: String = ties.collect();
    Finding::new(&circle[0], 1, format!("{} files use each other in a circle:{ties}", circle.len()))
}

fn short(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(_, rest)| rest)
}

/// Folders below its `src` with too many source files at one level.
fn crowded(package: &Package, files: &[TextFile]) -> Vec<Finding> {
    let sources = format!("{}/src/", package.folder);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs") && file.path.starts_with(&sources)) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        *counts.entry(folder).or_default() += 1;
    }
    let crowded = counts.iter().filter(|(_, count)| **count > FILES_MAX);
    let finding = |(folder, count): (&&str, &usize)| {
        Finding::new(folder, 1, format!("{count} source files at one level; {FILES_MAX} at most"))
    };
    crowded.map(finding).collect()
}

/// What is not as the rows say.
fn rooms(package: &Package, root: &str, arrows: &[Arrow], files: &[TextFile]) -> Vec<Finding> {
    let manifest = format!("{}/Cargo.toml", package.folder);
    let finding = |message: String| Finding::new(&manifest, 1, message);
    // Programs beside a library have no rooms of their own.
    if !root.starts_with(&format!("{}/src/", package.folder)) || root.contains("/bin/") {
        return Vec::new();
    }
    let sources = format!("{}/src/", package.folder);
    let own: Vec<&TextFile> =
        files.iter().filter(|file| file.path.starts_with(&sources) && file.path.ends_with(".rs")).collect();
    if package.rooms.is_empty() {
        let count = own.iter().filter(|file| !file.path.contains("/bin/")).count();
        let is_small = count <= FILES_MAX;
        return if is_small {
            Vec::new()
        } else {
            vec![finding(format!("{count} source files and no rooms"))]
        };
    }
    let mut all: Vec<Finding> =
        arrows.iter().filter_map(|arrow| against(&package.rooms, root, arrow)).collect();
    let there: BTreeSet<String> = own.iter().filter_map(|file| room_of(root, &file.path)).collect();
    for room in &package.rooms {
        if !there.contains(&room.name) {
            all.push(finding(format!("there is no room `{}`", room.name)));
        }
    }
    for name in there.iter().filter(|name| !package.rooms.iter().any(|room| room.name == **name)) {
        // The first file of another target, as a program beside a library.
        if !package.roots.iter().any(|root| root.ends_with(&format!("/src/{name}.rs"))) && name != "bin" {
            all.push(finding(format!("the room `{name}` has no row")));
        }
    }
    all.extend(own.iter().filter(|file| is_first_of_a_room(&sources, file)).filter_map(|file| unsaid(file)));
    all
}

fn against(rooms: &[Room], root: &str, arrow: &Arrow) -> Option<Finding> {
    let (from, to) = (room_of(root, &arrow.from)?, room_of(root, &arrow.to));
    let to = to.unwrap_or_else(|| "the first file".to_owned());
    let row = rooms.iter().find(|room| room.name == from)?;
    if from == to || row.may_use.contains(&to) {
        return None;
    }
    let names: Vec<&str> = arrow.names.iter().map(String::as_str).collect();
    let message = format!("the room `{from}` may not use `{to}` ({}, {})", short(&arrow.to), names.join(" "));
    Some(Finding::new(&arrow.from, 1, message))
}

fn is_first_of_a_room(sources: &str, file: &TextFile) -> bool {
    let rest = file.path.strip_prefix(sources).unwrap_or_default();
    rest.ends_with("/mod.rs") && rest.matches('/').count() == 1 && !rest.starts_with("bin/")
}

/// A room begins with a sentence that says what it is for.
fn unsaid(file: &TextFile) -> Option<Finding> {
    let says = file.text.starts_with("//! ");
    (!says).then(|| Finding::new(&file.path, 1, "a room begins with what it is for"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: format!("c/src/{path}"), text: text.to_owned() }
    }

    fn package(rooms: &[(&str, &[&str])]) -> Package {
        let rooms = rooms.iter().map(|(name, may_use)| Room {
            name: (*name).to_owned(),
            may_use: may_use.iter().map(|&name| name.to_owned()).collect(),
        });
        Package {
            name: "c".to_owned(),
            folder: "c".to_owned(),
            uses: vec![],
            tests_use: vec![],
            roots: vec!["c/src/lib.rs".to_owned()],
            rooms: rooms.collect(),
        }
    }

    fn found(rooms: &[(&str, &[&str])], files: &[TextFile]) -> Vec<String> {
        check(&[package(rooms)], files).iter().map(Finding::to_string).collect()
    }

    /// The one finding in these files.
    fn the_finding<const N: usize>(files: [(&str, &str); N]) -> String {
        let mut found = found(&[], &files.map(|(path, text)| file(path, text)));
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    #[test]
    fn a_circle_is_found_through_what_a_module_hands_on() {
        let found = the_finding([
            ("lib.rs", "mod a;\nmod b;"),
            ("a.rs", "use crate::b::Thing;\npub struct Own;"),
            ("b/mod.rs", "mod deep;\npub use deep::Thing;"),
            ("b/deep.rs", "pub struct Thing(pub crate::a::Own);"),
        ]);
        assert!(found.contains("2 files use each other in a circle"), "{found}");
        assert!(found.contains("a.rs -> b/deep.rs (Thing)"), "{found}");
    }

    #[test]
    fn a_circle_is_found_through_a_method_whose_block_stands_apart_from_its_type() {
        let found = the_finding([
            ("lib.rs", "mod a;\nmod b;\nmod t;"),
            ("t.rs", "pub struct T;"),
            ("a.rs", "use crate::t::T;\nimpl T { pub fn far(&self) { crate::b::go(self); } }"),
            ("b.rs", "use crate::t::T;\npub fn go(t: &T) { t.far(); }"),
        ]);
        assert!(found.contains("b.rs -> a.rs (.far())"), "{found}");
    }

    #[test]
    fn a_module_and_what_it_is_made_of_are_no_circle_and_tests_use_what_they_like() {
        let files = [
            file("lib.rs", "mod a;\nmod b;"),
            file("a/mod.rs", "mod part;\nuse part::go;\npub struct Own;\nfn f() { go() }"),
            file("a/part.rs", "use super::Own;\npub fn go() -> Own { Own }"),
            file("b.rs", "use crate::a::Own;"),
            file("c.rs", "nonsense that nobody reads"),
        ];
        let with_tests = file("a/part.rs", "use super::Own;\n#[cfg(test)]\nmod tests { use crate::b::X; }");
        assert!(found(&[], &files).is_empty());
        let [lib, a, _, b, _] = files;
        assert!(found(&[], &[lib, a, with_tests, b]).is_empty());
    }

    #[test]
    fn a_room_uses_only_what_its_row_allows() {
        let files = [
            file("lib.rs", "mod high;\nmod low;\npub struct Top;"),
            file("high/mod.rs", "//! Says.\nuse crate::low::X;"),
            file("low.rs", "use crate::Top;\npub struct X;\nfn f() { crate::high::y(); }"),
        ];
        let rows: &[(&str, &[&str])] = &[("high", &["low"]), ("low", &[])];
        let found = found(rows, &files);
        assert!(found.iter().any(|it| it.contains("`low` may not use `high`")), "{found:?}");
        assert!(found.iter().any(|it| it.contains("`low` may not use `the first file`")), "{found:?}");
        assert!(!found.iter().any(|it| it.contains("`high` may not")), "{found:?}");
    }

    #[test]
    fn rooms_and_rows_are_the_same_and_a_room_says_what_it_is_for() {
        let files = [file("lib.rs", "mod a;\nmod b;"), file("a/mod.rs", ""), file("b.rs", "")];
        let found = found(&[("a", &[]), ("gone", &[])], &files);
        for part in ["no room `gone`", "`b` has no row", "begins with what it is for"] {
            assert!(found.iter().any(|it| it.contains(part)), "{part}: {found:?}");
        }
    }

    #[test]
    fn a_crowd_is_no_room() {
        let many: Vec<String> = (0..FILES_MAX + 1).map(|n| format!("m{n}")).collect();
        let lib: String = many.iter().map(|name| format!("mod {name};\n")).collect();
        let mut files: Vec<TextFile> = many.iter().map(|name| file(&format!("{name}.rs"), "")).collect();
        files.push(file("lib.rs", &lib));
        let found = found(&[], &files);
        assert!(found.iter().any(|it| it.contains("at one level")), "{found:?}");
        assert!(found.iter().any(|it| it.contains("and no rooms")), "{found:?}");
    }
}
