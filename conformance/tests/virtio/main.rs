//! A virtio-crypto device that programs of a guest drive themselves: what they get is libcrypto's, what they sent is what QEMU counted, and
//! a device that another process has, that hangs or whose owner was killed or has forked does no harm.
//!
//! Path: one guest with a module for user space -> this program in it, one ignored test after the other (`sessions.rs`, `processes.rs`,
//! `lazy.rs`, `hangs.rs`), and programs as they are installed (`programs.rs`) -> QEMU's counts and throttle from outside -> the kernel's log.

#![allow(clippy::print_stdout, clippy::panic, reason = "helpers of tests are tests; what is skipped is said")]

mod hangs;
mod lazy;
mod processes;
mod programs;
mod sessions;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use evener_core::{Nanos, Session};
use evener_driver_virtio::Module;
use evener_testbed::{Guest, ModuleCounts, Outcome, Qmp, Throttle, USER_SPACE_MODULE};
use evener_testing::requests::{Burst, JobSpec, Route, all_by, answers, judged, kinds};

use programs::Built;

/// Measured: 23 s, on a quiet host.
const LIFE: Duration = Duration::from_secs(500);

/// For what comes sooner or later, on a host that does other things. Assumed, not measured: 60 s, because a red test is then no matter of speed.
const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn what_is_claimed_of_a_device_that_programs_drive_themselves_holds_in_the_guest() {
    let Some(mut test_guest) = TestGuest::boot() else { return };
    sessions::are_libcryptos_and_counted(&mut test_guest);
    processes::do_not_disturb_each_other(&mut test_guest);
    lazy::is_reserved_and_taken(&mut test_guest);
    hangs::are_left(&mut test_guest);
    if test_guest.built.has_command() {
        programs::say_why_there_is_no_device(&mut test_guest);
    }
    programs::encrypt_by_it_unmodified(&mut test_guest);
    let log = test_guest.run("true").kernel_log;
    assert_eq!(log.warnings(), [""; 0]);
    let faults: Vec<&str> = log.0.lines().filter(|line| is_fault(line)).collect();
    assert_eq!(faults, [""; 0], "the device reached for what it was not lent");
    test_guest.guest.shut_down().expect("the guest ends");
}

/// As Linux tells that an IOMMU has stopped a device.
fn is_fault(line: &str) -> bool {
    line.contains("DMAR") && line.contains("fault")
}

#[test]
fn an_access_that_the_iommu_stopped_is_seen_in_the_log() {
    let fault = "<3>[   51.3] DMAR: [DMA Write NO_PASID] Request device [00:10.0] fault addr 0x1000000000 [fault reason 0x05]";
    assert!(
        is_fault(fault)
            && !is_fault("<6>[    1.1] DMAR: Intel(R) Virtualization Technology for Directed I/O")
    );
}

/// A guest with this program, and programs as they are installed.
struct TestGuest {
    guest: Guest,
    built: Built,
    share: tempfile::TempDir,
    program: String,
    /// None where this QEMU neither counts nor throttles.
    qmp: Option<Qmp>,
}

impl TestGuest {
    fn boot() -> Option<Self> {
        let share = tempfile::tempdir().expect("a folder");
        let this = std::env::current_exe().expect("a test has a file");
        let builder = Guest::builder().user_space_module().program(&this).share(share.path()).limit(LIFE);
        let built = Built::find();
        let guest = built.bring(builder).boot_or_skip()?;
        let program = this.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let mut qmp = guest.qmp().expect("QEMU listens");
        let counts = qmp.user_space_module_counts().is_ok();
        if !counts {
            println!("skipped: this QEMU neither counts what a module does nor slows it down");
        }
        Some(Self { guest, built, share, program, qmp: counts.then_some(qmp) })
    }

    /// Runs a line of shell, which has to end well.
    fn run(&mut self, command: &str) -> Outcome {
        let outcome = self.guest.run(command).expect("the guest answers");
        outcome.expect_success();
        outcome
    }

    /// Runs one of the tests that are for the guest; says what it said.
    fn test(&mut self, name: &str) -> String {
        self.begin(name);
        self.end(name)
    }

    fn begin(&mut self, name: &str) {
        let command = format!("{} --ignored --exact --nocapture {name}", self.program);
        self.guest.start(&command).expect("it listens");
    }

    fn end(&mut self, name: &str) -> String {
        let outcome = self.guest.finish().expect("the guest answers");
        let told = outcome.expect_success().to_owned();
        assert!(told.contains("test result: ok. 1 passed;") && !told.contains("skipped: "), "{name}: {told}");
        println!("{name}: {} s", outcome.guest_s);
        told
    }

    /// What QEMU has counted so far.
    fn counts(&mut self) -> Option<ModuleCounts> {
        Some(self.qmp.as_mut()?.user_space_module_counts().expect("it counted before"))
    }

    /// Lets the device do so many bytes in a second; as many as it can for 0.
    fn let_pass(&mut self, bytes_per_s: u64) {
        let qmp = self.qmp.as_mut().expect("asked for where there is one");
        qmp.throttle_user_space_module(Throttle { bytes_per_s, ops_per_s: 0 }).expect("this QEMU can");
    }

    /// Runs a test by a device that does no more than a request or two until the test [waits](wait_for_the_host) for that to end.
    fn test_while_it_hangs(&mut self, name: &str) {
        let go = self.share.path().join(GO);
        self.let_pass(1);
        let [stdout, _] = self.guest.live_output();
        let before = lines(&stdout).len();
        self.begin(name);
        let since = Instant::now();
        while !lines(&stdout)[before..]
            .iter()
            .any(|line| line.contains(WAITS) || line.contains("test result"))
        {
            assert!(since.elapsed() < TIMEOUT, "{name}: {:?}", &lines(&stdout)[before..]);
            thread::sleep(Duration::from_millis(10));
        }
        self.let_pass(0);
        fs::write(&go, "").expect("the folder is ours");
        self.end(name);
        fs::remove_file(&go).expect("it was there");
    }
}

fn lines(path: &Path) -> Vec<String> {
    let text = fs::read(path).expect("it is there from the boot on");
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}

const WAITS: &str = "waits for the host";
const GO: &str = "go";

/// In the guest: waits until the device works again. What it was in the midst of QEMU finishes then, at addresses of before; until then
/// no other process should get that memory.
fn wait_for_the_host() {
    println!("{WAITS}");
    let (go, since) = (PathBuf::from("/share").join(GO), Instant::now());
    while !go.exists() {
        assert!(since.elapsed() < TIMEOUT, "the host does nothing");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whether this is the guest; elsewhere there is nothing to be tested, which is printed.
fn is_here() -> bool {
    let driver = fs::read_link(format!("/sys/bus/pci/devices/{USER_SPACE_MODULE}/driver"));
    let is_here = driver.is_ok_and(|driver| driver.ends_with("vfio-pci"));
    if !is_here {
        println!("skipped: there is no such device outside the guest");
    }
    is_here
}

/// In the guest: the device, which is asked nothing yet.
fn device() -> Option<Module> {
    is_here().then(|| Module::connect(&name()).expect("no process has it"))
}

fn name() -> evener_driver_virtio::ModuleName {
    format!("virtio:{USER_SPACE_MODULE}").parse().expect("a name")
}

/// What a device does: sessions with keys by `seed`.
fn sessions_of(module: &Module, seed: usize) -> Vec<Arc<Session>> {
    kinds(seed).filter(|session| module.supports(session.algorithm(), session.direction())).collect()
}

/// A device's driver, given jobs as it takes them.
struct Queued<'a>(&'a Module);

impl Route for Queued<'_> {
    fn run<'m>(&mut self, jobs: Burst<'m>) -> Burst<'m> {
        all_by(&mut *self.0.driver(), jobs, SILENCE)
    }
}

/// After which a device does not answer.
const SILENCE: Nanos = Nanos::from_millis(20_000);

/// Compares with libcrypto what comes of these along a way.
fn are_right(route: &mut impl Route, specs: &[JobSpec]) {
    let came = answers(route, specs);
    specs
        .iter()
        .zip(&came)
        .for_each(|(spec, answer)| assert!(*answer == judged(spec), "{}: {:?}", spec.what(), answer.outcome));
}

/// A device that was opened does what it says, known answers included.
fn works() {
    let module = Module::open(&name()).expect("it is there and computes right");
    let specs: Vec<JobSpec> = sessions_of(&module, 3)
        .iter()
        .flat_map(|session| [64, 4_096].map(|bytes| JobSpec::noisy(session, bytes, bytes)))
        .collect();
    assert!(!specs.is_empty());
    are_right(&mut Queued(&module), &specs);
}
