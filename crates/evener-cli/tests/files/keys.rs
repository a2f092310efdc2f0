//! Keys of every kind: made, kept to their owner, taken, and asked for.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{self, Place, noise};
use serde_json::Value;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Encrypts and decrypts a file with the options given.
fn opens(place: &Place, encrypt: &[&str], decrypt: &[&str]) {
    let plain = noise(5, 100_000);
    place.write("plain", &plain);
    let run = |verb: &str, options: &[&str], to: &str, from: &str| {
        place.evener().arg(verb).args(options).args(["-q", "--force", "-o", to, from]).run().succeeded();
    };
    run("encrypt", encrypt, "sealed", "plain");
    run("decrypt", decrypt, "back", "sealed");
    assert!(fs::read(place.join("back")).unwrap() == plain, "{encrypt:?} {decrypt:?}");
}

#[test]
fn keygen_makes_a_keyset_of_each_template_for_its_owner_only_and_prints_nothing() {
    let place = Place::new();
    let templates = [
        ("AES256_GCM_HKDF_1MB", 40 + 16),
        ("AES256_GCM_HKDF_4KB", 40 + 16),
        ("AES128_GCM_HKDF_1MB", 24 + 16),
        ("AES128_GCM_HKDF_4KB", 24 + 16),
        ("AES256_CTR_HMAC_SHA256_1MB", 40 + 32),
        ("AES128_CTR_HMAC_SHA256_4KB", 24 + 32),
    ];
    for (template, overhead) in templates {
        let ran = place.evener().args(["keygen", template, "--template", template]).run().succeeded();
        assert_eq!((ran.stdout(), ran.stderr()), (&b""[..], ""));
        assert_eq!(mode(&place.join(template)), 0o600);
        let json: Value = serde_json::from_slice(&fs::read(place.join(template)).unwrap()).unwrap();
        assert_eq!(json["primaryKeyId"], json["key"][0]["keyId"]);
        opens(&place, &["--key", template], &["--key", template]);
        place.evener().args(["encrypt", "--key", template, "-q", "-o", "of 7", "-"]).input("1234567").run();
        assert_eq!(fs::metadata(place.join("of 7")).unwrap().len(), 7 + overhead, "{template}");
        fs::remove_file(place.join("of 7")).unwrap();
    }
}

#[test]
fn keys_that_are_added_at_once_are_all_there() {
    let place = Place::with_key();
    let mut adding: Vec<_> = (0..12)
        .map(|_| {
            let mut run = place.evener().args(["keyset", "add", "k.json"]);
            run.command.stdout(Stdio::piped()).stdin(Stdio::null());
            run.command.spawn().unwrap()
        })
        .collect();
    let told = adding.drain(..).map(|child| child.wait_with_output().unwrap());
    let told: Vec<String> =
        told.map(|ended| String::from_utf8(ended.stdout).unwrap().trim().to_owned()).collect();
    let listed = place.evener().args(["keyset", "list", "k.json"]).run().succeeded();
    let ids: Vec<&str> =
        listed.stdout_text().lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(ids.len() == 13 && told.iter().all(|id| ids.contains(&id.as_str())), "{told:?} and {ids:?}");
}

#[test]
fn a_keyset_that_changes_stays_its_owners_and_its_groups() {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let Some(place) = Place::of_root("give files away") else { return };
    let keyset = place.join("k.json");
    chown(&keyset, Some(65_534), Some(1)).unwrap();
    common::allow(&keyset, 0o640);
    let has_attribute =
        rustix::fs::setxattr(&keyset, "user.x", b"y", rustix::fs::XattrFlags::empty()).is_ok();
    place.evener().args(["keyset", "add", "k.json"]).run().succeeded();
    let now = fs::metadata(&keyset).unwrap();
    assert_eq!((now.uid(), now.gid(), mode(&keyset)), (65_534, 1, 0o640));
    let mut value = [0; 8];
    let kept = rustix::fs::getxattr(&keyset, "user.x", &mut value[..]);
    assert!(!has_attribute || (kept.unwrap(), value[0]) == (1, b'y'));
}

#[test]
fn a_key_file_that_may_not_be_so_long_is_not_there_half() {
    let place = Place::with_key();
    let limited = |command: &str| {
        let line = format!("ulimit -f 0; exec {} {command}", common::EVENER);
        let run = place.program("bash").args(["-c", &line]);
        run.env("EVENER_ARBITER", "off").run().ended_with(2).saying("File too large");
    };
    let before = fs::read(place.join("k.json")).unwrap();
    ["keygen new.json", "keygen --age new.txt", "keyset add k.json"].into_iter().for_each(limited);
    assert!(fs::read(place.join("k.json")).unwrap() == before);
    let left: Vec<_> =
        common::files(place.path()).into_iter().filter(|name| !name.starts_with("state")).collect();
    assert_eq!(left, ["k.json"].map(std::path::PathBuf::from));
}

#[test]
fn a_secret_key_that_is_given_for_a_recipient_is_not_shown() {
    let place = Place::new();
    place.write("f", "text");
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    let text = fs::read_to_string(place.join("id")).unwrap();
    let secret = text.lines().find(|line| line.starts_with("AGE-SECRET-KEY-")).unwrap();
    let ran =
        place.evener().args(["encrypt", "-r", secret, "-r", secret, "-o", "out", "f"]).run().ended_with(2);
    assert!(!ran.stderr().contains(secret) && ran.stderr().contains("-r, 1 of 2"), "{}", ran.stderr());
}

#[test]
fn two_keys_are_never_the_same() {
    let place = Place::new();
    let [one, other] = ["one", "other"].map(|name| fs::read(place.keyset(name)).unwrap());
    assert_ne!(one, other);
}

#[test]
fn keygen_never_overwrites_and_never_prints_a_keyset() {
    let place = Place::new();
    place.write("k.json", "precious");
    for options in [&["k.json"][..], &["--age", "k.json"]] {
        place.evener().arg("keygen").args(options).run().ended_with(2).saying("k.json");
        assert_eq!(fs::read(place.join("k.json")).unwrap(), b"precious");
    }
    let ran = place.evener().args(["keygen", "-"]).run();
    assert_eq!(ran.stdout(), b"");
    ran.ended_with(2).saying("file");
    place.evener().args(["keygen", "no/such/folder/k.json"]).run().ended_with(2).saying("k.json");
    place.evener().arg("keygen").run().ended_with(2).saying("KEY.json");
}

#[test]
fn an_age_identity_goes_to_a_file_or_to_standard_output_and_its_recipient_to_standard_error() {
    let place = Place::new();
    let ran = place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    let recipient = ran.stderr().trim().strip_prefix("Public key: ").unwrap().to_owned();
    assert_eq!(ran.stdout(), b"");
    assert_eq!(mode(&place.join("id")), 0o600);
    opens(&place, &["-r", &recipient], &["-i", "id"]);
    opens(&place, &["--recipient", &recipient], &["--identity", "id"]);
    let ran = place.evener().args(["keygen", "--age"]).run().succeeded();
    place.write_secret("other", ran.stdout());
    assert!(!ran.stderr().contains("SECRET"));
    opens(&place, &["-i", "id", "-i", "other"], &["-i", "other"]);
    place.write("those", format!("# two\n{recipient}\n\n"));
    opens(&place, &["-R", "those"], &["-i", "id"]);
    opens(&place, &["--recipients-file", "those"], &["-i", "id"]);
    let none = place.evener().args(["decrypt", "-i", "other", "-q", "-o", "no", "sealed"]).run();
    none.ended_with(1).saying("no key fits");
}

#[test]
fn ssh_keys_are_recipients_and_identities() {
    let kinds = ["ed25519", "rsa"];
    let Some(place) = Place::with_ssh_keys(&kinds) else { return };
    for kind in kinds {
        opens(&place, &["-r", place.ssh_public(kind).trim()], &["-i", kind]);
        opens(&place, &["-i", kind], &["-i", kind]);
    }
}

#[test]
fn recipients_and_identities_that_are_none_are_refused_in_one_line() {
    let place = Place::new();
    place.write("a", "text");
    place.write_secret("file", "age1nonsense\n");
    let cases: [&[&str]; 5] = [
        &["encrypt", "-r", "age1nonsense"],
        &["encrypt", "-r", "AGE-SECRET-KEY-1NONSENSE"],
        &["encrypt", "-R", "file"],
        &["encrypt", "-R", "missing"],
        &["decrypt", "-i", "file"],
    ];
    for case in cases {
        place.evener().args(case).args(["-o", "out", "a"]).run().ended_with(2).saying("");
    }
    assert!(!place.join("out").exists());
}

#[test]
fn a_passphrase_from_a_file_is_its_first_line() {
    let place = Place::new();
    let files = [
        ("pass", "correct horse\nbattery staple\n"),
        ("same", "correct horse"),
        ("other", "correct horse "),
        ("empty", "\n"),
    ];
    for (name, text) in files {
        place.write_secret(name, text);
    }
    opens(&place, &["--passphrase-file", "pass"], &["--passphrase-file", "same"]);
    place.write("plain", "text");
    let run = |verb: &str, pass: &str, from: &str| {
        place.evener().args([verb, "--passphrase-file", pass, "-q", "-o", "no", from]).run()
    };
    run("decrypt", "other", "sealed").ended_with(1).saying("no key fits");
    run("encrypt", "empty", "plain").ended_with(2).saying("empty");
    run("encrypt", "missing", "plain").ended_with(2).saying("missing");
    assert!(!place.join("no").exists());
}

/// `script` gives the command a terminal of its own; what comes on its input is typed there.
#[test]
fn a_passphrase_is_asked_for_twice_on_the_terminal_and_not_shown() {
    let Some(place) = Place::with_programs(&["script"]) else { return };
    place.write("plain", "text");
    let (first, again) = ("one is made): ", "again: ");
    let encrypt = "encrypt -p -q -o sealed plain";
    let screen_text = typed(&place, encrypt, &[(first, "horse"), (again, "cow horse")]);
    assert!(screen_text.contains("differ") && !place.join("sealed").exists(), "{screen_text}");
    typed(&place, encrypt, &[(first, "horse"), (again, "horse")]);
    assert!(place.join("sealed").exists());
    typed(&place, "decrypt --passphrase -q -o back sealed", &[("Passphrase: ", "horse")]);
    assert_eq!(fs::read(place.join("back")).unwrap(), b"text");
}

/// Runs the command on a terminal and answers each prompt; returns what stood on the terminal.
fn typed(place: &Place, arguments: &str, answers: &[(&str, &str)]) -> String {
    let command = format!("{} {arguments}", common::EVENER);
    let mut run = place.program("script").args(["-qec", &command, "/dev/null"]);
    run.command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = run.command.spawn().unwrap();
    let (mut keyboard, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut screen_text = Vec::new();
    for (prompt, answer) in answers {
        let mut byte = [0];
        while !screen_text.ends_with(prompt.as_bytes()) && screen.read(&mut byte).unwrap() > 0 {
            screen_text.extend(byte);
        }
        // The prompt stands there a moment before the terminal stops showing what is typed.
        std::thread::sleep(Duration::from_millis(200));
        writeln!(keyboard, "{answer}").unwrap();
    }
    screen.read_to_end(&mut screen_text).unwrap();
    child.wait().unwrap();
    let screen_text = String::from_utf8(screen_text).unwrap();
    assert!(!screen_text.contains("horse"), "{screen_text}");
    screen_text
}

#[test]
fn without_a_terminal_a_passphrase_cannot_be_asked_for() {
    let place = Place::new();
    place.write("plain", "text");
    let ran =
        place.program("setsid").args(["-w", common::EVENER, "encrypt", "-p", "-o", "out", "plain"]).run();
    ran.ended_with(2).saying("--passphrase-file");
}

#[test]
fn a_keyset_opens_files_with_any_of_its_enabled_keys() {
    let place = Place::new();
    let [mut old, mut new] = ["old", "new"]
        .map(|name| -> Value { serde_json::from_slice(&fs::read(place.keyset(name)).unwrap()).unwrap() });
    opens(&place, &["--key", "old"], &["--key", "old"]);
    let rotated = |old: &Value, new: &Value| {
        let mut both = new.clone();
        both["key"].as_array_mut().unwrap().push(old["key"][0].clone());
        both.to_string()
    };
    place.write_secret("both", rotated(&old, &new));
    let decrypt = |key: &str| {
        place.evener().args(["decrypt", "--key", key, "-q", "--force", "-o", "out", "sealed"]).run()
    };
    decrypt("both").succeeded();
    assert_eq!(fs::read(place.join("out")).unwrap(), fs::read(place.join("plain")).unwrap());
    old["key"][0]["status"] = "DISABLED".into();
    new["key"][0]["status"] = "ENABLED".into();
    place.write_secret("retired", rotated(&old, &new));
    decrypt("retired").ended_with(1);
}

#[test]
fn a_passphrase_that_asks_for_more_than_is_accepted_is_refused_with_its_cost() {
    let place = Place::new();
    place.write("plain", "text");
    place.write_secret("word", "word");
    let run = |direction: &str, output: &str, input: &str, more: &[&str]| {
        let run = place.evener().args([direction, "-q", "--passphrase-file", "word", "-o", output, input]);
        run.args(more).run()
    };
    run("encrypt", "sealed", "plain", &["--memory", "64M"]).ended_with(2).saying("256 MiB of memory");
    run("encrypt", "sealed", "plain", &["--work-factor", "12"]).succeeded();
    for (limit, accepted) in [(["--work-factor-max", "11"], "11"), (["--memory", "2M"], "11")] {
        let refused = run("decrypt", "out", "sealed", &limit).ended_with(1);
        refused
            .saying(&format!("4 MiB of memory and about 1 s (work factor 12); up to {accepted} is accepted"));
    }
    run("decrypt", "out", "sealed", &["--work-factor-max", "12"]).succeeded();
    // What was not asked for costs nothing: 2^22 is 4 GiB.
    let sealed = fs::read(place.join("sealed")).unwrap();
    let start = sealed.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let end = start + sealed[start..].iter().position(|byte| *byte == b'\n').unwrap();
    let hostile = [&sealed[..end - 2], b"22", &sealed[end..]].concat();
    fs::write(place.join("hostile"), hostile).unwrap();
    run("decrypt", "other", "hostile", &[]).ended_with(1).saying("4 GiB of memory and about 16 s");
    // More than age takes either is refused whatever is asked for, as what it is; and nothing makes such a file.
    for factor in ["23", "30", "64", "1000"] {
        let hostile = [&sealed[..end - 2], factor.as_bytes(), &sealed[end..]].concat();
        fs::write(place.join("hostile"), hostile).unwrap();
        let refused = run("decrypt", "other", "hostile", &["--work-factor-max", "22"]).ended_with(1);
        assert!(!refused.stderr().contains("format"), "{}", refused.stderr());
        refused.saying("its passphrase asks for too much work");
    }
    run("decrypt", "other", "sealed", &["--work-factor-max", "23"]).ended_with(2).saying("1..=22");
    run("encrypt", "other", "plain", &["--work-factor", "23"]).ended_with(2).saying("10..=22");
}

#[test]
fn a_key_that_cannot_be_made_for_want_of_descriptors_leaves_no_file() {
    let place = Place::new();
    fs::create_dir(place.join("keys")).unwrap();
    let mut failures = 0;
    for limit in 3..40 {
        for options in ["--age keys/key", "keys/key.json"] {
            let words = format!("ulimit -n {limit}; exec {} keygen {options}", common::EVENER);
            let ran = place.program("sh").args(["-c", &words]).run();
            let made: Vec<_> = common::files(&place.join("keys"));
            let is_done = ran.code() == Some(0);
            assert_eq!(made.len(), usize::from(is_done), "{limit} descriptors, {options}: {made:?}");
            made.iter().for_each(|name| fs::remove_file(place.join("keys").join(name)).unwrap());
            failures += usize::from(!is_done);
        }
    }
    assert!((1..74).contains(&failures), "{failures} runs failed");
}
