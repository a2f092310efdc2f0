//! Modules behind the kernel: what threads' clocks do not show of a request there, and what jobs of a few sizes cost.

use std::sync::Arc;

use evener::SystemClock;
use evener::core::cost::{CostTable, Line};
use evener::core::estimate::PLAN_WIDTH;
use evener::core::estimate::{Learned, OnModule, width_class};
use evener::core::{
    Algorithm, Class, Cost, Direction, Estimator, Family, InlineDriver as _, Job, Method, Nanos, Session,
};
use evener::overhead;

use super::input::{IV, Input, session};
use super::{JobKind, to_u64};
use crate::libraries::{Operation, libcrypto};
use crate::modules::OpenModule;

/// The longest jobs for which a module's costs are carried on beyond the sizes that were measured: what the kernel takes in one
/// piece.
const CARRIED_BYTES_MAX: usize = 64 << 10;
/// The same for ciphers that a driver can cut into such pieces, one behind the other.
const IN_PIECES_BYTES_MAX: usize = 64 << 20;
/// Bytes of the job that the only core repeats while a module is measured beside it. Assumed, not measured: 4 KiB, a usual job.
const PIECE_BYTES: usize = 4_096;
/// Samples that the costs of a module's first burst are worth: those of a burst's least disturbed part.
const FIRST_SAMPLES: u32 = 16;

/// What threads' clocks do not show of a request on a module; `None` where that cannot be measured now.
pub fn overhead(module: &OpenModule) -> Option<Line> {
    let does = |algorithm: &&Algorithm| module.does((**algorithm, Direction::Encrypt));
    let algorithm = *Algorithm::ALL.iter().find(does)?;
    let (kind, session) = longest((algorithm, Direction::Encrypt));
    let input = Input::new(&kind, &session, kind.bytes, count(module)?);
    let mut space = vec![0; input.all.len()];
    let jobs = input.jobs(&session, kind.is_apart, &mut space);
    let mut driver = module.driver();
    if evener::core_budget().workers() == 1 {
        let mut beside = overhead::CompetingLoad::new(work(), &SystemClock)?;
        overhead::overhead(&mut *driver, jobs, &SystemClock, &mut beside)
    } else {
        let mut idle = overhead::IdleTime::new(&SystemClock)?;
        overhead::overhead(&mut *driver, jobs, &SystemClock, &mut idle)
    }
}

/// A piece of work for a core: what most of its work is like.
fn work() -> impl FnMut() + Send {
    work_of((Algorithm::Aes128Cbc, Direction::Encrypt), PIECE_BYTES)
}

/// A job of `bytes` for a core.
fn work_of(row: Operation, bytes: usize) -> impl FnMut() + Send {
    let kind = JobKind { bytes, ..longest(row).0 };
    let (mut cpu, session, mut space) = (libcrypto(), session(&kind), vec![0; bytes]);
    move || {
        let mut job = [Job::in_place(&mut space)];
        job[0].arm(Arc::clone(&session), &IV[..row.0.iv_bytes()], bytes);
        cpu.run(&mut job);
    }
}

/// Whether anything is known of what such jobs take on a module.
pub fn is_known(learned: &Estimator, module: usize, (algorithm, direction): Operation) -> bool {
    let class = Class::of(algorithm, direction, overhead::SIZES[0], true);
    learned.on_module(module, class).d.samples > 0
}

/// Measures what jobs of a few sizes take on a module, in some milliseconds, and carries it to the sizes between. `None` where
/// it does not do them, or fails one. Nothing is left to first jobs of a run, which open a key and wait beside a core that
/// works. What a core takes is measured in turn with it, and kept where nothing is known of it.
pub fn first_costs(
    module: &OpenModule,
    number: usize,
    (algorithm, direction): Operation,
    overhead: Line,
    learned: &mut Estimator,
) -> Option<()> {
    // What is decrypted twice has no right tag.
    let has_tag = algorithm.is_aead() && direction == Direction::Decrypt;
    if has_tag || !module.does((algorithm, direction)) {
        return None;
    }
    let (kind, session) = longest((algorithm, direction));
    let input = Input::new(&kind, &session, kind.bytes, count(module)?);
    let mut space = vec![0; input.all.len()];
    let mut jobs = input.jobs(&session, kind.is_apart, &mut space);
    let mut driver = module.driver();
    let cores = evener::core_budget().workers();
    let mut row = |bytes: usize| {
        let query = overhead::CostQuery { bytes, overhead, cores };
        let mut core = work_of((algorithm, direction), bytes);
        let (sample, c) = overhead::costs(&mut *driver, &mut jobs, &query, &SystemClock, &mut core)?;
        let each = |cost: Nanos| Nanos(cost.0 / sample.jobs);
        Some((to_u64(bytes), Cost { c, d: each(sample.d), h: each(sample.h) }))
    };
    let rows: Option<Vec<_>> = overhead::COST_SIZES.into_iter().map(&mut row).collect();
    let table = CostTable::new(rows?);
    let can_be_cut = matches!(algorithm.family(), Family::Ecb | Family::Cbc | Family::Ctr);
    let bytes_max = if can_be_cut { IN_PIECES_BYTES_MAX } else { CARRIED_BYTES_MAX };
    let ends = (0..).map(|double| overhead::SIZES[0] << double).take_while(|&bytes| bytes <= bytes_max);
    for (bytes, is_apart) in ends.flat_map(|bytes| [(bytes, false), (bytes, true)]) {
        let (cost, mean_bytes) = (carried(&table, bytes), float(to_u64(bytes)));
        let [d, h] = [cost.d, cost.h].map(|of| Learned::kept(float(of.0), mean_bytes, FIRST_SAMPLES));
        let known = OnModule { d, h, ..OnModule::default() };
        let class = Class::of(algorithm, direction, bytes, is_apart);
        learned.keep_module(number, class, known);
        if cores == 1 && learned.c(class, bytes, PLAN_WIDTH).is_none() {
            let c = Learned::kept(float(cost.c.0), mean_bytes, 1);
            learned.keep_cpu(class, Method::Plain, width_class(PLAN_WIDTH), c);
        }
    }
    Some(())
}

/// What a job of `bytes` takes by the sizes that were measured: beyond one piece as many times a piece.
fn carried(table: &CostTable, bytes: usize) -> Cost {
    let Cost { c, d, h } = table.at(to_u64(bytes.min(CARRIED_BYTES_MAX)));
    let pieces = to_u64(bytes.div_ceil(CARRIED_BYTES_MAX).max(1));
    let [c, d, h] = [c, d, h].map(|of| Nanos(of.0.saturating_mul(pieces)));
    Cost { c, d, h }
}

/// A job of the longest size that a module is measured with.
fn longest((algorithm, direction): Operation) -> (JobKind, Arc<Session>) {
    let bytes = overhead::SIZES[overhead::SIZES.len() - 1];
    let kind = JobKind { operation: (algorithm, direction), bytes, burst: 1, is_apart: false };
    let session = session(&kind);
    (kind, session)
}

/// Requests that a module is kept busy with.
fn count(module: &OpenModule) -> Option<usize> {
    usize::try_from(module.capacity().depth).ok()
}

#[expect(clippy::cast_precision_loss, reason = "costs and sizes are far below 2^53")]
const fn float(whole: u64) -> f64 {
    whole as f64
}
