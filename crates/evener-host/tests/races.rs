//! Clients that change a request while the host reads it: what was checked is what is used, and what comes later changes nothing.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test")]

mod support;

use std::os::unix::fs::FileExt as _;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use evener_core::{Algorithm, Direction};
use evener_host::Limits;
use evener_testing::hosts::{Host, core, emulated};
use evener_testing::noise;

use support::{
    ALL_FEATURES, AVAILABLE, DATA, GUEST, INDIRECT, NEXT, Raw, TABLE, WRITE, cipher, descriptor, header,
    judge,
};

const KEY: [u8; 16] = [1; 16];
const IV: [u8; 16] = [5; 16];
const UNTOUCHED: u8 = 0xEE;

fn encrypted(plain: &[u8]) -> Vec<u8> {
    judge(Algorithm::Aes128Cbc, Direction::Encrypt, [&KEY, &IV, &[], plain, &[]]).unwrap().0
}

/// A byte of a client's memory, and what it changes to, by turns or by chance.
type Flip = (u64, &'static [u8]);

/// Changes the client's memory, a byte at a time, until `body` is over.
fn while_changing<T>(raw: &mut Raw, flips: &[Flip], body: impl FnOnce(&mut Raw) -> T) -> T {
    struct Ends<'a>(&'a AtomicBool);
    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }
    let (memory, is_over, both) = (raw.memory.try_clone().unwrap(), AtomicBool::new(false), Barrier::new(2));
    thread::scope(|scope| {
        // Also where the body panics.
        let ends = Ends(&is_over);
        scope.spawn(|| {
            let chance = noise(3, 4_096);
            both.wait();
            for pair in chance.chunks(2).cycle().take_while(|_| !is_over.load(Relaxed)) {
                let (at, values) = flips[usize::from(pair[0]) % flips.len()];
                memory.write_all_at(&[values[usize::from(pair[1]) % values.len()]], at).unwrap();
            }
        });
        both.wait();
        let result = body(raw);
        drop(ends);
        result
    })
}

/// Fewest rounds of a race; where the system keeps one side from running there are more, until both outcomes were seen.
const ROUNDS: u32 = 2_000;
const ROUNDS_MAX: u32 = 200_000;

#[test]
fn a_header_that_changes_while_it_is_read_is_used_as_it_was_checked() {
    const SHORT: usize = 16;
    // Of its length in the header one byte differs, and the host takes nothing so long.
    const LONG: usize = SHORT + 0x800;
    let host = Host::with(core(), Limits { request_bytes_max: 1_024, ..Limits::default() });
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let session = raw.open_cbc(&KEY, true);
    let plain = noise(8, LONG);
    let head = header(0, session, &[16, SHORT as u32, LONG as u32], 1);
    let (space, status) = raw.write_request(&[&head, &IV, &plain], LONG, 0);
    let (right, nothing) = (encrypted(&plain[..SHORT]), vec![UNTOUCHED; LONG]);
    // Behind the opcode, the session, the length of the IV and one byte.
    let length: Flip = (DATA + 29, &[0, 8]);
    let seen = while_changing(&mut raw, &[length], |raw| {
        let mut seen = [0_u32; 2];
        for round in 0..ROUNDS_MAX {
            if round >= ROUNDS && !seen.contains(&0) {
                break;
            }
            raw.put(space, &nothing);
            raw.put(status, &[UNTOUCHED]);
            let number = raw.queue.sent;
            raw.offer(0);
            assert!(raw.wait(), "neither length is a fraud");
            let (told, written) = (raw.get(status, 1)[0], raw.used_element(number).1);
            let got = raw.get(space, LONG);
            match told {
                0 => assert!(
                    written as usize == SHORT + 1
                        && got[..SHORT] == right
                        && got[SHORT..] == nothing[SHORT..],
                    "{written} bytes of an answer to {SHORT}"
                ),
                _ => assert!(
                    (told, written) == (1, 1) && got == nothing,
                    "refused, and {written} bytes written"
                ),
            }
            seen[usize::from(told)] += 1;
        }
        seen
    });
    assert!(!seen.contains(&0), "both were read: {seen:?}");
    let report = host.stop();
    assert_eq!([report.totals.requests, report.totals.refused], seen.map(u64::from));
}

/// Where the parts of a request lie whose pieces have two places each; they differ in one byte of the address.
const HEAD: u64 = DATA;
const SOURCES: [u64; 2] = [DATA + 0x1000, DATA + 0x1100];
const ROOMS: [u64; 2] = [DATA + 0x2000, DATA + 0x2100];
const STATUS: u64 = DATA + 0x3000;
const BYTES: usize = 64;

/// A byte of descriptor `at` of the table.
const fn of_descriptor(at: u64, byte: u64) -> u64 {
    TABLE + 16 * at + byte
}

/// The second byte of both addresses.
const PLACES: [Flip; 2] = [(of_descriptor(1, 1), &[0x10, 0x11]), (of_descriptor(2, 1), &[0x20, 0x21])];

fn texts() -> [Vec<u8>; 2] {
    [noise(1, BYTES), noise(2, BYTES)]
}

fn write_split_request(raw: &Raw, session: u64) {
    raw.put(HEAD, &[cipher(true, session, BYTES), IV.to_vec()].concat());
    SOURCES.iter().zip(texts()).for_each(|(at, text)| raw.put(*at, &text));
    let table = [
        descriptor(GUEST + HEAD, 88, NEXT, 1),
        descriptor(GUEST + SOURCES[0], BYTES as u32, NEXT, 2),
        descriptor(GUEST + ROOMS[0], BYTES as u32, NEXT | WRITE, 3),
        descriptor(GUEST + STATUS, 1, WRITE, 0),
    ];
    raw.put(TABLE, &table.concat());
    raw.describe(0, GUEST + TABLE, 64, INDIRECT, 0);
}

fn clear(raw: &Raw) {
    ROOMS.iter().for_each(|at| raw.put(*at, &[UNTOUCHED; BYTES]));
    raw.put(STATUS, &[UNTOUCHED]);
}

/// Which text was encrypted, and into which space; the other one is as it was.
fn found(raw: &Raw) -> (usize, usize) {
    let spaces = ROOMS.map(|at| raw.get(at, BYTES));
    let space =
        spaces.iter().position(|space| *space != [UNTOUCHED; BYTES]).expect("it says that it is done");
    assert!(spaces[1 - space] == [UNTOUCHED; BYTES], "both spaces were written");
    let text = texts().iter().position(|text| encrypted(text) == spaces[space]);
    (text.expect("one of the two texts, and all of it"), space)
}

#[test]
fn descriptors_that_change_while_they_are_read_give_one_whole_answer() {
    let host = Host::start(core());
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let session = raw.open_cbc(&KEY, true);
    write_split_request(&raw, session);
    let seen = while_changing(&mut raw, &PLACES, |raw| {
        let mut seen = [[0_u32; 2]; 2];
        for round in 0..ROUNDS_MAX {
            if round >= ROUNDS && !seen.as_flattened().contains(&0) {
                break;
            }
            clear(raw);
            raw.offer(0);
            assert!(raw.wait(), "all four are right");
            assert_eq!(raw.get(STATUS, 1), [0]);
            let (text, space) = found(raw);
            seen[text][space] += 1;
        }
        seen
    });
    assert!(!seen.as_flattened().contains(&0), "each text in each space: {seen:?}");
    assert_eq!(host.stop().connections.broken_off, 0);
}

/// Clients of which most lose their connection.
const CLIENTS: u32 = 600;
/// Requests of one that does not.
const REQUESTS_MAX: u32 = 20;

#[test]
fn descriptors_that_turn_hostile_while_they_are_read_end_their_connection_or_change_nothing() {
    // Each is right but for one time in eight, so that in every third request all are.
    let hostile: Vec<Flip> = [
        // Addresses outside, and half of a length.
        (of_descriptor(1, 4), &[0, 0, 0, 0, 0, 0, 0, 1][..]),
        (of_descriptor(2, 4), &[0, 0, 0, 0, 0, 0, 0, 1]),
        (of_descriptor(1, 8), &[64, 64, 64, 64, 64, 64, 64, 32]),
        (of_descriptor(2, 8), &[64, 64, 64, 64, 64, 64, 64, 32]),
        // The end, for the host to write, a table; for the host to read.
        (of_descriptor(1, 12), &[1, 1, 1, 1, 1, 0, 3, 5]),
        (of_descriptor(2, 12), &[3, 3, 3, 3, 3, 3, 3, 1]),
        // A loop, or a descriptor that is not there.
        (of_descriptor(1, 14), &[2, 2, 2, 2, 2, 2, 1, 200]),
        // In the ring: a table that ends early.
        (8, &[64, 64, 64, 64, 64, 64, 64, 48]),
    ]
    .into_iter()
    .chain(PLACES)
    .collect();
    let host = Host::start(core());
    let mut bystander = Raw::ready(&host.socket(), ALL_FEATURES);
    let calm = bystander.open_cbc(&KEY, true);
    let (mut ended, mut answered) = (0, 0);
    for _ in 0..CLIENTS {
        let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
        let session = raw.open_cbc(&KEY, true);
        write_split_request(&raw, session);
        let goes_on = while_changing(&mut raw, &hostile, |raw| {
            (0..REQUESTS_MAX).all(|_| {
                clear(raw);
                raw.offer(0);
                let is_back = raw.wait();
                if is_back && raw.get(STATUS, 1) == [0] {
                    found(raw);
                    answered += 1;
                }
                is_back
            })
        });
        ended += u64::from(!goes_on);
        let text = noise(9, 512);
        let (got, status) = bystander.request(&[&cipher(true, calm, 512), &IV, &text], 512).unwrap();
        assert!(status == 0 && got == encrypted(&text), "another client");
    }
    assert!(ended > 0 && answered > 0, "{ended} ended, {answered} requests were answered");
    assert_eq!(host.stop().connections.broken_off, ended);
}

#[test]
fn what_changes_after_a_request_was_taken_changes_nothing_of_its_answer() {
    // Half a second, in which all of it is changed.
    let host = Host::start(emulated("emulated:d=0+0,h=500000000+0"));
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let session = raw.open_cbc(&KEY, true);
    write_split_request(&raw, session);
    clear(&raw);
    raw.offer(0);
    host.wait_for("taken", |report| report["module"]["submitted"] == 1);
    raw.put(HEAD, &[0xFF; 88]);
    raw.put(SOURCES[0], &[0; BYTES]);
    let elsewhere = descriptor(GUEST + ROOMS[1], BYTES as u32, WRITE, 0);
    raw.put(TABLE, &[&elsewhere[..]; 4].concat());
    raw.describe(0, GUEST + ROOMS[1], BYTES as u32, WRITE, 0);
    raw.put(AVAILABLE + 4, &7_u16.to_le_bytes());
    assert!(raw.wait());
    assert_eq!((raw.get(STATUS, 1), raw.used_element(0)), (vec![0], (0, BYTES as u32 + 1)));
    assert_eq!(found(&raw), (0, 0));
}
