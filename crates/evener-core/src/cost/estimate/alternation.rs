//! A module's cost as a ratio to the core's, where there is one core and both measured themselves in turn (paired comparison).
//!
//! On one core the module's path works on the core that it is held against, and what else moves both (a host that is busy, a
//! clock that is lowered) moves them together. So bursts of core and module follow each other, neither beside the other
//! (the runtime's `adaptive/alternation`) -> one pair, a ratio ([`Estimator::record_pair`]) -> `d` and `h` at the speed that the core
//! has now ([`OnModule::at_speed_of`]). One pair that is far off is left out, two in a row are believed, as all costs
//! are ([`Learned`]).

use super::tuning::TUNING;
use super::{Estimator, Learned, ModuleSample, OnModule, float, nanos};
use crate::job::class::Class;
use crate::units::Nanos;

/// Millionths: a mean of ratios is kept as one of nanoseconds is.
const WHOLE: f64 = 1e6;

impl OnModule {
    /// What `d + h` is of `c`, where both were measured in turn.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        (self.in_turn.samples > 0).then_some(self.in_turn.ns / WHOLE)
    }

    /// `d` and `h` of a job of `bytes` where a core takes `c` for it: as they were measured, or both carried to what the core
    /// takes now where their ratio to it is known.
    #[must_use]
    pub fn at_speed_of(&self, bytes: usize, c: Option<Nanos>) -> Option<(Nanos, Nanos)> {
        let (d, h) = self.at(bytes)?;
        let (Some(ratio), Some(c)) = (self.ratio(), c) else { return Some((d, h)) };
        if d + h == Nanos::ZERO || cfg!(mutant = "speed_of_then") {
            return Some((d, h));
        }
        let by = ratio * float(c.0) / float((d + h).0);
        Some((nanos(float(d.0) * by), nanos(float(h.0) * by)))
    }

    /// Whether pairs of today say on which side of `even` the ratio lies.
    #[must_use]
    pub fn is_sure_beside(&self, even: f64) -> bool {
        self.apart(even).is_some_and(|(apart, error)| apart > error)
    }

    /// Whether pairs of today say that the ratio lies so near `even` that it hardly matters on which side.
    #[must_use]
    pub fn is_surely_near(&self, even: f64) -> bool {
        self.apart(even).is_some_and(|(apart, error)| apart + error < TUNING.near)
    }

    /// How far the ratio is from `even`, as a part of it, and how far that may be off; `None` where too few pairs say so or the last
    /// one says something else.
    fn apart(&self, even: f64) -> Option<(f64, f64)> {
        let is_known = self.in_turn.samples >= TUNING.pairs_min && !self.in_turn.is_doubted();
        let ratio = self.ratio().filter(|_| is_known)?;
        Some(((ratio / even - 1.0).abs(), TUNING.sure * self.in_turn.error()))
    }
}

impl Estimator {
    /// Core and module took turns with jobs of a class: what those on the module took, and what the core takes for each.
    ///
    /// # Panics
    ///
    /// Where there is no such module.
    pub fn record_pair(&mut self, module: usize, class: Class, sample: &ModuleSample, core: Nanos) {
        if self.is_frozen || sample.jobs == 0 || core == Nanos::ZERO {
            return;
        }
        let ratio = float((sample.d + sample.h).0) / float(sample.jobs) / float(core.0);
        let known = self.modules[module].entry(class).or_default();
        // A ratio is of no size: as of jobs without bytes.
        known.in_turn.record(1, 0, nanos(ratio * WHOLE));
    }

    /// Holds what is known of a module against what is known of cores, class by class, as a few pairs of long ago: for what
    /// was measured together, as by a calibration or by the run whose costs were kept.
    ///
    /// # Panics
    ///
    /// Where there is no such module.
    pub fn pair_up(&mut self, module: usize, width: usize) {
        let classes: Vec<Class> = self.modules[module].keys().copied().collect();
        for class in classes {
            let bytes = (*class.bytes().end()).min(2 << 20);
            let pair = self.on_module(module, class).at(bytes).zip(self.c(class, bytes, width));
            let Some(((d, h), c)) = pair.filter(|(_, c)| *c > Nanos::ZERO) else { continue };
            let mut ratio = Learned::kept(WHOLE * float((d + h).0) / float(c.0), 0.0, 1);
            ratio.age();
            ratio.samples = TUNING.pairs_kept;
            if let Some(known) = self.modules[module].get_mut(&class) {
                known.in_turn = ratio;
            }
        }
    }

    /// What is known of a class on a module, at the speed that the core has by what is known of it.
    #[must_use]
    pub(super) fn at_todays_speed(&self, class: Class, known: &OnModule, width: usize) -> OnModule {
        let bytes = (*class.bytes().end()).min(2 << 20);
        let now = known.at_speed_of(bytes, self.c(class, bytes, width)).zip(known.at(bytes));
        let Some(((d, h), (d_then, h_then))) = now else { return *known };
        let carried = |mean: Learned, now: Nanos, then: Nanos| {
            let by = if then == Nanos::ZERO { 1.0 } else { float(now.0) / float(then.0) };
            Learned::kept(mean.ns * by, mean.bytes, mean.samples)
        };
        OnModule { d: carried(known.d, d, d_then), h: carried(known.h, h, h_then), ..*known }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::algorithm::{Algorithm, Direction};
    use crate::job::method::Method;

    fn class() -> Class {
        Class::of(Algorithm::Aes128Cbc, Direction::Encrypt, 16_384, true)
    }

    fn us(micros: u64) -> Nanos {
        Nanos::from_micros(micros)
    }

    fn sample(d: u64, h: u64) -> ModuleSample {
        ModuleSample { jobs: 8, bytes: 8 * 16_384, d: us(8 * d), h: us(8 * h), now: us(1) }
    }

    /// A core that takes 400 us for what a module takes 300 for.
    fn known() -> Estimator {
        let mut known = Estimator::new(1);
        known.saw_cpu(class(), Method::Plain, 16, 16 * 16_384, us(16 * 400));
        known.saw_module(0, class(), &sample(100, 200));
        known
    }

    #[test]
    fn a_core_that_is_half_as_fast_for_a_while_makes_its_module_half_as_fast() {
        let mut known = known();
        let at = |known: &Estimator, c| known.on_module(0, class()).at_speed_of(16_384, Some(us(c)));
        assert_eq!(at(&known, 800), Some((us(100), us(200))), "no pair compared the two yet");
        known.record_pair(0, class(), &sample(100, 200), us(400));
        assert_eq!(at(&known, 400), Some((us(100), us(200))));
        assert_eq!(at(&known, 800), Some((us(200), us(400))));
        assert_eq!(known.on_module(0, class()).at_speed_of(16_384, None), Some((us(100), us(200))));
    }

    #[test]
    fn one_pair_from_a_slow_moment_is_left_out_and_two_are_believed() {
        let mut known = known();
        let ratio = |known: &Estimator| known.on_module(0, class()).ratio().unwrap();
        (0..4).for_each(|_| known.record_pair(0, class(), &sample(100, 200), us(400)));
        known.record_pair(0, class(), &sample(900, 300), us(400));
        assert!((ratio(&known) - 0.75).abs() < 1e-6, "{}", ratio(&known));
        known.record_pair(0, class(), &sample(900, 300), us(400));
        assert!((ratio(&known) - 3.0).abs() < 1e-6, "{}", ratio(&known));
    }

    #[test]
    fn a_calibration_is_worth_three_pairs_of_today() {
        let mut known = known();
        known.pair_up(0, 16);
        let ratio = |known: &Estimator| known.on_module(0, class()).ratio().unwrap();
        assert!((ratio(&known) - 0.75).abs() < 1e-6);
        // A calibration in a slow moment of the module: after three pairs half of its error is gone.
        (0..3).for_each(|_| known.record_pair(0, class(), &sample(60, 120), us(400)));
        assert!((ratio(&known) - 0.6).abs() < 1e-3, "{}", ratio(&known));
    }

    #[test]
    fn a_sure_ratio_has_enough_pairs_that_agree() {
        let mut known = known();
        let sure = |known: &Estimator, even| known.on_module(0, class()).is_sure_beside(even);
        (0..8).for_each(|_| known.record_pair(0, class(), &sample(100, 200), us(400)));
        assert_eq!((sure(&known, 1.0), sure(&known, 0.76)), (true, false));
        known.record_pair(0, class(), &sample(900, 300), us(400));
        assert!(!sure(&known, 1.0), "the last one said something else");
    }

    #[test]
    fn a_ratio_surely_near_has_enough_pairs_that_agree() {
        let mut known = known();
        let near = |known: &Estimator, even| known.on_module(0, class()).is_surely_near(even);
        (0..3).for_each(|_| known.record_pair(0, class(), &sample(100, 200), us(400)));
        assert!(!near(&known, 0.75), "so few agree by chance");
        (0..24).for_each(|_| known.record_pair(0, class(), &sample(100, 200), us(400)));
        assert_eq!([0.75, 0.757, 0.80].map(|even| near(&known, even)), [true, true, false]);
    }

    #[test]
    fn costs_that_are_kept_are_all_of_one_speed() {
        let mut known = known();
        known.record_pair(0, class(), &sample(100, 200), us(400));
        // The core became slower, and the module has not been used since.
        (0..40).for_each(|_| known.saw_cpu(class(), Method::Plain, 16, 16 * 16_384, us(16 * 600)));
        let converted = known.at_todays_speed(class(), &known.on_module(0, class()), 16);
        let (d, h) = converted.at(16_384).unwrap();
        assert!(d.0.abs_diff(150_000) < 1_000 && h.0.abs_diff(300_000) < 2_000, "{d} {h}");
    }
}
