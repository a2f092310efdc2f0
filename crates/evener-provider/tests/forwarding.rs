//! Everything that is passed through answers as the default provider does.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(unsafe_code, reason = "room: its support calls libcrypto")]

use std::thread;

mod support;

use evener_testing::programs::in_child;
use support::ffi::{CipherCtx, DEFAULT, LibCtx, errors};
use support::{bytes, in_program, usual};

const MODES: [&str; 5] = ["ECB", "CBC", "CTR", "GCM", "XTS"];

fn all() -> Vec<String> {
    let sizes = ["128", "192", "256"];
    let all = MODES.iter().flat_map(|mode| sizes.iter().map(move |size| format!("AES-{size}-{mode}")));
    all.filter(|name| name != "AES-192-XTS").collect()
}

/// Encrypts `chunks` with the cipher of this name and provider; everything that came out, and the IV afterwards.
fn crypt(
    name: &str,
    provider: &str,
    encrypts: bool,
    chunks: &[&[u8]],
) -> (Vec<Option<Vec<u8>>>, Option<Vec<u8>>) {
    let cipher = DEFAULT.cipher(name, &format!("provider={provider}")).unwrap();
    assert_eq!(cipher.provider(), provider);
    let (key, iv) = (bytes(1, cipher.key_bytes()), bytes(2, cipher.iv_bytes()));
    let ctx = CipherCtx::new();
    assert!(ctx.init(Some(&cipher), Some(&key), Some(&iv), Some(encrypts)), "{name} {:?}", errors());
    let mut out: Vec<_> = chunks.iter().map(|chunk| ctx.update(chunk)).collect();
    out.push(ctx.last());
    (out, ctx.octets(c"updated-iv", cipher.iv_bytes()))
}

#[test]
fn every_cipher_of_ours_equals_the_default_one() {
    in_program("every_cipher_of_ours_equals_the_default_one", &usual(""), &[], || {
        for name in all() {
            let text = bytes(3, 1000);
            for chunks in [vec![&text[..512]], vec![&text[..1], &text[1..40], &text[40..]], vec![&text[..]]] {
                for encrypts in [true, false] {
                    let evener = crypt(&name, "evener", encrypts, &chunks);
                    assert_eq!(evener, crypt(&name, "default", encrypts, &chunks), "{name} {encrypts}");
                }
            }
            let (evener, default) =
                (DEFAULT.cipher(&name, "provider=evener"), DEFAULT.cipher(&name, "provider=default"));
            let (evener, default) = (evener.unwrap(), default.unwrap());
            assert_eq!(evener.block_bytes(), default.block_bytes());
            assert_eq!(evener.flags(), default.flags(), "{name}");
        }
    });
}

#[test]
fn known_answers_come_out_of_the_unmodified_interface() {
    in_program("known_answers_come_out_of_the_unmodified_interface", &usual(""), &[], || {
        // NIST SP 800-38A, F.2.1: the first block of CBC-AES128.Encrypt.
        let key = hex("2b7e151628aed2a6abf7158809cf4f3c");
        let iv = hex("000102030405060708090a0b0c0d0e0f");
        let cipher = DEFAULT.cipher("AES-128-CBC", "").unwrap();
        assert_eq!(cipher.provider(), "evener");
        let ctx = CipherCtx::new();
        assert!(ctx.init(Some(&cipher), Some(&key), Some(&iv), Some(true)));
        let out = ctx.update(&hex("6bc1bee22e409f96e93d7e117393172a")).unwrap();
        assert_eq!(out, hex("7649abac8119b246cee98e9b12e9197d"));
    });
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn aead_tags_are_made_and_checked_as_by_default() {
    in_program("aead_tags_are_made_and_checked_as_by_default", &usual(""), &[], || {
        let text = bytes(4, 300);
        let sealed = |provider: &str| {
            let cipher = DEFAULT.cipher("AES-256-GCM", &format!("provider={provider}")).unwrap();
            let ctx = CipherCtx::new();
            assert!(ctx.init(Some(&cipher), Some(&bytes(1, 32)), Some(&bytes(2, 12)), Some(true)));
            assert!(ctx.aad(b"header"));
            let out = ctx.update(&text).unwrap();
            assert_eq!(ctx.last().unwrap(), b"");
            (out, ctx.octets(c"tag", 16).unwrap())
        };
        let (out, tag) = sealed("evener");
        assert_eq!((&out, &tag), (&sealed("default").0, &sealed("default").1));
        for (spoil, holds) in [(0, true), (1, false)] {
            let cipher = DEFAULT.cipher("AES-256-GCM", "provider=evener").unwrap();
            let ctx = CipherCtx::new();
            assert!(ctx.init(Some(&cipher), Some(&bytes(1, 32)), Some(&bytes(2, 12)), Some(false)));
            let mut tag = tag.clone();
            tag[15] ^= spoil;
            assert!(ctx.set_octets(c"tag", &tag) && ctx.aad(b"header"));
            assert_eq!(ctx.update(&out).unwrap(), text);
            assert_eq!(ctx.last().is_some(), holds);
        }
    });
}

#[test]
fn every_digest_of_ours_equals_the_default_one() {
    in_program("every_digest_of_ours_equals_the_default_one", &usual("combine = auto"), &[], || {
        let text = bytes(5, 5000);
        let names = ["MD5", "SHA1", "SHA224", "SHA256", "SHA384", "SHA512", "SHA512-224", "SHA512-256"];
        for name in names {
            let evener = DEFAULT.digest(name, "provider=evener").unwrap();
            let default = DEFAULT.digest(name, "provider=default").unwrap();
            assert_eq!(evener.of(&[&text[..1], &text[1..77], &text[77..]]), default.of(&[&text]), "{name}");
        }
        assert_eq!(DEFAULT.digest("SHA3-256", "").unwrap().provider(), "default");
        // FIPS 180-4's example: SHA-256 of "abc".
        let sha = DEFAULT.digest("SHA256", "").unwrap();
        assert_eq!(sha.provider(), "evener");
        let digest = sha.of(&[b"a", b"bc"]);
        assert_eq!(digest, hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    });
}

#[test]
fn what_has_no_other_way_comes_from_the_default_provider() {
    in_program("what_has_no_other_way_comes_from_the_default_provider", &usual(""), &[], || {
        let offered: Vec<String> = DEFAULT.load("evener").unwrap().ciphers().into_keys().collect();
        assert!(
            offered.len() == all().len() && all().iter().all(|name| offered.contains(name)),
            "{offered:?}"
        );
        for name in ["AES-128-CFB", "AES-192-OFB", "AES-256-CCM", "AES-128-WRAP", "ChaCha20-Poly1305"] {
            assert!(DEFAULT.cipher(name, "provider=evener").is_none(), "{name}");
            assert_eq!(DEFAULT.cipher(name, "").unwrap().provider(), "default", "{name}");
        }
        // Nothing is counted here, which is all that a digest of ours would do.
        assert_eq!(DEFAULT.digest("SHA256", "").unwrap().provider(), "default");
        let (by, random) = DEFAULT.random("SEED-SRC", "", 32).unwrap();
        assert_eq!(by, "default");
        assert_ne!(random, vec![0; 32]);
    });
}

#[test]
fn a_copy_in_mid_stream_goes_its_own_way() {
    in_program("a_copy_in_mid_stream_goes_its_own_way", &usual(""), &[], || {
        for name in ["AES-128-CBC", "AES-192-CTR", "AES-256-GCM", "AES-256-ECB"] {
            let results = ["evener", "default"].map(|provider| {
                let cipher = DEFAULT.cipher(name, &format!("provider={provider}")).unwrap();
                let ctx = CipherCtx::new();
                let (key, iv) = (bytes(1, cipher.key_bytes()), bytes(2, cipher.iv_bytes()));
                assert!(ctx.init(Some(&cipher), Some(&key), Some(&iv), Some(true)));
                let mut out = ctx.update(&bytes(6, 21)).unwrap();
                let copy = ctx.duplicate();
                let mut other = copy.update(&bytes(7, 100)).unwrap();
                out.extend(ctx.update(&bytes(8, 50)).unwrap());
                drop(ctx);
                other.extend(copy.last().unwrap());
                (out, other)
            });
            assert_eq!(results[0], results[1], "{name}");
        }
    });
}

#[test]
fn contexts_live_on_in_children_and_in_threads() {
    in_program("contexts_live_on_in_children_and_in_threads", &usual(""), &[], || {
        let cipher = DEFAULT.cipher("AES-128-CBC", "provider=evener").unwrap();
        let start = || {
            let ctx = CipherCtx::new();
            assert!(ctx.init(Some(&cipher), Some(&bytes(1, 16)), Some(&bytes(2, 16)), Some(true)));
            ctx.update(&bytes(3, 24)).unwrap();
            ctx
        };
        let rest = |ctx: &CipherCtx| (ctx.update(&bytes(4, 24)).unwrap(), ctx.last().unwrap());
        let expected = rest(&start());
        let before = start();
        for _ in 0..3 {
            assert!(in_child(|| rest(&before) == expected && rest(&start()) == expected));
        }
        assert_eq!(rest(&before), expected);
        thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| (0..300).for_each(|_| assert_eq!(rest(&start()), expected)));
            }
        });
    });
}

#[test]
fn two_library_contexts_do_not_meet() {
    in_program("two_library_contexts_do_not_meet", "", &[], || {
        let make = || {
            let context = LibCtx::new();
            context.search(&support::folder());
            let (default, evener) = (context.load("default").unwrap(), context.load("evener").unwrap());
            (context, default, evener)
        };
        let (one, two) = (make(), make());
        let crypt = |context: &LibCtx| {
            let cipher = context.cipher("AES-128-CTR", "provider=evener").unwrap();
            let ctx = CipherCtx::new();
            assert!(ctx.init(Some(&cipher), Some(&bytes(1, 16)), Some(&bytes(2, 16)), Some(true)));
            (ctx.update(&bytes(3, 100)).unwrap(), ctx)
        };
        let (expected, open) = crypt(&one.0);
        assert_eq!(crypt(&two.0).0, expected);
        let (context, default, evener) = one;
        evener.unload();
        default.unload();
        drop(context);
        // A context in use keeps its provider, and the other library context its own.
        assert_eq!(open.update(&bytes(4, 10)).unwrap().len(), 10);
        drop(open);
        assert_eq!(crypt(&two.0).0, expected);
    });
}
