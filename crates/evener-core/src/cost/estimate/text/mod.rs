//! Learned costs as text, so that they outlive a run.
//!
//! The path of a file: [`CostFile::parse`] -> [`CostFile::estimator`] for the [`CostScope`] of this machine -> a run ->
//! [`CostFile::renew`] with what it learned -> [`CostFile::text`]. What it holds is advice: every number is brought into a
//! sane range, and costs of another processor, library version or module are left out.
//!
//! ```text
//! evener costs 1
//! saved 1795304000
//! processor AMD EPYC 9R14
//! plain OpenSSL 3.0.19
//! c AES-128-CBC encrypt 16384 in-place 16 12 20123.4 16384.0
//! module emulated:am3358, TI AM3358
//! unseen 61000 2500
//! d AES-128-CBC encrypt 16384 in-place 4 330860.0 16384.0
//! h AES-128-CBC encrypt 16384 in-place 4 403570.0 16384.0
//! ```
//!
//! Between `module` name and detail stands a tab. After `c`, `d` and `h` stand the class (algorithm, direction, upper
//! end of its sizes in bytes or `more`, layout), for `c` the least width of the bursts, then samples, mean
//! nanoseconds and mean bytes of a job. After `unseen`, which not every module has, stands what clocks do not show of a
//! request ([`Estimator::overhead`]): nanoseconds, and picoseconds for each byte.
//!
//! A line that begins with a word of another version is left out, and so is what stands below it until the next source
//! that is known: it may belong to a source that is not. So a new kind of line is written at the end of its source. `factor`,
//! which older versions wrote below modules, is passed over.

mod line;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

pub use self::line::{BadLine, Wrong};
use self::line::{Key, Line, Quantity};
use super::PLAN_WIDTH;
use super::{Estimator, Learned, OnModule};
use crate::cost;
use crate::driver::Profile;
use crate::job::algorithm::Algorithm;
use crate::job::class::Class;
use crate::job::method::Method;

/// The first line; another number stands for another format.
const HEAD: &str = "evener costs 1";

/// Samples that a kept mean counts as at most, so that what is measured now moves it: two weights of a sample.
pub const SAMPLES_MAX: u32 = 16;

/// Sources that a file keeps at most, those used last first. Assumed, not measured: 32, because no machine alternates
/// between more.
const PARTS_MAX: usize = 32;

/// What the costs belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A method of the CPU, by the library behind it and its version.
    Cpu(Method, String),
    /// A module, by the name and the detail of its profile.
    Module(String, String),
}

/// A library, or kernels of our own, by which a core runs a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library<'l> {
    /// How it is used.
    pub method: Method,
    /// What it is, with its version.
    pub detail: &'l str,
    /// What it computes; `None`: whatever no other library of the method is named for.
    pub only: Option<&'l [Algorithm]>,
}

/// What a machine computes with: the costs of nothing else are taken from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostScope {
    processor: String,
    /// With what each computes.
    methods: Vec<(Source, Vec<Algorithm>)>,
    modules: Vec<Source>,
}

impl CostScope {
    /// A processor by its model, libraries, modules in the estimator's order.
    #[must_use]
    pub fn new(processor: &str, libraries: &[Library<'_>], modules: &[Profile]) -> Self {
        let is_named = |method: Method, algorithm: Algorithm| {
            let mut others = libraries.iter().filter(|other| other.method == method);
            others.any(|other| other.only.is_some_and(|only| only.contains(&algorithm)))
        };
        let rest = |method| Algorithm::ALL.iter().copied().filter(|&it| !is_named(method, it)).collect();
        let source = |library: &Library<'_>| {
            let algorithms = library.only.map_or_else(|| rest(library.method), <[_]>::to_vec);
            (Source::Cpu(library.method, one_line(library.detail)), algorithms)
        };
        let module = |profile: &Profile| Source::Module(one_line(&profile.name), one_line(&profile.detail));
        Self {
            processor: one_line(processor),
            methods: libraries.iter().map(source).collect(),
            modules: modules.iter().map(module).collect(),
        }
    }

    /// Nothing known of its modules.
    #[must_use]
    pub fn no_costs(&self) -> Estimator {
        Estimator::new(self.modules.len())
    }
}

/// A text without control characters and without white space at its ends or twice in a row.
fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is kept between runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostFile {
    /// When it was written, in seconds since 1970.
    pub saved_s: u64,
    processor: String,
    parts: Vec<Part>,
    /// Number of the first line that was left out because of its first word; the first line is 1.
    unknown_line: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
struct Part {
    source: Source,
    costs: BTreeMap<Key, Learned>,
    /// Of a module.
    overhead: Option<cost::Line>,
}

impl CostFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`BadLine`], the first one; the rest of such a file is not to be trusted.
    pub fn parse(text: &str) -> Result<Self, BadLine> {
        Self::parse_lines(text, |_| true)
    }

    /// Reads what a file says of these algorithms, and passes over the rest unread: a file of all algorithms takes longer to read than
    /// a small file to encrypt.
    ///
    /// # Errors
    ///
    /// As [`CostFile::parse`], of what it reads.
    pub fn parse_only(text: &str, algorithms: &[Algorithm]) -> Result<Self, BadLine> {
        // Costs of one algorithm stand together: what was passed over last is most often what comes next.
        let mut passed_over = "";
        Self::parse_lines(text, |line| {
            if !passed_over.is_empty() && line.starts_with(passed_over) {
                return false;
            }
            let others = line::cost_of_others(line, algorithms);
            passed_over = others.unwrap_or(passed_over);
            others.is_none()
        })
    }

    fn parse_lines<'t>(text: &'t str, mut is_wanted: impl FnMut(&'t str) -> bool) -> Result<Self, BadLine> {
        let (mut cost_file, mut is_skipping, mut lines) = (Self::default(), false, 0);
        for (number, line) in text.lines().enumerate() {
            let read = match HEADS.get(number) {
                Some(read_head) => read_head(&mut cost_file, line),
                None if !is_wanted(line) => Ok(()),
                None => cost_file.read(number, line, &mut is_skipping),
            };
            read.map_err(|wrong| BadLine { line: number + 1, wrong })?;
            lines = number + 1;
        }
        match lines >= HEADS.len() && text.ends_with('\n') {
            true => Ok(cost_file),
            false => Err(BadLine { line: lines.max(1), wrong: Wrong::CutOff }),
        }
    }

    /// Reads a line below the head. `is_skipping` says whether it stands below a line that was not understood.
    fn read(&mut self, number: usize, line: &str, is_skipping: &mut bool) -> Result<(), Wrong> {
        match Line::parse(line)? {
            Line::Source(source) => {
                *is_skipping = false;
                self.parts.push(Part::new(source));
            }
            Line::Unknown => {
                *is_skipping = true;
                self.unknown_line.get_or_insert(number + 1);
            }
            Line::Old => {}
            _ if *is_skipping && !cfg!(mutant = "costs_of_others_read") => {}
            Line::Overhead(overhead) => return self.read_overhead(overhead),
            Line::Cost(key, mean) => return self.read_cost(key, mean),
        }
        Ok(())
    }

    fn read_cost(&mut self, key: Key, mean: Learned) -> Result<(), Wrong> {
        let part = self.parts.last_mut().ok_or(Wrong::NoSource)?;
        if matches!(part.source, Source::Cpu(..)) != (key.1 == Quantity::C) {
            return Err(Wrong::NoSource);
        }
        match part.costs.insert(key, mean) {
            Some(_) => Err(Wrong::Twice),
            None => Ok(()),
        }
    }

    fn read_overhead(&mut self, overhead: cost::Line) -> Result<(), Wrong> {
        let part = self.parts.last_mut().filter(|part| matches!(part.source, Source::Module(..)));
        match part.ok_or(Wrong::NoSource)?.overhead.replace(overhead) {
            Some(_) => Err(Wrong::Twice),
            None => Ok(()),
        }
    }

    /// The number of the first line that another version wrote and this one does not understand. It was left out.
    #[must_use]
    pub const fn unknown_line(&self) -> Option<usize> {
        self.unknown_line
    }

    /// Whether it was written on such a processor.
    #[must_use]
    pub fn is_for(&self, scope: &CostScope) -> bool {
        self.processor == scope.processor
    }

    /// What of it counts here, each mean as [`SAMPLES_MAX`] samples at most.
    #[must_use]
    pub fn estimator(&self, scope: &CostScope) -> Estimator {
        let mut estimator = scope.no_costs();
        if !self.is_for(scope) {
            return estimator;
        }
        for part in &self.parts {
            if let Some((_, algorithms)) = scope.methods.iter().find(|(source, _)| *source == part.source) {
                part.to_cpu(&mut estimator, algorithms);
            }
            for module in (0..scope.modules.len()).filter(|&module| scope.modules[module] == part.source) {
                part.to_module(module, &mut estimator);
            }
        }
        estimator
    }

    /// Takes in what a run on `scope` learned, at `now_s` seconds since 1970. What it holds of other modules and
    /// library versions stays.
    pub fn renew(&mut self, scope: &CostScope, learned: &Estimator, now_s: u64) {
        if !self.is_for(scope) {
            *self = Self { processor: scope.processor.clone(), ..Self::default() };
        }
        self.saved_s = now_s;
        for (module, source) in scope.modules.iter().enumerate().rev() {
            let part = self.in_front(source);
            part.overhead = learned.overhead(module).or(part.overhead);
            let part = &mut part.costs;
            for (class, known) in learned.all_on_module(module).filter(|(_, known)| known.d.samples > 0) {
                let known = learned.at_todays_speed(class, known, PLAN_WIDTH);
                part.insert((class, Quantity::D, 0), bare(known.d));
                part.insert((class, Quantity::H, 0), bare(known.h));
            }
        }
        for (source, algorithms) in scope.methods.iter().rev() {
            let part = &mut self.in_front(source).costs;
            let of_source = |class: Class, method| {
                matches!(source, Source::Cpu(own, _) if *own == method)
                    && algorithms.contains(&class.algorithm())
            };
            for (class, _, width, mean) in learned.all_cpu().filter(|row| of_source(row.0, row.1)) {
                part.insert((class, Quantity::C, width), bare(*mean));
            }
        }
        self.parts.retain(|part| !part.costs.is_empty() || part.overhead.is_some());
        self.parts.truncate(PARTS_MAX);
    }

    /// What is known of a source, moved to the front.
    fn in_front(&mut self, source: &Source) -> &mut Part {
        let part = match self.parts.iter().position(|part| part.source == *source) {
            Some(at) => self.parts.remove(at),
            None => Part::new(source.clone()),
        };
        self.parts.insert(0, part);
        &mut self.parts[0]
    }

    /// Each source with the number of classes that are known of it.
    pub fn sources(&self) -> impl Iterator<Item = (&Source, usize)> {
        let classes = |part: &Part| part.costs.keys().map(|key| key.0).collect::<BTreeSet<_>>().len();
        self.parts.iter().map(move |part| (&part.source, classes(part)))
    }

    /// The file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{HEAD}\nsaved {}\nprocessor {}\n", self.saved_s, self.processor);
        for part in &self.parts {
            let head = [Some(Line::Source(part.source.clone())), part.overhead.map(Line::Overhead)];
            let costs = part.costs.iter().map(|(&key, &mean)| Line::Cost(key, mean));
            for line in head.into_iter().flatten().chain(costs) {
                writeln!(text, "{line}").expect("a String takes everything");
            }
        }
        text
    }
}

impl Part {
    const fn new(source: Source) -> Self {
        Self { source, costs: BTreeMap::new(), overhead: None }
    }

    fn to_cpu(&self, estimator: &mut Estimator, algorithms: &[Algorithm]) {
        let Source::Cpu(method, _) = self.source else { return };
        let of_these = |class: Class| algorithms.contains(&class.algorithm());
        for (&(class, _, width), mean) in self.costs.iter().filter(|(key, _)| of_these(key.0)) {
            estimator.keep_cpu(class, method, width, capped(*mean));
        }
    }

    /// A class of which `d` or `h` is missing is left out.
    fn to_module(&self, module: usize, estimator: &mut Estimator) {
        if let Some(overhead) = self.overhead {
            estimator.keep_overhead(module, overhead);
        }
        for (&(class, quantity, _), d) in &self.costs {
            let h = self.costs.get(&(class, Quantity::H, 0)).filter(|_| quantity == Quantity::D);
            if let Some(h) = h {
                let known = OnModule { d: capped(*d), h: capped(*h), ..OnModule::default() };
                estimator.keep_module(module, class, known);
            }
        }
    }
}

/// What of a mean a file holds.
const fn bare(mean: Learned) -> Learned {
    Learned::kept(mean.ns, mean.bytes, mean.samples)
}

const fn capped(mean: Learned) -> Learned {
    let samples = if mean.samples < SAMPLES_MAX { mean.samples } else { SAMPLES_MAX };
    Learned::kept(mean.ns, mean.bytes, samples)
}

type ReadHead = fn(&mut CostFile, &str) -> Result<(), Wrong>;

/// How the lines at the top are read, in their order.
const HEADS: [ReadHead; 3] = [
    |_, line| (line == HEAD).then_some(()).ok_or(Wrong::Version),
    |cost_file, line| {
        let number = line.strip_prefix("saved ").and_then(|rest| rest.parse().ok());
        cost_file.saved_s = number.ok_or(Wrong::Saved)?;
        Ok(())
    },
    |cost_file, line| {
        cost_file.processor = line.strip_prefix("processor ").ok_or(Wrong::Processor)?.to_owned();
        Ok(())
    },
];

#[cfg(test)]
mod tests;
