//! What no contender can be above in a picture of emulated ones: what their costs permit.

use evener_core::{Cost, Nanos};

use crate::crypt::experiment::{Experiment, Sizes};

/// A line over sizes.
#[derive(Clone, Debug)]
pub struct Bound {
    /// What the legend calls it.
    pub name: String,
    /// Plaintext bytes of a job, and 10^6 bytes per second.
    pub points: Vec<(f64, f64)>,
}

/// What a job of so many bytes costs; `None` where it is not done.
pub type CostOf<'c> = dyn Fn(usize) -> Option<Cost> + 'c;

/// What programmed costs permit where no thread ever waits: every CPU worker does a job in `c`, and a module of so many units one in `h` each, as
/// fast as its path prepares them in `d`.
pub fn of_costs(
    experiment: &Experiment,
    cpu: impl Fn(usize) -> Option<Cost>,
    modules: &[(usize, &CostOf<'_>)],
) -> Option<Bound> {
    let Sizes::Each(sizes) = &experiment.work.sizes else { return None };
    let workers = float(experiment.workers);
    let rate = |size: usize| {
        let on_modules = modules.iter().filter_map(|(units, cost)| {
            let cost = cost(size)?;
            Some(per_ns(cost.d).min(float(*units) * per_ns(cost.h)))
        });
        Some(workers * per_ns(cpu(size)?.c) + on_modules.sum::<f64>())
    };
    // Bytes in a nanosecond are 10^9 in a second.
    let points = sizes.iter().filter_map(|&size| Some((float(size), rate(size)? * float(size) * 1e3)));
    Some(Bound { name: "bound: nobody waits".to_owned(), points: points.collect() })
}

/// Jobs that take `time` each, in a nanosecond.
fn per_ns(time: Nanos) -> f64 {
    1e-9 / time.as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
const fn float(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypt::experiment::{Visits, Work};
    use crate::crypt::workload::Layout;
    use evener_core::{Algorithm, Direction};

    fn experiment(sizes: Sizes) -> Experiment {
        let (algorithm, direction) = (Algorithm::Aes128Cbc, Direction::Encrypt);
        Experiment {
            work: Work { algorithm, direction, layout: Layout::OutOfPlace, sizes, count: 32 },
            visits: Visits { runs: 1, cell_time: Nanos::from_millis(1) },
            workers: 2,
            contenders: Vec::new(),
            beside: None,
        }
    }

    #[test]
    fn costs_permit_what_workers_and_modules_do_side_by_side_and_no_more_than_the_path_prepares() {
        let of = |d: u64, h: u64, units: usize| {
            let cost = move |_: usize| Some(Cost { c: Nanos(4_000), d: Nanos(d), h: Nanos(h) });
            let bound = of_costs(&experiment(Sizes::Each(vec![1_000])), cost, &[(units, &cost)]);
            bound.unwrap().points[0].1
        };
        // 1000 bytes in 4 us are 250 MB/s, twice; the module 500 MB/s by one unit in 2 us.
        assert!((of(1_000, 2_000, 1) - 1_000.0).abs() < 1e-6);
        assert!((of(1_000, 2_000, 8) - 1_500.0).abs() < 1e-6, "the path prepares one in a microsecond");
        assert!(of_costs(&experiment(Sizes::Uniform), |_| None, &[]).is_none());
    }
}
