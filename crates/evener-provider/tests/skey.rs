//! Key objects of OpenSSL 3.5 and later: a cipher of ours takes those that our key management made, and works as with
//! the bytes of the key. Through the libcrypto that this test is linked to; before 3.5 there are none.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it skips")]
#![allow(unsafe_code, reason = "room: its support calls libcrypto")]

mod support;

use support::ffi::skey::Key;
use support::ffi::{Cipher, CipherCtx, DEFAULT, clear_errors};
use support::{bytes, in_program, usual};

const NAMES: [&str; 5] = ["AES-128-ECB", "AES-128-CBC", "AES-192-CTR", "AES-256-CBC", "AES-256-CTR"];
const ROUTED: &[(&str, &str)] = &[("EVENER_THRESHOLD", "16")];

/// Whether there are key objects here; says so where not.
fn are_here() -> bool {
    let here = Key::are_known();
    if !here {
        println!("skipped: this libcrypto has no key objects (they came with 3.5)");
    }
    here
}

/// All that comes out for a text in three pieces.
fn text_of(ctx: &CipherCtx) -> Vec<Option<Vec<u8>>> {
    let text = bytes(3, 5_000);
    let mut out: Vec<_> =
        [&text[..40], &text[40..4_000], &text[4_000..]].map(|piece| ctx.update(piece)).into();
    out.push(ctx.last());
    out
}

fn by_bytes(cipher: &Cipher, encrypts: bool) -> Vec<Option<Vec<u8>>> {
    let ctx = CipherCtx::new();
    let (key, iv) = (bytes(1, cipher.key_bytes()), bytes(2, cipher.iv_bytes()));
    assert!(ctx.init(Some(cipher), Some(&key), Some(&iv), Some(encrypts)));
    let out = text_of(&ctx);
    clear_errors();
    out
}

fn by_object(cipher: &Cipher, key: &Key, encrypts: bool) -> Vec<Option<Vec<u8>>> {
    let ctx = CipherCtx::new();
    assert!(key.init(&ctx, cipher, &bytes(2, cipher.iv_bytes()), encrypts), "{:?}", support::ffi::errors());
    let out = text_of(&ctx);
    clear_errors();
    out
}

fn all_equal_the_bytes() {
    if !are_here() {
        return;
    }
    for name in NAMES {
        let evener = DEFAULT.cipher(name, "provider=evener").unwrap();
        let default = DEFAULT.cipher(name, "provider=default").unwrap();
        let key = Key::import("AES", &bytes(1, evener.key_bytes()), "provider=evener").unwrap();
        assert_eq!(key.provider(), "evener");
        assert_eq!(key.bytes().unwrap(), bytes(1, evener.key_bytes()));
        for encrypts in [true, false] {
            assert_eq!(by_object(&evener, &key, encrypts), by_bytes(&default, encrypts), "{name} {encrypts}");
        }
    }
}

#[test]
fn a_key_object_works_as_its_bytes_do() {
    in_program("a_key_object_works_as_its_bytes_do", &usual(""), &[], all_equal_the_bytes);
}

#[test]
fn a_key_object_works_as_its_bytes_do_where_messages_are_routed() {
    let name = "a_key_object_works_as_its_bytes_do_where_messages_are_routed";
    in_program(name, &usual(""), ROUTED, all_equal_the_bytes);
}

#[test]
fn a_made_key_opens_what_it_sealed() {
    in_program("a_made_key_opens_what_it_sealed", &usual(""), &[], || {
        if !are_here() {
            return;
        }
        let evener = Key::generate("AES", 32, "provider=evener");
        assert_eq!(evener.is_some(), Key::generate("AES", 32, "provider=default").is_some());
        clear_errors();
        let Some(key) = evener else { return println!("skipped: the default provider makes no keys here") };
        assert_eq!((key.provider().as_str(), key.bytes().unwrap().len()), ("evener", 32));
        let cipher = DEFAULT.cipher("AES-256-CBC", "provider=evener").unwrap();
        let (sealing, opening) = (CipherCtx::new(), CipherCtx::new());
        assert!(
            key.init(&sealing, &cipher, &bytes(2, 16), true)
                && key.init(&opening, &cipher, &bytes(2, 16), false)
        );
        let mut sealed = sealing.update(&bytes(3, 1_000)).unwrap();
        sealed.extend(sealing.last().unwrap());
        let mut opened = opening.update(&sealed).unwrap();
        opened.extend(opening.last().unwrap());
        assert_eq!(opened, bytes(3, 1_000));
    });
}

/// The default provider's object is exported and imported on the way: OpenSSL's own doing.
#[test]
fn an_object_of_the_default_provider_is_carried_over() {
    in_program("an_object_of_the_default_provider_is_carried_over", &usual(""), &[], || {
        if !are_here() {
            return;
        }
        let cipher = DEFAULT.cipher("AES-128-CBC", "provider=evener").unwrap();
        let theirs = Key::import("AES", &bytes(1, 16), "provider=default").unwrap();
        let evener = theirs.to_provider("evener").unwrap();
        assert_eq!(evener.provider(), "evener");
        let default = DEFAULT.cipher("AES-128-CBC", "provider=default").unwrap();
        assert_eq!(by_object(&cipher, &evener, true), by_bytes(&default, true));
    });
}

/// Where a context had bytes and a threshold before, an object ends what was captured.
#[test]
fn an_object_after_bytes_and_bytes_after_an_object_are_taken() {
    in_program("an_object_after_bytes_and_bytes_after_an_object_are_taken", &usual(""), ROUTED, || {
        if !are_here() {
            return;
        }
        let evener = DEFAULT.cipher("AES-128-CBC", "provider=evener").unwrap();
        let default = DEFAULT.cipher("AES-128-CBC", "provider=default").unwrap();
        let key = Key::import("AES", &bytes(1, 16), "provider=evener").unwrap();
        let ctx = CipherCtx::new();
        assert!(ctx.init(Some(&evener), Some(&bytes(9, 16)), Some(&bytes(8, 16)), Some(true)));
        assert!(ctx.update(&bytes(7, 100)).is_some());
        assert!(key.init(&ctx, &evener, &bytes(2, 16), true));
        assert_eq!(text_of(&ctx), by_bytes(&default, true));
        assert!(ctx.init(None, Some(&bytes(9, 16)), Some(&bytes(2, 16)), Some(true)));
        let judge = CipherCtx::new();
        assert!(judge.init(Some(&default), Some(&bytes(9, 16)), Some(&bytes(2, 16)), Some(true)));
        assert_eq!(text_of(&ctx), text_of(&judge));
    });
}
