//! The regret guard over what leaves the direct path: judged by what it took in this process.
//!
//! The provider is linked into this program, so that an engine and lanes of the test's can be handed in.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that says what it skips")]

use std::process::id;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use evener::counts_file::{Directories, of_process};
use evener_core::counts::{Count, Kind, Row};
use evener_core::guard::TUNING;
use evener_core::{Algorithm, Direction, InlineDriver, Job};
use evener_driver_lanes::Lanes;
use evener_provider::{
    BlockError, BlockRequest, Engine, OSSL_provider_init, add_engine, offer_pipelines_anyway,
};

mod support;

use evener_testing::drivers::Around;
use support::ffi::job::{Fibre, Step};
use support::ffi::pipe::{Library, PipelineContext};
use support::ffi::{CipherCtx, DEFAULT};
use support::lanes::{ours_and_judge, with_lanes_of};
use support::told::has_told;
use support::{both_providers, bytes, in_program};

const LEN: usize = 16_384;

/// Does the work, and takes far too long for it.
struct Slow(AtomicU32);

static SLOW: Slow = Slow(AtomicU32::new(0));

impl Engine for Slow {
    fn takes(&self, _: Algorithm, _: Direction, len_bytes: usize) -> bool {
        len_bytes >= LEN
    }

    fn run(&self, block_request: &mut BlockRequest<'_>) -> Result<(), BlockError> {
        self.0.fetch_add(1, Relaxed);
        thread::sleep(Duration::from_millis(20));
        let iv = block_request.iv;
        block_request.fallback.run(&iv, &mut block_request.memory)
    }
}

#[test]
fn a_module_that_is_too_slow_is_locked_out_and_told_of() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("stats").display().to_string();
    let variables = [("EVENER_THRESHOLD", "4096"), ("EVENER_STATISTICS_DIR", &directory)];
    in_program("a_module_that_is_too_slow_is_locked_out_and_told_of", "", &variables, || {
        let _both = both_providers(OSSL_provider_init);
        add_engine(&SLOW);
        let encrypt = |count: u64| (0..count).for_each(same);
        // And one of each 64, of which the first is one.
        encrypt(TUNING.control_jobs_first + 1);
        assert_eq!(SLOW.0.load(Relaxed), 0, "what a message costs here is measured first");
        // Nothing is tried before so much was worked that a try is a small part of it.
        for _ in 0..40_000 {
            // One by one: where the machine stands still, a hundred would see the lock end.
            encrypt(1);
            if SLOW.0.load(Relaxed) > 0 {
                break;
            }
        }
        assert_eq!(SLOW.0.load(Relaxed), 1);
        // The very first, which makes what a module needs once, is not held against it. Each other one loses more than a class
        // may; after each lock, the first of which lasts an eighth of a second, one more tries.
        encrypt(200);
        let tried = SLOW.0.load(Relaxed);
        assert!(tried < 20, "{tried}");
        let locked = [Count::Locked, Count::Routed].map(|what| counted("AES-256-CTR", LEN, what));
        assert_eq!(locked, [u64::from(tried) - 1, tried.into()]);
    });
}

/// What this process shows of encryptions with messages of so many bytes.
fn counted(cipher: &str, bytes: usize, what: Count) -> u64 {
    let row = Row::of(Kind::named(cipher), Direction::Encrypt, bytes);
    let directory = std::env::var("EVENER_STATISTICS_DIR").unwrap();
    of_process(&Directories::only(directory.into()), u32::MAX, id()).unwrap().unwrap().row(row).of(what)
}

/// Bursts of the slow lanes.
static BURSTS: AtomicU32 = AtomicU32::new(0);

/// Lanes that do the work, and take far too long for it: twenty times as long as lanes do, for a slow core takes longer on the direct path,
/// too, and 20 ms at least.
fn slow_lanes() -> Option<Box<dyn InlineDriver>> {
    let run = |lanes: &mut Lanes, burst: &mut [Box<Job<'_>>]| {
        BURSTS.fetch_add(1, Relaxed);
        let began = Instant::now();
        lanes.run(burst);
        thread::sleep((20 * began.elapsed()).max(Duration::from_millis(20)));
    };
    Some(Box::new(Around::new(Lanes::new()?, run)))
}

/// Runs `body` where lanes can be had, with the slow ones in their place.
fn with_slow_lanes(name: &str, body: impl FnOnce()) {
    with_lanes_of(slow_lanes, name, &[], body);
}

#[test]
fn lanes_that_are_too_slow_are_locked_out_of_jobs() {
    with_slow_lanes("lanes_that_are_too_slow_are_locked_out_of_jobs", || {
        DEFAULT.add_builtin("evener", OSSL_provider_init);
        let (_default, evener) = (DEFAULT.load("default").unwrap(), DEFAULT.load("evener").unwrap());
        drop(std::panic::take_hook());
        in_sixteen_jobs(50);
        let tried = BURSTS.load(Relaxed);
        // The first is taken for one that lost its core; each other one loses more than a class may, and the first lock lasts a second.
        assert!((2..10).contains(&tried), "{tried}");
        assert_eq!(counted("AES-128-CBC", LEN, Count::Locked), u64::from(tried) - 1);
        assert!(evener.count(c"evener-paused").unwrap() <= 16 * tried);
    });
}

/// Encrypts so many times sixteen messages in as many jobs at a time.
fn in_sixteen_jobs(times: u64) {
    for burst in 0..times {
        let job = |number| {
            let message = Message::new(burst * 16 + number);
            Fibre::new(move || message.encrypt())
        };
        let mut jobs: Vec<_> = (0..16).map(job).collect();
        while !jobs.is_empty() {
            jobs.retain_mut(|job| job.step() == Step::Paused);
        }
    }
}

/// Does nothing for any caller.
struct Elsewhere;

impl Engine for Elsewhere {
    fn takes(&self, _: Algorithm, _: Direction, _: usize) -> bool {
        false
    }

    fn run(&self, _: &mut BlockRequest<'_>) -> Result<(), BlockError> {
        Err(BlockError::Undone)
    }
}

#[test]
fn jobs_go_together_beside_a_module_that_takes_none_of_them() {
    let name = "jobs_go_together_beside_a_module_that_takes_none_of_them";
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("stats").display().to_string();
    let variables =
        [("EVENER_THRESHOLD", "4096"), ("EVENER_COMBINE", "auto"), ("EVENER_STATISTICS_DIR", &directory)];
    in_program(name, "", &variables, || {
        let (_default, evener) = both_providers(OSSL_provider_init);
        if evener.says(c"buildinfo").unwrap().contains("combine = auto:") {
            println!("skipped: no lanes here");
            return;
        }
        add_engine(&Elsewhere);
        in_sixteen_jobs(TUNING.control_jobs_first);
        let combined = evener.count(c"evener-combined").unwrap();
        assert!(combined > 16, "{combined}");
    });
}

#[test]
fn calls_that_no_module_takes_are_told_with_their_ends_to_who_decides_whether_threads_combine() {
    let name = "calls_that_no_module_takes_are_told_with_their_ends_to_who_decides_whether_threads_combine";
    let variables = [("EVENER_THRESHOLD", "4096"), ("EVENER_COMBINE", "auto")];
    in_program(name, "", &variables, || {
        let (_default, evener) = both_providers(OSSL_provider_init);
        if evener.says(c"buildinfo").unwrap().contains("combine = auto:") {
            println!("skipped: no lanes here");
            return;
        }
        add_engine(&Elsewhere);
        assert!(has_told(&evener, 16_384));
    });
}

/// A message, ready to be encrypted in a job, whose stack is small.
struct Message {
    context: CipherCtx,
    text: Vec<u8>,
    expected: Vec<u8>,
}

impl Message {
    fn new(seed: u64) -> Self {
        let ([context, judge], text) = (ours_and_judge(seed), bytes(seed, LEN));
        let expected = judge.update(&text).unwrap();
        Self { context, text, expected }
    }

    fn encrypt(&self) {
        assert!(self.context.update(&self.text).unwrap() == self.expected);
    }
}

#[test]
fn lanes_that_are_too_slow_are_locked_out_of_pipelines() {
    with_slow_lanes("lanes_that_are_too_slow_are_locked_out_of_pipelines", || {
        offer_pipelines_anyway();
        let (library, _judge) = Library::system(OSSL_provider_init);
        let kind = library.kind("AES-128-CBC").unwrap();
        let by_default = DEFAULT.cipher("AES-128-CBC", "provider=default").unwrap();
        let (key, iv) = (bytes(1, 16), bytes(2, 16));
        let call = |seed: u64| {
            let mut pipes = PipelineContext::new(&kind);
            assert!(pipes.init(true, true, Some(&key), &[Some(&iv[..]); 4]));
            let mut spaces: Vec<Vec<u8>> = (0..4).map(|pipe| bytes(seed * 4 + pipe, LEN)).collect();
            let texts = spaces.clone();
            assert_eq!(pipes.update(&mut spaces, None, &[LEN; 4]), Some(vec![LEN; 4]));
            for (space, text) in spaces.iter().zip(&texts) {
                let judge = CipherCtx::new();
                assert!(judge.init(Some(&by_default), Some(&key), Some(&iv), Some(true)));
                assert!(judge.update(text).unwrap() == *space, "{seed}");
            }
        };
        let began = Instant::now();
        for measured in 0..=TUNING.control_jobs_first {
            call(measured);
            // Of long ones two are enough.
            let is_long = measured >= 2 && began.elapsed() >= TUNING.control_time_first.into();
            assert!(is_long || BURSTS.load(Relaxed) == 0, "what such a call costs in turn is measured first");
        }
        (0..200).for_each(call);
        let tried = BURSTS.load(Relaxed);
        assert!((2..20).contains(&tried), "{tried}");
        assert_eq!(
            counted("AES-128-CBC", 4 * LEN, Count::Locked),
            u64::from(tried) - 1,
            "the first is excused"
        );
    });
}

/// A message by both providers.
fn same(run: u64) {
    let out = ["evener", "default"].map(|provider| {
        let cipher = DEFAULT.cipher("AES-256-CTR", &format!("provider={provider}")).unwrap();
        let ctx = CipherCtx::new();
        assert!(ctx.init(Some(&cipher), Some(&bytes(run, 32)), Some(&bytes(run, 16)), Some(true)));
        ctx.update(&bytes(run, LEN)).unwrap()
    });
    assert!(out[0] == out[1], "{run}");
}
