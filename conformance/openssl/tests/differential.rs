//! Random calls through both providers.

use std::ffi::CStr;
use std::time::Duration;

use evener_conformance_openssl::differential::{Libraries, Limit, Series, run};
use evener_conformance_openssl::ffi::{Cipher, Library};
use evener_conformance_openssl::{Setup, print_line};

fn library(setup: &Setup) -> &'static Library {
    Library::load(&setup.path()).expect("libcrypto takes the configuration")
}

/// What differs here would differ everywhere: a call with a result by lot, or one that reads memory that was never written.
#[test]
fn the_judge_agrees_with_itself() {
    let libraries = Libraries { plain: library(&Setup::plain()), evener: library(&Setup::plain()) };
    let limit = Limit { calls: 40_000, time: Duration::from_secs(20) };
    let (sequences, calls) =
        run(Series { libraries, seed: 1, fork_one_in: Series::FORK_ONE_IN, destroys_input: true }, 2, limit);
    print_line(&format!("{sequences} sequences, {calls} calls"));
}

const ROUTED: &CStr = c"evener-routed";

/// Runs sequences on two threads until the time is over; returns what the provider counted meanwhile under `name`.
fn sequences(evener: &Setup, seconds: u64, name: &CStr) -> u32 {
    sequences_with(evener, seconds, name, (2, Series::FORK_ONE_IN))
}

fn sequences_with(evener: &Setup, seconds: u64, name: &CStr, (threads, fork_one_in): (usize, u64)) -> u32 {
    let draw = |libraries, seed| Series { libraries, seed, fork_one_in, destroys_input: true };
    counted_sequences(evener, seconds, name, (threads, &draw))
}

fn counted_sequences(
    evener: &Setup,
    seconds: u64,
    name: &CStr,
    (threads, draw): (usize, &dyn Fn(Libraries, u64) -> Series),
) -> u32 {
    let libraries = Libraries { plain: library(&Setup::plain()), evener: library(evener) };
    let cipher = Cipher::fetch(libraries.evener, "AES-128-CBC").expect("it has one");
    assert_eq!(cipher.provider(), "evener");
    let seed = u64::from(std::process::id());
    // A run of all tests for a commit draws by a fixed seed, and has a third of the time.
    let is_short = std::env::var_os("PROPTEST_RNG_SEED").is_some();
    let time = Duration::from_secs(seconds) / if is_short { 3 } else { 1 };
    let limit = Limit { calls: u64::MAX, time };
    let (sequences, calls) = run(draw(libraries, seed), threads, limit);
    let counted = cipher.counted(name);
    print_line(&format!("seed {seed}: {sequences} sequences, {calls} calls, {name:?}: {counted}"));
    counted
}

#[test]
fn nothing_that_c_sees_differs_where_calls_are_forwarded() {
    assert_eq!(sequences(&Setup::evener(""), 10, ROUTED), 0);
}

#[test]
fn nothing_that_c_sees_differs_where_a_module_does_the_work() {
    assert!(sequences(&Setup::routed(), 40, ROUTED) > 1_000);
}

/// Messages that the provider cuts into blocks itself and works on by OpenSSL's own functions.
#[test]
fn nothing_that_c_sees_differs_where_messages_are_owned() {
    assert!(sequences(&Setup::evener("threshold = 1"), 15, ROUTED) > 500);
}

/// AES-GCM that no inner context ever sees.
#[test]
fn nothing_that_c_sees_differs_where_a_kernel_computes() {
    let draw =
        |libraries, seed| Series { libraries, seed, fork_one_in: Series::FORK_ONE_IN, destroys_input: false };
    for kernels in ["kernels = 128", "kernels = 256", "kernels = on"] {
        assert!(counted_sequences(&Setup::evener(kernels), 8, c"evener-native", (2, &draw)) > 500);
    }
}

/// Kernels beneath each of the other ways.
#[test]
fn nothing_that_c_sees_differs_where_kernels_do_what_other_ways_leave() {
    let draw =
        |libraries, seed| Series { libraries, seed, fork_one_in: Series::FORK_ONE_IN, destroys_input: false };
    let split = "threads = 3\nsplit = 1024\nguard = off\ncombine = auto";
    for (ways, counted) in
        [(split, c"evener-split"), ("threshold = 1", ROUTED), ("combine = auto", c"evener-native")]
    {
        let setup = Setup::evener(&format!("{ways}\nkernels = on"));
        assert!(counted_sequences(&setup, 10, counted, (2, &draw)) > 100, "{ways}");
    }
}

/// By threads of the provider's own, which a fork leaves behind.
#[test]
fn nothing_that_c_sees_differs_where_buffers_are_split() {
    assert!(sequences(&Setup::evener("threads = 3\nsplit = 1024\nguard = off"), 20, c"evener-split") > 100);
}

/// Threads that split, and helpers in mid-part, while every second sequence forks.
#[test]
fn children_go_on_whatever_the_threads_of_their_parents_were_about() {
    let setup = Setup::evener("threads = 3\nsplit = 1024\nguard = off\ncombine = auto");
    assert!(sequences_with(&setup, 20, c"evener-split", (6, 2)) > 100);
}
