//! Clients that lie, vanish or ask for too much: it costs them their connection, and no other client notices.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test")]

mod support;

use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};

use evener_core::{Algorithm, Direction};
use evener_host::Limits;
use evener_testing::hosts::{Host, core, emulated};
use evener_testing::noise;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::SealFlags;
use rustix::process::{Pid, Signal, kill_process};

use support::{
    ALL_FEATURES, AVAILABLE, DATA, GUEST, INDIRECT, MEMORY_BYTES, NEXT, RING, Raw, TABLE, USER, WRITE,
    cipher, descriptor, halves, header, judge, memory, words,
};

/// A client that goes on through all of it.
struct Bystander {
    raw: Raw,
    session: u64,
    key: Vec<u8>,
}

impl Bystander {
    fn new(host: &Host) -> Self {
        let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
        let key = noise(42, 16);
        let session = raw.open_cbc(&key, true);
        Self { raw, session, key }
    }

    fn goes_on(&mut self) {
        let plain = noise(9, 512);
        let (got, status) =
            self.raw.request(&[&cipher(true, self.session, 512), &[3; 16], &plain], 512).unwrap();
        let expected =
            judge(Algorithm::Aes128Cbc, Direction::Encrypt, [&self.key, &[3; 16], &[], &plain, &[]]);
        assert!(status == 0 && got == expected.unwrap().0);
    }
}

type Attack = (&'static str, fn(&mut Raw));

/// Each is carried out by a client of its own, whose connection must end, beside one that must not notice.
fn each_costs_its_connection(attacks: &[Attack], is_set_up: bool) {
    let host = Host::start(core());
    let mut bystander = Bystander::new(&host);
    for (count, (name, attack)) in (1..).zip(attacks) {
        let mut raw = Raw::connect(&host.socket());
        if is_set_up {
            raw.set_up(ALL_FEATURES);
        }
        attack(&mut raw);
        assert!(raw.ends(), "{name}: the connection goes on");
        bystander.goes_on();
        let report = host.wait_for("broken off", |report| report["broken_off"] == count);
        assert!(report["last_broken"].is_string(), "{name}: {report:#}");
    }
    host.wait_for("one left", |report| report["clients"].as_array().unwrap().len() == 1);
    bystander.goes_on();
}

fn table_of(raw: &Raw, region: [u64; 4], file: &std::fs::File) {
    let mut table = halves(&[1, 0]);
    table.extend(words(&region));
    raw.send(5, &table, &[file.as_fd()]);
}

const SEALED: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

#[test]
fn memory_that_cannot_be_trusted_is_refused() {
    let attacks: &[Attack] = &[
        ("unsealed", |raw| {
            table_of(raw, [GUEST, MEMORY_BYTES, USER, 0], &memory(MEMORY_BYTES, SealFlags::empty()));
        }),
        ("may shrink", |raw| {
            table_of(raw, [GUEST, MEMORY_BYTES, USER, 0], &memory(MEMORY_BYTES, SealFlags::GROW));
        }),
        ("shorter than its region", |raw| {
            table_of(raw, [GUEST, MEMORY_BYTES, USER, 0], &memory(MEMORY_BYTES - 4096, SEALED));
        }),
        ("offset beyond the end", |raw| {
            table_of(raw, [GUEST, 4096, USER, MEMORY_BYTES], &memory(MEMORY_BYTES, SEALED));
        }),
        ("a file on a disk", |raw| {
            let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
            table_of(raw, [GUEST, 4096, USER, 0], &file);
        }),
        ("two regions, one file", |raw| {
            let table = [halves(&[2, 0]), words(&[0, 4096, 0, 0]), words(&[8192, 4096, 8192, 4096])].concat();
            raw.send(5, &table, &[memory(MEMORY_BYTES, SEALED).as_fd()]);
        }),
        ("overlapping", |raw| raw.set_memory(&[[0, 8192, 0, 0], [4096, 8192, 1 << 40, 8192]])),
        ("beyond all addresses", |raw| raw.set_memory(&[[u64::MAX - 4095, 8192, USER, 0]])),
        ("nine regions", |raw| raw.send(5, &[halves(&[9, 0]), vec![0; 288]].concat(), &[])),
    ];
    each_costs_its_connection(attacks, false);
}

#[test]
fn messages_that_are_none_end_the_connection() {
    let attacks: &[Attack] = &[
        ("garbage", |raw| raw.send(0x4141_4141, &noise(1, 64), &[])),
        ("an unknown message", |raw| raw.send(40, &[], &[])),
        ("a session of 632 bytes, as QEMU 7.2 sends it", |raw| raw.send(26, &[0; 632], &[])),
        ("a key longer than its field", |raw| {
            let mut payload = vec![0; 1072];
            payload[12] = 65;
            raw.send(26, &payload, &[]);
        }),
        ("features that were not offered", |raw| raw.send(2, &words(&[1 << 34]), &[])),
        ("ring 4 of 4", |raw| raw.send(8, &halves(&[4, 64]), &[])),
        ("a ring of 63 entries", |raw| raw.send(8, &halves(&[0, 63]), &[])),
        ("a ring of 32768 entries", |raw| raw.send(8, &halves(&[0, 32_768]), &[])),
        ("a kick without descriptor", |raw| raw.send(12, &words(&[0]), &[])),
        ("a call that is to be polled", |raw| raw.send(13, &words(&[1 << 8]), &[])),
        ("a call that may block", |raw| {
            let (_ours, theirs) = rustix::pipe::pipe().unwrap();
            raw.send(13, &words(&[0]), &[theirs.as_fd()]);
        }),
        ("a ring outside its memory", |raw| {
            raw.set_memory(&[[GUEST, MEMORY_BYTES, USER, 0]]);
            raw.send(8, &halves(&[0, 64]), &[]);
            let kick = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
            raw.send(12, &words(&[0]), &[kick.as_fd()]);
            let addresses = [halves(&[0, 0]), words(&[USER + MEMORY_BYTES - 1008, USER, USER, 0])].concat();
            raw.send(9, &addresses, &[]);
        }),
    ];
    each_costs_its_connection(attacks, false);
}

fn table(raw: &Raw, rows: &[(u64, u32, u16, u16)]) {
    let bytes: Vec<u8> =
        rows.iter().flat_map(|&(address, len, flags, next)| descriptor(address, len, flags, next)).collect();
    raw.put(TABLE, &bytes);
}

const CHAINS: &[Attack] = &[
    ("a loop", |raw| {
        raw.describe(0, GUEST + DATA, 8, NEXT, 1);
        raw.describe(1, GUEST + DATA, 8, NEXT, 0);
        raw.offer(0);
    }),
    ("a head beyond the ring", |raw| raw.offer(RING)),
    ("a next beyond the ring", |raw| {
        raw.describe(0, GUEST + DATA, 72, NEXT, RING);
        raw.offer(0);
    }),
    ("an address outside", |raw| {
        raw.describe(0, GUEST + MEMORY_BYTES - 71, 72, NEXT, 1);
        raw.describe(1, GUEST + DATA, 1, WRITE, 0);
        raw.offer(0);
    }),
    ("an address that wraps", |raw| {
        raw.describe(0, u64::MAX - 8, 72, NEXT, 1);
        raw.describe(1, GUEST + DATA, 1, WRITE, 0);
        raw.offer(0);
    }),
    ("space outside", |raw| {
        raw.put(DATA, &cipher(true, 0, 16));
        raw.describe(0, GUEST + DATA, 104, NEXT, 1);
        raw.describe(1, GUEST + MEMORY_BYTES - 16, 17, WRITE, 0);
        raw.offer(0);
    }),
    ("no status byte", |raw| {
        raw.describe(0, GUEST + DATA, 104, 0, 0);
        raw.offer(0);
    }),
    ("a header cut short", |raw| {
        raw.describe(0, GUEST + DATA, 71, NEXT, 1);
        raw.describe(1, GUEST + DATA, 1, WRITE, 0);
        raw.offer(0);
    }),
    ("readable behind writable", |raw| {
        raw.describe(0, GUEST + DATA, 1, WRITE | NEXT, 1);
        raw.describe(1, GUEST + DATA, 72, 0, 0);
        raw.offer(0);
    }),
    ("a source longer than its descriptors", |raw| {
        let session = raw.open_cbc(&[1; 16], true);
        raw.request(&[&cipher(true, session, 4096), &[0; 16], &[0; 4080]], 4096);
    }),
    ("a destination longer than its descriptors", |raw| {
        let session = raw.open_cbc(&[1; 16], true);
        raw.request(&[&cipher(true, session, 4096), &[0; 16], &[0; 4096]], 4080);
    }),
    ("lengths whose sum wraps", |raw| {
        let session = raw.open_cbc(&[1; 16], true);
        raw.request(&[&header(0, session, &[u32::MAX, u32::MAX, 0], 1)], 16);
    }),
    ("a table of half a descriptor", |raw| {
        raw.describe(0, GUEST + TABLE, 24, INDIRECT, 0);
        raw.offer(0);
    }),
    ("a table of 1025 descriptors", |raw| {
        raw.describe(0, GUEST + TABLE, 1025 * 16, INDIRECT, 0);
        raw.offer(0);
    }),
    ("a table outside", |raw| {
        raw.describe(0, GUEST + MEMORY_BYTES - 16, 32, INDIRECT, 0);
        raw.offer(0);
    }),
    ("a table in a table", |raw| {
        table(raw, &[(GUEST + TABLE, 16, INDIRECT, 0)]);
        raw.describe(0, GUEST + TABLE, 16, INDIRECT, 0);
        raw.offer(0);
    }),
    ("a loop in a table", |raw| {
        table(raw, &[(GUEST + DATA, 8, NEXT, 1), (GUEST + DATA, 8, NEXT, 0)]);
        raw.describe(0, GUEST + TABLE, 32, INDIRECT, 0);
        raw.offer(0);
    }),
    ("an index that jumps", |raw| {
        raw.put(AVAILABLE + 2, &1000_u16.to_le_bytes());
        raw.kick();
    }),
];

#[test]
fn chains_that_cannot_be_end_the_connection() {
    each_costs_its_connection(CHAINS, true);
}

#[test]
fn a_client_may_map_so_much_and_no_more() {
    let host = Host::with(core(), Limits { memory_bytes_max: MEMORY_BYTES, ..Limits::default() });
    let mut bystander = Bystander::new(&host);
    let mut greedy = Raw::connect(&host.socket());
    let half = MEMORY_BYTES / 2;
    greedy.set_memory(&[[0, half, 0, 0], [1 << 40, half, 1 << 40, half]]);
    assert!(!greedy.is_ended());
    greedy.set_memory(&[[0, MEMORY_BYTES, 0, 0], [1 << 40, 4096, 1 << 40, 0]]);
    assert!(greedy.ends());
    bystander.goes_on();
}

#[test]
fn one_client_too_many_is_turned_away_until_another_goes() {
    let host = Host::with(core(), Limits { clients_max: 2, ..Limits::default() });
    let mut bystander = Bystander::new(&host);
    let second = Raw::ready(&host.socket(), ALL_FEATURES);
    host.wait_for("full", |report| report["clients"].as_array().unwrap().len() == 2);
    assert!(Raw::connect(&host.socket()).ends());
    bystander.goes_on();
    drop(second);
    host.wait_for("space", |report| report["clients"].as_array().unwrap().len() == 1);
    Bystander::new(&host).goes_on();
    assert_eq!(host.stop().connections.turned_away, 1);
}

#[test]
fn what_is_beyond_the_limit_in_flight_waits_and_is_done() {
    two_are_held_of_twelve(Limits { in_flight_max: 2, ..Limits::default() });
}

#[test]
fn bytes_beyond_the_limit_in_flight_wait_and_are_done() {
    // The second of them goes beyond.
    two_are_held_of_twelve(Limits { bytes_in_flight_max: 17, ..Limits::default() });
}

/// The module has space for all twelve requests of 16 bytes, and takes so long for each that it is seen at work.
fn two_are_held_of_twelve(limits: Limits) {
    let host = Host::with(emulated("emulated:d=0+0,h=30000000+0,depth=64"), limits);
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let session = raw.open_cbc(&[1; 16], true);
    for slot in 0..12 {
        raw.write_request(&[&cipher(true, session, 16), &[0; 16], &[7; 16]], 16, slot);
    }
    (0..12).for_each(|slot| raw.offer_quietly(slot));
    raw.kick();
    let report = host.wait_for("busy", |report| report["clients"][0]["in_flight"] != 0);
    assert!(report["clients"][0]["in_flight"].as_u64().unwrap() <= 2, "{report:#}");
    assert!(raw.wait());
    assert_eq!(host.stop().totals.requests, 12);
}

#[test]
fn a_client_that_vanishes_in_the_middle_leaves_nothing() {
    let host = Host::start(emulated("emulated:d=0+0,h=20000000+0"));
    let mut gone = Raw::ready(&host.socket(), ALL_FEATURES);
    let session = gone.open_cbc(&[1; 16], true);
    gone.write_request(&[&cipher(true, session, 16), &[0; 16], &[7; 16]], 16, 0);
    gone.offer(0);
    host.wait_for("taken", |report| report["module"]["submitted"] == 1);
    drop(gone);
    let report = host.wait_for("gone", |report| report["clients"].as_array().unwrap().is_empty());
    assert_eq!(report["broken_off"], 0, "to leave is no offence");
    Bystander::new(&host).goes_on();
    let report = host.stop();
    assert_eq!((report.module.submitted, report.module.completed), (2, 2));
}

/// The name under which the test below runs itself again.
const CHILD: &str = "HOST_TEST_SOCKET";

#[test]
fn the_child_of_a_client_does_not_inherit_its_place() {
    if let Ok(socket) = std::env::var(CHILD) {
        // Connects, hands the stream to a process that outlives it, and ends.
        let raw = Raw::ready(std::path::Path::new(&socket), ALL_FEATURES);
        let stream = Stdio::from(std::os::fd::OwnedFd::from(raw.stream));
        let mut heir = Command::new("sleep");
        heir.arg("60").stdin(stream).stdout(Stdio::null()).stderr(Stdio::null());
        let heir = heir.spawn().unwrap().id();
        std::fs::write(format!("{socket}.heir"), heir.to_string()).unwrap();
        std::process::exit(0);
    }
    let host = Host::start(core());
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "the_child_of_a_client_does_not_inherit_its_place"]).env(CHILD, host.socket());
    let status = again.stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    let report = host.wait_for("seen and gone", |report| {
        report["connections"] == 1 && report["clients"].as_array().unwrap().is_empty()
    });
    assert_eq!(report["broken_off"], 0);
    let heir = std::fs::read_to_string(host.socket().with_extension("heir")).unwrap();
    let heir = Pid::from_raw(heir.parse().unwrap()).unwrap();
    assert_eq!(kill_process(heir, Signal::KILL), Ok(()), "the heir still had the stream");
}

#[test]
fn a_client_that_reads_no_calls_delays_nobody() {
    let host = Host::start(core());
    let mut deaf = Raw::ready(&host.socket(), ALL_FEATURES & !support::EVENT_IDX);
    // One more call than the count can take would block its writer.
    rustix::io::write(&deaf.queue.call, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    let session = deaf.open_cbc(&[1; 16], true);
    deaf.write_request(&[&cipher(true, session, 16), &[0; 16], &[7; 16]], 16, 0);
    deaf.offer(0);
    host.wait_for("done", |report| report["totals"]["requests"] == 1);
    Bystander::new(&host).goes_on();
}

#[test]
fn a_client_that_makes_its_calls_block_delays_nobody() {
    let host = Host::start(core());
    let mut deaf = Raw::ready(&host.socket(), ALL_FEATURES & !support::EVENT_IDX);
    let session = deaf.open_cbc(&[1; 16], true);
    // Sender and host have one file open: after the host has taken it, the sender can still make it blocking.
    rustix::io::write(&deaf.queue.call, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    rustix::io::ioctl_fionbio(&deaf.queue.call, false).unwrap();
    for slot in 0..4 {
        deaf.write_request(&[&cipher(true, session, 16), &[0; 16], &[7; 16]], 16, slot);
        deaf.offer(slot);
        host.wait_for("done", |report| report["totals"]["requests"] == slot + 1);
    }
    let mut bystander = Bystander::new(&host);
    bystander.goes_on();
    // The calls were not lost: the count is as full as it can be, so its reader wakes.
    assert_eq!(rustix::io::read(&deaf.queue.call, &mut [0; 8]), Ok(8));
    assert!(!deaf.is_ended(), "not to read is no offence");
    assert!(!host.stop().calls_may_wait);
}
