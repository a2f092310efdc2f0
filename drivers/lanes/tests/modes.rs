//! ECB, CBC decryption, CTR and XTS by kernels, at every level of instructions, are libcrypto's: all lengths, paddings and places, counters that wrap.

use std::sync::Arc;

use evener_core::{Algorithm, Direction, Family, InlineDriver as _, JobError, Outcome, Padding, Session};
use evener_driver_lanes::Lanes;
use evener_kernels::Level;
use evener_testing::requests::{Direct, JobSpec, answers, judged, kinds, session};

/// Of every algorithm, direction and padding that `modes.rs` takes one.
fn sessions() -> Vec<Arc<Session>> {
    let is_taken = |session: &Arc<Session>| match session.algorithm().family() {
        Family::Ecb | Family::Ctr | Family::Xts => true,
        Family::Cbc => session.direction() == Direction::Decrypt,
        _ => false,
    };
    let all: Vec<_> = kinds(1).filter(is_taken).collect();
    // Three lengths of keys, two of XTS: ECB both ways and CBC one way with padding and without, CTR and XTS both ways.
    assert_eq!(all.len(), 3 * (4 + 2 + 2) + 2 * 2);
    all
}

fn agree(route: &mut Direct<Lanes>, specs: &[JobSpec]) -> Vec<Outcome> {
    let made = answers(route, specs);
    for (spec, answer) in specs.iter().zip(&made) {
        let right = judged(spec);
        assert_eq!(answer.outcome, right.outcome, "{}", spec.what());
        assert!(answer.output == right.output, "{}: output differs", spec.what());
    }
    made.into_iter().map(|answer| answer.outcome).collect()
}

#[test]
fn every_length_and_place_comes_out_as_by_libcrypto_at_every_level() {
    for level in Level::all() {
        let mut route = Direct(Lanes::unchecked(level));
        for session in sessions() {
            let lengths = (0..700).chain([1_023, 1_024, 1_025, 4_095, 4_096, 16_384, 16_399, 70_000]);
            let specs: Vec<_> = lengths.map(|bytes| JobSpec::noisy(&session, bytes, bytes)).collect();
            let outcomes = agree(&mut route, &specs);
            assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Done { .. })), "{session:?}");
        }
    }
}

/// What libcrypto has encrypted, of every length behind the last block's start, and with the padding's bytes spoilt.
#[test]
fn padding_is_taken_away_where_it_is_one() {
    for level in Level::all() {
        let mut route = Direct(Lanes::unchecked(level));
        for algorithm in
            [Algorithm::Aes128Ecb, Algorithm::Aes256Ecb, Algorithm::Aes128Cbc, Algorithm::Aes256Cbc]
        {
            let [seals, opens] = [Direction::Encrypt, Direction::Decrypt]
                .map(|way| session(algorithm, way, Padding::Pkcs7, 4));
            for bytes in (0..50).chain([500, 511, 512, 513, 4_096, 4_111]) {
                let text = JobSpec::noisy(&seals, bytes, bytes);
                let sealed = judged(&text).output;
                let opened = JobSpec { session: Arc::clone(&opens), input: sealed, ..text };
                assert_eq!(
                    agree(&mut route, std::slice::from_ref(&opened)),
                    [Outcome::Done { written: bytes }]
                );
                let mut spoilt = opened;
                let at = spoilt.input.len() - 17 % spoilt.input.len();
                spoilt.input[at] ^= 0x40;
                agree(&mut route, &[spoilt]);
            }
        }
    }
}

/// A counter of 128 bits goes on from its highest value at zero.
#[test]
fn counters_wrap_as_libcryptos() {
    for level in Level::all() {
        let mut route = Direct(Lanes::unchecked(level));
        for algorithm in [Algorithm::Aes128Ctr, Algorithm::Aes192Ctr, Algorithm::Aes256Ctr] {
            let session = session(algorithm, Direction::Encrypt, Padding::None, 2);
            let wraps = (0..70).flat_map(|before: u8| [0, 4, 8, 12].map(|whole| (before, whole)));
            let specs: Vec<_> = wraps
                .map(|(before, whole)| {
                    let mut iv = vec![0xff; 16];
                    iv[..whole].fill(3);
                    iv[15] -= before;
                    JobSpec { iv, ..JobSpec::noisy(&session, 1_500, before.into()) }
                })
                .collect();
            agree(&mut route, &specs);
        }
    }
}

#[test]
fn a_unit_that_is_none_is_refused() {
    let has_xts = |lanes: &Lanes| lanes.supports(Algorithm::Aes128Xts, Direction::Encrypt);
    let Some(lanes) = Lanes::new().filter(has_xts) else {
        println!("skipped: this processor lacks the instructions");
        return;
    };
    let most = lanes.job_bytes_max(Algorithm::Aes128Xts, Direction::Encrypt);
    let session = session(Algorithm::Aes128Xts, Direction::Encrypt, Padding::None, 1);
    let specs = [15, 16, most, most + 1]
        .map(|bytes| JobSpec { input: vec![5; bytes], ..JobSpec::noisy(&session, bytes, 1) });
    let refused = Outcome::Failed(JobError::BadLength);
    let done = |written| Outcome::Done { written };
    assert_eq!(agree(&mut Direct(lanes), &specs), [refused, done(16), done(most), refused]);
}
