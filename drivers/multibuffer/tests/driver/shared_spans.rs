//! Jobs over memory that another process may change: what libcrypto makes of a copy of it, by this driver and by libcrypto's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use evener_core::job::SharedSpan;
use evener_core::{InlineDriver, Job, JobError, Outcome, Padding, Session};
use evener_testing::drivers::{libcrypto, multibuffer};
use evener_testing::noise;
use evener_testing::requests::kinds;

const IV: [u8; 16] = [0xFF; 16];

/// Some bytes, shared.
fn shared(bytes: &[u8]) -> Vec<AtomicU8> {
    bytes.iter().map(|byte| AtomicU8::new(*byte)).collect()
}

fn copied(bytes: &[AtomicU8]) -> Vec<u8> {
    bytes.iter().map(|byte| byte.load(Relaxed)).collect()
}

/// What libcrypto makes of a text of its own: output, or digest.
fn right(session: &Session, text: &[u8]) -> Vec<u8> {
    let mut space = text.to_vec();
    let mut burst = [Job::in_place(&mut space)];
    burst[0].arm(session, &IV[..session.algorithm().iv_bytes()], text.len());
    libcrypto().run(&mut burst);
    assert!(matches!(burst[0].outcome(), Outcome::Done { .. }));
    if session.algorithm().is_cipher() { burst[0].output().to_vec() } else { burst[0].tag().to_vec() }
}

/// Runs a burst over texts of these lengths, every other one in place, and compares each result.
fn compare(driver: &mut dyn InlineDriver, session: &Arc<Session>, lengths: &[usize]) {
    let algorithm = session.algorithm();
    let texts: Vec<Vec<u8>> = (1..).zip(lengths).map(|(seed, &bytes)| noise(seed, bytes)).collect();
    let memory: Vec<[Vec<AtomicU8>; 2]> =
        texts.iter().map(|text| [text, text].map(|text| shared(text))).collect();
    let mut burst = Vec::new();
    for (index, [src, dst]) in memory.iter().enumerate() {
        let dst = match (algorithm.is_cipher(), index % 2) {
            (true, 0) => &src[..],
            (true, _) => &dst[..],
            (false, _) => &[],
        };
        let mut job = Job::shared(SharedSpan { src, dst });
        job.arm(Arc::clone(session), &IV[..algorithm.iv_bytes()], src.len());
        job.mark = index as u64;
        burst.push(job);
    }
    driver.run(&mut burst);
    for job in &burst {
        let index = usize::try_from(job.mark).unwrap();
        let (text, [src, dst]) = (&texts[index], &memory[index]);
        let what =
            format!("{} {algorithm} {}, {} bytes", driver.profile().name, session.direction(), text.len());
        assert!(matches!(job.outcome(), Outcome::Done { .. }), "{what}: {:?}", job.outcome());
        assert!(job.output().is_empty() && job.input().is_empty(), "no reference is made to it");
        let made = match algorithm.is_cipher() {
            true => copied(if index % 2 == 0 { src } else { dst }),
            false => job.tag().to_vec(),
        };
        assert!(made == right(session, text), "{what}");
        let kept = algorithm.is_cipher() && index % 2 == 0 || copied(src) == *text;
        assert!(kept, "{what}: the source of one apart stays");
    }
}

/// Both drivers, where there are two.
fn drivers() -> impl Iterator<Item = Box<dyn InlineDriver>> {
    let multi = multibuffer().map(|driver| Box::new(driver) as Box<dyn InlineDriver>);
    [Some(Box::new(libcrypto()) as Box<dyn InlineDriver>), multi].into_iter().flatten()
}

#[test]
fn shared_memory_gives_the_bytes_that_a_copy_gives() {
    for mut driver in drivers() {
        assert!(driver.takes_shared());
        let is_taken = |session: &Arc<Session>| {
            let algorithm = session.algorithm();
            driver.supports(algorithm, session.direction())
                && !algorithm.is_aead()
                && session.padding() == Padding::None
        };
        let sessions: Vec<Arc<Session>> = kinds(1).filter(is_taken).collect();
        assert!(sessions.len() > 10);
        for session in &sessions {
            for width in [1, 2, 15, 16, 17, 33, 129] {
                compare(&mut *driver, session, &vec![1024; width]);
            }
            compare(&mut *driver, session, &[16, 4096, 64, 16_384, 16, 65_520, 32, 512]);
            // Beyond what a lane counts, and beyond what the counter of the IV counts to.
            let is_hash = !session.algorithm().is_cipher();
            let bytes_max = driver.job_bytes_max(session.algorithm(), session.direction());
            if !is_hash || bytes_max > 200_000 {
                compare(&mut *driver, session, &[65_536, 131_088, 200_000, 16, 65_552]);
            }
        }
    }
}

#[test]
fn what_would_be_decided_by_bytes_that_change_is_refused_and_stays_as_it_was() {
    for mut driver in drivers() {
        let is_refused = |session: &Arc<Session>| {
            let algorithm = session.algorithm();
            let decides = algorithm.is_aead() || session.padding() != Padding::None;
            driver.supports(algorithm, session.direction()) && decides
        };
        let sessions: Vec<Arc<Session>> = kinds(2).filter(is_refused).collect();
        assert!(!sessions.is_empty());
        for session in sessions {
            let (text, space) = (noise(7, 64), vec![0xEE; 80]);
            let (src, dst) = (shared(&text), shared(&space));
            let mut burst = [Job::shared(SharedSpan { src: &src, dst: &dst })];
            burst[0].arm(Arc::clone(&session), &IV[..session.algorithm().iv_bytes()], 64);
            driver.run(&mut burst);
            assert_eq!(burst[0].outcome(), Outcome::Failed(JobError::Unsupported), "{session:?}");
            assert!(copied(&src) == text && copied(&dst) == space);
        }
    }
}
