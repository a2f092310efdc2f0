//! What a client gets, judged by libcrypto.
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, reason = "a test")]

mod support;

use evener_core::{Algorithm, Direction, Family};
use evener_host::Limits;
use evener_testing::hosts::{Host, core, emulated};
use evener_testing::noise;
use evener_testing::waiting::soon;

use support::numbers::{key_of, numbers, open};
use support::{
    ALL_FEATURES, DATA, GUEST, INDIRECT, MEMORY_BYTES, NEXT, RING, Raw, TABLE, USER, WRITE, cipher,
    descriptor, halves, header, judge, words,
};

/// One request by raw bytes: output and tag, or the status.
fn run(
    raw: &mut Raw,
    algorithm: Algorithm,
    decrypt: bool,
    session: u64,
    [iv, aad, input]: [&[u8]; 3],
) -> Result<Vec<u8>, u8> {
    let (src, tag) = (input.len() as u32, algorithm.tag_bytes() as u32);
    let code = u32::from(decrypt);
    let (head, space) = match numbers(algorithm).0 {
        0x002 => (header(code, session, &[iv.len() as u32, src, src], 1), src),
        0x302 => {
            let space = if decrypt { src - tag } else { src + tag };
            (header(0x300 | code, session, &[iv.len() as u32, aad.len() as u32, src, space, tag], 0), space)
        }
        0x102 => (header(0x100, session, &[src, tag], 0), tag),
        _ => (header(0x200, session, &[src, tag], 0), tag),
    };
    let (output, status) = raw.request(&[&head, iv, input, aad], space as usize).unwrap();
    if status == 0 { Ok(output) } else { Err(status) }
}

fn each_algorithm_is_libcryptos(host: &Host, does: impl Fn(Algorithm) -> bool) {
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    for &algorithm in Algorithm::ALL.iter().filter(|algorithm| does(**algorithm)) {
        let (key, iv) = (key_of(algorithm), noise(5, algorithm.iv_bytes()));
        let aad = if algorithm.is_aead() { noise(6, 13) } else { Vec::new() };
        let session = open(&mut raw, algorithm, false, &key);
        for bytes in [16, 64, 1008, 4096, 16_384] {
            let input = noise(bytes as u64, bytes);
            let got = run(&mut raw, algorithm, false, session, [&iv, &aad, &input]).unwrap();
            let (mut expected, tag) =
                judge(algorithm, Direction::Encrypt, [&key, &iv, &aad, &input, &[]]).unwrap();
            expected.extend(&tag);
            assert!(got == expected, "{algorithm}, {bytes} bytes");
            if algorithm.is_cipher() {
                let decrypt = open(&mut raw, algorithm, true, &key);
                assert_eq!(run(&mut raw, algorithm, true, decrypt, [&iv, &aad, &got]), Ok(input));
                raw.send(27, &words(&[decrypt]), &[]);
            }
        }
    }
}

#[test]
fn a_core_gives_libcryptos_bytes_for_every_algorithm() {
    let host = Host::start(core());
    each_algorithm_is_libcryptos(&host, |_| true);
    let report = host.stop();
    assert_eq!((report.totals.refused, report.totals.failed, report.connections.broken_off), (0, 0, 0));
    let ciphers = Algorithm::ALL.iter().filter(|algorithm| algorithm.is_cipher()).count() as u64;
    let requests = 5 * (Algorithm::ALL.len() as u64 + ciphers);
    assert_eq!(report.totals.requests, requests, "the host counts by itself");
    assert_eq!(report.totals.bytes, requests / 5 * (16 + 64 + 1008 + 4096 + 16_384));
}

#[test]
fn an_emulated_module_gives_libcryptos_bytes_for_all_that_it_does() {
    let host = Host::start(emulated("emulated:am3358"));
    each_algorithm_is_libcryptos(&host, |algorithm| {
        matches!(algorithm.family(), Family::Cbc | Family::Gcm | Family::Xts)
    });
    let report = host.stop();
    assert_eq!(report.module.submitted, report.totals.requests);
    assert_eq!(report.module.completed, report.totals.requests);
}

#[test]
fn the_vector_of_sp_800_38a_comes_out() {
    let hex = |text: &str| -> Vec<u8> {
        (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
    };
    let host = Host::start(core());
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    // NIST SP 800-38A, F.2.1, first two blocks.
    let session = raw.open_cbc(&hex("2b7e151628aed2a6abf7158809cf4f3c"), true);
    let iv = hex("000102030405060708090a0b0c0d0e0f");
    let plain = hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51");
    let (got, status) = raw.request(&[&cipher(true, session, 32), &iv, &plain], 32).unwrap();
    let expected = hex("7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2");
    assert_eq!((got, status), (expected, 0));
}

#[test]
fn any_framing_is_accepted() {
    let host = Host::start(core());
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let (key, iv, plain) = (noise(1, 16), noise(2, 16), noise(3, 160));
    let session = raw.open_cbc(&key, true);
    let expected = judge(Algorithm::Aes128Cbc, Direction::Encrypt, [&key, &iv, &[], &plain, &[]]).unwrap().0;
    let whole = [cipher(true, session, 160), iv, plain].concat();
    for (pieces, into) in [(1, 1), (7, 3), (40, 9), (3, 23)] {
        // Readable bytes in `pieces` descriptors of the ring itself; space and status in `into` more, the last one shared.
        raw.put(DATA, &whole);
        let cut = |total: usize, count: usize| {
            (0..count).map(move |at| (total * at / count, total * (at + 1) / count))
        };
        let mut index = 0;
        for (from, to) in cut(whole.len(), pieces) {
            raw.describe(index, GUEST + DATA + from as u64, (to - from) as u32, NEXT, index + 1);
            index += 1;
        }
        let space = DATA + 4096;
        raw.put(space, &[0xEE; 161]);
        for (from, to) in cut(161, into) {
            let flags = WRITE | if to == 161 { 0 } else { NEXT };
            raw.describe(index, GUEST + space + from as u64, (to - from) as u32, flags, index + 1);
            index += 1;
        }
        raw.offer(0);
        assert!(raw.wait());
        assert_eq!(raw.get(space, 161), [&expected[..], &[0]].concat(), "{pieces} and {into}");
        assert_eq!(raw.used_element(raw.queue.sent - 1), (0, 161));
    }
}

#[test]
fn data_that_is_not_authentic_is_answered_by_its_status_and_nothing_else() {
    let host = Host::start(core());
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let (key, iv) = (noise(1, 32), noise(2, 12));
    let session = open(&mut raw, Algorithm::Aes256Gcm, true, &key);
    let head = header(0x301, session, &[12, 0, 80, 64, 16], 0);
    let (space, status) = raw.request(&[&head, &iv, &noise(3, 80)], 64).unwrap();
    assert_eq!(status, 2);
    assert_eq!(space, [0xEE; 64], "no byte of plaintext");
    assert_eq!(host.stop().totals.failed, 1);
}

#[test]
fn what_a_session_cannot_do_is_refused_and_the_connection_goes_on() {
    let limits = Limits { request_bytes_max: 8192, ..Limits::default() };
    let host = Host::with(core(), limits);
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let (key, iv) = (noise(1, 16), noise(2, 16));
    let session = raw.open_cbc(&key, true);
    let mut status =
        |head: &[u8], iv: &[u8], src: usize| raw.request(&[head, iv, &noise(4, src)], src).unwrap().1;
    assert_eq!(status(&cipher(true, session + 1, 32), &iv, 32), 4, "no such session");
    assert_eq!(status(&cipher(false, session, 32), &iv, 32), 3, "the other direction");
    assert_eq!(status(&header(0x100, session, &[32, 20], 0), &[], 32), 3, "another service");
    assert_eq!(status(&header(7, session, &[16, 32, 32], 1), &iv, 32), 3, "no operation");
    assert_eq!(status(&header(0, session, &[16, 32, 32], 2), &iv, 32), 3, "a chain of cipher and hash");
    assert_eq!(status(&header(0, session, &[12, 32, 32], 1), &iv[..12], 32), 1, "a short IV");
    assert_eq!(status(&header(0, session, &[16, 32, 16], 1), &iv, 32), 1, "less space than source");
    assert_eq!(status(&cipher(true, session, 8208), &iv, 8208), 1, "more than a request may have");
    assert_eq!(status(&cipher(true, session, 31), &iv, 31), 1, "no whole blocks");
    assert_eq!(status(&cipher(true, session, 32), &iv, 32), 0);
    let report = host.stop();
    assert_eq!((report.totals.refused, report.totals.failed, report.totals.requests), (8, 1, 1));
}

#[test]
fn sessions_have_a_limit_and_closed_ones_are_gone() {
    let host = Host::with(core(), Limits { sessions_max: 3, ..Limits::default() });
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let key = noise(1, 16);
    let ids: Vec<u64> = (0..3).map(|_| raw.open_cbc(&key, true)).collect();
    let fields = [3, 16, 0, 0, 0, 0];
    assert_eq!(raw.open(2, fields, [1, 1, 0, 0], &key, &[]), -1, "the fourth");
    raw.send(27, &words(&[ids[1]]), &[]);
    let again = raw.open_cbc(&key, true);
    assert!(!ids.contains(&again));
    let mut status = |id| raw.request(&[&cipher(true, id, 16), &[0; 16], &[0; 16]], 16).unwrap().1;
    assert_eq!([status(ids[0]), status(ids[1]), status(again)], [0, 4, 0]);
    assert_eq!(raw.open(2, [5, 8, 0, 0, 0, 0], [1, 1, 0, 0], &[1; 8], &[]), -1, "DES");
}

#[test]
fn a_host_says_what_it_does() {
    let host = Host::start(emulated("emulated:am3358"));
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    assert_eq!(raw.ask(1), ALL_FEATURES);
    assert_eq!(raw.ask(15), 1 << 7 | 1 << 9);
    assert_eq!(raw.ask(17), 4);
    let mut part = |offset: u32, size: u32| {
        let mut payload = halves(&[offset, size, 0]);
        payload.extend(vec![0; size as usize]);
        raw.send(24, &payload, &[]);
        raw.answer(24)
    };
    let whole = part(0, 56);
    let field = |at: usize| u32::from_ne_bytes(whole[12 + at..16 + at].try_into().unwrap());
    assert_eq!((field(0), field(8)), (1, 0b1001), "ready; ciphers and AEAD");
    assert_eq!(field(12), 1 << 2 | 1 << 3 | 1 << 4 | 1 << 13);
    assert_eq!((field(20), field(24), field(32)), (0, 0, 1 << 1));
    assert_eq!(part(48, 8)[12..], whole[60..], "a part is a part");
    assert_eq!(part(50, 8), halves(&[50, 0, 0]), "what is not there is answered by nothing");
}

#[test]
fn a_guest_whose_features_are_not_told_is_woken_and_wakes() {
    let host = Host::start(core());
    // QEMU 10 sends this, whatever its guest chose; the guest goes by index all the same.
    let mut raw = Raw::ready(&host.socket(), 0x4000_0000);
    let session = raw.open_cbc(&noise(1, 16), true);
    for round in 0..200_u16 {
        let (space, status) = raw.request(&[&cipher(true, session, 16), &[0; 16], &[7; 16]], 16).unwrap();
        assert_eq!((space.len(), status), (16, 0));
        // Such a guest kicks only when `avail_event` says so, so it must follow.
        assert!(soon(|| raw.avail_event() == round + 1), "avail_event stays at {}", raw.avail_event());
    }
}

#[test]
fn a_batch_is_answered_by_few_calls() {
    for features in [ALL_FEATURES, ALL_FEATURES & !support::EVENT_IDX] {
        let host = Host::start(core());
        let mut raw = Raw::ready(&host.socket(), features);
        let session = raw.open_cbc(&noise(1, 16), true);
        let slots = 8;
        for _ in 0..20 {
            for slot in 0..slots {
                raw.write_request(&[&cipher(true, session, 16), &[0; 16], &[7; 16]], 16, slot);
            }
            (0..slots).for_each(|slot| raw.offer_quietly(slot));
            raw.kick();
            assert!(raw.wait());
        }
        let report = host.stop();
        assert_eq!(report.totals.requests, 160);
        // One per batch; a batch that the host saw in two parts may cost two.
        assert!(report.totals.calls <= 60, "{} calls", report.totals.calls);
    }
}

#[test]
fn a_ring_goes_on_where_it_was_stopped() {
    let host = Host::start(core());
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let session = raw.open_cbc(&noise(1, 16), true);
    let one = |raw: &mut Raw| raw.request(&[&cipher(true, session, 16), &[0; 16], &[7; 16]], 16).unwrap().1;
    for _ in 0..RING + 5 {
        assert_eq!(one(&mut raw), 0);
    }
    raw.send(11, &halves(&[0, 0]), &[]);
    assert_eq!(raw.answer(11), halves(&[0, u32::from(RING) + 5]));
    raw.set_memory(&[[GUEST, MEMORY_BYTES, USER, 0]]);
    raw.start_ring(RING + 5);
    assert_eq!(one(&mut raw), 0);
    // New memory while the ring runs: it goes on there.
    raw.set_memory(&[[GUEST, MEMORY_BYTES, USER, 0]]);
    assert_eq!(one(&mut raw), 0);
}

#[test]
fn clients_share_a_host_and_know_nothing_of_each_other() {
    let host = Host::start(core());
    let threads: Vec<_> = (0..6_u64)
        .map(|number| {
            let socket = host.socket();
            std::thread::spawn(move || {
                let mut raw = Raw::ready(&socket, ALL_FEATURES);
                let key = noise(number, 16);
                let session = raw.open_cbc(&key, true);
                assert_eq!(session, 0, "ids are a client's own");
                for round in 0..40 {
                    let plain = noise(number * 100 + round, 4096);
                    let head = cipher(true, session, 4096);
                    let (got, status) = raw.request(&[&head, &[9; 16], &plain], 4096).unwrap();
                    let expected =
                        judge(Algorithm::Aes128Cbc, Direction::Encrypt, [&key, &[9; 16], &[], &plain, &[]]);
                    assert!(status == 0 && got == expected.unwrap().0, "client {number}, round {round}");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let report = host.wait_for("all gone", |report| report["clients"] == serde_json::json!([]));
    assert_eq!(report["totals"]["requests"], 240);
    assert_eq!(report["connections"], 6);
}

/// Linux's driver of virtio-crypto hands each page of source and destination over with all those behind it, once more each.
#[test]
fn a_request_with_a_table_as_long_as_linux_makes_them_for_64_kib_is_done() {
    const PAGES: u64 = 16;
    const PAGE: u64 = 4_096;
    let host = Host::start(core());
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let key = noise(3, 16);
    let session = raw.open_cbc(&key, true);
    let plain = noise(8, (PAGES * PAGE) as usize);
    let (source, destination, status) = (DATA + 0x1000, DATA + 0x2_1000, DATA + 0x4_0000);
    raw.put(DATA, &cipher(true, session, plain.len()));
    raw.put(DATA + 72, &[3; 16]);
    raw.put(source, &plain);
    let mut pieces = vec![(DATA, 72, NEXT), (DATA + 72, 16, NEXT)];
    for (text, flags) in [(source, NEXT), (destination, NEXT | WRITE)] {
        let behind = |first: u64| (first..PAGES).map(move |page| (text + page * PAGE, PAGE as u32, flags));
        pieces.extend((0..PAGES).flat_map(behind));
    }
    pieces.push((status, 1, WRITE));
    assert!(pieces.len() > 64);
    let table = (1..).zip(&pieces).flat_map(|(next, (at, len, flags))| {
        descriptor(GUEST + at, *len, *flags, if flags & NEXT == 0 { 0 } else { next })
    });
    let table: Vec<u8> = table.collect();
    raw.put(TABLE, &table);
    raw.describe(0, GUEST + TABLE, table.len() as u32, INDIRECT, 0);
    raw.offer(0);
    assert!(raw.wait(), "the connection goes on");
    let expected = judge(Algorithm::Aes128Cbc, Direction::Encrypt, [&key, &[3; 16], &[], &plain, &[]]);
    assert_eq!(raw.get(status, 1), [0]);
    assert!(raw.get(destination, plain.len()) == expected.unwrap().0);
}
