//! Drafts of a run that lives: whatever order its inputs come in, no look for what killed runs left takes one of its own. `tar` and the
//! inputs themselves are the judges.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Place, allow, files, noise, there_is};

/// What a shell does in a place, without an error.
fn shell(place: &Place, words: &str) {
    place.program("sh").args(["-ec", words]).run().succeeded();
}

/// Paths below `root` with what tar keeps of them.
fn listing(root: &Path) -> String {
    let find = [".", "-mindepth", "1", "-printf", "%P %y %m %T@\n"];
    let output = Command::new("find").args(find).current_dir(root).output().unwrap();
    let mut lines: Vec<_> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines.join("\n")
}

#[test]
fn inputs_of_two_directories_by_turns_are_all_done() {
    let place = Place::with_key();
    let names: Vec<_> = (0..600).map(|number| format!("{}/{}", ["a", "b"][number % 2], number / 2)).collect();
    for (number, name) in names.iter().enumerate() {
        place.write(name, noise(number as u64, 300));
    }
    place.evener().args(["encrypt", "--key", "k.json", "-q"]).args(&names).run().succeeded();
    for dir in ["a", "b"] {
        assert_eq!(files(&place.join(dir)).len(), 600, "each beside its output");
    }
    let outputs = names.iter().map(|name| format!("{name}.tink"));
    names.iter().for_each(|name| fs::remove_file(place.join(name)).unwrap());
    place.evener().args(["decrypt", "--key", "k.json", "-q"]).args(outputs).run().succeeded();
    for (number, name) in names.iter().enumerate() {
        assert!(fs::read(place.join(name)).unwrap() == noise(number as u64, 300), "{name}");
    }
}

#[test]
fn an_archive_that_names_what_is_in_a_directory_in_any_order_is_unpacked_as_tar_does() {
    if !there_is("tar") {
        return crate::common::skipped("tar is not installed");
    }
    let place = Place::with_key();
    let directories = ["", "d/", "d/e/", "d/e/deep/"];
    for (number, dir) in (0..24_u64).zip(directories.into_iter().cycle()) {
        place.write(format!("src/{dir}f{number}"), noise(number, 100));
    }
    for (order, members) in [
        ("depth first", "find . -mindepth 1 -depth | tar -c --no-recursion -T -"),
        ("by turns", "find . -not -type d | sort -V | tar -c --no-recursion -T -"),
        (
            "directories at the end",
            "{ find . -type f; find . -mindepth 1 -type d; } | tar -c --no-recursion -T -",
        ),
        ("a directory in the middle", "tar -c --no-recursion d/e/f2 d/f1 d d/e/f6 d/f5 d/e d/e/f10"),
        ("a directory twice", "tar -c --no-recursion d d/f1 d/e/f2 d d/f5 d/e"),
    ] {
        shell(&place, "find src -exec touch -d '2001-02-03 04:05:06' {} +; chmod 555 src/d src/d/e");
        shell(&place, &format!("cd src; {members} > ../x.tar"));
        shell(&place, "rm -rf as-tar back; mkdir as-tar; tar -x -p -C as-tar -f x.tar");
        place
            .evener()
            .args(["encrypt", "--key", "k.json", "-q", "-o", "x.tink", "x.tar", "--force"])
            .run()
            .succeeded();
        place
            .evener()
            .args(["decrypt", "--tar", "--key", "k.json", "-q", "-o", "back", "x.tink"])
            .run()
            .succeeded();
        shell(&place, "diff -r as-tar back");
        let told = |line: &&str| {
            // What no member tells of has the time at which it was made.
            line.contains(" f ") || order != "by turns"
        };
        let [back, by_tar] = ["back", "as-tar"].map(|root| listing(&place.join(root)));
        let [back, by_tar] = [&back, &by_tar].map(|text| text.lines().filter(told).collect::<Vec<_>>());
        assert_eq!(back, by_tar, "{order}");
        shell(&place, "chmod -R u+w src back as-tar");
    }
}

#[test]
fn a_read_only_directory_that_an_archive_names_once_more_ends_as_it_was_told() {
    let place = Place::with_key();
    for number in 0..6_u64 {
        place.write(format!("src/ro/{number}"), noise(number, 100));
        place.write(format!("src/other/{number}"), noise(number, 100));
    }
    allow(&place.join("src/ro"), 0o555);
    shell(&place, "touch -d '2001-02-03 04:05:06' src/ro");
    shell(&place, "cd src; tar -c --no-recursion ro ro/0 other/0 ro/1 other/1 ro/2 other/2 > ../x.tar");
    place.evener().args(["encrypt", "--key", "k.json", "-q", "-o", "x.tink", "x.tar"]).run().succeeded();
    place
        .evener()
        .args(["decrypt", "--tar", "--key", "k.json", "-q", "-o", "back", "x.tink"])
        .run()
        .succeeded();
    let ro = |root: &str| {
        let listing = listing(&place.join(root));
        listing.lines().find(|line| line.starts_with("ro ")).map(str::to_owned)
    };
    assert_eq!(ro("back"), ro("src"));
    shell(&place, "chmod u+w src/ro back/ro");
}
