//! Costs of the AM3358 from the runs of papers 000 and 002 that used one resource alone.
//!
//! ```text
//! c(s)  = T_cpu_only(s) / N            Tm(s) = T_module_only(s) / N = d + h
//! beta  = least-squares slope of Tm over the sizes from `slope_from` bytes on
//! delta = two copies at 175 MB/s       h1 = beta - delta
//! h(s)  = min(h1 s, 0.95 Tm(s))        d(s) = Tm(s) - h(s)
//! ```
//!
//! The two columns do not separate `d` from `h`: the split rests on one published bandwidth, of the same
//! processor but with faster memory. No run that used both resources enters.

use evener_core::{Cost, Nanos};

use crate::rounding::round;

/// Jobs of a run in both papers.
pub const JOBS: u32 = 4_000;

/// Nanoseconds per byte for copying a text in and out by the core: 175 MB/s, the middle of 171 to 181 MB/s
/// (`bw_mem bcopy`, 1 to 16 MB, in TI's AM335x Linux 09.03 performance guide).
pub const COPIES_NS_PER_BYTE: f64 = 2.0 * 1_000.0 / 175.0;

/// Most of a module job that can be the module's own time. Assumed, not measured: 0.95, because only jobs of 8 bytes
/// come near.
const MODULE_PART_MAX: f64 = 0.95;

/// One size of the two columns that the fit reads. It has no space for a combined run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SingleResource {
    /// Size of a job in bytes.
    pub bytes: u64,
    /// Time of 4000 jobs on the CPU alone, in milliseconds.
    pub cpu_only_ms: f64,
    /// Time of 4000 jobs on the module alone, in milliseconds.
    pub module_only_ms: f64,
}

impl SingleResource {
    /// `Tm`: time of one module job in nanoseconds.
    fn module_ns(&self) -> f64 {
        self.module_only_ms * 1e6 / f64::from(JOBS)
    }
}

/// Costs at each size, and the slopes behind them in nanoseconds per byte.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Slope of a module job's time.
    pub beta: f64,
    /// What of `beta` is the module's own.
    pub h1: f64,
    /// Size in bytes and cost, as the sizes came.
    pub costs: Vec<(u64, Cost)>,
}

/// Fits the costs; the slope is taken over sizes of at least `slope_from` bytes (paper 002: 256, paper 000: 100).
///
/// # Panics
///
/// With fewer than two sizes from `slope_from` on.
#[must_use]
pub fn fit(columns: &[SingleResource], slope_from: u64) -> Fit {
    let beta = slope(columns.iter().filter(|size| size.bytes >= slope_from));
    let h1 = beta - COPIES_NS_PER_BYTE;
    fit_with(columns, beta, h1)
}

/// As [`fit`], with the module's own slope `h1` given, to see what depends on it.
#[must_use]
pub fn fit_with(columns: &[SingleResource], beta: f64, h1: f64) -> Fit {
    let cost = |size: &SingleResource| {
        let c = size.cpu_only_ms * 1e6 / f64::from(JOBS);
        let whole = size.module_ns();
        let h = round((h1 * as_f64(size.bytes)).min(MODULE_PART_MAX * whole));
        (size.bytes, Cost { c: Nanos(round(c)), d: Nanos(round(whole) - h), h: Nanos(h) })
    };
    Fit { beta, h1, costs: columns.iter().map(cost).collect() }
}

/// Unweighted least-squares slope of a module job's time over the size, in nanoseconds per byte.
fn slope<'a>(sizes: impl Iterator<Item = &'a SingleResource> + Clone) -> f64 {
    let count = as_f64(sizes.clone().count() as u64);
    assert!(count >= 2.0, "a slope needs two sizes");
    let mean = |of: fn(&SingleResource) -> f64| sizes.clone().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|size| as_f64(size.bytes)), mean(SingleResource::module_ns));
    let x = |size: &SingleResource| as_f64(size.bytes) - mean_x;
    let rise: f64 = sizes.clone().map(|size| x(size) * (size.module_ns() - mean_y)).sum();
    rise / sizes.map(|size| x(size) * x(size)).sum::<f64>()
}

#[expect(clippy::cast_precision_loss, reason = "sizes and counts are below 2^53")]
const fn as_f64(count: u64) -> f64 {
    count as f64
}
