//! By which method a core runs a burst: the one answer, for all policies, from what each method cost.
//!
//! What it is in the literature: the choice between two arms whose means are learned, with hysteresis: the arm in force goes only where
//! the other is better by a margin and by what the means may err.
//!
//! | a width of a class | the method in force | the other one is tried |
//! |---|---|---|
//! | nothing known | its nearest neighbour's, which calibration has measured (`evener::calibrate`); plain where none knows | by a few jobs, once the class has worked |
//! | one method known | the one that is known | by a few jobs, then by full lanes |
//! | both known | the better one, or what was in force where they are near (M1) | while it is unsure (M2), or known by few samples (M3) |
//! | contested: the cost of the one in force has drifted (M4) | stays | without delay, until both were measured under the conditions of today, which two bursts each are |
//!
//! The path of a decision: means of both methods at the width of the burst (`on_core.rs`) -> what is in force there (`choice.rs`) ->
//! [`Estimator::method`]. The numbers of M1 to M4 stand in `tuning.rs`.

mod choice;
mod on_core;
mod tuning;

pub(super) use self::on_core::OnCore;

use self::tuning::TUNING;
use super::mean::{LEAST_WIDTH, Learned, width_class};
use super::{Estimator, nanos};
use crate::job::class::Class;
use crate::job::method::Method;
use crate::units::Nanos;

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
        let of_kind = self.cpu.range(class.kind());
        let comparable = of_kind.filter(|(near, known)| **near != class && known.is_comparable(width));
        comparable.min_by_key(|(near, _)| class.distance(**near)).map(|(_, known)| known)
    }

    /// How many jobs of such a burst are to try the method that is not in force, where too little is known of it.
    #[must_use]
    pub fn method_try(&self, class: Class, jobs: usize) -> Option<usize> {
        let width = width_class(jobs);
        let own = self.cpu.get(&class).filter(|_| !self.is_frozen)?;
        let other = self.method(class, jobs).other();
        let is_new = own.known(other).next().is_none();
        let near = if is_new { self.neighbour(class, width) } else { None };
        // What a neighbour knows is enough for a while.
        let is_told =
            near.is_some() && (!own.has_worked(other.other(), width) || cfg!(mutant = "neighbours_believed"));
        let may_be_much_dearer = is_new && !near.is_some_and(|near| near.is_close(other, width));
        // So many that the sample is one of this width.
        let full = TUNING.jobs_of_try.max(LEAST_WIDTH[width].into());
        let most = if may_be_much_dearer { TUNING.jobs_of_first_try } else { full };
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
