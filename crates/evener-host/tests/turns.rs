//! A host whose module other processes have, too: it takes turns with them, as runs do.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test; the other process says what it has")]

mod support;

use std::env;
use std::path::Path;
use std::thread;
use std::time::Duration;

use evener::Turns;
use evener_arbiter::{Arbiter, ModuleCount};
use evener_core::{Algorithm, Direction, Nanos};
use evener_driver_emulated::{Control, Emulated, Fault, Preset, When};
use evener_driver_libcrypto::Libcrypto;
use evener_host::Module;
use evener_testing::arbiters::{ArbiterFolder, attach_in};
use evener_testing::hosts::Host;
use evener_testing::programs::Process;
use evener_testing::waiting::soon;

use support::{ALL_FEATURES, Raw, cipher, judge};

const PLAIN: [u8; 64] = [7; 64];
const KEY: [u8; 16] = [1; 16];

/// Never, as far as a test goes.
const AGES: Nanos = Nanos::from_millis(1_000_000);

/// Names the arbiter's folder, in the process that has the module first.
const FOLDER: &str = "TURNS_FOLDER";

/// A host whose module does one request at a time, each for so long, takes another meanwhile, and is called `one` among those that share it.
fn host(arbiter: &Arbiter, each: Duration) -> Host {
    controlled_host(arbiter, each).0
}

/// The same, with the switches of its module.
fn controlled_host(arbiter: &Arbiter, each: Duration) -> (Host, Control) {
    let preset: Preset = format!("emulated:d=0+0,h={}+0,depth=2", each.as_nanos()).parse().unwrap();
    let driver = Emulated::new(preset, Box::new(Libcrypto::new().unwrap()));
    let control = driver.control();
    let turns = Turns::new(Some(arbiter.module("one", 1)));
    (Host::start(Module::queued(Box::new(driver), Duration::from_secs(600), turns)), control)
}

/// A client with so many requests before the host; where their results and statuses are to stand.
fn client(host: &Host, requests: u16) -> (Raw, Vec<(u64, u64)>) {
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let session = raw.open_cbc(&KEY, true);
    let parts = [&cipher(true, session, 64)[..], &[0; 16], &PLAIN];
    let places = (0..requests).map(|slot| raw.write_request(&parts, 64, slot)).collect();
    (0..requests).for_each(|slot| raw.offer_quietly(slot));
    raw.kick();
    (raw, places)
}

/// Waits for all that a client wants, which libcrypto judges.
fn assert_right((mut raw, places): (Raw, Vec<(u64, u64)>)) {
    assert!(raw.wait());
    let right =
        judge(Algorithm::Aes128Cbc, Direction::Encrypt, [&KEY, &[0; 16], &[], &PLAIN, &[]]).unwrap().0;
    for (place, status) in places {
        assert_eq!((raw.get(place, 64), raw.get(status, 1)), (right.clone(), vec![0]));
    }
}

/// Whether as many as that have a permit, and wait for one.
fn stands(arbiter: &Arbiter, held: usize, waiting: usize) -> bool {
    let snapshot = arbiter.snapshot();
    let module = snapshot.modules.first();
    module.is_some_and(|module| (module.holders.len(), module.waiting.len()) == (held, waiting))
}

/// How often a run waited in vain.
fn looked_up(arbiter: &Arbiter) -> u64 {
    let counts = arbiter.snapshot().modules.into_iter().flat_map(|module| module.counts);
    counts.filter(|(count, _)| *count == ModuleCount::TimedOut).map(|(_, times)| times).sum()
}

#[test]
#[ignore = "the process that has the module first, which a test starts"]
fn holder_process() {
    let Some(folder) = env::var_os(FOLDER) else { return };
    let _held = attach_in(Path::new(&folder)).module("one", 1).try_acquire(AGES).unwrap();
    println!("has it");
    thread::sleep(Duration::from_secs(600));
}

#[test]
fn a_host_waits_for_a_process_that_has_its_module_and_goes_on_when_that_is_killed() {
    let folder = ArbiterFolder::new();
    let mut holder = Process::start("holder_process", &[(FOLDER, folder.path().as_os_str())]);
    assert!(holder.lines().any(|line| line.contains("has it")));
    let arbiter = folder.attach();
    let host = host(&arbiter, Duration::ZERO);
    let client = client(&host, 2);
    assert!(soon(|| stands(&arbiter, 1, 1)), "the host waits in order: {:?}", arbiter.snapshot());
    assert!(soon(|| looked_up(&arbiter) > 1), "and looks up meanwhile: {:?}", arbiter.snapshot());
    assert_eq!(client.0.used(), 0, "it asks its module for nothing");
    // Others are answered meanwhile, and come and go.
    assert_eq!(Raw::ready(&host.socket(), ALL_FEATURES).ask(17), 4);
    drop(holder);
    assert_right(client);
    assert!(soon(|| stands(&arbiter, 0, 0)), "who has nothing there keeps no turn: {:?}", arbiter.snapshot());
    assert_eq!(host.stop().totals.requests, 2);
}

#[test]
fn a_host_that_always_has_something_to_do_gives_its_turn_to_who_waits() {
    let folder = ArbiterFolder::new();
    let (arbiter, other) = (folder.attach(), folder.attach());
    let host = host(&arbiter, Duration::from_millis(20));
    let clients = [client(&host, 12), client(&host, 12)];
    assert!(soon(|| stands(&arbiter, 1, 0)), "it has its turn: {:?}", arbiter.snapshot());
    let turn = other.module("one", 1).wait_for(Nanos::from_millis(1), AGES).unwrap();
    let done: u16 = clients.iter().map(|(raw, _)| raw.used()).sum();
    assert!(done < 24, "its clients did not have all before");
    assert!(soon(|| stands(&arbiter, 1, 1)), "now it waits: {:?}", arbiter.snapshot());
    drop(turn);
    clients.into_iter().for_each(assert_right);
}

/// Jain's index of what equal clients of one emulated module have when so many of all their requests are done: they come while another process has the module, which then works on so many and
/// hangs, so that no clock has a part in it.
fn fairness(clients: usize, requests: u16, done: u64) -> f64 {
    let folder = ArbiterFolder::new();
    let (arbiter, other) = (folder.attach(), folder.attach());
    let held = other.module("one", 1).try_acquire(AGES).unwrap();
    let (host, control) = controlled_host(&arbiter, Duration::ZERO);
    control.set_fault(Fault::Hang, When { from: done + 1, every: 1 });
    let all: Vec<_> = (0..clients).map(|_| client(&host, requests)).collect();
    assert!(soon(|| stands(&arbiter, 1, 1)), "the host has seen one: {:?}", arbiter.snapshot());
    drop(held);
    let counts = || all.iter().map(|(raw, _)| f64::from(raw.used())).collect::<Vec<_>>();
    assert!(soon(|| counts().iter().sum::<f64>() >= done as f64), "{:?}", counts());
    let (sum, squares) = counts().iter().fold((0.0, 0.0), |(sum, squares), n| (sum + n, squares + n * n));
    assert!((sum - done as f64).abs() < 0.5, "it hangs: {sum}");
    control.set_fault(Fault::None, When::ALWAYS);
    sum * sum / (clients as f64 * squares)
}

#[test]
fn equal_clients_of_a_module_have_been_served_alike_when_half_is_done() {
    for (clients, requests) in [(8, 12), (64, 12)] {
        // Half, and not a whole number of rounds.
        let half = u64::try_from(clients).unwrap() * u64::from(requests) / 2 + 3;
        let index = fairness(clients, requests, half);
        assert!(index >= 0.98, "{clients} clients: {index}");
    }
}
