//! One host that serves a QEMU guest and local programs at the same time: each gets what libcrypto gives, each client's count is what
//! that client says, and the module's own count is their sum.
//!
//! Path: a host with an emulated module in this process -> a guest whose virtio-crypto device it is, and this program as two
//! processes with the driver `hosted` -> they go on until the guest has done its jobs -> counts from all sides.

#![allow(clippy::print_stdout, clippy::panic, reason = "what programs say; helpers of tests are tests")]

mod bound;
mod orders;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines, Write as _, stdin};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use evener::core::plan::Policy;
use evener::{Cancel, CoreDrivers, ModuleSetup};
use evener_core::{Algorithm, Direction, Job, Nanos, Outcome, Padding, QueuedDriver, Session, known};
use evener_driver_emulated::{Emulated, Preset};
use evener_host::{Access, Limits, Report, Setup, Socket};
use evener_testbed::{Guest, Module};
use evener_testing::drivers::{Probe, Probed, libcrypto};
use evener_testing::requests::{Burst, JobSpec, Route, answers, judged, session};

const LOCALS: u64 = 2;
const GUEST_JOBS: usize = 200;
const BYTES: usize = 4_096;
/// Keys of each client.
const KEYS: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(60);
const LIFE: Duration = Duration::from_secs(400);

/// Not so quick that a guest under emulation never finds it busy.
const MODULE: &str = "emulated:d=0+0,h=40000+36000";
/// So slow that it is at work when it is removed.
const SLOW_MODULE: &str = "emulated:d=0+0,h=30000000+0";

#[test]
#[ignore = "a boot more"]
fn a_guest_and_local_programs_share_a_host_and_the_modules_count_is_the_sum_of_theirs() {
    [true, false].into_iter().for_each(share_a_host);
}

/// With wake-ups asked for by index, or by flags.
fn share_a_host(event_idx: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let host = Host::start(folder.path(), MODULE);
    let this = std::env::current_exe().expect("a test has a file");
    let module = Module::VhostUser { socket: host.socket.clone(), event_idx };
    let Some(mut guest) = Guest::builder().program(&this).module(module).limit(LIFE).boot_or_skip() else {
        return;
    };
    let mut locals: Vec<Local> = (0..LOCALS).map(|_| Local::start(&this, &host.socket)).collect();
    let before = host.report();
    let name = this.file_name().expect("a file has a name").to_string_lossy();
    guest.start(&format!("{name} --ignored --exact --nocapture in_the_guest")).expect("it listens");
    locals.iter_mut().for_each(|local| local.tell("go"));
    let outcome = guest.finish().expect("the guest answers");
    let guests = said(outcome.expect_success().lines().map(str::to_owned));
    assert_eq!(outcome.kernel_log.warnings(), [""; 0]);
    let mut told: BTreeMap<i64, u64> =
        locals.iter_mut().map(|local| (i64::from(local.child.id()), local.end())).collect();
    let after = host.report();
    let counts = difference(&before, &after);
    let all: u64 = told.values().sum::<u64>() + guests;
    assert_eq!(guests, GUEST_JOBS as u64);
    let of_guest: Vec<i64> = counts.keys().filter(|pid| !told.contains_key(pid)).copied().collect();
    assert_eq!(of_guest.len(), 1, "{after:#}");
    told.insert(of_guest[0], guests);
    assert_eq!(counts, told, "by process: what the host counted, what each one says");
    assert!(told.values().all(|&jobs| jobs > 0));
    let module = |report: &serde_json::Value| report["module"]["completed"].as_u64().expect("a count");
    assert_eq!(module(&after) - module(&before), all, "the module's own count");
    drop(locals);
    guest.shut_down().expect("the guest ends");
    let report = host.stop();
    assert_eq!((report.totals.failed, report.totals.refused, report.connections.broken_off), (0, 0, 0));
    println!("event_idx {event_idx}: {guests} of the guest, {told:?} by process");
}

#[test]
#[ignore = "a boot more"]
fn a_guest_whose_module_is_removed_in_mid_request_does_all_jobs_and_says_who_did_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = Host::start(folder.path(), SLOW_MODULE);
    let this = std::env::current_exe().expect("a test has a file");
    let module = Module::VhostUser { socket: host.socket.clone(), event_idx: true };
    let Some(mut guest) = Guest::builder().program(&this).module(module).limit(LIFE).boot_or_skip() else {
        return;
    };
    let name = this.file_name().expect("a file has a name").to_string_lossy();
    // A thread whose request the kernel never answers keeps its process from ending, so the test does not wait for that.
    let begin = format!("({name} --ignored --exact --nocapture until_it_is_removed >/tmp/said 2>&1 &)");
    let wait = "for i in $(seq 1200); do grep -q '^end' /tmp/said && break; sleep 0.1; done; cat /tmp/said";
    let outcome = guest.run(&format!("{begin}; {wait}")).expect("the guest answers");
    let told = outcome.expect_success();
    println!("{told}");
    assert!(told.contains(ALL_RIGHT), "{told}");
    // Linux 6.1 complains of its own driver, which takes an algorithm away from under open sockets; of nothing else.
    let warnings = outcome.kernel_log.warnings();
    let complaints =
        warnings.iter().filter(|line| ["WARNING:", "BUG:", "Oops"].iter().any(|word| line.contains(word)));
    for line in complaints {
        assert!(line.contains("crypto_unregister_alg"), "{}", warnings.join("\n"));
    }
}

/// Requests of each client since `before`, by process.
fn difference(before: &serde_json::Value, after: &serde_json::Value) -> BTreeMap<i64, u64> {
    let counts = |report: &serde_json::Value| -> BTreeMap<i64, u64> {
        let clients = report["clients"].as_array().expect("a list");
        let count = |client: &serde_json::Value| {
            (
                client["peer"]["pid"].as_i64().expect("a number"),
                client["totals"]["requests"].as_u64().expect("a count"),
            )
        };
        clients.iter().map(count).collect()
    };
    let before = counts(before);
    counts(after).into_iter().map(|(pid, count)| (pid, count - before.get(&pid).unwrap_or(&0))).collect()
}

/// The host, in a thread.
struct Host {
    socket: std::path::PathBuf,
    control: std::path::PathBuf,
    cancel: Cancel,
    thread: thread::JoinHandle<Report>,
}

impl Host {
    fn start(folder: &Path, module: &str) -> Self {
        let (socket, control) = (folder.join("host"), folder.join("control"));
        let preset: Preset = module.parse().expect("a preset");
        let module =
            evener_host::Module::emulated(Emulated::new(preset.without_core_time(), Box::new(libcrypto())));
        let setup = Setup {
            socket: Socket::Path(socket.clone()),
            control: Some(control.clone()),
            access: Access::default(),
            limits: Limits::default(),
            module,
        };
        let cancel = Cancel::default();
        let (of_thread, (ready, is_ready)) = (cancel.clone(), channel());
        let serve =
            move || evener_host::run(setup, &of_thread, move || ready.send(()).expect("the test waits"));
        let thread = thread::spawn(move || serve().expect("it serves"));
        is_ready.recv().expect("it starts");
        Self { socket, control, cancel, thread }
    }

    fn report(&self) -> serde_json::Value {
        self.asked("report")
    }

    /// What it answers to one line on its control socket.
    fn asked(&self, line: &str) -> serde_json::Value {
        asked_at(&self.control, line).expect("it answers")
    }

    fn stop(self) -> Report {
        self.cancel.cancel();
        self.thread.join().expect("no panic")
    }
}

fn asked_at(control: &Path, line: &str) -> std::io::Result<serde_json::Value> {
    let mut stream = UnixStream::connect(control)?;
    writeln!(stream, "{line}")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

/// This program as a client of the host.
struct Local {
    child: Child,
    orders: ChildStdin,
    says: Lines<BufReader<ChildStdout>>,
}

impl Local {
    fn start(this: &Path, socket: &Path) -> Self {
        let mut child = Command::new(this)
            .args(["--ignored", "--exact", "--nocapture", "beside_the_guest"])
            .env(SOCKET, socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let orders = child.stdin.take().expect("piped");
        let mut says = BufReader::new(child.stdout.take().expect("piped")).lines();
        assert!(
            says.by_ref().any(|line| line.expect("a line").ends_with(READY)),
            "a local client is not ready"
        );
        Self { child, orders, says }
    }

    fn tell(&mut self, word: &str) {
        writeln!(self.orders, "{word}").expect("it listens");
    }

    fn end(&mut self) -> u64 {
        self.tell("end");
        said(self.says.by_ref().map(|line| line.expect("a line")))
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}

/// Name of the variable that says where the host is.
const SOCKET: &str = "HOST_TEST_SOCKET";
const READY: &str = "connected";
const JOBS: &str = "jobs compared: ";

fn said(mut lines: impl Iterator<Item = String>) -> u64 {
    let line = lines.find_map(|line| Some(line.split_once(JOBS)?.1.to_owned()));
    line.expect("it says how many jobs it did").parse().expect("a number")
}

fn keys(seed: usize) -> Vec<Arc<Session>> {
    let key = |number| session(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, seed + number);
    (0..KEYS).map(key).collect()
}

/// Runs jobs in rounds, all compared with libcrypto's, until `is_over` after one.
fn work(
    driver: &mut dyn QueuedDriver<'static>,
    seed: usize,
    round: usize,
    mut is_over: impl FnMut(usize) -> bool,
) {
    let (keys, mut count) = (keys(seed), 0);
    while !is_over(count) {
        let specs: Vec<JobSpec> = (count..count + round)
            .map(|at| JobSpec::noisy(&keys[at % KEYS], BYTES, seed + at % 97))
            .collect();
        let mut jobs: Vec<_> = specs.iter().enumerate().map(|(mark, spec)| job(spec, mark as u64)).collect();
        let since = Instant::now();
        assert!(known::ask(driver, &mut jobs, || since.elapsed() > TIMEOUT), "all come back");
        jobs.sort_by_key(|job| job.mark);
        for (job, (mark, spec)) in jobs.iter().zip(specs.iter().enumerate()) {
            assert_eq!((job.mark, job.outcome()), (mark as u64, Outcome::Done { written: BYTES }));
            assert!(job.output() == judged(spec).output, "{}", spec.what());
        }
        count += round;
    }
    println!("{JOBS}{count}");
}

fn job(spec: &JobSpec, mark: u64) -> Box<Job<'static>> {
    let mut job = Job::in_place(spec.input.clone().leak());
    job.arm(Arc::clone(&spec.session), &spec.iv, BYTES);
    job.mark = mark;
    job
}

/// In the guest: its module. Bound and not opened: what it would be asked first is none of the jobs that are counted.
fn module_of_the_guest() -> Option<evener_driver_kernel::Module> {
    let name = "afalg:virtio_crypto_aes_cbc".parse().expect("a name");
    let module = evener_driver_kernel::Module::bind(&name);
    module.inspect_err(|_| println!("skipped: there is no such module outside the guest")).ok()
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn in_the_guest() {
    let Some(module) = module_of_the_guest() else { return };
    work(&mut *module.driver(), 1, 20, |count| count >= GUEST_JOBS);
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn until_it_is_removed() {
    let Some(module) = module_of_the_guest() else { return };
    let key = session(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, 7);
    let specs: Vec<JobSpec> = (0..120).map(|seed| JobSpec::noisy(&key, BYTES, seed)).collect();
    let (tell, told) = channel();
    let mut route = ByModule { module: &module, tell, report: evener::Report::default() };
    let removal = thread::spawn(move || {
        told.recv().expect("it works");
        let driver = Path::new("/sys/bus/virtio/drivers/virtio_crypto");
        let devices = std::fs::read_dir(driver).expect("the driver is there").filter_map(Result::ok);
        let device =
            devices.map(|entry| entry.file_name()).find(|name| name.to_string_lossy().starts_with("virtio"));
        let device = device.expect("its device is there");
        std::fs::write(driver.join("unbind"), device.to_string_lossy().as_bytes())
            .expect("it can be removed");
    });
    let came = answers(&mut route, &specs);
    assert!(came.iter().zip(&specs).all(|(answer, spec)| *answer == judged(spec)), "all jobs are right");
    let report = route.report;
    let worker = report.workers.iter().find(|worker| worker.module.is_some()).expect("a module's worker");
    let served = worker.module.as_ref().expect("as said");
    let redone: u64 = worker.methods.iter().map(|tally| tally.redone).sum();
    let by_module = report.modules().jobs;
    println!("{by_module} jobs by the module, {redone} redone, {:?}", served.quarantine);
    assert!((REMOVED_AFTER..specs.len() as u64).contains(&by_module), "{served:?}");
    assert!(redone > 0 && served.quarantine.is_some(), "what it held, and counted");
    println!("{ALL_RIGHT}; the removal is over: {}\nend", removal.is_finished());
    // Threads that stand in the kernel keep the process, but not its output.
    std::process::exit(0);
}

const ALL_RIGHT: &str = "all jobs are right and the module is out";

/// After which a module is taken for dead.
const SILENCE: Nanos = Nanos::from_millis(5_000);

/// Jobs of the module after which it is removed.
const REMOVED_AFTER: u64 = 20;

/// A module under a run, which redoes what the module leaves.
struct ByModule<'a> {
    module: &'a evener_driver_kernel::Module,
    tell: Sender<()>,
    report: evener::Report,
}

impl Route for ByModule<'_> {
    fn run<'m>(&mut self, mut jobs: Burst<'m>) -> Burst<'m> {
        let core_drivers = || CoreDrivers::new(Box::new(libcrypto()), None);
        let driver = Probed::new(self.module.driver(), Watched { done: 0, tell: self.tell.clone() });
        let module = ModuleSetup { timeout: SILENCE, ..ModuleSetup::new(Box::new(driver), core_drivers()) };
        let setup = evener::Setup {
            policy: Policy::ModuleOnly,
            modules: vec![module],
            callers: 1,
            ..Default::default()
        };
        let (jobs, report) = evener::run(setup, |runtime| {
            runtime.caller(core_drivers()).crypt(&mut jobs);
            jobs
        });
        self.report = report;
        jobs
    }
}

/// Tells when a module has done [`REMOVED_AFTER`] jobs and holds others.
struct Watched {
    done: u64,
    tell: Sender<()>,
}

impl<'m> Probe<'m> for Watched {
    fn after_submit(&mut self, is_taken: bool, _: usize) {
        if is_taken && self.done >= REMOVED_AFTER {
            // Only the first time is listened to.
            self.tell.send(()).unwrap_or_default();
        }
    }

    fn after_poll(&mut self, came: &mut [Box<Job<'m>>], _: usize) {
        self.done += came.len() as u64;
    }
}

#[test]
#[ignore = "a part of another one, which runs it beside a guest"]
fn beside_the_guest() {
    let Ok(socket) = std::env::var(SOCKET) else { return println!("skipped: {SOCKET} names no host") };
    let name = format!("hosted:{socket}").parse().expect("a name");
    let module = evener_driver_virtio::Module::open(&name).expect("the host serves");
    println!("{READY}");
    let orders = orders();
    assert_eq!(orders.recv().as_deref(), Ok("go"));
    let seed = 1_000 + usize::try_from(std::process::id()).expect("a number");
    let mut driver = module.driver();
    work(&mut *driver, seed, 32, |_| !matches!(orders.try_recv(), Err(TryRecvError::Empty)));
    // A client that leaves is no longer in the host's report.
    orders.recv().expect_err("the other one ends this process");
}

/// Lines of standard input, as they come.
fn orders() -> Receiver<String> {
    let (tell, orders) = channel();
    thread::spawn(move || stdin().lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
    orders
}
