//! An axis with ticks of our own: bytes in powers of two, values in ones, twos and fives.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::{Scale, Series};

/// An axis with ticks of our own.
#[derive(Clone)]
pub(super) struct Axis {
    /// In the coordinates that are drawn: logarithms where the scale is logarithmic.
    range: Range<f64>,
    ticks: Vec<f64>,
    text: fn(f64) -> String,
}

impl Axis {
    /// Sizes in bytes; `None` where there is no point.
    pub(super) fn of_sizes(series: &[Series], ticks_max: usize) -> Option<Self> {
        let (min, max) = extremes(points(series).map(|point| point.0.log2()))?;
        let range = min - 0.3..max + 0.3;
        let powers = whole_numbers(&range);
        let step = powers.len().div_ceil(ticks_max).max(1);
        Some(Self { range, ticks: powers.into_iter().step_by(step).collect(), text: bytes })
    }

    /// Counts; `None` where there is no point.
    pub(super) fn of_counts(series: &[Series], ticks_max: usize) -> Option<Self> {
        Some(Self { text: count, ..Self::of_sizes(series, ticks_max)? })
    }

    /// Values; `None` where there is no point.
    pub(super) fn of_values(series: &[Series], scale: Scale) -> Option<Self> {
        let (min, max) = extremes(points(series).map(|point| place(point.1, scale)))?;
        Some(match scale {
            Scale::Linear => {
                let end = max * 1.05;
                Self { range: 0.0..end, ticks: linear_ticks(end), text: number }
            }
            Scale::Logarithmic => {
                let margin = ((max - min) * 0.05).max(0.02);
                let range = min - margin..max + margin;
                Self { ticks: logarithmic_ticks(&range), range, text: |log10| number(10_f64.powf(log10)) }
            }
        })
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        RangedCoordf64::from(self.range.clone()).map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        (self.text)(*value)
    }
}

fn points(series: &[Series]) -> impl Iterator<Item = &(f64, f64)> {
    series.iter().flat_map(|line| &line.points)
}

pub(super) fn place(value: f64, scale: Scale) -> f64 {
    match scale {
        Scale::Linear => value,
        Scale::Logarithmic => value.log10(),
    }
}

fn extremes(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |seen, value| {
        let (min, max) = seen.unwrap_or((value, value));
        Some((value.min(min), value.max(max)))
    })
}

#[expect(clippy::cast_possible_truncation, reason = "logarithms of sizes and values are small")]
fn whole_numbers(range: &Range<f64>) -> Vec<f64> {
    (range.start.ceil() as i32..=range.end.floor() as i32).map(f64::from).collect()
}

/// Multiples of 1, 2 or 5 times a power of ten, from 0 to `end`.
pub(super) fn linear_ticks(end: f64) -> Vec<f64> {
    let decade = 10_f64.powf((end / TICKS_WANTED).log10().floor());
    let enough = |step: &f64| end / step <= TICKS_WANTED;
    let step = [1.0, 2.0, 5.0].map(|digit| digit * decade).into_iter().find(enough).unwrap_or(10.0 * decade);
    let last = (end / step).floor();
    whole_numbers(&(0.0..last)).into_iter().map(|count| count * step).collect()
}

/// The logarithms of 1, 2 and 5 times powers of ten inside `range`; of the powers alone where these are enough.
pub(super) fn logarithmic_ticks(range: &Range<f64>) -> Vec<f64> {
    let decades = range.start.floor()..range.end.ceil();
    let of = |digits: &[f64]| -> Vec<f64> {
        let ticks =
            whole_numbers(&decades).into_iter().flat_map(|k| digits.iter().map(move |d| k + d.log10()));
        ticks.filter(|tick| range.contains(tick)).collect()
    };
    let tens = of(&[1.0]);
    if tens.len() > 4 { tens } else { of(&[1.0, 2.0, 5.0]) }
}

/// A size as people write it: `8 B`, `16 KiB`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ticks are powers of two from 1 up"
)]
pub(super) fn bytes(log2: f64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let shift = log2.round().clamp(0.0, 59.0) as usize;
    format!("{} {}", 1_u32 << (shift % 10), UNITS[shift / 10])
}

/// A count: `1024`.
fn count(log2: f64) -> String {
    format!("{:.0}", log2.exp2())
}

/// A value with as many decimals as its size asks for, and thousands set apart.
pub(super) fn number(value: f64) -> String {
    if value.abs() >= 1e6 {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text.len() {
        5.. if value >= 1e4 => format!("{} {}", &text[..text.len() - 3], &text[text.len() - 3..]),
        _ => text.to_owned(),
    }
}

/// Most steps of the linear left axis.
const TICKS_WANTED: f64 = 8.0;
