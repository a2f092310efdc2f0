//! What the driver promises beside the right bytes: lengths, padding, failures, sessions side by side.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, where both mean a failed test")]

use evener_core::{
    Algorithm, BLOCK_BYTES, Direction, InlineDriver as _, Job, JobError, Outcome, Padding, Session,
};
use evener_driver_libcrypto::{CipherContext, Libcrypto};

const IV: [u8; 16] = [0x5a; 16];

#[test]
fn padded_encryption_is_unpadded_encryption_of_the_padded_text() {
    for algorithm in with_padding() {
        let padded = session(algorithm, Direction::Encrypt, Padding::Pkcs7);
        let unpadded = session(algorithm, Direction::Encrypt, Padding::None);
        for bytes in 0..=4 * BLOCK_BYTES + 1 {
            let src = pattern(bytes);
            let pad = BLOCK_BYTES - bytes % BLOCK_BYTES;
            let by_hand = [&src[..], &vec![u8::try_from(pad).unwrap(); pad]].concat();
            let expected = run_apart(&unpadded, &by_hand, by_hand.len()).unwrap();
            assert_eq!(run_apart(&padded, &src, by_hand.len()).unwrap(), expected, "{algorithm} {bytes}");
            assert_eq!(run_in_place(&padded, &src, by_hand.len()).unwrap(), expected, "{algorithm} {bytes}");
        }
    }
}

#[test]
fn padded_decryption_needs_no_more_space_than_its_input() {
    for algorithm in with_padding() {
        let [encrypt, decrypt] = [Direction::Encrypt, Direction::Decrypt]
            .map(|direction| session(algorithm, direction, Padding::Pkcs7));
        for bytes in 0..=4 * BLOCK_BYTES + 1 {
            let src = pattern(bytes);
            let encrypted = run_apart(&encrypt, &src, bytes + BLOCK_BYTES).unwrap();
            assert_eq!(run_apart(&decrypt, &encrypted, encrypted.len()).unwrap(), src, "{algorithm} {bytes}");
            assert_eq!(
                run_in_place(&decrypt, &encrypted, encrypted.len()).unwrap(),
                src,
                "{algorithm} {bytes}"
            );
        }
    }
}

#[test]
fn bad_padding_is_found_and_leaves_no_plaintext() {
    let unpadded = session(Algorithm::Aes256Cbc, Direction::Encrypt, Padding::None);
    let decrypt = session(Algorithm::Aes256Cbc, Direction::Decrypt, Padding::Pkcs7);
    for last in [0, 2, 17, 255] {
        let mut plain = pattern(48);
        plain[47] = last;
        let encrypted = run_apart(&unpadded, &plain, 48).unwrap();
        let mut dst = vec![0xEE; 50];
        let mut burst = [Job::apart(&encrypted, &mut dst)];
        burst[0].arm(&decrypt, &IV, 48);
        Libcrypto::new().unwrap().run(&mut burst);
        assert_eq!(burst[0].outcome(), Outcome::Failed(JobError::BadPadding), "{last}");
        drop(burst);
        assert_eq!(dst, [&[0; 48][..], &[0xEE; 2]].concat(), "{last}");
    }
}

#[test]
fn a_wrong_tag_leaves_no_plaintext_and_does_not_touch_its_neighbours() {
    for &algorithm in Algorithm::ALL.iter().filter(|algorithm| algorithm.is_aead()) {
        let (src, aad) = (pattern(100), pattern(9));
        let (encrypted, tag) = seal(algorithm, &src, &aad);
        let decrypt = session(algorithm, Direction::Decrypt, Padding::None);
        let mut spaces = vec![encrypted; 3];
        let mut burst: Vec<_> = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
        for job in &mut burst {
            job.arm(&decrypt, &IV[..12], 100);
            job.set_aad(&aad);
            job.set_tag(&tag);
        }
        let mut wrong = tag.clone();
        wrong[15] ^= 1;
        burst[1].set_tag(&wrong);
        Libcrypto::new().unwrap().run(&mut burst);
        assert_eq!(burst[1].outcome(), Outcome::Failed(JobError::NotAuthentic), "{algorithm}");
        assert_eq!((burst[0].output(), burst[2].output()), (&src[..], &src[..]), "{algorithm}");
        drop(burst);
        assert_eq!(spaces[1], [0; 100], "{algorithm}");
    }
}

#[test]
fn wrong_associated_data_is_not_authentic() {
    let (encrypted, tag) = seal(Algorithm::Aes128Gcm, &[], b"header");
    let decrypt = session(Algorithm::Aes128Gcm, Direction::Decrypt, Padding::None);
    let outcome = |aad: &[u8]| {
        let mut dst = [];
        let mut burst = [Job::apart(&encrypted, &mut dst)];
        burst[0].arm(&decrypt, &IV[..12], 0);
        burst[0].set_aad(aad);
        burst[0].set_tag(&tag);
        Libcrypto::new().unwrap().run(&mut burst);
        burst[0].outcome()
    };
    assert_eq!(outcome(b"header"), Outcome::Done { written: 0 });
    assert_eq!(outcome(b"headeR"), Outcome::Failed(JobError::NotAuthentic));
}

#[test]
fn a_length_that_does_not_fit_leaves_the_memory_untouched() {
    let cases = [
        (Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, 31, 64),
        (Algorithm::Aes128Ecb, Direction::Decrypt, Padding::None, 1, 64),
        (Algorithm::Aes128Cbc, Direction::Encrypt, Padding::Pkcs7, 32, 47),
        (Algorithm::Aes128Cbc, Direction::Decrypt, Padding::Pkcs7, 0, 64),
        (Algorithm::Aes128Cbc, Direction::Decrypt, Padding::Pkcs7, 31, 64),
        (Algorithm::Aes128Ctr, Direction::Encrypt, Padding::None, 33, 32),
        (Algorithm::Aes256Gcm, Direction::Encrypt, Padding::None, 33, 32),
        (Algorithm::Aes256Xts, Direction::Encrypt, Padding::None, 15, 64),
        (Algorithm::Aes256Xts, Direction::Encrypt, Padding::None, (16 << 20) + 1, (16 << 20) + 1),
    ];
    for (algorithm, direction, padding, input_bytes, space_bytes) in cases {
        let session = session(algorithm, direction, padding);
        let src = pattern(input_bytes);
        let mut dst = vec![0xEE; space_bytes];
        let mut burst = [Job::apart(&src, &mut dst)];
        burst[0].arm(&session, &IV[..algorithm.iv_bytes()], input_bytes);
        Libcrypto::new().unwrap().run(&mut burst);
        assert_eq!(burst[0].outcome(), Outcome::Failed(JobError::BadLength), "{session:?} {input_bytes}");
        drop(burst);
        assert!(dst.iter().all(|&byte| byte == 0xEE), "{session:?} {input_bytes}");
    }
}

/// The oracle is each job alone in a driver of its own, whose answers `known_answers.rs` checks.
#[test]
fn sessions_side_by_side_in_a_burst_do_not_disturb_each_other() {
    let sessions: Vec<Session> = Algorithm::ALL.iter().flat_map(|&algorithm| directions(algorithm)).collect();
    let src = pattern(96);
    let mut driver = Libcrypto::new().unwrap();
    for width in 1..=33 {
        let used = (0..width).map(|turn| &sessions[(turn * 7 + width) % sessions.len()]);
        let mut spaces = vec![src.clone(); width];
        let mut burst: Vec<_> = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
        for (turn, (job, session)) in burst.iter_mut().zip(used).enumerate() {
            job.arm(session, &iv_of(turn)[..session.algorithm().iv_bytes()], 96);
        }
        driver.run(&mut burst);
        for (turn, job) in burst.iter().enumerate() {
            let mut alone = src.clone();
            let mut alone = [Job::in_place(&mut alone)];
            alone[0].arm(job.session(), &iv_of(turn)[..job.session().algorithm().iv_bytes()], 96);
            Libcrypto::new().unwrap().run(&mut alone);
            assert_eq!(job.outcome(), alone[0].outcome(), "{job:?}");
            assert_eq!(job.output(), alone[0].output(), "{job:?}");
            assert_eq!(job.tag(), alone[0].tag(), "{job:?}");
        }
    }
}

#[test]
fn more_sessions_than_are_kept_still_each_use_their_own_key() {
    let key = |number: u8| [number; 16];
    let sessions: Vec<_> = (0..100)
        .map(|number| {
            Session::new(Algorithm::Aes128Ctr, Direction::Encrypt, Padding::None, &key(number)).unwrap()
        })
        .collect();
    let mut driver = Libcrypto::new().unwrap();
    let mut answers = Vec::new();
    for session in sessions.iter().chain(&sessions) {
        let mut space = [0; 16];
        let mut burst = [Job::in_place(&mut space)];
        burst[0].arm(session, &IV, 16);
        driver.run(&mut burst);
        answers.push(burst[0].output().to_vec());
    }
    assert_eq!(answers[..100], answers[100..]);
    let mut distinct = answers[..100].to_vec();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 100);
}

#[test]
fn input_of_no_bytes_has_a_digest_and_a_tag() {
    let digest = session(Algorithm::Sha256, Direction::Encrypt, Padding::None);
    let mut burst = [Job::in_place(&mut [])];
    burst[0].arm(&digest, &[], 0);
    Libcrypto::new().unwrap().run(&mut burst);
    // SHA-256 of nothing, FIPS 180-4.
    assert_eq!(burst[0].tag()[..4], [0xe3, 0xb0, 0xc4, 0x42]);
    assert_eq!(burst[0].outcome(), Outcome::Done { written: 0 });
}

#[test]
fn the_plain_loop_of_a_benchmark_makes_what_the_driver_makes() {
    let src = pattern(1000);
    for algorithm in with_padding() {
        let session = session(algorithm, Direction::Encrypt, Padding::Pkcs7);
        let mut context = CipherContext::new(&session).unwrap();
        for _ in 0..3 {
            let mut dst = vec![0; 1008];
            assert_eq!(context.run(&IV, &src, &mut dst), Ok(1008));
            assert_eq!(dst, run_apart(&session, &src, 1008).unwrap(), "{algorithm}");
        }
        let mut space = src.clone();
        assert_eq!(context.run_in_place(&IV, &mut space, 1000), Err(JobError::BadLength));
        assert_eq!(context.run_in_place(&IV, &mut space, 1001), Err(JobError::BadLength));
    }
    let aead = CipherContext::new(&session(Algorithm::Aes128Gcm, Direction::Encrypt, Padding::None));
    assert_eq!(aead.unwrap().run(&IV, &src, &mut [0; 1000]), Err(JobError::Unsupported));
    assert!(CipherContext::new(&session(Algorithm::Sha1, Direction::Encrypt, Padding::None)).is_err());
}

fn with_padding() -> impl Iterator<Item = Algorithm> {
    Algorithm::ALL.iter().copied().filter(|algorithm| algorithm.needs_whole_blocks())
}

fn directions(algorithm: Algorithm) -> Vec<Session> {
    let mut made = vec![session(algorithm, Direction::Encrypt, Padding::None)];
    if algorithm.is_cipher() {
        made.push(session(algorithm, Direction::Decrypt, Padding::None));
    }
    made
}

fn session(algorithm: Algorithm, direction: Direction, padding: Padding) -> Session {
    let key: Vec<u8> = (0..=255).take(algorithm.key_bytes().unwrap_or(20)).collect();
    Session::new(algorithm, direction, padding, &key).unwrap()
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..=u8::MAX).cycle().map(|byte| byte.wrapping_mul(31).wrapping_add(7)).take(bytes).collect()
}

fn iv_of(turn: usize) -> [u8; 16] {
    [u8::try_from(turn).unwrap(); 16]
}

fn run_apart(session: &Session, src: &[u8], space_bytes: usize) -> Result<Vec<u8>, JobError> {
    let mut dst = vec![0xEE; space_bytes];
    run(session, Job::apart(src, &mut dst), src.len())
}

fn run_in_place(session: &Session, src: &[u8], space_bytes: usize) -> Result<Vec<u8>, JobError> {
    let mut space = vec![0xEE; space_bytes];
    space[..src.len()].copy_from_slice(src);
    run(session, Job::in_place(&mut space), src.len())
}

fn run<'m>(session: &'m Session, mut job: Box<Job<'m>>, input_bytes: usize) -> Result<Vec<u8>, JobError> {
    job.arm(session, &IV[..session.algorithm().iv_bytes()], input_bytes);
    let mut burst = [job];
    Libcrypto::new().unwrap().run(&mut burst);
    match burst[0].outcome() {
        Outcome::Done { .. } => Ok(burst[0].output().to_vec()),
        Outcome::Failed(error) => Err(error),
        Outcome::Pending => panic!("a burst leaves no job pending"),
    }
}

fn seal(algorithm: Algorithm, src: &[u8], aad: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let encrypt = session(algorithm, Direction::Encrypt, Padding::None);
    let mut dst = vec![0; src.len()];
    let mut burst = [Job::apart(src, &mut dst)];
    burst[0].arm(&encrypt, &IV[..12], src.len());
    burst[0].set_aad(aad);
    Libcrypto::new().unwrap().run(&mut burst);
    (burst[0].output().to_vec(), burst[0].tag().to_vec())
}

/// The command `openssl` judges: it asks the same library.
#[test]
fn the_provider_of_an_algorithm_is_named_as_the_library_names_it() {
    use evener_driver_libcrypto::service::{Service, asks_for_fips, has_provider, version};
    assert_eq!(Service::Cipher.served_by("AES-128-CBC", "provider=default").as_deref(), Some("default"));
    assert_eq!(Service::Digest.served_by("SHA2-256", "provider=default").as_deref(), Some("default"));
    assert_eq!(Service::Cipher.served_by("AES-128-CBC", "provider=nobody"), None);
    assert_eq!(Service::Cipher.served_by("SHA2-256", ""), None);
    assert_eq!(Service::Digest.served_by("no\0name", ""), None);
    assert!(has_provider("default") && !has_provider("nobody") && !asks_for_fips());
    let version_output = std::process::Command::new("openssl").arg("version").output().unwrap();
    assert!(String::from_utf8_lossy(&version_output.stdout).contains(&version()));
}
