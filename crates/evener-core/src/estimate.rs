//! What jobs cost, learned from samples while they run: `c` by method and burst width, `d` and `h` by module.
//!
//! A sample goes in ([`Estimator::saw_cpu`], [`Estimator::saw_module`]), a mean comes out for a size
//! ([`Estimator::c`], [`Estimator::on_module`]). Means are exponential with weight 1/8; a cost that is suddenly
//! another one (twice or half, twice in a row) replaces its mean at once, so that a module that was slowed down is
//! known after two jobs.
//!
//! What was learned outlives the process as [text].

pub mod text;

use std::collections::BTreeMap;

use crate::class::Class;
use crate::method::Method;
use crate::plan::adaptive::TRIES_MAX;
use crate::units::Nanos;

/// Least time after which a class that does not pay on a module is tried there once more.
const RETRY_AFTER: Nanos = Nanos::from_millis(1_000);

/// Such a try takes the module for at most one in so many parts of its time.
const RETRY_PARTS: u64 = 100;

/// Part of a new sample in the mean.
const WEIGHT: f64 = 1.0 / 8.0;

/// A sample that is this many times above or below the mean is a surprise.
const SURPRISE: f64 = 2.0;

/// Surprises in a row that make a new mean: one may be a thread that was kept from its core.
const SURPRISES_MAX: u32 = 2;

/// Bytes that a job's fixed cost is worth, about, when a cost is carried to another size of the class: 100 ns of a
/// request at one nanosecond per byte. Within a class sizes differ by two at most, so its error stays small.
const FIXED_BYTES: f64 = 100.0;

/// The mean cost of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Learned {
    /// Mean cost of a job in nanoseconds.
    pub ns: f64,
    /// Mean size of those jobs in bytes.
    pub bytes: f64,
    /// Samples that it is made of.
    pub samples: u32,
    surprises: u32,
}

impl Learned {
    /// A mean that was kept from an earlier run.
    #[must_use]
    pub const fn kept(ns: f64, bytes: f64, samples: u32) -> Self {
        Self { ns, bytes, samples, surprises: 0 }
    }

    /// The mean for jobs of `bytes`, or `None` before the first sample.
    #[must_use]
    pub fn at(&self, bytes: usize) -> Option<Nanos> {
        let scale = (float(bytes as u64) + FIXED_BYTES) / (self.bytes + FIXED_BYTES);
        (self.samples > 0).then(|| nanos(self.ns * scale))
    }

    /// Takes in a sample of `jobs` with `bytes` and `cost` together.
    fn saw(&mut self, jobs: u64, bytes: u64, cost: Nanos) {
        if jobs == 0 {
            return;
        }
        let (ns, bytes) = (float(cost.0) / float(jobs), float(bytes) / float(jobs));
        let expected = self.ns * (bytes + FIXED_BYTES) / (self.bytes + FIXED_BYTES);
        let is_surprise = ns > expected * SURPRISE || ns * SURPRISE < expected;
        self.surprises = if is_surprise { self.surprises + 1 } else { 0 };
        self.samples = self.samples.saturating_add(1);
        if self.samples == 1 || self.surprises >= SURPRISES_MAX {
            (self.ns, self.bytes, self.surprises) = (ns, bytes, 0);
        } else if !is_surprise {
            self.ns += WEIGHT * (ns - self.ns);
            self.bytes += WEIGHT * (bytes - self.bytes);
        }
    }
}

/// Burst widths that are learned apart: 1, 2 to 3, 4 to 7, 8 to 15, 16 and more.
pub const WIDTHS: usize = 5;

/// Which of the [`WIDTHS`] a burst belongs to.
#[must_use]
pub const fn width_class(jobs: usize) -> usize {
    match jobs {
        0 | 1 => 0,
        2..=3 => 1,
        4..=7 => 2,
        8..=15 => 3,
        _ => 4,
    }
}

/// What is known of a class on a module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OnModule {
    /// `d`: all core time of the module path.
    pub d: Learned,
    /// `h`: time in which the module works and the core is free.
    pub h: Learned,
    /// Jobs sent there while nothing, or nothing new, was known.
    pub tries: u32,
    /// When it was last sampled.
    pub last: Nanos,
}

impl OnModule {
    /// `d` and `h` of a job of `bytes`, or `None` before the first sample.
    #[must_use]
    pub fn at(&self, bytes: usize) -> Option<(Nanos, Nanos)> {
        self.d.at(bytes).zip(self.h.at(bytes))
    }
}

/// Everything learned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimator {
    cpu: BTreeMap<(Class, Method, usize), Learned>,
    /// By module, then class.
    modules: Vec<BTreeMap<Class, OnModule>>,
    /// Means are not changed any more: for tests of what guards against wrong ones.
    is_frozen: bool,
}

impl Estimator {
    /// Nothing known of so many modules.
    #[must_use]
    pub fn new(modules: usize) -> Self {
        let is_frozen = cfg!(mutant = "estimator_frozen");
        Self { modules: vec![BTreeMap::new(); modules], is_frozen, ..Self::default() }
    }

    /// Knows of at least so many modules.
    pub fn make_room_for(&mut self, modules: usize) {
        if self.modules.len() < modules {
            self.modules.resize_with(modules, BTreeMap::new);
        }
    }

    /// Stops learning.
    pub fn freeze(&mut self) {
        self.is_frozen = true;
    }

    /// A burst of `jobs` of one class ran on a core by `method` in `core`.
    pub fn saw_cpu(&mut self, class: Class, method: Method, jobs: u64, bytes: u64, core: Nanos) {
        if !self.is_frozen {
            let width = width_class(usize::try_from(jobs).unwrap_or(usize::MAX));
            self.cpu.entry((class, method, width)).or_default().saw(jobs, bytes, core);
        }
    }

    /// `jobs` of one class ran on `module`: core time of the path, time of the module, all together.
    ///
    /// # Panics
    ///
    /// Where there is no such module.
    pub fn saw_module(&mut self, module: usize, class: Class, seen: &ModuleSample) {
        if !self.is_frozen {
            let known = self.modules[module].entry(class).or_default();
            known.d.saw(seen.jobs, seen.bytes, seen.d);
            known.h.saw(seen.jobs, seen.bytes, seen.h);
            known.last = seen.now;
        }
    }

    /// Counts jobs that are sent to a module to get to know it.
    ///
    /// # Panics
    ///
    /// Where there is no such module.
    pub fn tries(&mut self, module: usize, class: Class, jobs: u32) {
        self.modules[module].entry(class).or_default().tries += jobs;
    }

    /// Jobs of a class that may be sent to a module at `now` although nothing says that they pay there: some while
    /// nothing is known, one to confirm the first sample, and one now and then, for a module may have recovered.
    #[must_use]
    pub fn tries_left(&self, module: usize, class: Class, now: Nanos) -> u32 {
        let known = self.on_module(module, class);
        match known.d.samples {
            0 => TRIES_MAX.saturating_sub(known.tries),
            1 => 2_u32.saturating_sub(known.tries),
            _ => {
                let latency = nanos(known.d.ns + known.h.ns);
                let after = RETRY_AFTER.max(Nanos(latency.0.saturating_mul(RETRY_PARTS)));
                u32::from(now - known.last >= after)
            }
        }
    }

    /// Mean of a method at a burst width, where it was sampled.
    #[must_use]
    pub fn cpu(&self, class: Class, method: Method, width: usize) -> Option<&Learned> {
        self.cpu.get(&(class, method, width_class(width)))
    }

    /// `c` of a job of `bytes` in a burst of `width`, by the better method: at that width, or at the next width
    /// that was sampled, because a cost a little off is better than none.
    #[must_use]
    pub fn c(&self, class: Class, bytes: usize, width: usize) -> Option<Nanos> {
        let wanted = width_class(width);
        let at = |width| {
            let of = |&method| self.cpu.get(&(class, method, width))?.at(bytes);
            Method::ALL.iter().filter_map(of).min()
        };
        let mut widths: Vec<usize> = (0..WIDTHS).collect();
        widths.sort_by_key(|&width| width.abs_diff(wanted));
        widths.into_iter().find_map(at)
    }

    /// Core time of the CPU path that was sampled of a class, about.
    #[must_use]
    pub fn worked(&self, class: Class) -> Nanos {
        let all = Method::ALL.iter().flat_map(|&method| (0..WIDTHS).map(move |width| (class, method, width)));
        let of = |learned: &Learned| nanos(learned.ns * f64::from(learned.samples));
        all.filter_map(|key| self.cpu.get(&key)).map(of).sum()
    }

    /// What is known of a class on a module.
    #[must_use]
    pub fn on_module(&self, module: usize, class: Class) -> OnModule {
        self.modules.get(module).and_then(|known| known.get(&class)).copied().unwrap_or_default()
    }

    /// Puts in what an earlier run learned.
    pub fn keep_cpu(&mut self, class: Class, method: Method, width: usize, learned: Learned) {
        self.cpu.insert((class, method, width.min(WIDTHS - 1)), learned);
    }

    /// Puts in what an earlier run learned of a module.
    ///
    /// # Panics
    ///
    /// Where there is no such module.
    pub fn keep_module(&mut self, module: usize, class: Class, known: OnModule) {
        self.modules[module].insert(class, known);
    }

    /// All means of the CPU path: class, method, width class.
    pub fn all_cpu(&self) -> impl Iterator<Item = (Class, Method, usize, &Learned)> {
        self.cpu.iter().map(|(&(class, method, width), learned)| (class, method, width, learned))
    }

    /// All that is known of a module.
    pub fn all_on_module(&self, module: usize) -> impl Iterator<Item = (Class, &OnModule)> {
        self.modules.get(module).into_iter().flatten().map(|(&class, known)| (class, known))
    }
}

/// What jobs on a module took, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleSample {
    /// Jobs.
    pub jobs: u64,
    /// Their input in bytes.
    pub bytes: u64,
    /// `d`: core time of the path.
    pub d: Nanos,
    /// `h`: time in which the module worked and the core was free.
    pub h: Nanos,
    /// When the last of them ended.
    pub now: Nanos,
}

#[expect(clippy::cast_precision_loss, reason = "a mean needs no more than 53 bits")]
const fn float(whole: u64) -> f64 {
    whole as f64
}

/// `as` saturates: what is below zero, or no number, is nothing.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as the text says")]
fn nanos(ns: f64) -> Nanos {
    Nanos(ns.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{Algorithm, Direction};

    fn class(bytes: usize) -> Class {
        Class::of(Algorithm::Aes128Cbc, Direction::Encrypt, bytes, false)
    }

    #[test]
    fn nothing_is_known_before_the_first_sample_and_its_mean_is_the_first_sample() {
        let mut estimator = Estimator::new(1);
        assert_eq!(estimator.c(class(1024), 1024, 1), None);
        assert_eq!(estimator.on_module(0, class(1024)).d.at(1024), None);
        estimator.saw_cpu(class(1024), Method::Plain, 4, 4 * 1024, Nanos(4_000));
        assert_eq!(estimator.c(class(1024), 1024, 4), Some(Nanos(1_000)));
        assert_eq!(estimator.c(class(1024), 1024, 64), Some(Nanos(1_000)), "the next width that is known");
    }

    #[test]
    fn the_better_method_at_the_width_asked_for_is_what_a_job_costs() {
        let mut estimator = Estimator::new(0);
        for (method, jobs, ns) in [
            (Method::Plain, 1, 100),
            (Method::MultiBuffer, 1, 150),
            (Method::Plain, 16, 95),
            (Method::MultiBuffer, 16, 20),
        ] {
            estimator.saw_cpu(class(64), method, jobs, 64 * jobs, Nanos(ns * jobs));
        }
        assert_eq!(estimator.c(class(64), 64, 1), Some(Nanos(100)));
        assert_eq!(estimator.c(class(64), 64, 40), Some(Nanos(20)));
    }

    #[test]
    fn the_mean_follows_slowly_a_single_surprise_is_left_out_and_two_are_believed() {
        let mut learned = Learned::default();
        learned.saw(1, 100, Nanos(1_000));
        learned.saw(1, 100, Nanos(1_080));
        assert_eq!(learned.at(100), Some(Nanos(1_010)));
        learned.saw(1, 100, Nanos(10_000));
        assert_eq!(learned.at(100), Some(Nanos(1_010)));
        learned.saw(1, 100, Nanos(10_100));
        assert_eq!(learned.at(100), Some(Nanos(10_100)));
    }

    #[test]
    fn a_frozen_estimator_learns_nothing() {
        let mut estimator = Estimator::new(1);
        estimator.freeze();
        estimator.saw_cpu(class(64), Method::Plain, 1, 64, Nanos(5));
        estimator.saw_module(0, class(64), &ModuleSample { jobs: 1, bytes: 64, ..ModuleSample::default() });
        assert_eq!((estimator.all_cpu().count(), estimator.all_on_module(0).count()), (0, 0));
    }
}
