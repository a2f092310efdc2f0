//! Overhead: kernel and interrupt time of a module's path that no thread's clock shows, measured by keeping the module busy while nothing else runs.
//!
//! `burst of each size -> what the cores lost by it -> line` ([`overhead`]): what of the loss the clocks of the path's threads do not show (the
//! kernel's own threads, interrupts, softirq), for each request and by size (`evener_core::Estimator::overhead`). On several cores the loss is
//! idle time ([`IdleTime`], `idle_time.rs`). On one core it is the work of a competing load ([`CompetingLoad`], `competing_load.rs`): the short whiles
//! in which the core waits for the module look idle, and work that uses them pays for going to and fro with colder caches (measured in
//! docs/design/kernel-modules.md).
//!
//! `short bursts -> the least disturbed one` ([`costs`]): what a request of a size takes, before any run has tried one. `busy.rs` keeps the
//! module busy for both.

mod busy;
mod competing_load;
mod idle_time;

use evener_core::cost::Line;
use evener_core::driver::Clock;
use evener_core::estimate::ModuleSample;
use evener_core::plan::adaptive::all_of_turn;
use evener_core::{Job, Nanos, QueuedDriver};

use self::busy::{ALL, Busy, Window, keep_busy};
pub use self::competing_load::CompetingLoad;
pub use self::idle_time::{IdleTime, idle_time};

/// Sizes of requests that are measured, in bytes.
pub const SIZES: [usize; 5] = [16, 1_024, 4_096, 8_192, 16_384];

/// Sizes whose costs are measured, in bytes. Between two of them costs are taken to lie on a line, so they are closer together where
/// a core and a module behind the kernel change places.
pub const COST_SIZES: [usize; 7] = [16, 256, 512, 1_024, 4_096, 8_192, 16_384];

/// How long a look at what is there without the module takes, and how long the module is kept busy with each size: idle time is counted in hundredths of
/// a second.
const REST: Nanos = Nanos::from_millis(200);
const BURST: Nanos = Nanos::from_millis(200);

/// Short bursts, the first of which warms up (a key is opened, memory is touched), and requests of each between those that fill the
/// module and those that drain it, at least twice as many as it holds. Assumed, not measured: 16, because
/// what disturbs a virtual machine lasts longer than one of them.
const PASSES: usize = 6;
const PASS_REQUESTS: u64 = 16;

/// Jobs of the core beside each of them.
const PASS_JOBS: u64 = 8;

/// The same on one core where module and core are within a factor of [`FAR`], so that some per cent decide: more and longer passes, of
/// which the first requests are left out ([`LEAD`]).
const PASSES_WHERE_NEAR: usize = 12;
const PASS_REQUESTS_WHERE_NEAR: u64 = 32;
const FAR: u64 = 2;

/// Results after a rest that say nothing of a module that is kept busy: threads and cores that serve it have gone to sleep, deeper
/// than between two requests. In the guest of docs/design/testbed.md the first dozen took 355 us each where 1000 in a row take 280. Assumed, not
/// measured: 12, as if the next dozen were over it.
pub(crate) const LEAD: u32 = 12;

/// Part of a core that others may use at most; beyond it their ups and downs are larger than what is looked for. Assumed, not
/// measured: a tenth.
const OTHERS_MAX: f64 = 0.1;

/// How core time that goes to a module's path is found out.
pub trait CpuLoss {
    /// Core time that was lost while `burst` ran; `None` where the system does not say.
    fn during(&mut self, clock: &dyn Clock, burst: &mut dyn FnMut()) -> Option<Nanos>;
}

/// What threads' clocks do not see of a module's path, of one request, by keeping it busy with `jobs`, which are armed and
/// have space for each of [`SIZES`]; `None` where `loss` is unknown or the module fails one.
pub fn overhead<'m>(
    driver: &mut (dyn QueuedDriver<'m> + 'm),
    mut jobs: Vec<Box<Job<'m>>>,
    clock: &dyn Clock,
    loss: &mut dyn CpuLoss,
) -> Option<Line> {
    // A key is opened.
    keep_busy(driver, &mut jobs, SIZES[0], clock, ALL, &mut |begun| begun < PASS_REQUESTS);
    let mut points = Vec::new();
    for bytes in SIZES {
        let mut burst = Busy::default();
        let path = loss.during(clock, &mut || {
            let until = clock.now() + BURST;
            burst = keep_busy(driver, &mut jobs, bytes, clock, ALL, &mut |_| clock.now() < until);
        })?;
        points.push((bytes as u64, (path - burst.core).0 / burst.requests?));
    }
    Some(Line::fit(&points))
}

/// What is measured of a size: requests of `bytes`, of each of which so much is on no clock.
#[derive(Clone, Copy, Debug)]
pub struct CostQuery {
    /// Bytes of a request.
    pub bytes: usize,
    /// What clocks do not show.
    pub overhead: Line,
    /// How many cores there are: one cannot have spent more than the time that passed.
    pub cores: usize,
}

/// What requests take together, with `jobs` outstanding, and what `core` takes for one such job, of which it runs so many in a
/// pass. Core and module take turns, pass by pass. On several cores the least disturbed pass counts, for what disturbs makes it
/// longer; on one that where the ratio of module and core is the middle one, for what disturbs one of the two may be a moment in
/// which the other looks fast. `None` where the module fails one.
pub fn costs<'m>(
    driver: &mut (dyn QueuedDriver<'m> + 'm),
    jobs: &mut Vec<Box<Job<'m>>>,
    query: &CostQuery,
    clock: &dyn Clock,
    core: &mut dyn FnMut(),
) -> Option<(ModuleSample, Nanos)> {
    let (held, CostQuery { bytes, overhead, cores }) = (jobs.len() as u64, *query);
    let mut passes: Vec<(ModuleSample, Nanos, Nanos)> = Vec::new();
    // In millionths.
    let ratio = |(sample, c, wall): &(ModuleSample, Nanos, Nanos)| {
        wall.0.saturating_mul(1_000_000) / (c.0 * sample.jobs).max(1)
    };
    let is_near =
        |pass: &(ModuleSample, Nanos, Nanos)| (1_000_000 / FAR..1_000_000 * FAR).contains(&ratio(pass));
    loop {
        let is_near = cores == 1 && passes.last().is_some_and(is_near);
        if passes.len() >= if is_near { PASSES_WHERE_NEAR } else { PASSES } {
            break;
        }
        let start = clock.now();
        (0..PASS_JOBS).for_each(|_| core());
        let c = Nanos((clock.now() - start).0 / PASS_JOBS);
        let (lead, behind) =
            if is_near { (LEAD.into(), PASS_REQUESTS_WHERE_NEAR) } else { (held, PASS_REQUESTS) };
        let window = Window { lead, requests: behind.max(2 * held) };
        // Those that drain it, while less and less is under way, are left out.
        let most = lead + window.requests + held;
        let busy = keep_busy(driver, jobs, bytes, clock, window, &mut |begun| begun < most);
        let (wall, jobs) = (busy.wall, busy.requests?);
        let all = busy.core + Nanos(overhead.at(bytes as u64).0 * jobs);
        let d = if cores == 1 { all_of_passed(all, wall, held) } else { all };
        let h = Nanos(wall.0 * held) - if held == 1 { d } else { Nanos::ZERO };
        passes.push((ModuleSample { jobs, bytes: jobs * bytes as u64, d, h, now: clock.now() }, c, wall));
    }
    let mut passes: Vec<_> = passes.into_iter().skip(1).collect();
    let is_one = cores == 1 && !cfg!(mutant = "slow_moment_believed");
    passes.sort_by_key(|pass| if is_one { ratio(pass) } else { pass.2.0 });
    let place = if is_one { passes.len() / 2 } else { 0 };
    passes.get(place).map(|(sample, c, _)| (*sample, *c))
}

/// Core time of a path on the only core while `passed` passed, where `all` is what clocks and a calibration say: no more than that, and
/// all of it where little is left. What little is left of single requests is the chance of when clocks were read.
pub(crate) fn all_of_passed(all: Nanos, passed: Nanos, held: u64) -> Nanos {
    let (d, held) = (all.min(passed), u32::try_from(held).unwrap_or(u32::MAX));
    let h = Nanos(passed.0.saturating_mul(held.into())) - if held == 1 { d } else { Nanos::ZERO };
    all_of_turn(d, h, held)
}

#[cfg(test)]
mod tests;
