//! What no policy can beat, and what a run takes if nobody waits without need: closed forms, in nanoseconds.
//!
//! All of them are for one core that the CPU path, the module path and nobody else share, and one module.

use evener_core::Cost;

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
