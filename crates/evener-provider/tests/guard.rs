//! The regret guard over what goes to a module: judged by what it took in this process.
//!
//! The provider is linked into this program, so that an engine of the test's can be handed in.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::id;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use evener::statistics::{Places, of_process};
use evener_core::guard::CONTROL_JOBS_FIRST;
use evener_core::statistics::{Count, Kind, Row};
use evener_core::{Algorithm, Direction};
use evener_provider::{Engine, OSSL_provider_init, Raw, RawError, add_engine};

mod support;

use support::ffi::{CipherCtx, DEFAULT};
use support::{bytes, in_program};

const LEN: usize = 16_384;

/// Does what is asked, and takes far too long for it.
struct Slow(AtomicU32);

static SLOW: Slow = Slow(AtomicU32::new(0));

impl Engine for Slow {
    fn takes(&self, _: Algorithm, _: Direction, len_bytes: usize) -> bool {
        len_bytes >= LEN
    }

    fn run(&self, raw: &mut Raw<'_>) -> Result<(), RawError> {
        self.0.fetch_add(1, Relaxed);
        thread::sleep(Duration::from_millis(20));
        let iv = raw.iv;
        raw.plain.run(&iv, &mut raw.memory)
    }
}

#[test]
fn a_module_that_is_too_slow_is_locked_out_and_told_of() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("stats").display().to_string();
    let variables = [("EVENER_THRESHOLD", "4096"), ("EVENER_STATISTICS_DIR", &directory)];
    in_program("a_module_that_is_too_slow_is_locked_out_and_told_of", "", &variables, || {
        DEFAULT.add_builtin("evener", OSSL_provider_init);
        let (_default, _evener) = (DEFAULT.load("default").unwrap(), DEFAULT.load("evener").unwrap());
        drop(std::panic::take_hook());
        add_engine(&SLOW);
        let encrypt = |count: u64| (0..count).for_each(same);
        // And one of each 64, of which the first is one.
        encrypt(CONTROL_JOBS_FIRST + 1);
        assert_eq!(SLOW.0.load(Relaxed), 0, "what a message costs here is measured first");
        encrypt(1);
        assert_eq!(SLOW.0.load(Relaxed), 1);
        // One such message loses more than a class may; after each lock, the first of which lasts a second, one more tries.
        encrypt(200);
        let tried = SLOW.0.load(Relaxed);
        assert!(tried < 20, "{tried}");
        let row = Row::of(Kind::named("AES-256-CTR"), Direction::Encrypt, LEN);
        let directory = std::env::var("EVENER_STATISTICS_DIR").unwrap();
        let counted = of_process(&Places::only(directory.into()), u32::MAX, id()).unwrap().unwrap().row(row);
        assert_eq!((counted.of(Count::Locked), counted.of(Count::Routed)), (tried.into(), tried.into()));
    });
}

/// A message by both providers.
fn same(run: u64) {
    let out = ["evener", "default"].map(|who| {
        let cipher = DEFAULT.cipher("AES-256-CTR", &format!("provider={who}")).unwrap();
        let ctx = CipherCtx::new();
        assert!(ctx.init(Some(&cipher), Some(&bytes(run, 32)), Some(&bytes(run, 16)), Some(true)));
        ctx.update(&bytes(run, LEN)).unwrap()
    });
    assert!(out[0] == out[1], "{run}");
}
