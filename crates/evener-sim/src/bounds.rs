//! Lower bounds that no policy can beat, and what a run takes if no thread waits without need: closed forms, in nanoseconds.
//!
//! The first three are for one core that only the CPU path and the module path share, and one module;
//! [`fleet_bound`] is for any number of cores and of modules that are alike.

use evener_core::Cost;

use crate::lab::{Setup, Workload};

/// `n` jobs of one cost: `n_c` on the CPU, `n_m` on the module, work conserved. The core has to do
/// `n_c c + n_m d`, a synchronous module thread needs `n_m (d + h)`.
#[must_use]
pub fn work_conservation(cost: Cost, [on_cpu, on_module]: [f64; 2]) -> f64 {
    let Parts { c, d, h } = Parts::of(cost);
    (on_cpu * c + on_module * d).max(on_module * (d + h))
}

/// The shared queue in closed form: both threads have half of the core until the module's own time limits one.
/// Time of `n` jobs, and how many of them the module takes.
#[must_use]
pub fn fair_halves(cost: Cost, n: f64) -> (f64, f64) {
    let Parts { c, d, h } = Parts::of(cost);
    let time = 2.0 * n / (1.0 / c + 1.0 / d);
    let on_module = time / 2.0 / d;
    if on_module * (d + h) <= time {
        return (time, on_module);
    }
    let time = balanced(c, d, n, d + h);
    (time, time / (d + h))
}

/// What a module takes of its own time for a job: all of it, or what one request at a time leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests {
    /// One at a time: the module rests while the core prepares the next (`d + h` per job).
    Synchronous,
    /// Two or more at a time: the module never rests (`h` per job).
    Asynchronous,
}

impl Requests {
    fn module_time(self, d: f64, h: f64) -> f64 {
        match self {
            Self::Synchronous => d + h,
            Self::Asynchronous => h,
        }
    }
}

/// The least time for a list of costs with their counts: fractional, jobs going to the module in the order of
/// what they save the core per unit of module time, until core and module end together.
#[must_use]
pub fn lower_bound(jobs: &[(Cost, u32)], requests: Requests) -> f64 {
    let mut jobs: Vec<(Parts, f64)> = jobs.iter().map(|&(cost, n)| (Parts::of(cost), f64::from(n))).collect();
    let gain = |part: &Parts| (part.c - part.d) / requests.module_time(part.d, part.h).max(f64::MIN_POSITIVE);
    jobs.sort_by(|(one, _), (other, _)| gain(other).total_cmp(&gain(one)));
    let mut core: f64 = jobs.iter().map(|(part, n)| n * part.c).sum();
    let mut module = 0.0;
    for (part, n) in jobs.into_iter().filter(|(part, _)| part.d < part.c) {
        let (saves, takes) = (part.c - part.d, requests.module_time(part.d, part.h));
        let share = ((core - module) / (n * (saves + takes))).clamp(0.0, 1.0);
        core -= share * n * saves;
        module += share * n * takes;
        if share < 1.0 {
            break;
        }
    }
    core.max(module)
}

/// Modules that are all alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fleet {
    /// How many.
    pub count: u32,
    /// Requests that one works on at the same time, at least 1.
    pub units: u32,
    /// Whether a module rests while its path prepares the next request.
    pub requests: Requests,
    /// Part of `d` that the path's own thread runs, which does one thing at a time: 0 to 1.
    pub own_share: f64,
}

/// The least time for a list of costs with their counts on `cores` and a fleet: jobs are fluid, every core and every
/// module is busy to the end, every job is there at the start. It is above the time that core time alone asks for
/// (jobs where they need the least of it) and above what modules' time and paths ask for.
///
/// By duality: whatever prices the time of a core (1), of a module (`q`) and of its path's thread (`r`) have, no way of
/// a job is cheaper than its cheapest, and the machine has only so much to spend per time. The dearest such sum is the
/// least time of the linear programme. It is also no less than what the longest job takes on its quickest way.
#[must_use]
pub fn fleet_bound(jobs: &[(Cost, u32)], cores: u32, fleet: Fleet) -> f64 {
    let jobs: Vec<(Parts, f64)> =
        jobs.iter().filter(|(_, n)| *n > 0).map(|&(cost, n)| (Parts::of(cost), f64::from(n))).collect();
    let has_modules = fleet.count > 0;
    let quickest = |part: &Parts| if has_modules { part.c.min(part.d + part.h) } else { part.c };
    let longest = jobs.iter().map(|(part, _)| quickest(part)).fold(0.0, f64::max);
    if !has_modules {
        return longest.max(jobs.iter().map(|(part, n)| n * part.c).sum::<f64>() / f64::from(cores));
    }
    let (units, own_share) = match fleet.requests {
        Requests::Synchronous => (1.0, 0.0), // One after another: the path's time is in the module's.
        Requests::Asynchronous => (f64::from(fleet.units), fleet.own_share),
    };
    let count = f64::from(fleet.count);
    let module_time = |part: &Parts| fleet.requests.module_time(part.d, part.h);
    let at_prices = |q: f64, r: f64| {
        let on_module = |part: &Parts| part.d + q * module_time(part) + r * own_share * part.d;
        let all: f64 = jobs.iter().map(|(part, n)| n * part.c.min(on_module(part))).sum();
        all / (f64::from(cores) + count * (units * q + r))
    };
    // Above these prices every job is cheapest on a core.
    let dearest = |of: &dyn Fn(&Parts) -> f64| {
        jobs.iter().map(|(part, _)| part.c / of(part).max(1.0)).fold(0.0, f64::max)
    };
    let (q_max, r_max) = (dearest(&module_time), dearest(&|part| own_share * part.d));
    longest.max(greatest(q_max, |q| greatest(r_max, |r| at_prices(q, r))))
}

/// [`fleet_bound`] of a machine with its work, in nanoseconds; `None` where it says nothing: modules differ, or jobs
/// come one by one.
#[must_use]
pub fn of_run(setup: &Setup, workload: &Workload) -> Option<f64> {
    let is_at_once = workload.jobs().iter().all(|job| job.at.0 == 0);
    is_at_once.then(|| of_jobs(setup, workload)).flatten()
}

/// The same as if every job were there at the start: no way of coming makes a run shorter than that.
#[must_use]
pub fn of_jobs(setup: &Setup, workload: &Workload) -> Option<f64> {
    let first = setup.modules.first();
    let is_like = |side| first.is_some_and(|first| first == side);
    if !setup.modules.iter().all(is_like) {
        return None;
    }
    let cost = |class: usize| {
        let (d, h) = first.map(|side| (side.costs[class].d, side.costs[class].h)).unwrap_or_default();
        Cost { c: setup.classes[class].c, d, h }
    };
    let mut jobs: Vec<(Cost, u32)> = (0..setup.classes.len()).map(|class| (cost(class), 0)).collect();
    workload.jobs().iter().for_each(|job| jobs[job.class].1 += 1);
    let fleet = Fleet {
        count: u32::try_from(setup.modules.len()).ok()?,
        units: first.map_or(1, |side| side.spec.units.min(side.depth)),
        requests: match first {
            Some(side) if side.depth > 1 => Requests::Asynchronous,
            _ => Requests::Synchronous,
        },
        own_share: first.map_or(0.0, |side| 1.0 - side.path.kernel_share),
    };
    Some(fleet_bound(&jobs, u32::try_from(setup.cores).ok()?, fleet))
}

/// The greatest value of a function of one price from 0 to `max` that rises and then falls.
fn greatest(max: f64, of: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, max);
    for _ in 0..THIRDS {
        let third = (high - low) / 3.0;
        match of(low + third) < of(high - third) {
            true => low += third,
            false => high -= third,
        }
    }
    of(low).max(of(high))
}

/// Steps of a search, each of which leaves two thirds: 1e-11 of the range.
const THIRDS: u32 = 64;

/// Time of `n` jobs where the module takes as many as it can while the core does the rest.
fn balanced(c: f64, d: f64, n: f64, module_time: f64) -> f64 {
    let on_module = (n * c / (c - d + module_time)).min(n);
    ((n - on_module) * c + on_module * d).max(on_module * module_time)
}

/// A cost in nanoseconds.
#[derive(Clone, Copy)]
struct Parts {
    c: f64,
    d: f64,
    h: f64,
}

impl Parts {
    #[expect(clippy::cast_precision_loss, reason = "a job's cost is far below 104 days")]
    const fn of(cost: Cost) -> Self {
        Self { c: cost.c.0 as f64, d: cost.d.0 as f64, h: cost.h.0 as f64 }
    }
}
