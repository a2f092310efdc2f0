//! A picture drawn: title, charts with mesh, lines and marks, legend beside.

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use evener::core::plan::Policy;

use super::axis::{Axis, place};
use super::{Panel, Scale, Series};

/// How large a picture is, in pixels, and how many charts lie in it.
#[derive(Clone, Copy)]
pub(super) struct Format {
    pub(super) width: u32,
    pub(super) height: u32,
    rows: usize,
    columns: usize,
    /// Labels below a chart that do not touch. Tried.
    pub(super) ticks_max: usize,
}

impl Format {
    pub(super) fn of(panels: usize) -> Self {
        if panels < 2 {
            return Self { width: 900, height: 600, rows: 1, columns: 1, ticks_max: 12 };
        }
        let rows = panels.div_ceil(2);
        let height = 70 + 290 * u32::try_from(rows).unwrap_or(u32::MAX / 1_000);
        Self { width: 1000, height, rows, columns: 2, ticks_max: 6 }
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

pub(super) struct Picture<'a> {
    pub(super) labels: [&'a str; 2],
    pub(super) format: Format,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) y_scale: Scale,
    pub(super) panels: Vec<Panel>,
}

impl Picture<'_> {
    pub(super) fn draw(&self, area: &Area<'_>, title: &str) -> Drawn {
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
        legend(&right.margin(20, 0, 10, 0), self.named())?;
        area.present()?;
        Ok(())
    }

    /// The series that the legend names.
    fn named(&self) -> &[Series] {
        self.panels.first().map_or(&[][..], |panel| &panel.series)
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
        for (line, colour) in series.iter().zip(colours(self.named())) {
            let places = line.points.iter().map(|&(x, y)| (x.log2(), place(y, self.y_scale)));
            let style = COLOURS[colour].stroke_width(2);
            if line.dashed {
                chart.draw_series(DashedLineSeries::new(places.clone(), 6, 4, style))?;
            } else {
                chart.draw_series(LineSeries::new(places.clone(), style))?;
            }
            chart.draw_series(places.map(|place| mark(place, colour, line.dashed)))?;
        }
        Ok(())
    }
}

/// A dot, hollow where the line is dashed.
fn mark<Coord>(place: Coord, colour: usize, is_hollow: bool) -> Circle<Coord, i32> {
    let style = if is_hollow { COLOURS[colour].stroke_width(1) } else { COLOURS[colour].filled() };
    Circle::new(place, 4, style)
}

/// A sample of each line with its name, names longer than the column on several rows.
fn legend(area: &Area<'_>, series: &[Series]) -> Drawn {
    let mut y = 10;
    for (line, colour) in series.iter().zip(colours(series)) {
        let style = COLOURS[colour].stroke_width(2);
        let sample = [(0, y), (30, y)];
        if line.dashed {
            area.draw(&DashedPathElement::new(sample, 6, 4, style))?;
        } else {
            area.draw(&PathElement::new(sample, style))?;
        }
        area.draw(&mark((15, y), colour, line.dashed))?;
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
pub(super) fn rows(text: &str, letters: usize) -> Vec<String> {
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

/// Places in [`COLOURS`]: a policy has the same in every picture, a bound is black, OpenSSL grey; the others take what is left, in their order.
pub(super) fn colours(series: &[Series]) -> Vec<usize> {
    let mut used: Vec<(usize, bool)> = Vec::new();
    let mut own: Vec<Option<usize>> = Vec::new();
    for line in series {
        // Two lines of one colour are told apart where one of them is dashed.
        let colour = colour_of(&line.name).filter(|colour| !used.contains(&(*colour, line.dashed)));
        used.extend(colour.map(|colour| (colour, line.dashed)));
        own.push(colour);
    }
    let mut free = (0..COLOURS.len()).filter(|colour| used.iter().all(|(taken, _)| taken != colour));
    own.iter()
        .enumerate()
        .map(|(at, own)| own.or_else(|| free.next()).unwrap_or(at % COLOURS.len()))
        .collect()
}

fn colour_of(name: &str) -> Option<usize> {
    let has = |word: &str| name.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word);
    let policy = Policy::ALL.iter().position(|policy| has(policy.name()));
    policy.or_else(|| has(BOUND).then_some(6)).or_else(|| has("openssl").then_some(7))
}

/// What the name of a line that nothing can be above holds.
pub(super) const BOUND: &str = "bound";

const LEGEND_WIDTH: u32 = 210;
/// What fits beside a sample in the legend at 14 points. Tried.
const LEGEND_LETTERS: usize = 23;

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
