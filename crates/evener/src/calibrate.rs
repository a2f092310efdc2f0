//! Measures the method table: from how many jobs on multi-buffer beats plain, on the machine at hand.
//!
//! Each size class is tried with bursts of 1 to 16 jobs in place, plain and multi-buffer in turn; the least of
//! a few passes counts, because whatever disturbs a pass makes it longer. An algorithm takes 2 to 8 ms.

use std::sync::Arc;

use evener_core::driver::Clock;
use evener_core::method::{NEVER, SIZE_CLASS_BYTES};
use evener_core::{Algorithm, Direction, InlineDriver, Job, MethodTable, Nanos, Padding, Session};

/// Burst widths that are tried, ascending.
const WIDTHS: [u16; 6] = [1, 2, 4, 8, 12, 16];

/// The size that stands for each class of [`SIZE_CLASS_BYTES`].
const SIZES: [usize; SIZE_CLASS_BYTES.len()] = [16, 64, 256, 1_024, 4_096, 16_384];

/// Passes of each kind; the shortest counts. Three left one cell in ten to chance on a busy machine.
const PASSES: usize = 5;

/// Multi-buffer must win by this much, in per cent, because a wrong choice for plain costs less.
const MARGIN_PERCENT: u64 = 5;

/// Fills `table` for the algorithms asked for; those that `multi` does not support stay plain.
pub fn measure(
    plain: &mut dyn InlineDriver,
    multi: &mut dyn InlineDriver,
    asked: &[(Algorithm, Direction)],
    clock: &dyn Clock,
    table: &mut MethodTable,
) {
    let mut memory = vec![0u8; SIZES[SIZES.len() - 1] * usize::from(WIDTHS[WIDTHS.len() - 1])];
    for &(algorithm, direction) in asked {
        for (class, &bytes) in SIZES.iter().enumerate() {
            let able = multi.supports(algorithm, direction)
                && plain.supports(algorithm, direction)
                && bytes <= multi.job_bytes_max(algorithm, direction);
            let width = if able {
                width_min(plain, multi, clock, &mut memory, bytes, &session(algorithm, direction))
            } else {
                NEVER
            };
            table.set_width_min(algorithm, direction, class, width);
        }
    }
}

/// A session with a fixed key that is nobody's.
fn session(algorithm: Algorithm, direction: Direction) -> Arc<Session> {
    let key: Vec<u8> = (0..=254).take(algorithm.key_bytes().unwrap_or(32)).collect();
    let session = Session::new(algorithm, direction, Padding::None, &key);
    Arc::new(session.expect("the key has the algorithm's length"))
}

/// The least width from which on multi-buffer wins at every width tried.
fn width_min(
    plain: &mut dyn InlineDriver,
    multi: &mut dyn InlineDriver,
    clock: &dyn Clock,
    memory: &mut [u8],
    bytes: usize,
    session: &Arc<Session>,
) -> u16 {
    let mut least = NEVER;
    for width in WIDTHS.into_iter().rev() {
        let mut jobs: Vec<_> =
            memory.chunks_exact_mut(bytes).take(usize::from(width)).map(Job::in_place).collect();
        let mut time = |driver: &mut dyn InlineDriver| pass(driver, clock, &mut jobs, session, bytes);
        let (mut plain_best, mut multi_best) = (Nanos(u64::MAX), Nanos(u64::MAX));
        for _ in 0..PASSES {
            plain_best = plain_best.min(time(plain));
            multi_best = multi_best.min(time(multi));
        }
        if multi_best.0 * (100 + MARGIN_PERCENT) > plain_best.0 * 100 {
            return least;
        }
        least = width;
    }
    least
}

/// Time of enough runs of one burst to move 4 KiB or more.
fn pass(
    driver: &mut dyn InlineDriver,
    clock: &dyn Clock,
    jobs: &mut [Box<Job<'_>>],
    session: &Arc<Session>,
    bytes: usize,
) -> Nanos {
    let mut spent = Nanos::ZERO;
    for _ in 0..4_096_usize.div_ceil(bytes * jobs.len()) {
        // A tag that does not fit costs as much to find out as one that does.
        jobs.iter_mut().for_each(|job| job.arm(Arc::clone(session), &[0; 12], bytes));
        let start = clock.now();
        driver.run(jobs);
        spent += clock.now() - start;
    }
    spent
}
