//! A module that is told to go wrong: its clients see that, and the host goes on answering.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test")]

mod support;

use std::io::Write as _;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use evener_core::{Algorithm, Direction};
use support::{ALL_FEATURES, Host, Raw, cipher, emulated, judge};

const PLAIN: [u8; 64] = [7; 64];
const KEY: [u8; 16] = [1; 16];

fn client(host: &Host) -> (Raw, u64) {
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let session = raw.open_cbc(&KEY, true);
    (raw, session)
}

/// One request: what came out, and the status; nothing where the connection ended.
fn ask(raw: &mut Raw, session: u64) -> Option<(Vec<u8>, u8)> {
    raw.request(&[&cipher(true, session, 64), &[0; 16], &PLAIN], 64)
}

fn right() -> Vec<u8> {
    judge(Algorithm::Aes128Cbc, Direction::Encrypt, [&KEY, &[0; 16], &[], &PLAIN, &[]]).unwrap().0
}

fn told(host: &Host, order: &str) {
    assert_eq!(host.order(order)["ok"], true, "{order}");
}

#[test]
fn errors_and_wrong_bytes_reach_the_client_while_it_is_connected() {
    let host = Host::start(emulated("emulated:am3358"));
    let (mut raw, session) = client(&host);
    assert_eq!(ask(&mut raw, session), Some((right(), 0)));
    told(&host, "fault error 5 from 3 every 2");
    let mut statuses = || -> Vec<u8> { (0..4).map(|_| ask(&mut raw, session).unwrap().1).collect() };
    assert_eq!(statuses(), [0, 1, 0, 1], "jobs 2 to 5");
    told(&host, "fault wrong-bytes");
    let (bytes, status) = ask(&mut raw, session).unwrap();
    assert_eq!(status, 0, "it says that all is well");
    assert_ne!(bytes, right());
    told(&host, "fault none");
    assert_eq!(ask(&mut raw, session), Some((right(), 0)));
    let report = host.stop();
    assert_eq!((report.module.faults, report.totals.failed, report.totals.requests), (3, 2, 5));
}

#[test]
fn while_the_module_hangs_control_goes_on_and_a_reset_frees_it() {
    let host = Host::start(emulated("emulated:am3358"));
    let (mut raw, session) = client(&host);
    told(&host, "fault hang from 1");
    let (_, status) = raw.write_request(&[&cipher(true, session, 64), &[0; 16], &PLAIN], 64, 0);
    raw.offer(0);
    host.wait_for("taken", |report| report["module"]["submitted"] == 1);
    // Sessions, questions and other connections are answered, and a client may leave.
    let second = raw.open_cbc(&KEY, true);
    assert_eq!(raw.ask(17), 4);
    let (other, _) = client(&host);
    drop(other);
    host.wait_for("one left", |report| report["clients"].as_array().unwrap().len() == 1);
    assert_eq!(raw.used(), 0, "the request is not answered");
    told(&host, "fault none");
    told(&host, "reset");
    assert!(raw.wait());
    assert_eq!(raw.get(status, 1), [1]);
    assert_eq!(ask(&mut raw, second), Some((right(), 0)));
}

#[test]
fn a_host_ends_though_its_module_hangs_and_somebody_gives_orders_and_reads_no_answers() {
    let host = Host::start(emulated("emulated:am3358"));
    let (mut raw, session) = client(&host);
    told(&host, "fault hang from 1");
    raw.write_request(&[&cipher(true, session, 64), &[0; 16], &PLAIN], 64, 0);
    raw.offer(0);
    host.wait_for("taken", |report| report["module"]["submitted"] == 1);
    let mut deaf = host.control();
    deaf.set_nonblocking(true).unwrap();
    // Until the host, which cannot get rid of its answers, takes no more orders.
    while deaf.write_all(b"report\n").is_ok() {}
    // Others' are answered, and mean something.
    told(&host, "fault none");
    told(&host, "reset");
    assert!(raw.wait());
    told(&host, "fault hang");
    raw.offer(0);
    host.wait_for("taken again", |report| report["module"]["submitted"] == 2);
    let (told, ended) = channel();
    thread::spawn(move || told.send(host.stop()).unwrap());
    let report = ended.recv_timeout(Duration::from_secs(60)).expect("it never ends");
    assert_eq!(report.module.submitted, 2);
    drop(deaf);
}

#[test]
fn a_ring_can_be_stopped_while_the_module_hangs_and_a_late_answer_is_dropped() {
    let host = Host::start(emulated("emulated:am3358"));
    let (mut raw, session) = client(&host);
    told(&host, "fault hang from 1");
    let (_, status) = raw.write_request(&[&cipher(true, session, 64), &[0; 16], &PLAIN], 64, 0);
    raw.offer(0);
    host.wait_for("taken", |report| report["module"]["submitted"] == 1);
    raw.send(11, &support::halves(&[0, 0]), &[]);
    assert_eq!(raw.answer(11), support::halves(&[0, 1]), "it had taken one");
    told(&host, "fault none");
    told(&host, "reset");
    host.wait_for("given back", |report| report["module"]["completed"] == 1);
    assert_eq!((raw.used(), raw.get(status, 1)), (0, vec![0xEE]), "a stopped ring is not written");
}

#[test]
fn a_module_that_is_removed_ends_its_clients_and_takes_no_others() {
    let host = Host::start(emulated("emulated:am3358"));
    let (mut raw, session) = client(&host);
    assert!(ask(&mut raw, session).is_some());
    told(&host, "fault gone");
    // The answer of a lost module may still come; then the connection ends.
    let last = ask(&mut raw, session);
    assert!(last.is_none_or(|(_, status)| status == 1));
    assert!(raw.ends());
    let report = host.wait_for("gone", |report| report["module"]["gone"] == true);
    assert_eq!(report["totals"]["requests"], 1);
    let mut late = Raw::connect(&host.socket());
    assert!(late.ends());
}

#[test]
fn service_time_changes_while_it_runs() {
    let host = Host::start(emulated("emulated:d=0+0,h=1000+0"));
    let (mut raw, session) = client(&host);
    let mut time_of = |host: &Host, order: &str, jobs: u16| {
        told(host, order);
        for slot in 0..jobs {
            raw.write_request(&[&cipher(true, session, 64), &[0; 16], &PLAIN], 64, slot);
        }
        let began = Instant::now();
        (0..jobs).for_each(|slot| raw.offer_quietly(slot));
        raw.kick();
        assert!(raw.wait());
        began.elapsed()
    };
    let whole = Duration::from_millis(40);
    assert!(time_of(&host, "service 40000000+0", 1) >= whole);
    assert!(time_of(&host, "pace 200", 1) >= whole * 2);
    assert!(time_of(&host, "pace 100", 4) >= whole * 4, "one after the other");
    told(&host, "service preset");
    assert!(time_of(&host, "fault delay 50000000", 1) >= Duration::from_millis(50));
    assert_eq!(host.stop().totals.requests, 7);
}

#[test]
fn of_two_units_one_goes_on_while_the_other_hangs() {
    let host = Host::start(emulated("emulated:am3358"));
    let (mut raw, session) = client(&host);
    let (mut other, session_of_other) = client(&host);
    told(&host, "units 2");
    told(&host, "depth 2");
    told(&host, "fault hang from 1 every 1000");
    raw.write_request(&[&cipher(true, session, 64), &[0; 16], &PLAIN], 64, 0);
    raw.offer(0);
    host.wait_for("taken", |report| report["module"]["submitted"] == 1);
    for _ in 0..3 {
        assert_eq!(ask(&mut other, session_of_other), Some((right(), 0)));
    }
    assert_eq!(raw.used(), 0);
}
