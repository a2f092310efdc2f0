//! A cipher that nothing is configured for is the default provider's own: no function of ours stands between.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(unsafe_code, reason = "room: its support calls libcrypto")]

use evener_kernels::Level;
use evener_ossl_sys::number;

mod support;

use support::ffi::{CipherCtx, DEFAULT};
use support::{bytes, in_program, usual};

/// Called with a provider's context, which must be the inner one's.
const BY_PROVIDER: [i32; 4] = [
    number::CIPHER_NEWCTX,
    number::CIPHER_GETTABLE_PARAMS,
    number::CIPHER_SETTABLE_CTX_PARAMS,
    number::CIPHER_GETTABLE_CTX_PARAMS,
];

/// How many functions of this cipher are not the default provider's, besides those above.
fn own_functions(name: &str) -> usize {
    let [evener, default] = ["evener", "default"].map(|provider| DEFAULT.load(provider).unwrap().ciphers());
    let default = &default[name];
    let differs = |(number, function): (&i32, &usize)| {
        !BY_PROVIDER.contains(number) && default.get(number) != Some(function)
    };
    evener[name].iter().filter(|entry| differs(*entry)).count()
}

#[test]
fn no_function_of_ours_stands_before_a_cipher_that_nothing_is_configured_for() {
    let name = "no_function_of_ours_stands_before_a_cipher_that_nothing_is_configured_for";
    in_program(name, &usual(""), &[], || {
        // Of these it is measured who does them, where there are kernels.
        let has_kernels = Level::best().is_some();
        for (name, functions) in DEFAULT.load("evener").unwrap().ciphers() {
            // From 3.5 on CBC has pipelines of ours, in contexts of ours, where there are lanes.
            if !functions.contains_key(&number::CIPHER_PIPELINE_ENCRYPT_INIT) {
                let mode = name.get("AES-128-".len()..).unwrap_or_default();
                let is_measured = has_kernels && ["GCM", "CTR", "CBC", "XTS"].contains(&mode);
                assert_eq!(own_functions(&name) > 0, is_measured, "{name}");
            }
        }
    });
}

#[test]
fn only_ciphers_that_may_take_another_way_get_functions_of_ours() {
    in_program(
        "only_ciphers_that_may_take_another_way_get_functions_of_ours",
        &usual("threshold = 4096\nkernels = off"),
        &[],
        || {
            for name in ["AES-128-CBC", "AES-192-CTR", "AES-256-XTS", "AES-128-ECB"] {
                assert!(own_functions(name) >= 5, "{name}");
            }
            for name in ["AES-128-GCM", "AES-256-GCM"] {
                assert_eq!(own_functions(name), 0, "{name}");
            }
        },
    );
}

/// With and without a context of ours.
fn same_keys() {
    for name in ["AES-128-CBC", "AES-128-GCM", "AES-256-XTS"] {
        let [evener, default] = ["evener", "default"].map(|provider| {
            let cipher = DEFAULT.cipher(name, &format!("provider={provider}")).unwrap();
            let ctx = CipherCtx::new();
            let (key, iv) = (bytes(1, cipher.key_bytes()), bytes(2, cipher.iv_bytes()));
            assert!(ctx.init(Some(&cipher), Some(&key), Some(&iv), Some(true)));
            ctx.keys()
        });
        assert_eq!(evener, default, "{name}");
        assert!(evener.iter().all(|keys| !keys.is_empty()), "{name}");
    }
}

#[test]
fn a_passed_cipher_says_what_can_be_set_and_asked() {
    in_program("a_passed_cipher_says_what_can_be_set_and_asked", &usual(""), &[], same_keys);
}

#[test]
fn a_wrapped_cipher_says_what_can_be_set_and_asked() {
    let keys = usual("threshold = 4096");
    in_program("a_wrapped_cipher_says_what_can_be_set_and_asked", &keys, &[], same_keys);
}
