//! Looking at encrypted files without making one: parts of them, verification, inspection.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::FileExt as _;

use crate::common::{EVENER, Place, files, noise};

const BYTES: usize = 3_000_000;

/// A place with `in/file`, and `in/small`, in `sealed` under some key; returns the options for it.
fn sealed(place: &Place, kind: &str) -> Vec<&'static str> {
    place.write("in/file", noise(1, BYTES));
    place.write("in/deep/small", "text");
    let key = match kind {
        "tink" => {
            place.keyset("k.json");
            vec!["--key", "k.json"]
        }
        "age" => {
            place.evener().args(["keygen", "--age", "id"]).run().succeeded();
            vec!["-i", "id"]
        }
        _ => {
            place.write_secret("pass", "word\n");
            vec!["--format", "openssl", "--iter", "2", "--passphrase-file", "pass"]
        }
    };
    place.evener().args(["encrypt", "-q", "-o", "sealed", "in"]).args(&key).run().succeeded();
    key
}

/// Turns a bit in the middle of a file.
fn damage(place: &Place, name: &str) {
    let file = fs::File::options().read(true).write(true).open(place.join(name)).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 2_000_000).unwrap();
    file.write_all_at(&[byte[0] ^ 1], 2_000_000).unwrap();
}

#[test]
fn a_part_of_a_file_is_what_stands_there() {
    for kind in ["tink", "age", "openssl"] {
        let place = Place::new();
        let key = sealed(&place, kind);
        let whole = noise(1, BYTES);
        let end = BYTES - 1;
        let parts = [
            ("0-0", 0..1),
            ("0-499", 0..500),
            ("4039-4041", 4039..4042),
            ("65535-65536", 65_535..65_537),
            ("1M+300K", 1 << 20..(1 << 20) + (300 << 10)),
            ("2999999-", end..BYTES),
            ("-7", BYTES - 7..BYTES),
            ("100-99999999", 100..BYTES),
            ("0-", 0..BYTES),
            ("3000000-", BYTES..BYTES),
        ];
        for (text, range) in parts {
            let part = place
                .evener()
                .args(["decrypt", "-q", "--range", text, "-o", "-", "sealed/file"])
                .args(&key)
                .run()
                .succeeded();
            assert!(part.stdout() == &whole[range], "{kind} {text}");
        }
        let behind = place
            .evener()
            .args(["decrypt", "-q", "--range=3000001-", "-o", "p", "sealed/file"])
            .args(&key)
            .run();
        behind.ended_with(1).saying("it holds 3000000 bytes");
        assert!(!place.join("p").exists());
        place
            .evener()
            .args(["decrypt", "-q", "--range=0-1", "-o", "p", "sealed"])
            .args(&key)
            .run()
            .ended_with(2);
    }
}

/// What is not needed is not opened, what is needed is checked, and a file that was cut off is found out by its end.
#[test]
fn a_part_is_authentic_and_the_rest_of_the_file_is_not_touched() {
    for kind in ["tink", "age"] {
        let place = Place::new();
        let key = sealed(&place, kind);
        damage(&place, "sealed/file");
        let part = |range: &str| {
            place
                .evener()
                .args(["decrypt", "-q", "--range", range, "-o", "p", "sealed/file"])
                .args(&key)
                .run()
        };
        part("0-499").succeeded();
        fs::remove_file(place.join("p")).unwrap();
        part("1990000-2010000").ended_with(1).saying("not authentic");
        assert!(!place.join("p").exists());
        let file = fs::File::options().write(true).open(place.join("sealed/file")).unwrap();
        file.set_len(1_000_000).unwrap();
        part("0-499").ended_with(1);
    }
}

#[test]
fn verification_names_what_is_damaged_and_writes_nothing() {
    for kind in ["tink", "age"] {
        let place = Place::new();
        let key = sealed(&place, kind);
        let verify = |more: &[&str]| place.evener().arg("verify").args(&key).args(more).arg("sealed").run();
        let before = files(place.path());
        assert!(verify(&[]).succeeded().stderr().contains("verified 2 files"));
        verify(&["-q", "--against", "in", "--workers", "2", "--memory", "64M", "--json", "report"])
            .succeeded();
        let report: serde_json::Value =
            serde_json::from_slice(&fs::read(place.join("report")).unwrap()).unwrap();
        assert_eq!((&report["direction"], &report["files"]), (&"verify".into(), &2.into()));
        fs::remove_file(place.join("report")).unwrap();
        assert_eq!(files(place.path()), before);
        damage(&place, "sealed/file");
        verify(&["-q"]).ended_with(1).saying("sealed/file: segment");
    }
}

#[test]
fn verification_reads_standard_input_like_a_file() {
    let place = Place::with_key();
    place.write("plain", noise(5, BYTES));
    place.evener().args(["encrypt", "-q", "--key", "k.json", "-o", "sealed", "plain"]).run().succeeded();
    let verify = |name: &str, more: &[&str]| {
        let run = place.evener().args(["verify", "--key", "k.json"]).args(more).arg("-");
        run.input(fs::read(place.join(name)).unwrap()).run()
    };
    let ran = verify("sealed", &[]).succeeded().saying("verified 1 file");
    assert!(ran.stdout().is_empty());
    damage(&place, "sealed");
    for (name, why) in [("sealed", "is not authentic"), ("plain", "not in the Tink streaming AEAD format")] {
        let ran = verify(name, &[]).ended_with(1);
        assert!(ran.stderr().contains(why), "{}", ran.stderr());
    }
    verify("sealed", &["--against", "plain"]).ended_with(2).saying("not standard input");
    verify("sealed", &["sealed"]).ended_with(2).saying("takes exactly one input");
}

#[test]
fn verification_against_sources_finds_what_differs_and_what_is_missing_on_either_side() {
    for kind in ["tink", "age", "openssl"] {
        let place = Place::new();
        let key = sealed(&place, kind);
        let verify =
            || place.evener().args(["verify", "-q", "--against", "in"]).args(&key).arg("sealed").run();
        verify().succeeded();
        let file = fs::File::options().write(true).open(place.join("in/file")).unwrap();
        file.write_all_at(&[7; 3], 2_000_000).unwrap();
        verify().ended_with(1).saying("sealed/file: differs from in/file");
        fs::remove_file(place.join("in/file")).unwrap();
        verify().ended_with(1).saying("sealed/file: has no counterpart at in/file");
        fs::remove_file(place.join("sealed/file")).unwrap();
        place.write("in/deep/new", "text");
        verify().ended_with(1).saying("in/deep/new: has no counterpart at sealed/deep/new");
    }
    let place = Place::new();
    let key = sealed(&place, "openssl");
    let ran = place.evener().args(["verify", "-q", "sealed"]).args(&key).run().ended_with(1);
    assert!(ran.stderr().contains("without authentication"));
}

fn inspected(place: &Place, file: &str) -> serde_json::Value {
    let seen = place.evener().args(["inspect", "--json", file]).run().succeeded();
    serde_json::from_slice(seen.stdout()).unwrap()
}

#[test]
fn inspection_tells_the_outside_of_each_format() {
    for kind in ["tink", "age", "openssl"] {
        let place = Place::new();
        sealed(&place, kind);
        for (file, bytes) in [("sealed/file", BYTES as u64), ("sealed/deep/small", 4)] {
            let seen = inspected(&place, file);
            let size = |name: &str| seen["sizes"][name].as_u64().unwrap();
            assert!((size("min_payload")..=size("max_payload")).contains(&bytes), "{kind} {seen}");
            let whole = fs::metadata(place.join(file)).unwrap().len();
            assert_eq!(
                size("header") + size("overhead") + size("max_payload") + size("min_padding"),
                whole,
                "{seen}"
            );
        }
        place.evener().args(["inspect", "sealed/file"]).run().succeeded();
        // Also what has no end.
        for none in ["in/file", "/dev/zero"] {
            place.evener().args(["inspect", none]).run().ended_with(1).saying("it starts like none of them");
        }
    }
}

#[test]
fn inspection_says_of_an_age_file_what_age_made() {
    let Some(place) = Place::with_programs(&["age", "age-keygen"]) else { return };
    place.write("plain", noise(3, 200_000));
    place.program("age-keygen").args(["-o", "id"]).run().succeeded();
    place.program("sh").args(["-c", "age -r $(age-keygen -y id) -r $(age-keygen -y id) -o c plain && age -a -r $(age-keygen -y id) -o text plain"]).run().succeeded();
    let seen = inspected(&place, "c");
    assert_eq!(seen["version"], "age-encryption.org/v1");
    let kinds: Vec<_> =
        seen["stanza_types"].as_array().unwrap().iter().filter(|kind| *kind == "X25519").collect();
    assert_eq!((kinds.len(), &seen["postquantum"], &seen["armor"]), (2, &"no".into(), &false.into()));
    let sizes = &seen["sizes"];
    assert_eq!((&sizes["min_payload"], &sizes["max_payload"]), (&200_000.into(), &200_000.into()));
    // A nonce, and four chunks with a tag each.
    assert_eq!(sizes["overhead"], 16 + 4 * 16);
    let text = inspected(&place, "text");
    assert_eq!((&text["armor"], &text["sizes"]["max_payload"]), (&true.into(), &200_000.into()));
    assert!(text["sizes"]["armor"].as_u64().unwrap() > 60_000);
}

#[test]
fn text_is_verified_and_inspected_like_the_file_in_it() {
    for (kind, version) in [("age", "age-encryption.org/v1"), ("openssl", "openssl enc")] {
        let place = Place::new();
        let key = sealed(&place, kind);
        place.evener().args(["encrypt", "-q", "-a", "-o", "text", "in"]).args(&key).run().succeeded();
        let verify = || place.evener().args(["verify", "-q", "--against", "in"]).args(&key).arg("text").run();
        let before = files(place.path());
        verify().succeeded();
        assert_eq!(files(place.path()), before, "nothing was written");
        let (binary, text) = (inspected(&place, "sealed/file"), inspected(&place, "text/file"));
        assert_eq!((&text["armor"], &text["version"]), (&true.into(), &version.into()));
        assert_eq!(binary["sizes"]["max_payload"], text["sizes"]["max_payload"]);
        let [whole, bare] =
            ["text/file", "sealed/file"].map(|file| fs::metadata(place.join(file)).unwrap().len());
        assert_eq!(text["sizes"]["armor"], whole - bare);
        // One letter in the middle.
        let file = fs::File::options().read(true).write(true).open(place.join("text/file")).unwrap();
        let mut letter = [0];
        file.read_exact_at(&mut letter, 2_000_000).unwrap();
        file.write_all_at(if letter == *b"A" { b"B" } else { b"A" }, 2_000_000).unwrap();
        verify().ended_with(1).saying("text/file: ");
    }
}

#[test]
fn inspection_promises_nothing_that_the_outside_does_not_show() {
    let place = Place::new();
    place.write("plain", noise(1, 300_000));
    place.write_secret("pass", "word\n");
    for template in ["AES256_CTR_HMAC_SHA256_4KB", "AES256_CTR_HMAC_SHA256_1MB", "AES256_GCM_HKDF_4KB"] {
        place.evener().args(["keygen", "--template", template, template]).run().succeeded();
        place.evener().args(["encrypt", "-q", "--key", template, "-o", "c", "plain"]).run().succeeded();
        let seen = inspected(&place, "c");
        let size = |name: &str| seen["sizes"][name].as_u64().unwrap();
        assert!((size("min_payload")..=size("max_payload")).contains(&300_000), "{template} {seen}");
        assert_eq!(seen["stanza_types"], serde_json::json!(["AES256_GCM_HKDF or AES256_CTR_HMAC"]));
        fs::remove_file(place.join("c")).unwrap();
    }
    let words = ["encrypt", "-q", "--format", "openssl", "--kdf", "legacy", "--passphrase-file", "pass"];
    place.evener().args(words).args(["-o", "c", "plain"]).run().succeeded();
    assert_eq!(inspected(&place, "c")["version"], "openssl enc");
}

#[test]
fn verification_compares_links_and_leaves_them_out_where_nothing_is_there_to_compare() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    let key = sealed(&place, "tink");
    fs::hard_link(place.join("in/deep/small"), place.join("in/other")).unwrap();
    symlink("file", place.join("in/link")).unwrap();
    place.evener().args(["encrypt", "-q", "-o", "sealed", "in"]).args(&key).run().succeeded();
    let verify = |more: &[&str]| {
        let ran = place.evener().args(["verify", "--json", "-"]).args(&key).args(more).arg("sealed").run();
        let report: serde_json::Value = serde_json::from_slice(ran.stdout()).unwrap();
        (ran, report["files"].as_u64().unwrap(), report["skipped"].as_array().unwrap().len())
    };
    let (ran, files, skipped) = verify(&[]);
    assert_eq!((files, skipped), (3, 1));
    ran.succeeded().saying("1 left out");
    assert_eq!(verify(&["--against", "in"]).1, 4);
    let relink = |target: &str, name: &str| {
        fs::remove_file(place.join(name)).ok();
        symlink(target, place.join(name)).unwrap();
    };
    relink("elsewhere", "in/link");
    verify(&["-q", "--against", "in"]).0.ended_with(1).saying("sealed/link: differs from in/link");
    verify(&["--against", "in", "--skip-links"]).0.succeeded();
    fs::remove_file(place.join("in/link")).unwrap();
    verify(&["-q", "--against", "in"]).0.ended_with(1).saying("sealed/link: has no counterpart at in/link");
    fs::remove_file(place.join("sealed/link")).unwrap();
    relink("file", "in/link");
    verify(&["-q", "--against", "in"]).0.ended_with(1).saying("in/link: has no counterpart at sealed/link");
}

#[test]
fn text_is_verified_where_no_file_is_without_a_name_from_the_start() {
    let Some(place) = Place::with_programs(&["strace"]) else { return };
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    place.write("plain", noise(3, 200_000));
    place.evener().args(["encrypt", "-q", "-a", "-i", "id", "-o", "text", "plain"]).run().succeeded();
    fs::create_dir(place.join("temporary")).unwrap();
    let verify = |inject: &[&str]| {
        let strace = ["-f", "-qq", "-o", "trace", "-e", "trace=openat2"];
        let command = [EVENER, "verify", "-q", "--workers", "1", "-i", "id", "text"];
        let run = place.program("strace").args(strace).args(inject).args(command);
        run.env("EVENER_ARBITER", "off").env("TMPDIR", place.join("temporary")).run()
    };
    verify(&[]).succeeded();
    let trace = fs::read_to_string(place.join("trace")).unwrap();
    let place_of_it = trace.lines().position(|line| line.contains("O_TMPFILE")).unwrap() + 1;
    for error in ["EOPNOTSUPP", "EISDIR", "ENOENT"] {
        let fault = format!("inject=openat2:error={error}:when={place_of_it}");
        verify(&["-e", &fault]).succeeded();
        let trace = fs::read_to_string(place.join("trace")).unwrap();
        assert!(trace.lines().any(|line| line.contains("O_TMPFILE") && line.contains("INJECTED")), "{trace}");
        assert!(files(&place.join("temporary")).is_empty(), "{error}");
    }
}

#[test]
fn a_verification_whose_report_cannot_be_written_has_been_done() {
    let place = Place::with_key();
    place.write("plain", "text");
    place.evener().args(["encrypt", "-q", "--key", "k.json", "-o", "sealed", "plain"]).run().succeeded();
    for place_of_report in ["no/such.json", "/dev/full"] {
        let verify = ["verify", "-q", "--key", "k.json", "--json", place_of_report, "sealed"];
        place.evener().args(verify).run().ended_with(1).saying("report");
    }
}
