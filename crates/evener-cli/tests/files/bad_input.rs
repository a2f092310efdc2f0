//! Whatever is wrong with keys, inputs or options: one clear line, the right exit status, nothing lost, and
//! nothing under a final name.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::Path;

use crate::common::{self, Place, files, noise, tree};

/// Layout of Tink's streams under the template with 4 KiB segments: header, then segments of 4096 bytes of
/// which the header is part of the first.
const HEADER: usize = 40;
const SEGMENT: usize = 4_096;
const TAG: usize = 16;

/// A plaintext of three whole segments and a part of a fourth.
fn plaintext() -> Vec<u8> {
    noise(1, 3 * SEGMENT)
}

/// A place with `k.json` and `sealed`, the plaintext encrypted.
fn sealed() -> (Place, Vec<u8>) {
    let place = Place::with_key();
    place.write("plain", plaintext());
    place.evener().args(["encrypt", "--key", "k.json", "-q", "-o", "sealed", "plain"]).run().succeeded();
    let bytes = fs::read(place.join("sealed")).unwrap();
    assert_eq!(bytes.len(), HEADER + 3 * SEGMENT + 4 * TAG);
    (place, bytes)
}

/// Writes each variant to its own file, decrypts them all at once, and sees each refused in one line.
fn all_refused(place: &Place, key: &[&str], variants: &[(String, Vec<u8>)], words: &[&str]) {
    for (name, bytes) in variants {
        place.write(Path::new("variants").join(name), bytes);
    }
    let before = tree(&place.join("variants"));
    let ran =
        place.evener().arg("decrypt").args(key).args(["-q", "-o", "out", "variants"]).run().ended_with(1);
    for (name, _) in variants {
        let line = format!("evener: variants/{name}: ");
        let lines: Vec<&str> = ran.stderr().lines().filter(|lines| lines.starts_with(&line)).collect();
        assert_eq!(lines.len(), 1, "{name}: {}", ran.stderr());
        assert!(words.iter().any(|word| lines[0].contains(word)), "{lines:?}");
    }
    assert_eq!(ran.stderr().lines().count(), variants.len(), "{}", ran.stderr());
    assert_eq!(files(&place.join("out")), [] as [&Path; 0]);
    assert_eq!(tree(&place.join("variants")), before);
}

#[test]
fn ciphertext_truncated_at_any_boundary_leaves_no_output() {
    let (place, whole) = sealed();
    let boundaries = [0, HEADER, SEGMENT, 2 * SEGMENT, 3 * SEGMENT, whole.len() - TAG, whole.len()];
    let mut lengths: Vec<usize> =
        boundaries.iter().flat_map(|&at| [at.saturating_sub(1), at, at + 1]).collect();
    lengths.sort_unstable();
    lengths.dedup();
    lengths.retain(|&length| length < whole.len());
    let variants: Vec<_> =
        lengths.iter().map(|&length| (format!("{length:05}"), whole[..length].to_vec())).collect();
    let (some, others) = variants.split_at(lengths.len() / 2);
    let words = ["truncated", "not authentic"];
    all_refused(&place, &["--key", "k.json"], some, &words);
    fs::remove_dir_all(place.join("variants")).unwrap();
    all_refused(&place, &["--key", "k.json"], others, &words);
}

#[test]
fn a_flipped_bit_anywhere_leaves_no_output() {
    let (place, whole) = sealed();
    let places = [
        ("length of the header", 0),
        ("salt", 1),
        ("end of the salt", 32),
        ("nonce prefix", 33),
        ("first segment", HEADER),
        ("tag of the first segment", SEGMENT - 1),
        ("second segment", SEGMENT),
        ("tag of the second segment", 2 * SEGMENT - TAG),
        ("last segment", 3 * SEGMENT),
        ("last tag", whole.len() - 1),
    ];
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        bytes
    };
    let variants: Vec<_> = places.iter().map(|&(name, at)| (name.to_owned(), flipped(at))).collect();
    all_refused(&place, &["--key", "k.json"], &variants, &["segment", "format"]);
}

#[test]
fn segments_swapped_dropped_repeated_or_added_leave_no_output() {
    let (place, whole) = sealed();
    let segment = |index: usize| &whole[index * SEGMENT..(index * SEGMENT + SEGMENT).min(whole.len())];
    let of = |order: &[usize]| order.iter().map(|&index| segment(index)).collect::<Vec<_>>().concat();
    assert_eq!(of(&[0, 1, 2, 3]), whole);
    let variants = [
        ("swapped", of(&[0, 2, 1, 3])),
        ("first dropped", of(&[1, 2, 3])),
        ("middle dropped", of(&[0, 2, 3])),
        ("last dropped", of(&[0, 1, 2])),
        ("repeated", of(&[0, 1, 1, 2, 3])),
        ("last repeated", of(&[0, 1, 2, 3, 3])),
        ("byte added", [&whole[..], b"x"].concat()),
        ("zeros added", [&whole[..], &[0; 4_096]].concat()),
    ];
    let variants = variants.map(|(name, bytes)| (name.to_owned(), bytes));
    // Without the first segment a byte of ciphertext stands where the header's length does: one time in 256 it is a
    // header's, whose salt then derives a key that opens nothing.
    all_refused(&place, &["--key", "k.json"], &variants, &["segment", "format", "truncated", "no key fits"]);
}

#[test]
fn the_wrong_key_opens_nothing_and_says_so() {
    let (place, whole) = sealed();
    place.keyset("other.json");
    all_refused(&place, &["--key", "other.json"], &[("a".into(), whole)], &["wrong key"]);
}

#[test]
fn other_associated_data_opens_nothing() {
    let place = Place::with_key();
    place.write("plain", "text");
    let key = ["--key", "k.json", "--associated-data", "tape 7"];
    place.evener().arg("encrypt").args(key).args(["-q", "-o", "sealed", "plain"]).run().succeeded();
    let whole = fs::read(place.join("sealed")).unwrap();
    place.evener().arg("decrypt").args(key).args(["-q", "-o", "same", "sealed"]).run().succeeded();
    assert_eq!(fs::read(place.join("same")).unwrap(), b"text");
    let other = ["--key", "k.json", "--associated-data", "tape 8"];
    all_refused(&place, &other, &[("a".into(), whole)], &["associated data"]);
}

#[test]
fn a_damaged_age_file_leaves_no_output() {
    let place = Place::new();
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    place.write("plain", noise(2, 150_000));
    place.evener().args(["encrypt", "-i", "id", "-q", "-o", "sealed", "plain"]).run().succeeded();
    let whole = fs::read(place.join("sealed")).unwrap();
    let payload = whole.len() - (150_000 + 3 * TAG);
    let chunk = (64 << 10) + TAG;
    let mut variants = Vec::new();
    for at in [0, 1, 22, payload - 17, payload - 16, payload, payload + 1, payload + chunk, whole.len() - 1] {
        variants.push((format!("cut at {at}"), whole[..at].to_vec()));
    }
    for at in [0, 30, payload - 60, payload - 1, payload, payload + chunk, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        variants.push((format!("flipped at {at}"), bytes));
    }
    let words = ["age", "no key fits", "truncated", "not authentic", "malformed"];
    all_refused(&place, &["-i", "id"], &variants, &words);
}

#[test]
fn an_openssl_file_that_cannot_be_whole_leaves_no_output() {
    let place = Place::new();
    place.write_secret("pass", "correct horse\n");
    place.write("plain", noise(3, 1_000));
    let key = ["--format", "openssl", "--passphrase-file", "pass"];
    place.evener().arg("encrypt").args(key).args(["-q", "-o", "sealed", "plain"]).run().succeeded();
    let whole = fs::read(place.join("sealed")).unwrap();
    let lengths = [0, 7, 8, 15, 16, 17, 31, whole.len() - 1];
    let variants: Vec<_> = lengths.map(|at| (format!("cut at {at}"), whole[..at].to_vec())).into();
    all_refused(&place, &key, &variants, &["truncated", "openssl", "padding"]);
}

#[test]
fn standard_output_gets_authenticated_segments_only() {
    let (place, mut whole) = sealed();
    whole[2 * SEGMENT + 5] ^= 1;
    let decrypt = ["decrypt", "--key", "k.json", "-q", "-o", "-", "-"];
    let ran = place.evener().args(decrypt).input(whole).run().ended_with(1).saying("segment 2");
    let first_two = 2 * SEGMENT - HEADER - 2 * TAG;
    assert!(ran.stdout().len() <= first_two, "{}", ran.stdout().len());
    assert_eq!(ran.stdout(), &plaintext()[..ran.stdout().len()]);
}

#[test]
fn an_input_that_cannot_be_read_is_named_and_the_others_are_done() {
    let place = Place::with_key();
    place.write("a", "text");
    let ran = place.evener().args(["encrypt", "--key", "k.json", "-q", "-o", "out/", "a", "missing"]).run();
    ran.ended_with(1).saying("missing: cannot");
    assert_eq!(files(&place.join("out")), [Path::new("a")]);
}

#[test]
fn an_input_without_permission_is_named_and_the_others_are_done() {
    let Some((place, unprivileged)) = Place::for_nobody() else { return };
    place.write("in/a", "text");
    common::allow(&place.write("in/b", "text"), 0o000);
    let ran = place.program(unprivileged[0]).args(&unprivileged[1..]).arg(place.join("evener"));
    let ran = ran.args(["encrypt", "--key", "k.json", "-q", "-o", "out", "in"]);
    let ran = ran.env("EVENER_CACHE_DIR", place.join("cache")).run().ended_with(1);
    let lines: Vec<&str> = ran.stderr().lines().filter(|line| !line.contains("warning")).collect();
    assert!(lines.len() == 1 && lines[0].contains("in/b: cannot"), "{}", ran.stderr());
    assert_eq!(files(&place.join("out")), [Path::new("a")]);
}

#[test]
fn what_others_may_read_and_its_owner_may_not_is_done_alone_as_in_a_tree() {
    let Some((place, unprivileged)) = Place::for_nobody() else { return };
    if unprivileged == ["env"] {
        return common::skipped("only root has files of two users");
    }
    common::allow(&place.write("in/a", "text"), 0o044);
    place.write("in/b", "text");
    for input in ["in", "in/a"] {
        let ran = place.program(unprivileged[0]).args(&unprivileged[1..]).arg(place.join("evener"));
        let ran = ran.args(["encrypt", "--key", "k.json", "-q", "-o", "out", input]);
        ran.env("EVENER_CACHE_DIR", place.join("cache")).run().succeeded();
        let made = place.join("out");
        fs::remove_file(&made).or_else(|_| fs::remove_dir_all(&made)).unwrap();
    }
}

#[test]
fn a_node_without_permission_is_named_with_the_reason_and_nothing_is_written() {
    let Some((place, unprivileged)) = Place::for_nobody() else { return };
    place.write("in", "text");
    let node = place.write("node", "");
    common::allow(&node, 0o000);
    let evener = |arguments: &[&str]| {
        let module = format!("devcrypto:{}", node.display());
        let run =
            place.program(unprivileged[0]).args(&unprivileged[1..]).arg(place.join("evener")).args(arguments);
        run.args(["--module", &module]).env("EVENER_CACHE_DIR", place.join("cache")).run()
    };
    let reason = "node cannot be opened: Permission denied";
    let listed = evener(&["devices"]).succeeded();
    assert!(String::from_utf8_lossy(listed.stdout()).contains(reason));
    let refused = evener(&["encrypt", "--key", "k.json", "-q", "-o", "out", "in"]).ended_with(2);
    assert!(refused.stderr().contains(reason), "{}", refused.stderr());
    assert!(!place.join("out").exists());
}

#[test]
fn an_output_that_is_something_else_is_kept_unless_forced() {
    let place = Place::with_key();
    place.write("in/a", "text");
    place.write("out/a", "somebody's own");
    let encrypt = ["encrypt", "--key", "k.json", "-q", "-o", "out", "in"];
    place.evener().args(encrypt).run().ended_with(1).saying("in/a: output exists");
    assert_eq!(fs::read(place.join("out/a")).unwrap(), b"somebody's own");
    assert_eq!(files(&place.join("out")), [Path::new("a")]);
    place.evener().args(encrypt).arg("--force").run().succeeded();
    place.evener().args(["decrypt", "--key", "k.json", "-q", "-o", "back", "out"]).run().succeeded();
    assert_eq!(fs::read(place.join("back/a")).unwrap(), b"text");
}

#[test]
fn two_inputs_of_one_name_are_refused_before_one_overwrites_the_other() {
    let place = Place::with_key();
    place.write("one/a", "text");
    place.write("other/a", "text");
    for inputs in [["one/a", "other/a"], ["one", "one"]] {
        let run = place.evener().args(["encrypt", "--key", "k.json", "--force", "-o", "out"]);
        run.args(inputs).run().ended_with(2).saying("two inputs");
    }
    assert!(!place.join("out").exists());
}

#[test]
fn a_pipe_among_several_inputs_is_refused_and_not_waited_for() {
    let place = Place::with_key();
    place.write("a", "text");
    place.program("mkfifo").arg("pipe").run().succeeded();
    for input in ["pipe", "/dev/null"] {
        let run =
            place.evener().args(["encrypt", "--key", "k.json", "-q", "--force", "-o", "out", input, "a"]);
        run.run().ended_with(1).saying("standard input");
    }
    assert_eq!(files(&place.join("out")), [Path::new("a")]);
}

#[test]
fn an_output_inside_an_input_is_refused_before_anything_is_done() {
    let place = Place::with_key();
    place.write("in/sub/a", "text");
    let before = tree(&place.join("in"));
    for output in ["in", "in/out", "in/sub/../new/out", "./in/sub"] {
        let ran = place.evener().args(["encrypt", "--key", "k.json", "-o", output, "in"]).run();
        ran.ended_with(2).saying("inside the input");
    }
    assert_eq!(tree(&place.join("in")), before);
}

#[test]
fn a_keyset_that_is_none_is_refused_in_one_line_that_does_not_repeat_it() {
    let place = Place::new();
    place.write("a", "text");
    let good = fs::read_to_string(place.keyset("good.json")).unwrap();
    let value = good.split("\"value\": \"").nth(1).unwrap().split('"').next().unwrap();
    let cases = [
        ("empty", String::new()),
        ("text", "not a key at all".to_owned()),
        ("half", good[..good.len() / 2].to_owned()),
        ("other type", good.replace("AesGcmHkdfStreamingKey", "AesGcmKey")),
        ("damaged", good.replace(value, &value[..value.len() - 8])),
    ];
    for (name, json) in cases {
        place.write_secret(name, json);
        let ran = place.evener().args(["encrypt", "--key", name, "-o", "out", "a"]).run();
        let ran = ran.ended_with(2).saying(&format!("{name}: keyset"));
        assert!(!ran.stderr().contains(&value[..12]), "{}", ran.stderr());
    }
    place
        .evener()
        .args(["encrypt", "--key", "missing", "-o", "out", "a"])
        .run()
        .ended_with(2)
        .saying("missing");
    let directory = place.path().to_owned();
    let ran = place.evener().args(["encrypt", "-o", "out", "a", "--key"]).arg(directory).run();
    ran.ended_with(2).saying("cannot read");
    assert!(!place.join("out").exists());
}

#[test]
fn a_key_that_others_can_read_is_used_with_a_warning() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let key = place.keyset("k.json");
    place.write("a", "text");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let ran = place.evener().args(["encrypt", "--key", "k.json", "-q", "-o", "out", "a"]).run();
    ran.succeeded().saying("warning: others can read k.json (mode 0644)");
    assert!(place.join("out").exists());
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let place = Place::with_key();
    place.write("a", "text");
    place.write_secret("pass", "a passphrase\n");
    let encrypt = ["encrypt", "--key", "k.json", "-o", "out", "a"];
    let openssl = ["encrypt", "--format", "openssl", "--passphrase-file", "pass", "-o", "out", "a"];
    let cases: [(&[&str], &[&str], &str); 6] = [
        (&["keygen", "new.json"], &["--template", "AES512"], "AES256_GCM_HKDF_1MB"),
        (&encrypt, &["--policy", "fastest"], "shared_queue"),
        (&encrypt, &["--module", "emulated:vax"], "am3358"),
        (&encrypt, &["--cpu-cost", "emulated:vax"], "am3358"),
        (&encrypt, &["--format", "zip"], "tink"),
        (&openssl, &["--cipher", "rot13"], "aes-256-cbc"),
    ];
    for (command, option, known) in cases {
        let ran = place.evener().args(command).args(option).run().ended_with(2).saying(known);
        assert!(ran.stderr().contains(option[1].trim_start_matches("emulated:")), "{}", ran.stderr());
    }
    assert!(!place.join("new.json").exists() && !place.join("out").exists());
}

#[test]
fn options_that_do_not_fit_each_other_stop_everything_in_one_line() {
    let place = Place::with_key();
    place.write_secret("pass", "word");
    place.write("a", "text");
    let cases: [(&[&str], &str); 16] = [
        (&["encrypt"], "required"),
        (&["encrypt", "--key", "k.json", "-v", "-q", "a"], "cannot be used with"),
        (&["encrypt", "-o", "out", "a"], "--key"),
        (&["encrypt", "--key", "k.json", "-r", "age1", "-o", "out", "a"], "cannot be used with"),
        (&["encrypt", "--key", "k.json", "-R", "a", "-o", "out", "a"], "cannot be used with"),
        (&["decrypt", "--key", "k.json", "--identity", "a", "-o", "out", "a"], "cannot be used with"),
        (&["encrypt", "--passphrase-file", "pass", "-p", "-o", "out", "a"], "cannot be used with"),
        (&["encrypt", "--key", "k.json", "--format", "age", "-o", "out", "a"], "--format age"),
        (&["encrypt", "--passphrase-file", "pass", "--format", "tink", "-o", "out", "a"], "--key"),
        (&["encrypt", "--key", "k.json", "--iter", "5", "-o", "out", "a"], "--format openssl"),
        (&["encrypt", "--passphrase-file", "pass", "--associated-data", "x", "-o", "out", "a"], "--key"),
        (&["encrypt", "--key", "k.json", "--policy", "polling", "-o", "out", "a"], "--module"),
        (&["encrypt", "--key", "k.json", "--workers", "0", "-o", "out", "a"], "--workers"),
        (&["encrypt", "--key", "k.json", "--cpu-budget", "0", "-o", "out", "a"], "--cpu-budget"),
        (&["encrypt", "--key", "k.json", "--cpu-budget", "101", "-o", "out", "a"], "--cpu-budget"),
        (&["encrypt", "--key", "k.json", "--objective", "fame", "-o", "out", "a"], "--objective"),
    ];
    for (arguments, words) in cases {
        place.evener().args(arguments).run().ended_with(2).saying(words);
    }
    assert!(!place.join("out").exists());
}

#[test]
fn standard_input_and_output_take_one_input_only() {
    let place = Place::with_key();
    place.write("in/a", "text");
    for inputs in [&["-", "in/a"][..], &["in/a", "in/a"], &["in"]] {
        let ran = place.evener().args(["encrypt", "--key", "k.json", "-o", "-"]).args(inputs).run();
        assert_eq!(ran.stdout(), b"");
        ran.ended_with(2).saying("exactly one input");
    }
}

#[test]
fn memory_for_less_than_a_segment_is_refused_with_the_amount_that_would_do() {
    let place = Place::new();
    place.evener().args(["keygen", "k.json"]).run().succeeded();
    place.write("a", "text");
    let encrypt = ["encrypt", "--key", "k.json", "-o", "out", "a", "--workers", "1"];
    place.evener().args(encrypt).args(["--memory", "64K"]).run().ended_with(2).saying("--memory");
    place.evener().args(encrypt).args(["--memory", "lots"]).run().ended_with(2).saying("256M");
    place.evener().args(encrypt).args(["--memory", "4M", "--quiet"]).run().succeeded();
}
