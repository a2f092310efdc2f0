//! Globs that leave out or take: in a run, in its archive and when that is unpacked, and when it is verified afterwards; judged by what GNU tar
//! takes and leaves where it knows the same.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::PathBuf;

use crate::common::{EVENER, Place, Ran, files};

fn run(place: &Place, line: &str) -> Ran {
    place.evener().args(line.split(' ')).run()
}

/// A tree with names in the places that globs tell apart, and an identity.
fn sown(place: &Place) {
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    for name in ["cache/x", "cache/deep/y", "sub/cache/z", "sub/x.tmp", "x.tmp", "kept", "sub/kept"] {
        place.write(format!("in/{name}"), name);
    }
}

fn below(place: &Place, name: &str) -> Vec<PathBuf> {
    let mut names = files(&place.join(name));
    names.sort();
    names
}

#[test]
fn what_is_left_out_of_an_archive_that_is_unpacked_is_left_out_with_all_below_it() {
    let Some(place) = Place::with_programs(&["tar", "age"]) else { return };
    sown(&place);
    run(&place, "encrypt --tar -q -i id -o a.age in").succeeded();
    let cases =
        [("cache", "cache"), ("/in/cache/", "in/cache"), ("in/cache", "in/cache"), ("*.tmp", "*.tmp")];
    for (number, (glob, of_tar)) in cases.into_iter().enumerate() {
        let (ours, theirs) = (format!("ours{number}"), format!("theirs{number}"));
        run(&place, &format!("decrypt --tar -q -i id --exclude {glob} -o {ours} a.age")).succeeded();
        let anchor = if of_tar.contains('/') { "--anchored" } else { "--no-anchored" };
        let tar = format!("age -d -i id a.age | tar -x {anchor} --exclude='{of_tar}' -C {theirs}");
        fs::create_dir(place.join(&theirs)).unwrap();
        place.program("sh").args(["-c", &tar]).run().succeeded();
        assert_eq!(below(&place, &ours), below(&place, &theirs), "{glob}");
        assert!(below(&place, &ours).len() < 7, "{glob}");
    }
    run(&place, "decrypt --tar -q -i id --include kept --exclude sub -o some a.age").succeeded();
    assert_eq!(below(&place, "some"), [PathBuf::from("in/kept")]);
}

#[test]
fn a_report_may_lie_below_a_directory_that_is_left_out() {
    let place = Place::new();
    sown(&place);
    run(&place, "encrypt -q -i id --exclude /sub/ --json in/sub/report -o out in").succeeded();
    run(&place, "encrypt -q -i id --json in/cache/report -o other in")
        .ended_with(2)
        .saying("would lie among");
}

#[test]
fn what_was_left_out_of_a_tree_is_left_out_of_its_verification_by_the_same_options() {
    let place = Place::new();
    sown(&place);
    for (number, options) in
        ["--exclude *.tmp --exclude /cache/", "--include kept", "--exclude sub"].into_iter().enumerate()
    {
        for suffix in ["", " --suffix .age"] {
            let out = format!("out{number}{}", suffix.len());
            run(&place, &format!("encrypt -q -i id{suffix} {options} -o {out} in")).succeeded();
            let verify = format!("verify -q -i id{suffix} --against in");
            run(&place, &format!("{verify} {options} {out}")).succeeded();
            let unlike = run(&place, &format!("{verify} {out}")).ended_with(1);
            assert!(unlike.stderr().contains("has no counterpart"), "{}", unlike.stderr());
            // What they do not leave out has to be there.
            place.write("in/late/kept", "");
            let late = run(&place, &format!("{verify} {options} {out}")).ended_with(1);
            late.saying("in/late/kept: has no counterpart");
            fs::remove_dir_all(place.join("in/late")).unwrap();
        }
    }
    // A damaged file that is left out is not looked at, and one that is taken is found.
    fs::write(place.join("out00/sub/kept"), "damaged").unwrap();
    run(&place, "verify -q -i id --exclude sub out00").succeeded();
    run(&place, "verify -q -i id --exclude cache out00").ended_with(1).saying("out00/sub/kept: ");
}

#[test]
fn a_glob_is_a_name_whatever_sign_it_begins_or_ends_with() {
    let place = Place::new();
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    for name in ["#a", "!a", "a ", "a", "b"] {
        place.write(format!("in/{name}"), name);
    }
    for (number, (glob, name)) in [("#a", "#a"), ("\\!a", "!a"), ("a ", "a ")].into_iter().enumerate() {
        let (only, others) = (format!("only{number}"), format!("others{number}"));
        let encrypt = |option: &str, out: &str| {
            place
                .evener()
                .args(["encrypt", "-q", "-i", "id", option, glob, "-o", out, "in"])
                .run()
                .succeeded()
        };
        encrypt("--include", &only);
        encrypt("--exclude", &others);
        assert_eq!(below(&place, &only), [PathBuf::from(name)], "{glob}");
        let left = below(&place, &others);
        assert!(left.len() == 4 && !left.contains(&PathBuf::from(name)), "{glob}: {left:?}");
    }
    for option in ["--include", "--exclude"] {
        let refused = place.evener().args(["encrypt", "-i", "id", option, "!a", "-o", "no", "in"]).run();
        refused.ended_with(2).saying("begins with !");
    }
}

#[test]
fn an_archive_goes_to_standard_output_wherever_the_run_is_started_but_not_into_its_own_input() {
    let Some(place) = Place::with_programs(&["tar", "age"]) else { return };
    sown(&place);
    let shell = |line: &str| place.program("sh").args(["-c", line, EVENER]).run();
    let list = "age -d -i ../id | tar -t | grep -c x.tmp";
    for line in [
        format!("cd in && \"$0\" encrypt --tar -i ../id . | {list}"),
        format!("cd in && \"$0\" encrypt --tar -q -i ../id -o /dev/stdout . | {list}"),
        format!("cd in && \"$0\" encrypt --tar -i ../id ../in > ../a.age && cat ../a.age | {list}"),
    ] {
        assert_eq!(shell(&line).succeeded().stdout_text(), "2\n", "{line}");
    }
    for line in [
        "cd in && \"$0\" encrypt --tar -i ../id . > own.age",
        "cd in && \"$0\" encrypt --tar -i ../id -o /dev/fd/3 . 3> own.age",
        "\"$0\" encrypt --tar -i id -o in/own.age in",
    ] {
        shell(line).ended_with(2).saying("lies inside the input");
    }
}
