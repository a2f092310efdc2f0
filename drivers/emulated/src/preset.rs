//! What a module is made of and what its jobs cost, by name or by numbers.
//!
//! A module from a paper: `emulated:NAME[,units=N][,depth=N]`. One of your own:
//! `emulated:d=A+B,h=A+B[,c=A+B][,units=N][,depth=N]`; a job of `n` bytes takes `A` nanoseconds and `B`
//! picoseconds per byte.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use evener_core::{Algorithm, Cost, CostTable, Line, Nanos, Profile};

use crate::tables::{self, Known};

/// A module's costs, units and depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    name: String,
    detail: String,
    units: usize,
    depth: usize,
    /// By [`Algorithm::index`]; `None`: the module does not do it.
    costs: Vec<Option<Arc<CostTable>>>,
}

impl Preset {
    /// The presets that have a name, each with what it stands for.
    #[must_use]
    pub fn known() -> Vec<Self> {
        tables::KNOWN.iter().map(Self::of).collect()
    }

    /// The name as it was given: `emulated:am3358`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its figures come from.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Jobs that it works on at the same time.
    #[must_use]
    pub const fn units(&self) -> usize {
        self.units
    }

    /// Jobs that it holds, those being worked on included.
    #[must_use]
    pub const fn depth(&self) -> usize {
        self.depth
    }

    /// What a job of `bytes` costs, in either direction; `None` where the module does not do it.
    #[must_use]
    pub fn cost(&self, algorithm: Algorithm, bytes: usize) -> Option<Cost> {
        let table = self.costs[algorithm.index()].as_ref()?;
        Some(table.at(u64::try_from(bytes).unwrap_or(u64::MAX)))
    }

    /// The same module without `d`: for a host, whose client pays `d` by itself, in its own driver on its own core.
    #[must_use]
    pub fn without_core_time(mut self) -> Self {
        for table in self.costs.iter_mut().flatten() {
            *table = Arc::new(table.map(|cost| Cost { d: Nanos::ZERO, ..cost }));
        }
        self
    }

    /// What the module says of itself.
    #[must_use]
    pub fn profile(&self) -> Profile {
        Profile {
            name: self.name.clone(),
            detail: self.detail.clone(),
            width: u32::try_from(self.depth).unwrap_or(u32::MAX),
            emulated: true,
        }
    }

    fn of(known: &Known) -> Self {
        let mut costs = vec![None; Algorithm::ALL.len()];
        for (algorithms, rows) in known.costs {
            let table = Arc::new(tables::table(rows));
            for algorithm in *algorithms {
                costs[algorithm.index()] = Some(Arc::clone(&table));
            }
        }
        Self {
            name: format!("{PREFIX}{}", known.name),
            detail: known.detail.to_owned(),
            units: known.units,
            depth: known.units,
            costs,
        }
    }

    fn of_lines(lines: &[(&str, Line)]) -> Result<Self, PresetError> {
        let line = |wanted| lines.iter().find(|(key, _)| *key == wanted).map(|(_, line)| *line);
        let (Some(d), Some(h)) = (line("d"), line("h")) else { return Err(PresetError::Incomplete) };
        let table = Arc::new(CostTable::from_lines(line("c").unwrap_or_default(), d, h));
        Ok(Self {
            name: PREFIX.to_owned(),
            detail: "programmed by its options".to_owned(),
            units: 1,
            depth: 1,
            costs: vec![Some(table); Algorithm::ALL.len()],
        })
    }
}

/// A module's name that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PresetError {
    /// Not the name of an emulated module at all.
    #[error("{0:?} is no emulated module: their names begin with {PREFIX:?}")]
    NotEmulated(String),
    /// No preset of this name.
    #[error("unknown preset {0:?}; known are {known}, or d=A+B,h=A+B", known = KnownNames)]
    Unknown(String),
    /// An option that there is not, or not beside the name of a preset.
    #[error(
        "unknown option {0:?}; there are units=N and depth=N, and d=A+B, h=A+B and c=A+B without a preset"
    )]
    UnknownOption(String),
    /// A count that is none.
    #[error("{0:?} is no number between 1 and {COUNT_MAX}")]
    BadCount(String),
    /// A cost that is none.
    #[error(
        "{0:?} is no cost: A+B stands for A nanoseconds and B picoseconds per byte, \
         at most {FIXED_NS_MAX} and {PER_BYTE_PS_MAX}"
    )]
    BadCost(String),
    /// `d` or `h` is missing.
    #[error("a module without a preset needs both d=A+B and h=A+B")]
    Incomplete,
}

struct KnownNames;

impl fmt::Display for KnownNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&tables::KNOWN.map(|known| known.name).join(", "))
    }
}

impl FromStr for Preset {
    type Err = PresetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let options = text.strip_prefix(PREFIX).ok_or_else(|| PresetError::NotEmulated(text.to_owned()))?;
        let (mut lines, mut counts, mut name) = (Vec::new(), Vec::new(), None);
        for (place, part) in options.split(',').enumerate() {
            match part.split_once('=') {
                Some((key @ ("units" | "depth"), value)) => counts.push((key, count(value)?)),
                Some((key @ ("c" | "d" | "h"), value)) if name.is_none() => lines.push((key, line(value)?)),
                None if place == 0 => name = Some(part),
                _ => return Err(PresetError::UnknownOption(part.to_owned())),
            }
        }
        let preset = match name {
            Some(name) => named(name)?,
            None => Self::of_lines(&lines)?,
        };
        Ok(preset.with(&counts, text))
    }
}

impl Preset {
    /// The preset with other counts, under the name that was given. A module holds at least one job per unit,
    /// unless its depth was given.
    fn with(self, counts: &[(&str, usize)], name: &str) -> Self {
        let count = |wanted| counts.iter().find(|(key, _)| *key == wanted).map(|(_, count)| *count);
        let units = count("units").unwrap_or(self.units);
        Self { units, depth: count("depth").unwrap_or(units), name: name.to_owned(), ..self }
    }
}

fn named(name: &str) -> Result<Preset, PresetError> {
    let known = tables::KNOWN.iter().find(|known| known.name == name);
    known.map(Preset::of).ok_or_else(|| PresetError::Unknown(name.to_owned()))
}

fn count(text: &str) -> Result<usize, PresetError> {
    let count = text.parse().ok().filter(|count| (1..=COUNT_MAX).contains(count));
    count.ok_or_else(|| PresetError::BadCount(text.to_owned()))
}

fn line(text: &str) -> Result<Line, PresetError> {
    let parsed = || {
        let (fixed, per_byte) = text.split_once('+')?;
        let (fixed_ns, per_byte_ps) = (fixed.parse().ok()?, per_byte.parse().ok()?);
        (fixed_ns <= FIXED_NS_MAX && per_byte_ps <= PER_BYTE_PS_MAX).then_some(Line { fixed_ns, per_byte_ps })
    };
    parsed().ok_or_else(|| PresetError::BadCost(text.to_owned()))
}

const PREFIX: &str = "emulated:";
/// Far beyond any module, and small enough that no sum overflows.
pub(crate) const COUNT_MAX: usize = 4096;
/// 1000 seconds.
const FIXED_NS_MAX: u64 = 1_000_000_000_000;
/// A millisecond per byte.
const PER_BYTE_PS_MAX: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Preset, PresetError> {
        text.parse()
    }

    #[test]
    fn options_change_what_the_preset_says() {
        let shape = |text| parse(text).map(|preset| (preset.units(), preset.depth()));
        assert_eq!(shape("emulated:am3358"), Ok((1, 1)));
        assert_eq!(shape("emulated:am3358,depth=2"), Ok((1, 2)));
        assert_eq!(shape("emulated:cell"), Ok((6, 6)));
        assert_eq!(shape("emulated:cell,units=2"), Ok((2, 2)));
        assert_eq!(shape("emulated:t2,depth=64"), Ok((8, 64)));
        assert_eq!(parse("emulated:am3358,depth=2").unwrap().name(), "emulated:am3358,depth=2");
    }

    #[test]
    fn a_module_of_ones_own_costs_what_its_lines_say() {
        let preset = parse("emulated:d=20000+1500,h=5+3000000,c=7+0,units=4").unwrap();
        let cost = preset.cost(Algorithm::Md5, 1_000).unwrap();
        assert_eq!((cost.c, cost.d, cost.h), (Nanos(7), Nanos(21_500), Nanos(3_000_005)));
        assert_eq!((preset.units(), preset.depth()), (4, 4));
    }

    #[test]
    fn the_papers_sizes_cost_what_the_papers_say() {
        let am3358 = parse("emulated:am3358").unwrap();
        let cost = am3358.cost(Algorithm::Aes128Cbc, 16_384).unwrap();
        assert_eq!(cost, Cost { c: Nanos(1_178_960), d: Nanos(330_860), h: Nanos(403_570) });
        assert_eq!(am3358.cost(Algorithm::ChaCha20Poly1305, 16), None);
    }

    #[test]
    fn every_preset_is_found_by_its_own_name() {
        for preset in Preset::known() {
            assert_eq!(parse(preset.name()), Ok(preset));
        }
    }

    #[test]
    fn what_cannot_be_understood_is_named_and_the_presets_are_listed() {
        let error = parse("emulated:am3359").unwrap_err();
        assert_eq!(error, PresetError::Unknown("am3359".to_owned()));
        assert!(error.to_string().contains("am3358, cell, t2"), "{error}");
        let part = |text: &str| text.to_owned();
        for (text, expected) in [
            ("am3358", PresetError::NotEmulated(part("am3358"))),
            ("emulated:", PresetError::Unknown(part(""))),
            ("emulated:am3358,d=1+1", PresetError::UnknownOption(part("d=1+1"))),
            ("emulated:am3358,fast", PresetError::UnknownOption(part("fast"))),
            ("emulated:am3358,depth=0", PresetError::BadCount(part("0"))),
            ("emulated:am3358,units=5000", PresetError::BadCount(part("5000"))),
            ("emulated:d=1+1", PresetError::Incomplete),
            ("emulated:d=1,h=1+1", PresetError::BadCost(part("1"))),
            ("emulated:d=1+-1,h=1+1", PresetError::BadCost(part("1+-1"))),
            ("emulated:d=1+1000000001,h=1+1", PresetError::BadCost(part("1+1000000001"))),
        ] {
            assert_eq!(parse(text), Err(expected), "{text}");
        }
    }
}
