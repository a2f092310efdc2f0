//! Which outputs count as finished: those that the keys of this run show to be its own.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::fs;
use std::path::Path;

use common::{Place, noise, tree};

const ED25519: &str = include_str!("../../evener-files/tests/keys/ed25519.pub");
const ED25519_OTHER: &str = include_str!("../../evener-files/tests/keys/ed25519_encrypted.pub");
const RSA: &str = include_str!("../../evener-files/tests/keys/rsa.pub");
const EXISTS: &str = "output exists and is not the finished result";
const UNKNOWN: &str = "whether it is for these recipients cannot be seen";

/// A place with an input `in` that has one file, of more than one segment in every format.
fn place() -> Place {
    let place = Place::new();
    place.write("in/file", noise(1, 600_000));
    place
}

const WRONG_PASSPHRASE: &str = "wrong passphrase";

/// Encrypts `in` to `sealed`, or decrypts `sealed` to `back`.
fn run(place: &Place, verb: &str, options: &[&str]) -> common::Ran {
    let (from, to) = if verb == "encrypt" { ("in", "sealed") } else { ("sealed", "back") };
    place.evener().arg(verb).args(options).args(["-q", "-o", to, from]).run()
}

/// What `first` finished counts as finished for `first`, and for `other` it is an error that leaves it as it is.
#[track_caller]
fn only_its_own_keys_take_it(place: &Place, verb: &str, first: &[&str], other: &[&str]) {
    run(place, verb, first).succeeded();
    let output = place.join(if verb == "encrypt" { "sealed" } else { "back" });
    let finished = tree(&output);
    run(place, verb, first).succeeded();
    run(place, verb, other).ended_with(1).saying(EXISTS);
    assert!(tree(&output) == finished, "it was touched");
    run(place, verb, &[other, &["--resume"]].concat()).succeeded();
    assert!(tree(&output) == finished, "it was touched");
}

/// A recipient of age whose identity is kept in `name`.
fn recipient(place: &Place, name: &str) -> String {
    let made = place.evener().args(["keygen", "--age", name]).run().succeeded();
    made.stderr().trim_start_matches("Public key: ").trim().to_owned()
}

#[test]
fn an_output_under_another_tink_key_is_not_taken_for_done() {
    let place = place();
    place.keyset("k.json");
    place.keyset("other.json");
    only_its_own_keys_take_it(&place, "encrypt", &["--key", "k.json"], &["--key", "other.json"]);
}

/// A keyset of the keys of two others, whose primary key is that of the first.
fn joined(place: &Place, primary: &str, other: &str, name: &str) {
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(place.join(name)).unwrap()).unwrap()
    };
    let (mut keyset, other) = (read(primary), read(other));
    let key = other["key"][0].clone();
    keyset["key"].as_array_mut().unwrap().push(key);
    place.write_secret(name, keyset.to_string());
}

#[test]
fn an_output_under_a_key_that_is_primary_no_more_is_not_taken_for_done() {
    let place = place();
    place.keyset("old.json");
    place.keyset("new.json");
    joined(&place, "new.json", "old.json", "rotated.json");
    only_its_own_keys_take_it(&place, "encrypt", &["--key", "old.json"], &["--key", "rotated.json"]);
    // The user may decrypt, and do so with any of the keys.
    run(&place, "decrypt", &["--key", "old.json"]).succeeded();
    run(&place, "decrypt", &["--key", "rotated.json"]).succeeded();
}

#[test]
fn an_output_with_other_associated_data_is_not_taken_for_done() {
    let place = place();
    place.keyset("k.json");
    let bound = ["--key", "k.json", "--associated-data", "one"];
    let other = ["--key", "k.json", "--associated-data", "two"];
    only_its_own_keys_take_it(&place, "encrypt", &bound, &other);
    run(&place, "decrypt", &bound).succeeded();
    run(&place, "decrypt", &other).ended_with(1).saying(EXISTS);
}

#[test]
fn an_output_for_more_or_fewer_recipients_is_not_taken_for_done() {
    let place = place();
    let (a, b) = (recipient(&place, "a"), recipient(&place, "b"));
    let (alone, both) = (["-r", &a], ["-r", &a, "-r", &b]);
    run(&place, "encrypt", &both).succeeded();
    run(&place, "encrypt", &alone).ended_with(1).saying(EXISTS);
    run(&place, "encrypt", &[&alone[..], &["--force"]].concat()).succeeded();
    run(&place, "encrypt", &both).ended_with(1).saying(EXISTS);
    run(&place, "encrypt", &["-r", ED25519]).ended_with(1).saying(EXISTS);
}

#[test]
fn an_output_that_may_be_for_another_age_recipient_is_neither_taken_for_done_nor_touched() {
    let place = place();
    let (a, b) = (recipient(&place, "a"), recipient(&place, "b"));
    run(&place, "encrypt", &["-r", &a]).succeeded();
    let finished = tree(&place.join("sealed"));
    for recipient in [&a, &b] {
        run(&place, "encrypt", &["-r", recipient]).ended_with(1).saying(UNKNOWN);
        assert!(tree(&place.join("sealed")) == finished);
    }
    run(&place, "encrypt", &["-r", &b, "--resume"]).succeeded();
    assert!(tree(&place.join("sealed")) == finished, "--resume trusts it");
    run(&place, "encrypt", &["-r", &b, "--force"]).succeeded();
    run(&place, "decrypt", &["-i", "b"]).succeeded();
}

#[test]
fn an_output_for_an_identity_at_hand_is_known_by_it() {
    let place = place();
    let other = recipient(&place, "b");
    recipient(&place, "a");
    only_its_own_keys_take_it(&place, "encrypt", &["-i", "a"], &["-i", "b"]);
    // One of the two stanzas may be for any recipient.
    run(&place, "encrypt", &["-i", "a", "-r", &other, "--force"]).succeeded();
    run(&place, "encrypt", &["-i", "a", "-r", &other]).ended_with(1).saying(UNKNOWN);
    run(&place, "encrypt", &["-i", "a", "-i", "b"]).succeeded();
}

#[test]
fn an_output_for_other_ssh_keys_is_not_taken_for_done() {
    let place = place();
    only_its_own_keys_take_it(&place, "encrypt", &["-r", ED25519], &["-r", ED25519_OTHER]);
    run(&place, "encrypt", &["-r", RSA]).ended_with(1).saying(EXISTS);
    let both = ["-r", ED25519, "-r", RSA];
    run(&place, "encrypt", &both).ended_with(1).saying(EXISTS);
    run(&place, "encrypt", &[&both[..], &["--force"]].concat()).succeeded();
    run(&place, "encrypt", &["-r", RSA, "-r", ED25519]).succeeded();
    run(&place, "encrypt", &["-r", RSA, "-r", RSA]).ended_with(1).saying(EXISTS);
}

#[test]
fn an_output_under_another_passphrase_is_not_taken_for_done() {
    let place = place();
    place.write_secret("pass", "a passphrase\n");
    place.write_secret("other", "another one\n");
    let (first, other) = (["--passphrase-file", "pass"], ["--passphrase-file", "other"]);
    run(&place, "encrypt", &first).succeeded();
    let finished = tree(&place.join("sealed"));
    run(&place, "encrypt", &first).succeeded();
    // The tree's own identity is the first thing that a passphrase opens.
    run(&place, "encrypt", &other).ended_with(2).saying(WRONG_PASSPHRASE);
    assert!(tree(&place.join("sealed")) == finished, "it was touched");
    run(&place, "encrypt", &["-r", ED25519]).ended_with(1).saying(EXISTS);
    run(&place, "decrypt", &first).succeeded();
    run(&place, "decrypt", &first).succeeded();
    run(&place, "decrypt", &other).ended_with(2).saying(WRONG_PASSPHRASE);
}

#[test]
fn an_openssl_output_under_another_passphrase_cipher_or_count_of_rounds_is_not_taken_for_done() {
    let place = place();
    place.write_secret("pass", "a passphrase\n");
    place.write_secret("other", "another one\n");
    let first = ["--format", "openssl", "--passphrase-file", "pass", "--iter", "20"];
    let others: [&[&str]; 3] = [
        &["--format", "openssl", "--passphrase-file", "other", "--iter", "20"],
        &["--format", "openssl", "--passphrase-file", "pass", "--iter", "20", "--cipher", "aes-128-cbc"],
        &["--format", "openssl", "--passphrase-file", "pass", "--iter", "21"],
    ];
    for (verb, output) in [("encrypt", "sealed"), ("decrypt", "back")] {
        for other in others {
            only_its_own_keys_take_it(&place, verb, &first, other);
        }
        assert!(place.join(output).is_dir());
    }
}

/// Padding fits by chance once in 256 times: so many files that some do, each a segment that is the last.
#[test]
fn padding_that_fits_by_chance_makes_no_openssl_output_done() {
    let place = Place::new();
    for number in 0..600_u32 {
        place.write(format!("in/{number}"), noise(number.into(), number as usize % 48));
    }
    place.write_secret("pass", "a passphrase\n");
    place.write_secret("other", "another one\n");
    let with = |file: &'static str| {
        ["--format", "openssl", "--iter", "1", "--passphrase-file", file, "--json", "report"]
    };
    run(&place, "encrypt", &with("pass")).succeeded();
    run(&place, "encrypt", &with("other")).ended_with(1);
    let report: serde_json::Value = serde_json::from_slice(&fs::read(place.join("report")).unwrap()).unwrap();
    assert_eq!(report["already_done"], 0);
    run(&place, "encrypt", &with("pass")).succeeded();
}

#[test]
fn a_wrong_key_over_a_finished_plaintext_is_an_error() {
    let place = place();
    place.keyset("k.json");
    place.keyset("other.json");
    recipient(&place, "a");
    recipient(&place, "b");
    for (right, wrong) in [(["--key", "k.json"], ["--key", "other.json"]), (["-i", "a"], ["-i", "b"])] {
        run(&place, "encrypt", &right).succeeded();
        only_its_own_keys_take_it(&place, "decrypt", &right, &wrong);
        fs::remove_dir_all(place.join("sealed")).unwrap();
        fs::remove_dir_all(place.join("back")).unwrap();
    }
}

#[test]
fn an_input_that_was_replaced_by_one_of_the_same_length_and_time_is_not_done() {
    let place = Place::with_key();
    let input = place.write("in/file", "first text");
    let time = fs::metadata(&input).unwrap().modified().unwrap();
    run(&place, "encrypt", &["--key", "k.json"]).succeeded();
    run(&place, "decrypt", &["--key", "k.json"]).succeeded();
    for name in ["in/file", "back/file"] {
        place.write(name, "other text");
        fs::File::options().write(true).open(place.join(name)).unwrap().set_modified(time).unwrap();
    }
    run(&place, "encrypt", &["--key", "k.json"]).ended_with(1).saying(EXISTS);
    run(&place, "decrypt", &["--key", "k.json"]).ended_with(1).saying(EXISTS);
}

/// Half of the outputs, as an interrupted run leaves them, are completed by the same command.
#[test]
fn what_an_interrupted_run_left_is_carried_on_with_every_key_that_can_be_recognized() {
    let place = Place::new();
    for (number, bytes) in (0_u32..).zip([0, 16, 4_040, 65_536, 600_000]) {
        place.write(format!("in/{}/{number}", number % 3), noise(number.into(), bytes));
    }
    place.keyset("k.json");
    place.write_secret("pass", "a passphrase\n");
    let openssl = ["--format", "openssl", "--passphrase-file", "pass"];
    let ways: [(&[&str], bool); 4] = [
        (&["--key", "k.json"], true),
        (&openssl, true),
        (&["--passphrase-file", "pass"], true),
        (&["-r", ED25519, "-r", RSA], false),
    ];
    for (way, opens) in ways {
        for verb in if opens { &["encrypt", "decrypt"][..] } else { &["encrypt"] } {
            run(&place, verb, way).succeeded();
            let output = place.join(if *verb == "encrypt" { "sealed" } else { "back" });
            let whole = tree(&output);
            for name in ["0/3", "1/4"] {
                fs::remove_file(output.join(name)).unwrap();
            }
            run(&place, verb, way).succeeded();
            let again = tree(&output);
            let untouched = |name: &Path| again[name] == whole[name];
            assert!(["0/0", "1/1", "2/2"].iter().all(|name| untouched(Path::new(name))), "{way:?}");
            assert_eq!(again.keys().collect::<Vec<_>>(), whole.keys().collect::<Vec<_>>());
        }
        if opens {
            assert!(tree(&place.join("back")) == tree(&place.join("in")), "{way:?}");
            fs::remove_dir_all(place.join("back")).unwrap();
        }
        fs::remove_dir_all(place.join("sealed")).unwrap();
    }
}

#[test]
fn a_rerun_that_resumes_derives_no_key_for_what_is_done() {
    let place = Place::new();
    place.write_secret("pass", "a passphrase\n");
    place.write_secret("other", "another one\n");
    (0..4).for_each(|name: u8| drop(place.write(format!("in/{name}"), [name; 100])));
    run(&place, "encrypt", &["--passphrase-file", "pass"]).succeeded();
    run(&place, "decrypt", &["--passphrase-file", "pass"]).succeeded();
    // Each key costs more than half a second of a core; the kernel ends what takes more than one.
    let in_a_second = ["-c", r#"ulimit -t 1 && exec "$0" "$@""#, common::EVENER];
    let encrypt = ["encrypt", "-q", "--resume", "--passphrase-file", "pass", "-o", "sealed", "in"];
    place.program("sh").args(in_a_second).args(encrypt).run().succeeded();
    // A tree has one key under the passphrase, which says at once whether that is the right one.
    let decrypt = ["decrypt", "-q", "--resume", "--passphrase-file", "other", "-o", "back", "sealed"];
    place.program("sh").args(in_a_second).args(decrypt).run().ended_with(2).saying(WRONG_PASSPHRASE);
}

#[test]
fn with_memory_for_few_segments_every_file_still_meets_every_key() {
    let place = Place::new();
    place.evener().args(["keygen", "a.json"]).run().succeeded();
    place.evener().args(["keygen", "b.json"]).run().succeeded();
    joined(&place, "b.json", "a.json", "both.json");
    (0..8).for_each(|name: u8| drop(place.write(format!("in/{name}"), [name; 100])));
    run(&place, "encrypt", &["--key", "a.json"]).succeeded();
    let little = ["--workers", "1", "--memory", "3M", "--key", "both.json"];
    run(&place, "decrypt", &little).succeeded();
    assert_eq!(common::files(&place.join("back")).len(), 8);
    run(&place, "decrypt", &little).succeeded();
}
