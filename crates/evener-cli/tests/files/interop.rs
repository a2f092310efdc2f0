//! The command against the commands `age` and `openssl enc`, each reading what the other wrote.
//!
//! Google's tink is run by `conformance/interop`; the test kit of age by the tests of evener-files.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::PathBuf;

use crate::common::{EVENER, Place, files, noise};

/// Lengths in bytes around an age chunk, an openssl block and a whole run of segments.
const SIZES: [usize; 10] = [0, 1, 15, 16, 17, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 1 << 20, 10 << 20];

/// Texts of all sizes as a tree, so that one run of the command has all of them.
fn texts(place: &Place) -> Vec<(PathBuf, Vec<u8>)> {
    let text = |bytes: usize| {
        let (name, text) = (PathBuf::from(format!("of {bytes} bytes")), noise(bytes as u64, bytes));
        place.write(PathBuf::from("plain").join(&name), &text);
        (name, text)
    };
    SIZES.map(text).into()
}

/// Encrypts the tree with the command; `other` decrypts each file of it.
fn other_reads(place: &Place, options: &[&str], other: &dyn Fn(&[u8]) -> Vec<u8>) {
    let texts = texts(place);
    let run = place.evener().arg("encrypt").args(options);
    run.args(["-q", "--force", "-o", "sealed", "plain"]).run().succeeded();
    assert_eq!(files(&place.join("sealed")).len(), texts.len());
    for (name, text) in texts {
        let sealed = fs::read(place.join("sealed").join(&name)).unwrap();
        // A few bytes may come out as they were, by chance.
        assert!(text.len() < 16 || !sealed.ends_with(&text), "{name:?} is not encrypted");
        assert!(other(&sealed) == text, "{name:?}, {options:?}");
    }
}

/// Lets `other` encrypt each text; the command decrypts all in one run.
fn other_writes(place: &Place, options: &[&str], other: &dyn Fn(&[u8]) -> Vec<u8>) {
    let texts = texts(place);
    for (name, text) in &texts {
        place.write(PathBuf::from("theirs").join(name), other(text));
    }
    let run = place.evener().arg("decrypt").args(options);
    run.args(["-q", "--force", "-o", "back", "theirs"]).run().succeeded();
    for (name, text) in texts {
        assert!(fs::read(place.join("back").join(&name)).unwrap() == text, "{name:?}, {options:?}");
    }
}

/// A program as a filter, in a place.
fn filter<'p>(place: &'p Place, program: &'p str, arguments: &[&str]) -> impl Fn(&[u8]) -> Vec<u8> + 'p {
    let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
    move |bytes| place.program(program).args(&arguments).input(bytes).run().succeeded().stdout().to_vec()
}

/// The recipient that belongs to an identity file of ours.
fn recipient(place: &Place, identity: &str) -> String {
    let file = fs::read_to_string(place.join(identity)).unwrap();
    let line = file.lines().find_map(|line| line.strip_prefix("# public key: "));
    line.expect("the file names its recipient").to_owned()
}

#[test]
fn age_and_the_command_read_each_other() {
    let Some(place) = Place::with_programs(&["age"]) else { return };
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    let to = recipient(&place, "id");
    place.write("recipients", format!("# one a line\n{to}\n"));
    let age_reads = filter(&place, "age", &["-d", "-i", "id"]);
    other_reads(&place, &["-r", &to], &age_reads);
    other_reads(&place, &["-R", "recipients"], &age_reads);
    other_writes(&place, &["-i", "id"], &filter(&place, "age", &["-r", &to]));
}

#[test]
fn what_age_has_armored_is_read_in_a_tree_and_from_a_pipe_and_counts_as_done_afterwards() {
    let Some(place) = Place::with_programs(&["age"]) else { return };
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    let age = filter(&place, "age", &["-a", "-r", &recipient(&place, "id")]);
    other_writes(&place, &["-i", "id"], &age);
    let tree = || place.evener().args(["decrypt", "-q", "-i", "id", "-o", "back", "theirs"]).run();
    // Without --force: only what counts as done lets this end well.
    tree().succeeded();
    for (name, text) in texts(&place) {
        let armored = fs::read(place.join("theirs").join(&name)).unwrap();
        assert!(armored.starts_with(b"-----BEGIN AGE"));
        let piped = place.evener().args(["decrypt", "-q", "-i", "id", "-o", "-", "-"]).input(armored).run();
        assert!(piped.succeeded().stdout() == text, "{name:?}");
    }
    let mut damaged = fs::read(place.join("theirs/of 65536 bytes")).unwrap();
    damaged[40_000] = b'!';
    place.write("theirs/damaged", damaged);
    tree().ended_with(1).saying("theirs/damaged: cannot read");
    assert_eq!(files(&place.join("back")).len(), SIZES.len(), "nothing else is left beside the outputs");
}

#[test]
fn age_and_the_command_read_what_the_other_sealed_with_a_passphrase_from_the_terminal() {
    let Some(place) = Place::with_programs(&["age"]) else { return };
    let text = noise(7, 200_000);
    place.write("plain", &text);
    let typed = |program: &str, arguments: &[&str], answers: &[&str]| {
        let (ran, shown) = place.at_a_terminal(program, arguments, answers);
        ran.succeeded();
        assert!(!shown.contains(PASSPHRASE), "{program} shows the passphrase: {shown:?}");
    };
    typed(EVENER, &["encrypt", "-q", "-p", "-o", "ours", "plain"], &[PASSPHRASE; 2]);
    typed("age", &["-d", "-o", "theirs of ours", "ours"], &[PASSPHRASE]);
    typed("age", &["-p", "-o", "theirs", "plain"], &[PASSPHRASE; 2]);
    typed(EVENER, &["decrypt", "-q", "-p", "-o", "ours of theirs", "theirs"], &[PASSPHRASE]);
    for read in ["theirs of ours", "ours of theirs"] {
        assert!(fs::read(place.join(read)).unwrap() == text, "{read}");
    }
}

const PASSPHRASE: &str = "correct horse battery staple";

#[test]
fn a_passphrase_on_the_terminal_is_asked_for_twice_and_must_be_the_same() {
    let place = Place::new();
    place.write("plain", "text");
    let arguments = ["encrypt", "--format", "openssl", "-q", "-p", "-o", "sealed", "plain"];
    let (ran, shown) = place.at_a_terminal(EVENER, &arguments, &[PASSPHRASE, "correct horse"]);
    ran.ended_with(2).saying("the two passphrases differ");
    assert!(
        shown.contains("Passphrase (none: one is made): ") && shown.contains("The same again: "),
        "{shown:?}"
    );
    assert!(!shown.contains("horse") && !place.join("sealed").exists(), "{shown:?}");
    // openssl takes the same line from a file.
    place.at_a_terminal(EVENER, &arguments, &[PASSPHRASE; 2]).0.succeeded();
    place.write("pass", PASSPHRASE);
    let openssl = ["enc", "-d", "-aes-256-cbc", "-pbkdf2", "-pass", "file:pass", "-in", "sealed"];
    assert_eq!(place.program("openssl").args(openssl).run().succeeded().stdout(), b"text");
}

#[test]
fn age_and_the_command_read_each_other_with_keys_of_ssh() {
    let Some(place) = Place::with_programs(&["age", "ssh-keygen"]) else { return };
    for kind in ["ed25519", "rsa"] {
        let (secret, public) = (format!("id_{kind}"), format!("id_{kind}.pub"));
        place.program("ssh-keygen").args(["-q", "-t", kind, "-N", "", "-f", &secret]).run().succeeded();
        let text = fs::read_to_string(place.join(&public)).unwrap();
        other_reads(&place, &["-r", text.trim_end()], &filter(&place, "age", &["-d", "-i", &secret]));
        other_writes(&place, &["-i", &secret], &filter(&place, "age", &["-R", &public]));
    }
}

#[test]
fn an_identity_of_age_keygen_is_one_for_the_command() {
    let Some(place) = Place::with_programs(&["age", "age-keygen"]) else { return };
    place.program("age-keygen").args(["-o", "theirs.id"]).run().succeeded();
    let to = recipient(&place, "theirs.id");
    other_reads(&place, &["-i", "theirs.id"], &filter(&place, "age", &["-d", "-i", "theirs.id"]));
    other_writes(&place, &["-i", "theirs.id"], &filter(&place, "age", &["-r", &to]));
}

#[test]
fn openssl_enc_and_the_command_read_each_other() {
    let Some(place) = Place::with_programs(&["openssl"]) else { return };
    place.write_secret("passphrase", "open sesame\n");
    for cipher in ["aes-128-cbc", "aes-192-cbc", "aes-256-cbc"] {
        let option = format!("-{cipher}");
        let openssl = ["enc", &option, "-pbkdf2", "-pass", "file:passphrase"];
        let options = ["--format", "openssl", "--cipher", cipher, "--passphrase-file", "passphrase"];
        other_reads(&place, &options, &filter(&place, "openssl", &[&openssl[..], &["-d"]].concat()));
        other_writes(&place, &options, &filter(&place, "openssl", &openssl));
    }
}
