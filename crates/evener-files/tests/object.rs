//! Objects that are read at any place, sealed while one writes, or taken through whole: judged by RustCrypto's ciphers and by the crate `age`,
//! which open what is sealed here and seal what is opened here.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use std::cell::Cell;
use std::io::{self, IoSliceMut, Read as _, Write};
use std::num::NonZeroU32;
use std::time::SystemTime;

use common::pattern;
use evener::core::JobError;
use evener::{Caller, Cancel, CoreDrivers, DriverFactory, ModuleSetup, Setup};
use evener_files::age_keys::{Identities, Recipients, WorkFactors, generate_identity};
use evener_files::format::openssl_enc::{Kdf, OpensslEnc};
use evener_files::format::tink::Tink;
use evener_files::format::{Opener, Sealer};
use evener_files::keyset::{Keyset, Template};
use evener_files::object::{ObjectWork, ReadAt, SealedObject, SealedWriter, Slots, mark};
use evener_files::{
    FileError, FormatError, Options, Progress, Request, RequestError, Summary, Target, Task, through,
};
use evener_testing::Random;
use evener_testing::drivers::plain_drivers;
use zeroize::Zeroizing;

/// Lengths around the borders of segments of 4 KiB (with headers and tags) and of 64 KiB.
const LENGTHS: [usize; 9] = [0, 1, 4_000, 4_096, 9_000, 65_536, 65_537, 262_144, 300_000];

/// A kind of object: its name, what seals it and what opens it.
struct Form {
    name: &'static str,
    sealer: Sealer,
    opener: Opener,
    /// Bytes that a segment has at most, tag included.
    segment_bytes: u64,
}

fn tink(name: &'static str) -> Form {
    let keyset = Keyset::generate(name.parse::<Template>().unwrap()).unwrap();
    let made = || Tink::new(Keyset::parse(&keyset.to_json()).unwrap(), b"bound".to_vec());
    Form { name, sealer: Sealer::Tink(made()), opener: Opener::Tink(made()), segment_bytes: 4 << 10 }
}

fn age() -> Form {
    let identity = generate_identity(SystemTime::now(), false).unwrap();
    let (mut recipients, mut identities) = (Recipients::default(), Identities::default());
    recipients.add(&identity.recipient).unwrap();
    identities.add_file(identity.file.as_bytes(), &mut |_| None).unwrap();
    let (sealer, opener) = (Sealer::Age(recipients), Opener::Age(identities));
    Form { name: "age", sealer, opener, segment_bytes: (64 << 10) + 16 }
}

fn openssl(cipher: &'static str) -> Form {
    let made = || {
        let passphrase = Zeroizing::new(b"a passphrase".to_vec());
        OpensslEnc::new(cipher, passphrase, Kdf::Pbkdf2(NonZeroU32::MIN), "sha256").unwrap()
    };
    let (sealer, opener) = (Sealer::OpensslEnc(made()), Opener::OpensslEnc(made()));
    Form { name: cipher, sealer, opener, segment_bytes: 256 << 10 }
}

/// Those whose segments lie at known places.
fn segmented() -> Vec<Form> {
    vec![
        tink("AES256_GCM_HKDF_4KB"),
        tink("AES128_CTR_HMAC_SHA256_4KB"),
        age(),
        openssl("aes-256-cbc"),
        openssl("aes-128-ctr"),
    ]
}

/// Has `body` work with a caller of a run on this thread.
fn with_caller<T>(body: impl FnOnce(&mut Caller<'_, 'static>) -> T) -> T {
    evener::run(Setup::default(), |runtime| body(&mut runtime.caller(plain_drivers()))).0
}

fn opened<'m, S: ReadAt>(
    form: &Form,
    source: S,
    kept: usize,
    caller: &mut Caller<'_, 'm>,
) -> Result<SealedObject<'m, S>, FileError> {
    SealedObject::open(&form.opener, source, kept, caller)
}

#[test]
fn any_range_of_an_object_that_other_hands_sealed_is_what_was_sealed() {
    let mut random = Random::new(1);
    for form in segmented() {
        for length in LENGTHS {
            let plain = pattern(length);
            let file = common::seal(&form.sealer, &plain);
            with_caller(|caller| {
                let mut object = opened(&form, &file, 3, caller).unwrap();
                assert_eq!(object.text_bytes(), length as u64, "{}", form.name);
                for _ in 0..40 {
                    let (place, bytes) = (random.below(length + 10), random.below(length + 10));
                    let mut space = vec![0xAA; bytes];
                    let came = object.read_at(place as u64, &mut space, caller).unwrap();
                    let expected = &plain[place.min(length)..(place + bytes).min(length)];
                    assert_eq!(&space[..came], expected, "{}, {place}, {bytes}", form.name);
                }
            });
        }
    }
}

/// A source that counts what is read of it.
struct Counted {
    file: Vec<u8>,
    bytes: Cell<u64>,
}

impl ReadAt for Counted {
    fn byte_count(&self) -> u64 {
        self.file.byte_count()
    }

    fn read_exact_at(&self, parts: &mut [IoSliceMut<'_>], place: u64) -> io::Result<()> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        self.bytes.set(self.bytes.get() + bytes as u64);
        self.file.read_exact_at(parts, place)
    }
}

#[test]
fn no_more_is_read_than_the_segments_of_a_range_and_none_of_them_twice_while_it_is_kept() {
    for form in [tink("AES256_GCM_HKDF_4KB"), tink("AES128_CTR_HMAC_SHA256_4KB"), age()] {
        let plain = pattern(1 << 20);
        let source = Counted { file: common::seal(&form.sealer, &plain), bytes: Cell::new(0) };
        with_caller(|caller| {
            let mut object = opened(&form, &source, 4, caller).unwrap();
            let mut space = [0; 100];
            let mut cost = |place: u64, caller: &mut Caller<'_, 'static>| {
                let before = source.bytes.get();
                object.read_at(place, &mut space, caller).unwrap();
                source.bytes.get() - before
            };
            let name = form.name;
            assert_eq!(cost(500_000, caller), form.segment_bytes, "{name}");
            assert_eq!(cost(500_010, caller), 0, "{name}: the segment is kept");
            assert_eq!(cost((1 << 20) - 40, caller), 0, "{name}: the last one was opened first");
            for place in [100_000, 200_000, 300_000] {
                assert_eq!(cost(place, caller), form.segment_bytes, "{name}");
            }
            assert_eq!(
                cost(500_000, caller),
                form.segment_bytes,
                "{name}: four are kept, the last used ones"
            );
            assert_eq!(cost(300_000, caller), 0, "{name}");
        });
    }
}

#[test]
fn an_object_that_was_cut_off_is_refused_before_anything_of_it_is_given() {
    for form in [tink("AES256_GCM_HKDF_4KB"), tink("AES128_CTR_HMAC_SHA256_4KB"), age()] {
        let file = common::seal(&form.sealer, &pattern(300_000));
        // At the end of a segment, where the length alone tells nothing. Tink counts the header to the first one.
        let header = if form.name == "age" { file.len() - 300_000 - 5 * 16 } else { 0 };
        let whole = header + 4 * usize::try_from(form.segment_bytes).unwrap();
        for bytes in [whole, whole + 700, file.len() - 1] {
            let refused = with_caller(|caller| opened(&form, &file[..bytes], 3, caller).err());
            assert!(matches!(refused, Some(FileError::Format(_))), "{}, {bytes}: {refused:?}", form.name);
        }
    }
}

#[test]
fn a_damaged_segment_gives_nothing_and_the_others_can_still_be_had() {
    for form in [tink("AES256_GCM_HKDF_4KB"), tink("AES128_CTR_HMAC_SHA256_4KB"), age()] {
        let plain = pattern(400_000);
        let mut file = common::seal(&form.sealer, &plain);
        file[200_000] ^= 1;
        with_caller(|caller| {
            let mut object = opened(&form, &file, 3, caller).unwrap();
            let mut space = vec![0; 10_000];
            let refused = object.read_at(190_000, &mut space, caller);
            let not_authentic = matches!(refused, Err(FileError::Format(FormatError::NotAuthentic { .. })));
            assert!(not_authentic, "{}: {refused:?}", form.name);
            assert_eq!(space[9_900..], [0; 100], "{}", form.name);
            let mut space = vec![0; 100];
            for place in [0, 300_000, 0] {
                assert_eq!(object.read_at(place, &mut space, caller).unwrap(), 100);
                let place = usize::try_from(place).unwrap();
                assert_eq!(space, plain[place..place + 100], "{}", form.name);
            }
        });
    }
}

#[test]
fn an_object_without_places_or_under_another_key_is_refused() {
    let armored = {
        let form = age();
        let file = with_caller(|caller| {
            let writer = SealedWriter::new(&form.sealer, true, 2, Vec::new()).unwrap();
            writer.finish(caller).unwrap()
        });
        (form, file)
    };
    let serial = openssl("aes-256-cfb");
    let sealed = common::seal(&serial.sealer, b"text");
    for (form, file) in [armored, (serial, sealed)] {
        let refused = with_caller(|caller| opened(&form, &file, 2, caller).err());
        let unsupported = matches!(refused, Some(FileError::Format(FormatError::Unsupported(_))));
        assert!(unsupported, "{}: {refused:?}", form.name);
    }
    let file = common::seal(&age().sealer, b"text");
    let refused = with_caller(|caller| opened(&age(), &file, 2, caller).err());
    assert!(matches!(refused, Some(FileError::Format(FormatError::NoKeyFits { .. }))), "{refused:?}");
}

/// Writes `plain` in pieces of any length.
fn written(form: &Form, plain: &[u8], burst: usize, armor: bool, random: &mut Random) -> Vec<u8> {
    with_caller(|caller| {
        let mut writer = SealedWriter::new(&form.sealer, armor, burst, Vec::new()).unwrap();
        let mut rest = plain;
        while !rest.is_empty() {
            let piece;
            (piece, rest) = rest.split_at(random.below(rest.len().min(20_000)) + 1);
            writer.write(piece, caller).unwrap();
        }
        writer.finish(caller).unwrap()
    })
}

#[test]
fn what_is_sealed_while_one_writes_is_opened_by_other_hands() {
    let mut random = Random::new(2);
    let mut forms = segmented();
    forms.push(openssl("aes-256-cfb"));
    for form in forms {
        for length in LENGTHS {
            for burst in [1, 2, 7] {
                let plain = pattern(length);
                let file = written(&form, &plain, burst, false, &mut random);
                assert_eq!(common::open(&form.opener, &file).unwrap(), plain, "{}, {length}", form.name);
            }
        }
    }
}

#[test]
fn what_is_sealed_as_text_is_opened_by_the_crate_age() {
    let identity = generate_identity(SystemTime::now(), false).unwrap();
    let mut recipients = Recipients::default();
    recipients.add(&identity.recipient).unwrap();
    let form = Form { sealer: Sealer::Age(recipients), ..age() };
    let plain = pattern(200_000);
    let text = written(&form, &plain, 3, true, &mut Random::new(3));
    assert!(text.starts_with(b"-----BEGIN AGE ENCRYPTED FILE-----\n"));
    let secret = identity.file.lines().find(|line| line.starts_with("AGE-SECRET-KEY-1")).unwrap();
    let secret: age::x25519::Identity = secret.parse().unwrap();
    let decryptor = age::Decryptor::new(age::armor::ArmoredReader::new(&text[..])).unwrap();
    let mut opened = Vec::new();
    let keys = std::iter::once(&secret as &dyn age::Identity);
    decryptor.decrypt(keys).unwrap().read_to_end(&mut opened).unwrap();
    assert_eq!(opened, plain);
}

#[test]
fn what_a_dropped_writer_leaves_is_opened_by_nobody() {
    for form in [tink("AES256_GCM_HKDF_4KB"), tink("AES128_CTR_HMAC_SHA256_4KB"), age()] {
        let left = with_caller(|caller| {
            let mut writer = SealedWriter::new(&form.sealer, false, 1, Vec::new()).unwrap();
            writer.write(&pattern(300_000), caller).unwrap();
            writer.output().clone()
        });
        assert!(left.len() > 200_000, "{}: full segments are passed on", form.name);
        assert!(common::open(&form.opener, &left).is_err(), "{}", form.name);
    }
}

/// An output that takes so many bytes and no more.
struct Narrow(usize);

impl Write for Narrow {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(part.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_writer_that_failed_takes_nothing_more() {
    let form = tink("AES256_GCM_HKDF_4KB");
    with_caller(|caller| {
        let mut writer = SealedWriter::new(&form.sealer, false, 1, Narrow(10_000)).unwrap();
        let failed = |result: Result<(), FileError>| matches!(result, Err(FileError::Io(error)) if error.answer().kind() == io::ErrorKind::StorageFull);
        assert!(failed(writer.write(&pattern(20_000), caller)));
        assert!(failed(writer.write(b"more", caller)));
        assert!(failed(writer.finish(caller).map(drop)));
    });
}

/// Works on runs of segments in an order of chance, and puts their outputs where they belong.
fn in_any_order(task: &Task, source: &[u8], random: &mut Random) -> Result<Vec<u8>, FileError> {
    with_caller(|caller| {
        let mut slots = Slots::new(task, 3);
        let work = ObjectWork::begin(task, source, &mut slots, caller)?;
        let mut runs = Vec::new();
        let mut next = 0;
        while next < work.segment_count() {
            let end = (next + 1 + random.below(9) as u64).min(work.segment_count());
            runs.insert(random.below(runs.len() + 1), next..end);
            next = end;
        }
        let whole = work.output(&(0..work.segment_count()));
        let mut output = vec![0; usize::try_from(whole.end).unwrap()];
        for run in runs {
            let mut part = Vec::new();
            work.crypt(&run, &source[common::range(&work.input(&run))], &mut part, &mut slots, caller)?;
            output[common::range(&work.output(&run))].copy_from_slice(&part);
        }
        Ok(output)
    })
}

#[test]
fn runs_of_segments_in_any_order_are_together_what_other_hands_open_and_seal() {
    let mut random = Random::new(4);
    let forms: [fn() -> Form; 4] = [
        || tink("AES256_GCM_HKDF_4KB"),
        || tink("AES128_CTR_HMAC_SHA256_4KB"),
        age,
        || openssl("aes-128-ctr"),
    ];
    for made in forms {
        for length in LENGTHS {
            let (plain, form) = (pattern(length), made());
            let task = Task::Encrypt(form.sealer);
            let file = in_any_order(&task, &plain, &mut random).unwrap();
            assert_eq!(common::open(&form.opener, &file).unwrap(), plain, "{}, {length}", form.name);
            let opened = in_any_order(&Task::Decrypt(form.opener), &file, &mut random).unwrap();
            assert_eq!(opened, plain, "{}, {length}", form.name);
        }
    }
}

/// The output of some runs of segments by a machine that knows nothing of others, each with its place.
fn by_one_machine(
    task: &Task,
    source: &[u8],
    about: &[&[u8]],
    is_own: impl Fn(u64) -> bool,
) -> Result<Vec<(u64, Vec<u8>)>, FileError> {
    with_caller(|caller| {
        let mut slots = Slots::new(task, 2);
        let work = ObjectWork::begin_shared(task, source, about, &mut slots, caller)?;
        let own = (0..work.segment_count()).filter(|segment| is_own(*segment));
        own.map(|segment| {
            let (run, mut part) = (segment..segment + 1, Vec::new());
            work.crypt(&run, &source[common::range(&work.input(&run))], &mut part, &mut slots, caller)?;
            Ok((work.output(&run).start, part))
        })
        .collect()
    })
}

#[test]
fn machines_that_know_nothing_of_each_other_seal_and_open_one_object() {
    for form in [tink("AES256_GCM_HKDF_4KB"), tink("AES128_CTR_HMAC_SHA256_4KB")] {
        let (plain, about): (_, [&[u8]; 2]) = (pattern(100_000), [b"object", b"upload"]);
        let (task, opening) = (Task::Encrypt(form.sealer), Task::Decrypt(form.opener));
        let Task::Decrypt(opener) = &opening else { unreachable!() };
        let by_three = |task: &Task, source: &[u8], about: &[&[u8]]| {
            let parts =
                (0..3).map(|own| by_one_machine(task, source, about, |segment| segment % 3 == own).unwrap());
            let mut parts: Vec<_> = parts.flatten().collect();
            parts.sort();
            parts.into_iter().flat_map(|(_, part)| part).collect::<Vec<u8>>()
        };
        let file = by_three(&task, &plain, &about);
        assert_eq!(common::open(opener, &file).unwrap(), plain, "{}", form.name);
        assert_eq!(by_three(&opening, &file, &[]), plain, "{}", form.name);
        assert_eq!(by_three(&task, &plain, &about), file, "twice the same");
        // Neither another object nor another try has a header in common with it.
        let others: [&[&[u8]]; 4] =
            [&[b"object", b"later"], &[b"other", b"upload"], &[b"object"], &[b"objectupload"]];
        let mut headers: Vec<_> =
            others.iter().map(|about| by_three(&task, &plain, about)[..24].to_vec()).collect();
        headers.extend([file[..24].to_vec(), common::seal(sealer_of(&task), &plain)[..24].to_vec()]);
        headers.sort();
        headers.dedup();
        assert_eq!(headers.len(), 6, "{}", form.name);
        // What was cut off on the border of a segment is found out by the machine that has the last one, and by no other.
        let cut_off = &file[..file.len() / 4096 * 4096 - 4096];
        let last = cut_off.len() as u64 / 4096 - 1;
        assert!(by_one_machine(&opening, cut_off, &[], |segment| segment < last).is_ok());
        let refused = by_one_machine(&opening, cut_off, &[], |segment| segment == last);
        assert!(matches!(refused, Err(FileError::Format(FormatError::NotAuthentic { .. }))), "{refused:?}");
    }
    for other in [age().sealer, openssl("aes-128-ctr").sealer] {
        let task = Task::Encrypt(other);
        assert!(!ObjectWork::can_be_shared(&task));
        let refused = by_one_machine(&task, b"text", &[], |_| true);
        assert!(matches!(refused, Err(FileError::Format(FormatError::Unsupported(_)))), "{refused:?}");
    }
}

fn sealer_of(task: &Task) -> &Sealer {
    match task {
        Task::Encrypt(sealer) => sealer,
        Task::Decrypt(_) => unreachable!(),
    }
}

#[test]
fn a_run_with_a_damaged_segment_is_refused_and_so_is_a_format_without_order() {
    let form = tink("AES256_GCM_HKDF_4KB");
    let mut file = common::seal(&form.sealer, &pattern(100_000));
    file[50_000] ^= 1;
    let refused = in_any_order(&Task::Decrypt(form.opener), &file, &mut Random::new(5));
    assert!(matches!(refused, Err(FileError::Format(FormatError::NotAuthentic { .. }))), "{refused:?}");
    for cipher in ["aes-256-cbc", "aes-256-cfb"] {
        let refused = in_any_order(&Task::Encrypt(openssl(cipher).sealer), b"text", &mut Random::new(6));
        assert!(matches!(refused, Err(FileError::Format(FormatError::Unsupported(_)))), "{refused:?}");
    }
}

#[test]
fn a_mark_is_the_same_for_the_same_key_and_source_and_for_nothing_else() {
    let keyset = Keyset::generate(Template::ALL[1]).unwrap().to_json();
    let tink =
        |data: &[u8]| Task::Encrypt(Sealer::Tink(Tink::new(Keyset::parse(&keyset).unwrap(), data.to_vec())));
    let age = |texts: &[&str]| {
        let mut recipients = Recipients::default();
        texts.iter().for_each(|text| recipients.add(text).unwrap());
        Task::Encrypt(Sealer::Age(recipients))
    };
    let [a, b] = [0, 1].map(|_| generate_identity(SystemTime::now(), false).unwrap().recipient);
    let about: &[&[u8]] = &[b"etag", b"12"];
    let first = [mark(&tink(b""), b"salt", about), mark(&age(&[&a, &b]), b"salt", about)];
    assert!(first.iter().flatten().all(|mark| mark.len() == 32 && first[0] != first[1]));
    assert_eq!(mark(&tink(b""), b"another salt", about), first[0], "a key needs no salt");
    assert_eq!(mark(&age(&[&b, &a]), b"salt", about), first[1], "recipients have no order");
    let others = [
        mark(&tink(b"data"), b"salt", about),
        mark(&tink(b""), b"salt", &[b"etag", b"13"]),
        mark(&tink(b""), b"salt", &[b"etag1", b"2"]),
        mark(&age(&[&a]), b"salt", about),
        mark(&age(&[&a, &b]), b"another salt", about),
    ];
    assert!(others.iter().all(|other| other.is_some() && !first.contains(other)), "{others:?}");
    let by_passphrase = Recipients::passphrase("words".to_owned().into(), WorkFactors::default());
    assert_eq!(mark(&Task::Encrypt(Sealer::Age(by_passphrase)), b"salt", about), None);
}

struct Cores;

impl DriverFactory for Cores {
    fn core_drivers(&self) -> CoreDrivers {
        plain_drivers()
    }

    fn modules<'m>(&self) -> Vec<ModuleSetup<'m>> {
        Vec::new()
    }
}

fn taken_through(task: Task, input: &[u8], output: &mut dyn Write) -> Result<Summary, RequestError> {
    let options = Options { workers: 2, memory_bytes: 16 << 20, ..Options::default() };
    let request = Request { task, sources: Vec::new(), target: Target::Stdout, options };
    through(&request, input, output, &Cores, &Progress::default(), &Cancel::default())
}

#[test]
fn what_is_taken_through_is_opened_by_other_hands_and_the_other_way_round() {
    let forms: [fn() -> Form; 4] =
        [|| tink("AES256_GCM_HKDF_4KB"), age, || openssl("aes-256-cbc"), || openssl("aes-256-cfb")];
    for made in forms {
        let (plain, form) = (pattern(1_000_000), made());
        let mut file = Vec::new();
        let summary = taken_through(Task::Encrypt(form.sealer), &plain, &mut file).unwrap();
        assert_eq!((summary.files, summary.bytes_in), (1, 1_000_000), "{}", form.name);
        assert_eq!(summary.bytes_out, file.len() as u64, "{}", form.name);
        assert_eq!(common::open(&form.opener, &file).unwrap(), plain, "{}", form.name);
        let mut opened = Vec::new();
        let summary = taken_through(Task::Decrypt(form.opener), &file, &mut opened).unwrap();
        assert!(summary.failed.is_empty() && opened == plain, "{}", form.name);
    }
}

#[test]
fn what_fails_on_the_way_is_told_and_no_unauthentic_byte_comes_out() {
    let form = age();
    let (plain, mut opened) = (pattern(300_000), Vec::new());
    let mut file = common::seal(&form.sealer, &plain);
    file[150_000] ^= 1;
    let summary = taken_through(Task::Decrypt(form.opener), &file, &mut opened).unwrap();
    let [(_, FileError::Format(FormatError::NotAuthentic { segment: 2 }))] = summary.failed[..] else {
        unreachable!("{:?}", summary.failed)
    };
    assert_eq!(opened, plain[..2 << 16], "what came before");
    let full = taken_through(Task::Encrypt(age().sealer), &plain, &mut Narrow(70_000)).unwrap();
    assert!(matches!(full.failed[..], [(_, FileError::Io(_))]), "{:?}", full.failed);
}

#[test]
fn a_run_that_was_stopped_says_so_to_readers_and_writers() {
    let form = tink("AES256_GCM_HKDF_4KB");
    let file = common::seal(&form.sealer, &pattern(100_000));
    let cancel = Cancel::default();
    let setup = Setup { cancel: cancel.clone(), ..Setup::default() };
    evener::run(setup, |runtime| {
        let mut caller = runtime.caller(plain_drivers());
        let mut object = opened(&form, &file, 2, &mut caller).unwrap();
        cancel.cancel();
        let stopped = object.read_at(10, &mut [0; 4], &mut caller);
        assert!(matches!(stopped, Err(FileError::Stopped)), "{stopped:?} ({:?})", JobError::Cancelled);
    });
}
