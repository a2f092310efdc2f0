//! Long requests, which are done piece by piece: results are libcrypto's.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use evener_core::{Algorithm, Direction, Family};
use evener_testing::drivers::watched;
use evener_testing::hosts::{Host, core_by};
use evener_testing::noise;

use support::numbers::{key_of, open, request_header};
use support::{ALL_FEATURES, DATA, GUEST, NEXT, Raw, WRITE, judge};

const PIECE_BYTES: usize = 64 << 10;

/// One request, whose result takes the place of its input or stands behind it; what came.
fn request(raw: &mut Raw, head: &[u8], iv: &[u8], input: &[u8], in_place: bool) -> Option<Vec<u8>> {
    let (source, len) = (DATA + 0x1000, input.len() as u32);
    let result = if in_place { source } else { source + 0x6_0000 };
    raw.put(DATA, &[head, iv].concat());
    raw.put(source, input);
    raw.put(DATA + 0xFFF, &[0xEE]);
    raw.describe(0, GUEST + DATA, (head.len() + iv.len()) as u32, NEXT, 1);
    raw.describe(1, GUEST + source, len, NEXT, 2);
    raw.describe(2, GUEST + result, len, NEXT | WRITE, 3);
    raw.describe(3, GUEST + DATA + 0xFFF, 1, WRITE, 0);
    raw.offer(0);
    let is_done = raw.wait() && raw.get(DATA + 0xFFF, 1) == [0];
    is_done.then(|| raw.get(result, input.len()))
}

#[test]
fn long_requests_are_libcryptos_in_place_and_apart_and_no_piece_is_longer_than_64_kib() {
    let longest = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&longest);
    let driver = watched(move |burst| {
        let most = burst.iter().map(|job| job.input_bytes()).max();
        seen.fetch_max(most.unwrap_or(0), Relaxed);
    });
    let host = Host::start(core_by(driver));
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    for &algorithm in Algorithm::ALL {
        let is_cut = match algorithm.family() {
            Family::Cbc | Family::Ctr | Family::Ecb => true,
            Family::Xts => false,
            _ => continue,
        };
        let partial = if algorithm.needs_whole_blocks() { 0 } else { 5 };
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let (key, iv) = (key_of(algorithm), vec![0xFF; algorithm.iv_bytes()]);
            let session = open(&mut raw, algorithm, direction == Direction::Decrypt, &key);
            for bytes in [PIECE_BYTES, PIECE_BYTES + 16, 3 * PIECE_BYTES, 200_000 + partial] {
                let input = noise(bytes as u64, bytes);
                let right = judge(algorithm, direction, [&key, &iv, &[], &input, &[]]).unwrap().0;
                let head = request_header(algorithm, direction, session, bytes);
                for in_place in [true, false] {
                    longest.store(0, Relaxed);
                    let made = request(&mut raw, &head, &iv, &input, in_place);
                    assert!(made.as_ref() == Some(&right), "{algorithm} {direction:?} {bytes} {in_place}");
                    let most = if is_cut { PIECE_BYTES } else { bytes };
                    assert!(longest.load(Relaxed) <= most, "{algorithm}: {longest:?}");
                }
            }
        }
    }
}
