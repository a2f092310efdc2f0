//! A guest whose module is slowed down, fails, lies and hangs by order while a run goes on: all results are libcrypto's, what was
//! redone is counted, and why the module is out is said; and a caller that waits for a request alone leaves one that hangs.
//!
//! Path: this program in the guest, which runs bursts under the adaptive policy until a file in /share says `end` -> orders to the host's control
//! socket or QEMU's monitor, each once the module has met the one before -> their counts against the run's own.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use evener::core::plan::Policy;
use evener::{Caller, CoreDrivers, ModuleSetup};
use evener_core::driver::{Text, Unanswered};
use evener_core::estimate::{Learned, OnModule};
use evener_core::{Algorithm, Class, Direction, Estimator, Job, Nanos, Outcome, Padding, Session};
use evener_driver_emulated::{CostedCpu, Preset};
use evener_testbed::{Guest, Module, Throttle};
use evener_testing::drivers::libcrypto;
use evener_testing::requests::{Burst, JobSpec, judged, session};
use serde_json::Value;

use super::{Host, module_of_the_guest};

/// Long enough that the module is worth its while; the kernel makes one request of it, with a table of some 300 entries.
const BYTES: usize = 64 << 10;
const BURST_JOBS: usize = 24;
/// Requests that a module is to have met before the next order, and bursts that are to pass where it meets none.
const SOME: u64 = 4;
const BURSTS: usize = 8;
/// The papers' module.
const AM3358: &str = "emulated:am3358";
/// For what comes sooner or later, on a host that does other things for minutes. Assumed, not measured: 400 s, because a red test is then no matter of speed.
const TIMEOUT: Duration = Duration::from_secs(400);
/// Of the guest.
const LIFE: Duration = Duration::from_secs(1_500);

/// A guest with this program and a folder in common.
struct TestGuest {
    guest: Guest,
    share: tempfile::TempDir,
    program: String,
}

/// What a run said of itself at its end.
#[derive(Debug, PartialEq, Eq)]
struct RunOutput {
    by_module: u64,
    redone: u64,
    quarantine: String,
}

impl TestGuest {
    fn boot(module: Module) -> Option<Self> {
        let share = tempfile::tempdir().expect("a folder");
        let this = std::env::current_exe().expect("a test has a file");
        let builder = Guest::builder().program(&this).module(module).share(share.path()).limit(LIFE);
        let guest = builder.boot_or_skip()?;
        let program = this.file_name().expect("a file has a name").to_string_lossy().into_owned();
        Some(Self { guest, share, program })
    }

    /// A run in the guest, and `orders` meanwhile. All its results were compared there.
    fn run(&mut self, orders: impl FnOnce(&Self)) -> RunOutput {
        said(&self.run_part("until_told", orders))
    }

    /// One of this file's parts in the guest, and `orders` meanwhile; what it said.
    fn run_part(&mut self, part: &str, orders: impl FnOnce(&Self)) -> String {
        let end = self.share.path().join("end");
        fs::remove_file(&end).unwrap_or_default();
        let command = format!("{} --ignored --exact --nocapture orders::{part}", self.program);
        self.guest.start(&command).expect("it listens");
        orders(self);
        fs::write(&end, "").expect("a folder of ours");
        let outcome = self.guest.finish().expect("the guest answers");
        let told = outcome.expect_success().to_owned();
        assert_eq!(outcome.kernel_log.warnings(), [""; 0]);
        told
    }

    /// What all runs in this guest have said until now.
    fn told(&self) -> String {
        fs::read_to_string(&self.guest.live_output()[0]).unwrap_or_default()
    }

    fn wait_until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let since = Instant::now();
        while !is_so() {
            assert!(since.elapsed() < TIMEOUT, "{what} never came; the guest said\n{}", self.told());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lets the run go on for some bursts.
    fn pass(&self) {
        let bursts = || self.told().matches(BURST).count();
        let before = bursts();
        self.wait_until("a burst", || bursts() >= before + BURSTS);
    }

    /// Has the run go on until `count` is greater by `more`.
    fn wait_for(&self, what: &str, more: u64, count: impl Fn() -> u64) {
        let before = count();
        self.wait_until(what, || count() >= before + more);
    }
}

impl Host {
    fn order(&self, line: &str) {
        assert_eq!(self.asked(line)["ok"], true, "{line}");
    }

    fn count(&self, part: &str, name: &str) -> u64 {
        let report: Value = self.report();
        report[part][name].as_u64().expect("a count")
    }

    /// Has the run go on until the module has done some more requests.
    fn works(&self, test_guest: &TestGuest) {
        test_guest.wait_for("a request", SOME, || self.count("module", "completed"));
    }

    /// Gives an order and has the run go on until the module has met so many faults by it.
    fn fails(&self, test_guest: &TestGuest, order: &str, count: u64) {
        let faults = || self.count("module", "faults");
        let before = faults();
        self.order(order);
        test_guest.wait_until("a fault", || faults() >= before + count);
    }
}

#[test]
#[ignore = "a boot more"]
fn a_guest_s_run_survives_whatever_its_host_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = Host::start(folder.path(), AM3358);
    let module = Module::VhostUser { socket: host.socket.clone(), event_idx: true };
    let Some(mut test_guest) = TestGuest::boot(module) else { return };
    slowed_down_and_let_go(&mut test_guest, &host);
    some_errors(&mut test_guest, &host);
    for (order, faults, reason) in [("fault error 5", 8, "Errors"), ("fault wrong-bytes", 1, "WrongResult")] {
        let said = test_guest.run(|test_guest| {
            host.works(test_guest);
            host.fails(test_guest, order, faults);
            test_guest.pass();
        });
        assert!(said.quarantine.contains(reason) && said.redone >= faults, "{order}: {said:?}");
        host.order("fault none");
    }
    hangs_until_it_is_reset(&mut test_guest, &host);
    hangs_and_is_left(&mut test_guest, &host);
    // None of it is left.
    let said = test_guest.run(|test_guest| host.works(test_guest));
    assert!(said.by_module >= SOME && said.redone == 0 && said.quarantine == NO_QUARANTINE, "{said:?}");
    drop(test_guest);
    assert_eq!(host.stop().connections.broken_off, 0);
}

/// Eight times slower is not dead, and once it is quick again it takes jobs as before.
fn slowed_down_and_let_go(test_guest: &mut TestGuest, host: &Host) {
    let said = test_guest.run(|test_guest| {
        host.works(test_guest);
        host.order("pace 800");
        test_guest.pass();
        host.order("pace 100");
        host.works(test_guest);
    });
    assert!(said.by_module >= 2 * SOME, "{said:?}");
    assert_eq!((said.redone, &*said.quarantine), (0, NO_QUARANTINE));
}

/// What the host failed, that and no more was redone.
fn some_errors(test_guest: &mut TestGuest, host: &Host) {
    let before = host.count("totals", "failed");
    let said = test_guest.run(|test_guest| {
        host.works(test_guest);
        host.fails(test_guest, "fault error 5 every 3", 2);
        // Whether the module is asked again soon is the policy's business.
        test_guest.pass();
    });
    host.order("fault none");
    let failed = host.count("totals", "failed") - before;
    assert!(failed >= 2, "{failed} requests failed");
    assert_eq!((said.redone, &*said.quarantine), (failed, NO_QUARANTINE));
}

fn hangs_until_it_is_reset(test_guest: &mut TestGuest, host: &Host) {
    let end = test_guest.share.path().join("end");
    let said = test_guest.run(|test_guest| {
        let ends = || test_guest.told().matches(END_OF_RUN).count();
        let before = ends();
        host.works(test_guest);
        host.fails(test_guest, "fault hang", 1);
        // These bursts are whole only if what the module holds was redone; and the run ends while it still hangs.
        test_guest.pass();
        fs::write(&end, "").expect("a folder of ours");
        test_guest.wait_until("the end of the run", || ends() > before);
        // A process whose threads the kernel holds does not end before the host answers.
        host.order("fault none");
        host.order("reset");
    });
    assert!(said.quarantine.contains("Hung") && said.redone >= 1, "{said:?}");
}

/// A caller that waits for a request alone leaves when its time is over, and has its text as it was.
fn hangs_and_is_left(test_guest: &mut TestGuest, host: &Host) {
    let told = test_guest.run_part("until_it_is_late", |test_guest| {
        let left = || test_guest.told().matches(LEFT).count();
        host.works(test_guest);
        host.fails(test_guest, "fault hang", 1);
        test_guest.wait_until("a caller that leaves", || left() > 0);
        // What the kernel holds ends before the process can.
        host.order("fault none");
        host.order("reset");
    });
    assert!(told.contains(LEFT), "{told}");
}

const LEFT: &str = "left, with the text as it was, after requests that were right: ";

#[test]
#[ignore = "a part of others, which run it in a guest"]
fn until_it_is_late() {
    let Some(module) = module_of_the_guest() else { return };
    let driver = module.timed().expect("AF_ALG has a driver whom callers may leave");
    let key = session(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, 13);
    for count in 0.. {
        let spec = JobSpec::noisy(&key, BYTES, count);
        let (mut iv, mut text) = ([0; 16], InPlace { space: spec.input.clone() });
        iv.copy_from_slice(&spec.iv);
        match driver.run_single(key.with_iv(&iv), &mut text, Nanos::from_millis(2_000)) {
            Ok(()) => assert!(text.space == judged(&spec).output, "{}", spec.what()),
            Err(Unanswered::Late) => {
                assert!(text.space == spec.input, "{}", spec.what());
                return println!("{LEFT}{count}");
            }
            Err(failed) => panic!("{failed:?}"),
        }
    }
}

/// A text that its result replaces.
struct InPlace {
    space: Vec<u8>,
}

impl Text for InPlace {
    fn input(&self) -> &[u8] {
        &self.space
    }

    fn take(&mut self, result: &[u8]) {
        self.space.copy_from_slice(result);
    }
}

#[test]
#[ignore = "a boot more"]
fn a_guest_s_run_goes_on_while_qemu_throttles_its_module() {
    let Some(mut test_guest) = TestGuest::boot(Module::BuiltIn(Throttle::default())) else { return };
    let counts = |test_guest: &TestGuest| {
        let mut qmp = test_guest.guest.qmp().expect("QEMU is there");
        qmp.module_counts().expect("it counts").encrypted_count
    };
    let before = counts(&test_guest);
    let said = test_guest.run(|test_guest| {
        let throttle = |bytes_per_s| {
            let mut qmp = test_guest.guest.qmp().expect("QEMU is there");
            qmp.throttle(Throttle { bytes_per_s, ops_per_s: 0 }).expect("it throttles");
        };
        test_guest.wait_for("a request before the throttle", SOME, || counts(test_guest));
        throttle(SLOW_BYTES_PER_S);
        test_guest.pass();
        throttle(0);
        test_guest.wait_for("a request after it", SOME, || counts(test_guest));
    });
    assert_eq!(said.by_module, counts(&test_guest) - before, "what the run says, and QEMU");
    assert_eq!((said.redone, &*said.quarantine), (0, NO_QUARANTINE));
}

/// A request in 8 ms: slow, and not so slow that it is asked again only after long.
const SLOW_BYTES_PER_S: u64 = 8_000_000;

const BURST: &str = "a burst is right";
const END_OF_RUN: &str = "by module, redone, quarantine: ";
const NO_QUARANTINE: &str = "None";

fn said(told: &str) -> RunOutput {
    let line = told.lines().find_map(|line| Some(line.split_once(END_OF_RUN)?.1)).expect("a run says it");
    let words: Vec<&str> = line.splitn(3, ' ').collect();
    let [by_module, redone, quarantine] = words[..] else { unreachable!("three of them: {line}") };
    let count = |word: &str| word.parse().expect("a count");
    RunOutput { by_module: count(by_module), redone: count(redone), quarantine: quarantine.to_owned() }
}

#[test]
#[ignore = "a part of others, which run it in a guest"]
fn until_told() {
    let Some(module) = module_of_the_guest() else { return };
    let key = session(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, 11);
    // A core as slow as the papers', so that the module is worth its while on whatever machine the guest is emulated.
    let core: Preset = AM3358.parse().expect("a preset");
    let core_drivers =
        || CoreDrivers::new(Box::new(CostedCpu::new(Box::new(libcrypto()), core.clone())), None);
    let module = ModuleSetup { check_every: 1, ..ModuleSetup::new(module.driver(), core_drivers()) };
    let setup = evener::Setup {
        policy: Policy::Adaptive,
        modules: vec![module],
        callers: 1,
        learned: costs(&key, &core),
        ..Default::default()
    };
    // Memory that lives as long as any driver.
    let spaces = vec![vec![0; BYTES]; BURST_JOBS].leak();
    let mut jobs: Vec<_> = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
    let ((), report) = evener::run(setup, |runtime| {
        let mut caller = runtime.caller(core_drivers());
        let rounds = (0..).step_by(BURST_JOBS).take_while(|_| !Path::new("/share/end").exists());
        rounds.for_each(|first| burst(&mut caller, &mut jobs, &key, first));
    });
    let worker = report.workers.iter().find(|worker| worker.module.is_some()).expect("a module's worker");
    let quarantine = worker.module.as_ref().and_then(|module| module.quarantine);
    let redone: u64 = worker.methods.iter().map(|tally| tally.redone).sum();
    println!("{END_OF_RUN}{} {redone} {quarantine:?}", report.modules().jobs);
}

/// What earlier runs may have learned: that the module is worth a try. The rest this run learns.
fn costs(key: &Session, core: &Preset) -> Estimator {
    let c = core.cost(key.algorithm(), BYTES).expect("it does that").c.as_secs_f64() * 1e9;
    let class = Class::of(key.algorithm(), key.direction(), BYTES, false);
    let known = |ns| Learned::kept(ns, BYTES as f64, SAMPLES);
    let mut costs = Estimator::new(1);
    costs.keep_module(0, class, OnModule { d: known(c / 8.0), h: known(c / 2.0), ..OnModule::default() });
    costs
}

const SAMPLES: u32 = 5;

fn burst<'m>(caller: &mut Caller<'_, 'm>, jobs: &mut Burst<'m>, key: &Arc<Session>, first: usize) {
    let specs: Vec<JobSpec> =
        (first..first + BURST_JOBS).map(|seed| JobSpec::noisy(key, BYTES, seed)).collect();
    for (job, spec) in jobs.iter_mut().zip(&specs) {
        job.space_mut().copy_from_slice(&spec.input);
        job.arm(Arc::clone(key), &spec.iv, BYTES);
    }
    caller.crypt(jobs);
    // They come back in the order in which they went.
    for (job, spec) in jobs.iter().zip(&specs) {
        assert_eq!(job.outcome(), Outcome::Done { written: BYTES });
        assert!(job.output() == judged(spec).output, "{}", spec.what());
    }
    println!("{BURST}");
}
