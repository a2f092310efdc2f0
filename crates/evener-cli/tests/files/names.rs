//! Names that the user gives: strangers' links lead to no key, no input and no report. (Below a tree: `traced_calls.rs`, `rivals.rs`.)
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::{lchown, symlink};

use crate::common::Place;

#[test]
fn a_stranger_s_link_leads_to_no_key_no_input_and_no_report() {
    let Some(place) = Place::of_root("make a link another user's") else { return };
    place.write("in/f", "text");
    place.write("pass", "word");
    for (target, link) in
        [("k.json", "key"), ("in", "tree"), ("in/f", "file"), ("pass", "word"), ("victim", "report")]
    {
        symlink(target, place.join(link)).unwrap();
    }
    let attempts: [&[&str]; 5] = [
        &["encrypt", "--key", "key", "-o", "c", "in/f"],
        &["encrypt", "--key", "k.json", "-o", "c", "tree"],
        &["encrypt", "--key", "k.json", "-o", "c", "file"],
        &["encrypt", "--format", "openssl", "--passphrase-file", "word", "-o", "c", "in/f"],
        &["encrypt", "--key", "k.json", "-o", "c", "--json", "report", "in/f"],
    ];
    for arguments in attempts {
        let link = arguments.iter().find(|argument| place.join(argument).is_symlink()).unwrap();
        lchown(place.join(link), Some(65_534), None).unwrap();
        let ran = place.evener().arg(arguments[0]).arg("-q").args(&arguments[1..]).run();
        assert_ne!(ran.code(), Some(0), "{arguments:?}");
        ran.saying("belongs to another user (uid 65534)");
        assert!(!place.join("victim").exists());
        fs::remove_file(place.join("c")).or_else(|_| fs::remove_dir_all(place.join("c"))).ok();
        // One's own leads on.
        lchown(place.join(link), Some(0), None).unwrap();
        place.evener().arg(arguments[0]).arg("-q").args(&arguments[1..]).run().succeeded();
        fs::remove_file(place.join("c")).or_else(|_| fs::remove_dir_all(place.join("c"))).unwrap();
        fs::remove_file(place.join("victim")).ok();
    }
}

#[test]
fn a_name_that_will_be_too_long_is_told_before_the_work() {
    let place = Place::with_key();
    let name = "n".repeat(255);
    place.write(&name, "text");
    let run =
        place.evener().args(["encrypt", "-q", "--key", "k.json", "-o", "out/", "--suffix", ".age", &name]);
    run.run().ended_with(1).saying("cannot look at the output: File name too long");
}
