//! Engines behind the route: what they do comes out, what they leave undone is done, what they lose fails loudly.
//!
//! The provider is linked into this program, so that an engine of the test's can be handed in.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use evener_core::job::Memory;
use evener_core::{Algorithm, Direction};
use evener_provider::{BlockError, BlockRequest, Engine, OSSL_provider_init, add_engine};

mod support;

use support::ffi::{CipherCtx, DEFAULT, LibCtx, Provider, clear_errors, errors};
use support::{bytes, in_program, started};

const FROM_4096: &[(&str, &str)] = &[("EVENER_THRESHOLD", "4096"), ("EVENER_GUARD", "off")];

/// The providers. Linked in, ours has hushed this program's panics too: a failure here shows by its exit code alone,
/// and `panic::take_hook` after this brings the words back.
fn providers() -> (Provider, Provider) {
    DEFAULT.add_builtin("evener", OSSL_provider_init);
    (DEFAULT.load("default").unwrap(), DEFAULT.load("evener").unwrap())
}

/// Works on ECB data by two threads, and on other modes by another thread, to show that block work may travel.
struct Elsewhere(AtomicU32);

impl Engine for Elsewhere {
    fn takes(&self, _: Algorithm, _: Direction, len_bytes: usize) -> bool {
        len_bytes >= 4096
    }

    fn run(&self, block_request: &mut BlockRequest<'_>) -> Result<(), BlockError> {
        self.0.fetch_add(1, Relaxed);
        let (fallback, iv) = (block_request.fallback, block_request.iv);
        let memory = &mut block_request.memory;
        thread::scope(|scope| scope.spawn(move || fallback.run(&iv, memory)).join().unwrap())
    }
}

/// Spoils memory and says, or panics, why it did nothing else.
struct Failing {
    spoils: fn(&mut Memory<'_>),
    why: fn() -> BlockError,
}

/// Leaves all undone, having spoiled output that is not input.
static LAZY: Failing = Failing { spoils: spoil_apart, why: || BlockError::Undone };

/// Loses what it gets.
static FATAL: Failing = Failing { spoils: spoil_in_place, why: || BlockError::Lost };

/// Panics over what it gets.
static PANICKING: Failing = Failing { spoils: spoil_in_place, why: || panic!("a bug") };

fn spoil_apart(memory: &mut Memory<'_>) {
    if let Memory::Apart { dst, .. } = memory {
        dst.fill(0xEE);
    }
}

fn spoil_in_place(memory: &mut Memory<'_>) {
    if let Memory::InPlace { space, .. } = memory {
        space.fill(0xEE);
    }
}

impl Engine for Failing {
    fn takes(&self, _: Algorithm, _: Direction, _: usize) -> bool {
        true
    }

    fn run(&self, block_request: &mut BlockRequest<'_>) -> Result<(), BlockError> {
        (self.spoils)(&mut block_request.memory);
        Err((self.why)())
    }
}

/// All that comes out of a message in chunks, in place or apart.
fn crypt(provider: &str, name: &str, encrypts: bool, in_place: bool) -> Vec<u8> {
    let ctx = started(name, provider, encrypts, encrypts);
    let mut out = Vec::new();
    for len in [4096, 80_000, 16, 65_536] {
        let data = bytes(len as u64, len);
        if in_place {
            let mut space = data;
            space.resize(len + 16, 0);
            let (done, written) = ctx.update_within(&mut space, 0, 0, len);
            assert!(done);
            out.extend(&space[..written]);
        } else {
            out.extend(ctx.update(&data).unwrap());
        }
    }
    out.extend(ctx.last().unwrap());
    out
}

fn compare() {
    for name in ["AES-128-CBC", "AES-256-CTR", "AES-192-ECB", "AES-256-XTS"] {
        for (encrypts, in_place) in [(true, false), (true, true), (false, false), (false, true)] {
            let evener = crypt("evener", name, encrypts, in_place);
            assert!(evener == crypt("default", name, encrypts, in_place), "{name} {encrypts} {in_place}");
        }
    }
}

#[test]
fn raw_work_may_be_done_by_another_thread() {
    in_program("raw_work_may_be_done_by_another_thread", "", FROM_4096, || {
        static ENGINE: Elsewhere = Elsewhere(AtomicU32::new(0));
        let (_default, evener) = providers();
        add_engine(&ENGINE);
        compare();
        let count = ENGINE.0.load(Relaxed);
        assert!(count >= 4 * 4 * 3, "{count}");
        assert_eq!(evener.count(c"evener-routed").unwrap(), count);
        assert_eq!(evener.count(c"evener-redone").unwrap(), 0);
    });
}

/// Wants nothing.
struct Idle;

impl Engine for Idle {
    fn takes(&self, _: Algorithm, _: Direction, _: usize) -> bool {
        false
    }

    fn run(&self, _: &mut BlockRequest<'_>) -> Result<(), BlockError> {
        Err(BlockError::Lost)
    }
}

#[test]
fn a_stream_stands_where_one_shot_calls_left_it_that_no_engine_wanted() {
    let variables = &[("EVENER_THRESHOLD", "4096"), ("EVENER_THREADS", "auto")];
    in_program("a_stream_stands_where_one_shot_calls_left_it_that_no_engine_wanted", "", variables, || {
        let (_default, evener) = providers();
        add_engine(&Idle);
        let run = |provider: &str| {
            let ctx = started("AES-128-CTR", provider, true, true);
            let one = |len: usize| {
                let mut data = bytes(len as u64, len);
                assert!(ctx.one_shot(&mut data) > 0);
                data
            };
            // Of the long ones the first of each power of two is split untried.
            [8192, 5000, 4 << 20, 8, 8 << 20, 5001, 7, 8192, 16 << 20].map(one)
        };
        let (ours, right) = (run("evener"), run("default"));
        assert_eq!(ours.iter().zip(&right).position(|(one, other)| one != other), None);
        // Where there is one core alone, none is left for a helper.
        let has_helpers = thread::available_parallelism().unwrap().get() > 1;
        assert_eq!(evener.count(c"evener-split").unwrap() > 0, has_helpers);
    });
}

#[test]
fn what_an_engine_leaves_undone_is_done_and_counted() {
    in_program("what_an_engine_leaves_undone_is_done_and_counted", "", FROM_4096, || {
        let (_default, evener) = providers();
        add_engine(&LAZY);
        compare();
        let redone = evener.count(c"evener-redone").unwrap();
        assert!(redone >= 4 * 4 * 3, "{redone}");
        assert_eq!(evener.count(c"evener-routed").unwrap(), redone);
        assert!(errors().is_empty());
    });
}

#[test]
fn beside_an_active_fips_provider_nothing_is_served() {
    in_program("beside_an_active_fips_provider_nothing_is_served", "", &[], || {
        let context = LibCtx::new();
        // Any provider of that name will do; this one has nothing to serve either.
        context.add_builtin("fips", OSSL_provider_init);
        context.add_builtin("evener", OSSL_provider_init);
        let fips = context.load("fips").unwrap();
        let evener = context.load("evener").unwrap();
        assert!(context.cipher("AES-128-CBC", "provider=evener").is_none());
        assert!(context.digest("SHA256", "provider=evener").is_none());
        evener.unload();
        fips.unload();
        let _default = context.load("default").unwrap();
        let _evener = context.load("evener").unwrap();
        assert!(context.cipher("AES-128-CBC", "provider=evener").is_some());
        assert!(context.cipher("AES-128-CBC", "provider=evener,fips=yes").is_none());
    });
}

fn lose(engine: &'static Failing, reason: &str) {
    let _providers = providers();
    add_engine(engine);
    let cipher = DEFAULT.cipher("AES-128-CBC", "provider=evener").unwrap();
    let ctx = CipherCtx::new();
    let start = || ctx.init(Some(&cipher), Some(&bytes(1, 16)), Some(&bytes(2, 16)), Some(true));
    assert!(start());
    assert!(ctx.update(&bytes(3, 100)).is_some());
    assert!(start());
    clear_errors();
    // Small updates are not the engine's.
    assert!(!ctx.update_within(&mut bytes(3, 5016), 0, 0, 5000).0);
    let queue = errors();
    assert!(queue.iter().any(|error| error.contains(reason)), "{queue:?}");
    // The message is gone: nothing more comes out of it, by no way.
    assert!(ctx.update(b"more").is_none() && ctx.last().is_none());
    assert!(ctx.octets(c"updated-iv", 16).is_none());
    // The context is not.
    assert!(start());
    assert_eq!(ctx.update(&bytes(3, 100)).unwrap().len(), 96);
    assert_eq!(ctx.last().unwrap().len(), 16);
}

#[test]
fn a_message_whose_input_was_lost_fails_until_the_next_init() {
    in_program("a_message_whose_input_was_lost_fails_until_the_next_init", "", FROM_4096, || {
        lose(&FATAL, "work was lost");
    });
}

#[test]
fn a_panic_never_leaves_the_provider() {
    in_program("a_panic_never_leaves_the_provider", "", FROM_4096, || {
        lose(&PANICKING, "internal error caught");
    });
}
