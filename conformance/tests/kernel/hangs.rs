//! Nodes that stall in mid-request, or whose process is killed there: the module is out, and every job is done.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use evener::{CoreDrivers, Quarantine};
use evener_core::{Algorithm, Direction, Nanos, Padding};
use evener_driver_kernel::Module;
use evener_testing::drivers::watched;
use evener_testing::programs::Process;
use evener_testing::requests::{JobSpec, answers, judged, session};

use super::modules::{ByRun, TIMEOUT};
use super::nodes::{with_node_at, with_node_of};

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
    let mut node = Process::start("hangs::serves_a_node_until_it_is_killed", &[(TO_BE_KILLED, "1".as_ref())]);
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
