//! Users beside each other: what one does with any number of clients costs another neither a place nor a request, and the host no more than its limits say.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    reason = "a test; it says what it skips"
)]

mod support;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use evener_core::{Algorithm, Direction};
use evener_host::Limits;
use evener_testing::drivers::watched;
use evener_testing::hosts::{Host, core, core_by, order};
use evener_testing::noise;
use evener_testing::waiting::soon;
use rustix::fs::SealFlags;
use serde_json::Value;
use support::numbers::{key_of, open, request_header};
use support::{
    ALL_FEATURES, DATA, GUEST, MEMORY_BYTES, NEXT, Raw, USER, WRITE, cipher, halves, judge, memory, words,
};

/// Users that need not have a name.
const BAD: u32 = 61_001;
const GOOD: u32 = 61_002;

/// What a process of this program is to be: a role and the folder of the host's sockets.
const ROLE: &str = "HOST_TEST_ROLE";

/// This program again, as another user, at the test that only plays roles.
fn role(name: &str, folder: &Path, uid: u32) -> Player {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "a_role_is_played", "--nocapture", "--include-ignored"]);
    again.env(ROLE, format!("{name}:{}", folder.display())).current_dir("/").uid(uid).gid(uid);
    again.stderr(Stdio::inherit());
    Player::begin(&mut again)
}

/// A process that plays a role, and is ended with the test, however that ends.
struct Player(Child);

impl Player {
    fn begin(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // It fails where the process has ended.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
#[ignore = "a part of the others"]
fn a_role_is_played() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (name, folder) = role.split_once(':').unwrap();
    let socket = Path::new(folder).join("host");
    match name {
        "bad" => be_bad(&socket),
        "good" => be_good(&socket),
        "long" => be_long(&socket),
        "silent" => {
            let _raw = Raw::ready(&socket, ALL_FEATURES);
            println!("begun");
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
        "measured" => be_measured(&socket),
        "host" => be_a_host(Path::new(folder), Limits::default()),
        "limited" => be_a_host(Path::new(folder), limits()),
        other => unreachable!("{other}"),
    }
}

/// 64 clients of five kinds, until the process is killed: each begins anew as soon as its connection ends.
fn be_bad(socket: &Path) {
    println!("begun");
    thread::scope(|scope| {
        for number in 0..64_u64 {
            scope.spawn(move || {
                let mut kept = Vec::new();
                loop {
                    match number % 4 {
                        0 => kept.extend(be_sparse(socket, kept.len())),
                        1 => be_silent(socket, &[]),
                        2 => be_silent(socket, &halves(&[26, 1, 1_072, 0])),
                        _ => be_a_flood(socket),
                    }
                    // One per thread, each 5 ms: a storm of 12,800 connections a second at most.
                    thread::sleep(Duration::from_millis(5));
                }
            });
        }
    });
}

/// Any error is the host's answer to what this user does.
fn try_connect(socket: &Path) -> Option<Raw> {
    Raw::try_connect(socket)
}

fn be_silent(socket: &Path, said: &[u8]) {
    let Some(mut raw) = try_connect(socket) else { return };
    raw.stream.set_read_timeout(Some(Duration::from_secs(10))).ok();
    if raw.stream.write_all(said).is_ok() {
        // To the end, which is the host's.
        raw.stream.read_to_end(&mut Vec::new()).ok();
    }
}

/// A gigabyte without pages, of which the host is to touch all; the memory stays when the connection ends.
fn be_sparse(socket: &Path, kept: usize) -> Option<File> {
    const SPARSE_BYTES: u64 = 1 << 30;
    let mut raw = try_connect(socket)?;
    raw.memory = memory(SPARSE_BYTES, SealFlags::SHRINK | SealFlags::GROW);
    raw.send(3, &[], &[]);
    raw.send(2, &words(&[ALL_FEATURES]), &[]);
    raw.set_memory(&[[GUEST, SPARSE_BYTES, USER, 0]]);
    raw.start_ring(0);
    let session = raw.try_open_cbc(&[1; 16])?;
    const REQUEST_BYTES: u32 = 1 << 19;
    raw.put(DATA, &cipher(true, session, REQUEST_BYTES as usize));
    for at in (1..SPARSE_BYTES / u64::from(REQUEST_BYTES)).map(|part| part * u64::from(REQUEST_BYTES)) {
        raw.describe(0, GUEST + DATA, 72 + 16, NEXT, 1);
        raw.describe(1, GUEST + at, REQUEST_BYTES, NEXT, 2);
        raw.describe(2, GUEST + at, REQUEST_BYTES, NEXT | WRITE, 3);
        raw.describe(3, GUEST + DATA + 4_000, 1, WRITE, 0);
        raw.offer(0);
        if !raw.wait_briefly() {
            break;
        }
    }
    (kept < 4).then_some(raw.memory)
}

/// As many requests as the ring has room for, again and again.
fn be_a_flood(socket: &Path) {
    let Some(mut raw) = try_connect(socket) else { return };
    raw.set_up(ALL_FEATURES);
    let Some(session) = raw.try_open_cbc(&[2; 16]) else { return };
    let text = vec![7; 16_384];
    (0..12).for_each(|slot| {
        raw.write_request(&[&cipher(true, session, text.len()), &[0; 16], &text], text.len(), slot);
    });
    loop {
        (0..12).for_each(|slot| raw.offer_quietly(slot));
        raw.kick();
        if !raw.wait_briefly() {
            return;
        }
    }
}

/// Long requests, one after the other: of a cipher that is cut, and of one that is not.
fn be_long(socket: &Path) {
    const BYTES: usize = 400_000;
    let mut raw = Raw::ready(socket, ALL_FEATURES);
    let sessions = [Algorithm::Aes128Cbc, Algorithm::Aes128Xts]
        .map(|algorithm| (algorithm, open(&mut raw, algorithm, false, &key_of(algorithm))));
    println!("begun");
    for (algorithm, session) in sessions.into_iter().cycle() {
        let head = request_header(algorithm, Direction::Encrypt, session, BYTES);
        let iv = vec![1; algorithm.iv_bytes()];
        if raw.request(&[&head, &iv, &vec![7; BYTES]], BYTES).is_none() {
            return;
        }
    }
}

/// One request after the other, each judged, of a client that also goes and comes again. Says what each took, in nanoseconds.
fn be_good(socket: &Path) {
    for round in 0..5 {
        let mut raw = Raw::ready(socket, ALL_FEATURES);
        let (key, plain) = (noise(round, 16), noise(round + 100, 16_384));
        let session = raw.open_cbc(&key, true);
        let right = judge(Algorithm::Aes128Cbc, Direction::Encrypt, [&key, &[9; 16], &[], &plain, &[]]);
        let right = right.unwrap().0;
        for _ in 0..REQUESTS / 5 {
            raw.write_request(&[&cipher(true, session, plain.len()), &[9; 16], &plain], plain.len(), 0);
            let begun = Instant::now();
            raw.offer(0);
            assert!(raw.wait(), "its connection ended");
            println!("took {}", begun.elapsed().as_nanos());
            let place = DATA + (72 + 16 + plain.len()) as u64;
            assert!(raw.get(place, plain.len()) == right);
        }
    }
    println!("done");
}

const REQUESTS: usize = 200;

/// What each request of a good client took, in nanoseconds, least first; all of them were done and right.
fn good_times(folder: &Path) -> Vec<u64> {
    times_of("good", folder)
}

fn times_of(name: &str, folder: &Path) -> Vec<u64> {
    let mut good = role(name, folder, GOOD);
    let lines = BufReader::new(good.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    // On one core the test runner has begun a line already.
    let mut times: Vec<u64> = lines.filter_map(|line| line.split_once("took ")?.1.parse().ok()).collect();
    assert!(good.0.wait().unwrap().success() && times.len() == REQUESTS, "{} of {REQUESTS}", times.len());
    times.sort_unstable();
    times
}

fn started(mut player: Player) -> Player {
    let mut lines = BufReader::new(player.0.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("begun")));
    player
}

/// A folder that others may enter, and whether there can be others.
fn open_folder() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut probe = Command::new(std::env::current_exe().unwrap());
    let runs = probe.arg("--list").uid(BAD).gid(BAD).current_dir("/").stdout(Stdio::null()).status();
    if runs.is_ok_and(|status| status.success()) {
        return Some(folder);
    }
    println!("skipped: this process may not begin one of another user");
    None
}

fn user(report: &Value, uid: u32) -> Value {
    let users = report["users"].as_array().unwrap();
    users.iter().find(|user| user["uid"] == uid).cloned().unwrap_or_default()
}

const MADE_MAX: u64 = 8 << 20;

fn limits() -> Limits {
    Limits {
        clients_max: 96,
        user_clients_max: Limits::places_of_user(96, 3),
        user_faulted_bytes_max: MADE_MAX,
        ..Limits::default()
    }
}

#[test]
fn a_good_users_client_has_its_place_and_all_its_requests_beside_64_hostile_ones_of_another() {
    let Some(folder) = open_folder() else { return };
    let host = Host::for_users(folder.path(), core(), limits(), &[BAD, GOOD]);
    let bad = started(role("bad", folder.path(), BAD));
    host.wait_for("as many as may come", |report| user(report, BAD)["clients"] == 32);
    host.wait_for("no more pages", |report| user(report, BAD)["faulted_bytes"].as_u64() > Some(MADE_MAX / 2));
    let (goes_on, is_over) = mpsc::channel::<()>();
    let watched = &host;
    thread::scope(|scope| {
        scope.spawn(move || {
            while is_over.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
                // The control socket answers all the time, and no limit is passed at any.
                let report = watched.order("report");
                let bad = user(&report, BAD);
                assert!(
                    bad["clients"].as_u64() <= Some(32) && bad["faulted_bytes"].as_u64() <= Some(MADE_MAX),
                    "{bad}"
                );
            }
        });
        // It goes with what follows, also where that fails.
        let _goes_on = goes_on;
        good_times(folder.path());
    });
    let report = host.wait_for("silent ones put out", |report| report["broken_off"].as_u64() > Some(32));
    assert_eq!(user(&report, GOOD)["refused"].as_u64().unwrap_or(0), 0, "{report:#}");
    assert!(user(&report, BAD)["refused"].as_u64() > Some(32));
    drop(bad);
    host.wait_for("nothing left of who was killed, pages included", |report| {
        report["clients"].as_array().unwrap().is_empty()
            && user(report, BAD)["faulted_bytes"].as_u64().unwrap_or(0) == 0
    });
}

#[test]
fn pages_of_a_client_that_moves_its_memory_from_under_its_ring_are_given_back() {
    let host = Host::start(core());
    let uid = rustix::process::getuid().as_raw();
    let faulted = |report: &Value| user(report, uid)["faulted_bytes"].as_u64().unwrap_or(0);
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    raw.open_cbc(&[1; 16], true);
    host.wait_for("pages of its ring", |report| faulted(report) > 0);
    raw.set_memory(&[[GUEST + (1 << 32), MEMORY_BYTES, USER + (1 << 32), 0]]);
    assert!(raw.ends());
    drop(raw);
    host.wait_for("nothing of it", |report| faulted(report) == 0);
}

#[test]
fn pages_of_memory_that_is_told_of_again_are_counted_once() {
    let host = Host::start(core());
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let session = raw.open_cbc(&[1; 16], true);
    let counts: Vec<u64> = (0..5)
        .map(|_| {
            let text = vec![7; 16_384];
            let parts: [&[u8]; 3] = [&cipher(true, session, text.len()), &[0; 16], &text];
            assert_eq!(raw.request(&parts, text.len()).unwrap().1, 0);
            raw.set_memory(&[[GUEST, MEMORY_BYTES, USER, 0]]);
            raw.open_cbc(&[2; 16], true);
            user(&host.order("report"), rustix::process::getuid().as_raw())["faulted_bytes"].as_u64().unwrap()
        })
        .collect();
    assert!(counts[0] > 32_768 && counts.iter().all(|count| *count == counts[0]), "{counts:?}");
}

#[test]
fn a_client_whose_memory_is_all_there_goes_on_beyond_its_share_in_however_many_files_it_is() {
    const SECOND: u64 = 1 << 32;
    let (key, text) = ([1; 16], vec![7; 4096]);
    // Two pages, which its ring has used up.
    let host = Host::with(core(), Limits { user_faulted_bytes_max: 8192, ..Limits::default() });
    let mut raw = Raw::connect(&host.socket());
    let other = memory(MEMORY_BYTES, SealFlags::SHRINK | SealFlags::GROW);
    raw.put(0, &vec![0; MEMORY_BYTES as usize]);
    other.write_all_at(&vec![0; MEMORY_BYTES as usize], 0).unwrap();
    raw.send(3, &[], &[]);
    raw.send(2, &words(&[ALL_FEATURES]), &[]);
    let regions = [[GUEST, MEMORY_BYTES, USER, 0], [GUEST + SECOND, MEMORY_BYTES, USER + SECOND, 0]];
    let table = [halves(&[2, 0]), words(&regions.concat())].concat();
    raw.send(5, &table, &[raw.memory.as_fd(), other.as_fd()]);
    raw.start_ring(0);
    let session = raw.open_cbc(&key, true);
    raw.put(DATA, &[cipher(true, session, text.len()), vec![0; 16]].concat());
    raw.put(DATA + 0x200, &[0xEE]);
    other.write_all_at(&text, 0x1000).unwrap();
    let all = [
        (GUEST + DATA, 72 + 16, NEXT),
        (GUEST + SECOND + 0x1000, text.len() as u32, NEXT),
        (GUEST + SECOND + 0x4000, text.len() as u32, NEXT | WRITE),
        (GUEST + DATA + 0x200, 1, WRITE),
    ];
    for (index, (address, len, flags)) in (0..).zip(all) {
        raw.describe(index, address, len, flags, index + 1);
    }
    for _ in 0..3 {
        raw.offer(0);
        assert!(raw.wait(), "{:#}", host.order("report"));
    }
    let mut came = vec![0; text.len()];
    other.read_exact_at(&mut came, 0x4000).unwrap();
    let (expected, _) =
        judge(Algorithm::Aes128Cbc, Direction::Encrypt, [&key, &[0; 16], &[], &text, &[]]).unwrap();
    assert!((raw.get(DATA + 0x200, 1), came) == (vec![0], expected));
    let report = host.order("report");
    assert_eq!(user(&report, rustix::process::getuid().as_raw())["faulted_bytes"], 8192, "{report:#}");
}

#[test]
fn while_there_are_several_users_no_request_waits_for_a_long_one_of_the_same_burst() {
    let Some(folder) = open_folder() else { return };
    // Bursts of several requests of which one is long, pieces, and long ones that were not cut.
    let counts: [Arc<AtomicUsize>; 3] = Default::default();
    let seen = counts.clone();
    let driver = watched(move |burst| {
        let longest = burst.iter().map(|job| job.input_bytes()).max().unwrap_or(0);
        let kind = match longest {
            _ if longest > PIECE_BYTES && burst.len() > 1 => 0,
            PIECE_BYTES => 1,
            _ if longest > PIECE_BYTES => 2,
            _ => return,
        };
        seen[kind].fetch_add(1, Relaxed);
    });
    let _host = Host::for_users(folder.path(), core_by(driver), limits(), &[BAD, GOOD]);
    let long = [(); 3].map(|()| started(role("long", folder.path(), BAD)));
    // From here on there are two, for another client of this user stays.
    let stays = role("silent", folder.path(), GOOD);
    let stays = started(stays);
    counts.iter().for_each(|count| count.store(0, Relaxed));
    good_times(folder.path());
    let [together, pieces, whole] = counts.map(|count| count.load(Relaxed));
    assert!(together == 0 && pieces > 0 && whole > 0, "{together} {pieces} {whole}");
    drop((long, stays));
}

const PIECE_BYTES: usize = 64 << 10;

/// As a good client, of which nothing is judged and nothing printed before the end.
fn be_measured(socket: &Path) {
    let mut lines = String::new();
    for round in 0..5 {
        let mut raw = Raw::ready(socket, ALL_FEATURES);
        let plain = noise(round, 16_384);
        let session = raw.open_cbc(&noise(round, 16), true);
        for _ in 0..REQUESTS / 5 {
            raw.write_request(&[&cipher(true, session, plain.len()), &[9; 16], &plain], plain.len(), 0);
            let begun = Instant::now();
            raw.offer(0);
            assert!(raw.wait(), "its connection ended");
            lines += &format!("took {}\n", begun.elapsed().as_nanos());
        }
    }
    print!("{lines}");
}

/// From now on it has the cores only where no other thread wants them (SCHED_IDLE): what others wait for beside it is the host's doing, not the scheduler's.
fn leave_the_cores_to_others(player: &Player) {
    let words = ["-a", "-i", "-p", "0", &player.0.id().to_string()];
    assert!(Command::new("chrt").args(words).status().unwrap().success());
}

/// 64 hostile clients, as many of them in as may come.
fn hostile(folder: &Path) -> Player {
    let bad = started(role("bad", folder, BAD));
    let are_in = || user(&order(&folder.join("control"), "report"), BAD)["clients"] == 32;
    assert!(soon(are_in));
    bad
}

fn end_hostile(bad: Player, folder: &Path) {
    drop(bad);
    let are_gone =
        || user(&order(&folder.join("control"), "report"), BAD)["clients"].as_u64().unwrap_or(0) == 0;
    assert!(soon(are_gone));
}

/// Quarter, median and three quarters of values, in microseconds.
fn quartiles(mut values: Vec<u64>) -> [u64; 3] {
    values.sort_unstable();
    [1, 2, 3].map(|part| values[values.len() * part / 4] / 1_000)
}

/// Rounds of all four kinds. One takes a fifth of a second.
const ROUNDS: usize = 60;

/// Shown, not judged: other work on the machine changes it (docs/results/hosted.md has figures). *Control* has the same hostile clients at another host, so what is
/// more beside them at its own host is that host's doing.
#[test]
#[ignore = "measures: what a good client's requests take alone, beside 64 hostile ones of another host, and beside them"]
fn what_a_good_client_waits_for_beside_hostile_ones_is_shown() {
    let (Some(folder), Some(other)) = (open_folder(), open_folder()) else { return };
    let hosts = [&folder, &other].map(|folder| started(role("limited", folder.path(), 0)));
    let kinds = ["alone", "control", "beside", "beside them at SCHED_IDLE"];
    let mut times: [Vec<Vec<u64>>; 4] = Default::default();
    for _ in 0..ROUNDS {
        for (kind, times) in times.iter_mut().enumerate() {
            let place = if kind == 1 { other.path() } else { folder.path() };
            let bad = (kind > 0).then(|| hostile(place));
            if let Some(bad) = bad.as_ref().filter(|_| kind == 3) {
                leave_the_cores_to_others(bad);
            }
            times.push(times_of("measured", folder.path()));
            if let Some(bad) = bad {
                end_hostile(bad, place);
            }
        }
    }
    let at = |kind: usize, percent: usize| {
        quartiles(times[kind].iter().map(|times| times[times.len() * percent / 100]).collect())
    };
    for (kind, name) in kinds.iter().enumerate() {
        println!("{name}, us, median and quarters: p50 {:?}, p99 {:?}", at(kind, 50), at(kind, 99));
    }
    let [alone, control, beside] = [0, 1, 2].map(|kind| at(kind, 99)[1] as f64);
    println!("p99 beside: {:.2} of alone, {:.2} of control", beside / alone, beside / control);
    drop(hosts);
}

/// A host in a process of its own, until its standard input ends.
fn be_a_host(folder: &Path, limits: Limits) {
    if let Ok(group) = std::env::var(GROUP) {
        fs::write(Path::new(&group).join("cgroup.procs"), std::process::id().to_string()).unwrap();
    }
    let _host = Host::for_users(folder, core(), limits, &[BAD, GOOD]);
    println!("begun");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

const GROUP: &str = "HOST_TEST_GROUP";

/// A group of processes that may have so much memory; removed when it is empty.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    fn new(bytes: u64) -> Option<Self> {
        for (root, limit) in
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
        {
            let path = Path::new(root).join(format!("evener-host-test-{}", std::process::id()));
            if !Path::new(root).join("cgroup.procs").exists() || fs::create_dir(&path).is_err() {
                continue;
            }
            let group = Self(path);
            if fs::write(group.0.join(limit), bytes.to_string()).is_ok() {
                return Some(group);
            }
        }
        None
    }

    /// Most that it had so far.
    fn peak(&self) -> Option<u64> {
        let read = |name| fs::read_to_string(self.0.join(name)).ok()?.trim().parse().ok();
        read("memory.max_usage_in_bytes").or_else(|| read("memory.peak"))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        fs::remove_dir(&self.0).ok();
    }
}

#[test]
fn a_host_that_may_have_300_mib_lives_beside_clients_whose_memory_has_no_pages() {
    let Some(folder) = open_folder() else { return };
    let Some(group) = MemoryGroup::new(300 << 20) else {
        println!("skipped: no group of processes with a limit of memory can be made");
        return;
    };
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "a_role_is_played", "--nocapture", "--include-ignored"]);
    again.env(ROLE, format!("host:{}", folder.path().display())).env(GROUP, &group.0);
    let mut host = started(Player::begin(&mut again));
    let control = folder.path().join("control");
    let bad = started(role("bad", folder.path(), BAD));
    // Until there are no more pages for them, and for a while beyond.
    let begun = Instant::now();
    let mut is_spent = false;
    while !is_spent && begun.elapsed() < Duration::from_secs(60) {
        assert!(host.0.try_wait().unwrap().is_none(), "the host was killed");
        is_spent = user(&order(&control, "report"), BAD)["faulted_bytes"].as_u64() > Some(60 << 20);
        thread::sleep(Duration::from_millis(20));
    }
    assert!(is_spent);
    good_times(folder.path());
    let peak = group.peak();
    println!("at most {peak:?} bytes");
    assert!(host.0.try_wait().unwrap().is_none() && peak.is_none_or(|peak| peak < 290 << 20), "{peak:?}");
    drop(bad);
    drop(host);
    let has_left = || fs::read_to_string(group.0.join("cgroup.procs")).is_ok_and(|left| left.is_empty());
    assert!(soon(has_left));
}

const _: () = assert!(MEMORY_BYTES > 12 * 0x1_0000 + DATA);
