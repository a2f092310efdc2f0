//! What is known of a class on cores: a mean for each method and width, and the choices that follow.

use super::choice::Choice;
use super::tuning::TUNING;
use crate::cost::estimate::mean::{LEAST_WIDTH, Learned, WIDTHS, width_class};
use crate::job::method::Method;
use crate::units::Nanos;

/// What is known of a class on cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::cost::estimate) struct OnCore {
    means: [[Learned; WIDTHS]; Method::ALL.len()],
    pub(super) choices: [Choice; WIDTHS],
}

impl Default for OnCore {
    fn default() -> Self {
        let choice = Choice { method: Method::Plain, tries: 0, compared_ns: 0.0, contest: None };
        Self { means: Default::default(), choices: [choice; WIDTHS] }
    }
}

impl OnCore {
    pub(in crate::cost::estimate) fn record(&mut self, method: Method, jobs: usize, bytes: u64, core: Nanos) {
        let width = width_class(jobs);
        self.means[method as usize][width].record(jobs as u64, bytes, core);
        let choice = &mut self.choices[width];
        if choice.method == method {
            choice.record_own();
        } else {
            choice.record_other();
        }
        (0..WIDTHS).for_each(|width| self.choose(width));
    }

    /// Takes a mean of an earlier run, as if it had been there from the beginning.
    pub(in crate::cost::estimate) fn keep(&mut self, method: Method, width: usize, mean: Learned) {
        self.means[method as usize][width] = mean;
        self.choices = Self::default().choices;
        (0..WIDTHS).for_each(|width| self.choose(width));
    }

    /// All means: method, width class.
    pub(in crate::cost::estimate) fn all(&self) -> impl Iterator<Item = (Method, usize, &Learned)> {
        let of = |method| self.known(method).map(move |(width, mean)| (method, width, mean));
        Method::ALL.into_iter().flat_map(of)
    }

    /// The means of one method that are known, by width.
    pub(in crate::cost::estimate) fn known(&self, method: Method) -> impl Iterator<Item = (usize, &Learned)> {
        self.means[method as usize].iter().enumerate().filter(|(_, mean)| mean.samples > 0)
    }

    /// The mean of a method at a width, where it was sampled.
    pub(in crate::cost::estimate) fn exact(&self, method: Method, width: usize) -> Option<&Learned> {
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
    pub(super) fn is_comparable(&self, width: usize) -> bool {
        Method::ALL.iter().all(|&method| self.mean(method, width).is_some())
    }

    /// Whether `other` costs at most twice what the other one does.
    pub(super) fn is_close(&self, other: Method, width: usize) -> bool {
        let cost = |method| self.mean(method, width).map(|mean| mean.ns);
        cost(other).zip(cost(other.other())).is_some_and(|(other, own)| other <= TUNING.close * own)
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
            // It was never run otherwise.
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
    pub(super) fn wants_try(&self, other: Method, width: usize) -> bool {
        if let Some(contest) = self.choices[width].contest {
            return contest.wants_try();
        }
        if self.is_compared_again(other, width) {
            return true;
        }
        if self.choices[width].tries >= TUNING.tries_max && !cfg!(mutant = "tries_endless") {
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
            let lanes = bound.map_or(1.0, |bound| fewer_times(LEAST_WIDTH[width], LEAST_WIDTH[bound]));
            return advantage(plain, multi) > TUNING.margin
                || 1.0 - (1.0 - advantage(plain, multi)) / lanes > TUNING.margin;
        }
        self.mean(other, width).is_some_and(|other| other.samples < TUNING.samples_enough)
            && (advantage(plain, multi) - TUNING.margin).abs() < doubt(plain, multi)
    }

    /// Whether a method has done enough at a width for the class to stand for itself.
    pub(super) fn has_worked(&self, method: Method, width: usize) -> bool {
        self.exact(method, width).is_some_and(|mean| mean.samples >= TUNING.samples_of_its_own)
    }

    /// Whether the few samples of `other` are to be doubted, since so much has been done without it.
    fn is_compared_again(&self, other: Method, width: usize) -> bool {
        let exact = |method| self.exact(method, width).map(|mean: &Learned| mean.samples);
        let (Some(few), Some(many)) = (exact(other), exact(other.other())) else { return false };
        let doublings = (many / TUNING.samples_of_doubt).checked_ilog2().map_or(0, |log| log + 1);
        few < TUNING.samples_enough
            && self.choices[width].tries < TUNING.looks_again * doublings
            && !cfg!(mutant = "cold_tries_believed")
    }
}

/// How many times less a job may cost in the wider burst of two by multi-buffer.
fn fewer_times(wide: u16, narrow: u16) -> f64 {
    if usize::from(narrow) < TUNING.jobs_of_try {
        f64::from(wide) / f64::from(narrow)
    } else {
        TUNING.filled_again
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
    if cfg!(mutant = "sure_of_one_sample") {
        0.0
    } else {
        TUNING.sure * (plain * plain + multi * multi).sqrt()
    }
}

/// The better method; `before`, unless the other is better for sure.
fn better(before: Method, plain: &Learned, multi: &Learned) -> Method {
    let (advantage, doubt) = (advantage(plain, multi), doubt(plain, multi));
    match before {
        Method::Plain if advantage > TUNING.margin + doubt => Method::MultiBuffer,
        Method::MultiBuffer if advantage < TUNING.margin && cfg!(mutant = "no_hysteresis") => Method::Plain,
        Method::MultiBuffer if advantage < TUNING.margin - doubt.max(TUNING.margin / 2.0) => Method::Plain,
        method => method,
    }
}
