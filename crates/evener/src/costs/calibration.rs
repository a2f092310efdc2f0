//! Measures what both methods cost on the machine at hand, so that the first burst of a run is decided already.
//!
//! Each size is tried with bursts of 1 to 64 jobs in place, plain and multi-buffer in turn; the least of a few passes
//! counts, because whatever disturbs a pass makes it longer, and of a pass no more than its core time. An algorithm takes 3 to 10 ms. Sizes between do as their
//! neighbours (`evener_core::estimate`), until jobs of a run have shown more.

use std::sync::Arc;

use evener_core::driver::Clock;
use evener_core::estimate::{LEAST_WIDTH, Learned};
use evener_core::{
    Algorithm, Class, Direction, Estimator, InlineDriver, Job, Method, Nanos, Padding, Session,
};

/// The sizes that are measured, in bytes.
pub const SIZES: [usize; 6] = [16, 64, 256, 1_024, 4_096, 16_384];

/// Passes of each kind; the shortest counts. Three left one cell in ten to chance on a busy machine.
const PASSES: u32 = 5;

/// Samples of a run that the least of them is worth. Assumed, not measured: 15, the most that a mean is worth (L1), because what disturbs a pass only makes
/// it longer, and passes of both methods alternate: calibrations of short hashes on an idle machine were 3 % apart.
const WORTH: u32 = 15;

/// Text of a burst up to which it is measured: 64 jobs fill the lanes again and again, which matters to short ones only. 16 of the longest.
const BURST_BYTES_MAX: usize = 256 << 10;

/// The classes of the sizes that are measured.
pub fn classes(algorithm: Algorithm, direction: Direction) -> impl Iterator<Item = Class> {
    SIZES.into_iter().map(move |bytes| Class::of(algorithm, direction, bytes, false))
}

/// Whether costs of multi-buffer are known of these jobs, in the widest bursts too: what an earlier version kept may know of none.
#[must_use]
pub fn is_known(learned: &Estimator, (algorithm, direction): (Algorithm, Direction)) -> bool {
    let widest = LEAST_WIDTH.into_iter().next_back().map_or(1, usize::from);
    classes(algorithm, direction).any(|class| learned.cpu(class, Method::MultiBuffer, widest).is_some())
}

/// Puts the costs of these kinds of jobs into `learned`, in place of what it knows of these sizes. Those that `multi`
/// does not support stay plain.
pub fn measure(
    plain: &mut dyn InlineDriver,
    multi: &mut dyn InlineDriver,
    kinds: &[(Algorithm, Direction)],
    clock: &dyn Clock,
    learned: &mut Estimator,
) {
    let mut memory = vec![0u8; BURST_BYTES_MAX];
    for &(algorithm, direction) in kinds {
        if !multi.supports(algorithm, direction) || !plain.supports(algorithm, direction) {
            continue;
        }
        let (session, bytes_max) = (session(algorithm, direction), multi.job_bytes_max(algorithm, direction));
        for bytes in SIZES.into_iter().filter(|&bytes| bytes <= bytes_max) {
            let fits = |&(_, width): &(usize, u16)| bytes * usize::from(width) <= BURST_BYTES_MAX;
            for (place, width) in LEAST_WIDTH.into_iter().enumerate().filter(fits) {
                let spaces = memory.chunks_exact_mut(bytes).take(width.into());
                let mut jobs: Vec<_> = spaces.map(Job::in_place).collect();
                let best = best(plain, multi, clock, &mut jobs, &session, bytes);
                let class = Class::of(algorithm, direction, bytes, false);
                for (method, best) in Method::ALL.into_iter().zip(best) {
                    // To a tenth, as it is kept between runs: else two that are a hair apart would be judged otherwise then.
                    let each = (best / f64::from(width) * 10.0).round() / 10.0;
                    learned.keep_cpu(class, method, place, Learned::kept(each, float(bytes), WORTH));
                }
            }
        }
    }
}

/// A session with a fixed key that protects nothing.
fn session(algorithm: Algorithm, direction: Direction) -> Arc<Session> {
    let key: Vec<u8> = (0..=254).take(algorithm.key_bytes().unwrap_or(32)).collect();
    let session = Session::new(algorithm, direction, Padding::None, &key);
    Arc::new(session.expect("the key has the algorithm's length"))
}

/// Least time of one burst in nanoseconds, by method.
fn best(
    plain: &mut dyn InlineDriver,
    multi: &mut dyn InlineDriver,
    clock: &dyn Clock,
    jobs: &mut [Box<Job<'_>>],
    session: &Arc<Session>,
    bytes: usize,
) -> [f64; Method::ALL.len()] {
    let mut best = [f64::INFINITY; Method::ALL.len()];
    for _ in 0..PASSES {
        best[Method::Plain as usize] =
            best[Method::Plain as usize].min(pass(plain, clock, jobs, session, bytes));
        let multi = pass(multi, clock, jobs, session, bytes);
        best[Method::MultiBuffer as usize] = best[Method::MultiBuffer as usize].min(multi);
    }
    best
}

/// Time of one burst in nanoseconds, from enough of them to move 4 KiB or more.
fn pass(
    driver: &mut dyn InlineDriver,
    clock: &dyn Clock,
    jobs: &mut [Box<Job<'_>>],
    session: &Arc<Session>,
    bytes: usize,
) -> f64 {
    let bursts = 4_096_usize.div_ceil(bytes * jobs.len());
    let mut spent = Nanos::ZERO;
    let core = clock.thread_time();
    for _ in 0..bursts {
        // A tag that does not fit costs as much to find out as one that does.
        jobs.iter_mut().for_each(|job| job.arm(Arc::clone(session), &[0; 12], bytes));
        let start = clock.now();
        driver.run(jobs);
        spent += clock.now() - start;
    }
    // What other programs do on the core is no cost of a burst; arming is none either, and a look at the thread's clock takes longer than
    // a short burst.
    let spent = spent.min(clock.thread_time() - core);
    spent.as_secs_f64() * 1e9 / float(bursts)
}

#[expect(clippy::cast_precision_loss, reason = "sizes and counts are small")]
const fn float(count: usize) -> f64 {
    count as f64
}
