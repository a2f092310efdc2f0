//! Pictures of rates and times over sizes, as SVG.
//!
//! Steps of a picture: points that can be shown -> bounds -> ticks -> mesh, lines, marks -> legend beside.
//! Several panels have axes and legend in common.
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

use crate::error::BenchError;

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

/// One of several charts in a picture.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What stands above it; nothing where it is empty.
    pub name: String,
    /// Its lines: in every panel the same names in the same order, for the legend is the first panel's.
    pub series: Vec<Series>,
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
    let panel = Panel { name: String::new(), series: series.to_vec() };
    picture(path, title, [x_label, y_label], y_scale, &[panel])
}

/// Draws `panels`, two beside each other, 1000 wide and 290 high for each two, with axes and a legend that are the
/// same for all; else as [`lines`].
///
/// # Errors
///
/// As of [`lines`].
pub fn panels(
    path: &Path,
    title: &str,
    x_label: &str,
    y_label: &str,
    y_scale: Scale,
    panels: &[Panel],
) -> Result<(), BenchError> {
    picture(path, title, [x_label, y_label], y_scale, panels)
}

fn picture(
    path: &Path,
    title: &str,
    labels: [&str; 2],
    y_scale: Scale,
    panels: &[Panel],
) -> Result<(), BenchError> {
    let refused = |error: String| BenchError::Write { path: path.display().to_string(), error };
    let panels: Vec<Panel> = panels.iter().map(Panel::showable).collect();
    let format = Format::of(panels.len());
    let all: Vec<Series> = panels.iter().flat_map(|panel| panel.series.clone()).collect();
    let (Some(x), Some(y)) = (Axis::of_sizes(&all, format.ticks_max), Axis::of_values(&all, y_scale)) else {
        return Err(refused("there is no point to draw".to_owned()));
    };
    let picture = Picture { labels, format, x, y, y_scale, panels };
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (format.width, format.height)).into_drawing_area();
    let drawn = picture.draw(&area, title);
    drop(area);
    drawn.map_err(|error| refused(error.to_string()))?;
    std::fs::write(path, svg).map_err(|error| refused(error.to_string()))
}

/// How large a picture is, in pixels, and how many charts lie in it.
#[derive(Clone, Copy)]
struct Format {
    width: u32,
    height: u32,
    rows: usize,
    columns: usize,
    /// Labels below a chart that do not touch. Tried.
    ticks_max: usize,
}

impl Format {
    fn of(panels: usize) -> Self {
        if panels < 2 {
            return Self { width: 900, height: 600, rows: 1, columns: 1, ticks_max: 12 };
        }
        let rows = panels.div_ceil(2);
        let height = 70 + 290 * u32::try_from(rows).unwrap_or(u32::MAX / 1_000);
        Self { width: 1000, height, rows, columns: 2, ticks_max: 6 }
    }
}

impl Panel {
    fn showable(&self) -> Self {
        let series = self.series.iter().map(Series::showable).collect();
        Self { name: self.name.clone(), series }
    }
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
    fn of_sizes(series: &[Series], ticks_max: usize) -> Option<Self> {
        let (min, max) = extremes(points(series).map(|point| point.0.log2()))?;
        let range = min - 0.3..max + 0.3;
        let powers = whole_numbers(&range);
        let step = powers.len().div_ceil(ticks_max).max(1);
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

struct Picture<'a> {
    labels: [&'a str; 2],
    format: Format,
    x: Axis,
    y: Axis,
    y_scale: Scale,
    panels: Vec<Panel>,
}

impl Picture<'_> {
    fn draw(&self, area: &Area<'_>, title: &str) -> Drawn {
        let Format { width, rows, columns, .. } = self.format;
        area.fill(&WHITE)?;
        let mut area = area.margin(10, 10, 10, 10);
        for (row, line) in title.lines().enumerate() {
            let style = (FONT, if row == 0 { 19 } else { 14 }).into_font().color(&TEXT);
            area = area.titled(line, style)?;
        }
        let (left, right) = area.split_horizontally(width - LEGEND_WIDTH);
        for (panel, place) in self.panels.iter().zip(left.split_evenly((rows, columns))) {
            let name = (FONT, 14).into_font().color(&TEXT);
            let place = match panel.name.as_str() {
                "" => place,
                text => place.margin(4, 8, 0, 16).titled(text, name)?,
            };
            self.plot(&place, &panel.series)?;
        }
        let named = self.panels.first().map_or(&[][..], |panel| &panel.series);
        legend(&right.margin(20, 0, 10, 0), named)?;
        area.present()?;
        Ok(())
    }

    fn plot(&self, area: &Area<'_>, series: &[Series]) -> Drawn {
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
        for (index, line) in series.iter().enumerate() {
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

const LEGEND_WIDTH: u32 = 210;
/// What fits beside a sample in the legend at 14 points. Tried.
const LEGEND_LETTERS: usize = 23;
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
    fn panels_are_named_and_share_axes_and_legend() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let panel = |name: &str, value| Panel {
            name: name.to_owned(),
            series: vec![line("one", &[(16.0, value)]), line("two", &[(16384.0, 20.0)])],
        };
        let all = [panel("left", 10.0), panel("right", 1000.0), panel("below", 50.0)];
        panels(file.path(), "Title", "size", "delay", Scale::Logarithmic, &all).unwrap();
        let svg = std::fs::read_to_string(file.path()).unwrap();
        let times = |text: &str| svg.lines().filter(|line| *line == text).count();
        assert_eq!(["left", "right", "below", "one", "two", "Title"].map(times), [1; 6]);
        assert_eq!(["size", "delay", "16 B", "16 KiB", "10", "1000"].map(times), [3; 6]);
        // Points of the same size lie above each other by panel: 10 at the foot of its own, 1000 at the head.
        let places: Vec<(u32, u32)> = svg.lines().filter_map(circle).collect();
        assert_eq!(places.len(), 3 * 2 + 2, "{places:?}");
        assert!(places[0].0 < places[2].0 && places[0].1 > places[2].1, "{places:?}");
        assert!(places[4].0 == places[0].0 && places[4].1 > places[0].1, "{places:?}");
    }

    /// The place of a mark.
    fn circle(line: &str) -> Option<(u32, u32)> {
        let value = |name: &str| line.split_once(name)?.1.split('"').next()?.parse().ok();
        line.starts_with("<circle").then_some(())?;
        Some((value("cx=\"")?, value("cy=\"")?))
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
