//! A module that is told to go wrong: its clients see that, and the host goes on answering.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test")]

mod support;

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use evener::Turns;
use evener_core::{Algorithm, Direction, HasEnded, Job, JobError};
use evener_driver_emulated::{Control, Emulated, Fault, Preset, When};
use evener_driver_libcrypto::Libcrypto;
use evener_host::Module;
use evener_testing::drivers::{Probe, Probed, Stopped};
use evener_testing::hosts::{Host, emulated};

use support::{ALL_FEATURES, Raw, cipher, judge};

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

fn send_order(host: &Host, order: &str) {
    assert_eq!(host.order(order)["ok"], true, "{order}");
}

/// A host whose module hangs at a client's request; the client, and where the request's status is to stand.
fn hanging() -> (Host, Raw, u64) {
    let host = Host::start(emulated("emulated:am3358"));
    let (mut raw, session) = client(&host);
    send_order(&host, "fault hang from 1");
    let (_, status) = raw.write_request(&[&cipher(true, session, 64), &[0; 16], &PLAIN], 64, 0);
    raw.offer(0);
    host.wait_for("taken", |report| report["module"]["submitted"] == 1);
    (host, raw, status)
}

#[test]
fn a_module_has_time_to_answer_once_more_before_it_is_given_up() {
    // It answers who waits, not who looks: as its threads, which were stopped with the host's and go on later.
    let module = Module::queued(Box::new(Stopped::new(0)), Duration::from_millis(20), Turns::new(None));
    let host = Host::start(module);
    let (mut raw, session) = client(&host);
    assert_eq!(ask(&mut raw, session), Some((right(), 0)));
    assert_eq!(host.order("report")["module"]["gone"], false);
}

#[test]
fn errors_and_wrong_bytes_reach_the_client_while_it_is_connected() {
    let host = Host::start(emulated("emulated:am3358"));
    let (mut raw, session) = client(&host);
    assert_eq!(ask(&mut raw, session), Some((right(), 0)));
    send_order(&host, "fault error 5 from 3 every 2");
    let mut statuses = || -> Vec<u8> { (0..4).map(|_| ask(&mut raw, session).unwrap().1).collect() };
    assert_eq!(statuses(), [0, 1, 0, 1], "jobs 2 to 5");
    send_order(&host, "fault wrong-bytes");
    let (bytes, status) = ask(&mut raw, session).unwrap();
    assert_eq!(status, 0, "it says that all is well");
    assert_ne!(bytes, right());
    send_order(&host, "fault none");
    assert_eq!(ask(&mut raw, session), Some((right(), 0)));
    let report = host.stop();
    assert_eq!((report.module.faults, report.totals.failed, report.totals.requests), (3, 2, 5));
}

#[test]
fn while_the_module_hangs_control_goes_on_and_a_reset_frees_it() {
    let (host, mut raw, status) = hanging();
    // Sessions, questions and other connections are answered, and a client may leave.
    let second = raw.open_cbc(&KEY, true);
    assert_eq!(raw.ask(17), 4);
    let (other, _) = client(&host);
    drop(other);
    host.wait_for("one left", |report| report["clients"].as_array().unwrap().len() == 1);
    assert_eq!(raw.used(), 0, "the request is not answered");
    send_order(&host, "fault none");
    send_order(&host, "reset");
    assert!(raw.wait());
    assert_eq!(raw.get(status, 1), [1]);
    assert_eq!(ask(&mut raw, second), Some((right(), 0)));
}

#[test]
fn a_host_ends_though_its_module_hangs_and_somebody_gives_orders_and_reads_no_answers() {
    let (host, mut raw, _) = hanging();
    let mut deaf = host.control();
    deaf.set_nonblocking(true).unwrap();
    // Until the host, which cannot get rid of its answers, takes no more orders.
    while deaf.write_all(b"report\n").is_ok() {}
    // Others' are answered, and mean something.
    send_order(&host, "fault none");
    send_order(&host, "reset");
    assert!(raw.wait());
    send_order(&host, "fault hang");
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
    let (host, mut raw, status) = hanging();
    raw.send(11, &support::halves(&[0, 0]), &[]);
    assert_eq!(raw.answer(11), support::halves(&[0, 1]), "it had taken one");
    send_order(&host, "fault none");
    send_order(&host, "reset");
    host.wait_for("given back", |report| report["module"]["completed"] == 1);
    assert_eq!((raw.used(), raw.get(status, 1)), (0, vec![0xEE]), "a stopped ring is not written");
}

#[test]
fn a_module_that_is_removed_ends_its_clients_and_takes_no_others() {
    let host = Host::start(emulated("emulated:am3358"));
    let (mut raw, session) = client(&host);
    assert!(ask(&mut raw, session).is_some());
    send_order(&host, "fault gone");
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
        send_order(host, order);
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
    send_order(&host, "service preset");
    assert!(time_of(&host, "fault delay 50000000", 1) >= Duration::from_millis(50));
    assert_eq!(host.stop().totals.requests, 7);
}

#[test]
fn of_two_units_one_goes_on_while_the_other_hangs() {
    let host = Host::start(emulated("emulated:am3358"));
    let (mut raw, session) = client(&host);
    let (mut other, session_of_other) = client(&host);
    send_order(&host, "units 2");
    send_order(&host, "depth 2");
    send_order(&host, "fault hang from 1 every 1000");
    raw.write_request(&[&cipher(true, session, 64), &[0; 16], &PLAIN], 64, 0);
    raw.offer(0);
    host.wait_for("taken", |report| report["module"]["submitted"] == 1);
    for _ in 0..3 {
        assert_eq!(ask(&mut other, session_of_other), Some((right(), 0)));
    }
    assert_eq!(raw.used(), 0);
}

/// Makes a module one that the host knows nothing of: it hangs by the test's order, and the next job that comes back is failed with what the
/// test names.
struct Own(Arc<ModuleEvents>);

/// What the test says, and sees.
#[derive(Default)]
struct ModuleEvents {
    error: Mutex<Option<JobError>>,
    /// How often keys were to be closed.
    evictions: AtomicU64,
}

/// A host whose module does what the test says.
fn start_own(silence: Duration) -> (Host, Control, Arc<ModuleEvents>) {
    let preset: Preset = "emulated:am3358,depth=2".parse().unwrap();
    let driver = Emulated::new(preset.without_core_time(), Box::new(Libcrypto::new().unwrap()));
    let (control, events) = (driver.control(), Arc::<ModuleEvents>::default());
    let own = Probed::new(Box::new(driver), Own(Arc::clone(&events)));
    (Host::start(Module::queued(Box::new(own), silence, Turns::new(None))), control, events)
}

impl Probe<'static> for Own {
    fn before_submit(&mut self, job: &Job<'static>) {
        assert!(job.lengths_fit(), "no module is asked for what cannot be");
    }

    fn after_poll(&mut self, came: &mut [Box<Job<'static>>], _: usize) {
        if let Some(job) = came.first_mut() {
            self.0.error.lock().unwrap().take().into_iter().for_each(|error| job.fail(error));
        }
    }

    fn before_evict(&mut self, _: HasEnded<'_>) {
        self.0.evictions.fetch_add(1, SeqCst);
    }
}

/// Never, as far as a test goes.
const LONG: Duration = Duration::from_secs(3_600);

#[test]
fn what_a_module_of_its_own_fails_is_told_by_its_status_and_it_goes_on() {
    let (host, _, script) = start_own(LONG);
    let (mut raw, session) = client(&host);
    assert_eq!(ask(&mut raw, session), Some((right(), 0)));
    assert!(host.order("pace 300")["error"].is_string(), "nobody programs its times");
    let failures = [
        (JobError::Module { code: 5 }, 1),
        (JobError::KeyRefused { code: 22 }, 1),
        (JobError::ModuleFull, 5),
        (JobError::Unsupported, 3),
        (JobError::NotAuthentic, 2),
    ];
    for (failure, status) in failures {
        *script.error.lock().unwrap() = Some(failure);
        assert_eq!(ask(&mut raw, session).unwrap().1, status, "{failure:?}");
    }
    // Half a block, of which the module learns nothing.
    let odd = raw.request(&[&cipher(true, session, 24), &[0; 16], &PLAIN[..24]], 24).unwrap();
    assert_eq!(odd.1, 1);
    assert_eq!(ask(&mut raw, session), Some((right(), 0)));
    let report = host.stop();
    assert_eq!((report.totals.requests, report.totals.failed, report.module.gone), (2, 6, false));
}

#[test]
fn while_a_module_of_its_own_hangs_control_goes_on_and_a_reset_gives_its_requests_back() {
    let (host, control, script) = start_own(LONG);
    let (mut raw, session) = client(&host);
    control.set_fault(Fault::Hang, When::ALWAYS);
    let (_, status) = raw.write_request(&[&cipher(true, session, 64), &[0; 16], &PLAIN], 64, 0);
    raw.offer(0);
    host.wait_for("taken", |report| report["module"]["submitted"] == 1);
    raw.open_cbc(&KEY, false);
    assert_eq!(raw.ask(17), 4);
    let (other, _) = client(&host);
    drop(other);
    host.wait_for("one left", |report| report["clients"].as_array().unwrap().len() == 1);
    thread::sleep(Duration::from_millis(20));
    assert_eq!(
        (raw.used(), script.evictions.load(SeqCst)),
        (0, 0),
        "neither answered, nor are keys closed where that may hang"
    );
    control.set_fault(Fault::None, When::ALWAYS);
    send_order(&host, "reset");
    assert!(raw.wait());
    assert_eq!(raw.get(status, 1), [1]);
    assert_eq!(ask(&mut raw, session), Some((right(), 0)));
    assert!(script.evictions.load(SeqCst) > 0, "the other one's is");
}

#[test]
fn a_module_of_its_own_that_hangs_is_given_up_and_all_that_it_holds_is_answered_as_failed() {
    let (host, control, _) = start_own(Duration::from_millis(300));
    let (mut raw, session) = client(&host);
    assert_eq!(ask(&mut raw, session), Some((right(), 0)));
    control.set_fault(Fault::Hang, When::ALWAYS);
    // Two that it holds, and one for which it has no space.
    let written = [1, 2, 3]
        .map(|slot| (slot, raw.write_request(&[&cipher(true, session, 64), &[0; 16], &PLAIN], 64, slot).1));
    written.iter().for_each(|&(slot, _)| raw.offer_quietly(slot));
    raw.kick();
    // The connection ends behind the answers.
    assert!(raw.wait() || raw.used() == raw.queue.sent);
    assert!(written.iter().all(|&(_, status)| raw.get(status, 1) == [1]));
    assert!(raw.ends());
    let report = host.wait_for("given up", |report| report["module"]["gone"] == true);
    assert_eq!((&report["totals"]["requests"], &report["totals"]["failed"]), (&1.into(), &3.into()));
    assert!(Raw::connect(&host.socket()).ends(), "there is nothing to come for");
    let report = host.stop();
    assert_eq!((report.module.submitted, report.module.completed), (4, 4));
}

#[test]
fn a_module_of_its_own_that_is_removed_ends_its_clients() {
    let (host, _, script) = start_own(LONG);
    let (mut raw, session) = client(&host);
    assert_eq!(ask(&mut raw, session), Some((right(), 0)));
    *script.error.lock().unwrap() = Some(JobError::ModuleLost);
    let last = ask(&mut raw, session);
    assert!(last.is_none_or(|(_, status)| status == 1));
    assert!(raw.ends());
    assert!(host.stop().module.gone);
}
