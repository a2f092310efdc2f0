//! Requests that are worked on in the client's own memory: their results, what stays as it was, and clients that change that memory meanwhile.
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, reason = "a test")]

mod support;

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;

use evener::CoreDrivers;
use evener_core::{Algorithm, Direction, InlineDriver as _, Job};
use evener_driver_libcrypto::Libcrypto;
use evener_host::Module;
use evener_testing::drivers::{Around, libcrypto, multibuffer};
use evener_testing::hosts::{Host, core, core_by};
use evener_testing::noise;

use support::numbers::{key_of, open, request_header};
use support::{ALL_FEATURES, DATA, GUEST, INDIRECT, NEXT, Raw, TABLE, WRITE, cipher, descriptor, judge};

const HEAD: u64 = DATA;
const IV_AT: u64 = DATA + 72;
const STATUS: u64 = DATA + 0x200;
const SOURCE: u64 = DATA + 0x1000;
const ROOM: u64 = DATA + 0x4_0000;
const UNTOUCHED: u8 = 0xEE;

/// Where source and destination lie; each in one descriptor.
#[derive(Clone, Copy, Debug)]
struct Place {
    src: u64,
    dst: u64,
}

const PLACES: [Place; 4] = [
    Place { src: SOURCE, dst: SOURCE },
    Place { src: SOURCE, dst: ROOM },
    // They share bytes: only a copy gives the right result.
    Place { src: SOURCE, dst: SOURCE + 8 },
    Place { src: SOURCE + 40, dst: SOURCE },
];

/// A request over `bytes` that lie there; it is under descriptor 0.
fn write_request(raw: &Raw, head: &[u8], iv: &[u8], place: Place, [src, dst]: [usize; 2]) {
    raw.put(HEAD, head);
    raw.put(IV_AT, iv);
    raw.put(STATUS, &[UNTOUCHED]);
    let all = [
        (HEAD, 72, 0),
        (IV_AT, iv.len(), 0),
        (place.src, src, 0),
        (place.dst, dst, WRITE),
        (STATUS, 1, WRITE),
    ];
    let all: Vec<_> = all.into_iter().filter(|(_, len, _)| *len > 0).collect();
    let mut table = Vec::new();
    for (index, (at, len, flags)) in (1..).zip(&all) {
        let next = if index == all.len() as u16 { 0 } else { NEXT };
        table.extend(descriptor(GUEST + at, *len as u32, flags | next, index));
    }
    raw.put(TABLE, &table);
    raw.describe(0, GUEST + TABLE, table.len() as u32, INDIRECT, 0);
}

/// What is worked on in place where it lies so.
fn kinds() -> impl Iterator<Item = (Algorithm, Direction)> {
    let both = [Direction::Encrypt, Direction::Decrypt];
    let all = Algorithm::ALL.iter().flat_map(move |&algorithm| both.map(|direction| (algorithm, direction)));
    all.filter(|(algorithm, direction)| {
        !algorithm.is_aead() && (algorithm.is_cipher() || *direction == Direction::Encrypt)
    })
}

fn both_drivers() -> Option<Module> {
    let multi = multibuffer()?;
    let profile = multi.profile().clone();
    let drivers = CoreDrivers::new(Box::new(libcrypto()), Some(Box::new(multi)));
    Some(Module::core(profile, drivers, Algorithm::ALL.to_vec()))
}

#[test]
fn results_are_libcryptos_wherever_source_and_destination_lie_and_nothing_beside_them_changes() {
    for module in [Some(core()), both_drivers()].into_iter().flatten() {
        let host = Host::start(module);
        let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
        for (algorithm, direction) in kinds() {
            let (key, iv) = (key_of(algorithm), noise(5, algorithm.iv_bytes()));
            let session = open(&mut raw, algorithm, direction == Direction::Decrypt, &key);
            for bytes in [16, 64, 1008, 4096, 16_384, 70_000 / 16 * 16] {
                let input = noise(bytes as u64, bytes);
                let (output, tag) = judge(algorithm, direction, [&key, &iv, &[], &input, &[]]).unwrap();
                let expected = if algorithm.is_cipher() { output } else { tag };
                let head = request_header(algorithm, direction, session, bytes);
                for place in PLACES {
                    // The source first, then the space around the destination, but not over it.
                    let dst = expected.len();
                    let before = [UNTOUCHED; 8];
                    raw.put(place.dst + dst as u64, &before);
                    raw.put(place.src, &input);
                    write_request(&raw, &head, &iv, place, [bytes, dst]);
                    let (behind, ahead) = (raw.get(place.dst + dst as u64, 64), raw.get(place.dst - 64, 64));
                    raw.offer(0);
                    assert!(raw.wait());
                    let what = format!("{algorithm} {direction}, {bytes} bytes, {place:x?}");
                    assert_eq!(
                        (raw.get(STATUS, 1), raw.used_element(raw.queue.sent - 1)),
                        (vec![0], (0, dst as u32 + 1)),
                        "{what}"
                    );
                    assert!(raw.get(place.dst, dst) == expected, "{what}");
                    assert!(
                        raw.get(place.dst + dst as u64, 64) == behind && raw.get(place.dst - 64, 64) == ahead,
                        "{what}"
                    );
                }
            }
            raw.send(27, &support::words(&[session]), &[]);
        }
        let report = host.stop();
        assert_eq!((report.totals.failed, report.totals.refused, report.connections.broken_off), (0, 0, 0));
    }
}

/// A core with libcrypto that calls `before` before each burst.
fn core_after(mut before: impl FnMut(&[Box<Job<'_>>]) + Send + 'static) -> Module {
    core_by(Around::new(libcrypto(), move |driver: &mut Libcrypto, burst: &mut [Box<Job<'_>>]| {
        before(burst);
        driver.run(burst);
    }))
}

/// Some memory, a place in it, and what is written there.
type Change = (File, u64, Vec<u8>);

#[test]
fn what_stands_there_when_the_cipher_reads_it_is_what_a_client_gets_and_of_an_aead_what_stood_there_first() {
    const BYTES: usize = 4096;
    // The client's memory, and what it writes there between the taking of its request and the work.
    let later: Arc<Mutex<Option<Change>>> = Arc::default();
    let shared = Arc::new(AtomicUsize::new(0));
    let (of_driver, count) = (Arc::clone(&later), Arc::clone(&shared));
    let host = Host::start(core_after(move |burst| {
        count.fetch_add(burst.iter().filter(|job| job.shared_span().is_some()).count(), SeqCst);
        if let Some((memory, at, bytes)) = of_driver.lock().unwrap().take() {
            memory.write_all_at(&bytes, at).unwrap();
        }
    }));
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let (first, second, iv) = (noise(1, BYTES), noise(2, BYTES), noise(3, 16));
    for (algorithm, direction) in kinds() {
        let (key, iv) = (key_of(algorithm), &iv[..algorithm.iv_bytes()]);
        let session = open(&mut raw, algorithm, direction == Direction::Decrypt, &key);
        let dst = if algorithm.is_cipher() { BYTES } else { algorithm.tag_bytes() };
        raw.put(SOURCE, &first);
        write_request(
            &raw,
            &request_header(algorithm, direction, session, BYTES),
            iv,
            PLACES[1],
            [BYTES, dst],
        );
        *later.lock().unwrap() = Some((raw.memory.try_clone().unwrap(), SOURCE, second.clone()));
        raw.offer(0);
        assert!(raw.wait());
        let (output, tag) = judge(algorithm, direction, [&key, iv, &[], &second, &[]]).unwrap();
        assert!(
            raw.get(ROOM, dst) == if algorithm.is_cipher() { output } else { tag },
            "{algorithm} {direction}"
        );
    }
    assert_eq!(shared.swap(0, SeqCst), kinds().count(), "each was worked on where it lies");
    // What is not authentic is never seen: such a text is worked on in a copy.
    let (algorithm, key) = (Algorithm::Aes128Gcm, noise(4, 16));
    let (sealed, tag) = judge(algorithm, Direction::Encrypt, [&key, &iv[..12], &[], &first, &[]]).unwrap();
    let sealed = [sealed, tag].concat();
    for (decrypts, from, to) in [(false, &first, &sealed), (true, &sealed, &first)] {
        let session = open(&mut raw, algorithm, decrypts, &key);
        let lengths = [12, 0, from.len() as u32, to.len() as u32, 16];
        raw.put(SOURCE, from);
        let head = support::header(0x300 | u32::from(decrypts), session, &lengths, 0);
        write_request(&raw, &head, &iv[..12], PLACES[1], [from.len(), to.len()]);
        *later.lock().unwrap() = Some((raw.memory.try_clone().unwrap(), SOURCE, second.clone()));
        raw.offer(0);
        assert!(raw.wait());
        assert_eq!(raw.get(STATUS, 1), [0]);
        assert!(raw.get(ROOM, to.len()) == *to && shared.load(SeqCst) == 0);
    }
}

/// Bytes of each request of the test below.
const RACED_BYTES: usize = 4096;

/// Has a text that stands at the source worked on under a key of its own; what came of it.
fn raced(raw: &mut Raw, (algorithm, direction): (Algorithm, Direction), key: &[u8], place: Place) -> Vec<u8> {
    let session = open(raw, algorithm, direction == Direction::Decrypt, key);
    let dst = if algorithm.is_cipher() { RACED_BYTES } else { algorithm.tag_bytes() };
    let head = request_header(algorithm, direction, session, RACED_BYTES);
    write_request(raw, &head, &noise(9, algorithm.iv_bytes()), place, [RACED_BYTES, dst]);
    raw.offer(0);
    assert!(raw.wait(), "it goes on");
    assert_eq!(raw.get(STATUS, 1), [0], "{algorithm} {direction}");
    raw.send(27, &support::words(&[session]), &[]);
    raw.get(place.dst, dst)
}

/// Requests of a client whose memory changes all the time; how many.
fn be_hostile(mut raw: Raw, is_over: &AtomicBool) -> u64 {
    let memory = raw.memory.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in (0..).take_while(|_| !is_over.load(SeqCst)) {
                let at = if round % 2 == 0 { SOURCE } else { ROOM };
                memory.write_all_at(&noise(round, 2 * RACED_BYTES), at).unwrap();
            }
        });
        let mut answers = 0;
        while !is_over.load(SeqCst) {
            for kind in kinds() {
                raced(&mut raw, kind, &key_of(kind.0), PLACES[answers % 2]);
                answers += 1;
            }
        }
        answers as u64
    })
}

#[test]
fn a_client_that_rewrites_its_memory_all_the_time_is_answered_and_harms_nobody() {
    for module in [Some(core()), both_drivers()].into_iter().flatten() {
        let host = Host::start(module);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let ready = || Raw::ready(&host.socket(), ALL_FEATURES);
            let hostile = [ready(), ready()].map(|raw| scope.spawn(|| be_hostile(raw, &is_over)));
            let mut calm = ready();
            for (round, (algorithm, direction)) in
                (0..40).flat_map(|round| kinds().map(move |kind| (round, kind)))
            {
                let (key, text) = (noise(round, key_of(algorithm).len()), noise(round, RACED_BYTES));
                calm.put(SOURCE, &text);
                let got = raced(&mut calm, (algorithm, direction), &key, PLACES[round as usize % 2]);
                let iv = noise(9, algorithm.iv_bytes());
                let (output, tag) = judge(algorithm, direction, [&key, &iv, &[], &text, &[]]).unwrap();
                let right = if algorithm.is_cipher() { output } else { tag };
                assert!(got == right, "{algorithm} {direction}, round {round}");
            }
            is_over.store(true, SeqCst);
            assert!(hostile.into_iter().all(|client| client.join().unwrap() > 0));
        });
        let report = host.stop();
        let counts = (report.totals.failed, report.connections.broken_off, report.module.submitted);
        assert_eq!(counts, (0, 0, report.module.completed));
    }
}

#[test]
fn memory_of_a_client_that_goes_stays_until_its_request_is_over() {
    let (taken, is_taken) = mpsc::channel();
    let (may_go, go) = mpsc::channel::<()>();
    let (taken, go) = (Mutex::new(Some(taken)), Mutex::new(go));
    let host = Host::start(core_after(move |burst| {
        if let Some(taken) = taken.lock().unwrap().take() {
            assert!(burst[0].shared_span().is_some());
            taken.send(()).unwrap();
            go.lock().unwrap().recv().unwrap();
        }
    }));
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let session = raw.open_cbc(&noise(1, 16), true);
    write_request(&raw, &cipher(true, session, 65_536), &noise(2, 16), PLACES[0], [65_536; 2]);
    raw.offer(0);
    is_taken.recv().unwrap();
    drop(raw);
    host.wait_for("gone", |report| report["clients"].as_array().unwrap().is_empty());
    may_go.send(()).unwrap();
    let mut next = Raw::ready(&host.socket(), ALL_FEATURES);
    let session = next.open_cbc(&noise(1, 16), true);
    let (space, status) = next.request(&[&cipher(true, session, 16), &[0; 16], &[7; 16]], 16).unwrap();
    let right =
        judge(Algorithm::Aes128Cbc, Direction::Encrypt, [&noise(1, 16), &[0; 16], &[], &[7; 16], &[]]);
    assert!(status == 0 && space == right.unwrap().0);
}
