//! Modules behind the kernel: those of this machine, and the kernel's own software through the same door, which brings the
//! algorithms that no module here does. A machine without AF_ALG skips all of it and prints that; the test bed's guest has it, so the
//! last test runs all others there.

#![allow(clippy::print_stdout, clippy::panic, reason = "helpers of tests are tests; what is skipped is said")]

mod hangs;
mod modules;
mod nodes;
mod owners;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use evener_core::driver::Unanswered;
use evener_core::{Algorithm, Direction, Job, JobError, Nanos, Outcome, Padding, Session};
use evener_driver_kernel::{Module, ModuleName, OpenError};
use evener_testbed::Guest;
use evener_testing::requests::{Answer, JobSpec, answers, apart, ask_all, in_place, judged, kinds, session};

use modules::{Alone, ByRun, TIMEOUT, hardware, modules, open, software};
use nodes::with_node;
use support::kernel;

/// Lengths in bytes: about blocks, about pieces of 64 KiB, and beyond what a whole request may have.
const LENGTHS: &[usize] =
    &[0, 1, 15, 16, 17, 48, 255, 4_096, 16_384, 65_520, 65_536, 65_552, 131_072, 200_000];

/// As [`LENGTHS`], about the pieces of 32 KiB that the driver of OCF hands over, to what a node takes at once and beyond.
const NODE_LENGTHS: &[usize] =
    &[0, 1, 15, 16, 17, 255, 4_096, 32_752, 32_768, 32_784, 65_552, 120 << 10, 131_072];

/// What a module leaves to a core because of its lengths, by rule: kernels read no tag where there is nothing else.
fn is_left(spec: &JobSpec, answer: &Answer) -> bool {
    let whole = spec.input.len() + spec.aad.len();
    let is_xts = spec.session.algorithm().name().ends_with("XTS");
    let is_odd = spec.session.algorithm().is_aead() && !(1..=128 << 10).contains(&whole);
    let is_left = answer.outcome == Outcome::Failed(JobError::ModuleFull);
    assert_eq!(is_left, is_odd || is_xts && whole > 128 << 10, "{}: {:?}", spec.what(), answer.outcome);
    is_left
}

/// What the driver of OCF leaves to a core: what cannot be cut and is longer than a piece.
fn is_left_by_node(spec: &JobSpec, answer: &Answer) -> bool {
    let name = spec.session.algorithm().name();
    let can_be_cut = ["ECB", "CBC", "CTR"].iter().any(|mode| name.ends_with(mode));
    let is_left = answer.outcome == Outcome::Failed(JobError::ModuleFull);
    assert_eq!(is_left, !can_be_cut && spec.input.len() > 32 << 10, "{}: {:?}", spec.what(), answer.outcome);
    is_left
}

#[test]
fn every_module_gives_what_was_published() {
    modules().into_iter().for_each(gives_what_was_published);
    with_node(gives_what_was_published);
}

fn gives_what_was_published(module: Module) {
    let (name, does) = (module.profile().name.clone(), module.algorithms().to_vec());
    let takes = |spec: &JobSpec| {
        let has_text = !spec.session.algorithm().is_aead() || spec.input.len() + spec.aad.len() > 0;
        does.contains(&spec.session.algorithm()) && has_text
    };
    let asked = ask_all(&mut Alone(module), takes);
    assert!(asked > 0, "{name}: no published case");
    println!("{name}: {asked} published cases");
}

#[test]
fn every_module_gives_what_libcrypto_gives_at_all_lengths() {
    modules().into_iter().for_each(|module| gives_what_libcrypto_gives(module, LENGTHS, is_left));
    with_node(|module| gives_what_libcrypto_gives(module, NODE_LENGTHS, is_left_by_node));
}

/// At all `lengths`, but for what `is_left` to a core.
fn gives_what_libcrypto_gives(module: Module, lengths: &[usize], is_left: fn(&JobSpec, &Answer) -> bool) {
    let (name, does, mut route) =
        (module.profile().name.clone(), module.algorithms().to_vec(), Alone(module));
    let mut count = 0;
    for session in kinds(4).filter(|session| does.contains(&session.algorithm())) {
        let specs: Vec<JobSpec> =
            lengths.iter().enumerate().map(|(seed, &bytes)| JobSpec::noisy(&session, bytes, seed)).collect();
        let came = answers(&mut route, &specs);
        for (spec, answer) in specs.iter().zip(&came) {
            assert!(is_left(spec, answer) || *answer == judged(spec), "{}", spec.what());
        }
        count += specs.len();
    }
    println!("{name}: {count} requests of all lengths");
}

#[test]
fn a_caller_of_a_module_gets_what_libcrypto_gives_at_all_lengths() {
    for module in modules() {
        let driver = module.called();
        let in_place = by_caller(&module, usize::MAX, |spec| in_place(&*driver, spec, A_MINUTE));
        let apart = by_caller(&module, usize::MAX, |spec| apart(&*driver, spec, Nanos::ZERO));
        let name = &module.profile().name;
        println!("{name}: {in_place} and {apart} requests of a caller that waits in the kernel");
    }
}

#[test]
fn a_caller_that_may_leave_a_request_gets_what_libcrypto_gives_at_all_lengths() {
    for module in modules() {
        let name = module.profile().name.clone();
        assert_eq!(module.timed().is_some(), name.starts_with("afalg:"), "{name}");
        let Some(driver) = module.timed() else { continue };
        // What is longer goes to the queue, in pieces.
        let count = by_caller(&module, 64 << 10, |spec| in_place(&*driver, spec, A_MINUTE));
        println!("{name}: {count} requests of a caller that may leave");
    }
}

/// Longer than any request takes.
const A_MINUTE: Nanos = Nanos::from_millis(60_000);

/// Compares with libcrypto what comes of whole blocks of all lengths, by all ciphers of a module, of which what is longer than `longest` is
/// left; says how many there were.
fn by_caller(
    module: &Module,
    longest: usize,
    ask_it: impl Fn(&JobSpec) -> Result<Vec<u8>, Unanswered>,
) -> u64 {
    let (does, mut count) = (module.algorithms(), 0);
    let is_raw = |session: &&Arc<Session>| {
        let algorithm = session.algorithm();
        let is_cipher = algorithm.is_cipher() && !algorithm.is_aead();
        does.contains(&algorithm) && is_cipher && session.padding() == Padding::None
    };
    for session in kinds(7).filter(|session| is_raw(&session)) {
        for (seed, &bytes) in LENGTHS.iter().enumerate().filter(|(_, bytes)| **bytes % 16 == 0) {
            let spec = JobSpec::noisy(&session, bytes, seed);
            // XTS has no text shorter than a block.
            let bytes = spec.input.len();
            let is_xts = session.algorithm().name().ends_with("XTS");
            let is_left = bytes == 0 || bytes > longest || is_xts && bytes > 128 << 10;
            let left = Unanswered::Failed(JobError::ModuleFull);
            let due = if is_left { Err(left) } else { Ok(judged(&spec).output) };
            let done = ask_it(&spec);
            let failed = done.as_ref().err();
            assert!(done == due, "{}: {failed:?} where {:?} was due", spec.what(), due.err());
            count += 1;
        }
    }
    count
}

#[test]
fn a_forged_text_is_refused_by_every_module_that_opens_texts() {
    for module in modules() {
        let aead = |algorithm: &&Algorithm| algorithm.is_aead();
        let does: Vec<Algorithm> = module.algorithms().iter().filter(aead).copied().collect();
        let mut route = Alone(module);
        for algorithm in does {
            let opens = session(algorithm, Direction::Decrypt, Padding::None, 5);
            let forged = |seed| {
                let mut spec = JobSpec::noisy(&opens, 100 + seed, seed);
                spec.tag[seed % 16] ^= 1;
                spec
            };
            let came = answers(&mut route, &(0..20).map(forged).collect::<Vec<_>>());
            let refused = Outcome::Failed(JobError::NotAuthentic);
            assert!(came.iter().all(|answer| answer.outcome == refused), "{algorithm}");
        }
    }
}

/// QEMU's module holds 128 keys of all that use it.
#[test]
fn a_module_that_is_full_of_keys_loses_no_job_and_is_not_blamed() {
    let Some(module) = hardware() else { return };
    let algorithm = module.algorithms()[0];
    let specs: Vec<JobSpec> = (0..160)
        .map(|seed| JobSpec::noisy(&session(algorithm, Direction::Encrypt, Padding::None, seed), 64, seed))
        .collect();
    // Each of these holds its keys until it goes.
    let mut holders: Vec<_> = (0..12).map(|_| module.driver()).collect();
    for holder in &mut holders {
        for spec in &specs[..16] {
            let memory = spec.input.clone();
            let mut done = Vec::new();
            let mut job = Job::in_place(memory.leak());
            job.arm(Arc::clone(&spec.session), &spec.iv, spec.input.len());
            assert!(holder.submit(job).is_ok());
            holder.poll(&mut done, TIMEOUT);
            assert_eq!(done.len(), 1);
        }
    }
    let mut route = ByRun::new(&module);
    let came = answers(&mut route, &specs);
    specs.iter().zip(&came).for_each(|(spec, answer)| assert_eq!(*answer, judged(spec), "{}", spec.what()));
    let served = route.report.workers.iter().find_map(|worker| worker.module.as_ref()).expect("a module");
    assert_eq!(served.quarantine, None);
    drop(holders);
    // With its keys gone, the module does all of it.
    let mut route = ByRun::new(&module);
    answers(&mut route, &specs);
    assert_eq!(route.report.modules().jobs, specs.len() as u64);
}

#[test]
fn what_cannot_be_opened_says_whether_it_is_not_there_or_nothing_for_us() {
    let node: ModuleName = "devcrypto:/dev/null".parse().expect("a name");
    let error = Module::open(&node).expect_err("it has no calls");
    assert!(matches!(&error, OpenError::NothingForUs { name, .. } if name == "/dev/null"), "{error}");
    // The kernel lists what computes blocks once it has made a mode of it, and has no door for it.
    if software("cbc(aes-generic)").is_none() {
        return println!("skipped: the kernel's own AES cannot be asked for");
    }
    let (name, does) = ("aes-generic".to_owned(), "aes".to_owned());
    assert_eq!(open(&name).map(drop), Err(OpenError::NothingForUs { name, does }));
    let (name, errno) = ("nobodys".to_owned(), libc::ENOENT);
    assert_eq!(open(&name).map(drop), Err(OpenError::NoSuchDriver { name, errno }));
    println!("what cannot be opened was told apart");
}

#[test]
fn all_of_this_holds_in_the_guest_where_a_module_stands_behind_af_alg() {
    let this = std::env::current_exe().expect("a test has a file");
    let builder = kernel::with_modules(Guest::builder().program(&this).limit(GUEST_LIFE));
    // One of its own: the algorithms that the suite has the kernel make stay, and another driver is the first of `cbc(aes)` then.
    let Some(mut guest) = builder.boot_or_skip() else { return };
    let name = this.file_name().expect("a file has a name").to_string_lossy();
    let suite = format!("{name} --test-threads 1 --nocapture --skip {}", kernel::IN_THE_GUEST);
    let outcome = guest.run(&suite).expect("the guest answers");
    kernel::expect_modules(outcome.expect_success());
    assert_eq!(kernel::warnings(&outcome.kernel_log), [""; 0]);
    guest.shut_down().expect("the guest ends");
}

/// An emulated processor beside other work takes minutes for tens of thousands of requests.
const GUEST_LIFE: Duration = Duration::from_secs(500);
