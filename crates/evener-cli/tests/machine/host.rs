//! `evener host` as a process: it serves, takes orders, says what it did, and leaves nothing behind.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test; what is skipped is said"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::common::{EVENER, Place, misfits};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

struct Host {
    child: Child,
    socket: PathBuf,
    control: PathBuf,
}

impl Host {
    /// A host that clients can come to.
    fn start(place: &Place, options: &[&str]) -> Self {
        let mut run =
            place.evener().args(["host", "--socket", "socket", "--control", "control"]).args(options);
        run.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = run.command.spawn().unwrap();
        let mut output = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut output).unwrap();
        assert!(output.contains("serving at socket"), "{output}");
        Self { child, socket: place.join("socket"), control: place.join("control") }
    }

    fn order(&self, line: &str) -> Value {
        let mut stream = connect(&self.control);
        writeln!(stream, "{line}").unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    fn end(mut self, signal: Signal) -> Value {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
        assert!(!self.socket.exists() && !self.control.exists());
        let mut output = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        let report = serde_json::from_str(&output).unwrap();
        assert_eq!(misfits("host.schema.json", &report), [""; 0]);
        report
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn connect(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// Asks for the features of the ring; `None` where the host turns us away.
fn greet(stream: &mut UnixStream) -> Option<u64> {
    request(stream, 1)
}

/// Sends a message that is answered by a number.
fn request(stream: &mut UnixStream, message: u32) -> Option<u64> {
    let header: Vec<u8> = [message, 1, 0].iter().flat_map(|field| field.to_ne_bytes()).collect();
    stream.write_all(&header).ok()?;
    let mut answer = [0; 20];
    stream.read_exact(&mut answer).ok()?;
    Some(u64::from_ne_bytes(answer[12..].try_into().unwrap()))
}

#[test]
fn a_host_serves_takes_orders_and_ends_cleanly_by_either_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let place = Place::new();
        let host = Host::start(&place, &["--module", "emulated:am3358"]);
        let mut client = connect(&host.socket);
        assert_eq!(greet(&mut client), Some(1 << 32 | 1 << 30 | 1 << 29 | 1 << 28));
        let report = host.order("report");
        assert_eq!(misfits("host.schema.json", &report), [""; 0]);
        assert_eq!(report["module"]["name"], "emulated:am3358");
        assert_eq!(report["clients"][0]["peer"]["pid"], std::process::id());
        assert_eq!(host.order("pace 300")["ok"], true);
        assert!(host.order("pace")["error"].as_str().unwrap().contains("unknown order"));
        assert_eq!(host.end(signal)["connections"], 1);
    }
}

#[test]
fn a_core_is_served_by_its_name() {
    let place = Place::new();
    let host = Host::start(&place, &["--module", "cpu"]);
    assert_eq!(greet(&mut connect(&host.socket)), Some(1 << 32 | 1 << 30 | 1 << 29 | 1 << 28));
    assert!(host.order("pace 300")["error"].as_str().unwrap().contains("not emulated"));
    assert_eq!(host.end(Signal::TERM)["module"]["emulated"], false);
}

#[test]
fn options_limit_what_comes_and_open_the_socket() {
    let place = Place::new();
    let options = [
        ["--module", "emulated:am3358,depth=4"],
        ["--clients", "1"],
        ["--sessions", "8"],
        ["--in-flight", "4"],
        ["--bytes-in-flight", "1M"],
        ["--client-memory", "16M"],
        ["--request-size", "64K"],
        ["--allow-uid", "12345"],
        ["--allow-gid", "12345"],
        ["--weight", "12345=2"],
        ["--idle-exit", "3600"],
        ["--user-clients", "1"],
        ["--user-sessions", "7"],
        ["--user-in-flight", "3"],
        ["--user-memory", "32M"],
        ["--user-faults", "2M"],
        ["--silence", "30"],
    ];
    let host = Host::start(&place, &options.concat());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&host.socket), 0o666, "others may connect");
    assert_eq!(mode(&host.control), 0o600);
    let limits = host.order("report")["limits"].take();
    let told = [
        "clients",
        "user_clients",
        "user_sessions",
        "user_in_flight",
        "user_memory_bytes",
        "user_faulted_bytes",
    ];
    let told = told.map(|name| limits[name].as_u64().unwrap());
    assert_eq!((told, &limits["silence_ms"]), ([1, 1, 7, 3, 32 << 20, 2 << 20], &30_000.into()));
    let mut first = connect(&host.socket);
    assert!(greet(&mut first).is_some());
    let mut second = connect(&host.socket);
    let refusal = greet(&mut second).and_then(|_| request(&mut second, 15));
    assert_eq!(refusal, Some(1 << 63 | 1 << 40), "one client is the limit, and the second is told");
    assert_eq!(request(&mut second, 15), None, "and then it is over");
    let mut config = [24_u32, 1, 20, 48, 8, 0, 0, 0].map(u32::to_ne_bytes).concat();
    first.write_all(&config).unwrap();
    config.resize(32, 0);
    first.read_exact(&mut config).unwrap();
    assert_eq!(config[24..], 65_536_u64.to_le_bytes(), "the longest request");
    assert_eq!(host.end(Signal::TERM)["turned_away"], 1);
}

/// A user and a group that are neither root's nor of this machine.
const STRANGER: &str = "12345";

#[test]
fn another_user_is_served_only_where_it_is_named() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can be another user");
    }
    let cases: [(&[&str], bool, u64); 4] = [
        // The socket's mode keeps it out.
        (&[], false, 0),
        // Every user may connect, and the kernel says which it is.
        (&["--allow-uid", "12346", "--allow-gid", "12346"], false, 1),
        (&["--allow-uid", STRANGER], true, 0),
        (&["--allow-gid", STRANGER], true, 0),
    ];
    for (options, is_served, turned_away) in cases {
        let place = Place::open_to_all();
        // As /tmp: a client does not trust a directory in which others may take its host's socket away.
        fs::set_permissions(place.join("."), fs::Permissions::from_mode(0o1777)).unwrap();
        let host = Host::start(&place, &[&["--module", "cpu"], options].concat());
        let shown = module_as_seen_by_the_stranger(&place);
        let does = shown["does"].as_array().unwrap();
        assert_eq!((shown["refused"].is_null(), !does.is_empty()), (is_served, is_served), "{shown}");
        let report = host.end(Signal::TERM);
        assert_eq!(report["turned_away"], turned_away, "{options:?}");
        // Known answers were checked.
        assert_eq!(report["totals"]["requests"].as_u64().unwrap() > 0, is_served, "{options:?}");
    }
}

fn module_as_seen_by_the_stranger(place: &Place) -> Value {
    let ids = ["--reuid", STRANGER, "--regid", STRANGER, "--clear-groups"];
    // By its descriptor, for the way to the file may be closed to others.
    let devices = ["/proc/self/fd/0", "devices", "--json", "--module", "hosted:socket"];
    let mut run = place.program("setpriv").args(ids).args(devices);
    let ran = run.command.stdin(fs::File::open(EVENER).unwrap()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let shown: Value = serde_json::from_slice(&ran.stdout).unwrap();
    shown["asked"][0].clone()
}

/// A host that was given a listening socket, as systemd gives it: descriptor 3, and two variables.
fn activated(place: &Place, listener: &UnixListener, options: &str) -> Child {
    let mut shell = place.program("sh");
    let script = format!("exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec '{EVENER}' host {options}");
    shell.command.args(["-c", &script]).stdin(OwnedFd::from(listener.try_clone().unwrap()));
    shell.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_host_serves_the_socket_that_it_was_given_and_ends_when_nobody_is_left() {
    let place = Place::new();
    let path = place.join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    // The first client waits for the host.
    let mut early = connect(&path);
    let host = activated(&place, &listener, "--module cpu --idle-exit 1");
    assert!(greet(&mut early).is_some());
    drop(early);
    let ended = host.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(report["connections"], 1);
    assert!(path.exists(), "it is not the host's");
    let both = activated(&place, &listener, "--module cpu --socket other").wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&both.stderr).contains("one is enough"));
}

#[test]
fn a_host_has_no_more_clients_than_open_files_and_says_so() {
    let place = Place::new();
    let limited = |options: &str| {
        let script =
            format!("ulimit -n 1000; exec '{EVENER}' host --module cpu --idle-exit 0 --socket few {options}");
        place.program("sh").args(["-c", &script]).run()
    };
    let usual = limited("").ended_with(0);
    for words in ["1024 clients may need 19712 open files", "may have 1000", "enough for 39 clients"] {
        assert!(usual.stderr().contains(words), "{}", usual.stderr());
    }
    limited("--clients 39").ended_with(0);
    limited("--clients 40").ended_with(2).saying("--clients: 40 clients may need 1016 open files");
}

#[test]
fn a_host_that_cannot_be_says_why() {
    let place = Place::new();
    let host = |options: &[&str]| place.evener().args(["host", "--socket", "socket"]).args(options).run();
    host(&["--module", "quantum"]).ended_with(2).saying("unknown module \"quantum\"");
    host(&["--module", "emulated:am3359"]).ended_with(2).saying("unknown preset");
    host(&["--module", "afalg:"]).ended_with(2).saying("names no driver");
    host(&["--module", "afalg:nobodys"]).ended_with(2).saying("AF_ALG");
    host(&["--module", "devcrypto:evener"]).ended_with(2).saying("devcrypto:/dev/NAME");
    host(&["--module", "devcrypto:/nonexistent"]).ended_with(2).saying("there is no /nonexistent");
    let without = place.evener().env("EVENER_DISABLE", "multibuffer");
    without
        .args(["host", "--socket", "socket", "--module", "multibuffer"])
        .run()
        .ended_with(2)
        .saying("multibuffer");
    host(&["--module", "cpu", "--request-size", "65M"]).ended_with(2).saying("not between 1 and 64M");
    host(&["--module", "emulated:am3358", "--cores", "2"]).ended_with(2).saying("modules of cores");
    host(&["--module", "cpu", "--cores", "0"]).ended_with(2).saying("--cores");
    for weight in ["7", "7=0", "7=65", "x=1"] {
        host(&["--module", "cpu", "--weight", weight]).ended_with(2).saying("is not UID=N");
    }
    place.evener().args(["host", "--module", "cpu"]).run().ended_with(2).saying("--socket is needed");
    host(&["--module", "cpu", "--bytes-in-flight", "0"]).ended_with(2).saying("from 1 on");
    for limit in ["clients", "sessions", "in-flight", "user-clients", "user-sessions", "user-in-flight"] {
        host(&["--module", "cpu", &format!("--{limit}"), "0"]).ended_with(2).saying("is no number from 1 on");
    }
    let first = Host::start(&place, &["--module", "emulated:am3358"]);
    host(&["--module", "emulated:am3358"]).ended_with(2).saying("socket: another process listens there");
    first.end(Signal::TERM);
    place.write("socket", "a file");
    host(&["--module", "emulated:am3358"]).ended_with(2).saying("socket: it is there and no socket");
    let long = "s".repeat(150);
    let long = place.evener().args(["host", "--socket", &long, "--module", "emulated:am3358"]).run();
    long.ended_with(2).saying("a socket's path has at most 107 bytes");
    assert_eq!(fs::read(place.join("socket")).unwrap(), b"a file");
}

#[test]
fn places_are_shared_among_those_who_may_come() {
    let own_and_root = if rustix::process::geteuid().is_root() { 1 } else { 2 };
    let cases: [(&[&str], u64); 4] = [
        (&[], 960),
        (&["--allow-uid", "12345", "--allow-uid", "12346"], 960 / (own_and_root + 2)),
        (&["--allow-gid", "12345"], 960 / (own_and_root + 8)),
        (&["--allow-uid", "12345", "--user-clients", "950"], 950),
    ];
    for (options, share) in cases {
        let place = Place::new();
        let host =
            Host::start(&place, &[&["--module", "emulated:am3358", "--clients", "960"], options].concat());
        assert_eq!(host.order("report")["limits"]["user_clients"], share, "{options:?}");
    }
}

/// Whether the system lets others of the same user look into that process: what it shows of one that is not to be dumped is root's (proc(5)).
#[test]
fn no_other_process_looks_into_a_host_unless_an_option_lets_it() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can be another user");
    }
    for (option, owner) in [("", 0), ("--dumpable", 12_345)] {
        let place = Place::new();
        fs::set_permissions(place.join("."), fs::Permissions::from_mode(0o1777)).unwrap();
        let ids = ["--reuid", STRANGER, "--regid", STRANGER, "--clear-groups"];
        let host = ["/proc/self/fd/0", "host", "--module", "emulated:am3358", "--socket", "other"];
        let mut run = place
            .program("setpriv")
            .args(ids)
            .args(host)
            .args(Some(option).filter(|option| !option.is_empty()));
        run.command.stdin(fs::File::open(EVENER).unwrap()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = run.command.spawn().unwrap();
        let mut output = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut output).unwrap();
        let seen = fs::metadata(format!("/proc/{}/environ", child.id())).map(|seen| seen.uid());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((output.contains("serving"), seen.unwrap()), (true, owner), "{option:?}: {output}");
    }
}
