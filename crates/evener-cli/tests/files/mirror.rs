//! A tree and its mirror: what is left out, what is deleted, and what a dry run says of it.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::common::{self, Place, Ran, files, tree};

fn place() -> Place {
    let place = Place::with_key();
    for name in ["a", "b.tmp", "deep/c", "deep/d.tmp", "deep/er/e", "cache/f", "gone/g"] {
        place.write(format!("in/{name}"), name);
    }
    place
}

fn run(place: &Place, options: &[&str]) -> Ran {
    place.evener().args(["encrypt", "-q", "--key", "k.json", "-o", "out"]).args(options).arg("in").run()
}

fn names(place: &Place, folder: &str) -> BTreeSet<PathBuf> {
    files(&place.join(folder)).into_iter().collect()
}

#[test]
fn globs_leave_out_what_they_match_and_include_takes_only_that() {
    let place = place();
    run(&place, &["--exclude", "*.tmp", "--exclude", "/cache/"]).succeeded();
    assert_eq!(names(&place, "out"), ["a", "deep/c", "deep/er/e", "gone/g"].map(PathBuf::from).into());
    assert!(!place.join("out/cache").exists());
    fs::remove_dir_all(place.join("out")).unwrap();
    run(&place, &["--include", "*.tmp", "--exclude", "deep/**"]).succeeded();
    assert_eq!(names(&place, "out"), ["b.tmp"].map(PathBuf::from).into());
    run(&place, &["--exclude", "a{b"]).ended_with(2);
    for blank in ["", " "] {
        run(&place, &["--exclude", blank]).ended_with(2).saying("a glob is empty");
        run(&place, &["--include", blank]).ended_with(2).saying("a glob is empty");
    }
}

#[test]
fn of_a_file_with_several_names_the_output_of_one_that_is_gone_goes_too() {
    let place = Place::with_key();
    for (at, change) in ["removed", "renamed"].into_iter().enumerate() {
        let (source, out) = (format!("in{at}"), format!("out{at}"));
        place.write(format!("{source}/a"), "text");
        let name = |name: &str| place.join(&source).join(name);
        fs::hard_link(name("a"), name("b")).unwrap();
        let run = |options: &[&str]| {
            let run = place.evener().args(["encrypt", "-q", "--key", "k.json", "-o", &out]);
            run.args(options).arg(&source).run().succeeded();
        };
        run(&[]);
        match change {
            "removed" => fs::remove_file(name("a")).unwrap(),
            _ => fs::rename(name("a"), name("b2")).unwrap(),
        }
        run(&["--update", "--delete"]);
        assert_eq!(names(&place, &out), names(&place, &source), "{change}");
    }
}

#[test]
fn of_a_file_with_several_names_one_goes_whose_other_became_a_directory() {
    let place = Place::with_key();
    place.write("in/a", "text");
    fs::hard_link(place.join("in/a"), place.join("in/z")).unwrap();
    run(&place, &[]).succeeded();
    fs::remove_file(place.join("in/a")).unwrap();
    fs::remove_file(place.join("in/z")).unwrap();
    place.write("in/a/inner", "text");
    run(&place, &["--update", "--delete"]).succeeded();
    assert_eq!(names(&place, "out"), names(&place, "in"));
}

#[test]
fn outputs_without_source_are_named_by_a_dry_run_and_then_deleted_and_no_other_file_is() {
    let place = place();
    run(&place, &[]).succeeded();
    place.write("out/mine", "not Evener's");
    place.write("out/gone/mine", "not Evener's either");
    place.write("out/deep/c", "changed by hand");
    for name in ["a", "deep/c"] {
        fs::remove_file(place.join("in").join(name)).unwrap();
    }
    for name in ["gone", "cache", "deep/er"] {
        fs::remove_dir_all(place.join("in").join(name)).unwrap();
    }
    let before = tree(&place.join("out"));
    let dry = run(&place, &["--delete", "--dry-run", "--exclude", "cache"]).succeeded();
    let said: BTreeSet<&str> = dry.stdout_text().lines().collect();
    let expected = ["out/a", "out/deep/er", "out/deep/er/e", "out/gone/g"];
    assert_eq!(said, expected.map(|name| format!("delete {name}")).iter().map(String::as_str).collect());
    assert!(tree(&place.join("out")) == before, "nothing was written");
    run(&place, &["--delete", "--exclude", "cache"]).succeeded();
    let left = ["b.tmp", "cache/f", "deep/c", "deep/d.tmp", "gone/mine", "mine"].map(PathBuf::from);
    assert_eq!(names(&place, "out"), left.into());
    assert!(!place.join("out/deep/er").exists());
}

#[test]
fn nothing_is_deleted_behind_an_error_or_where_the_source_is_empty() {
    let place = place();
    run(&place, &[]).succeeded();
    fs::remove_file(place.join("in/a")).unwrap();
    place.write("out/b.tmp", "somebody else's");
    let ran = run(&place, &["--delete"]).ended_with(1);
    assert!(ran.stderr().contains("nothing was deleted: not every file was done"));
    assert!(place.join("out/a").exists());
    fs::rename(place.join("in"), place.join("moved")).unwrap();
    fs::create_dir(place.join("in")).unwrap();
    run(&place, &["--delete"]).succeeded().saying("nothing was deleted: no source was found");
    assert!(place.join("out/deep/c").exists());
}

#[test]
fn a_link_in_the_output_leads_the_deletion_nowhere() {
    let place = place();
    run(&place, &[]).succeeded();
    fs::create_dir(place.join("victim")).unwrap();
    fs::rename(place.join("out/gone"), place.join("victim/gone")).unwrap();
    std::os::unix::fs::symlink("../victim/gone", place.join("out/gone")).unwrap();
    fs::remove_dir_all(place.join("in/gone")).unwrap();
    run(&place, &["--delete"]).succeeded();
    assert!(place.join("victim/gone/g").exists());
}

#[test]
fn a_dry_run_tells_what_would_be_done_and_writes_nothing() {
    let place = place();
    let dry = |options: &[&str]| {
        let ran = run(&place, &[options, &["-n"]].concat()).succeeded();
        ran.stdout_text().lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    assert_eq!(dry(&[]).len(), 7);
    assert!(dry(&[]).contains("make in/deep/er/e"));
    assert!(!place.join("out").exists());
    run(&place, &[]).succeeded();
    // A file of the very tick of its encryption would be looked into.
    std::thread::sleep(std::time::Duration::from_millis(50));
    run(&place, &[]).succeeded();
    assert_eq!(dry(&[]), BTreeSet::new());
    place.write("in/a", "another text");
    assert_eq!(dry(&["--update"]), ["make again in/a".to_owned()].into());
    assert_eq!(dry(&[]), ["look inside in/a".to_owned()].into());
    assert_eq!(dry(&["--force"]).len(), 7);
    place.evener().args(["encrypt", "-q", "--key", "k.json", "-n", "-o", "-", "in/a"]).run().ended_with(2);
}

/// What `--json` says of a run: `files`, `already_done`.
fn counts(ran: &Ran) -> [u64; 2] {
    let report: serde_json::Value = serde_json::from_slice(ran.stdout()).unwrap();
    ["files", "already_done"].map(|name| report[name].as_u64().unwrap())
}

fn link_to(place: &Place, target: &str) {
    let link = place.join("in/link");
    fs::remove_file(&link).ok();
    std::os::unix::fs::symlink(target, link).unwrap();
}

#[test]
fn a_symbolic_link_is_rehearsed_updated_and_deleted_like_a_file() {
    let place = place();
    link_to(&place, "a");
    let said = |options: &[&str]| {
        let ran = run(&place, &[options, &["-n"]].concat());
        (
            ran.code(),
            ran.stdout_text().lines().any(|line| line.ends_with(" in/link")),
            ran.stderr().to_owned(),
        )
    };
    assert!(said(&[]).1, "it would be made");
    run(&place, &[]).succeeded();
    assert_eq!(said(&[]), (Some(0), false, String::new()), "it is done");
    link_to(&place, "deep/c");
    assert!(said(&[]).2.contains("in/link: output exists") && said(&[]).0 == Some(1));
    run(&place, &[]).ended_with(1).saying("in/link: output exists");
    assert!(said(&["--update"]).1);
    run(&place, &["--update"]).succeeded();
    assert_eq!(fs::read_link(place.join("out/link")).unwrap(), PathBuf::from("deep/c"));
    // One that the user has changed is not Evener's any more.
    fs::remove_file(place.join("out/link")).unwrap();
    std::os::unix::fs::symlink("mine", place.join("out/link")).unwrap();
    run(&place, &["--update"]).ended_with(1);
    fs::remove_file(place.join("in/link")).unwrap();
    run(&place, &["--delete"]).succeeded();
    assert!(place.join("out/link").is_symlink());
    link_to(&place, "mine");
    run(&place, &[]).succeeded();
    fs::remove_file(place.join("in/link")).unwrap();
    let dry = run(&place, &["--delete", "-n"]).succeeded();
    assert!(dry.stdout_text().lines().any(|line| line == "delete out/link"), "{}", dry.stdout_text());
    run(&place, &["--delete"]).succeeded();
    assert!(!place.join("out/link").is_symlink());
}

#[test]
fn names_of_one_file_are_done_by_the_record_stay_names_of_one_file_and_go_together() {
    let place = place();
    let link = |name: &str| fs::hard_link(place.join("in/a"), place.join(name)).unwrap();
    link("in/a2");
    link("in/deep/a3");
    let again = |options: &[&str]| counts(&run(&place, &[options, &["--json", "-"]].concat()).succeeded());
    assert_eq!(again(&[]), [9, 0]);
    let output = |name: &str| std::os::unix::fs::MetadataExt::ino(&fs::metadata(place.join(name)).unwrap());
    let one = |names: &[&str]| names.iter().all(|name| output(name) == output("out/a"));
    assert!(one(&["out/a2", "out/deep/a3"]));
    // By the record alone: what the outputs hold is not looked at.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let dry = run(&place, &["-n"]).succeeded();
    assert_eq!(dry.stdout_text(), "", "all is done");
    // A name that went is linked again, and one that became a file of its own.
    fs::remove_file(place.join("out/a2")).unwrap();
    fs::copy(place.join("out/a"), place.join("own")).unwrap();
    fs::rename(place.join("own"), place.join("out/deep/a3")).unwrap();
    assert_eq!(again(&[]).iter().sum::<u64>(), 9);
    assert!(one(&["out/a2", "out/deep/a3"]));
    // A changed one is made once and linked again.
    fs::write(place.join("in/a"), "another text").unwrap();
    assert_eq!(again(&["--update"]), [3, 6]);
    assert!(one(&["out/a2", "out/deep/a3"]));
    for name in ["a", "a2", "deep/a3"] {
        fs::remove_file(place.join("in").join(name)).unwrap();
    }
    let dry = run(&place, &["--delete", "-n"]).succeeded();
    assert_eq!(dry.stdout_text().lines().count(), 3, "{}", dry.stdout_text());
    run(&place, &["--delete"]).succeeded();
    assert!(
        !place.join("out/a").exists()
            && !place.join("out/a2").exists()
            && !place.join("out/deep/a3").exists()
    );
}

#[test]
fn a_dry_run_under_a_passphrase_makes_no_identity() {
    let place = place();
    place.write_secret("pass", "word\n");
    let words =
        ["encrypt", "-q", "-n", "--passphrase-file", "pass", "--work-factor", "10", "-o", "out", "in"];
    let ran = place.evener().args(words).run().succeeded();
    assert_eq!(ran.stdout_text().lines().count(), 7);
    assert!(!place.join("out").exists());
    assert!(!place.join("state").exists(), "nor anything for later runs");
}

/// What stands under the name of an output and is not Evener's, or was changed since.
fn put_in_the_way(place: &Place, kind: &str) {
    let output = place.join("out/deep/c");
    fs::remove_file(&output).unwrap();
    match kind {
        "another's file" => fs::write(&output, "somebody else's").unwrap(),
        "a file that was changed" => {
            let sealed = fs::read(place.join("out/a")).unwrap();
            fs::write(&output, &sealed[..sealed.len() - 1]).unwrap();
        }
        "a directory" => fs::create_dir(&output).unwrap(),
        "a link" => std::os::unix::fs::symlink("../a", &output).unwrap(),
        "a link to nothing" => std::os::unix::fs::symlink("nothing", &output).unwrap(),
        kind => unreachable!("{kind}"),
    }
}

#[test]
fn update_and_deletion_leave_alone_what_is_in_the_way_and_then_all_that_lost_its_source() {
    for kind in ["another's file", "a file that was changed", "a directory", "a link", "a link to nothing"] {
        let place = place();
        run(&place, &[]).succeeded();
        put_in_the_way(&place, kind);
        place.write("in/deep/c", "its source has changed, too");
        fs::remove_dir_all(place.join("in/gone")).unwrap();
        let before = tree(&place.join("out"));
        let ran = run(&place, &["--update", "--delete"]).ended_with(1);
        for said in ["in/deep/c: ", "nothing was deleted: not every file was done"] {
            assert!(ran.stderr().contains(said), "{kind}: {}", ran.stderr());
        }
        assert!(tree(&place.join("out")) == before, "{kind}");
        // Out of the way, all is done.
        let output = place.join("out/deep/c");
        fs::remove_file(&output).or_else(|_| fs::remove_dir(&output)).unwrap();
        run(&place, &["--update", "--delete"]).succeeded();
        assert!(output.is_file() && !place.join("out/gone").exists(), "{kind}");
    }
}

#[test]
fn a_file_that_became_a_directory_is_updated_and_another_s_file_makes_no_way_for_it() {
    let become_a_directory = |place: &Place| {
        fs::remove_file(place.join("in/a")).unwrap();
        place.write("in/a/b/c", "in a directory");
    };
    let place = place();
    run(&place, &[]).succeeded();
    become_a_directory(&place);
    run(&place, &[]).ended_with(1).saying("in/a: no directory stands in its place in the output");
    assert!(place.join("out/a").is_file());
    run(&place, &["--update", "--delete"]).succeeded();
    assert!(place.join("out/a/b/c").is_file());
    // And back: what stands in a directory is not replaced by a file.
    fs::remove_dir_all(place.join("in/a")).unwrap();
    place.write("in/a", "a file again");
    for options in [&["--update", "--delete"][..], &["--force"], &["--update", "-n"], &[]] {
        let ran = run(&place, options).ended_with(1);
        assert!(
            ran.stderr().contains("in/a: a directory stands under its name in the output"),
            "{options:?}"
        );
        assert!(place.join("out/a/b/c").is_file());
    }
    for (is_link, option, is_replaced) in [
        (false, "--update", false),
        (false, "--force", true),
        (true, "--update", false),
        (true, "--force", false),
    ] {
        let place = self::place();
        become_a_directory(&place);
        fs::create_dir_all(place.join("out")).unwrap();
        if is_link {
            std::os::unix::fs::symlink("../elsewhere", place.join("out/a")).unwrap();
            fs::create_dir(place.join("elsewhere")).unwrap();
        } else {
            place.write("out/a", "somebody else's");
        }
        let ran = run(&place, &[option]);
        assert_eq!(ran.code(), Some(i32::from(!is_replaced)), "{option}, a link: {is_link}");
        assert_eq!(place.join("out/a/b/c").is_file(), is_replaced, "{option}, a link: {is_link}");
    }
}

#[test]
fn what_is_an_input_is_no_output_of_the_same_run() {
    let place = Place::with_key();
    for name in ["big/sub/y", "big/sub/sub/z", "big/sub/sub/sub/z", "top/a/b", "deep/a/b", "deep/a/c"] {
        place.write(name, name);
    }
    let all = || (tree(&place.join("big/sub")), fs::read(place.join("top/a/b")).unwrap());
    let before = all();
    for (output, inputs, left_out) in [
        ("big", &["big/sub"][..], "big/sub/sub"),
        ("top", &["deep/a", "top/a/b"], "deep/a/b"),
        (".", &["big", "deep"], "big"),
    ] {
        let said = format!("{left_out}: its output would go where an input of this run lies");
        for dry in [&["--dry-run"][..], &[]] {
            let run = place.evener().args(["encrypt", "-q", "--force", "--key", "k.json", "-o", output]);
            let ran = run.args(inputs).args(dry).run().ended_with(1);
            assert!(ran.stderr().contains(&said), "{dry:?}: {}", ran.stderr());
        }
    }
    assert!(all() == before, "no input was touched");
    assert!(
        place.join("big/y").is_file() && place.join("top/a/c").is_file() && place.join("top/b").is_file()
    );
}

#[test]
fn directories_that_evener_made_go_with_their_sources_empty_or_not_and_no_others() {
    let place = place();
    for dir in ["in/empty", "in/nest/ed/empty", "in/stays/empty"] {
        fs::create_dir_all(place.join(dir)).unwrap();
    }
    run(&place, &[]).succeeded();
    for dir in ["out/theirs", "out/nest/theirs", "out/gone/theirs/empty"] {
        fs::create_dir_all(place.join(dir)).unwrap();
    }
    for dir in ["in/empty", "in/nest", "in/gone", "in/stays/empty"] {
        fs::remove_dir_all(place.join(dir)).unwrap();
    }
    let before = tree(&place.join("out"));
    let dry = run(&place, &["--delete", "--dry-run"]).succeeded();
    let said: BTreeSet<&str> = dry.stdout_text().lines().collect();
    let gone = ["out/empty", "out/gone/g", "out/nest/ed", "out/nest/ed/empty", "out/stays/empty"];
    assert_eq!(said, gone.map(|name| format!("delete {name}")).iter().map(String::as_str).collect());
    assert!(tree(&place.join("out")) == before, "nothing was written");
    run(&place, &["--delete"]).succeeded();
    for name in gone {
        assert!(!place.join(name).exists(), "{name}");
    }
    for name in ["out/theirs", "out/nest/theirs", "out/gone/theirs/empty", "out/stays"] {
        assert!(place.join(name).exists(), "{name}");
    }
    // One that another user made again is his.
    fs::remove_dir(place.join("out/nest/theirs")).unwrap();
    fs::remove_dir(place.join("out/nest")).unwrap();
    fs::create_dir(place.join("out/keeps_an_inode")).unwrap();
    fs::create_dir(place.join("out/nest")).unwrap();
    run(&place, &["--delete"]).succeeded();
    assert!(place.join("out/theirs").exists());
}

#[test]
fn a_tree_deeper_than_a_stack_is_rehearsed_and_deleted() {
    let place = Place::with_key();
    let script = "import os\nos.mkdir('in')\nos.chdir('in')\nopen('stays','w').close()\nfor n in range(2000):\n \
                  os.mkdir('d'); os.chdir('d')\nopen('f','w').write('deep')";
    place.program("python3").args(["-c", script]).run().succeeded();
    let small = |options: &[&str]| {
        let shell = place.program("sh").args(["-c", "ulimit -s 256; exec \"$@\"", "sh", common::EVENER]);
        let shell = shell.args(["encrypt", "-q", "--key", "k.json", "--workers", "1", "-o", "out", "in"]);
        shell.args(options).env("EVENER_ARBITER", "off").run().succeeded()
    };
    assert_eq!(small(&["--dry-run"]).stdout_text().lines().count(), 2);
    small(&[]);
    place.program("rm").args(["-r", "in/d"]).run().succeeded();
    assert_eq!(small(&["--dry-run", "--delete"]).stdout_text().lines().count(), 2_001);
    small(&["--delete"]);
    assert_eq!(names(&place, "out"), ["stays"].map(PathBuf::from).into());
}
