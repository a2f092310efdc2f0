//! What outputs are called without -o, and under --suffix: f.age beside f, and back; other programs, find and diff judge.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::{EVENER, Place, Ran, files};

/// A place with a keyset, an identity and a passphrase.
fn place() -> Place {
    let place = Place::with_key();
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    place.write_secret("pass", "word\n");
    place
}

fn run(place: &Place, words: &str) -> Ran {
    place.evener().args(words.split(' ')).run()
}

/// Everything below a directory as find names it, sorted.
fn found(place: &Place, root: &str) -> Vec<String> {
    let ran = place.program("find").args([root, "-mindepth", "1", "-printf", "%P\n"]).run().succeeded();
    let mut names: Vec<_> = ran.stdout_text().lines().map(str::to_owned).collect();
    names.sort();
    names
}

/// Whether two trees are alike to diff.
fn are_alike(place: &Place, one: &str, other: &str) {
    place.program("diff").args(["-r", "--no-dereference", one, other]).run().succeeded();
}

// -- beside ----------------------------------------------------------------------------------------------------------------

#[test]
fn each_file_gets_its_output_beside_it_under_the_name_of_its_format_and_loses_it_again() {
    let place = place();
    for (keys, suffix) in
        [("-i id", "age"), ("--key k.json", "tink"), ("--format openssl --passphrase-file pass", "enc")]
    {
        for name in ["f", "deep/g"] {
            place.write(name, format!("text of {name}"));
        }
        let said = run(&place, &format!("encrypt {keys} f deep/g")).succeeded();
        assert!(said.stdout().is_empty());
        for name in ["f", "deep/g"] {
            assert!(place.join(name).exists(), "the input stays");
            fs::remove_file(place.join(name)).unwrap();
        }
        run(&place, &format!("decrypt -q {keys} f.{suffix} deep/g.{suffix}")).succeeded();
        for name in ["f", "deep/g"] {
            assert_eq!(fs::read_to_string(place.join(name)).unwrap(), format!("text of {name}"));
            fs::remove_file(place.join(format!("{name}.{suffix}"))).unwrap();
        }
    }
    let other = "-q --key k.json --suffix .sealed";
    run(&place, &format!("encrypt {other} f")).succeeded();
    fs::rename(place.join("f"), place.join("before")).unwrap();
    run(&place, &format!("decrypt {other} f.sealed")).succeeded();
    assert_eq!(fs::read(place.join("f")).unwrap(), fs::read(place.join("before")).unwrap());
}

#[test]
fn age_opens_what_lies_beside_and_what_age_made_is_opened_there() {
    let Some(place) = Place::with_programs(&["age"]) else { return };
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    place.write("f", "text");
    run(&place, "encrypt -q -i id f").succeeded();
    let opened = place.program("age").args(["-d", "-i", "id", "f.age"]).run().succeeded();
    assert_eq!(opened.stdout(), b"text");
    place.write("g", "other text");
    let line = "age -r $(grep -o 'age1.*' id) -o g.age g && rm g";
    place.program("sh").args(["-c", line]).run().succeeded();
    run(&place, "decrypt -q -i id g.age").succeeded();
    assert_eq!(fs::read(place.join("g")).unwrap(), b"other text");
}

#[test]
fn one_output_is_named_and_who_waits_at_standard_output_for_it_is_told() {
    let place = place();
    place.write("f", "text");
    let hint = "evener: warning: nothing went to standard output; -o - sends it there";
    let said = run(&place, "encrypt --key k.json f").succeeded();
    assert!(said.stderr().starts_with("evener: encrypted 1 file to f.tink, 4 B in "), "{}", said.stderr());
    assert_eq!(said.stderr().lines().last(), Some(hint));
    // Nothing waits there, nothing may be said, or there are several.
    place.write("g", "text");
    let line = format!("{EVENER} encrypt --key k.json --force f >/dev/null");
    let quiet = place.program("sh").args(["-c", &line]).env("EVENER_ARBITER", "off").run().succeeded();
    let others =
        [quiet, run(&place, "encrypt -q --force --key k.json f"), run(&place, "encrypt --key k.json f g")];
    assert!(others.iter().all(|ran| !ran.stderr().contains("nothing went")));
}

#[test]
fn an_output_that_the_shell_has_made_is_an_error_that_says_what_to_do_and_nothing_else_is_touched() {
    let place = place();
    place.write("f", "text");
    for force in ["", "--force"] {
        let line = format!("{EVENER} encrypt --key k.json {force} f > f.tink");
        let ran = place.program("sh").args(["-c", &line]).env("EVENER_ARBITER", "off").run();
        ran.ended_with(2).saying("-o f.tink").saying("-o - > f.tink");
        assert_eq!(fs::read(place.join("f")).unwrap(), b"text");
        assert_eq!(fs::metadata(place.join("f.tink")).unwrap().len(), 0);
    }
    for line in ["-o - f > f.tink", "--force -o f.tink f > f.tink"] {
        let line = format!("{EVENER} encrypt -q --key k.json {line}");
        place.program("sh").args(["-c", &line]).env("EVENER_ARBITER", "off").run().succeeded();
        let back = run(&place, "decrypt --key k.json -o - f.tink").succeeded();
        assert_eq!(back.stdout(), b"text");
    }
}

#[test]
fn a_name_that_gives_none_fails_for_itself_and_the_others_are_done() {
    let place = place();
    for name in ["a", "b.tink", ".tink", "d/x"] {
        place.write(name, name);
    }
    let ran = run(&place, "encrypt -q --key k.json a b.tink").ended_with(1);
    let ran = ran.saying("b.tink: its name ends in .tink already; -o names its output");
    assert_eq!(ran.stderr().lines().count(), 1);
    let ran = run(&place, "decrypt -q --key k.json .tink a a.tink --force").ended_with(1);
    for said in [
        "evener: a: its name does not end in .tink; -o names its output\n",
        "evener: .tink: its name does not end in .tink; -o names its output\n",
        "evener: a.tink: its output would go where an input of this run lies; nothing was written there\n",
    ] {
        assert!(ran.stderr().contains(said), "{}", ran.stderr());
    }
    assert_eq!(fs::read(place.join("a")).unwrap(), b"a");
    run(&place, "encrypt --key k.json a d").ended_with(2).saying("d is a directory: -o OUT says");
    run(&place, "encrypt --key k.json a a").ended_with(2).saying("two inputs would both go to a.tink");
    run(&place, "encrypt --key k.json a ./a").ended_with(2).saying("two inputs would both go to");
    run(&place, "encrypt --key k.json --delete a").ended_with(2).saying("--delete goes with -o OUT");
    for suffix in ["", "a/b", ".evener-record"] {
        place.evener().args(["encrypt", "--key", "k.json", "--suffix", suffix, "a"]).run().ended_with(2);
    }
    run(&place, "encrypt --key k.json --suffix .x -o - a").ended_with(2).saying("--suffix is for names");
}

#[test]
fn outputs_beside_their_files_count_as_finished_where_the_record_of_each_place_says_so() {
    let place = place();
    let recipient = fs::read_to_string(place.join("id")).unwrap();
    let recipient = recipient.lines().find_map(|line| line.split("public key: ").nth(1)).unwrap();
    for dir in ["one", "two"] {
        place.write(format!("{dir}/f"), dir);
    }
    let words = format!("encrypt -r {recipient} one/f two/f");
    run(&place, &words).succeeded();
    let stat =
        || ["one/f.age", "two/f.age"].map(|name| fs::metadata(place.join(name)).unwrap().modified().unwrap());
    let before = stat();
    let again = run(&place, &words).succeeded();
    assert!(again.stderr().contains("2 outputs finished by an earlier run"), "{}", again.stderr());
    assert_eq!(stat(), before);
    let dry = run(&place, &format!("{words} --dry-run")).succeeded();
    assert_eq!(dry.stdout_text(), "");
    // The record of one tells nothing of the other.
    place.write("two/f", "changed");
    let again = run(&place, &words).ended_with(1);
    assert!(again.stderr().contains("two/f: output exists"), "{}", again.stderr());
    assert_eq!(run(&place, &format!("{words} --update --dry-run")).stdout_text(), "make again two/f\n");
    run(&place, &format!("{words} --update")).succeeded();
    run(&place, "decrypt -q --force -i id two/f.age").succeeded();
    assert_eq!(fs::read(place.join("two/f")).unwrap(), b"changed");
}

// -- trees -----------------------------------------------------------------------------------------------------------------

/// A tree of files, one of them with two names, with directories, a link, and names that look like outputs.
fn tree(place: &Place) {
    for name in ["in/a", "in/b.age", "in/.age", "in/d.age/x", "in/d/y.tmp", "in/empty/z/w"] {
        place.write(name, format!("text of {name}"));
    }
    fs::hard_link(place.join("in/a"), place.join("in/d/a2")).unwrap();
    symlink("a", place.join("in/link")).unwrap();
    symlink("nowhere", place.join("in/link.age")).unwrap();
}

const SUFFIXED: &str = "-q --key k.json --suffix .age -o";

#[test]
fn files_of_a_tree_get_a_suffix_and_lose_it_and_directories_and_links_keep_their_names() {
    let place = place();
    tree(&place);
    run(&place, &format!("encrypt {SUFFIXED} out in")).succeeded();
    let is_file = |name: &String| place.join("in").join(name).symlink_metadata().unwrap().is_file();
    let expected =
        found(&place, "in").into_iter().map(|name| if is_file(&name) { name + ".age" } else { name });
    let mut expected: Vec<_> = expected.collect();
    expected.sort();
    assert_eq!(found(&place, "out"), expected);
    let same = place.program("find").args(["out", "-samefile", "out/a.age"]).run().succeeded();
    assert_eq!(same.stdout_text().lines().count(), 2, "hard links are kept");
    run(&place, &format!("decrypt {SUFFIXED} back out")).succeeded();
    are_alike(&place, "in", "back");
    run(&place, "verify -q --key k.json --suffix .age --against in out").succeeded();
    fs::write(place.join("in/d/more"), "").unwrap();
    run(&place, "verify -q --key k.json --suffix .age --against in out")
        .ended_with(1)
        .saying("out/d/more.age");
    fs::remove_file(place.join("in/d/more")).unwrap();
    fs::remove_file(place.join("in/a")).unwrap();
    run(&place, "verify -q --key k.json --suffix .age --against in out")
        .ended_with(1)
        .saying("counterpart at in/a");
    // Single files into a directory get it too.
    place.write("f", "text");
    run(&place, &format!("encrypt {SUFFIXED} out/ f")).succeeded();
    run(&place, &format!("encrypt {SUFFIXED} several f in")).succeeded();
    assert!(place.join("out/f.age").exists() && place.join("several/f.age").exists());
    assert!(place.join("several/in/b.age.age").exists());
}

#[test]
fn a_second_run_finds_its_work_done_and_updates_rehearses_filters_and_deletes_by_names_of_the_source() {
    let place = place();
    tree(&place);
    let words = format!("encrypt {SUFFIXED} out in");
    run(&place, &words).succeeded();
    assert_eq!(run(&place, &format!("{words} --dry-run --delete")).succeeded().stdout_text(), "");
    let json = run(&place, &format!("{words} --json -")).succeeded();
    let report: serde_json::Value = serde_json::from_slice(json.stdout()).unwrap();
    assert_eq!((&report["files"], &report["already_done"]), (&0.into(), &9.into()));
    place.write("in/b.age", "changed");
    fs::remove_file(place.join("in/d/y.tmp")).unwrap();
    fs::remove_file(place.join("in/link")).unwrap();
    fs::remove_dir_all(place.join("in/empty")).unwrap();
    let dry = run(&place, &format!("{words} --dry-run --update --delete --exclude *.tmp")).succeeded();
    assert_eq!(
        dry.stdout_text(),
        "make again in/b.age\ndelete out/empty/z/w.age\ndelete out/empty/z\ndelete out/empty\ndelete out/link\n"
    );
    run(&place, &format!("{words} --update --delete --exclude *.tmp")).succeeded();
    assert!(place.join("out/d/y.tmp.age").exists(), "what the filter leaves out stays");
    run(&place, &format!("{words} --update --delete")).succeeded();
    run(&place, &format!("decrypt {SUFFIXED} back out")).succeeded();
    are_alike(&place, "in", "back");
    // The other way round: what was decrypted goes with what it came from.
    fs::remove_file(place.join("out/d.age/x.age")).unwrap();
    run(&place, &format!("decrypt {SUFFIXED} back out --delete")).succeeded();
    assert!(!place.join("back/d.age/x").exists() && place.join("back/.age").exists());
    run(&place, &format!("encrypt {SUFFIXED} some in --include a")).succeeded();
    assert_eq!(files(&place.join("some")), [Path::new("a.age")]);
}

#[test]
fn a_name_that_two_want_goes_to_the_file_and_nothing_is_lost_run_after_run() {
    for (kind, options) in
        [("dir", ""), ("dir", "--update"), ("dir", "--force"), ("link", "--update"), ("link", "--force")]
    {
        let place = place();
        place.write("in/x", "mine");
        run(&place, &format!("encrypt {SUFFIXED} out in")).succeeded();
        let rival = place.join("in/x.age");
        match kind {
            "dir" => drop(place.write("in/x.age/inner", "inner")),
            _ => symlink("x", &rival).unwrap(),
        }
        for _ in 0..2 {
            let words = format!("encrypt {SUFFIXED} out in {options}");
            let words = words.trim_end();
            let dry = run(&place, &format!("{words} --dry-run")).ended_with(1);
            dry.saying("in/x.age: the output of in/x takes its name");
            let ran = run(&place, words).ended_with(1);
            ran.saying("in/x.age: the output of in/x takes its name");
            let back = run(&place, "decrypt --key k.json -o - out/x.age").succeeded();
            assert_eq!(back.stdout(), b"mine", "{kind} {options}");
        }
        // Without the file the name is free, and with --exclude too.
        run(&place, &format!("encrypt {SUFFIXED} other in --exclude /x")).succeeded();
        assert_eq!(found(&place, "other")[0], "x.age");
    }
}

#[test]
fn a_file_without_the_suffix_is_a_failure_in_a_tree_but_the_key_of_the_tree_is_none() {
    let place = place();
    place.write("in/f", "text");
    let keys = "-q --passphrase-file pass --work-factor 10 --suffix .enc";
    run(&place, &format!("encrypt {keys} -o out in")).succeeded();
    assert!(place.join("out/.evener-identity.age").exists());
    let keys = "-q --passphrase-file pass --suffix .enc";
    run(&place, &format!("decrypt {keys} -o back out")).succeeded();
    assert_eq!(run(&place, &format!("decrypt {keys} -o back out --dry-run")).succeeded().stdout_text(), "");
    run(&place, &format!("verify {keys} --against in out")).succeeded();
    are_alike(&place, "in", "back");
    place.write("out/README", "not sealed");
    run(&place, &format!("decrypt {keys} -o back out"))
        .ended_with(1)
        .saying("out/README: its name does not end in .enc");
    // An output may not take the place of the tree's key.
    place.write("keys/.evener-identity", "text");
    let ran = run(&place, "encrypt -q --passphrase-file pass --suffix .age -o sealed keys");
    ran.ended_with(2).saying("keys/.evener-identity has the name");
}
