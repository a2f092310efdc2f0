//! Kernels as a driver: the same answers as libcrypto's, at every length, at every level of instructions.

use std::sync::Arc;

use evener_core::{Algorithm, Direction, InlineDriver, Job, JobError, Outcome, Padding, Session};
use evener_driver_lanes::Lanes;
use evener_driver_libcrypto::Libcrypto;
use evener_kernels::Level;

const ALL: [Algorithm; 3] = [Algorithm::Aes128Gcm, Algorithm::Aes192Gcm, Algorithm::Aes256Gcm];
const NONCE: [u8; 12] = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 11, 12];

fn session(algorithm: Algorithm, direction: Direction) -> Arc<Session> {
    let key: Vec<u8> = (1..).take(algorithm.key_bytes().expect("a cipher has a key")).collect();
    Arc::new(Session::new(algorithm, direction, Padding::None, &key).expect("its key"))
}

fn text(bytes: usize) -> Vec<u8> {
    (0..=u8::MAX).cycle().map(|it| it.wrapping_mul(37).wrapping_add(11)).take(bytes).collect()
}

/// Output and tag, in place or apart.
fn run(
    driver: &mut dyn InlineDriver,
    session: &Arc<Session>,
    src: &[u8],
    tag: &[u8],
    is_apart: bool,
) -> (Outcome, Vec<u8>, Vec<u8>) {
    let (mut space, mut dst, aad) = (src.to_vec(), vec![0xee; src.len()], text(src.len() % 50));
    let mut burst = [if is_apart { Job::apart(src, &mut dst) } else { Job::in_place(&mut space) }];
    burst[0].arm(Arc::clone(session), &NONCE, src.len());
    burst[0].set_aad(&aad);
    burst[0].set_tag(tag);
    driver.run(&mut burst);
    let made = (burst[0].outcome(), burst[0].tag().to_vec());
    drop(burst);
    (made.0, if is_apart { dst } else { space }, made.1)
}

#[test]
fn every_length_comes_out_as_by_libcrypto_and_back_at_every_level() {
    let mut libcrypto = Libcrypto::new().unwrap();
    for level in Level::all() {
        let mut lanes = Lanes::unchecked(level);
        for algorithm in ALL {
            let [seal, open] = [Direction::Encrypt, Direction::Decrypt].map(|it| session(algorithm, it));
            for bytes in (0..600).chain([1_023, 1_024, 1_025, 4_095, 16_384, 16_399, 70_000]) {
                let (clear, is_apart) = (text(bytes), bytes % 2 == 1);
                let expected = run(&mut libcrypto, &seal, &clear, &[], is_apart);
                let sealed = run(&mut lanes, &seal, &clear, &[], is_apart);
                assert!(sealed == expected, "{algorithm}, {bytes} bytes, {}", level.name());
                let opened = run(&mut lanes, &open, &sealed.1, &sealed.2, !is_apart);
                assert!(matches!(opened.0, Outcome::Done { written } if written == bytes));
                assert!(opened.1 == clear, "{algorithm}, {bytes} bytes back, {}", level.name());
            }
        }
    }
}

#[test]
fn what_is_not_authentic_is_refused_and_cleared() {
    let has_gcm = |lanes: &Lanes| lanes.supports(Algorithm::Aes256Gcm, Direction::Decrypt);
    let Some(mut lanes) = Lanes::new().filter(has_gcm) else {
        println!("skipped: this processor lacks the instructions");
        return;
    };
    let [seal, open] = [Direction::Encrypt, Direction::Decrypt].map(|it| session(Algorithm::Aes256Gcm, it));
    let (_, sealed, tag) = run(&mut lanes, &seal, &text(1_000), &[], false);
    for bit in 0..128 {
        let mut wrong = tag.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        for is_apart in [false, true] {
            let (outcome, output, _) = run(&mut lanes, &open, &sealed, &wrong, is_apart);
            assert_eq!(outcome, Outcome::Failed(JobError::NotAuthentic), "bit {bit}");
            assert!(output.iter().all(|&byte| byte == 0), "bit {bit}: text is left");
        }
    }
}

#[test]
fn a_job_of_another_algorithm_fails_and_its_memory_is_untouched() {
    let Some(mut lanes) = Lanes::new() else {
        println!("skipped: this processor lacks the instructions");
        return;
    };
    let session = session(Algorithm::ChaCha20Poly1305, Direction::Decrypt);
    assert!(!lanes.supports(Algorithm::ChaCha20Poly1305, Direction::Decrypt));
    let mut space = text(64);
    let mut burst = [Job::in_place(&mut space)];
    burst[0].arm(session, &[1; 16], 64);
    lanes.run(&mut burst);
    assert_eq!(burst[0].outcome(), Outcome::Failed(JobError::Unsupported));
    drop(burst);
    assert_eq!(space, text(64));
}
