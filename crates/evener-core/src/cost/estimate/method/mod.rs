//! By which method a core runs a burst: the one answer, for all policies, from what each method cost.
//!
//! The path of a decision: means of both methods at the width of the burst -> [`OnCore::choose`] -> the method in force,
//! which stays until the other is better by more than the means may err. A class of which one method is unknown does
//! as its nearest neighbour, which calibration has measured (`evener::calibrate`); where no neighbour knows, it stays
//! plain until a few jobs have tried the other.

use super::mean::{LEAST_WIDTH, Learned, WIDTHS, width_class};
use super::{Estimator, nanos};
use crate::job::class::Class;
use crate::job::method::Method;
use crate::units::Nanos;

/// Multi-buffer must be better by this part: another library's code and tables in the caches, and the lanes that its
/// last jobs leave empty, cost what no sample of a burst shows. Calibration has found no better margin than 5 %.
const MARGIN: f64 = 0.05;

/// By so many standard errors two means must differ to be believed different: 19 of 20 cases.
const SURE: f64 = 2.0;

/// Bursts that try the method that is not in force, of a class and width.
const TRIES_MAX: u32 = 4;

/// Jobs of a try while nothing at all is known of a class and method.
const JOBS_OF_FIRST_TRY: usize = 4;

/// Jobs of other tries: full lanes.
const JOBS_OF_TRY: usize = 16;

/// Samples from which on more of them make a mean hardly surer.
const SAMPLES_ENOUGH: u32 = 16;

/// Samples of the method in force after which a mean of the other that is made of few is doubted, however far off it is: first
/// jobs touch cold memory, and one new huge page takes ten times as long as 16 KiB of AES-CBC (measured).
const SAMPLES_OF_DOUBT: u32 = 16;

/// Samples of the method in force after which a class does not rely on its neighbours any more, which may have been measured
/// wrongly or in another place: what four tries take is little beside them.
const SAMPLES_OF_ITS_OWN: u32 = 16;

/// Further tries of such a mean each time the samples of the method in force have doubled: as many as surprise it.
const LOOKS_AGAIN: u32 = 2;

/// A method in force that costs so much more or less than when the other was last measured is compared again. Assumed, not
/// measured: a quarter, because that is above what frequencies of cores change, below what a neighbour on the memory bus takes.
const DRIFT: f64 = 0.25;

/// Samples of the other method that such a comparison needs: as many as throw over a mean that holds no more.
const SAMPLES_OF_COMPARISON: u32 = 2;

/// Tries until they are there. A try of jobs of several sizes is no sample.
const TRIES_OF_COMPARISON: u32 = 2 * SAMPLES_OF_COMPARISON;

/// What is known of a class on cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OnCore {
    means: [[Learned; WIDTHS]; Method::ALL.len()],
    choices: [Choice; WIDTHS],
}

/// What is in force at a width.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Choice {
    method: Method,
    /// Bursts that tried the other.
    tries: u32,
    /// What the method in force cost when the other was last measured; 0 before.
    compared_ns: f64,
    /// It has drifted since, and stays in force until the other was measured under the conditions of today.
    contest: Option<Contest>,
}

/// What is left to do until two methods can be compared again.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Contest {
    samples: u32,
    tries: u32,
}

impl Default for OnCore {
    fn default() -> Self {
        let choice = Choice { method: Method::Plain, tries: 0, compared_ns: 0.0, contest: None };
        Self { means: Default::default(), choices: [choice; WIDTHS] }
    }
}

impl OnCore {
    pub(super) fn record(&mut self, method: Method, jobs: usize, bytes: u64, core: Nanos) {
        let width = width_class(jobs);
        self.means[method as usize][width].record(jobs as u64, bytes, core);
        if self.choices[width].method != method {
            self.choices[width].record_other();
        }
        (0..WIDTHS).for_each(|width| self.choose(width));
    }

    /// Takes a mean of an earlier run, as if it had been there from the beginning.
    pub(super) fn keep(&mut self, method: Method, width: usize, mean: Learned) {
        self.means[method as usize][width] = mean;
        self.choices = Self::default().choices;
        (0..WIDTHS).for_each(|width| self.choose(width));
    }

    /// All means: method, width class.
    pub(super) fn all(&self) -> impl Iterator<Item = (Method, usize, &Learned)> {
        let of = |method| self.known(method).map(move |(width, mean)| (method, width, mean));
        Method::ALL.into_iter().flat_map(of)
    }

    /// The means of one method that are known, by width.
    pub(super) fn known(&self, method: Method) -> impl Iterator<Item = (usize, &Learned)> {
        self.means[method as usize].iter().enumerate().filter(|(_, mean)| mean.samples > 0)
    }

    /// The mean of a method at a width, where it was sampled.
    pub(super) fn exact(&self, method: Method, width: usize) -> Option<&Learned> {
        Some(&self.means[method as usize][width]).filter(|mean| mean.samples > 0)
    }

    /// The same, or that of the next width. A job of multi-buffer costs most in the narrowest burst, so that a
    /// narrower one gives a bound and a wider one says nothing.
    fn mean(&self, method: Method, width: usize) -> Option<&Learned> {
        let at = |width: usize| self.exact(method, width);
        match method {
            Method::MultiBuffer if cfg!(mutant = "wide_tells_narrow") => (0..WIDTHS).find_map(at),
            Method::MultiBuffer => (0..=width).rev().find_map(at),
            Method::Plain => (0..=width).rev().find_map(at).or_else(|| (width + 1..WIDTHS).find_map(at)),
        }
    }

    /// Whether both methods can be compared at a width.
    fn is_comparable(&self, width: usize) -> bool {
        Method::ALL.iter().all(|&method| self.mean(method, width).is_some())
    }

    /// Decides anew. What the method in force costs alone decides nothing: memory that was cold, a neighbour on the bus or
    /// a core that was lent out would have been as dear to the other.
    fn choose(&mut self, width: usize) {
        if self.choices[width].contest.is_some() {
            return;
        }
        let before = self.choices[width].method;
        let in_force = self.mean(before, width).map_or(0.0, |mean| mean.ns);
        if self.choices[width].has_drifted(in_force) && self.exact(before.other(), width).is_some() {
            self.choices[width].contest();
            self.means[before.other() as usize][width].age();
            return;
        }
        let after = match (self.mean(Method::Plain, width), self.mean(Method::MultiBuffer, width)) {
            (Some(plain), Some(multi)) => better(before, plain, multi),
            // Nobody has run it otherwise, for reasons of its own.
            (None, Some(_)) => Method::MultiBuffer,
            (_, None) => Method::Plain,
        };
        let in_force = self.mean(after, width).map_or(0.0, |mean| mean.ns);
        let choice = &mut self.choices[width];
        if after != before || choice.compared_ns == 0.0 {
            choice.compared_ns = in_force;
        }
        choice.method = after;
    }

    /// Whether a burst of this width is to try `other` than the method in force: nothing is known of it, or too little.
    fn wants_try(&self, other: Method, width: usize) -> bool {
        if self.choices[width].contest.is_some() || self.is_compared_again(other, width) {
            return true;
        }
        if self.choices[width].tries >= TRIES_MAX && !cfg!(mutant = "tries_endless") {
            return false;
        }
        let (Some(plain), Some(multi)) =
            (self.mean(Method::Plain, width), self.mean(Method::MultiBuffer, width))
        else {
            return true;
        };
        if self.exact(Method::MultiBuffer, width).is_none() {
            // It may be as much cheaper as there are more jobs side by side.
            let bound = (0..width).rev().find(|&width| self.exact(Method::MultiBuffer, width).is_some());
            let lanes =
                bound.map_or(1.0, |bound| f64::from(LEAST_WIDTH[width]) / f64::from(LEAST_WIDTH[bound]));
            return advantage(plain, multi) > MARGIN
                || 1.0 - (1.0 - advantage(plain, multi)) / lanes > MARGIN;
        }
        self.mean(other, width).is_some_and(|other| other.samples < SAMPLES_ENOUGH)
            && (advantage(plain, multi) - MARGIN).abs() < doubt(plain, multi)
    }

    /// Whether a method has done enough at a width for the class to stand for itself.
    fn has_worked(&self, method: Method, width: usize) -> bool {
        self.exact(method, width).is_some_and(|mean| mean.samples >= SAMPLES_OF_ITS_OWN)
    }

    /// Whether the few samples of `other` are to be doubted, since so much has been done without it.
    fn is_compared_again(&self, other: Method, width: usize) -> bool {
        let exact = |method| self.exact(method, width).map(|mean: &Learned| mean.samples);
        let (Some(few), Some(many)) = (exact(other), exact(other.other())) else { return false };
        let doublings = (many / SAMPLES_OF_DOUBT).checked_ilog2().map_or(0, |log| log + 1);
        few < SAMPLES_ENOUGH
            && self.choices[width].tries < LOOKS_AGAIN * doublings
            && !cfg!(mutant = "cold_tries_believed")
    }
}

impl Choice {
    /// Whether the method in force costs something else than when the other was last measured.
    fn has_drifted(&self, in_force: f64) -> bool {
        self.compared_ns > 0.0
            && (in_force / self.compared_ns - 1.0).abs() > DRIFT
            && !cfg!(mutant = "drift_ignored")
    }

    fn contest(&mut self) {
        self.contest = Some(Contest { samples: SAMPLES_OF_COMPARISON, tries: TRIES_OF_COMPARISON });
    }

    /// Counts a sample of the method that is not in force.
    fn record_other(&mut self) {
        match &mut self.contest {
            Some(contest) if contest.samples > 1 => contest.samples -= 1,
            _ => self.compare(),
        }
    }

    /// Counts a try of it.
    fn tries(&mut self) {
        match &mut self.contest {
            Some(contest) if contest.tries > 1 => contest.tries -= 1,
            Some(_) => self.compare(),
            None => self.tries += 1,
        }
    }

    /// The methods may be compared now. What a contest showed rests on few samples, which may be doubted again.
    fn compare(&mut self) {
        if self.contest.take().is_some() {
            self.tries = self.tries.min(LOOKS_AGAIN);
        }
        self.compared_ns = 0.0;
    }
}

/// Part of plain's cost that multi-buffer saves.
fn advantage(plain: &Learned, multi: &Learned) -> f64 {
    1.0 - multi.carried_to(plain.bytes) / plain.ns.max(f64::MIN_POSITIVE)
}

/// What that may err.
fn doubt(plain: &Learned, multi: &Learned) -> f64 {
    let (plain, multi) = (plain.error(), multi.error());
    // Parts of one, so that no square leaves its range; `hypot` alone would have each program that loads the provider load libm.
    if cfg!(mutant = "sure_of_one_sample") { 0.0 } else { SURE * (plain * plain + multi * multi).sqrt() }
}

/// The better method; `before`, unless the other is better for sure.
fn better(before: Method, plain: &Learned, multi: &Learned) -> Method {
    let (advantage, doubt) = (advantage(plain, multi), doubt(plain, multi));
    match before {
        Method::Plain if advantage > MARGIN + doubt => Method::MultiBuffer,
        Method::MultiBuffer if advantage < MARGIN && cfg!(mutant = "no_hysteresis") => Method::Plain,
        Method::MultiBuffer if advantage < MARGIN - doubt.max(MARGIN / 2.0) => Method::Plain,
        method => method,
    }
}

impl Estimator {
    /// The method by which a core runs a burst of so many jobs of a class.
    #[must_use]
    pub fn method(&self, class: Class, jobs: usize) -> Method {
        let width = width_class(jobs);
        let own = self.cpu.get(&class);
        let decided = own.filter(|own| own.is_comparable(width));
        let decided = decided.or_else(|| self.neighbour(class, width)).or(own);
        decided.map_or(Method::Plain, |known| known.choices[width].method)
    }

    /// The class of the nearest size, of this layout before the other, that can compare the methods.
    fn neighbour(&self, class: Class, width: usize) -> Option<&OnCore> {
        class.neighbours().filter_map(|near| self.cpu.get(&near)).find(|known| known.is_comparable(width))
    }

    /// How many jobs of such a burst are to try the method that is not in force, where too little is known of it.
    #[must_use]
    pub fn method_try(&self, class: Class, jobs: usize) -> Option<usize> {
        let width = width_class(jobs);
        let own = self.cpu.get(&class).filter(|_| !self.is_frozen)?;
        let other = self.method(class, jobs).other();
        let is_new = own.known(other).next().is_none();
        // What a neighbour knows is enough for a while.
        let is_told = is_new
            && self.neighbour(class, width).is_some()
            && (!own.has_worked(other.other(), width) || cfg!(mutant = "neighbours_believed"));
        let most = if is_new { JOBS_OF_FIRST_TRY } else { JOBS_OF_TRY };
        (!is_told && own.wants_try(other, width)).then_some(jobs.min(most))
    }

    /// Whether the method in force has drifted, so that it stays until such a burst has tried the other: without delay,
    /// for one of the two is the wrong one.
    #[must_use]
    pub fn is_contested(&self, class: Class, jobs: usize) -> bool {
        self.cpu.get(&class).is_some_and(|own| own.choices[width_class(jobs)].contest.is_some())
    }

    /// Counts a try of a burst of so many jobs.
    pub fn tries_method(&mut self, class: Class, jobs: usize) {
        self.cpu.entry(class).or_default().choices[width_class(jobs)].tries();
    }

    /// Mean of a method at a burst width, where it was sampled.
    #[must_use]
    pub fn cpu(&self, class: Class, method: Method, width: usize) -> Option<&Learned> {
        self.cpu.get(&class)?.exact(method, width_class(width))
    }

    /// `c` of a job of `bytes` in a burst of `width`, by the method in force: at that width, or at the next one that was
    /// sampled, because a cost a little off is better than none.
    #[must_use]
    pub fn c(&self, class: Class, bytes: usize, width: usize) -> Option<Nanos> {
        let (known, method, wanted) = (self.cpu.get(&class)?, self.method(class, width), width_class(width));
        let next = |method| known.known(method).min_by_key(|(width, _)| width.abs_diff(wanted));
        next(method).or_else(|| next(method.other()))?.1.at(bytes)
    }

    /// From how many jobs on a burst of a class goes to multi-buffer, whatever its width beyond; `None`: never.
    #[must_use]
    pub fn multi_buffer_from(&self, class: Class) -> Option<u16> {
        let wide = LEAST_WIDTH.into_iter().rev();
        wide.take_while(|&jobs| self.method(class, jobs.into()) == Method::MultiBuffer).last()
    }

    /// Core time of the CPU path that was sampled of a class, about.
    #[must_use]
    pub fn worked(&self, class: Class) -> Nanos {
        let of = |learned: &Learned| nanos(learned.ns * f64::from(learned.samples));
        self.cpu.get(&class).into_iter().flat_map(OnCore::all).map(|(.., mean)| of(mean)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::algorithm::{Algorithm, Direction};

    const PLAIN: Method = Method::Plain;
    const MULTI: Method = Method::MultiBuffer;

    fn class(bytes: usize) -> Class {
        Class::of(Algorithm::Sha256, Direction::Encrypt, bytes, true)
    }

    /// One burst of so many jobs of 64 bytes at so many nanoseconds each.
    fn record(estimator: &mut Estimator, method: Method, jobs: u64, ns: u64) {
        estimator.saw_cpu(class(64), method, jobs, 64 * jobs, Nanos(ns * jobs));
    }

    /// Costs of both methods at width 16, of so many bursts.
    fn known(plain: u64, multi: u64, samples: u32) -> Estimator {
        let mut estimator = Estimator::new(0);
        for (method, ns) in [(PLAIN, plain), (MULTI, multi)] {
            (0..samples).for_each(|_| record(&mut estimator, method, 16, ns));
        }
        estimator
    }

    #[test]
    fn a_burst_stays_plain_unless_multi_buffer_wins_by_more_than_its_cost_may_err() {
        // With one sample of each, costs may err by a third; with many alike by next to nothing, but 5 % stay.
        let cases = [(1, 62, PLAIN), (1, 55, MULTI), (100, 94, MULTI), (100, 96, PLAIN), (100, 130, PLAIN)];
        for (samples, multi, method) in cases {
            assert_eq!(known(100, multi, samples).method(class(64), 16), method, "{samples} {multi}");
        }
    }

    #[test]
    fn what_is_in_force_is_not_given_up_for_a_hair() {
        let mut estimator = known(1_000, 930, 100);
        (0..100).for_each(|_| record(&mut estimator, MULTI, 16, 970));
        assert_eq!(estimator.method(class(64), 16), MULTI, "3 % better is still better");
        (0..100).for_each(|_| record(&mut estimator, MULTI, 16, 990));
        assert_eq!(estimator.method(class(64), 16), PLAIN);
        (0..100).for_each(|_| record(&mut estimator, MULTI, 16, 960));
        assert_eq!(estimator.method(class(64), 16), PLAIN, "4 % better is not enough to come back");
    }

    #[test]
    fn width_decides_and_a_wide_burst_says_nothing_of_a_narrow_one() {
        let mut estimator = Estimator::new(0);
        for (method, jobs, ns) in [(PLAIN, 1, 100), (MULTI, 8, 20)] {
            (0..16).for_each(|_| record(&mut estimator, method, jobs, ns));
        }
        let methods = [1, 4, 8, 40].map(|jobs| estimator.method(class(64), jobs));
        assert_eq!(methods, [PLAIN, PLAIN, MULTI, MULTI]);
        assert_eq!(estimator.multi_buffer_from(class(64)), Some(8));
        assert_eq!([1, 16].map(|jobs| estimator.c(class(64), 64, jobs)), [Nanos(100), Nanos(20)].map(Some));
    }

    #[test]
    fn a_class_nobody_measured_does_as_its_neighbour() {
        let estimator = known(100, 20, 16);
        assert_eq!(estimator.method(class(4_096), 16), MULTI);
        assert_eq!(estimator.method(class(4_096), 4), PLAIN);
        assert_eq!(estimator.method_try(class(4_096), 16), None);
        let other = Class::of(Algorithm::Sha1, Direction::Encrypt, 64, true);
        assert_eq!(estimator.method(other, 16), PLAIN);
    }

    #[test]
    fn a_class_that_works_a_lot_finds_out_whether_its_neighbour_is_right() {
        let mut estimator = known(100, 20, 16);
        let far = class(4_096);
        let mut run = |method, ns: u64| {
            estimator.saw_cpu(far, method, 16, 16 * 4_096, Nanos(16 * ns));
            (estimator.method(far, 16), estimator.method_try(far, 16))
        };
        (0..15).for_each(|_| assert_eq!(run(MULTI, 19_000), (MULTI, None)));
        assert_eq!(run(MULTI, 19_000), (MULTI, Some(4)));
        (0..4).for_each(|_| _ = run(PLAIN, 12_000));
        assert_eq!(run(PLAIN, 12_000).0, PLAIN);
    }

    #[test]
    fn the_unknown_is_tried_with_four_jobs_first_and_not_for_ever() {
        let mut estimator = Estimator::new(0);
        record(&mut estimator, PLAIN, 100, 100);
        assert_eq!(estimator.method_try(class(64), 100), Some(4));
        record(&mut estimator, MULTI, 4, 90);
        assert_eq!(estimator.method_try(class(64), 100), Some(16), "full lanes may be four times as good");
        record(&mut estimator, MULTI, 16, 500);
        assert_eq!(estimator.method_try(class(64), 100), None, "five times as dear is no question any more");
        // One that stays uncertain.
        let mut even = known(100, 92, 1);
        for _ in 0..TRIES_MAX {
            assert_eq!(even.method_try(class(64), 100), Some(16));
            even.tries_method(class(64), 100);
        }
        assert_eq!(even.method_try(class(64), 100), None);
        even.freeze();
        assert_eq!(known(100, 92, 1).method_try(class(64), 100), Some(16));
        assert_eq!(even.method_try(class(64), 100), None);
    }

    /// Tries the other method for as long as it is wanted, at this cost; how often that was.
    fn try_on(estimator: &mut Estimator, other: Method, ns: u64) -> usize {
        let mut tries = 0;
        while let Some(jobs) = estimator.method_try(class(64), 16) {
            estimator.tries_method(class(64), 16);
            record(estimator, other, jobs as u64, ns);
            tries += 1;
        }
        tries
    }

    #[test]
    fn tries_on_cold_memory_do_not_decide_for_ever() {
        let mut estimator = known(1_457, 180, 2);
        assert_eq!((estimator.method(class(64), 16), estimator.method_try(class(64), 16)), (MULTI, None));
        (0..14).for_each(|_| record(&mut estimator, MULTI, 16, 180));
        assert_eq!(try_on(&mut estimator, PLAIN, 114), 2);
        assert_eq!(estimator.method(class(64), 16), PLAIN);
    }

    #[test]
    fn a_method_that_is_worse_is_tried_again_ever_more_seldom() {
        let mut estimator = known(1_457, 180, 2);
        let mut tried = Vec::new();
        for samples in 2..10_000 {
            if try_on(&mut estimator, PLAIN, 1_457) > 0 {
                tried.push(samples);
            }
            record(&mut estimator, MULTI, 16, 180);
        }
        assert_eq!(tried, [16, 32, 64, 128, 256, 512, 1_024], "sixteen samples are enough");
    }

    /// Multi-buffer, which is in force, at this cost, with the tries that are wanted meanwhile at that of plain.
    fn live(estimator: &mut Estimator, bursts: usize, [plain, multi]: [u64; 2]) {
        for _ in 0..bursts {
            let method = estimator.method(class(64), 16);
            record(estimator, method, 16, if method == MULTI { multi } else { plain });
            try_on(estimator, method.other(), if method == MULTI { plain } else { multi });
        }
    }

    #[test]
    fn a_drift_changes_nothing_until_the_other_method_was_measured_in_it() {
        let mut estimator = known(100, 30, 16);
        record(&mut estimator, MULTI, 16, 150);
        assert_eq!(estimator.method_try(class(64), 16), None, "one surprise is none");
        for _ in 0..20 {
            record(&mut estimator, MULTI, 16, 150);
            assert_eq!(
                (estimator.method(class(64), 16), estimator.method_try(class(64), 16)),
                (MULTI, Some(16))
            );
        }
        assert!(try_on(&mut estimator, PLAIN, 500) >= 2, "it is as dear to the other");
        assert_eq!(estimator.method(class(64), 16), MULTI);
        live(&mut estimator, 20, [100, 30]);
        assert_eq!(estimator.method(class(64), 16), MULTI, "and cheap again");
        // And where the other is better now.
        (0..2).for_each(|_| record(&mut estimator, MULTI, 16, 150));
        assert_eq!(estimator.method(class(64), 16), MULTI);
        assert!(try_on(&mut estimator, PLAIN, 100) >= 2);
        assert_eq!(estimator.method(class(64), 16), PLAIN);
    }

    #[test]
    fn whatever_both_cost_for_a_while_the_cheaper_one_is_in_force_in_the_end() {
        let mut estimator = known(100, 30, 16);
        for costs in [[400, 200], [100, 30], [90, 130], [300, 900], [100, 30], [60, 66], [100, 30], [120, 80]]
        {
            live(&mut estimator, 2_000, costs);
            let cheaper = if costs[0] < costs[1] { PLAIN } else { MULTI };
            assert_eq!(estimator.method(class(64), 16), cheaper, "{costs:?}");
        }
    }

    #[test]
    fn tries_that_are_no_samples_keep_nobody_waiting() {
        let mut estimator = known(100, 30, 16);
        (0..2).for_each(|_| record(&mut estimator, MULTI, 16, 150));
        for _ in 0..TRIES_OF_COMPARISON {
            assert_eq!(estimator.method_try(class(64), 16), Some(16));
            estimator.tries_method(class(64), 16);
        }
        record(&mut estimator, MULTI, 16, 150);
        assert_eq!(estimator.method(class(64), 16), PLAIN, "by what is known");
    }
}
