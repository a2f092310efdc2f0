//! Links and other things in trees that may be another user's: nothing is read or written through them, and modes
//! change where this run works and nowhere else.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::common::{self, Place, allow, files, skipped, there_is};

/// A tree with `in/sub/f` and `in/other/f`, a key, and a directory of another user's that only the owner may enter.
fn place() -> Place {
    let place = Place::with_key();
    place.write("in/sub/f", "text");
    place.write("in/other/f", "text");
    fs::create_dir(place.join("victim")).unwrap();
    allow(&place.join("in/sub"), 0o777);
    allow(&place.join("victim"), 0o700);
    place
}

fn encrypt(place: &Place, output: &str, inputs: &[&str]) -> common::Ran {
    place.evener().args(["encrypt", "--key", "k.json", "-q", "-o", output]).args(inputs).run()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[track_caller]
fn the_victim_is_untouched(place: &Place) {
    assert_eq!(
        fs::read_dir(place.join("victim")).unwrap().count(),
        0,
        "something was written through the link"
    );
    assert_eq!(mode(&place.join("victim")), 0o700);
}

#[test]
fn a_link_in_the_place_of_an_output_directory_is_an_error_and_nothing_goes_through_it() {
    let place = place();
    fs::create_dir(place.join("out")).unwrap();
    symlink("../victim", place.join("out/sub")).unwrap();
    encrypt(&place, "out", &["in"]).ended_with(1).saying("in/sub: no directory stands in its place");
    the_victim_is_untouched(&place);
    assert_eq!(files(&place.join("out")), [Path::new("other/f")]);
}

#[test]
fn a_link_under_the_name_of_one_of_several_inputs_is_an_error_and_nothing_goes_through_it() {
    let place = place();
    fs::create_dir(place.join("out")).unwrap();
    symlink("../victim", place.join("out/sub")).unwrap();
    encrypt(&place, "out", &["in/sub", "in/other"])
        .ended_with(1)
        .saying("in/sub: no directory stands in its place");
    the_victim_is_untouched(&place);
    assert_eq!(files(&place.join("out")), [Path::new("other/f")]);
}

#[test]
fn a_file_in_the_place_of_an_output_directory_is_an_error_and_stays() {
    let place = place();
    place.write("out/sub", "somebody's own");
    encrypt(&place, "out", &["in"]).ended_with(1).saying("in/sub: no directory stands in its place");
    assert_eq!(fs::read(place.join("out/sub")).unwrap(), b"somebody's own");
}

#[test]
fn an_output_that_the_user_named_may_be_a_link() {
    let place = place();
    fs::create_dir(place.join("real")).unwrap();
    symlink("real", place.join("out")).unwrap();
    encrypt(&place, "out", &["in"]).succeeded();
    encrypt(&place, "out", &["in/sub", "in/other/f"]).ended_with(0);
    assert!(place.join("real/sub/f").is_file() && place.join("real/f").is_file());
    assert_eq!(mode(&place.join("real/sub")), 0o777);
}

#[test]
fn a_link_in_the_place_of_an_output_is_neither_read_nor_written_through() {
    let place = place();
    let victim = place.write("victim/f", "somebody's own");
    fs::create_dir_all(place.join("out/sub")).unwrap();
    symlink("../../victim/f", place.join("out/sub/f")).unwrap();
    encrypt(&place, "out", &["in"]).ended_with(1).saying("in/sub/f: output exists");
    place.evener().args(["encrypt", "--key", "k.json", "-q", "--force", "-o", "out", "in"]).run().succeeded();
    assert!(place.join("out/sub/f").symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read(victim).unwrap(), b"somebody's own");
}

#[test]
fn a_directory_that_nobody_may_write_to_is_carried_on_by_its_owner_and_ends_with_its_mode() {
    let place = Place::open_to_all();
    let Some(unprivileged) = place.without_rights() else { return };
    for name in ["one", "two"] {
        place.write(format!("in/sub/{name}"), name);
    }
    allow(&place.join("in/sub"), 0o555);
    let encrypt = || {
        let run = place.program(unprivileged[0]).args(&unprivileged[1..]).arg(place.join("evener"));
        let run = run.args(["encrypt", "--key", "k.json", "-q", "-o", "out", "in"]);
        run.env("EVENER_CACHE_DIR", place.join("cache")).run().succeeded()
    };
    encrypt();
    // As a run leaves it that was stopped before the second file.
    let sub = place.join("out/sub");
    allow(&sub, 0o755);
    fs::remove_file(sub.join("two")).unwrap();
    allow(&sub, 0o555);
    encrypt();
    assert_eq!((files(&sub).len(), mode(&sub)), (2, 0o555));
    // For the removal of this place.
    allow(&place.join("in/sub"), 0o755);
    allow(&sub, 0o755);
}

#[test]
fn a_directory_that_nobody_may_write_to_is_mirrored_like_any_other_and_ends_as_its_source() {
    let Some((place, nobody)) = Place::for_nobody() else { return };
    for name in ["ro/gone", "ro/stays", "ro/deep/gone", "ro/whole/gone", "rw/gone", "rw/stays"] {
        place.write(format!("in/{name}"), name);
    }
    let directories = ["ro/deep", "ro/whole", "ro", "rw"];
    let set = |of: &str| {
        let mode = if of.starts_with("ro") { 0o555 } else { 0o755 };
        allow(&place.join("in").join(of), mode);
        let touched = place.program("touch").args(["-d", "2001-02-03 04:05:06"]).arg(format!("in/{of}"));
        touched.run().succeeded();
    };
    directories.into_iter().for_each(set);
    let encrypt = |options: &[&str]| {
        let run = place.program(nobody[0]).args(&nobody[1..]).arg(place.join("evener"));
        let run = run.args(["encrypt", "--key", "k.json", "-q", "-o", "out"]).args(options).arg("in");
        run.env("EVENER_CACHE_DIR", place.join("cache")).run()
    };
    encrypt(&[]).succeeded();
    directories.into_iter().for_each(|of| allow(&place.join("in").join(of), 0o755));
    for name in ["ro/gone", "ro/deep/gone", "ro/whole/gone", "rw/gone"] {
        fs::remove_file(place.join("in").join(name)).unwrap();
    }
    fs::remove_dir(place.join("in/ro/whole")).unwrap();
    ["ro/deep", "ro", "rw"].into_iter().for_each(set);
    encrypt(&["--update", "--delete"]).succeeded();
    assert_eq!(files(&place.join("out")), files(&place.join("in")));
    assert!(!place.join("out/ro/whole").exists());
    for of in ["ro/deep", "ro", "rw"] {
        let [source, output] = ["in", "out"].map(|root| fs::metadata(place.join(root).join(of)).unwrap());
        assert_eq!(mode(&place.join("out").join(of)), mode(&place.join("in").join(of)), "{of}");
        assert_eq!(output.modified().unwrap(), source.modified().unwrap(), "{of}");
    }
    // For the removal of this place.
    for root in ["in", "out"] {
        ["ro/deep", "ro"].into_iter().for_each(|of| allow(&place.join(root).join(of), 0o755));
    }
}

/// Deletion in directories that are read-only, of which `deep` has lost its source, with a fault at a call that removes something.
/// Returns the place, how the run ended, and whether both had their modes and the upper one its time before these were given back.
fn delete_with(fault: &str, files_below: u32) -> Option<(Place, common::Ran, bool)> {
    if !there_is("strace") {
        skipped("strace is not installed");
        return None;
    }
    let (place, nobody) = Place::for_nobody()?;
    place.write("in/ro/stays", "stays");
    for number in 0..files_below {
        place.write(format!("in/ro/deep/{number}"), "goes");
    }
    let shut = |root: &str, mode| {
        ["ro/deep", "ro"].into_iter().for_each(|of| allow(&place.join(root).join(of), mode));
    };
    let encrypt = |program: &[&str], options: &[&str]| {
        let run = place.program("env").arg("--default-signal").args(program).args(nobody);
        let run = run.arg(place.join("evener")).args(["encrypt", "--key", "k.json", "-q", "-o", "out"]);
        run.args(options).arg("in").env("EVENER_CACHE_DIR", place.join("cache")).run()
    };
    shut("in", 0o555);
    encrypt(&[], &[]).succeeded();
    allow(&place.join("in/ro"), 0o755);
    allow(&place.join("in/ro/deep"), 0o755);
    fs::remove_dir_all(place.join("in/ro/deep")).unwrap();
    allow(&place.join("in/ro"), 0o555);
    place.program("touch").args(["-d", "2001-02-03 04:05:06", "in/ro"]).run().succeeded();
    let strace = ["strace", "-f", "-qq", "-o", "trace", "-e", "trace=unlinkat", "-e", fault];
    let ran = encrypt(&strace, &["--update", "--delete"]);
    let time = |root: &str| fs::metadata(place.join(root).join("ro")).unwrap().modified().unwrap();
    let modes = ["out/ro/deep", "out/ro"].map(|of| mode(&place.join(of)));
    let is_given_back = modes == [0o555, 0o555] && time("in") == time("out");
    // For the removal of this place.
    allow(&place.join("in/ro"), 0o755);
    shut("out", 0o755);
    Some((place, ran, is_given_back))
}

#[test]
fn a_directory_that_cannot_be_deleted_has_its_mode_again() {
    // The file and its directory, each refused once for the mode above it.
    let Some((_place, ran, is_given_back)) = delete_with("inject=unlinkat:error=ENOTEMPTY:when=4", 1) else {
        return;
    };
    let ran = ran.ended_with(1);
    assert!(ran.stderr().contains("out/ro/deep: cannot remove the output"), "{}", ran.stderr());
    assert!(is_given_back);
}

#[test]
fn a_signal_ends_a_deletion_and_directories_have_their_modes_and_times_again() {
    let Some((place, ran, is_given_back)) = delete_with("inject=unlinkat:signal=INT:when=2", 1_500) else {
        return;
    };
    assert_eq!(ran.signal(), Some(2), "{}", ran.stderr());
    let left = files(&place.join("out/ro/deep")).len();
    assert!((1..1_500).contains(&left), "{left} files are left");
    assert!(is_given_back);
}
