//! What a run knows of the costs of jobs, and by which method its cores run bursts: one table for all threads and all
//! policies.
//!
//! A burst: [`Costs::choose`], one byte by class and width -> the driver -> one burst in some is sampled ->
//! [`Costs::record`] -> the estimator decides anew (`evener_core::estimate`) -> the table.

pub mod calibration;
mod method_choice;
pub mod overhead;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use evener_core::estimate::{LEAST_WIDTH, WIDTHS, width_class};
use evener_core::plan::adaptive::TUNING;
use evener_core::{Class, Estimator, Method, Nanos, Sample};

pub(crate) use self::method_choice::Chosen;
use self::method_choice::{FRESH, MULTI, TRY, UNSET};

/// The costs of a run.
pub struct Costs {
    /// By [`Class::index`], then width class. Written under the lock of `known`, but for [`TRY`], which the worker takes
    /// away that tries.
    words: Vec<AtomicU8>,
    known: Mutex<Known>,
}

/// What the lock protects.
pub(crate) struct Known {
    pub(crate) estimator: Estimator,
    /// Core time that cores spent on a class so far.
    pub(crate) worked: BTreeMap<Class, Nanos>,
}

/// What one burst of one class took on a core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostSample {
    pub(crate) class: Class,
    pub(crate) method: Method,
    pub(crate) took: Sample,
    /// Bursts that it is the sample of.
    pub(crate) stands_for: u64,
}

impl Default for Costs {
    fn default() -> Self {
        Self::new(Estimator::default())
    }
}

impl Costs {
    /// Starts from what earlier runs and calibration learned.
    #[must_use]
    pub fn new(learned: Estimator) -> Self {
        Self {
            words: (0..Class::COUNT * WIDTHS).map(|_| AtomicU8::new(UNSET)).collect(),
            known: Mutex::new(Known { estimator: learned, worked: BTreeMap::new() }),
        }
    }

    /// By which method a burst of so many jobs runs.
    #[inline]
    pub(crate) fn choose(&self, class: Class, jobs: usize) -> Chosen {
        // Relaxed: a byte that says all; a worker that reads an old one runs one burst as before.
        let word = self.word(class, width_class(jobs)).load(Ordering::Relaxed);
        let word = if word & UNSET == 0 { word } else { self.first_look(class, jobs) };
        Chosen::of_word(word)
    }

    /// Whether it falls to this worker to sample what no worker has sampled yet.
    pub(crate) fn take_first(&self, class: Class, jobs: usize) -> bool {
        // Relaxed: of the workers that see it, one takes it away.
        self.word(class, width_class(jobs)).fetch_and(!FRESH, Ordering::Relaxed) & FRESH != 0
    }

    /// The next burst of so many jobs is to be sampled, by the worker that runs it.
    pub(crate) fn sample_next(&self, class: Class, jobs: usize) {
        // Relaxed: one bit of a byte that has all state. Where no worker has looked yet, the first look sets it.
        self.word(class, width_class(jobs)).fetch_or(FRESH, Ordering::Relaxed);
    }

    /// How many of the first jobs of such a burst are to try the other method, if that falls to this worker.
    pub(crate) fn take_try(&self, class: Class, jobs: usize) -> Option<usize> {
        let word = self.word(class, width_class(jobs));
        // Relaxed: of the workers that see it, one takes it away.
        if word.fetch_and(!TRY, Ordering::Relaxed) & TRY == 0 {
            return None;
        }
        let mut known = self.known();
        let jobs_tried = known.estimator.method_try(class, jobs)?;
        known.estimator.tries_method(class, jobs);
        Some(jobs_tried)
    }

    /// Takes in what a burst took. Of many bursts alike a sample may get lost, where another thread is about to write.
    pub(crate) fn record(&self, sample: &CostSample) {
        let known = if sample.stands_for > 1 { self.known.try_lock().ok() } else { Some(self.known()) };
        let Some(mut known) = known else { return };
        known.estimator.saw_cpu(
            sample.class,
            sample.method,
            sample.took.jobs,
            sample.took.bytes,
            sample.took.core,
        );
        let worked = known.worked.entry(sample.class).or_default();
        *worked += Nanos(sample.took.core.0 * sample.stands_for);
        let may_try = *worked >= TUNING.try_work_min;
        (0..WIDTHS).for_each(|width| self.write(&known.estimator, sample.class, width, may_try));
    }

    /// What is known, locked.
    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was learned, at the end of a run.
    pub(crate) fn learned(&self) -> Estimator {
        self.known().estimator.clone()
    }

    #[inline]
    fn word(&self, class: Class, width: usize) -> &AtomicU8 {
        &self.words[class.index() * WIDTHS + width]
    }

    #[cold]
    fn first_look(&self, class: Class, jobs: usize) -> u8 {
        let word = method_bit(self.known().estimator.method(class, jobs)) | FRESH;
        self.word(class, width_class(jobs)).store(word, Ordering::Relaxed);
        word
    }

    /// Writes what is in force at a width, after a sample of the class.
    fn write(&self, estimator: &Estimator, class: Class, width: usize, may_try: bool) {
        let word = self.word(class, width);
        let before = word.load(Ordering::Relaxed);
        if before & UNSET != 0 {
            return;
        }
        let jobs = usize::from(LEAST_WIDTH[width]);
        let method = method_bit(estimator.method(class, jobs));
        let is_same = before & MULTI == method || cfg!(mutant = "change_not_sampled");
        let is_contested = estimator.is_contested(class, jobs);
        let fresh = if is_same && !is_contested { before & FRESH } else { FRESH };
        let may_try = may_try || is_contested;
        let wants_try = may_try && estimator.method_try(class, jobs).is_some();
        word.store(method | fresh | if wants_try { TRY } else { 0 }, Ordering::Relaxed);
    }
}

const fn method_bit(method: Method) -> u8 {
    match method {
        Method::Plain => 0,
        Method::MultiBuffer => MULTI,
    }
}
