//! Files and keys as people have them: text forms, lists, plugins, protected keysets, trees under one passphrase; judged by the commands
//! `age`, `openssl` and `ssh-keygen`.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::common::{self, Place, files, noise};
use evener_testbed::write_program;
use serde_json::Value;

/// An age identity in a file; its recipient.
fn identity(place: &Place, name: &str, options: &[&str]) -> String {
    let ran = place.evener().args(["keygen", "--age", name]).args(options).run().succeeded();
    ran.stderr().trim().strip_prefix("Public key: ").unwrap().to_owned()
}

fn run(place: &Place, verb: &str, options: &[&str], to: &str, from: &str) {
    place.evener().arg(verb).args(options).args(["-q", "--force", "-o", to, from]).run().succeeded();
}

/// Decrypts, and compares with what was encrypted.
fn comes_back(place: &Place, options: &[&str], sealed: &str, plain: &[u8]) {
    run(place, "decrypt", options, "back", sealed);
    assert!(fs::read(place.join("back")).unwrap() == plain, "{options:?} {sealed}");
}

#[test]
fn key_files_may_come_from_standard_input_and_with_marks_of_any_editor() {
    let place = Place::new();
    let recipient = identity(&place, "id", &[]);
    let secret = fs::read_to_string(place.join("id")).unwrap();
    place.write("plain", "text");
    let utf16: Vec<u8> =
        format!("\u{feff}{recipient}\r\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
    for list in [format!("\u{feff}# us\r\n{recipient}\r\n").into_bytes(), utf16] {
        place.write("list", &list);
        run(&place, "encrypt", &["-R", "list"], "sealed", "plain");
        comes_back(&place, &["-i", "id"], "sealed", b"text");
        let piped = place.evener().args(["encrypt", "-q", "--force", "-R", "-", "-o", "sealed", "plain"]);
        piped.input(list.clone()).run().succeeded();
        comes_back(&place, &["-i", "id"], "sealed", b"text");
    }
    let marked = format!("\u{feff}{}", secret.replace('\n', "\r\n"));
    place
        .evener()
        .args(["decrypt", "-q", "-i", "-", "-o", "piped", "sealed"])
        .input(marked.clone())
        .run()
        .succeeded();
    assert_eq!(fs::read(place.join("piped")).unwrap(), b"text");
    place.write_secret("pass", "\u{feff}word\r\n");
    place.write_secret("bare", "word");
    run(&place, "encrypt", &["--passphrase-file", "pass"], "sealed", "plain");
    comes_back(&place, &["--passphrase-file", "bare"], "sealed", b"text");
    for options in [&["-R", "-", "-i", "-"][..], &["-R", "-"]] {
        let twice = place.evener().arg("encrypt").args(options).args(["-o", "no", "-"]).input("x").run();
        twice.ended_with(2).saying("standard input");
    }
}

#[test]
fn a_mark_before_a_text_and_lines_of_any_system_do_no_harm_to_what_is_armored() {
    let Some(place) = Place::with_programs(&["age", "openssl"]) else { return };
    let recipient = identity(&place, "id", &[]);
    place.write("plain", "text");
    place.write_secret("pass", "word");
    place.program("age").args(["-a", "-r", &recipient, "-o", "sealed", "plain"]).run().succeeded();
    let enc = ["enc", "-aes-256-cbc", "-pbkdf2", "-a", "-pass", "file:pass", "-in", "plain", "-out", "enc"];
    place.program("openssl").args(enc).run().succeeded();
    let openssl = ["--format", "openssl", "--passphrase-file", "pass"];
    for (name, options) in [("sealed", &["-i", "id"][..]), ("enc", &openssl)] {
        let text = fs::read_to_string(place.join(name)).unwrap();
        for (before, line_end) in [("\u{feff}", "\n"), ("\u{feff}\r\n", "\r\n"), ("", "\r\n")] {
            place.write(name, format!("{before}{}", text.replace('\n', line_end)));
            comes_back(&place, options, name, b"text");
        }
        place.write(name, format!("\u{feff}\u{feff}{text}"));
        place.evener().arg("decrypt").args(options).args(["-o", "no", name]).run().ended_with(1);
    }
}

#[test]
fn a_list_with_keys_that_cannot_be_used_serves_the_others_and_says_so() {
    let Some(place) = Place::with_ssh_keys(&["ed25519", "ecdsa"]) else { return };
    let public = |kind: &str| place.ssh_public(kind);
    place.write("plain", "text");
    place.write("list", format!("# ours\n{}no-pty,command=\"a b\" {}", public("ecdsa"), public("ed25519")));
    let ran = place.evener().args(["encrypt", "-q", "-R", "list", "-o", "sealed", "plain"]).run().succeeded();
    assert!(ran.stderr().contains("list, line 2") && ran.stderr().contains("ecdsa"), "{}", ran.stderr());
    comes_back(&place, &["-i", "ed25519"], "sealed", b"text");
    place.write("none", public("ecdsa"));
    let refused = place.evener().args(["encrypt", "-R", "none", "-o", "no", "plain"]).run();
    refused.ended_with(2).saying("ecdsa");
}

#[test]
fn ssh_keys_of_every_form_open_what_age_seals_and_encrypted_ones_ask() {
    let Some(place) = Place::with_programs(&["ssh-keygen", "age", "openssl"]) else { return };
    place.write("plain", "text");
    for (kind, form) in [("rsa", "RFC4716"), ("rsa", "PKCS8"), ("rsa", "PEM"), ("ed25519", "RFC4716")] {
        for passphrase in ["", "horse"] {
            let key = format!("{kind}.{form}.{passphrase}");
            let arguments = ["-q", "-t", kind, "-m", form, "-N", passphrase, "-f", &key];
            place.program("ssh-keygen").args(arguments).run().succeeded();
            place
                .program("age")
                .args(["-R", &format!("{key}.pub"), "-o", "theirs", "plain"])
                .run()
                .succeeded();
            let arguments = ["decrypt", "-q", "--force", "-i", &key, "-o", "back", "theirs"];
            let answers: &[&str] = if passphrase.is_empty() { &[] } else { &[passphrase] };
            let (ran, _) = place.at_a_terminal(common::EVENER, &arguments, answers);
            ran.succeeded();
            assert_eq!(fs::read(place.join("back")).unwrap(), b"text", "{key}");
            fs::remove_file(place.join("back")).unwrap();
        }
        // And the other way round.
        let key = format!("{kind}.{form}.");
        run(&place, "encrypt", &["-R", &format!("{key}.pub")], "ours", "plain");
        let opened = place.program("age").args(["-d", "-i", &key, "ours"]).run().succeeded();
        assert_eq!(opened.stdout(), b"text");
    }
}

#[test]
fn armor_is_written_for_age_and_openssl_and_a_finished_text_is_known() {
    let Some(place) = Place::with_programs(&["age", "openssl"]) else { return };
    let recipient = identity(&place, "id", &[]);
    place.write_secret("pass", "word");
    for bytes in [0, 1, 47, 48, 49, 200_000, 3 << 20] {
        let plain = noise(7, bytes);
        place.write("plain", &plain);
        run(&place, "encrypt", &["-a", "-i", "id"], "sealed", "plain");
        let text = fs::read_to_string(place.join("sealed")).unwrap();
        assert!(
            text.starts_with("-----BEGIN AGE ENCRYPTED FILE-----\n")
                && text.lines().all(|line| line.len() <= 64)
        );
        assert!(
            place.program("age").args(["-d", "-i", "id", "sealed"]).run().succeeded().stdout() == plain,
            "{bytes}"
        );
        comes_back(&place, &["-i", "id"], "sealed", &plain);
        let again = place
            .evener()
            .args(["encrypt", "--armor", "-i", "id", "-o", "sealed", "plain"])
            .run()
            .succeeded();
        assert!(again.stderr().contains("finished by an earlier run"), "{}", again.stderr());
        place.evener().args(["encrypt", "-i", "id", "-o", "sealed", "plain"]).run().ended_with(1);
        let piped = place
            .evener()
            .args(["encrypt", "-q", "-a", "-r", &recipient, "-o", "-", "-"])
            .input(plain.clone());
        place.write("piped", piped.run().succeeded().stdout());
        comes_back(&place, &["-i", "id"], "piped", &plain);
        let openssl = ["--format", "openssl", "--passphrase-file", "pass"];
        run(&place, "encrypt", &[&openssl[..], &["-a"]].concat(), "sealed", "plain");
        let arguments = ["enc", "-d", "-a", "-aes-256-cbc", "-pbkdf2", "-pass", "file:pass", "-in", "sealed"];
        assert!(place.program("openssl").args(arguments).run().succeeded().stdout() == plain, "{bytes}");
        comes_back(&place, &openssl, "sealed", &plain);
    }
    place.keyset("k.json");
    place
        .evener()
        .args(["encrypt", "-a", "--key", "k.json", "-o", "no", "plain"])
        .run()
        .ended_with(2)
        .saying("--armor");
}

#[test]
fn openssl_files_of_every_age_and_cipher_are_read_and_written() {
    let Some(place) = Place::with_programs(&["openssl"]) else { return };
    place.write_secret("pass", "word");
    let plain = noise(9, 700_001);
    place.write("plain", &plain);
    let cases: [(&[&str], &[&str]); 7] = [
        (&["-aes-256-cbc", "-a", "-pbkdf2"], &[]),
        (&["-aes-256-cbc", "-a", "-A", "-pbkdf2"], &[]),
        (&["-aes-256-cbc", "-pbkdf2", "-md", "sha512"], &["--md", "sha512"]),
        (&["-aes-256-cbc"], &["--kdf", "legacy"]),
        (&["-aes-128-ctr", "-md", "md5"], &["--kdf", "legacy", "--md", "md5", "--cipher", "aes-128-ctr"]),
        (&["-chacha20", "-pbkdf2"], &["--cipher", "chacha20"]),
        (
            &["-des-ede3-cbc", "-pbkdf2", "-iter", "7"],
            &["--cipher", "des-ede3-cbc", "--iter", "7", "--kdf", "pbkdf2"],
        ),
    ];
    for (theirs, ours) in cases {
        let ours = [&["--format", "openssl", "--passphrase-file", "pass"][..], ours].concat();
        let pass = ["-pass", "file:pass"];
        let arguments = [&["enc"], theirs, &pass, &["-in", "plain", "-out", "theirs"]].concat();
        place.program("openssl").args(&arguments).run().succeeded();
        comes_back(&place, &ours, "theirs", &plain);
        let piped = place.evener().arg("decrypt").args(&ours).args(["-q", "-o", "-", "-"]);
        let theirs_bytes = fs::read(place.join("theirs")).unwrap();
        assert!(piped.input(theirs_bytes.clone()).run().succeeded().stdout() == plain, "{theirs:?}");
        run(&place, "encrypt", &ours, "sealed", "plain");
        let plain_words: Vec<&str> =
            theirs.iter().copied().filter(|word| !["-a", "-A"].contains(word)).collect();
        let arguments = [&["enc", "-d"], &plain_words[..], &pass, &["-in", "sealed"]].concat();
        assert!(place.program("openssl").args(&arguments).run().succeeded().stdout() == plain, "{theirs:?}");
        let again =
            place.evener().arg("encrypt").args(&ours).args(["-o", "sealed", "plain"]).run().succeeded();
        assert!(again.stderr().contains("finished by an earlier run"), "{}", again.stderr());
    }
}

#[test]
fn openssl_files_without_a_salt_are_read_and_none_is_written() {
    let Some(place) = Place::with_programs(&["openssl"]) else { return };
    place.write_secret("pass", "word");
    let plain = noise(19, 700_001);
    place.write("plain", &plain);
    let arguments =
        ["enc", "-nosalt", "-aes-256-cbc", "-pbkdf2", "-pass", "file:pass", "-in", "plain", "-out", "c"];
    place.program("openssl").args(arguments).run().succeeded();
    let ours = ["--format", "openssl", "--passphrase-file", "pass", "--no-salt"];
    comes_back(&place, &ours, "c", &plain);
    let written = place.evener().arg("encrypt").args(ours).args(["-o", "no", "plain"]).run();
    written.ended_with(2).saying("--no-salt is for decryption only");
    // As text they are known by their letters, and by the end of a line.
    place.write("short", "hi\n");
    for (cipher, form, of) in [
        ("aes-256-cbc", &["-a"][..], "plain"),
        ("aes-192-ctr", &["-a"], "plain"),
        ("aes-192-ctr", &["-a"], "short"),
        ("aes-192-ctr", &["-a", "-A"], "plain"),
        ("aes-256-cbc", &["-a", "-A"], "short"),
        ("chacha20", &[], "short"),
    ] {
        let arguments = ["enc", "-nosalt", "-pbkdf2", "-pass", "file:pass", "-in", of, "-out", "text"];
        place.program("openssl").args(arguments).arg(format!("-{cipher}")).args(form).run().succeeded();
        let ours = [&ours[..], &["--cipher", cipher]].concat();
        comes_back(&place, &ours, "text", &fs::read(place.join(of)).unwrap());
    }
    assert!(!place.join("no").exists());
}

#[test]
fn post_quantum_identities_and_the_recipients_of_any() {
    let Some(place) = Place::with_programs(&["age-keygen"]) else { return };
    place.write("plain", "text");
    let recipient = identity(&place, "pq", &["--post-quantum"]);
    assert!(recipient.starts_with("age1pq1"));
    run(&place, "encrypt", &["-r", &recipient], "sealed", "plain");
    comes_back(&place, &["-i", "pq"], "sealed", b"text");
    let told = place.evener().args(["keygen", "-y", "pq"]).run().succeeded();
    assert_eq!(told.stdout(), format!("{recipient}\n").as_bytes());
    let native = identity(&place, "id", &[]);
    let told = place.program("age-keygen").args(["-y", "id"]).run().succeeded();
    assert_eq!(told.stdout(), format!("{native}\n").as_bytes());
    let told = place
        .evener()
        .args(["keygen", "--recipients-of", "-"])
        .input(fs::read(place.join("id")).unwrap())
        .run();
    assert_eq!(told.succeeded().stdout(), format!("{native}\n").as_bytes());
    let none = place.evener().args(["decrypt", "-i", "id", "-o", "no", "sealed"]).run();
    none.ended_with(1).saying(&format!("tried {native}; the file is for mlkem768x25519"));
    let mixed = place.evener().args(["encrypt", "-r", &recipient, "-r", &native, "-o", "no", "plain"]).run();
    mixed.ended_with(1).saying("post-quantum");
}

/// A plugin that keeps the file key as it is.
const PLUGIN: &str = r#"#!/bin/sh
reply() { printf -- "$1\n$2\n"; }
while read -r line; do
  case "$line" in
    "-> wrap-file-key"|"-> recipient-stanza 0 clear") read -r body ;;
    "-> done") break ;;
  esac
done
read -r empty
case "$1" in
  --age-plugin=recipient-v1) reply "-> recipient-stanza 0 clear" "$body" ;;
  --age-plugin=identity-v1) reply "-> file-key 0" "$body" ;;
esac
read -r ok; read -r empty
reply "-> done" ""
"#;

#[test]
fn plugins_wrap_and_unwrap_and_a_missing_one_is_named() {
    let place = Place::new();
    fs::create_dir(place.join("bin")).unwrap();
    write_program(&place.join("bin/age-plugin-clear"), PLUGIN.as_bytes()).unwrap();
    place.write("plain", "text");
    let path = format!("{}:{}", place.join("bin").display(), std::env::var("PATH").unwrap());
    let with_plugin = |arguments: &[&str]| {
        let mut run = place.evener().args(arguments);
        run.command.env("PATH", &path);
        run.run()
    };
    with_plugin(&["encrypt", "-q", "-j", "clear", "-o", "sealed", "plain"]).succeeded();
    with_plugin(&["decrypt", "-q", "--plugin", "clear", "-o", "back", "sealed"]).succeeded();
    assert_eq!(fs::read(place.join("back")).unwrap(), b"text");
    with_plugin(&["decrypt", "-q", "-j", "absent", "-o", "no", "sealed"])
        .ended_with(1)
        .saying("age-plugin-absent");
    with_plugin(&["decrypt", "-q", "-j", "../clear", "-o", "no", "sealed"]).ended_with(2).saying("name");
}

#[test]
fn a_tree_under_a_passphrase_is_opened_by_its_identity_too_which_is_no_file_of_it() {
    let place = Place::new();
    place.write_secret("pass", "word\n");
    place.write("t/a", "one");
    place.write("t/d/b", "two");
    run(&place, "encrypt", &["--passphrase-file", "pass"], "out", "t");
    let open = ["decrypt", "-q", "--passphrase-file", "pass", "-o", "ti", "out/.evener-identity.age"];
    place.evener().args(open).run().succeeded();
    run(&place, "decrypt", &["-i", "ti"], "back", "out");
    assert_eq!(files(&place.join("back")), files(&place.join("t")));
    place.evener().args(["verify", "-q", "-i", "ti", "--against", "t", "out"]).run().succeeded();
    // One that is a file like others, for it is sealed for a recipient.
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    run(&place, "encrypt", &["-i", "id"], "kept", "out");
    run(&place, "decrypt", &["-i", "id"], "again", "kept");
    assert_eq!(files(&place.join("again")), files(&place.join("out")));
}

#[test]
fn a_tree_under_a_passphrase_has_one_identity_that_age_takes_too() {
    let place = Place::new();
    place.write_secret("pass", "word\n");
    place.write_secret("other", "other\n");
    for (name, text) in [("t/a", "one"), ("t/d/b", "two"), ("t/d/c", "three")] {
        place.write(name, text);
    }
    let pass = ["--passphrase-file", "pass"];
    run(&place, "encrypt", &pass, "out", "t");
    let header = |name: &str| {
        let file = fs::read(place.join(name)).unwrap();
        String::from_utf8_lossy(&file[..60]).into_owned()
    };
    assert!(
        header("out/.evener-identity.age").contains("-> scrypt ") && header("out/d/b").contains("-> X25519 ")
    );
    assert_eq!(
        fs::metadata(place.join("out/.evener-identity.age")).unwrap().permissions().mode() & 0o777,
        0o600
    );
    run(&place, "decrypt", &pass, "back", "out");
    assert_eq!(files(&place.join("back")), files(&place.join("t")));
    // A file of it alone, and one that came later.
    comes_back_from(&place, &pass, "out/d/b", b"two");
    place.write("t/d/e", "four");
    place.evener().arg("encrypt").args(pass).args(["-o", "out", "t"]).run().succeeded();
    comes_back_from(&place, &pass, "out/d/e", b"four");
    let wrong = place.evener().args(["encrypt", "--passphrase-file", "other", "-o", "out", "t"]).run();
    wrong.ended_with(2).saying("wrong passphrase");
    let wrong = place.evener().args(["decrypt", "--passphrase-file", "other", "-o", "no", "out"]).run();
    wrong.ended_with(2).saying("wrong passphrase");
    // An encrypted tree inside another keeps its own.
    fs::create_dir(place.join("outer")).unwrap();
    fs::rename(place.join("out"), place.join("outer/inner")).unwrap();
    run(&place, "encrypt", &pass, "twice", "outer");
    run(&place, "decrypt", &pass, "once", "twice");
    assert_eq!(files(&place.join("once")), files(&place.join("outer")));
    let taken = place.evener().arg("encrypt").args(pass).args(["-o", "no", "outer/inner"]).run();
    taken.ended_with(2).saying(".evener-identity.age");
}

fn comes_back_from(place: &Place, options: &[&str], sealed: &str, plain: &[u8]) {
    run(place, "decrypt", options, "one", sealed);
    assert_eq!(fs::read(place.join("one")).unwrap(), plain);
    fs::remove_file(place.join("one")).unwrap();
}

#[test]
fn where_no_passphrase_is_typed_one_is_made_and_shown() {
    let place = Place::new();
    place.write("plain", "text");
    let arguments = ["encrypt", "-q", "-p", "-o", "sealed", "plain"];
    let (ran, screen) = place.at_a_terminal(common::EVENER, &arguments, &[""]);
    let said = format!("{screen}{}", ran.stderr());
    ran.succeeded();
    let made = said.split("passphrase made for this is: ").nth(1).unwrap().split_whitespace().next().unwrap();
    assert_eq!(made.split('-').count(), 10, "{made}");
    place.write_secret("made", made);
    comes_back(&place, &["--passphrase-file", "made"], "sealed", b"text");
}

#[test]
fn a_keyset_under_a_passphrase_is_an_age_file_and_rotates_as_any() {
    let place = Place::new();
    place.write_secret("pass", "word\n");
    place.write("plain", "text");
    let protected = ["--key-passphrase-file", "pass"];
    place.evener().args(["keygen", "k.age", "--binary"]).args(protected).run().succeeded();
    assert!(fs::read(place.join("k.age")).unwrap().starts_with(b"age-encryption.org/v1\n-> scrypt "));
    let key = [&["--key", "k.age"], &protected[..]].concat();
    run(&place, "encrypt", &key, "sealed", "plain");
    comes_back(&place, &key, "sealed", b"text");
    let keyset = |arguments: &[&str]| {
        let ran = place.evener().arg("keyset").args(arguments).args(protected).run().succeeded();
        String::from_utf8(ran.stdout().to_vec()).unwrap()
    };
    let added = keyset(&["add", "k.age", "--template", "AES128_CTR_HMAC_SHA256_4KB"]);
    keyset(&["promote", "k.age", added.trim()]);
    let list = keyset(&["list", "k.age"]);
    let primary: Vec<&str> = list.lines().filter(|line| line.ends_with("primary")).collect();
    assert!(
        primary.len() == 1 && primary[0].contains(added.trim()) && primary[0].contains("AesCtrHmac"),
        "{list}"
    );
    comes_back(&place, &key, "sealed", b"text");
    let old =
        list.lines().find(|line| !line.ends_with("primary")).unwrap().split_whitespace().next().unwrap();
    keyset(&["disable", "k.age", old]);
    place.evener().arg("decrypt").args(&key).args(["-o", "no", "sealed"]).run().ended_with(1);
    keyset(&["enable", "k.age", old]);
    comes_back(&place, &key, "sealed", b"text");
    let (ran, _) =
        place.at_a_terminal(common::EVENER, &["keygen", "asked.age", "--passphrase"], &["word", "word"]);
    ran.succeeded();
    place.evener().args(["keyset", "list", "asked.age"]).args(protected).run().succeeded();
}

#[test]
fn foreign_keys_of_a_set_are_left_aside_and_kept() {
    let place = Place::new();
    place.write("plain", "text");
    let mut set: Value = serde_json::from_slice(&fs::read(place.keyset("k.json")).unwrap()).unwrap();
    let mut foreign = set["key"][0].clone();
    foreign["keyId"] = 77.into();
    foreign["keyData"]["typeUrl"] = "type.googleapis.com/google.crypto.tink.AesSivKey".into();
    set["key"].as_array_mut().unwrap().push(foreign);
    place.write_secret("k.json", set.to_string());
    run(&place, "encrypt", &["--key", "k.json"], "sealed", "plain");
    comes_back(&place, &["--key", "k.json"], "sealed", b"text");
    let added = place.evener().args(["keyset", "add", "k.json"]).run().succeeded();
    assert!(String::from_utf8_lossy(added.stdout()).trim().parse::<u32>().is_ok());
    let after: Value = serde_json::from_slice(&fs::read(place.join("k.json")).unwrap()).unwrap();
    assert_eq!(after["key"][1], set["key"][1]);
    place.evener().args(["keyset", "promote", "k.json", "77"]).run().ended_with(2).saying("77");
    // A primary key of another kind: what others made is opened, and nothing is sealed.
    set["primaryKeyId"] = 77.into();
    place.write_secret("k.json", set.to_string());
    comes_back(&place, &["--key", "k.json"], "sealed", b"text");
    place
        .evener()
        .args(["encrypt", "--key", "k.json", "-o", "no", "plain"])
        .run()
        .ended_with(1)
        .saying("promote");
}

#[test]
fn a_keyset_under_a_key_encryption_keyset_opens_with_that_only() {
    let place = Place::new();
    place.write("plain", "text");
    // A key of AES-256-GCM with Tink's prefix: version 0, 32 bytes.
    let value = "GiAAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHw==";
    let kek = |id: u32| {
        format!(
            r#"{{"primaryKeyId":{id},"key":[{{"keyData":{{"typeUrl":"type.googleapis.com/google.crypto.tink.AesGcmKey",
               "value":"{value}","keyMaterialType":"SYMMETRIC"}},"status":"ENABLED","keyId":{id},"outputPrefixType":"TINK"}}]}}"#
        )
    };
    place.write_secret("kek.json", kek(5));
    place.write_secret("other.json", kek(6));
    place.evener().args(["keygen", "k.json", "--key-encryption", "kek.json"]).run().succeeded();
    let written: Value = serde_json::from_slice(&fs::read(place.join("k.json")).unwrap()).unwrap();
    assert!(written["encryptedKeyset"].is_string() && written["keysetInfo"]["primaryKeyId"].is_number());
    let key = ["--key", "k.json", "--key-encryption", "kek.json"];
    run(&place, "encrypt", &key, "sealed", "plain");
    comes_back(&place, &key, "sealed", b"text");
    for (options, says) in [
        (&key[..2], "--key-encryption"),
        (&["--key", "k.json", "--key-encryption", "other.json"], "does not open"),
    ] {
        place
            .evener()
            .arg("decrypt")
            .args(options)
            .args(["-o", "no", "sealed"])
            .run()
            .ended_with(2)
            .saying(says);
    }
}
