//! What is fuzzed: everything that reads a header or a key from hostile bytes, and the host: its wire (`wire.rs`), chains (`chains.rs`), control loop (`control.rs`), and the words of the arbiter's segment (`arbiter.rs`), parts of their own. Each body takes any bytes, must not
//! panic, and asserts what callers rely on. With cargo-fuzz and a nightly compiler, from the project's root:
//! `cargo +nightly fuzz run age_header fuzz/corpus/age_header fuzz/seeds/age_header`
#![forbid(unsafe_code)]

use std::io::Read as _;
use std::num::NonZeroU32;
use std::sync::LazyLock;

use evener_files::age_keys::{Identities, Recipients};
use evener_files::format::age::{dearmored, is_armored};
use evener_files::format::openssl_enc::{Kdf, OpensslEnc, first_line};
use evener_files::format::tink::Tink;
use evener_files::format::{Body, Opened, Opener, Sealer};
use evener_files::keyset::Keyset;

/// The key that `seeds/age_header/file` is for; made for this.
const IDENTITY: &[u8] = include_bytes!("../seeds/age_header/identity");
/// One key of each length, with small and with large segments.
const KEYSET: &[u8] = include_bytes!("../seeds/keyset/four");

/// The start of a Tink stream under a keyset of four keys.
pub fn tink_header(bytes: &[u8]) {
    static OPENER: LazyLock<Opener> = LazyLock::new(|| {
        let keyset = Keyset::parse(KEYSET).expect("a seed");
        Opener::Tink(Tink::new(keyset, b"bound".to_vec()))
    });
    open(&OPENER, bytes);
}

/// A keyset, and, where it is one, a file under it.
pub fn keyset(bytes: &[u8]) {
    let Ok(keyset) = Keyset::parse(bytes) else { return };
    let json = keyset.to_json();
    let again = Keyset::parse(&json).expect("what was written is read");
    assert_eq!(*again.to_json(), *json);
    if keyset.primary().is_err() {
        return;
    }
    let sealing = Sealer::Tink(Tink::new(keyset, Vec::new())).seal().expect("a checked key seals");
    look_at(&sealing.body, sealing.header.len() as u64 + bytes.len() as u64);
    let opened = Opener::Tink(Tink::new(again, Vec::new())).open(&sealing.header, false);
    assert!(matches!(opened, Ok(Opened::Ready(bodies)) if !bodies.is_empty()));
}

/// The start of an age file, armored or not; an identity file; a recipients file.
pub fn age_header(bytes: &[u8]) {
    static OPENER: LazyLock<Opener> = LazyLock::new(|| {
        let mut identities = Identities::default();
        identities.add_file(IDENTITY, &mut |_| None).expect("a seed");
        Opener::Age(identities)
    });
    open(&OPENER, bytes);
    if is_armored(bytes) {
        let mut binary = Vec::new();
        if dearmored(bytes).and_then(|mut reader| reader.read_to_end(&mut binary)).is_ok() {
            open(&OPENER, &binary);
        }
    }
    _ = Identities::default().add_file(bytes, &mut |_| None);
    _ = Recipients::default().add_identity_file(bytes, &mut |_| None);
    _ = Recipients::default().add_file(bytes);
}

/// The start of a file of openssl enc; the passphrase is the first line of the same bytes.
pub fn openssl_header(bytes: &[u8]) {
    let enc = |passphrase| OpensslEnc::new("aes-256-cbc", passphrase, Kdf::Pbkdf2(NonZeroU32::MIN), "sha256");
    _ = enc(first_line(bytes));
    open(&Opener::OpensslEnc(enc(first_line(b"x")).expect("a passphrase")), bytes);
}

/// Opens as a pipeline does: what is at hand, more where more is asked for, and the end.
fn open(opener: &Opener, bytes: &[u8]) {
    let mut given = 0;
    loop {
        let whole = given == bytes.len();
        match opener.open(&bytes[..given], whole) {
            Ok(Opened::NeedMore { start_bytes }) => {
                assert!(!whole && start_bytes > given, "{start_bytes} after {given} of {}", bytes.len());
                given = start_bytes.min(bytes.len());
            }
            Ok(Opened::Ready(bodies)) => {
                assert!(!bodies.is_empty());
                return bodies.iter().for_each(|body| look_at(body, bytes.len() as u64));
            }
            Err(error) => return assert!(!error.to_string().contains('\n'), "{error:?}"),
        }
    }
}

/// Takes apart a file of this length, as far as it is one.
fn look_at(body: &Body, cipher_bytes: u64) {
    let Ok(layout) = body.cut().of_cipher(cipher_bytes) else { return };
    let mut ends = (body.cut().header_bytes(), 0);
    for index in 0..layout.segment_count() {
        let segment = layout.segment(index);
        assert_eq!((segment.cipher.start, segment.plain.start), ends);
        assert!(segment.cipher.end - segment.cipher.start <= body.cut().slot_bytes());
        assert!(
            body.iv(index, segment.last).is_ok() && segment.last == (index + 1 == layout.segment_count())
        );
        ends = (segment.cipher.end, segment.plain.end);
    }
    assert_eq!(ends, (cipher_bytes, layout.plain_bytes()));
}
