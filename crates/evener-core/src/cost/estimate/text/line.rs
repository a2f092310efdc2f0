//! One line of a file of costs, both ways, and what may be wrong with it.

use std::fmt;
use std::str::SplitWhitespace;

use super::{HEAD, Source};
use crate::cost;
use crate::cost::estimate::{LEAST_WIDTH, Learned, OVERHEAD_MAX, float};
use crate::job::algorithm::{Algorithm, Direction};
use crate::job::class::Class;
use crate::job::method::Method;

/// Means in nanoseconds lie above zero and below ten minutes.
const NS: (f64, f64) = (0.1, 599_999_999_999.0);

/// Mean bytes are at most these: a tebibyte.
const BYTES_MAX: u64 = 1 << 40;

/// What a cost is of: class, quantity, and of `c` the width class (0 of a module's).
pub(super) type Key = (Class, Quantity, usize);

/// `c`, `d` or `h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Quantity {
    C,
    D,
    H,
}

impl Quantity {
    const fn word(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::D => "d",
            Self::H => "h",
        }
    }
}

/// A line below the head.
pub(super) enum Line {
    /// Whose costs follow.
    Source(Source),
    Cost(Key, Learned),
    /// What clocks do not show of a request on a module.
    Overhead(cost::Line),
    /// What earlier versions kept and this one does without.
    Old,
    /// What this version does not know.
    Unknown,
}

/// How a line begins that is a cost of an algorithm that is none of these, to the blank behind its name.
pub(super) fn cost_of_others<'l>(line: &'l str, algorithms: &[Algorithm]) -> Option<&'l str> {
    let (word, rest) = line.split_once(' ')?;
    let (name, _) = rest.split_once(' ')?;
    let is_cost = [Quantity::C, Quantity::D, Quantity::H].iter().any(|known| known.word() == word);
    let is_other = || !algorithms.iter().any(|it| it.name() == name);
    // Of what is no algorithm's name the reader complains.
    let is_known = || Algorithm::ALL.iter().any(|it| it.name() == name);
    (is_cost && is_other() && is_known()).then(|| &line[..word.len() + name.len() + 2])
}

const OVERHEAD: &str = "unseen";

/// The word before what earlier versions had instead: how many times the core time that clocks show a path takes.
const FACTOR: &str = "factor";

impl Line {
    pub(super) fn parse(line: &str) -> Result<Self, Wrong> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = rest.split_whitespace();
        let known = [Quantity::C, Quantity::D, Quantity::H].into_iter().find(|known| known.word() == word);
        match known {
            Some(quantity) => cost(quantity, &mut words),
            None if word == OVERHEAD => overhead(&mut words),
            None if word == FACTOR => Ok(Self::Old),
            None => Ok(source(word, rest).map_or(Self::Unknown, Self::Source)),
        }
    }
}

const MORE: &str = "more";
const IN_PLACE: &str = "in-place";
const APART: &str = "out-of-place";

fn source(word: &str, rest: &str) -> Option<Source> {
    if word == "module" {
        let (name, detail) = rest.split_once('\t')?;
        return Some(Source::Module(name.to_owned(), detail.to_owned()));
    }
    let method = Method::ALL.into_iter().find(|method| method.name() == word)?;
    Some(Source::Cpu(method, rest.to_owned()))
}

fn cost(quantity: Quantity, words: &mut SplitWhitespace<'_>) -> Result<Line, Wrong> {
    let class = class(words).ok_or(Wrong::Class)?;
    let width = match quantity {
        Quantity::C => width(words).ok_or(Wrong::Width)?,
        Quantity::D | Quantity::H => 0,
    };
    let samples = words.next().and_then(|word| word.parse::<u64>().ok()).ok_or(Wrong::Samples)?;
    // Bytes not into the class: what is too dear for a trial is measured on less.
    let (ns, bytes) = (number(words, NS)?, number(words, (0.0, float(BYTES_MAX)))?);
    if words.next().is_some() {
        return Err(Wrong::TooLong);
    }
    let samples = u32::try_from(samples.max(1)).unwrap_or(u32::MAX);
    Ok(Line::Cost((class, quantity, width), Learned::kept(ns, bytes, samples)))
}

fn overhead(words: &mut SplitWhitespace<'_>) -> Result<Line, Wrong> {
    let mut number =
        |most: u64| words.next().and_then(|word| word.parse::<u64>().ok()).map(|it| it.min(most));
    let (fixed, per_byte) = (number(OVERHEAD_MAX.fixed_ns), number(OVERHEAD_MAX.per_byte_ps));
    let (fixed_ns, per_byte_ps) = fixed.zip(per_byte).ok_or(Wrong::Number)?;
    match words.next() {
        Some(_) => Err(Wrong::TooLong),
        None => Ok(Line::Overhead(cost::Line { fixed_ns, per_byte_ps })),
    }
}

fn class(words: &mut SplitWhitespace<'_>) -> Option<Class> {
    let algorithm = words.next()?.parse().ok()?;
    let wanted = words.next()?;
    let both = [Direction::Encrypt, Direction::Decrypt];
    let direction = both.into_iter().find(|direction| direction.to_string() == wanted)?;
    let end = match words.next()? {
        MORE => usize::MAX,
        number => number.parse().ok()?,
    };
    let is_apart = match words.next()? {
        APART => true,
        IN_PLACE => false,
        _ => return None,
    };
    let class = Class::of(algorithm, direction, end, is_apart);
    (*class.bytes().end() == end).then_some(class)
}

fn width(words: &mut SplitWhitespace<'_>) -> Option<usize> {
    let least: u16 = words.next()?.parse().ok()?;
    LEAST_WIDTH.iter().position(|&width| width == least)
}

/// A number brought into its range and to the tenths with which it is written.
fn number(words: &mut SplitWhitespace<'_>, (least, most): (f64, f64)) -> Result<f64, Wrong> {
    let number = words.next().and_then(|word| word.parse::<f64>().ok()).filter(|number| number.is_finite());
    number.map(|number| (number.clamp(least, most) * 10.0).round() / 10.0).ok_or(Wrong::Number)
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((class, quantity, width), mean) = match self {
            Self::Source(Source::Cpu(method, library)) => return write!(f, "{} {library}", method.name()),
            Self::Source(Source::Module(name, detail)) => return write!(f, "module {name}\t{detail}"),
            Self::Overhead(cost::Line { fixed_ns, per_byte_ps }) => {
                return write!(f, "{OVERHEAD} {fixed_ns} {per_byte_ps}");
            }
            // These are not written.
            Self::Old | Self::Unknown => return Ok(()),
            Self::Cost(key, mean) => (key, mean),
        };
        write!(f, "{} {} {} ", quantity.word(), class.algorithm(), class.direction())?;
        match *class.bytes().end() {
            usize::MAX => f.write_str(MORE)?,
            end => write!(f, "{end}")?,
        }
        write!(f, " {}", if class.is_apart() { APART } else { IN_PLACE })?;
        if *quantity == Quantity::C {
            write!(f, " {}", LEAST_WIDTH[*width])?;
        }
        write!(f, " {} {:.1} {:.1}", mean.samples, mean.ns, mean.bytes)
    }
}

/// A line that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its number; the first is 1.
    pub line: usize,
    /// What is wrong with it.
    pub wrong: Wrong,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrong {
    /// The first line is not that of this format.
    Version,
    /// The second line does not say when it was written.
    Saved,
    /// The third line names no processor.
    Processor,
    /// The text ends before a line does, or before its head does.
    CutOff,
    /// Something stands behind its end.
    TooLong,
    /// A `c` stands below no method, or a `d`, `h` or `unseen` below no module.
    NoSource,
    /// It names no class.
    Class,
    /// It names no class of widths.
    Width,
    /// The number of samples is none.
    Samples,
    /// A mean is no number.
    Number,
    /// The same cost was there before.
    Twice,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version => write!(f, "is not {HEAD:?}"),
            Self::Saved => f.write_str("does not say when it was saved"),
            Self::Processor => f.write_str("names no processor"),
            Self::CutOff => f.write_str("the text is cut off"),
            Self::TooLong => f.write_str("something stands behind the cost"),
            Self::NoSource => f.write_str("such a cost does not belong here"),
            Self::Class => f.write_str("names no class of jobs"),
            Self::Width => write!(f, "the width is not one of {LEAST_WIDTH:?}"),
            Self::Samples => f.write_str("the number of samples is none"),
            Self::Number => f.write_str("a mean is no number"),
            Self::Twice => f.write_str("this cost was there before"),
        }
    }
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.wrong)
    }
}

impl std::error::Error for BadLine {}
