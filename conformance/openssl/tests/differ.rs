//! Random calls through both providers.

use std::time::Duration;

use evener_conformance_openssl::differ::{Limit, Pair, run};
use evener_conformance_openssl::ffi::{Cipher, Library};
use evener_conformance_openssl::{Setup, say};

fn library(setup: &Setup) -> &'static Library {
    Library::load(&setup.path()).expect("libcrypto takes the configuration")
}

/// What differs here would differ everywhere: a call with a result by lot, or one that reads what nobody wrote.
#[test]
fn the_judge_agrees_with_itself() {
    let pair = Pair { plain: library(&Setup::plain()), evener: library(&Setup::plain()) };
    let limit = Limit { calls: 40_000, time: Duration::from_secs(20) };
    let (stories, calls) = run(pair, 1, 2, limit);
    say(&format!("{stories} stories, {calls} calls"));
}

/// Tells stories until the time is over; `keys` are lines of Evener's section.
fn stories(keys: &str, seconds: u64) {
    let evener = Setup::evener(keys);
    let pair = Pair { plain: library(&Setup::plain()), evener: library(&evener) };
    let served = Cipher::fetch(pair.evener, "AES-128-CBC").expect("it has one").provider();
    assert_eq!(served, "evener");
    let seed = u64::from(std::process::id());
    let limit = Limit { calls: u64::MAX, time: Duration::from_secs(seconds) };
    let (stories, calls) = run(pair, seed, 2, limit);
    say(&format!("seed {seed}: {stories} stories, {calls} calls"));
}

#[test]
fn nothing_that_c_sees_differs_where_calls_are_forwarded() {
    stories("", 20);
}

#[test]
fn nothing_that_c_sees_differs_where_the_provider_owns_messages() {
    stories("threshold = 16", 40);
}
