//! What changes while a tree is walked.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use super::{Entry, Item, Walk};
use crate::error::FileError;
use crate::filter::Filter;
use crate::input::place::OpenPlaces;
use crate::naming::Naming;
use crate::output::Outputs;
use crate::preservation::Keep;

/// `in/a/file`, `in/b/file`, and beside them `secret/file`, which is longer.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for (directory, text) in [("in/a", "mine"), ("in/b", "mine"), ("secret", "not for everybody")] {
        fs::create_dir_all(place.path().join(directory)).unwrap();
        fs::write(place.path().join(directory).join("file"), text).unwrap();
    }
    place
}

/// A walk with so few descriptors that directories are opened again, or with many; and its outputs.
fn walk(place: &tempfile::TempDir, descriptors: usize, source: &str) -> (Walk, Arc<Outputs>) {
    let open = OpenPlaces::new(descriptors);
    let outputs = Outputs::new(Keep::default(), Arc::clone(&open), &[]);
    let (source, target) = (place.path().join(source), place.path().join("out"));
    (
        Walk::new(&[source], Some(&target), (&Filter::default(), &Naming::Kept), &outputs, &open).unwrap(),
        outputs,
    )
}

/// A place, and the walk through its `in`.
fn begun(descriptors: usize) -> (tempfile::TempDir, Walk) {
    let place = place();
    let (walk, _) = walk(&place, descriptors, "in");
    (place, walk)
}

/// Budgets of descriptors: everything is closed at once, or nothing is.
const BUDGETS: [usize; 2] = [1, 64];

fn next(walk: &mut Walk) -> Option<Entry> {
    walk.next(&|_, _, _| false)
}

fn next_file(walk: &mut Walk) -> Item {
    match next(walk) {
        Some(Entry::File(item)) => item,
        _ => unreachable!("the next thing is a file"),
    }
}

fn replace_by_link(path: &Path, target: &Path) {
    fs::rename(path, path.with_extension("before")).unwrap();
    symlink(target, path).unwrap();
}

#[test]
fn a_file_that_became_a_link_since_the_walk_saw_it_is_not_followed() {
    for budget in BUDGETS {
        let (place, mut walk) = begun(budget);
        let item = next_file(&mut walk);
        assert_eq!(item.open().unwrap().len(), 4);
        replace_by_link(&item.source(), &place.path().join("secret/file"));
        assert!(matches!(item.open(), Err(FileError::Link)));
    }
}

#[test]
fn a_directory_that_became_a_link_since_the_walk_saw_its_files_leads_nowhere() {
    for budget in BUDGETS {
        let (place, mut walk) = begun(budget);
        let item = next_file(&mut walk);
        // Closes what the budget of one holds.
        next_file(&mut walk);
        replace_by_link(item.source().parent().unwrap(), &place.path().join("secret"));
        match item.open() {
            Ok(opened) => assert_eq!((opened.len(), budget), (4, 64), "the directory that was entered"),
            Err(error) => assert!(matches!((error, budget), (FileError::Moved, 1))),
        }
    }
}

#[test]
fn a_directory_that_becomes_a_link_before_it_is_entered_is_an_error_and_not_listed() {
    for budget in BUDGETS {
        let (place, mut walk) = begun(budget);
        let first = next_file(&mut walk).source();
        let second = place.path().join(if first.ends_with("a/file") { "in/b" } else { "in/a" });
        replace_by_link(&second, &place.path().join("secret"));
        match next(&mut walk) {
            Some(Entry::Failed(path, FileError::Link)) => assert_eq!(path, second),
            _ => unreachable!("the link is an error"),
        }
        assert!(!place.path().join("out").join(second.file_name().unwrap()).exists());
    }
}

#[test]
fn a_link_that_the_user_named_is_followed_to_its_file() {
    let place = place();
    symlink("secret/file", place.path().join("link")).unwrap();
    let item = next_file(&mut walk(&place, 64, "link").0);
    assert_eq!(item.open().unwrap().len(), 17);
}

/// Mode and time in seconds.
fn look(path: &Path) -> (u32, i64) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.mode() & 0o7777, metadata.mtime())
}

#[test]
fn an_output_directory_that_something_else_replaced_is_an_error_and_what_replaced_it_keeps_mode_and_time() {
    for is_link in [true, false] {
        let place = place();
        let (entered, victim) = (place.path().join("out/a"), place.path().join("secret"));
        fs::set_permissions(place.path().join("in/a"), fs::Permissions::from_mode(0o751)).unwrap();
        let (mut walk, outputs) = walk(&place, 1, "in");
        let items = [next_file(&mut walk), next_file(&mut walk)];
        assert!(next(&mut walk).is_none());
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o700)).unwrap();
        fs::File::open(&victim).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        fs::rename(&entered, place.path().join("out/away")).unwrap();
        if is_link {
            symlink(&victim, &entered).unwrap();
        } else {
            fs::rename(&victim, &entered).unwrap();
        }
        // Closes what the budget of one holds.
        items[1].dir.stat("file".as_ref()).ok();
        items[0].dir.stat("file".as_ref()).ok();
        drop((items, walk));
        let failed = outputs.failed();
        let is_moved =
            |(path, error): &(_, FileError)| *path == entered && matches!(error, FileError::OtherDirectory);
        // What is still open is known by its descriptor, wherever it is by now.
        assert!(failed.iter().all(is_moved), "{failed:?}");
        assert_eq!(look(&entered), (0o700, 0));
        assert_eq!(
            look(&place.path().join("out/b")),
            look(&place.path().join("in/b")),
            "the others are done"
        );
    }
}

#[test]
fn a_directory_is_finished_when_its_last_file_is_let_go_of_and_not_before() {
    let place = place();
    fs::set_permissions(place.path().join("in/a"), fs::Permissions::from_mode(0o555)).unwrap();
    let (mut walk, outputs) = walk(&place, 64, "in");
    let items = [next_file(&mut walk), next_file(&mut walk)];
    assert!(next(&mut walk).is_none());
    drop(walk);
    assert_eq!(look(&place.path().join("out/a")).0 & 0o700, 0o700);
    drop(items);
    for name in ["", "a", "b"] {
        let (source, output) = (place.path().join("in").join(name), place.path().join("out").join(name));
        assert_eq!(look(&output), look(&source), "{name}");
    }
    assert!(outputs.failed().is_empty());
}

#[test]
fn directories_of_a_run_that_was_stopped_stay_as_they_are() {
    let place = place();
    fs::set_permissions(place.path().join("in/a"), fs::Permissions::from_mode(0o555)).unwrap();
    let (mut walk, outputs) = walk(&place, 64, "in");
    let item = next_file(&mut walk);
    outputs.abandon();
    drop((item, walk));
    for name in ["a", "b"] {
        let made = place.path().join("out").join(name);
        assert!(!made.exists() || look(&made).0 & 0o700 == 0o700);
    }
}
