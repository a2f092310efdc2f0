//! Pictures of rates and times over sizes, as SVG.
//!
//! The way of a picture: points that can be shown -> bounds -> ticks -> mesh, lines, marks -> legend beside.
//! Both axes are computed here and drawn on linear coordinates, so that the ticks are ours: bytes in powers
//! of two below, ones, twos and fives on the left.

use std::ops::Range;
use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::BenchError;

/// A line of a picture.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// Size in bytes, and the value there. What cannot lie on the axes (not finite, not above 0) is left out.
    pub points: Vec<(f64, f64)>,
    /// Drawn with gaps: baselines, or what is emulated.
    pub dashed: bool,
}

/// How values lie on the left axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From 0 on.
    Linear,
    /// Equal factors, equal distances.
    Logarithmic,
}

/// Draws `series` over sizes in bytes (logarithmic) to the SVG file `path`, 900 x 600, with the legend beside.
/// Each line of `title` gets a line, the first in larger letters.
///
/// # Errors
///
/// [`BenchError::Write`] where nothing can be drawn, or the file cannot be written.
pub fn lines(
    path: &Path,
    title: &str,
    x_label: &str,
    y_label: &str,
    y_scale: Scale,
    series: &[Series],
) -> Result<(), BenchError> {
    let refused = |error: String| BenchError::Write { path: path.display().to_string(), error };
    let series: Vec<Series> = series.iter().map(Series::showable).collect();
    let (Some(x), Some(y)) = (Axis::of_sizes(&series), Axis::of_values(&series, y_scale)) else {
        return Err(refused("there is no point to draw".to_owned()));
    };
    let chart = Chart { labels: [x_label, y_label], x, y, y_scale, series };
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
    let drawn = chart.picture(&area, title);
    drop(area);
    drawn.map_err(|error| refused(error.to_string()))?;
    std::fs::write(path, svg).map_err(|error| refused(error.to_string()))
}

impl Series {
    /// The points that have a place on the axes, in the order of sizes.
    fn showable(&self) -> Self {
        let has_place = |value: f64| value.is_finite() && value > 0.0;
        let mut points = self.points.clone();
        points.retain(|&(x, y)| has_place(x) && has_place(y));
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Self { name: self.name.clone(), points, dashed: self.dashed }
    }
}

/// An axis with ticks of our own.
#[derive(Clone)]
struct Axis {
    /// In the coordinates that are drawn: logarithms where the scale is logarithmic.
    range: Range<f64>,
    ticks: Vec<f64>,
    text: fn(f64) -> String,
}

impl Axis {
    /// Sizes in bytes; `None` where there is no point.
    fn of_sizes(series: &[Series]) -> Option<Self> {
        let (min, max) = extremes(points(series).map(|point| point.0.log2()))?;
        let range = min - 0.3..max + 0.3;
        let powers = whole_numbers(&range);
        let step = powers.len().div_ceil(TICKS_MAX).max(1);
        Some(Self { range, ticks: powers.into_iter().step_by(step).collect(), text: bytes })
    }

    /// Values; `None` where there is no point.
    fn of_values(series: &[Series], scale: Scale) -> Option<Self> {
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

fn place(value: f64, scale: Scale) -> f64 {
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
fn linear_ticks(end: f64) -> Vec<f64> {
    let decade = 10_f64.powf((end / TICKS_WANTED).log10().floor());
    let enough = |step: &f64| end / step <= TICKS_WANTED;
    let step = [1.0, 2.0, 5.0].map(|digit| digit * decade).into_iter().find(enough).unwrap_or(10.0 * decade);
    let last = (end / step).floor();
    whole_numbers(&(0.0..last)).into_iter().map(|count| count * step).collect()
}

/// The logarithms of 1, 2 and 5 times powers of ten inside `range`; of the powers alone where these are enough.
fn logarithmic_ticks(range: &Range<f64>) -> Vec<f64> {
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
fn bytes(log2: f64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let shift = log2.round().clamp(0.0, 59.0) as usize;
    format!("{} {}", 1_u32 << (shift % 10), UNITS[shift / 10])
}

/// A value with as many decimals as its size asks for, and thousands set apart.
fn number(value: f64) -> String {
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

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

struct Chart<'a> {
    labels: [&'a str; 2],
    x: Axis,
    y: Axis,
    y_scale: Scale,
    series: Vec<Series>,
}

impl Chart<'_> {
    fn picture(&self, area: &Area<'_>, title: &str) -> Drawn {
        area.fill(&WHITE)?;
        let mut area = area.margin(10, 10, 10, 10);
        for (row, line) in title.lines().enumerate() {
            let style = (FONT, if row == 0 { 19 } else { 14 }).into_font().color(&TEXT);
            area = area.titled(line, style)?;
        }
        let (left, right) = area.split_horizontally(WIDTH - LEGEND_WIDTH);
        self.plot(&left)?;
        legend(&right.margin(20, 0, 10, 0), &self.series)?;
        area.present()?;
        Ok(())
    }

    fn plot(&self, area: &Area<'_>) -> Drawn {
        let mut builder = ChartBuilder::on(area);
        builder.margin_top(12).x_label_area_size(52).y_label_area_size(72);
        let mut chart = builder.build_cartesian_2d(self.x.clone(), self.y.clone())?;
        chart
            .configure_mesh()
            .x_desc(self.labels[0])
            .y_desc(self.labels[1])
            .label_style((FONT, 14).into_font().color(&TEXT))
            .axis_desc_style((FONT, 16).into_font().color(&TEXT))
            .bold_line_style(GRID)
            .axis_style(TEXT)
            .draw()?;
        for (index, line) in self.series.iter().enumerate() {
            let places = line.points.iter().map(|&(x, y)| (x.log2(), place(y, self.y_scale)));
            let style = colour(index).stroke_width(2);
            if line.dashed {
                chart.draw_series(DashedLineSeries::new(places.clone(), 6, 4, style))?;
            } else {
                chart.draw_series(LineSeries::new(places.clone(), style))?;
            }
            chart.draw_series(places.map(|place| mark(place, index, line.dashed)))?;
        }
        Ok(())
    }
}

/// A dot, hollow where the line is dashed.
fn mark<Coord>(place: Coord, index: usize, is_hollow: bool) -> Circle<Coord, i32> {
    let style = if is_hollow { colour(index).stroke_width(1) } else { colour(index).filled() };
    Circle::new(place, 4, style)
}

/// A sample of each line with its name, names longer than the column on several rows.
fn legend(area: &Area<'_>, series: &[Series]) -> Drawn {
    let mut y = 10;
    for (index, line) in series.iter().enumerate() {
        let style = colour(index).stroke_width(2);
        let sample = [(0, y), (30, y)];
        if line.dashed {
            area.draw(&DashedPathElement::new(sample, 6, 4, style))?;
        } else {
            area.draw(&PathElement::new(sample, style))?;
        }
        area.draw(&mark((15, y), index, line.dashed))?;
        for row in rows(&line.name, LEGEND_LETTERS) {
            let text = (FONT, 14).into_font().color(&TEXT).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(row, (38, y), text))?;
            y += 18;
        }
        y += 8;
    }
    Ok(())
}

/// Words in rows of at most `letters`, as far as single words allow.
fn rows(text: &str, letters: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match rows.last_mut() {
            Some(row) if row.chars().count() + word.chars().count() < letters => {
                row.push(' ');
                row.push_str(word);
            }
            _ => rows.push(word.to_owned()),
        }
    }
    rows
}

fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

const WIDTH: u32 = 900;
const HEIGHT: u32 = 600;
const LEGEND_WIDTH: u32 = 210;
/// What fits beside a sample in the legend at 14 points. Tried.
const LEGEND_LETTERS: usize = 23;
/// Labels on an axis that do not touch. Tried.
const TICKS_MAX: usize = 12;
/// Most steps of the linear left axis.
const TICKS_WANTED: f64 = 8.0;

const FONT: &str = "sans-serif";
const TEXT: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(222, 222, 222);
/// Told apart with every kind of colour vision (Okabe and Ito), grey instead of yellow, which is lost on white.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
    RGBColor(130, 130, 130),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, points: &[(f64, f64)]) -> Series {
        Series { name: name.to_owned(), points: points.to_vec(), dashed: false }
    }

    #[test]
    fn sizes_and_values_are_written_as_people_do() {
        assert_eq!([3.0, 10.0, 14.0, 20.0].map(bytes), ["8 B", "1 KiB", "16 KiB", "1 MiB"]);
        assert_eq!([0.05, 1.0, 250.0, 20_000.0, 2e6].map(number), ["0.05", "1", "250", "20 000", "2e6"]);
    }

    #[test]
    fn ticks_lie_inside_the_axis_and_are_neither_few_nor_many() {
        for end in [0.013, 0.9, 1.0, 7.3, 99.0, 1234.0] {
            let ticks = linear_ticks(end);
            assert!((4..=9).contains(&ticks.len()) && *ticks.last().unwrap() <= end, "{end}: {ticks:?}");
        }
        for range in [0.1..0.9, -2.0..1.0, 0.0..6.5] {
            let ticks = logarithmic_ticks(&range);
            assert!((2..=12).contains(&ticks.len()), "{range:?}: {ticks:?}");
            assert!(ticks.iter().all(|tick| range.contains(tick)), "{range:?}: {ticks:?}");
        }
    }

    #[test]
    fn a_picture_names_every_series_and_both_axes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let series = [line("one & two", &[(8.0, 1.0), (1024.0, 9.0)]), line("none", &[(8.0, f64::NAN)])];
        for scale in [Scale::Linear, Scale::Logarithmic] {
            lines(file.path(), "Title\nbelow", "size", "rate", scale, &series).unwrap();
            let svg = std::fs::read_to_string(file.path()).unwrap();
            for text in ["one &amp; two", "none", "Title", "below", "size", "rate", "8 B", "1 KiB", "</svg>"]
            {
                assert!(svg.contains(text), "{scale:?} without {text}");
            }
        }
    }

    #[test]
    fn nothing_to_draw_is_an_error_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty.svg");
        for points in [&[][..], &[(0.0, 1.0)], &[(8.0, f64::INFINITY)]] {
            lines(&path, "", "", "", Scale::Linear, &[line("x", points)]).unwrap_err();
        }
        assert!(!path.exists());
    }

    #[test]
    fn long_names_take_several_rows() {
        assert_eq!(rows("bare multi-buffer all cores", 20), ["bare multi-buffer", "all cores"]);
        assert_eq!(rows("unbreakableunbreakable x", 5), ["unbreakableunbreakable", "x"]);
    }
}
