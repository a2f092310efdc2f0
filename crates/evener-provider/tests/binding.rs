//! To which default provider evener.so is bound, in every order, and what a bad configuration does.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(unsafe_code, reason = "room: its support calls libcrypto")]

mod support;

use support::ffi::{CipherCtx, DEFAULT, LibCtx, clear_errors, errors};
use support::{bytes, configuration, folder, in_program, usual};

/// The provider that serves AES-128-CBC to a program without properties, checked against `plain`.
fn served_by(context: &LibCtx, properties: &str) -> String {
    let cipher = context.cipher("AES-128-CBC", properties).unwrap();
    let ctx = CipherCtx::new();
    assert!(ctx.init(Some(&cipher), Some(&bytes(1, 16)), Some(&bytes(2, 16)), Some(true)));
    let mut out = ctx.update(&bytes(3, 50)).unwrap();
    out.extend(ctx.last().unwrap());
    assert_eq!(out.len(), 64);
    cipher.provider()
}

/// Whose default provider ours is bound to.
fn binding(context: &LibCtx) -> String {
    let evener = context.load("evener").unwrap();
    let binding = evener.says(c"evener-binding").unwrap();
    evener.unload();
    binding
}

const PROGRAMS: &str = "the program's default provider";

#[test]
fn the_usual_configuration_serves_what_is_ours_and_leaves_the_rest() {
    in_program("the_usual_configuration_serves_what_is_ours_and_leaves_the_rest", &usual(""), &[], || {
        assert_eq!(binding(&DEFAULT), PROGRAMS);
        assert_eq!(served_by(&DEFAULT, ""), "evener");
        assert_eq!(served_by(&DEFAULT, "fips=no"), "evener");
        assert_eq!(served_by(&DEFAULT, "provider=default"), "default");
        assert_eq!(DEFAULT.cipher("ARIA-128-CBC", "").unwrap().provider(), "default");
        assert!(DEFAULT.cipher("AES-128-CBC", "fips=yes").is_none());
        assert!(errors().iter().all(|error| !error.contains("evener")));
    });
}

#[test]
fn evener_before_default_is_served_by_the_default_that_comes_later() {
    let wrong = configuration(&["evener", "default"], "");
    in_program("evener_before_default_is_served_by_the_default_that_comes_later", &wrong, &[], || {
        assert_eq!(served_by(&DEFAULT, ""), "evener");
        assert_eq!(binding(&DEFAULT), PROGRAMS);
        assert_eq!(served_by(&DEFAULT, "provider=default"), "default");
    });
}

#[test]
fn evener_alone_serves_by_a_default_provider_of_its_own() {
    let alone = configuration(&["evener"], "");
    in_program("evener_alone_serves_by_a_default_provider_of_its_own", &alone, &[], || {
        assert_eq!(served_by(&DEFAULT, ""), "evener");
        assert_eq!(binding(&DEFAULT), "a default provider of its own");
        assert_eq!(DEFAULT.digest("SHA256", "").unwrap().of(&[b"abc"])[..2], [0xba, 0x78]);
        let (by, random) = DEFAULT.random("SEED-SRC", "", 32).unwrap();
        assert!(by == "evener" && random != vec![0; 32]);
        assert!(DEFAULT.cipher("ARIA-128-CBC", "").is_none());
    });
}

#[test]
fn default_may_go_before_evener_does() {
    in_program("default_may_go_before_evener_does", "", &[], || {
        let context = LibCtx::new();
        context.search(&folder());
        let default = context.load("default").unwrap();
        let evener = context.load("evener").unwrap();
        assert_eq!(evener.says(c"evener-binding").unwrap(), PROGRAMS);
        default.unload();
        assert_eq!(served_by(&context, "provider=evener"), "evener");
        evener.unload();
        let evener = context.load("evener").unwrap();
        assert_eq!(served_by(&context, "provider=evener"), "evener");
        evener.unload();
    });
}

#[test]
fn a_misspelt_key_is_on_the_queue_and_all_is_served() {
    // Not activated by the configuration, which would take its errors off the queue again.
    let text = configuration(&["default", "evener"], "treshold = 4096").replacen(
        "activate = 1\ntreshold",
        "treshold",
        1,
    );
    let text =
        text.replace("activate = 1\n\n", "\n").replace("module = MODULE\nactivate = 1", "module = MODULE");
    in_program("a_misspelt_key_is_on_the_queue_and_all_is_served", &text, &[], || {
        assert!(DEFAULT.cipher("AES-128-CBC", "provider=evener").is_none());
        clear_errors();
        let evener = DEFAULT.load("evener").unwrap();
        let errors = errors();
        assert!(
            errors.iter().any(|error| error.contains("unknown key") && error.contains("treshold")),
            "{errors:?}"
        );
        assert!(evener.says(c"buildinfo").unwrap().contains("treshold"));
        assert_eq!(evener.says(c"name").unwrap(), "Evener");
        assert_eq!(served_by(&DEFAULT, "provider=evener"), "evener");
    });
}

#[test]
fn a_bad_value_in_the_environment_is_on_the_queue_and_all_is_served() {
    let variables = [("EVENER_THRESHOLD", "lots")];
    in_program("a_bad_value_in_the_environment_is_on_the_queue_and_all_is_served", "", &variables, || {
        DEFAULT.search(&folder());
        let _default = DEFAULT.load("default").unwrap();
        clear_errors();
        let _evener = DEFAULT.load("evener").unwrap();
        let errors = errors();
        assert!(errors.iter().any(|error| error.contains("EVENER_THRESHOLD = lots")), "{errors:?}");
        assert_eq!(served_by(&DEFAULT, "provider=evener"), "evener");
    });
}
