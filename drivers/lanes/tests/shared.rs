//! Memory that other processes may change: everything but AES-GCM and padding is done there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use evener_core::job::SharedSpan;
use evener_core::{Family, InlineDriver as _, Job, JobError, Outcome, Padding, Session};
use evener_driver_lanes::Lanes;
use evener_kernels::{Level, bitsliced};
use evener_testing::noise;
use evener_testing::requests::{JobSpec, judged, kinds};

fn is_taken(lanes: &Lanes, session: &Arc<Session>) -> bool {
    let algorithm = session.algorithm();
    let is_block_work = matches!(algorithm.family(), Family::Ecb | Family::Cbc | Family::Ctr | Family::Xts);
    is_block_work && lanes.supports(algorithm, session.direction())
}

/// Over memory of several processes: without padding as by libcrypto, in place and apart; with padding refused.
#[test]
fn memory_that_others_may_change_is_worked_on_where_it_lies() {
    let lengths = [16, 16, 64, 1_024, 4_096, 20_000];
    let all = Level::all().map(Lanes::unchecked).chain(bitsliced::Means::all().map(Lanes::of_planes));
    for mut lanes in all {
        assert!(lanes.takes_shared());
        for session in kinds(3).filter(|it| is_taken(&lanes, it)).collect::<Vec<_>>() {
            let iv = [0xff; 16];
            let texts = lengths.map(|bytes| noise(7, bytes));
            let memory: Vec<[Vec<AtomicU8>; 2]> = texts
                .iter()
                .map(|text| {
                    [0, 16].map(|more| text.iter().copied().chain(vec![0; more]).map(AtomicU8::new).collect())
                })
                .collect();
            let spans = memory.iter().enumerate().map(|(number, [src, dst])| match number % 2 {
                0 => SharedSpan { src, dst: src },
                _ => SharedSpan { src, dst },
            });
            let mut burst: Vec<_> = spans.map(Job::shared).collect();
            for (job, text) in burst.iter_mut().zip(&texts) {
                job.arm(&*session, &iv, text.len());
            }
            lanes.run(&mut burst);
            for (number, (job, text)) in burst.iter().zip(&texts).enumerate() {
                if session.padding() == Padding::Pkcs7 {
                    assert!(matches!(
                        job.outcome(),
                        Outcome::Failed(JobError::Unsupported | JobError::BadLength)
                    ));
                    continue;
                }
                assert_eq!(job.outcome(), Outcome::Done { written: text.len() });
                let made: Vec<u8> =
                    memory[number][number % 2].iter().map(|byte| byte.load(Relaxed)).collect();
                let spec = JobSpec { iv: iv.to_vec(), ..JobSpec::noisy(&session, 0, 0) };
                let right = judged(&JobSpec { input: text.clone(), ..spec });
                assert!(
                    made[..text.len()] == right.output,
                    "{} bytes, {}",
                    text.len(),
                    lanes.profile().detail
                );
            }
        }
    }
}
