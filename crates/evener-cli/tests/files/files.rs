//! Real files in both directions: what is kept, where it goes, what is left out, and what a second run does.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::common::{Place, files, noise, tree};

/// A tree with everything that is awkward about trees but links.
fn awkward_tree(place: &Place) {
    place.write("in/empty", "");
    place.write("in/one byte", "x");
    place.write("in/segment", noise(1, 4_096 - 40 - 16));
    place.write("in/segment and a byte", noise(2, 4_096 - 40 - 16 + 1));
    place.write("in/deep/er/large", noise(3, 3_000_000));
    place.write(Path::new("in").join(OsStr::from_bytes(b"not \xff\xfe text")), "bytes");
    place.write("in/line\nend", "in the name");
    place.write("in/-r", "looks like an option");
    place.write("in/.hidden", "hidden");
    fs::create_dir(place.join("in/nothing in it")).unwrap();
    for (name, mode) in
        [("in/one byte", 0o400), ("in/segment", 0o755), ("in/deep", 0o700), ("in/.hidden", 0o666)]
    {
        fs::set_permissions(place.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let past = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    for name in ["in/segment", "in/deep/er", "in/empty"] {
        let file = fs::File::open(place.join(name)).unwrap();
        file.set_times(fs::FileTimes::new().set_modified(past)).unwrap();
    }
}

/// Encrypts `in` to `sealed` and decrypts that to `back`, with the options given.
fn there_and_back(place: &Place, encrypt: &[&str], decrypt: &[&str]) {
    let run = |verb: &str, options: &[&str], from: &str, to: &str| {
        place.evener().arg(verb).args(options).args(["-q", "-o", to, from]).run().succeeded();
    };
    run("encrypt", encrypt, "in", "sealed");
    run("decrypt", decrypt, "sealed", "back");
}

#[test]
fn a_tree_comes_back_with_names_modes_times_and_contents() {
    let place = Place::new();
    awkward_tree(&place);
    place.keyset("k.json");
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    place.write_secret("pass", "word\n");
    let before = tree(&place.join("in"));
    let ways: [&[&str]; 3] = [
        &["--key", "k.json"],
        &["-i", "id"],
        &["--format", "openssl", "--passphrase-file", "pass", "--cipher", "aes-192-cbc", "--iter", "20"],
    ];
    for way in ways {
        there_and_back(&place, way, way);
        assert_eq!(tree(&place.join("back")), before, "{way:?}");
        for (name, sealed) in tree(&place.join("sealed")) {
            let plain = &before[&name];
            assert_eq!((sealed.mode, sealed.time), (plain.mode, plain.time), "{way:?} {name:?}");
            assert!(plain.bytes.is_none() || sealed.bytes != plain.bytes, "{way:?} {name:?}");
        }
        fs::remove_dir_all(place.join("sealed")).unwrap();
        fs::remove_dir_all(place.join("back")).unwrap();
    }
    assert_eq!(tree(&place.join("in")), before);
}

#[test]
fn links_and_special_files_that_options_leave_out_are_named() {
    let place = Place::with_key();
    place.write("in/a", "text");
    place.write("elsewhere/b", "text");
    symlink("a", place.join("in/link")).unwrap();
    symlink("../elsewhere", place.join("in/folder link")).unwrap();
    symlink("nowhere", place.join("in/dangling")).unwrap();
    place.program("mkfifo").arg("in/pipe").run().succeeded();
    let encrypt = ["encrypt", "--key", "k.json", "--skip-links", "--skip-specials", "-o", "out", "in"];
    let ran = place.evener().args(encrypt).run().succeeded();
    for name in ["link", "folder link", "dangling", "pipe"] {
        assert!(ran.stderr().contains(&format!("skipped in/{name}: ")), "{}", ran.stderr());
    }
    assert_eq!(tree(&place.join("out")).into_keys().collect::<Vec<_>>(), [Path::new("a")]);
}

#[test]
fn a_link_named_as_input_is_followed() {
    let place = Place::with_key();
    place.write("folder/a", "text");
    symlink("folder", place.join("link")).unwrap();
    place.evener().args(["encrypt", "--key", "k.json", "-q", "-o", "out", "link"]).run().succeeded();
    assert_eq!(files(&place.join("out")), [Path::new("a")]);
}

#[test]
fn outputs_go_where_the_help_says() {
    let place = Place::with_key();
    for name in ["a", "b", "in/c"] {
        place.write(name, "text");
    }
    fs::create_dir(place.join("there")).unwrap();
    let encrypt = |output: &str, inputs: &[&str]| {
        place
            .evener()
            .args(["encrypt", "--key", "k.json", "-q", "-o", output])
            .args(inputs)
            .run()
            .succeeded();
    };
    encrypt("file", &["a"]);
    encrypt("there", &["a"]);
    encrypt("new/", &["a"]);
    encrypt("mirror", &["in"]);
    encrypt("several", &["a", "b", "in"]);
    encrypt("trees", &["in", "there"]);
    let several = ["several/a", "several/b", "several/in/c", "trees/in/c", "trees/there/a"];
    for made in ["file", "there/a", "new/a", "mirror/c"].into_iter().chain(several) {
        assert!(place.join(made).is_file(), "{made}");
    }
}

#[test]
fn a_second_run_does_what_is_left_and_nothing_else() {
    let place = Place::with_key();
    awkward_tree(&place);
    there_and_back(&place, &["--key", "k.json"], &["--key", "k.json"]);
    let (sealed, back) = (tree(&place.join("sealed")), tree(&place.join("back")));
    for folder in ["sealed", "back"] {
        fs::remove_file(place.join(folder).join("deep/er/large")).unwrap();
    }
    let again = |verb: &str, to: &str, from: &str| {
        let ran = place.evener().args([verb, "--key", "k.json", "-o", to, from]).run().succeeded();
        assert!(ran.stderr().contains("8 outputs finished by an earlier run"), "{}", ran.stderr());
    };
    again("encrypt", "sealed", "in");
    again("decrypt", "back", "sealed");
    assert_eq!(tree(&place.join("back")), back);
    let mut sealed_again = tree(&place.join("sealed"));
    let large = sealed_again.remove(Path::new("deep/er/large")).unwrap();
    assert!(
        large.bytes != sealed[Path::new("deep/er/large")].bytes,
        "a file done again has a salt of its own"
    );
    assert!(sealed_again.iter().all(|(name, entry)| entry == &sealed[name]));
}

#[test]
fn standard_input_and_output_work_in_every_combination() {
    let place = Place::with_key();
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    for way in [["--key", "k.json"], ["-i", "id"]] {
        for bytes in [0, 1, 4_040, 65_536, 1_000_000] {
            let plain = noise(7, bytes);
            place.write("plain", &plain);
            let run = |verb: &str, output: &str, input: &str, bytes: &[u8]| {
                let ran = place.evener().arg(verb).args(way).args(["-q", "--force", "-o", output, input]);
                ran.input(bytes).run().succeeded().stdout().to_vec()
            };
            let piped = run("encrypt", "-", "-", &plain);
            assert_eq!(run("decrypt", "-", "-", &piped), plain);
            assert_eq!(run("encrypt", "sealed", "-", &plain), b"");
            assert_eq!(run("decrypt", "-", "sealed", b""), plain);
            let from_file = run("encrypt", "-", "plain", b"");
            run("decrypt", "back", "-", &from_file);
            assert_eq!(fs::read(place.join("back")).unwrap(), plain, "{way:?} {bytes}");
        }
    }
}

#[test]
fn a_file_that_wrongly_says_that_it_is_empty_is_read_by_itself_and_refused_among_others() {
    let place = Place::with_key();
    place.write("a", "text");
    let encrypt = ["encrypt", "--key", "k.json", "-q", "-o", "out"];
    place.evener().args(encrypt).args(["/proc/version", "a"]).run().ended_with(1).saying("standard input");
    assert_eq!(files(&place.join("out")), [Path::new("a")]);
    fs::remove_dir_all(place.join("out")).unwrap();
    place.evener().args(encrypt).arg("/proc/version").run().succeeded();
    let back = place.evener().args(["decrypt", "--key", "k.json", "-o", "-", "out"]).run().succeeded();
    assert_eq!(back.stdout(), fs::read("/proc/version").unwrap());
}

/// Grown or shrunk while it is read, a file is either refused or stored as it was at one moment.
#[test]
fn a_file_that_changes_while_it_is_read_is_never_stored_wrong() {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicBool, Ordering};
    let place = Place::new();
    place.evener().args(["keygen", "k.json"]).run().succeeded();
    let before = noise(9, 32 << 20);
    for grows in [true, false] {
        let path = place.write("in/a", &before);
        let over = AtomicBool::new(false);
        let ran = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut file = fs::File::options().append(true).open(&path).unwrap();
                while !over.load(Ordering::Relaxed) {
                    match grows {
                        true => file.write_all(b"more").unwrap(),
                        false => file.set_len(file.metadata().unwrap().len() - 1).unwrap(),
                    }
                }
            });
            let ran = place.evener().args(["encrypt", "--key", "k.json", "-q", "-o", "out", "in"]).run();
            over.store(true, Ordering::Relaxed);
            ran
        });
        if ran.code() == Some(1) {
            ran.saying("changed while it was read");
            assert_eq!(files(&place.join("out")), [] as [&Path; 0]);
        } else {
            ran.succeeded();
            let ran = place.evener().args(["decrypt", "--key", "k.json", "-q", "-o", "-", "out/a"]).run();
            let stored = ran.succeeded().stdout().to_vec();
            let common = stored.len().min(before.len());
            assert!(
                stored[..common] == before[..common]
                    && stored[common..].chunks(4).all(|more| b"more".starts_with(more))
            );
        }
        fs::remove_dir_all(place.join("out")).ok();
    }
}
