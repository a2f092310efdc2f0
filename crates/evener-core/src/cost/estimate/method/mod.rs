//! By which method a core runs a burst: the one answer, for all policies, from what each method cost.
//!
//! The path of a decision: means of both methods at the width of the burst -> `OnCore::choose` (`on_core.rs`) -> the method in force,
//! which stays until the other is better by more than the means may err. A class of which one method is unknown does
//! as its nearest neighbour, which calibration has measured (`evener::calibrate`); where no neighbour knows, it stays
//! plain until a few jobs have tried the other.

mod choice;
mod on_core;

pub(super) use self::on_core::OnCore;

use super::mean::{LEAST_WIDTH, Learned, width_class};
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
mod tests;
