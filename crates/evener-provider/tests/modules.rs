//! A module of another process behind the provider: what it does comes out as by default, from calls that wait, from jobs that
//! are put aside and from pipelines; whatever becomes of it, no message is lost and no caller kept; and no key stays there.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test; its host says that it serves"
)]

use std::env;
use std::path::PathBuf;
use std::process::{self, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use evener::counts_file::{Directories, of_process};
use evener_driver_lanes::Lanes;
use evener_provider::{OSSL_provider_init, offer_pipelines_anyway};

mod support;

use evener_testing::hosts::{AT_ONCE, HostProcess, order, requests, serve, sessions};
use evener_testing::programs::in_child;
use evener_testing::waiting::soon;
use support::ffi::descriptor::{Occupied, close_all};
use support::ffi::job::{Fibre, Step, are_ready, clean_up};
use support::ffi::pipe::{Library, PipelineContext};
use support::ffi::{CipherCtx, DEFAULT, Provider};
use support::pair::Pair;
use support::{both_providers, bytes, in_program};

/// Where the host takes orders, in the program under test.
const CONTROL: &str = "PROVIDER_TEST_CONTROL";

/// The host's process, in the program under test.
const HOST_PID: &str = "PROVIDER_TEST_HOST_PID";

fn kill_host() {
    signal_host("KILL");
}

fn signal_host(signal: &str) {
    let pid = env::var(HOST_PID).unwrap();
    // The shell's own: a small system has no program of that name.
    let kill = ["-c", "kill -\"$1\" \"$0\"", &pid, signal];
    assert!(Command::new("sh").args(kill).status().unwrap().success());
}

#[test]
#[ignore = "the process of a host, which the tests start"]
fn host_process() {
    serve();
}

/// Runs `body` in a program whose provider has the module of a host of its own. Everything of at least a block is routed.
fn with_host(name: &str, preset: &str, more: &[(&str, &str)], body: impl FnOnce()) {
    if env::var_os(CONTROL).is_some() {
        return in_program(name, "", &[], body);
    }
    let host = HostProcess::start("host_process", preset);
    let (module, control) = (host.module(), host.control().display().to_string());
    let pid = host.pid().to_string();
    let mut variables = vec![("EVENER_MODULES", &*module), (CONTROL, &*control), (HOST_PID, &*pid)];
    variables.extend_from_slice(more);
    in_program(name, "", &variables, body);
}

/// What overlaps comes out otherwise by kernels (docs/guide/limits.md), so that none is taken.
const ALL: &[(&str, &str)] =
    &[("EVENER_THRESHOLD", "16"), ("EVENER_GUARD", "off"), ("EVENER_KERNELS", "off")];

fn control() -> PathBuf {
    env::var_os(CONTROL).unwrap().into()
}

/// The providers, linked in so that a child that is forked has the same.
fn providers() -> (Provider, Provider) {
    let both = both_providers(OSSL_provider_init);
    assert_eq!(both.1.count(c"evener-modules"), Some(1), "{:?}", both.1.says(c"buildinfo"));
    both
}

fn count(evener: &Provider, key: &std::ffi::CStr) -> u32 {
    evener.count(key).unwrap()
}

/// A message in pieces, apart and in place, by both providers.
fn message(name: &str, encrypts: bool, seed: u64) {
    let pair = Pair::new(&DEFAULT, name);
    let (key, iv) = (bytes(seed, pair.ciphers[0].key_bytes()), bytes(seed + 1, pair.ciphers[0].iv_bytes()));
    let what = format!("{name} {encrypts} {seed}");
    pair.both(&what, |ctx, cipher| {
        let ready = ctx.init(Some(cipher), Some(&key), Some(&iv), Some(encrypts));
        ctx.set_padding(encrypts);
        ready
    });
    for len in [16_384, 4_096, 7, 65_536, 1_001, 16] {
        pair.both(&what, |ctx, _| ctx.update(&bytes(seed + 2, len)));
        pair.both(&what, |ctx, _| {
            let mut space = bytes(seed + 3, len + 16);
            (ctx.update_within(&mut space, 0, 0, len), space)
        });
    }
    pair.both(&what, |ctx, _| ctx.last());
}

fn messages(seed: u64) {
    for name in ["AES-128-CBC", "AES-256-CBC", "AES-192-ECB", "AES-256-CTR", "AES-128-XTS"] {
        message(name, true, seed);
        message(name, false, seed);
    }
}

#[test]
fn what_a_module_of_another_process_does_comes_out_as_by_default() {
    with_host("what_a_module_of_another_process_does_comes_out_as_by_default", AT_ONCE, ALL, || {
        let (_default, evener) = providers();
        let before = requests(&control());
        messages(1);
        assert!(count(&evener, c"evener-routed") > 50);
        assert_eq!(count(&evener, c"evener-redone"), 0);
        assert!(requests(&control()) - before >= 50, "the host did them");
    });
}

#[test]
fn threads_that_come_at_once_each_get_their_own_result() {
    with_host("threads_that_come_at_once_each_get_their_own_result", AT_ONCE, ALL, || {
        let (_default, evener) = providers();
        thread::scope(|scope| (0..6).for_each(|seed| drop(scope.spawn(move || messages(seed * 100)))));
        assert_eq!(count(&evener, c"evener-redone"), 0);
    });
}

#[test]
fn a_host_that_is_killed_in_mid_message_costs_nothing_but_its_service() {
    let name = "a_host_that_is_killed_in_mid_message_costs_nothing_but_its_service";
    with_host(name, "emulated:d=0+0,h=300000+0", ALL, || {
        let (_default, evener) = providers();
        let killer = thread::spawn(|| {
            thread::sleep(Duration::from_millis(300));
            kill_host();
        });
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(900) {
            messages(7);
        }
        killer.join().unwrap();
        let redone = count(&evener, c"evener-redone");
        assert!((1..=20).contains(&redone), "{redone}");
        let routed = count(&evener, c"evener-routed");
        assert!(routed > 50, "{routed}");
    });
}

#[test]
fn a_module_that_hangs_keeps_no_caller_and_is_not_asked_again() {
    with_host("a_module_that_hangs_keeps_no_caller_and_is_not_asked_again", AT_ONCE, ALL, || {
        let (_default, evener) = providers();
        messages(1);
        assert_eq!(count(&evener, c"evener-redone"), 0);
        assert_eq!(order(&control(), "fault hang")["ok"], true);
        let began = Instant::now();
        thread::scope(|scope| (0..3).for_each(|seed| drop(scope.spawn(move || messages(seed)))));
        // Each of the threads at most the longest silence; the machine may be busy.
        assert!(began.elapsed() < Duration::from_secs(30));
        let redone = count(&evener, c"evener-redone");
        assert!((1..=6).contains(&redone), "{redone}");
    });
}

#[test]
fn a_module_that_computes_wrong_is_found_out_and_its_result_is_not_used() {
    with_host("a_module_that_computes_wrong_is_found_out_and_its_result_is_not_used", AT_ONCE, ALL, || {
        let (_default, evener) = providers();
        assert_eq!(order(&control(), "fault wrong-bytes")["ok"], true);
        messages(3);
        let before = requests(&control());
        messages(4);
        assert_eq!(requests(&control()), before, "it gets no more requests");
        assert_eq!(count(&evener, c"evener-redone"), 1, "what it computed wrong");
        let places = Directories::only(env::var_os("EVENER_STATISTICS_DIR").unwrap().into());
        let counted = of_process(&places, u32::MAX, process::id()).unwrap().unwrap();
        assert_eq!(counted.wrong_modules(), 1, "`evener status` tells it from one that failed");
    });
}

/// A message of many updates by both providers, of which the module's results of late are compared in part.
fn long_message(name: &str, encrypts: bool) {
    let pair = Pair::new(&DEFAULT, name);
    let (key, iv) = (bytes(7, pair.ciphers[0].key_bytes()), bytes(8, pair.ciphers[0].iv_bytes()));
    let what = format!("{name} {encrypts}");
    pair.both(&what, |ctx, cipher| {
        let ready = ctx.init(Some(cipher), Some(&key), Some(&iv), Some(encrypts));
        ctx.set_padding(false);
        ready
    });
    for number in 0..LONG {
        pair.both(&what, |ctx, _| ctx.update(&bytes(number, 4_096)));
    }
}

/// Three results that are compared in part.
const LONG: u64 = 3 * 256 + 8;

#[test]
fn parts_of_right_results_are_found_right() {
    with_host("parts_of_right_results_are_found_right", AT_ONCE, ALL, || {
        let (_default, evener) = providers();
        for name in ["AES-128-CBC", "AES-192-CTR", "AES-256-ECB"] {
            long_message(name, true);
            long_message(name, false);
        }
        assert_eq!(count(&evener, c"evener-redone"), 0);
        assert!(u64::from(count(&evener, c"evener-routed")) >= 6 * LONG);
    });
}

#[test]
fn a_forked_child_has_a_connection_of_its_own() {
    with_host("a_forked_child_has_a_connection_of_its_own", AT_ONCE, ALL, || {
        let (_default, evener) = providers();
        messages(1);
        let before = requests(&control());
        for _ in 0..3 {
            assert!(in_child(|| {
                let redone = count(&evener, c"evener-redone");
                messages(2);
                count(&evener, c"evener-redone") == redone
            }));
        }
        assert!(requests(&control()) - before > 150, "the children's went there, too");
        messages(3);
        assert_eq!(count(&evener, c"evener-redone"), 0);
    });
}

/// Waits until the host holds so many keys, which it closes without an answer.
fn wait_for_keys(count: u64) {
    assert!(soon(|| sessions(&control()) == count), "{} keys, not {count}", sessions(&control()));
}

#[test]
fn a_key_stays_at_the_module_for_as_long_as_a_context_has_it() {
    with_host("a_key_stays_at_the_module_for_as_long_as_a_context_has_it", AT_ONCE, ALL, || {
        let (_default, evener) = providers();
        let cipher = DEFAULT.cipher("AES-128-CBC", "provider=evener").unwrap();
        let start = |ctx: &CipherCtx, seed| {
            assert!(ctx.init(Some(&cipher), Some(&bytes(seed, 16)), Some(&bytes(9, 16)), Some(true)));
            ctx.update(&bytes(seed, 4_096)).unwrap();
        };
        let contexts = [1, 2].map(|seed| {
            let ctx = CipherCtx::new();
            start(&ctx, seed);
            ctx
        });
        assert_eq!(sessions(&control()), 2);
        let [one, other] = contexts;
        let copy = one.duplicate();
        drop(one);
        assert!(copy.update(&bytes(3, 4_096)).is_some());
        // The next message under a key has a new IV alone.
        assert!(copy.last().is_some() && copy.init(None, None, Some(&bytes(4, 16)), Some(true)));
        assert!(copy.update(&bytes(5, 4_096)).is_some());
        assert_eq!(sessions(&control()), 2);
        drop(copy);
        wait_for_keys(1);
        assert!(other.init(None, Some(&bytes(6, 16)), Some(&bytes(7, 16)), Some(true)));
        wait_for_keys(0);
        start(&other, 8);
        wait_for_keys(1);
        // A child has a copy of the context, and nothing of its parent's module.
        assert!(in_child(|| {
            let is_new = other.init(None, Some(&bytes(6, 16)), Some(&bytes(7, 16)), Some(true));
            is_new && encrypts_right(4)
        }));
        assert!(other.update(&bytes(9, 4_096)).is_some());
        wait_for_keys(1);
        drop(other);
        wait_for_keys(0);
        assert_eq!(count(&evener, c"evener-redone"), 0);
    });
}

#[test]
fn contexts_are_freed_though_the_host_stands_still() {
    with_host("contexts_are_freed_though_the_host_stands_still", AT_ONCE, ALL, || {
        let (_default, evener) = providers();
        let cipher = DEFAULT.cipher("AES-128-CBC", "provider=evener").unwrap();
        // As many keys as a connection has.
        let contexts: Vec<CipherCtx> = (0..64)
            .map(|seed| {
                let ctx = CipherCtx::new();
                assert!(ctx.init(Some(&cipher), Some(&bytes(seed, 16)), Some(&bytes(9, 16)), Some(true)));
                ctx.update(&bytes(seed, 4_096)).unwrap();
                ctx
            })
            .collect();
        assert_eq!(sessions(&control()), 64);
        signal_host("STOP");
        drop(contexts);
        signal_host("CONT");
        wait_for_keys(0);
        // A message to the host that found no space would have cost the connection.
        assert!(encrypts_right(1));
        assert_eq!(count(&evener, c"evener-redone"), 0);
    });
}

#[test]
fn threads_that_come_and_go_leave_no_key_at_the_module() {
    with_host("threads_that_come_and_go_leave_no_key_at_the_module", AT_ONCE, ALL, || {
        let (_default, evener) = providers();
        thread::scope(|scope| (0..6).for_each(|seed| drop(scope.spawn(move || messages(seed * 100)))));
        wait_for_keys(0);
        assert_eq!(count(&evener, c"evener-redone"), 0);
    });
}

/// One message as by default; whether it is.
fn encrypts_right(seed: u64) -> bool {
    let out = ["evener", "default"].map(|provider| {
        let cipher = DEFAULT.cipher("AES-128-CBC", &format!("provider={provider}")).unwrap();
        let ctx = CipherCtx::new();
        assert!(ctx.init(Some(&cipher), Some(&bytes(seed, 16)), Some(&bytes(seed + 1, 16)), Some(true)));
        (ctx.update(&bytes(seed + 2, 16_384)), ctx.last())
    });
    out[0] == out[1]
}

#[test]
fn jobs_are_put_aside_until_their_results_are_there() {
    with_host("jobs_are_put_aside_until_their_results_are_there", "emulated:d=0+0,h=2000000+0", ALL, || {
        let (_default, evener) = providers();
        let results = Mutex::new(Vec::new());
        let body = |seed| {
            let results = &results;
            move || {
                // Before the lock: the job is put aside in between.
                let is_right = encrypts_right(seed);
                results.lock().unwrap().push(is_right);
            }
        };
        let mut fibres: Vec<Fibre<'_>> = (0..12).map(|seed| Fibre::new(body(seed * 10))).collect();
        // All are under way before the first is done.
        assert!(fibres.iter_mut().all(|fibre| fibre.step() == Step::Paused));
        while !fibres.is_empty() {
            assert!(fibres.iter().all(|fibre| fibre.descriptors().len() == 1));
            assert!(are_ready(&fibres[0].descriptors()), "the program is woken");
            fibres.retain_mut(|fibre| fibre.step() == Step::Paused);
        }
        clean_up();
        assert_eq!(*results.lock().unwrap(), [true; 12]);
        assert!(count(&evener, c"evener-paused") >= 12);
        assert_eq!(count(&evener, c"evener-redone"), 0);
    });
}

#[test]
fn jobs_that_wait_for_a_host_that_is_killed_are_woken_and_lose_nothing() {
    let name = "jobs_that_wait_for_a_host_that_is_killed_are_woken_and_lose_nothing";
    with_host(name, "emulated:d=0+0,h=900000000+0", ALL, || {
        let ((_default, evener), right) = (providers(), AtomicU32::new(0));
        let body = |seed| {
            let right = &right;
            move || {
                right.fetch_add(u32::from(encrypts_right(seed)), Relaxed);
            }
        };
        let mut fibres: Vec<Fibre<'_>> = (0..4).map(|seed| Fibre::new(body(seed * 10))).collect();
        assert!(fibres.iter_mut().all(|fibre| fibre.step() == Step::Paused));
        kill_host();
        for mut fibre in fibres {
            while fibre.step() == Step::Paused {
                assert!(are_ready(&fibre.descriptors()));
            }
        }
        clean_up();
        assert_eq!(right.into_inner(), 4);
        assert_eq!(count(&evener, c"evener-redone"), 4);
    });
}

/// Messages of one call, of which each piece is a request.
const PIPES: u32 = 16;

/// Runs `body` with a pipeline in the provider's table, and compares with the default provider.
fn with_pipes(name: &str, more: &[(&str, &str)], body: impl FnOnce(&Library, &dyn Fn(u64) -> bool)) {
    with_host(name, AT_ONCE, more, || {
        offer_pipelines_anyway();
        let (library, _judge) = Library::system(OSSL_provider_init);
        let kind = library.kind("AES-128-CBC").unwrap();
        let cipher = DEFAULT.cipher("AES-128-CBC", "provider=default").unwrap();
        // Two pieces of each message and its end, by both; whether all came out alike.
        body(&library, &|seed| {
            let key = bytes(seed, 16);
            let ivs: Vec<Vec<u8>> = (0..PIPES).map(|pipe| bytes(seed + u64::from(pipe), 16)).collect();
            let judges: Vec<CipherCtx> = ivs.iter().map(|_| CipherCtx::new()).collect();
            let mut pipes = PipelineContext::new(&kind);
            assert!(pipes.init(
                true,
                true,
                Some(&key),
                &ivs.iter().map(|iv| Some(&iv[..])).collect::<Vec<_>>()
            ));
            let mut is_right = true;
            for (judge, iv) in judges.iter().zip(&ivs) {
                assert!(judge.init(Some(&cipher), Some(&key), Some(iv), Some(true)));
            }
            for (len, in_place) in [(16_384, true), (1_024, false)] {
                let mut spaces: Vec<Vec<u8>> =
                    (0..PIPES).map(|pipe| bytes(seed + u64::from(pipe), len)).collect();
                let expected: Vec<Vec<u8>> =
                    judges.iter().zip(&spaces).map(|(judge, text)| judge.update(text).unwrap()).collect();
                let mut outs = spaces.clone();
                let lens = vec![len; spaces.len()];
                let written = pipes.update(&mut spaces, (!in_place).then_some(&mut outs[..]), &lens);
                assert_eq!(written, Some(lens));
                is_right &= if in_place { spaces == expected } else { outs == expected };
            }
            let expected: Option<Vec<Vec<u8>>> = judges.iter().map(CipherCtx::last).collect();
            is_right & (pipes.last() == expected)
        });
    });
}

#[test]
fn what_a_pipeline_has_done_by_a_module_comes_out_as_by_default() {
    with_pipes("what_a_pipeline_has_done_by_a_module_comes_out_as_by_default", ALL, |library, is_right| {
        let before = requests(&control());
        assert!((0..20).all(|seed| is_right(seed * 100)));
        assert_eq!(library.count(c"evener-routed"), 20 * 3 * PIPES);
        assert_eq!(library.count(c"evener-redone"), 0);
        assert_eq!(library.count(c"evener-pipelined"), 0, "lanes had none of them");
        assert_eq!(requests(&control()) - before, u64::from(20 * 3 * PIPES), "the host did them");
        wait_for_keys(0);
    });
}

#[test]
fn a_wrong_result_in_a_pipeline_is_found_out_and_none_of_its_call_is_used() {
    let name = "a_wrong_result_in_a_pipeline_is_found_out_and_none_of_its_call_is_used";
    with_pipes(name, ALL, |library, is_right| {
        assert_eq!(order(&control(), "fault wrong-bytes")["ok"], true);
        assert!(is_right(1), "the first results are compared");
        assert_eq!(library.count(c"evener-redone"), PIPES);
        let before = requests(&control());
        assert!(is_right(2));
        assert_eq!(requests(&control()), before, "it gets no more requests");
    });
}

#[test]
fn a_module_that_comes_to_compute_wrong_is_found_out_in_a_pipeline_too() {
    let name = "a_module_that_comes_to_compute_wrong_is_found_out_in_a_pipeline_too";
    with_pipes(name, ALL, |library, is_right| {
        assert!(is_right(1));
        assert_eq!(order(&control(), "fault wrong-bytes")["ok"], true);
        // One in 256 is compared.
        (0..6).for_each(|seed| _ = is_right(seed));
        assert_eq!(library.count(c"evener-redone"), PIPES);
        assert!(is_right(7));
    });
}

#[test]
fn a_module_that_hangs_over_a_pipeline_keeps_no_caller() {
    with_pipes("a_module_that_hangs_over_a_pipeline_keeps_no_caller", ALL, |library, is_right| {
        assert!(is_right(1));
        assert_eq!(order(&control(), "fault hang")["ok"], true);
        assert!(is_right(2) && is_right(3));
        assert_eq!(library.count(c"evener-redone"), PIPES);
    });
}

#[test]
fn pipelines_reach_a_module_past_the_guard() {
    let guarded = &[("EVENER_THRESHOLD", "16")];
    with_pipes("pipelines_reach_a_module_past_the_guard", guarded, |library, is_right| {
        assert!((0..40).all(is_right));
        // The first of each size stay on the core, and perhaps the last.
        let routed = library.count(c"evener-routed");
        assert!((PIPES..40 * 3 * PIPES).contains(&routed), "{routed}");
        assert_eq!(library.count(c"evener-redone"), 0);
    });
}

#[test]
fn a_module_that_does_not_pay_is_tried_and_left() {
    // 20 ms for a request: everything is faster here.
    let name = "a_module_that_does_not_pay_is_tried_and_left";
    with_host(name, "emulated:d=0+0,h=20000000+0", &[], || {
        let (_default, evener) = providers();
        (0..6_000).for_each(|seed| assert!(encrypts_right(seed)));
        let routed = count(&evener, c"evener-routed");
        assert!((1..=10).contains(&routed), "{routed}");
    });
}

#[test]
fn a_module_that_cannot_be_opened_is_named_and_everything_goes_on() {
    let variables = [("EVENER_MODULES", "hosted:/nowhere/evener.sock")];
    in_program("a_module_that_cannot_be_opened_is_named_and_everything_goes_on", "", &variables, || {
        DEFAULT.add_builtin("evener", OSSL_provider_init);
        let (_default, evener) = (DEFAULT.load("default").unwrap(), DEFAULT.load("evener").unwrap());
        drop(std::panic::take_hook());
        assert!(evener.says(c"buildinfo").unwrap().contains("modules = hosted:/nowhere/evener.sock: "));
        messages(1);
        assert_eq!(count(&evener, c"evener-routed"), 0);
    });
}

/// Whether a file of that name is mapped here.
fn is_mapped(name: &str) -> bool {
    std::fs::read_to_string("/proc/self/maps").unwrap().contains(name)
}

#[test]
fn a_program_that_only_hashes_connects_to_no_host_and_one_that_combines_loads_no_library() {
    let name = "a_program_that_only_hashes_connects_to_no_host_and_one_that_combines_loads_no_library";
    with_host(name, AT_ONCE, &[("EVENER_COMBINE", "auto")], || {
        DEFAULT.add_builtin("evener", OSSL_provider_init);
        let (_default, evener) = (DEFAULT.load("default").unwrap(), DEFAULT.load("evener").unwrap());
        drop(std::panic::take_hook());
        let clients = || order(&control(), "report")["clients"].as_array().unwrap().len();
        assert_eq!(DEFAULT.digest("SHA256", "provider=evener").unwrap().of(&[b"abc"])[..2], [0xba, 0x78]);
        assert_eq!(clients(), 0);
        // A program that looks for a cipher has it before its first message, and may shut itself into a sandbox then.
        assert!(DEFAULT.cipher("AES-128-ECB", "provider=evener").is_some());
        assert_eq!(clients(), 1);
        let says = evener.says(c"buildinfo").unwrap();
        // Only where there are no kernels.
        assert!(
            !Lanes::are_there() || !is_mapped("libIPSec_MB") && !says.contains("combine = auto:"),
            "{says}"
        );
    });
}

#[test]
fn a_program_without_statistics_has_its_host_from_the_beginning() {
    let name = "a_program_without_statistics_has_its_host_from_the_beginning";
    with_host(name, AT_ONCE, &[("EVENER_STATISTICS", "off")], || {
        DEFAULT.add_builtin("evener", OSSL_provider_init);
        let _both = (DEFAULT.load("default").unwrap(), DEFAULT.load("evener").unwrap());
        drop(std::panic::take_hook());
        assert_eq!(order(&control(), "report")["clients"].as_array().unwrap().len(), 1);
    });
}

#[test]
fn a_program_that_closes_what_it_did_not_open_finds_only_its_own_bytes_in_what_it_opens_there() {
    let name = "a_program_that_closes_what_it_did_not_open_finds_only_its_own_bytes_in_what_it_opens_there";
    with_host(name, AT_ONCE, ALL, || {
        let (default, evener) = providers();
        messages(1);
        let (routed, redone) = (count(&evener, c"evener-routed"), count(&evener, c"evener-redone"));
        assert!(routed > 50 && redone == 0, "{routed} {redone}");
        close_all();
        let own = Occupied::new();
        // New keys, too, which would be sent where the connection was.
        messages(2);
        assert!(count(&evener, c"evener-redone") > 0, "what the module did not do is counted");
        default.unload();
        evener.unload();
        assert_eq!(own.touched(), [""; 0]);
    });
}

#[test]
fn a_job_s_descriptor_that_the_program_closed_is_neither_rung_nor_closed_again() {
    let name = "a_job_s_descriptor_that_the_program_closed_is_neither_rung_nor_closed_again";
    with_host(name, "emulated:d=0+0,h=300000+0", ALL, || {
        let (_default, evener) = providers();
        let mut fibre = Fibre::new(|| assert!(encrypts_right(7)));
        assert_eq!(fibre.step(), Step::Paused, "it waits for the module");
        assert_eq!(fibre.descriptors().len(), 1);
        close_all();
        let own = Occupied::new();
        while fibre.step() == Step::Paused {
            thread::sleep(Duration::from_millis(1));
        }
        drop(fibre);
        clean_up();
        assert!(count(&evener, c"evener-routed") > 0);
        assert_eq!(own.touched(), [""; 0]);
    });
}
