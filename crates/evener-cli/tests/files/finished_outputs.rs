//! Which outputs count as finished: those that the keys of this run show to be its own.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::{self, Place, noise, tree};

const ED25519: &str = include_str!("../../../evener-files/tests/keys/ed25519.pub");
const ED25519_OTHER: &str = include_str!("../../../evener-files/tests/keys/ed25519_encrypted.pub");
const RSA: &str = include_str!("../../../evener-files/tests/keys/rsa.pub");
const EXISTS: &str = "output exists and is not the finished result";
const UNKNOWN: &str = "whether it is for these recipients cannot be seen";
const NO_KEY: &str = "no key fits";

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

/// What `first` finished counts as finished for `first`, and for `other` it is an error that leaves it as it is; with the record of the
/// first run and without one.
#[track_caller]
fn only_its_own_keys_take_it(place: &Place, verb: &str, first: &[&str], other: &[&str]) {
    run(place, verb, first).succeeded();
    let output = place.join(if verb == "encrypt" { "sealed" } else { "back" });
    let finished = tree(&output);
    for has_record in [true, false] {
        if !has_record {
            remove_record(place, verb);
        }
        let ran = run(place, verb, other).ended_with(1);
        assert!([EXISTS, NO_KEY, UNKNOWN].iter().any(|said| ran.stderr().contains(said)), "{}", ran.stderr());
        assert!(tree(&output) == finished, "it was touched");
        if has_record || !needs_record(first) {
            run(place, verb, first).succeeded();
        }
        assert!(tree(&output) == finished, "it was touched");
    }
}

/// Whether only a record knows what stands there: nothing at hand opens what is for recipients.
fn needs_record(options: &[&str]) -> bool {
    options.contains(&"-r") && !options.contains(&"-i")
}

fn remove_record(place: &Place, verb: &str) {
    let name = if verb == "encrypt" { ".sealed.evener-record" } else { ".back.evener-record" };
    fs::remove_file(place.join(name)).unwrap();
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
    run(&place, "decrypt", &other).ended_with(1);
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
fn an_output_for_recipients_is_known_by_the_record_and_without_one_neither_taken_for_done_nor_touched() {
    let place = place();
    let (a, b) = (recipient(&place, "a"), recipient(&place, "b"));
    run(&place, "encrypt", &["-r", &a]).succeeded();
    let finished = tree(&place.join("sealed"));
    run(&place, "encrypt", &["-r", &a]).succeeded();
    run(&place, "encrypt", &["-r", &b]).ended_with(1).saying(EXISTS);
    remove_record(&place, "encrypt");
    for recipient in [&a, &b] {
        run(&place, "encrypt", &["-r", recipient]).ended_with(1).saying(UNKNOWN);
        run(&place, "encrypt", &["--update", "-r", recipient]).ended_with(1).saying(UNKNOWN);
        assert!(tree(&place.join("sealed")) == finished);
    }
    run(&place, "encrypt", &["-r", &b, "--force"]).succeeded();
    run(&place, "encrypt", &["-r", &b]).succeeded();
    run(&place, "decrypt", &["-i", "b"]).succeeded();
}

#[test]
fn a_single_output_for_recipients_is_known_too_and_nothing_is_left_beside_it() {
    let place = place();
    let (a, b) = (recipient(&place, "a"), recipient(&place, "b"));
    let single = |recipient: &str| {
        place.evener().args(["encrypt", "-q", "-r", recipient, "-o", "one.age", "in/file"]).run()
    };
    single(&a).succeeded();
    let names = |place: &Place| {
        fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    let before = names(&place);
    let made = fs::read(place.join("one.age")).unwrap();
    single(&a).succeeded();
    single(&b).ended_with(1).saying(EXISTS);
    assert!(fs::read(place.join("one.age")).unwrap() == made);
    assert_eq!(names(&place), before);
    assert!(!before.iter().any(|name| name.to_string_lossy().contains("evener-record")));
}

#[test]
fn an_output_for_an_identity_at_hand_is_known_by_it() {
    let place = place();
    let other = recipient(&place, "b");
    recipient(&place, "a");
    only_its_own_keys_take_it(&place, "encrypt", &["-i", "a"], &["-i", "b"]);
    // One of the two stanzas may be for any recipient, unless the record says for whom.
    run(&place, "encrypt", &["-i", "a", "-r", &other, "--force"]).succeeded();
    run(&place, "encrypt", &["-i", "a", "-r", &other]).succeeded();
    remove_record(&place, "encrypt");
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

/// A file of each size, in three directories.
fn write_inputs(place: &Place, sizes: [usize; 5]) {
    for (number, bytes) in (0_u32..).zip(sizes) {
        place.write(format!("in/{}/{number}", number % 3), noise(number.into(), bytes));
    }
}

/// Half of the outputs, as an interrupted run leaves them, are completed by the same command.
#[test]
fn what_an_interrupted_run_left_is_carried_on_with_every_key_that_can_be_recognized() {
    let place = Place::new();
    write_inputs(&place, [0, 16, 4_040, 65_536, 600_000]);
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

/// Sets the times of what is in `folder` to whole seconds, as ext3 does, or rounds them as `round` says.
fn round_times(folder: &Path, round: impl Fn(u64) -> u64) {
    for name in common::files(folder) {
        let file = fs::File::options().write(true).open(folder.join(name)).unwrap();
        let since =
            file.metadata().unwrap().modified().unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(round(since.as_secs()))).unwrap();
    }
}

#[test]
fn a_rerun_derives_one_key_from_a_passphrase_and_not_one_for_each_file() {
    let place = Place::new();
    place.write_secret("pass", "a passphrase\n");
    place.write_secret("other", "another one\n");
    (0..6).for_each(|name: u8| drop(place.write(format!("in/{name}"), [name; 100])));
    // A file of the very tick in which it is encrypted is looked at again.
    std::thread::sleep(Duration::from_millis(50));
    run(&place, "encrypt", &["--passphrase-file", "pass"]).succeeded();
    run(&place, "decrypt", &["--passphrase-file", "pass"]).succeeded();
    // Each key costs more than half a second of a core; the kernel ends what takes more than three.
    let in_time = ["-c", r#"ulimit -t 3 && exec "$0" "$@""#, common::EVENER];
    let again = |verb: &str, pass: &str| {
        let (from, to) = if verb == "encrypt" { ("in", "sealed") } else { ("sealed", "back") };
        place.program("sh").args(in_time).args([verb, "-q", "--passphrase-file", pass, "-o", to, from]).run()
    };
    for verb in ["encrypt", "decrypt"] {
        again(verb, "pass").succeeded();
        // A tree has one key under the passphrase, which says at once whether that is the right one.
        again(verb, "other").ended_with(2).saying(WRONG_PASSPHRASE);
    }
    round_times(&place.join("back"), |seconds| seconds);
    again("decrypt", "pass").succeeded();
    round_times(&place.join("sealed"), |seconds| seconds / 86_400 * 86_400);
    again("encrypt", "pass").succeeded();
}

#[test]
fn what_is_done_is_done_whatever_the_file_system_makes_of_times() {
    let place = Place::new();
    write_inputs(&place, [0, 1, 4_040, 65_536, 600_000]);
    // Long ago: a source of this second could still change without its time.
    round_times(&place.join("in"), |s| s - 100_000);
    place.keyset("k.json");
    recipient(&place, "id");
    place.write_secret("pass", "a passphrase\n");
    let openssl = ["--format", "openssl", "--iter", "3", "--passphrase-file", "pass"];
    let ways: [&[&str]; 4] = [&["--key", "k.json"], &["-i", "id"], &openssl, &["-r", ED25519]];
    let rounds: [fn(u64) -> u64; 4] = [|s| s, |s| s / 2 * 2, |s| (s + 2) / 2 * 2, |s| s / 86_400 * 86_400];
    for way in ways {
        for round in rounds {
            for verb in if needs_record(way) { &["encrypt"][..] } else { &["encrypt", "decrypt"] } {
                run(&place, verb, way).succeeded();
                let output = place.join(if *verb == "encrypt" { "sealed" } else { "back" });
                round_times(&output, round);
                let before = tree(&output);
                run(&place, verb, way).succeeded();
                run(&place, verb, way).succeeded();
                assert!(tree(&output) == before, "{way:?} {verb}");
            }
        }
        for name in ["sealed", "back"] {
            fs::remove_dir_all(place.join(name)).ok();
        }
    }
}

/// What the outputs hold; their times are those of their sources.
fn contents(place: &Place) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    tree(&place.join("sealed")).into_iter().map(|(path, entry)| (path, entry.bytes)).collect()
}

#[test]
fn a_record_that_is_damaged_or_missing_or_of_another_version_costs_time_and_nothing_else() {
    let place = place();
    place.write("in/other", "text");
    place.keyset("k.json");
    let key = ["--key", "k.json"];
    run(&place, "encrypt", &key).succeeded();
    let record = place.join(".sealed.evener-record");
    let (whole, before) = (fs::read(&record).unwrap(), contents(&place));
    let mut bit = whole.clone();
    bit[70] ^= 1;
    let mut other = whole.clone();
    other[14] = b'2';
    let damaged: [&[u8]; 6] = [&[], b"e", &whole[..whole.len() - 1], &bit, &other, &[0xFF; 3000]];
    for damaged in damaged {
        fs::write(&record, damaged).unwrap();
        run(&place, "encrypt", &key).succeeded();
        assert!(contents(&place) == before);
        place.write("in/other", "a longer text");
        run(&place, "encrypt", &key).ended_with(1).saying(EXISTS);
        place.write("in/other", "text");
    }
    assert!(fs::read(&record).unwrap().starts_with(b"evener record 1\n"), "it is mended");
    fs::remove_file(&record).unwrap();
    fs::create_dir(&record).unwrap();
    run(&place, "encrypt", &key).succeeded();
    fs::remove_dir(&record).unwrap();
    std::os::unix::fs::symlink("in/other", &record).unwrap();
    run(&place, "encrypt", &key).succeeded();
    assert_eq!(fs::read(place.join("in/other")).unwrap(), b"text", "a link is not written through");
}

#[test]
fn a_changed_source_is_an_error_until_update_makes_its_output_again_and_no_other() {
    let place = Place::new();
    (0..5).for_each(|name: u8| drop(place.write(format!("in/{name}"), [name; 100])));
    place.keyset("k.json");
    let a = recipient(&place, "a");
    place.write_secret("pass", "a passphrase\n");
    let openssl = ["--format", "openssl", "--iter", "3", "--passphrase-file", "pass"];
    for way in [&["--key", "k.json"][..], &["-r", &a], &["-i", "a"], &openssl] {
        run(&place, "encrypt", way).succeeded();
        let before = tree(&place.join("sealed"));
        place.write("in/3", "another text");
        place.write("in/4", [9; 100]);
        let ran = run(&place, "encrypt", way).ended_with(1);
        assert!(ran.stderr().contains("in/3: ") && ran.stderr().contains("its source has changed since"));
        assert!(tree(&place.join("sealed")) == before);
        run(&place, "encrypt", &[way, &["--update"]].concat()).succeeded();
        let after = tree(&place.join("sealed"));
        for (name, made_again) in [("0", false), ("1", false), ("2", false), ("3", true), ("4", true)] {
            assert_eq!(
                after[Path::new(name)].bytes != before[Path::new(name)].bytes,
                made_again,
                "{way:?} {name}"
            );
        }
        // An output of unknown origin is not replaced.
        place.write("sealed/2", "somebody else's");
        run(&place, "encrypt", &[way, &["--update"]].concat()).ended_with(1);
        assert_eq!(fs::read(place.join("sealed/2")).unwrap(), b"somebody else's");
        place.write("in/3", [3; 100]);
        place.write("in/4", [4; 100]);
        fs::remove_dir_all(place.join("sealed")).unwrap();
    }
}

#[test]
fn update_makes_again_what_is_for_a_recipient_who_was_taken_away() {
    let place = place();
    let (a, b) = (recipient(&place, "a"), recipient(&place, "b"));
    run(&place, "encrypt", &["-r", &a, "-r", &b]).succeeded();
    run(&place, "encrypt", &["-r", &a]).ended_with(1).saying("it is for another key");
    run(&place, "encrypt", &["--update", "-r", &a]).succeeded();
    run(&place, "decrypt", &["-i", "b"]).ended_with(1).saying(NO_KEY);
    run(&place, "decrypt", &["-i", "a"]).succeeded();
}

#[test]
fn a_source_of_the_same_length_time_and_start_is_not_done_also_without_a_record() {
    let place = Place::with_key();
    let mut text = noise(5, 3_000_000);
    let input = place.write("in/file", &text);
    let time = fs::metadata(&input).unwrap().modified().unwrap();
    run(&place, "encrypt", &["--key", "k.json"]).succeeded();
    *text.last_mut().unwrap() ^= 1;
    place.write("in/file", &text);
    fs::File::options().write(true).open(&input).unwrap().set_modified(time).unwrap();
    run(&place, "encrypt", &["--key", "k.json"]).ended_with(1).saying(EXISTS);
    remove_record(&place, "encrypt");
    run(&place, "encrypt", &["--key", "k.json"]).ended_with(1).saying(EXISTS);
}

#[test]
fn other_inodes_and_their_times_are_looked_into_unless_options_leave_them_out() {
    let place = Place::new();
    let a = recipient(&place, "a");
    place.write("in/file", "text");
    std::thread::sleep(Duration::from_millis(50));
    run(&place, "encrypt", &["-r", &a]).succeeded();
    // The same bytes with the same times, as on a store that gives new numbers: `cp -a` and `mv`.
    place.program("cp").args(["-a", "in/file", "in/copy"]).run().succeeded();
    fs::rename(place.join("in/copy"), place.join("in/file")).unwrap();
    run(&place, "encrypt", &["-r", &a]).ended_with(1).saying(EXISTS);
    for one in ["--ignore-ctime", "--ignore-inode"] {
        run(&place, "encrypt", &["-r", &a, one]).ended_with(1).saying(EXISTS);
    }
    run(&place, "encrypt", &["-r", &a, "--ignore-ctime", "--ignore-inode"]).succeeded();
}

#[test]
fn nothing_of_keys_recipients_or_names_stands_in_a_record() {
    let place = place();
    let a = recipient(&place, "a");
    place.keyset("k.json");
    for way in [["-r", &a], ["--key", "k.json"]] {
        run(&place, "encrypt", &way).succeeded();
        let record = fs::read(place.join(".sealed.evener-record")).unwrap();
        for secret in [a.as_bytes(), &a.as_bytes()[4..20], b"file"] {
            assert!(!record.windows(secret.len()).any(|window| window == secret));
        }
        // The same request into another place makes another record, and it cannot be told that they have one request.
        place.evener().args(["encrypt", "-q", "-o", "again"]).args(way).arg("in").run().succeeded();
        let again = fs::read(place.join(".again.evener-record")).unwrap();
        let blocks = |record: &[u8]| {
            record[20..].chunks(16).map(<[u8]>::to_vec).collect::<std::collections::HashSet<_>>()
        };
        assert!(blocks(&record).is_disjoint(&blocks(&again)));
        for name in ["sealed", "again"] {
            fs::remove_dir_all(place.join(name)).unwrap();
            fs::remove_file(place.join(format!(".{name}.evener-record"))).unwrap();
        }
    }
}

#[test]
fn two_runs_at_once_into_one_directory_are_both_right() {
    let place = Place::new();
    (0..300_u32)
        .for_each(|name| drop(place.write(format!("in/{}/{name}", name % 7), noise(name.into(), 3_000))));
    place.keyset("k.json");
    let a = recipient(&place, "a");
    std::thread::sleep(Duration::from_millis(50));
    for way in [["--key", "k.json"], ["-r", &a]] {
        std::thread::scope(|scope| {
            let runs = [0, 1, 2].map(|_| scope.spawn(|| run(&place, "encrypt", &way)));
            runs.into_iter().for_each(|ran| drop(ran.join().unwrap().succeeded()));
        });
        assert_eq!(common::files(&place.join("sealed")).len(), 300);
        run(&place, "encrypt", &way).succeeded();
        fs::remove_dir_all(place.join("sealed")).unwrap();
    }
}

#[test]
fn devices_and_open_files_are_written_to_and_not_replaced() {
    let place = place();
    place.keyset("k.json");
    let to = |output: &str| {
        place.evener().args(["encrypt", "-q", "--key", "k.json", "-o", output, "in/file"]).run()
    };
    to("/dev/null").succeeded();
    let sealed = to("/dev/stdout").succeeded().stdout().to_vec();
    fs::write(place.join("sealed"), &sealed).unwrap();
    let back =
        place.evener().args(["decrypt", "--key", "k.json", "-o", "/dev/stdout", "sealed"]).run().succeeded();
    assert!(back.stdout() == noise(1, 600_000));
    for device in ["/dev/null", "/dev/stdout"] {
        let kind = fs::symlink_metadata(device).unwrap().file_type();
        assert!(kind.is_symlink() || !kind.is_file(), "{device} is what it was");
    }
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

#[test]
fn a_run_whose_record_cannot_be_kept_says_so_and_deletes_nothing() {
    let place = place();
    let recipient = recipient(&place, "id.txt");
    place.write("many/a", "a");
    let run = |options: &[&str], state: &str| {
        let run = place.evener().args(["encrypt", "-r", &recipient, "-o", "kept"]).args(options).arg("many");
        run.env("EVENER_STATE_DIR", state).run().succeeded()
    };
    assert!(run(&["--force"], "/proc/nope").stderr().contains("no record of this run could be kept"));
    let told = run(&["--force", "--delete"], "/proc/nope");
    assert!(told.stderr().contains("nothing was deleted: no record"), "{}", told.stderr());
    let state = place.join("state");
    assert!(!run(&["--force"], state.to_str().unwrap()).stderr().contains("record"));
}

/// The calls of a run that compares what stands there, as `strace` tells them; `inject` makes them fail.
fn syncs_of_a_comparison(place: &Place, inject: &[&str]) -> usize {
    let words = ["-f", "-qq", "-o", "trace", "-e", "trace=fsync"];
    let command = ["encrypt", "-q", "--workers", "2", "--key", "k.json", "-o", "sealed", "in"];
    let run = place.program("strace").args(words).args(inject).arg(common::EVENER).args(command);
    run.env("EVENER_ARBITER", "off").run().succeeded();
    let trace = fs::read_to_string(place.join("trace")).unwrap();
    trace.lines().filter(|line| line.contains("fsync(")).count()
}

#[test]
fn names_that_are_proven_are_synced_once_in_each_directory_where_that_can_be() {
    if !common::there_is("strace") {
        return common::skipped("strace is not installed");
    }
    let place = Place::with_key();
    for number in 0..300 {
        place.write(format!("in/{}/{number}", number % 3), noise(number, 100));
    }
    run(&place, "encrypt", &["--key", "k.json"]).succeeded();
    let sealed = tree(&place.join("sealed"));
    for inject in [&[][..], &["-e", "inject=fsync:error=EINVAL"], &["-e", "inject=fsync:error=EOPNOTSUPP"]] {
        remove_record(&place, "encrypt");
        let syncs = syncs_of_a_comparison(&place, inject);
        // Each thread may be the first at once; and the record has a name, too.
        assert!((3..30).contains(&syncs), "{inject:?}: {syncs} syncs");
        assert!(tree(&place.join("sealed")) == sealed, "{inject:?}");
    }
}
