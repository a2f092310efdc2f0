//! The openssl enc format against the command `openssl`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod common;

use std::io::Write as _;
use std::num::NonZeroU32;
use std::process::{Command, Stdio};

use common::pattern;
use evener_files::FormatError;
use evener_files::format::openssl_enc::{ITERATIONS, Kdf, OpensslEnc, first_line};
use evener_files::format::{Growth, Iv, Opener, Sealer};
use zeroize::Zeroizing;

const SLICE: usize = 256 << 10;
const SIZES: &[usize] = &[0, 1, 15, 16, 17, 100_000, SLICE - 1, SLICE, SLICE + 1, 3 * SLICE + 21];

fn enc(cipher: &str, passphrase: &[u8], iterations: NonZeroU32) -> OpensslEnc {
    made(cipher, passphrase, Kdf::Pbkdf2(iterations), "sha256")
}

fn made(cipher: &str, passphrase: &[u8], kdf: Kdf, digest: &str) -> OpensslEnc {
    OpensslEnc::new(cipher, Zeroizing::new(passphrase.to_vec()), kdf, digest).unwrap()
}

/// Runs `openssl enc` in a pipe; `None` where it refuses.
fn openssl(arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new("openssl");
    command.arg("enc").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("openssl is installed wherever Evener is built");
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    let feeder = std::thread::spawn(move || stdin.write_all(&input).is_ok());
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    output.status.success().then_some(output.stdout)
}

#[test]
fn openssl_reads_what_is_sealed_and_writes_what_is_opened() {
    for cipher in ["aes-128-cbc", "aes-192-cbc", "aes-256-cbc", "aes-128-ctr", "aes-192-ctr", "aes-256-ctr"] {
        let (option, common) = (format!("-{cipher}"), ["-pbkdf2", "-pass", "pass:open sesame"]);
        for &size in SIZES {
            let file =
                common::seal(&Sealer::OpensslEnc(enc(cipher, b"open sesame", ITERATIONS)), &pattern(size));
            let plain = openssl(&[&["-d", &option], &common[..]].concat(), &file);
            assert!(plain == Some(pattern(size)), "{cipher} {size}");
            let file = openssl(&[&[&*option], &common[..]].concat(), &pattern(size)).unwrap();
            let opener = Opener::OpensslEnc(enc(cipher, b"open sesame", ITERATIONS));
            assert!(common::open(&opener, &file) == Ok(pattern(size)), "{cipher} {size}");
        }
    }
}

#[test]
fn files_without_a_salt_are_opened_as_by_openssl() {
    for (cipher, kdf, digest, arguments) in [
        ("aes-256-cbc", Kdf::Pbkdf2(ITERATIONS), "sha256", &["-pbkdf2"][..]),
        ("aes-128-ctr", Kdf::Pbkdf2(ITERATIONS), "sha512", &["-pbkdf2", "-md", "sha512"]),
        ("aes-192-cbc", Kdf::Legacy, "md5", &["-md", "md5"]),
        ("camellia-256-cbc", Kdf::Legacy, "sha256", &[]),
    ] {
        let option = format!("-{cipher}");
        for &size in SIZES {
            let all = [&["-nosalt", &option, "-pass", "pass:open sesame"], arguments].concat();
            let file = openssl(&all, &pattern(size)).unwrap();
            let opener = Opener::OpensslEnc(made(cipher, b"open sesame", kdf, digest).without_salt());
            assert!(common::open(&opener, &file) == Ok(pattern(size)), "{cipher} {size}");
        }
    }
}

#[test]
fn other_iteration_counts_are_those_of_openssl() {
    for iterations in [1, 7, 100_000] {
        let count = iterations.to_string();
        let arguments = ["-aes-256-cbc", "-pbkdf2", "-iter", &count, "-pass", "pass:x"];
        let file = openssl(&arguments, b"text").unwrap();
        let opener = Opener::OpensslEnc(enc("aes-256-cbc", b"x", NonZeroU32::new(iterations).unwrap()));
        assert_eq!(common::open(&opener, &file).unwrap(), b"text");
    }
}

#[test]
fn the_passphrase_in_a_file_is_the_one_that_openssl_takes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("passphrase");
    let long = [b'a'; 1023];
    for file in [&b"abc"[..], b"abc\n", b"abc\r\n", b"abc\ndef\n", b" a b \n", "pässword\n".as_bytes(), &long]
    {
        std::fs::write(&path, file).unwrap();
        let pass = format!("file:{}", path.display());
        let sealed = openssl(&["-aes-128-cbc", "-pbkdf2", "-pass", &pass], b"text").unwrap();
        let opener = Opener::OpensslEnc(enc("AES-128-CBC", &first_line(file), ITERATIONS));
        assert_eq!(common::open(&opener, &sealed).unwrap(), b"text", "{file:?}");
    }
}

#[test]
fn passphrases_that_openssl_would_not_take_whole_are_refused() {
    for (passphrase, sentence) in [
        (&b""[..], "passphrase: it is empty"),
        (b"a\0b", "passphrase: it holds a zero byte, where openssl would end it"),
        (&[b'a'; 1024], "passphrase: it is longer than 1023 bytes, where openssl would cut it"),
    ] {
        let passphrase = Zeroizing::new(passphrase.to_vec());
        let made = OpensslEnc::new("aes-256-cbc", passphrase, Kdf::Legacy, "sha256");
        assert_eq!(made.err().unwrap().to_string(), sentence);
    }
    for (cipher, digest, what) in [
        ("aes-256-gcm", "sha256", "cipher \"aes-256-gcm\""),
        ("aes-256-xts", "sha256", "cipher \"aes-256-xts\""),
        ("rot13", "sha256", "cipher \"rot13\""),
        ("aes-256-cbc", "crc32", "digest \"crc32\""),
    ] {
        let error = OpensslEnc::new(cipher, Zeroizing::new(vec![1]), Kdf::Legacy, digest).err().unwrap();
        assert!(error.to_string().starts_with(&format!("not supported: the {what} in")), "{error}");
    }
}

/// The ciphers that `openssl enc` has here.
fn ciphers() -> Vec<String> {
    let listed = Command::new("openssl").args(["enc", "-list"]).output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    text.split_whitespace().filter_map(|word| word.strip_prefix('-')).map(str::to_owned).collect()
}

#[test]
fn every_cipher_that_openssl_enc_has_is_read_and_written() {
    let mut tried = 0;
    // Keys are wrapped, not files: what it holds must fit one call.
    for cipher in ciphers().iter().filter(|cipher| cipher.contains('-') && !cipher.contains("wrap")) {
        let option = format!("-{cipher}");
        let arguments = [&*option, "-pbkdf2", "-iter", "1", "-pass", "pass:x"];
        for size in [0, SLICE + 17] {
            // What openssl lists and refuses: old ciphers without its legacy provider, key wrapping.
            let Some(file) = openssl(&arguments, &pattern(size)) else { break };
            let opener = Opener::OpensslEnc(enc(cipher, b"x", NonZeroU32::MIN));
            // ECB has no judge in these tests' slow pipeline but the command itself.
            if !(cipher.starts_with("aes") && cipher.ends_with("ecb")) {
                assert!(common::open(&opener, &file) == Ok(pattern(size)), "{cipher} {size}");
                let sealer = Sealer::OpensslEnc(enc(cipher, b"x", NonZeroU32::MIN));
                let plain =
                    openssl(&[&["-d"], &arguments[..]].concat(), &common::seal(&sealer, &pattern(size)));
                assert!(plain == Some(pattern(size)), "{cipher} {size}");
            }
            tried += 1;
        }
    }
    assert!(tried > 50, "{tried}");
}

#[test]
fn digests_and_the_old_derivation_are_those_of_openssl() {
    for digest in ["md5", "sha1", "sha256", "sha384", "sha512", "sha3-256", "ripemd160", "sm3"] {
        for (options, kdf) in [(&[][..], Kdf::Legacy), (&["-pbkdf2"], Kdf::Pbkdf2(ITERATIONS))] {
            let arguments = [&["-aes-256-ctr", "-md", digest, "-pass", "pass:x"], options].concat();
            let Some(file) = openssl(&arguments, b"text") else {
                println!("skipped: this openssl has no {digest}");
                continue;
            };
            let opener = Opener::OpensslEnc(made("aes-256-ctr", b"x", kdf, digest));
            assert_eq!(common::open(&opener, &file).unwrap(), b"text", "{digest} {kdf:?}");
        }
    }
}

#[test]
fn only_segment_0_knows_its_iv_and_only_the_last_is_padded() {
    let body = Sealer::OpensslEnc(enc("aes-128-cbc", b"x", ITERATIONS)).seal().unwrap().body;
    assert!(matches!(body.iv(0, true), Ok(Iv::Known(_))));
    assert_eq!((body.iv(1, false), body.iv(u64::MAX, true)), (Ok(Iv::PreviousBlock), Ok(Iv::PreviousBlock)));
    assert_eq!(body.session(false).padding(), evener_core::Padding::None);
    assert_eq!(body.session(true).padding(), evener_core::Padding::Pkcs7);
    assert_eq!(*body.cut(), evener_files::format::Cut::new(16, SLICE as u64, SLICE as u64, Growth::Padding));
}

#[test]
fn what_is_no_whole_file_of_openssl_is_refused() {
    let sealed = common::seal(&Sealer::OpensslEnc(enc("aes-128-cbc", b"x", ITERATIONS)), &pattern(40));
    let open = |file: &[u8]| {
        let opener = Opener::OpensslEnc(enc("aes-128-cbc", b"x", ITERATIONS));
        common::open(&opener, file).err().map(|error| error.to_string())
    };
    assert_eq!(open(b"Salted_-").unwrap(), "not in the openssl enc format: it does not start with Salted__");
    for end in 0..16 {
        assert_eq!(
            open(&sealed[..end]),
            Some(format!("truncated: the file ends after {end} bytes, inside a header"))
        );
    }
    for end in (16..64).filter(|end| end % 16 != 0 || *end == 16) {
        assert_eq!(
            open(&sealed[..end]),
            Some(format!("truncated: the file ends after {end} bytes, inside a segment"))
        );
    }
    assert_eq!(open(&sealed), None);
}

#[test]
fn a_wrong_passphrase_never_gives_the_plaintext() {
    let sealed = common::seal(&Sealer::OpensslEnc(enc("aes-128-cbc", b"x", ITERATIONS)), &pattern(40));
    let few = NonZeroU32::new(9_999).unwrap();
    for other in [
        enc("aes-128-cbc", b"y", ITERATIONS),
        enc("aes-128-cbc", b"x", few),
        enc("aes-256-cbc", b"x", ITERATIONS),
    ] {
        match common::open(&Opener::OpensslEnc(other), &sealed) {
            Ok(plain) => assert_ne!(plain, pattern(40)),
            Err(error) => assert_eq!(error, FormatError::NotAuthentic { segment: 0 }),
        }
    }
}

#[test]
fn no_two_files_share_a_salt() {
    let sealer = Sealer::OpensslEnc(enc("aes-128-cbc", b"x", NonZeroU32::MIN));
    let headers: Vec<Vec<u8>> = (0..100).map(|_| sealer.seal().unwrap().header).collect();
    for (i, header) in headers.iter().enumerate() {
        assert!(!headers[..i].contains(header));
    }
}
