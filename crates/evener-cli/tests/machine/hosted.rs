//! Runs whose module is a host's: two at once, and what becomes of their files when the host errs, hangs or is killed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::common::{self, Place, misfits};
use serde_json::Value;

/// `evener host`, killed when this is dropped.
struct Host(Child);

impl Host {
    /// A host that clients can come to, at `socket`, with its orders at `control`.
    fn start(place: &Place, module: &str) -> Self {
        Self::with(place, &["--module", module])
    }

    fn with(place: &Place, options: &[&str]) -> Self {
        let run = place.evener().args(["host", "--socket", "socket", "--control", "control"]).args(options);
        let mut command = run.command;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first_line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut first_line).unwrap();
        assert!(first_line.contains("serving at"), "{first_line}");
        Self(child)
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.0.kill().unwrap_or_default();
        self.0.wait().map(drop).unwrap_or_default();
    }
}

fn order(place: &Place, line: &str) -> Value {
    let mut stream = UnixStream::connect(place.join("control")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    writeln!(stream, "{line}").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap()
}

const FILES: u64 = 60;
const FILE_BYTES: usize = 20_000;

/// The format whose cipher that is, its key, and few rounds for it.
const KEY: [&str; 6] = ["--format", "openssl", "--passphrase-file", "pass", "--iter", "1000"];

/// A place with files to encrypt by AES-256-CBC, which is what a host gets.
fn place() -> Place {
    let place = Place::new();
    place.write_secret("pass", "correct horse");
    (0..FILES).for_each(|file| drop(place.write(format!("in/{file}"), common::noise(file, FILE_BYTES))));
    place
}

/// Encrypts all files to `out` on the host alone.
fn encrypt(place: &Place, out: &str) -> Child {
    let run = place.evener().arg("encrypt").args(KEY);
    let run = run.args(["--module", "hosted:socket", "--policy", "module_only", "-q", "-o", out]);
    let mut command = run.args(["--json", &format!("{out}.json"), "in"]).command;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits for a run, has its files opened by libcrypto and compared, and returns the part of the module in its report.
fn settled(place: &Place, run: Child, out: &str) -> Value {
    let ended = run.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let back = format!("{out}.back");
    let run = place.evener().arg("decrypt").args(KEY);
    run.args(["-q", "-o", &back, out]).run().succeeded();
    for file in 0..FILES {
        let name = place.join(&back).join(file.to_string());
        assert!(fs::read(name).unwrap() == common::noise(file, FILE_BYTES), "file {file}");
    }
    let report: Value =
        serde_json::from_slice(&fs::read(place.join(format!("{out}.json"))).unwrap()).unwrap();
    assert_eq!(misfits("report.schema.json", &report), [""; 0]);
    let workers = report["workers"].as_array().unwrap();
    let module =
        workers.iter().find(|worker| worker["name"] == "hosted:socket").expect("the module's worker");
    module["module"].clone()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

#[test]
fn two_programs_share_a_host_and_every_file_is_right() {
    let place = place();
    let _host = Host::start(&place, "cpu");
    let runs = ["one", "other"].map(|out| (out, encrypt(&place, out)));
    for (out, run) in runs {
        let module = settled(&place, run, out);
        assert!(count(&module["jobs"]) >= FILES, "{module}");
        assert_eq!((&module["failed"], &module["quarantine"]), (&0.into(), &Value::Null), "{module}");
    }
}

#[test]
fn a_host_holds_so_many_bytes_of_a_client_and_no_more() {
    // Files of 20,000 bytes and their padding: the second one goes beyond.
    for (limit, is_felt) in [("20100", true), ("16M", false)] {
        let place = place();
        let module = "emulated:d=0+0,h=5000000+0,depth=8";
        let _host = Host::with(&place, &["--module", module, "--bytes-in-flight", limit]);
        let run = encrypt(&place, "out");
        let mut most = 0;
        loop {
            let report = order(&place, "report");
            // The questions at the beginning are short.
            match count(&report["totals"]["bytes"]) / FILE_BYTES as u64 {
                0 => {}
                files if files > FILES / 2 => break,
                _ => most = most.max(count(&report["clients"][0]["in_flight"])),
            }
        }
        settled(&place, run, "out");
        assert_eq!(most <= 2, is_felt, "at most {most} with {limit}");
    }
}

#[test]
fn a_host_that_is_killed_in_mid_run_costs_no_file() {
    let place = place();
    let mut host = Host::start(&place, "emulated:d=0+0,h=5000000+0,depth=8");
    let run = encrypt(&place, "out");
    // The questions at the beginning are some; the rest are files.
    while count(&order(&place, "report")["module"]["submitted"]) < 90 {
        std::thread::sleep(Duration::from_millis(5));
    }
    host.kill();
    let module = settled(&place, run, "out");
    assert!(count(&module["jobs"]) > 0, "some were done by the host: {module}");
    assert!(module["quarantine"].is_string(), "{module}");
}

#[test]
fn a_host_that_hangs_is_left_and_costs_no_file() {
    let place = place();
    let _host = Host::start(&place, "emulated:d=0+0,h=5000000+0,depth=8");
    let run = encrypt(&place, "out");
    while count(&order(&place, "report")["module"]["submitted"]) < 90 {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(order(&place, "fault hang")["ok"], true);
    let module = settled(&place, run, "out");
    assert!(module["quarantine"].is_string(), "{module}");
}

#[test]
fn a_host_that_computes_wrong_is_refused_with_the_example_and_listed_so() {
    let place = place();
    let _host = Host::start(&place, "emulated:d=0+0,h=0+0");
    let devices = || {
        let ran = place.evener().args(["devices", "--json", "--module", "hosted:socket"]).run().succeeded();
        let shown: Value = serde_json::from_slice(ran.stdout()).unwrap();
        assert_eq!(misfits("devices.schema.json", &shown), [""; 0]);
        shown["asked"][0].clone()
    };
    let does = devices()["does"].as_array().unwrap().clone();
    assert!(
        does.contains(&"AES-128-CBC encrypt".into()) && does.contains(&"SHA-256 encrypt".into()),
        "{does:?}"
    );
    assert!(!does.contains(&"AES-128-CTR encrypt".into()), "{does:?}");
    order(&place, "fault wrong-bytes");
    let refused = devices()["refused"].as_str().unwrap().to_owned();
    // Named by its vector, with the bytes that should have come and those that did.
    for part in ["AES-128-CBC encrypt", "SP 800-38A", "a key of 16 bytes", "expected a7 at byte 63, got a6"] {
        assert!(refused.contains(part), "{refused}");
    }
    let run = encrypt(&place, "out").wait_with_output().unwrap();
    assert!(!run.status.success() && !place.join("out").exists());
    assert!(String::from_utf8_lossy(&run.stderr).contains("AES-128-CBC encrypt"));
}

#[test]
fn where_no_host_listens_that_is_said() {
    let place = place();
    place.evener().args(["devices", "--module", "hosted:socket"]).run().succeeded();
    let run = encrypt(&place, "out").wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&run.stderr).contains("hosted:socket cannot be used"));
}

#[test]
fn a_system_call_to_a_host_carries_several_requests_where_they_are_handed_over_together() {
    let place = Place::new();
    let _host = Host::start(&place, "cpu");
    let small = ["bench", "crypt", "--sizes", "1K", "--count", "16", "--runs", "1", "--cell-time", "1"];
    let run = place.evener().args(small).args(["--module", "hosted:socket", "--json", "report.json"]);
    let printed = run.run().succeeded().stdout_text().to_owned();
    assert!(
        printed.contains("  1024 B, 15 together: ") && printed.contains(" core us a packet"),
        "{printed}"
    );
    let report: Value = serde_json::from_slice(&fs::read(place.join("report.json")).unwrap()).unwrap();
    assert_eq!(misfits("bench-crypt.schema.json", &report), [""; 0]);
    let rows = report["modules"][0]["packets"].as_array().unwrap();
    let carried = |row: &Value| row["requests_per_system_call"].as_f64().unwrap();
    // One request costs a look and a ring at least.
    assert!(carried(&rows[0]) <= 0.5, "{rows:#?}");
    assert!(carried(&rows[1]) > 2.0 * carried(&rows[0]), "{rows:#?}");
}

#[test]
fn what_is_longer_than_a_hosts_requests_is_measured_by_what_it_takes() {
    let place = Place::new();
    let _host = Host::with(&place, &["--module", "cpu", "--request-size", "65536"]);
    let run = place.evener().env("EVENER_CACHE_DIR", place.join("cache")).arg("explain");
    let ran = run.args(["--algorithm", "AES-256-CBC", "--size", "4M", "--module", "hosted:socket"]).run();
    let text = ran.succeeded().stdout_text().to_owned();
    let is_measured = |line: &str| line.contains("hosted:socket") && line.contains("measured now");
    assert!(text.lines().any(is_measured), "{text}");
}
