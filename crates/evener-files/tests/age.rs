//! The age format against the crate `age`, the command `age` and the published test vectors of age (C2SP's CCTV).
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod common;

use std::io::{Cursor, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use age::{Decryptor, Encryptor, Identity, Recipient, x25519};
use common::pattern;
use evener_files::FormatError;
use evener_files::age_keys::{Identities, Recipients, WorkFactors, generate_identity};
use evener_files::format::age::{dearmored, is_armored};
use evener_files::format::{Opened, Opener, Sealer};
use secrecy::SecretString;

const CHUNK: usize = 64 << 10;
/// Around every border of chunks, and a chunk count that needs two bytes.
const SIZES: &[usize] = &[0, 1, 1000, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 257 * CHUNK + 5];
const ED25519: &str = include_str!("keys/ed25519");
const ED25519_PUB: &str = include_str!("keys/ed25519.pub");
const ED25519_ENCRYPTED: &str = include_str!("keys/ed25519_encrypted");
const RSA: &str = include_str!("keys/rsa");
const RSA_PUB: &str = include_str!("keys/rsa.pub");

fn no_passphrase(_: &str) -> Option<SecretString> {
    None
}

fn identities(files: &[&str]) -> Opener {
    let mut identities = Identities::default();
    for file in files {
        identities.add_file(file.as_bytes(), &mut |_| Some("passphrase".to_owned().into())).unwrap();
    }
    Opener::Age(identities)
}

fn recipients(texts: &[&str]) -> Sealer {
    let mut recipients = Recipients::default();
    for text in texts {
        recipients.add(text).unwrap();
    }
    Sealer::Age(recipients)
}

fn crate_decrypts(file: &[u8], identity: &dyn Identity) -> Vec<u8> {
    let mut plain = Vec::new();
    let decryptor = Decryptor::new(file).unwrap();
    decryptor.decrypt(std::iter::once(identity)).unwrap().read_to_end(&mut plain).unwrap();
    plain
}

fn crate_encrypts(plain: &[u8], recipients: &[&dyn Recipient]) -> Vec<u8> {
    let encryptor = Encryptor::with_recipients(recipients.iter().copied()).unwrap();
    let mut writer = encryptor.wrap_output(Vec::new()).unwrap();
    writer.write_all(plain).unwrap();
    writer.finish().unwrap()
}

#[test]
fn the_crate_opens_what_is_sealed_for_a_native_recipient() {
    let made = generate_identity(SystemTime::now(), false).unwrap();
    let native: x25519::Identity = made.file.lines().last().unwrap().parse().unwrap();
    let sealer = recipients(&[&made.recipient, ED25519_PUB, RSA_PUB]);
    for &size in SIZES {
        let file = common::seal(&sealer, &pattern(size));
        assert!(crate_decrypts(&file, &native) == pattern(size), "{size}");
    }
}

#[test]
fn a_native_identity_opens_what_the_crate_sealed() {
    let made = generate_identity(SystemTime::now(), false).unwrap();
    let native: x25519::Recipient = made.recipient.parse().unwrap();
    for &size in SIZES {
        let file = crate_encrypts(&pattern(size), &[&native]);
        assert!(common::open(&identities(&[&made.file]), &file) == Ok(pattern(size)), "{size}");
    }
}

#[test]
fn both_kinds_of_identity_open_what_is_sealed_for_both_and_not_for_one_only() {
    let made: Vec<_> = [false, true].map(|pq| generate_identity(SystemTime::now(), pq).unwrap()).into();
    for (this, other) in [(&made[0], &made[1]), (&made[1], &made[0])] {
        let file = common::seal(&recipients(&[&this.recipient, &this.recipient]), &pattern(70_000));
        assert!(common::open(&identities(&[&other.file, &this.file]), &file) == Ok(pattern(70_000)));
        assert!(matches!(
            common::open(&identities(&[&other.file]), &file),
            Err(FormatError::NoKeyFits { .. })
        ));
    }
    let mixed = recipients(&[&made[0].recipient, &made[1].recipient]).seal();
    assert!(mixed.unwrap_err().to_string().contains("post-quantum"));
}

#[test]
fn an_identity_file_gives_the_recipients_too() {
    let made = generate_identity(SystemTime::now(), false).unwrap();
    let mut recipients = Recipients::default();
    for file in [&*made.file, ED25519_ENCRYPTED] {
        recipients.add_identity_file(file.as_bytes(), &mut no_passphrase).unwrap();
    }
    let file = common::seal(&Sealer::Age(recipients), b"text");
    for key in [&*made.file, ED25519_ENCRYPTED] {
        assert_eq!(common::open(&identities(&[key]), &file).unwrap(), b"text");
    }
}

#[test]
fn a_passphrase_opens_what_it_sealed_and_no_other_does() {
    let sealer = Sealer::Age(Recipients::passphrase("open sesame".to_owned().into(), WorkFactors::default()));
    let file = common::seal(&sealer, b"text");
    let identity = age::scrypt::Identity::new("open sesame".to_owned().into());
    assert_eq!(crate_decrypts(&file, &identity), b"text");
    for (passphrase, opened) in [
        ("open sesame", Ok(b"text".to_vec())),
        ("sesame", Err(no_key_fits("the passphrase", "a passphrase"))),
    ] {
        let mut identities = Identities::default();
        identities.add_passphrase(passphrase.to_owned().into(), WorkFactors::default());
        assert_eq!(common::open(&Opener::Age(identities), &file), opened, "{passphrase}");
    }
}

#[test]
fn no_two_files_share_a_payload_key() {
    let sealer = recipients(&[ED25519_PUB]);
    let keys: Vec<Vec<u8>> =
        (0..50).map(|_| sealer.seal().unwrap().body.session(true).key().to_vec()).collect();
    for (i, key) in keys.iter().enumerate() {
        assert!(!keys[..i].contains(key));
    }
}

fn no_key_fits(tried: &str, there: &str) -> FormatError {
    FormatError::NoKeyFits { facts: format!(": tried {tried}; the file is for {there}") }
}

#[test]
fn an_identity_that_is_not_among_the_recipients_opens_nothing() {
    let file = common::seal(&recipients(&[ED25519_PUB]), b"text");
    let there = "ssh-ed25519 UCi6EQ";
    assert_eq!(common::open(&identities(&[RSA]), &file), Err(no_key_fits("ssh-rsa c1apYw", there)));
    assert_eq!(
        common::open(&Opener::Age(Identities::default()), &file),
        Err(no_key_fits("no identity", there))
    );
    assert_eq!(common::open(&identities(&[RSA, ED25519]), &file).unwrap(), b"text");
}

#[test]
fn a_cut_or_changed_file_is_refused_wherever_it_happened() {
    let file = common::seal(&recipients(&[ED25519_PUB]), &pattern(40));
    let opener = identities(&[ED25519]);
    for end in 0..file.len() {
        assert!(common::open(&opener, &file[..end]).is_err(), "{end}");
        let mut flipped = file.clone();
        flipped[end] ^= 2;
        assert!(common::open(&opener, &flipped).is_err(), "{end}");
    }
}

#[test]
fn an_empty_last_chunk_is_refused_unless_the_file_is_empty() {
    let sealing = recipients(&[ED25519_PUB]).seal().unwrap();
    let header = sealing.header.len() as u64;
    let cut = *sealing.body.cut();
    assert_eq!(cut.of_cipher(header + 16).unwrap().plain_bytes(), 0);
    let chunk = CHUNK as u64 + 16;
    assert_eq!(cut.of_cipher(header + chunk + 16), Err(FormatError::EmptyLastSegment));
    for end in [header, header + 15, header + chunk + 15] {
        assert!(matches!(cut.of_cipher(end), Err(FormatError::Truncated { place: "segment", .. })), "{end}");
    }
}

#[test]
fn a_header_of_many_recipients_is_asked_for_until_it_is_whole() {
    let many: Vec<String> = (0..200).map(|_| x25519::Identity::generate().to_public().to_string()).collect();
    let mut texts: Vec<&str> = many.iter().map(String::as_str).collect();
    texts.push(ED25519_PUB);
    let file = common::seal(&recipients(&texts), b"text");
    assert!(file.len() > 4 * 4096);
    let opener = identities(&[ED25519]);
    assert!(
        matches!(opener.open(&file[..4096], false), Ok(Opened::NeedMore { start_bytes }) if start_bytes > 4096)
    );
    assert_eq!(common::open(&opener, &file).unwrap(), b"text");
}

#[test]
fn a_header_without_end_is_given_up_after_4_mib() {
    let opener = identities(&[ED25519]);
    let start = b"age-encryption.org/v1\n-> X25519 ";
    for filler in [&b"AAAAAAA\n"[..], b"AAAAAAAA", &[b"A".repeat(64), b"\n".to_vec()].concat()] {
        let mut file = start.to_vec();
        while file.len() < 5 << 20 {
            file.extend_from_slice(filler);
        }
        let error = common::candidates(&opener, &file).unwrap_err();
        assert_eq!(error.to_string(), "not in the age format: its header is longer than 4 MiB");
    }
}

#[test]
fn starts_that_are_not_age_have_their_own_sentences() {
    let opener = identities(&[ED25519]);
    for (start, sentence) in [
        (&b"PK\x03\x04"[..], "not in the age format: it does not start with the line age-encryption.org/v1"),
        (b"age-encryption.org/v2\n", "not in the age format: its version is not v1"),
        (b"\n\n-----BEGIN AGE ENCRYPTED FILE-----\n", "not in the age format: it is armored"),
        (b"age-encryption.org/v1\n---\n0123456789abcdef", "not in the age format: its header is damaged"),
        (b"age-encryption.org/v1\n-> X\n", "truncated: the file ends after 27 bytes, inside a header"),
    ] {
        assert_eq!(opener.open(start, true).unwrap_err().to_string(), sentence);
    }
}

#[test]
fn each_bad_recipient_has_its_own_sentence() {
    let secret = generate_identity(SystemTime::now(), false).unwrap().file.lines().last().unwrap().to_owned();
    for (text, sentence) in [
        ("bob", "recipient: neither age1... nor an SSH public key"),
        ("", "recipient: neither age1... nor an SSH public key"),
        (&*secret, "recipient: this is an identity, which is secret: pass its file with -i"),
        ("age1pq1qqqq", "recipient: neither age1... nor an SSH public key"),
        (
            "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq",
            "recipient: neither age1... nor an SSH public key",
        ),
        (include_str!("keys/ecdsa.pub"), "not supported: SSH keys of type ecdsa-sha2-nistp256"),
        ("ssh-ed25519 AAAA", "recipient: neither age1... nor an SSH public key"),
    ] {
        let error = Recipients::default().add(text).unwrap_err().to_string();
        assert_eq!(error, sentence, "{text}");
    }
    let file = format!("# team\n\n{ED25519_PUB}\r\n  {RSA_PUB}\nbob\n");
    let error = Recipients::default().add_file(file.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "recipient: line 7: neither age1... nor an SSH public key");
}

#[test]
fn a_recipients_file_may_hold_comments_blank_lines_and_spaces() {
    let mut recipients = Recipients::default();
    recipients.add_file(format!("# team\n\n{ED25519_PUB}\r\n  {RSA_PUB}\n").as_bytes()).unwrap();
    let file = common::seal(&Sealer::Age(recipients), b"text");
    for key in [ED25519, RSA] {
        assert_eq!(common::open(&identities(&[key]), &file).unwrap(), b"text");
    }
}

#[test]
fn a_file_without_recipients_is_refused() {
    let error = Sealer::Age(Recipients::default()).seal().unwrap_err();
    assert_eq!(error.to_string(), "recipient: none given");
}

#[test]
fn each_bad_identity_file_has_its_own_sentence_without_its_text() {
    let armor = |plain: &[u8], recipient: &dyn Recipient| armored(&crate_encrypts(plain, &[recipient]));
    let mut passphrase = age::scrypt::Recipient::new("passphrase".to_owned().into());
    passphrase.set_work_factor(4);
    let elsewhere = armor(b"x", &x25519::Identity::generate().to_public());
    for (file, sentence) in [
        (&b"AGE-SECRET-KEY-1QQ\n"[..], "identity: line 1: not an age identity"),
        (b"# nothing\n", "identity: the file holds none"),
        (b"", "identity: the file holds none"),
        (b"\xFF\xFD", "identity: the file is not text"),
        (b"AGE-PLUGIN-YUBIKEY-1QQQ\n", "identity: line 1: not an age identity"),
        (b"AGE-SECRET-KEY-PQ-1QQQ\n", "identity: line 1: not an age identity"),
        (
            ED25519_PUB.as_bytes(),
            "identity: line 1: this is a recipient, which is public: -r and -R take those",
        ),
        (include_bytes!("keys/ecdsa"), "not supported: SSH keys of type ecdsa-sha2-nistp256"),
        (b"-----BEGIN RSA PRIVATE KEY-----\nAAAA", "identity: not an SSH private key that age knows"),
        (&elsewhere, "identity: the encrypted file is not encrypted with a passphrase"),
        (&armor(b"secret", &passphrase), "identity: line 1: not an age identity"),
        (b"age-encryption.org/v1\n", "identity: the encrypted file is damaged"),
    ] {
        let mut prompt = |_: &str| Some("passphrase".to_owned().into());
        let error = Identities::default().add_file(file, &mut prompt).unwrap_err().to_string();
        assert_eq!(error, sentence);
    }
}

#[test]
fn encrypted_keys_ask_once_and_take_only_the_right_passphrase() {
    let made = generate_identity(SystemTime::now(), false).unwrap();
    let mut recipient = age::scrypt::Recipient::new("passphrase".to_owned().into());
    recipient.set_work_factor(4);
    let encrypted = crate_encrypts(made.file.as_bytes(), &[&recipient]);
    for file in [&encrypted, &armored(&encrypted), ED25519_ENCRYPTED.as_bytes()] {
        for (passphrase, fits) in [(Some("passphrase"), true), (Some("Passphrase"), false), (None, false)] {
            let mut prompts = 0;
            let mut prompt = |_: &str| {
                prompts += 1;
                passphrase.map(|text| SecretString::from(text.to_owned()))
            };
            let added = Identities::default().add_file(file, &mut prompt);
            assert_eq!((added.is_ok(), prompts), (fits, 1), "{added:?}");
        }
    }
}

#[test]
fn the_identity_that_keygen_makes_is_one_for_age() {
    let made = generate_identity(SystemTime::UNIX_EPOCH, false).unwrap();
    let lines: Vec<&str> = made.file.lines().collect();
    assert_eq!(lines[0], "# created: 1970-01-01T00:00:00Z");
    assert_eq!(lines[1], format!("# public key: {}", made.recipient));
    let identity: x25519::Identity = lines[2].parse().unwrap();
    assert_eq!(identity.to_public().to_string(), made.recipient);
}

fn armored(file: &[u8]) -> Vec<u8> {
    use age::armor::{ArmoredWriter, Format};
    let mut writer = ArmoredWriter::wrap_output(Vec::new(), Format::AsciiArmor).unwrap();
    writer.write_all(file).unwrap();
    writer.finish().unwrap()
}

// ---- the command `age`

/// Runs `age` with a pipe on both sides; `None`, and says so, where it is not installed.
fn age_command(arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let spawned = Command::new("age").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = spawned else {
        println!("skipped: age is not installed");
        return None;
    };
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    let feeder = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap().unwrap();
    assert!(output.status.success(), "age {arguments:?}");
    Some(output.stdout)
}

#[test]
fn the_command_age_reads_what_is_sealed_and_writes_what_is_opened() {
    let made = generate_identity(SystemTime::now(), false).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join("key");
    std::fs::write(&key_file, &*made.file).unwrap();
    let key_file = key_file.to_str().unwrap();
    for &size in SIZES {
        let file = common::seal(&recipients(&[&made.recipient]), &pattern(size));
        let Some(plain) = age_command(&["-d", "-i", key_file], &file) else { return };
        assert!(plain == pattern(size), "{size}");
        let file = age_command(&["-r", &made.recipient], &pattern(size)).unwrap();
        assert!(common::open(&identities(&[&made.file]), &file) == Ok(pattern(size)), "{size}");
        let file = age_command(&["-a", "-r", &made.recipient], &pattern(size)).unwrap();
        assert!(is_armored(&file));
        let mut binary = Vec::new();
        dearmored(Cursor::new(file)).unwrap().read_to_end(&mut binary).unwrap();
        assert!(common::open(&identities(&[&made.file]), &binary) == Ok(pattern(size)), "{size}");
    }
}

// ---- the published test vectors of age

struct Case {
    expect: String,
    payload: String,
    identities: Identities,
    file: Vec<u8>,
}

fn case(bytes: &[u8]) -> Case {
    let border = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap();
    let (head, file) = (std::str::from_utf8(&bytes[..border]).unwrap(), &bytes[border + 2..]);
    let field = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_default().to_owned()
    };
    let mut identities = Identities::default();
    for line in head.lines() {
        if let Some(identity) = line.strip_prefix("identity: ") {
            identities.add_file(identity.as_bytes(), &mut no_passphrase).unwrap();
        }
        if let Some(passphrase) = line.strip_prefix("passphrase: ") {
            identities.add_passphrase(passphrase.to_owned().into(), WorkFactors { new: 18, most: 22 });
        }
    }
    let mut inflated = Vec::new();
    match &*field("compressed") {
        "zlib" => _ = flate2::read::ZlibDecoder::new(file).read_to_end(&mut inflated).unwrap(),
        _ => inflated.extend_from_slice(file),
    }
    Case { expect: field("expect"), payload: field("payload"), identities, file: inflated }
}

/// What comes out, in the words of the kit, with the plaintext up to the first bad chunk.
fn outcome(case: Case) -> (&'static str, Vec<u8>) {
    let mut file = case.file;
    if is_armored(&file) {
        let mut binary = Vec::new();
        let read = dearmored(Cursor::new(file)).and_then(|mut reader| reader.read_to_end(&mut binary));
        if read.is_err() {
            return ("armor failure", vec![]);
        }
        file = binary;
    }
    let body = match common::candidates(&Opener::Age(case.identities), &file) {
        Ok(mut bodies) => bodies.remove(0),
        Err(FormatError::NoKeyFits { .. }) => return ("no match", vec![]),
        Err(FormatError::Header { fact: "the MAC of its header does not fit", .. }) => {
            return ("HMAC failure", vec![]);
        }
        Err(_) => return ("header failure", vec![]),
    };
    common::open_until_bad(&body, &file)
}

#[test]
fn the_test_vectors_of_age_come_out_as_published() {
    let mut count = 0;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/data/age");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let case = case(&std::fs::read(&path).unwrap());
        let (expect, payload) = (case.expect.clone(), case.payload.clone());
        let (outcome, plain) = outcome(case);
        let begin_is_wrong =
            ["armor_garbage_leading", "armor_lowercase", "armor_whitespace_begin", "armor_wrong_type"];
        // What does not begin like armor is taken for a binary file.
        let expect = if begin_is_wrong.contains(&&*name) { "header failure" } else { &*expect };
        assert_eq!(outcome, expect, "{name}");
        // Where the payload fails, the reference may have released a chunk more than is released here: it
        // takes a full chunk for the last one before it sees what follows.
        if outcome == "success" {
            assert_eq!(sha256(&plain), payload, "{name}");
        }
        count += 1;
    }
    assert_eq!(count, 143);
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn no_file_is_sealed_that_asks_for_more_work_than_is_read() {
    let factors = WorkFactors { new: WorkFactors::HIGHEST + 1, most: WorkFactors::HIGHEST };
    let sealer = Sealer::Age(Recipients::passphrase("words".to_owned().into(), factors));
    assert!(matches!(sealer.seal(), Err(FormatError::TooMuchWork { most: 22 })));
}
