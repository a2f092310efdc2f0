//! Damaged files of every format, and damaged keysets: none is accepted with other bytes than were encrypted, and of those formats in
//! which each byte counts none at all. What was encrypted is the judge. The runs are made within this process, for there are many.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::common::noise;
use evener::{Cancel, CoreDrivers, DriverFactory, ModuleSetup};
use evener_files::age_keys::{Identities, Recipients, WorkFactors, generate_identity};
use evener_files::format::openssl_enc::{Kdf, OpensslEnc};
use evener_files::format::tink::Tink;
use evener_files::format::{Opener, Sealer};
use evener_files::keyset::{KeyEncryption, Keyset, KeysetForm};
use evener_files::{Options, Progress, Request, Source, Summary, Target, Task, process};
use evener_testing::drivers::plain_drivers;
use evener_testing::{Folder, Random};
use zeroize::Zeroizing;

/// A key-encryption keyset: a key of AES-256-GCM, bytes 0 to 31, with Tink's prefix.
const KEK: &str = r#"{"primaryKeyId":5,"key":[{"keyData":{"typeUrl":"type.googleapis.com/google.crypto.tink.AesGcmKey",
    "value":"GiAAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHw==","keyMaterialType":"SYMMETRIC"},"status":"ENABLED","keyId":5,"outputPrefixType":"TINK"}]}"#;

/// Lengths of what is encrypted: nothing, within a segment, at its end, several segments; the last is beyond a chunk of age's.
const LENGTHS: [usize; 6] = [0, 1, 700, 4_000, 9_000, 66_000];

/// Files in one run.
const AT_ONCE: usize = 500;

struct Cores;

impl DriverFactory for Cores {
    fn core_drivers(&self) -> CoreDrivers {
        plain_drivers()
    }

    fn modules<'m>(&self) -> Vec<ModuleSetup<'m>> {
        Vec::new()
    }
}

/// One run from `input` to `output`.
fn run(task: Task, input: &Path, output: &Path, armor: bool) -> Summary {
    let options = Options { armor, workers: 1, memory_bytes: 64 << 20, ..Options::default() };
    let (sources, target) = (vec![Source::Path(input.to_owned())], Target::Path(output.to_owned()));
    let request = Request { task, sources, target, options };
    process(&request, &Cores, &Progress::default(), &Cancel::default()).unwrap()
}

/// A form of encrypted files.
struct Form {
    name: &'static str,
    sealer: fn(&Secrets) -> Sealer,
    opener: fn(&Secrets) -> Opener,
    armor: bool,
    /// How much of it has to be as it was.
    strictness: Strictness,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Strictness {
    /// Every byte.
    Bytes,
    /// What it says: a text has white space around it.
    Meaning,
    /// Nothing is authenticated: its structure.
    Structure,
}

/// The keys of all.
struct Secrets {
    identity: String,
    recipient: String,
    /// The post-quantum ones.
    hybrid_identity: String,
    hybrid_recipient: String,
}

impl Secrets {
    fn new() -> Self {
        let [made, hybrid] = [false, true]
            .map(|is_post_quantum| generate_identity(SystemTime::now(), is_post_quantum).unwrap());
        Self {
            identity: made.file.to_string(),
            recipient: made.recipient,
            hybrid_identity: hybrid.file.to_string(),
            hybrid_recipient: hybrid.recipient,
        }
    }
}

const FORMS: [Form; 8] = [
    Form {
        name: "age",
        sealer: to_recipient,
        opener: by_identity,
        armor: false,
        strictness: Strictness::Bytes,
    },
    Form {
        name: "age as text",
        sealer: to_recipient,
        opener: by_identity,
        armor: true,
        strictness: Strictness::Meaning,
    },
    Form {
        name: "age, under a passphrase",
        sealer: |_| Sealer::Age(Recipients::passphrase("open sesame".to_owned().into(), FACTORS)),
        opener: |_| {
            let mut identities = Identities::default();
            identities.add_passphrase("open sesame".to_owned().into(), FACTORS);
            Opener::Age(identities)
        },
        armor: false,
        strictness: Strictness::Bytes,
    },
    Form {
        name: "age, post-quantum",
        sealer: |secrets| to(&secrets.hybrid_recipient),
        opener: |secrets| by(&secrets.hybrid_identity),
        armor: false,
        strictness: Strictness::Bytes,
    },
    Form {
        name: "AES256_GCM_HKDF_4KB",
        sealer: |_| Sealer::Tink(tink("AES256_GCM_HKDF_4KB")),
        opener: |_| Opener::Tink(tink("AES256_GCM_HKDF_4KB")),
        armor: false,
        strictness: Strictness::Bytes,
    },
    Form {
        name: "AES128_CTR_HMAC_SHA256_4KB",
        sealer: |_| Sealer::Tink(tink("AES128_CTR_HMAC_SHA256_4KB")),
        opener: |_| Opener::Tink(tink("AES128_CTR_HMAC_SHA256_4KB")),
        armor: false,
        strictness: Strictness::Bytes,
    },
    Form {
        name: "openssl enc, CBC",
        sealer: |_| Sealer::OpensslEnc(enc("aes-256-cbc")),
        opener: |_| Opener::OpensslEnc(enc("aes-256-cbc")),
        armor: false,
        strictness: Strictness::Structure,
    },
    Form {
        name: "openssl enc, CTR",
        sealer: |_| Sealer::OpensslEnc(enc("aes-128-ctr")),
        opener: |_| Opener::OpensslEnc(enc("aes-128-ctr")),
        armor: false,
        strictness: Strictness::Structure,
    },
];

/// Cheap keys of passphrases, for there are thousands; a damaged header may ask for dearer ones, and is refused.
const FACTORS: WorkFactors = WorkFactors { new: 1, most: 9 };

fn to_recipient(secrets: &Secrets) -> Sealer {
    to(&secrets.recipient)
}

fn to(recipient: &str) -> Sealer {
    let mut recipients = Recipients::default();
    recipients.add(recipient).unwrap();
    Sealer::Age(recipients)
}

fn by_identity(secrets: &Secrets) -> Opener {
    by(&secrets.identity)
}

fn by(identity: &str) -> Opener {
    let mut identities = Identities::default();
    identities.add_file(identity.as_bytes(), &mut |_| None).unwrap();
    Opener::Age(identities)
}

/// The keyset of a template, always the same: one is made for each, once.
fn keyset(template: &str) -> &'static [u8] {
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    static MADE: Mutex<BTreeMap<String, &'static [u8]>> = Mutex::new(BTreeMap::new());
    let make = || {
        let keyset = Keyset::generate(template.parse().unwrap()).unwrap();
        &*keyset.to_json().to_vec().leak()
    };
    MADE.lock().unwrap().entry(template.to_owned()).or_insert_with(make)
}

fn tink(template: &str) -> Tink {
    Tink::new(Keyset::parse(keyset(template)).unwrap(), b"bound".to_vec())
}

fn enc(cipher: &str) -> OpensslEnc {
    let kdf = Kdf::Pbkdf2(NonZeroU32::MIN);
    OpensslEnc::new(cipher, Zeroizing::new(b"open sesame".to_vec()), kdf, "sha256").unwrap()
}

/// In memory, where there is such a place: a hundred thousand files are made and removed.
fn folder() -> Folder {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { Folder::new_in(memory) } else { Folder::temporary() }
}

/// `bytes` with one to four damages, never as they were: a bit turned, bytes replaced, pieces cut out, doubled, swapped or of another
/// file, the end cut off.
fn damaged(random: &mut Random, bytes: &[u8], other: &[u8]) -> Vec<u8> {
    let mut made = bytes.to_vec();
    while made == bytes {
        for _ in 0..=random.below(4) {
            let place = place(random, made.len());
            let piece = place..(place + 1 + random.below(64)).min(made.len());
            match random.below(8) {
                0 | 1 if !made.is_empty() => made[place] ^= 1 << random.below(8),
                2 if !made.is_empty() => made[place] = u8::try_from(random.below(256)).unwrap(),
                3 => made.truncate(place),
                4 => drop(made.drain(piece)),
                5 => made.extend_from_within(piece),
                6 => {
                    let tail = other[random.below(other.len().max(1)).min(other.len())..].to_vec();
                    made.splice(place.., tail);
                }
                _ => made.insert(place, u8::try_from(random.below(256)).unwrap()),
            }
        }
    }
    made
}

/// A place in a file: its start, its end and anything between are as likely.
fn place(random: &mut Random, length: usize) -> usize {
    if length == 0 {
        return 0;
    }
    match random.below(3) {
        0 => random.below(length.min(200)),
        1 => length - 1 - random.below(length.min(60)),
        _ => random.below(length),
    }
}

/// How damaged files ended.
#[derive(Debug, Default)]
struct Verdicts {
    refused: usize,
    /// Taken, with the bytes that were encrypted.
    right: usize,
    /// Taken, with others.
    wrong: usize,
}

/// What was encrypted, each with its encrypted form.
fn pairs(form: &Form, secrets: &Secrets) -> Vec<(Vec<u8>, Vec<u8>)> {
    let place = folder();
    for (number, bytes) in LENGTHS.iter().enumerate() {
        place.write(format!("plain/{number}"), noise(number as u64, *bytes));
    }
    let task = Task::Encrypt((form.sealer)(secrets));
    let summary = run(task, &place.join("plain"), &place.join("sealed"), form.armor);
    assert_eq!((summary.files, summary.failed.len()), (LENGTHS.len() as u64, 0), "{}", form.name);
    let bytes = |tree: &str, number: usize| fs::read(place.join(tree).join(number.to_string())).unwrap();
    // Undamaged, all of them are taken.
    run(Task::Decrypt((form.opener)(secrets)), &place.join("sealed"), &place.join("back"), false);
    (0..LENGTHS.len()).for_each(|number| assert!(bytes("back", number) == bytes("plain", number)));
    (0..LENGTHS.len()).map(|number| (bytes("plain", number), bytes("sealed", number))).collect()
}

/// `count` damaged files of a form go through a run.
fn judged(form: &Form, count: usize) -> Verdicts {
    let secrets = Secrets::new();
    let pairs = pairs(form, &secrets);
    let mut random = Random::new(form.name.len() as u64);
    let mut verdicts = Verdicts::default();
    for at in (0..count).step_by(AT_ONCE) {
        let place = folder();
        let of: Vec<usize> = (at..count.min(at + AT_ONCE)).map(|_| random.below(pairs.len())).collect();
        for (number, which) in of.iter().enumerate() {
            let other = &pairs[random.below(pairs.len())].1;
            let mut made = damaged(&mut random, &pairs[*which].1, other);
            // A whole file with another's contents is no damaged one.
            while pairs.iter().any(|(_, sealed)| *sealed == made) {
                made = damaged(&mut random, &pairs[*which].1, other);
            }
            place.write(format!("damaged/{number}"), made);
        }
        let task = Task::Decrypt((form.opener)(&secrets));
        let summary = run(task, &place.join("damaged"), &place.join("back"), false);
        assert_eq!(summary.files + summary.failed.len() as u64, of.len() as u64, "{}", form.name);
        let failed: Vec<&PathBuf> = summary.failed.iter().map(|(path, _)| path).collect();
        for (number, which) in of.iter().enumerate() {
            let back = fs::read(place.join(format!("back/{number}"))).ok();
            let is_named = failed.contains(&&place.join(format!("damaged/{number}")));
            assert_eq!(back.is_none(), is_named, "{} {number}", form.name);
            match back {
                None => verdicts.refused += 1,
                Some(bytes) if bytes == pairs[*which].0 => verdicts.right += 1,
                Some(_) => verdicts.wrong += 1,
            }
        }
    }
    println!("{}: {count} damaged files: {verdicts:?}", form.name);
    verdicts
}

/// Damaged keysets open a file or do not; what comes out is what went in.
fn judged_keysets(form: KeysetForm, kek: Option<&KeyEncryption>, count: usize) -> Verdicts {
    const TEMPLATE: &str = "AES256_GCM_HKDF_4KB";
    let place = folder();
    place.write("plain/f", noise(5, 700));
    run(Task::Encrypt(Sealer::Tink(tink(TEMPLATE))), &place.join("plain"), &place.join("sealed"), false);
    let written = |keyset: &Keyset| match kek {
        Some(kek) => keyset.written_encrypted(form, kek).unwrap(),
        None => keyset.written(form),
    };
    let read = |bytes: &[u8]| match kek {
        Some(kek) => Keyset::parse_encrypted(bytes, kek),
        None => Keyset::parse(bytes),
    };
    let whole = written(&Keyset::parse(keyset(TEMPLATE)).unwrap());
    let other = written(&Keyset::generate(TEMPLATE.parse().unwrap()).unwrap());
    assert!(read(&whole).is_ok());
    let mut random = Random::new(11);
    let mut verdicts = Verdicts::default();
    for _ in 0..count {
        let Ok(keyset) = read(&damaged(&mut random, &whole, &other)) else {
            verdicts.refused += 1;
            continue;
        };
        let task = Task::Decrypt(Opener::Tink(Tink::new(keyset, b"bound".to_vec())));
        run(task, &place.join("sealed"), &place.join("back"), false);
        match fs::read(place.join("back/f")) {
            Err(_) => verdicts.refused += 1,
            Ok(bytes) if bytes == noise(5, 700) => verdicts.right += 1,
            Ok(_) => verdicts.wrong += 1,
        }
        fs::remove_dir_all(place.join("back")).ok();
    }
    println!(
        "keyset, {}{}: {count} damaged: {verdicts:?}",
        if form == KeysetForm::Json { "JSON" } else { "binary" },
        if kek.is_some() { ", encrypted" } else { "" }
    );
    verdicts
}

/// So many damaged files of each form, and keysets.
fn none_is_taken(of_each: usize) {
    for form in &FORMS {
        let verdicts = judged(form, of_each);
        match form.strictness {
            Strictness::Bytes => assert_eq!((verdicts.right, verdicts.wrong), (0, 0), "{}", form.name),
            Strictness::Meaning => assert_eq!(verdicts.wrong, 0, "{}", form.name),
            // That other bytes come out is what the format is like; what is no such file is refused.
            Strictness::Structure => assert!(verdicts.refused > of_each / 20, "{}: {verdicts:?}", form.name),
        }
    }
    for form in [KeysetForm::Json, KeysetForm::Binary] {
        for kek in [None, Some(&KeyEncryption::parse(KEK.as_bytes()).unwrap())] {
            assert_eq!(judged_keysets(form, kek, of_each).wrong, 0);
        }
    }
}

#[test]
fn of_damaged_files_none_is_taken_with_other_bytes() {
    none_is_taken(400);
}

#[test]
#[ignore = "minutes: 100,000 damaged files and keysets"]
fn of_a_hundred_thousand_damaged_files_none_is_taken_with_other_bytes() {
    none_is_taken(8_400);
}
