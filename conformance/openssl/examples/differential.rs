//! The random calls of `tests/differential.rs`, for as long as one likes.
//!
//! usage: `differ SEED CALLS [STORY]`: runs sequences of SEED until CALLS calls were made on two threads, by the build that
//! routes to an emulated module; or runs the one sequence that is named. `PROVIDER_TEST_KEYS` holds lines of the section
//! of the installed build, which is then used instead; `PROVIDER_TEST_THREADS` says on how many threads sequences run,
//! `PROVIDER_TEST_FORKS` in how many sequences one forks.

use std::env;
use std::time::Duration;

use evener_conformance_openssl::differential::{Libraries, Limit, Series, run, run_sequence};
use evener_conformance_openssl::ffi::{Cipher, Library};
use evener_conformance_openssl::{Setup, print_line};

const HOURS_MAX: u64 = 4;

fn main() {
    let words: Vec<u64> = env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let (seed, calls, sequence) = match words[..] {
        [seed, calls] => (seed, calls, None),
        [seed, calls, sequence] => (seed, calls, Some(sequence)),
        _ => return print_line("usage: differ SEED CALLS [STORY]"),
    };
    let setup = env::var("PROVIDER_TEST_KEYS").map_or_else(|_| Setup::routed(), |keys| Setup::evener(&keys));
    let load = |setup: &Setup| Library::load(&setup.path()).expect("libcrypto takes the configuration");
    let libraries = Libraries { plain: load(&Setup::plain()), evener: load(&setup) };
    let cipher = Cipher::fetch(libraries.evener, "AES-128-CBC").expect("it has one");
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let fork_one_in = number("PROVIDER_TEST_FORKS").unwrap_or(Series::FORK_ONE_IN).max(1);
    let threads = usize::try_from(number("PROVIDER_TEST_THREADS").unwrap_or(2)).expect("a few threads");
    let series = Series { libraries, seed, fork_one_in, destroys_input: true };
    let (sequences, calls) = match sequence {
        Some(sequence) => (1, run_sequence(series, sequence)),
        None => run(series, threads, Limit { calls, time: Duration::from_secs(HOURS_MAX * 3_600) }),
    };
    let routed = cipher.counted(c"evener-routed");
    print_line(&format!(
        "{}, seed {seed}: {sequences} sequences, {calls} calls, {routed} requests routed",
        cipher.provider()
    ));
}
