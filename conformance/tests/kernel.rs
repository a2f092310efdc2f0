//! Modules behind the kernel: those of this machine, and the kernel's own software through the same door, which brings the
//! algorithms that no module here does. A machine without AF_ALG skips all of it and prints that; the test bed's guest has it, so the
//! last test runs all others there.

#![allow(clippy::print_stdout, clippy::panic, reason = "helpers of tests are tests; what is skipped is said")]

mod support;

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use evener::core::plan::Policy;
use evener::{Cancel, CoreDrivers, Quarantine, Report, Setup, run};
use evener_core::driver::Unanswered;
use evener_core::{
    Algorithm, Direction, InlineDriver as _, Job, JobError, Nanos, Outcome, Padding, QueuedDriver, Session,
};
use evener_cryptodev::{Node, TEXT_BYTES_MAX};
use evener_driver_kernel::{Module, ModuleName, OpenError, survey};
use evener_driver_libcrypto::Libcrypto;
use evener_testbed::Guest;
use evener_testing::drivers::{Around, libcrypto, watched};
use evener_testing::hosts::Host;
use evener_testing::programs::{Process, is_right_in_child};
use evener_testing::requests::{
    Answer, Burst, JobSpec, Layout, OnCore, Route, all_by, answers, apart, ask_all, by_run, in_place, judged,
    kinds, session,
};

use support::kernel;

/// Software of the kernel, asynchronous and not, one for each family; a kernel may lack some.
const SOFTWARE: &[&str] = &[
    "cryptd(cbc(aes-generic))",
    "cbc(aes-generic)",
    "ecb(aes-generic)",
    "ctr(aes-generic)",
    "xts(ecb(aes-generic))",
    "gcm_base(ctr(aes-generic),ghash-generic)",
    "rfc7539(chacha20-generic,poly1305-generic)",
    "sha1-generic",
    "sha256-generic",
    "md5-generic",
    "hmac(sha1-generic)",
    "hmac(sha256-generic)",
    "hmac(md5-generic)",
];

/// Lengths in bytes: about blocks, about pieces of 64 KiB, and beyond what a whole request may have.
const LENGTHS: &[usize] =
    &[0, 1, 15, 16, 17, 48, 255, 4_096, 16_384, 65_520, 65_536, 65_552, 131_072, 200_000];

/// As [`LENGTHS`], about the pieces of 32 KiB that the driver of OCF hands over, to what a node takes at once and beyond.
const NODE_LENGTHS: &[usize] =
    &[0, 1, 15, 16, 17, 255, 4_096, 32_752, 32_768, 32_784, 65_552, 120 << 10, 131_072];

/// Jobs before a module is asked for one more.
const TIMEOUT: Nanos = Nanos::from_millis(20_000);

/// Modules of this machine, then software; nothing and a printed line where AF_ALG is missing.
fn modules() -> Vec<Module> {
    devices().into_iter().chain(SOFTWARE.iter().filter_map(|name| software(name))).collect()
}

/// Modules with a device behind them.
fn devices() -> Vec<Module> {
    let survey = survey();
    if let Some(why) = &survey.nothing {
        println!("skipped: no module behind AF_ALG: {why}");
    }
    let admitted = survey.hardware.iter().filter(|standing| standing.refused.is_none());
    admitted.map(|standing| open(&standing.driver).expect("it was admitted a moment ago")).collect()
}

fn open(driver: &str) -> Result<Module, OpenError> {
    Module::open(&format!("afalg:{driver}").parse().expect("a name"))
}

fn software(name: &str) -> Option<Module> {
    match open(name) {
        Ok(module) => Some(module),
        Err(OpenError::Unavailable(_)) => None,
        Err(error @ OpenError::WrongAnswer { .. }) => panic!("{error}"),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// The first module with a device behind it.
fn hardware() -> Option<Module> {
    devices().into_iter().next()
}

/// A module's driver, given jobs as it takes them.
struct Alone(Module);

impl Route for Alone {
    fn run<'m>(&mut self, jobs: Burst<'m>) -> Burst<'m> {
        all_by(&mut *self.0.driver(), jobs, TIMEOUT)
    }
}

/// The module of a host, likewise.
struct AtHost(evener_driver_hosted::Module);

impl Route for AtHost {
    fn run<'m>(&mut self, jobs: Burst<'m>) -> Burst<'m> {
        all_by(&mut *self.0.driver(), jobs, TIMEOUT)
    }
}

/// A module under a run, which redoes what the module leaves.
struct ByRun<'a> {
    module: &'a Module,
    /// Silence after which it is taken for dead.
    timeout: Nanos,
    report: Report,
}

impl<'a> ByRun<'a> {
    fn new(module: &'a Module) -> Self {
        Self { module, timeout: TIMEOUT, report: Report::default() }
    }
}

impl Route for ByRun<'_> {
    fn run<'m>(&mut self, jobs: Burst<'m>) -> Burst<'m> {
        let (jobs, report) = by_run(self.module.driver(), jobs, self.timeout);
        self.report = report;
        jobs
    }
}

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
        let in_place = asked_himself(&module, usize::MAX, |spec| in_place(&*driver, spec, A_MINUTE));
        let apart = asked_himself(&module, usize::MAX, |spec| apart(&*driver, spec, Nanos::ZERO));
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
        let count = asked_himself(&module, 64 << 10, |spec| in_place(&*driver, spec, A_MINUTE));
        println!("{name}: {count} requests of a caller that may leave");
    }
}

/// Longer than any request takes.
const A_MINUTE: Nanos = Nanos::from_millis(60_000);

/// Compares with libcrypto what comes of whole blocks of all lengths, by all ciphers of a module, of which what is longer than `longest` is
/// left; says how many there were.
fn asked_himself(
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
fn a_host_serves_a_module_behind_the_kernel_and_reports_what_that_did() {
    hardware().into_iter().for_each(|module| serves_as_a_hosts(&module));
    with_node(|module| serves_as_a_hosts(&module));
}

/// To a client that sends requests below the longest that any module takes whole.
fn serves_as_a_hosts(module: &Module) {
    let (name, answered) = (module.profile().name.clone(), module.answered());
    let mut specs = Vec::new();
    let report = with_host(module, |client| {
        let does = |session: &Arc<Session>| client.supports(session.algorithm(), session.direction());
        for session in kinds(8).filter(does) {
            specs.extend([16, 255, 4_096, 30_000].map(|bytes| JobSpec::noisy(&session, bytes, bytes)));
        }
        let came = answers(&mut AtHost(client), &specs);
        specs
            .iter()
            .zip(&came)
            .for_each(|(spec, answer)| assert_eq!(*answer, judged(spec), "{}", spec.what()));
    });
    let count = specs.len() as u64;
    assert!(count > 0, "{name}: nothing for a client");
    assert_eq!((report.module.name.as_str(), report.module.gone), (name.as_str(), false));
    assert_eq!([report.module.submitted, report.module.completed, report.totals.requests], [count; 3]);
    assert_eq!((report.totals.failed, report.totals.refused, report.broken_off), (0, 0, 0));
    if let Some((before, after)) = answered.zip(module.answered()) {
        assert_eq!(after - before, count, "{name}: the module's own count");
    }
    println!("{name}: {count} requests of a host's client");
}

/// Has a host own `module` and lends a client of it, that has asked nothing yet.
fn with_host(module: &Module, body: impl FnOnce(evener_driver_hosted::Module)) -> evener_host::Report {
    let host = Host::start(evener_host::Module::queued(module.driver(), TIMEOUT.into()));
    let name = format!("hosted:{},offer=all", host.socket().display()).parse().expect("a name");
    body(evener_driver_hosted::Module::connect(&name).expect("it serves"));
    host.stop()
}

#[test]
fn a_forked_child_opens_keys_of_its_own_and_its_parent_goes_on() {
    hardware().into_iter().for_each(|module| forks(&module));
    with_node(|module| forks(&module));
}

/// Jobs by one driver before a fork, in its child, and after it.
fn forks(module: &Module) {
    let sealing = session(module.algorithms()[0], Direction::Encrypt, Padding::None, 9);
    let mut specs: Vec<JobSpec> = (0..4).map(|seed| JobSpec::noisy(&sealing, 4_096, seed)).collect();
    specs.iter_mut().for_each(|spec| spec.layout = Layout { shift: 0, in_place: true });
    let mut driver = module.driver();
    hand_over(&mut *driver, &specs[0]);
    assert_eq!(taken(&mut *driver), judged(&specs[0]));
    hand_over(&mut *driver, &specs[1]);
    let is_right = is_right_in_child(|| {
        // The parent calls it here.
        assert_eq!(taken(&mut *driver).outcome, Outcome::Failed(JobError::ModuleLost));
        hand_over(&mut *driver, &specs[2]);
        assert_eq!(taken(&mut *driver), judged(&specs[2]));
    });
    assert!(is_right, "{}: see what the child said", module.profile().name);
    assert_eq!(taken(&mut *driver), judged(&specs[1]), "the parent's own");
    hand_over(&mut *driver, &specs[3]);
    assert_eq!(taken(&mut *driver), judged(&specs[3]), "its key is still open");
}

fn hand_over(driver: &mut dyn QueuedDriver<'static>, spec: &JobSpec) {
    let mut job = Job::in_place(spec.input.clone().leak());
    job.arm(Arc::clone(&spec.session), &spec.iv, spec.input.len());
    assert!(driver.submit(job).is_ok());
}

fn taken(driver: &mut dyn QueuedDriver<'static>) -> Answer {
    let mut done = Vec::new();
    driver.poll(&mut done, TIMEOUT);
    let [job] = &done[..] else { panic!("{} jobs came back", done.len()) };
    Answer { outcome: job.outcome(), output: job.output().to_vec(), tag: job.tag().to_vec() }
}

const NODE: &str = "evener-fork";

/// Lends a module behind a node of our own, where this machine lets us make one.
fn with_node(body: impl FnOnce(Module)) {
    with_node_of(OnCore::plain().into_inner(), |name| body(Module::open(name).expect("it serves")));
}

/// Lends the name of a node that computes by `core_drivers`.
fn with_node_of(core_drivers: CoreDrivers, body: impl FnOnce(&ModuleName)) {
    with_node_at(NODE, core_drivers, body);
}

fn with_node_at(name: &str, core_drivers: CoreDrivers, body: impl FnOnce(&ModuleName)) {
    let node = match Node::new(name) {
        Ok(node) => node,
        Err(error) => return println!("skipped: {error}"),
    };
    let cancel = Cancel::default();
    let serve = || {
        let memory = vec![0; 4 * (TEXT_BYTES_MAX + 16)].leak();
        let jobs = memory.chunks_mut(TEXT_BYTES_MAX + 16).map(Job::in_place).collect();
        let setup = Setup { policy: Policy::CpuOnly, callers: 1, ..Setup::default() };
        run(setup, |runtime| node.serve(&mut runtime.caller(core_drivers), jobs, &cancel)).0
    };
    std::thread::scope(|scope| {
        let served = scope.spawn(serve);
        let _ends = Ends(&cancel);
        let path = format!("/dev/{name}");
        while !std::fs::exists(&path).unwrap_or(false) {
            assert!(!served.is_finished(), "there is no node");
            std::thread::yield_now();
        }
        body(&format!("devcrypto:{path}").parse().expect("a name"));
        cancel.cancel();
        let served = served.join().expect("no panic").expect("the kernel goes on");
        assert!(served.requests > 4, "{served:?}");
    });
}

/// Computes, and turns one bit of each text over.
fn lies() -> CoreDrivers {
    let run = |libcrypto: &mut Libcrypto, burst: &mut [Box<Job<'_>>]| {
        libcrypto.run(burst);
        for job in burst {
            job.room_mut().first_mut().into_iter().for_each(|byte| *byte ^= 1);
        }
    };
    CoreDrivers::new(Box::new(Around::new(libcrypto(), run)), None)
}

#[test]
fn a_node_that_computes_wrong_is_refused_with_the_example_that_it_got_wrong() {
    with_node_of(lies(), |name| {
        let error = Module::open(name).expect_err("it lies");
        let OpenError::WrongAnswer { wrong, .. } = &error else { panic!("{error}") };
        assert_eq!((wrong.source, wrong.key_bytes), ("SP 800-38A, appendix F", 16));
        assert!(error.to_string().starts_with(&format!("{name} is refused: AES-128-")), "{error}");
    });
}

/// Lets so many texts pass, and says when one has to wait.
struct Gate {
    left: Mutex<u64>,
    changed: Condvar,
}

impl Gate {
    fn new(left: u64) -> Arc<Self> {
        Arc::new(Self { left: Mutex::new(left), changed: Condvar::new() })
    }

    fn lets(&self, count: u64) {
        *self.left.lock().expect("no thread panics here") = count;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut left = self.left.lock().expect("no thread panics here");
        if *left == 0 {
            println!("{STALLED}");
        }
        left = self.changed.wait_while(left, |left| *left == 0).expect("no thread panics here");
        *left -= 1;
    }
}

const ANY: u64 = u64::MAX;
const STALLED: &str = "a text has to wait";

/// Opens a gate, also where a test panics: a node that waits for it would never end.
struct Opens<'a>(&'a Gate);

impl Drop for Opens<'_> {
    fn drop(&mut self) {
        self.0.lets(ANY);
    }
}

/// Computes what its gate lets pass.
fn stalls(gate: &Arc<Gate>) -> CoreDrivers {
    let gate = Arc::clone(gate);
    CoreDrivers::new(Box::new(watched(move |burst| burst.iter().for_each(|_| gate.pass()))), None)
}

/// Jobs of a run with three keys, so that one is idle when two requests are under way, and texts that a node does before it stalls.
const RUN_JOBS: usize = 40;
const BEFORE: u64 = 12;

/// Silence after which a node is taken for dead. Emulated, each of its requests takes some milliseconds.
const SILENCE: Nanos = Nanos::from_millis(3_000);

/// A run by a module: jobs that it did, how many were redone, and why it is out. All results are libcrypto's.
fn run_by(module: &Module, timeout: Nanos) -> (u64, u64, Option<Quarantine>) {
    let key = |seed| session(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, seed);
    let keys = [21, 22, 23].map(key);
    let specs: Vec<JobSpec> = (0..RUN_JOBS).map(|at| JobSpec::noisy(&keys[at % 3], 4_096, at)).collect();
    let mut route = ByRun { timeout, ..ByRun::new(module) };
    let came = answers(&mut route, &specs);
    specs.iter().zip(&came).for_each(|(spec, answer)| assert_eq!(*answer, judged(spec), "{}", spec.what()));
    let served = route.report.workers.iter().find_map(|worker| worker.module.clone()).expect("a module");
    (served.tally.jobs, route.report.total().redone, served.quarantine)
}

#[test]
fn a_node_that_hangs_in_mid_request_is_out_until_its_requests_are_back() {
    let gate = Gate::new(ANY);
    with_node_of(stalls(&gate), |name| {
        let _opens = Opens(&gate);
        let module = Module::open(name).expect("it serves");
        gate.lets(BEFORE);
        let (by_module, redone, quarantine) = run_by(&module, SILENCE);
        assert_eq!((by_module, quarantine), (BEFORE, Some(Quarantine::Hung)));
        assert!(redone > 0, "what it held");
        assert_eq!(run_by(&module, SILENCE), (0, 0, Some(Quarantine::Lost)), "threads stand in the kernel");
        gate.lets(ANY);
        // They come back one after the other.
        let is_back = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            run_by(&module, TIMEOUT) == (RUN_JOBS as u64, 0, None)
        });
        assert!(is_back, "it is never used again");
        println!("{}: out while it hung", module.profile().name);
    });
}

/// The variable that makes the test below serve a node until it is killed.
const TO_BE_KILLED: &str = "NODE_TEST_TO_BE_KILLED";
const READY: &str = "the node is there";

#[test]
#[ignore = "a part of another one, which runs it as a process"]
fn serves_a_node_until_it_is_killed() {
    if std::env::var(TO_BE_KILLED).is_err() {
        return println!("skipped: no parent would kill it");
    }
    with_node_at("evener-killed", stalls(&Gate::new(BEFORE)), |_| {
        println!("{READY}");
        loop {
            std::thread::park();
        }
    });
}

#[test]
fn a_node_whose_process_is_killed_in_mid_request_is_out_at_once_and_every_job_is_done() {
    let mut node = Process::start("serves_a_node_until_it_is_killed", &[(TO_BE_KILLED, "1".as_ref())]);
    let mut says = node.lines();
    let first = says.find(|line| line.contains(READY) || line.contains("skipped: "));
    let first = first.expect("it says whether there is a node");
    if !first.contains(READY) {
        return println!("{first}");
    }
    let module = Module::bind(&"devcrypto:/dev/evener-killed".parse().expect("a name")).expect("it serves");
    let killed = std::thread::spawn(move || {
        assert!(says.any(|line| line.contains(STALLED)), "it never stalls");
        drop(node);
    });
    // A wait for silence is longer than this test's guest lives.
    let (by_module, redone, quarantine) = run_by(&module, Nanos::from_millis(3_600_000));
    killed.join().expect("it was killed");
    assert_eq!((by_module, quarantine), (BEFORE, Some(Quarantine::Lost)));
    assert!(redone > 0, "what it held");
    println!("{}: out when it was killed", module.profile().name);
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

/// Ends a node, also where a test panics.
struct Ends<'a>(&'a Cancel);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
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
