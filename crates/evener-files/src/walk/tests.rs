//! What changes while a tree is walked.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use super::{Entry, Item, Walk};
use crate::error::FileError;
use crate::filter::Filter;

/// `in/a/file`, `in/b/file`, and beside them `secret/file`, which is longer.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for (directory, text) in [("in/a", "mine"), ("in/b", "mine"), ("secret", "not for everybody")] {
        fs::create_dir_all(place.path().join(directory)).unwrap();
        fs::write(place.path().join(directory).join("file"), text).unwrap();
    }
    place
}

fn walk(place: &tempfile::TempDir) -> Walk {
    Walk::new(&[place.path().join("in")], &place.path().join("out"), &Filter::default()).unwrap()
}

fn next_file(walk: &mut Walk) -> Item {
    match walk.next() {
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
    let place = place();
    let item = next_file(&mut walk(&place));
    assert_eq!(item.open().unwrap().len(), 4);
    replace_by_link(&item.source, &place.path().join("secret/file"));
    assert!(matches!(item.open(), Err(FileError::Link)));
}

#[test]
fn a_directory_that_became_a_link_since_the_walk_saw_its_files_leads_nowhere() {
    let place = place();
    let item = next_file(&mut walk(&place));
    replace_by_link(item.source.parent().unwrap(), &place.path().join("secret"));
    assert!(matches!(item.open(), Err(FileError::Link)));
}

#[test]
fn a_directory_that_becomes_a_link_before_it_is_entered_is_an_error_and_not_listed() {
    let place = place();
    let mut walk = walk(&place);
    let first = next_file(&mut walk).source;
    let second = place.path().join(if first.ends_with("a/file") { "in/b" } else { "in/a" });
    replace_by_link(&second, &place.path().join("secret"));
    match walk.next() {
        Some(Entry::Failed(path, FileError::Link)) => assert_eq!(path, second),
        _ => unreachable!("the link is an error"),
    }
    assert!(!place.path().join("out").join(second.file_name().unwrap()).exists());
}

#[test]
fn a_link_that_the_user_named_is_followed_to_its_file() {
    let place = place();
    let link = place.path().join("link");
    symlink("secret/file", &link).unwrap();
    let item = next_file(&mut Walk::new(&[link], &place.path().join("out"), &Filter::default()).unwrap());
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
        let mut walk = walk(&place);
        while walk.next().is_some() {}
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o700)).unwrap();
        fs::File::open(&victim).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        fs::rename(&entered, place.path().join("out/away")).unwrap();
        if is_link {
            symlink(&victim, &entered).unwrap();
        } else {
            fs::rename(&victim, &entered).unwrap();
        }
        let failed = walk.finish(&[]);
        assert!(matches!(&failed[..], [(path, FileError::OtherDirectory)] if *path == entered), "{failed:?}");
        assert_eq!(look(&entered), (0o700, 0));
        assert_eq!(
            look(&place.path().join("out/b")),
            look(&place.path().join("in/b")),
            "the others are done"
        );
    }
}
