//! Many clients at once: as many as a host takes, of which one reads no answers and one is silent, processes that are killed at any
//! moment, one client too many, and clients of several cores.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test")]

mod support;

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use evener::CoreDrivers;
use evener_core::{Algorithm, Direction, HasEnded, InlineDriver, Job, Profile};
use evener_driver_libcrypto::Libcrypto;
use evener_driver_virtio::{ConnectionError, Module as HostedModule, OpenError};
use evener_host::{Limits, Module, Socket};
use evener_testing::hosts::{Host, core};
use evener_testing::noise;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use support::{ALL_FEATURES, Raw, cipher, halves, judge};

/// As many clients as a host takes by default, but two; fewer where this process may not have four open files for each, on both sides.
fn good_clients() -> usize {
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let allowed = usize::try_from(most.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    (allowed.saturating_sub(300) / 12).min(Limits::default().clients_max - 2)
}

fn clients(report: &Value) -> usize {
    report["clients"].as_array().unwrap().len()
}

/// One request with a key of its own, judged by libcrypto.
fn is_served(raw: &mut Raw, number: u64) {
    let (key, plain) = (noise(number, 16), noise(number + 1, 1_024));
    let session = raw.open_cbc(&key, true);
    let (got, status) = raw.request(&[&cipher(true, session, 1_024), &[9; 16], &plain], 1_024).unwrap();
    let right = judge(Algorithm::Aes128Cbc, Direction::Encrypt, [&key, &[9; 16], &[], &plain, &[]]);
    assert!(status == 0 && got == right.unwrap().0, "client {number}");
}

fn opened(host: &Host) -> Result<HostedModule, OpenError> {
    HostedModule::connect(&format!("hosted:{}", host.socket().display()).parse().unwrap())
}

/// When `gone` have gone, there is space for another client.
fn serves_another_when<C>(gone: C, host: &Host) {
    drop(gone);
    host.wait_for("space", |report| clients(report) == 0);
    is_served(&mut Raw::ready(&host.socket(), ALL_FEATURES), 1);
}

/// Names of this process's threads.
fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.starts_with("evener-")).collect()
}

#[test]
fn a_silent_client_and_one_that_reads_no_answers_harm_none_of_1022_others_and_none_costs_a_thread() {
    let good = good_clients();
    // Else it would be put out.
    let host = Host::with(core(), Limits { silence_max: Duration::from_secs(3_600), ..Limits::default() });
    let mut silent = Raw::connect(&host.socket());
    silent.stream.write_all(&halves(&[26])).unwrap();
    let mut deaf = Raw::ready(&host.socket(), ALL_FEATURES);
    deaf.stream.set_nonblocking(true).unwrap();
    // Until neither side has space for more of these.
    let question = halves(&[1, 1, 0]).repeat(1_000);
    while deaf.stream.write(&question).map_err(|error| error.kind()) != Err(ErrorKind::WouldBlock) {}
    let mut all: Vec<Raw> = (0..good).map(|_| Raw::ready(&host.socket(), ALL_FEATURES)).collect();
    host.wait_for("all there", |report| clients(report) == good + 2);
    if good + 2 == 1_024 {
        let one_more = opened(&host);
        let refused = one_more.unwrap_err().to_string();
        assert!(refused.contains("the host serves 1024 clients already"), "{refused}");
    } else {
        println!("{good} clients, for this process may have no more open files");
    }
    thread::scope(|scope| {
        for (part, some) in all.chunks_mut(good.div_ceil(4)).enumerate() {
            scope.spawn(move || {
                for round in 0..3 {
                    let number = |index: usize| (part * good + index) as u64 * 10 + round;
                    some.iter_mut().enumerate().for_each(|(index, raw)| is_served(raw, number(index)));
                }
            });
        }
    });
    let report = host.order("report");
    assert_eq!((&report["totals"]["requests"], &report["broken_off"]), (&json!(3 * good), &json!(0)));
    // Each test of this process may have a host of one or two cores.
    assert!(threads().len() <= 20, "{:?}", threads());
    drop(all);
    host.wait_for("two left", |report| clients(report) == 2);
}

#[test]
fn one_client_too_many_learns_how_many_there_are_and_a_plain_front_end_lacks_sessions() {
    let host = Host::with(core(), Limits { clients_max: 2, ..Limits::default() });
    let two = [(); 2].map(|()| opened(&host).unwrap());
    let refused = opened(&host).unwrap_err();
    assert!(
        matches!(refused, OpenError::Unreachable { error: ConnectionError::Full { clients: 2 }, .. }),
        "{refused}"
    );
    let mut plain = Raw::connect(&host.socket());
    plain.send(3, &[], &[]);
    assert_eq!(plain.ask(1), ALL_FEATURES);
    assert_eq!(plain.ask(15) & 0xFF_FFFF_FFFF, 0, "neither sessions nor anything else that others know");
    assert!(plain.ends());
    // One that asks nothing is not waited for, and keeps no other out.
    let _silent = Raw::connect(&host.socket());
    serves_another_when(two, &host);
    assert_eq!(host.stop().connections.turned_away, 3);
}

#[test]
fn who_says_nothing_or_stops_in_a_message_is_put_out_and_who_has_said_something_may_rest() {
    let limits = Limits { silence_max: Duration::from_millis(400), ..Limits::default() };
    let host = Host::with(core(), limits);
    let mut resting = Raw::ready(&host.socket(), ALL_FEATURES);
    let mut waiting = Raw::connect(&host.socket());
    assert_eq!(waiting.ask(1), ALL_FEATURES, "one message is enough");
    let mut silent = Raw::connect(&host.socket());
    let mut stuck = Raw::ready(&host.socket(), ALL_FEATURES);
    // A payload of 1072 bytes is announced, and its first comes; another one comes each 100 ms, which is no excuse.
    stuck.stream.write_all(&halves(&[26, 1, 1_072, 0])).unwrap();
    let mut trickle = stuck.stream.try_clone().unwrap();
    thread::spawn(move || {
        while trickle.write_all(&[0]).is_ok() {
            thread::sleep(Duration::from_millis(100));
        }
    });
    let mut byte = [0];
    assert_eq!(silent.stream.read(&mut byte).ok(), Some(0), "its connection ends, though its process lives");
    assert!(matches!(stuck.stream.read(&mut byte), Ok(0) | Err(_)));
    let report = host.wait_for("two put out", |report| report["broken_off"] == 2);
    let last = report["last_broken"].as_str().unwrap();
    assert!(last.contains("0.4 s after it connected") || last.contains("middle of a message"), "{last}");
    thread::sleep(Duration::from_millis(900));
    is_served(&mut resting, 1);
    assert_eq!(waiting.ask(1), ALL_FEATURES);
    assert_eq!(host.stop().connections.broken_off, 2);
}

#[test]
fn a_users_clients_are_so_many_and_the_next_learns_whose_limit_that_is() {
    let host = Host::with(core(), Limits { user_clients_max: 2, ..Limits::default() });
    let two = [(); 2].map(|()| opened(&host).unwrap());
    let refused = opened(&host).unwrap_err().to_string();
    assert!(
        refused.contains("2 clients of this user already") && refused.contains("--user-clients"),
        "{refused}"
    );
    let report = host.order("report");
    assert_eq!((&report["users"][0]["clients"], &report["users"][0]["refused"]), (&json!(2), &json!(1)));
    assert_eq!(report["limits"]["user_clients"], 2);
    serves_another_when(two, &host);
    assert_eq!(host.stop().connections.turned_away, 1);
}

#[test]
fn descriptors_beside_half_a_message_are_counted() {
    let host = Host::start(core());
    let mut hoarder = Raw::connect(&host.socket());
    let file = hoarder.memory.try_clone().unwrap();
    let files = [std::os::fd::AsFd::as_fd(&file); 8];
    for byte in halves(&[5, 1]) {
        support::send_bytes(&hoarder.stream, &[byte], &files);
    }
    assert!(hoarder.ends());
    assert!(host.stop().connections.last_broken.unwrap().contains("descriptors"));
}

/// The name under which the test below runs itself again, as a client until it is killed.
const CHILD: &str = "HOST_TEST_MANY";

fn be_a_client(socket: &str) {
    loop {
        let mut raw = Raw::ready(Path::new(socket), ALL_FEATURES);
        (0..20).for_each(|number| is_served(&mut raw, number));
    }
}

fn client_process(socket: &Path) -> Child {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "processes_that_are_killed_at_any_moment_leave_neither_a_place_nor_a_descriptor"]);
    again.env(CHILD, socket).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// What a process takes from its start until the host serves it: on an emulated core much of a second.
fn until_it_is_a_client(host: &Host) -> Duration {
    let began = Instant::now();
    let mut child = client_process(&host.socket());
    host.wait_for("one client", |report| clients(report) == 1);
    let taken = began.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();
    taken
}

/// Open files of a host in a process of its own would be all; here they are those of its kind.
fn watched_processes() -> usize {
    let files = fs::read_dir("/proc/self/fd").unwrap();
    let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    links.filter(|link| link.as_os_str() == "anon_inode:[pidfd]").count()
}

#[test]
fn processes_that_are_killed_at_any_moment_leave_neither_a_place_nor_a_descriptor() {
    if let Ok(socket) = std::env::var(CHILD) {
        return be_a_client(&socket);
    }
    let host = Host::start(core());
    let longest = until_it_is_a_client(&host).max(Duration::from_millis(16));
    let mut random = 1_u64;
    for _ in 0..10 {
        let mut children: Vec<Child> = (0..8).map(|_| client_process(&host.socket())).collect();
        for child in &mut children {
            // Any moment will do; each run takes the same.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            thread::sleep(longest * u32::try_from(random >> 50).unwrap() / (1 << 14));
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
    let report = host.wait_for("all gone", |report| clients(report) == 0);
    assert!(report["connections"].as_u64().unwrap() > 9, "some were killed as clients: {report:#}");
    is_served(&mut Raw::ready(&host.socket(), ALL_FEATURES), 1);
    let report = host.stop();
    assert_eq!(report.module.submitted, report.module.completed);
    assert!(watched_processes() < 40, "the others' tests have a few");
}

/// libcrypto, and how many jobs it did.
struct Counting(Libcrypto, Arc<Mutex<usize>>);

impl InlineDriver for Counting {
    fn profile(&self) -> &Profile {
        self.0.profile()
    }

    fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        self.0.supports(algorithm, direction)
    }

    fn run(&mut self, burst: &mut [Box<Job<'_>>]) {
        *self.1.lock().unwrap() += burst.len();
        self.0.run(burst);
    }

    fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.0.evict(has_ended);
    }
}

#[test]
fn each_core_serves_clients_of_its_own() {
    let counts: [Arc<Mutex<usize>>; 3] = Default::default();
    let core_drivers = |count: &Arc<Mutex<usize>>| {
        CoreDrivers::new(Box::new(Counting(Libcrypto::new().unwrap(), Arc::clone(count))), None)
    };
    let profile = Libcrypto::new().unwrap().profile().clone();
    let module = Module::cores(profile, counts.iter().map(core_drivers).collect(), Algorithm::ALL.to_vec());
    let host = Host::start(module);
    let mut all: Vec<Raw> = (0..6).map(|_| Raw::ready(&host.socket(), ALL_FEATURES)).collect();
    for round in 0..5 {
        (0..).zip(&mut all).for_each(|(number, raw)| is_served(raw, 10 * number + round));
    }
    assert_eq!(counts.map(|count| *count.lock().unwrap()), [10; 3]);
    assert_eq!(host.stop().totals.requests, 30);
}

#[test]
fn a_host_that_is_to_ends_some_time_after_its_last_client() {
    let limits = Limits { idle_max: Some(Duration::from_millis(300)), ..Limits::default() };
    let host = Host::with(core(), limits);
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    thread::sleep(Duration::from_millis(900));
    is_served(&mut raw, 1);
    drop(raw);
    let socket = host.socket();
    assert_eq!(host.ended().totals.requests, 1);
    assert!(!socket.exists());
}

#[test]
fn a_socket_that_somebody_else_has_bound_is_served_and_left_to_him() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host");
    let socket = UnixListener::bind(&path).unwrap();
    // Who comes before the host does waits.
    let mut early = Raw::connect(&path);
    let host = Host::over(folder.path(), Socket::Inherited(socket.try_clone().unwrap()), core());
    early.set_up(ALL_FEATURES);
    is_served(&mut early, 3);
    assert_eq!(host.stop().totals.requests, 1);
    assert!(path.exists());
    drop(socket);
}
