//! What jobs cost, learned from samples while they run: `c` by method and burst width, `d` and `h` by module.
//!
//! A sample goes in ([`Estimator::saw_cpu`], [`Estimator::saw_module`]), a mean comes out for a size
//! ([`Estimator::c`], [`Estimator::on_module`]). Means are exponential, as TCP's of round trip
//! times are (RFC 6298), with weight 1/8 (`mean.rs`); a cost that is suddenly another one (twice or half, twice in a row) replaces its
//! mean at once, so that a module that was slowed down is known after two jobs.
//!
//! | file | what it learns |
//! |---|---|
//! | `mean.rs` | a mean, and how far samples stray from it |
//! | `method/` | `c`, and by it which method runs a burst |
//! | `on_module.rs` | `d` and `h`, and when a class is tried on a module again |
//! | `alternation.rs` | what a module takes of what the only core takes |
//! | `tuning.rs` | the numbers of all but the methods |
//!
//! What was learned outlives the process as [text].

mod alternation;
mod mean;
mod method;
mod on_module;
pub mod text;
mod tuning;

pub use mean::{LEAST_WIDTH, Learned, WIDTHS, width_class};
pub use on_module::{ModuleSample, OnModule};
pub use tuning::{TUNING, Tuning};

use std::collections::BTreeMap;

use self::method::OnCore;
use crate::cost::Line;
use crate::job::class::Class;
use crate::job::method::Method;
use crate::units::Nanos;

/// The burst width whose `c` plans count with, and against which modules are held: cores run what waits in full lanes, and AVX-512 has
/// sixteen (libipsec-mb).
pub const PLAN_WIDTH: usize = 16;

/// What no thread's clock shows of a request is at most this and this much for each byte: far above the 120 us that were
/// measured with a virtio-crypto module under emulation, and far above what copying a byte takes.
pub const OVERHEAD_MAX: Line = Line { fixed_ns: 10_000_000, per_byte_ps: 1_000_000 };

/// Everything learned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimator {
    cpu: BTreeMap<Class, OnCore>,
    /// By module, then class.
    modules: Vec<BTreeMap<Class, OnModule>>,
    /// By module: core time of its path that thread clocks do not show, of one request; those not measured are missing.
    overhead: BTreeMap<usize, Line>,
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
    pub fn make_space_for(&mut self, modules: usize) {
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
            let jobs = usize::try_from(jobs).unwrap_or(usize::MAX);
            self.cpu.entry(class).or_default().record(method, jobs, bytes, core);
        }
    }

    /// `jobs` of one class ran on `module`: core time of the path, time of the module, all together.
    ///
    /// # Panics
    ///
    /// Where there is no such module.
    pub fn saw_module(&mut self, module: usize, class: Class, sample: &ModuleSample) {
        if !self.is_frozen {
            let known = self.modules[module].entry(class).or_default();
            known.is_tried = false;
            known.d.record(sample.jobs, sample.bytes, sample.d);
            known.h.record(sample.jobs, sample.bytes, sample.h);
            known.last = sample.now;
        }
    }

    /// Core time of a request on a module's path beside what threads' clocks show: the kernel's own threads and interrupts
    /// are on no such clock. `None` where it was not measured, as of a module without a kernel's driver.
    #[must_use]
    pub fn overhead(&self, module: usize) -> Option<Line> {
        self.overhead.get(&module).copied()
    }

    /// Puts in what a calibration measured, at most [`OVERHEAD_MAX`].
    pub fn keep_overhead(&mut self, module: usize, overhead: Line) {
        let Line { fixed_ns, per_byte_ps } = overhead;
        let fixed_ns = fixed_ns.min(OVERHEAD_MAX.fixed_ns);
        self.overhead
            .insert(module, Line { fixed_ns, per_byte_ps: per_byte_ps.min(OVERHEAD_MAX.per_byte_ps) });
    }

    /// Counts a job that is about to be sent to a module to get to know it at `now`. `false`: there are enough, whatever a plan
    /// of before says.
    ///
    /// # Panics
    ///
    /// Where there is no such module.
    pub fn tries(&mut self, module: usize, class: Class, now: Nanos) -> bool {
        if self.tries_left(module, class, now) == 0 {
            return cfg!(mutant = "tries_of_old_plans");
        }
        let known = self.modules[module].entry(class).or_default();
        known.tries += 1;
        (known.last, known.is_tried) = (now, !cfg!(mutant = "tries_out_forgotten"));
        true
    }

    /// Jobs of a class that may be sent to a module at `now` although nothing says that they pay there: some while
    /// nothing is known, one to confirm the first sample, and one now and then, for a module may have recovered or those before
    /// failed; more often where many samples were thrown over by a few, until there are as many of the new kind.
    #[must_use]
    pub fn tries_left(&self, module: usize, class: Class, now: Nanos) -> u32 {
        let known = self.on_module(module, class);
        let at_once = match known.d.samples {
            0 => TUNING.tries_max.saturating_sub(known.tries),
            1 => 2_u32.saturating_sub(known.tries),
            // One more confirms the first. Were it left for later, a short run would end before it, and so would every run after it.
            _ => u32::from(known.may_be_less() && !known.is_tried),
        };
        // Tries that failed brought no sample, so they are no reason to stop.
        let is_over = (known.d.samples < 2 || known.may_be_less()) && cfg!(mutant = "failed_tries_final");
        at_once.max(u32::from(now - known.last >= known.pause() && !is_over))
    }

    /// Whether a class has been left untried on a module, since the run began at `begun` or later, for so many times the usual time that a try
    /// may cost what it likes.
    #[must_use]
    pub fn is_long_untried(&self, module: usize, class: Class, begun: Nanos, now: Nanos) -> bool {
        let known = self.on_module(module, class);
        let after = Nanos(known.pause().0.saturating_mul(TUNING.late_try_pauses));
        known.d.samples > 0 && now - known.last.max(begun) >= after && !cfg!(mutant = "never_tried_late")
    }

    /// What is known of a class on a module.
    #[must_use]
    pub fn on_module(&self, module: usize, class: Class) -> OnModule {
        self.modules.get(module).and_then(|known| known.get(&class)).copied().unwrap_or_default()
    }

    /// Puts in what an earlier run or a calibration learned.
    pub fn keep_cpu(&mut self, class: Class, method: Method, width: usize, learned: Learned) {
        self.cpu.entry(class).or_default().keep(method, width.min(WIDTHS - 1), learned);
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
        fn of_class<'a>(
            (&class, known): (&'a Class, &'a OnCore),
        ) -> impl Iterator<Item = (Class, Method, usize, &'a Learned)> {
            known.all().map(move |(method, width, mean)| (class, method, width, mean))
        }
        self.cpu.iter().flat_map(of_class)
    }

    /// All that is known of a module.
    pub fn all_on_module(&self, module: usize) -> impl Iterator<Item = (Class, &OnModule)> {
        self.modules.get(module).into_iter().flatten().map(|(&class, known)| (class, known))
    }
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
mod tests;
