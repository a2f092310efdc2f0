//! Pictures of rates and times over sizes, as SVG.
//!
//! Steps of a picture: points that can be shown -> bounds -> ticks -> mesh, lines, marks -> legend beside.
//! Several panels have axes and legend in common.
//! A policy has the same colour in every picture.
//! Both axes are computed (`axis.rs`) and drawn (`picture.rs`) on linear coordinates, so that the ticks are ours: bytes in powers
//! of two below, ones, twos and fives on the left.

mod axis;
mod picture;

use std::path::Path;

use plotters::prelude::*;

use self::axis::Axis;
use self::picture::{Format, Picture};
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
    picture(path, title, [x_label, y_label], y_scale, &[Panel::unnamed(series)], Axis::of_sizes)
}

/// Draws a picture of one panel over counts (logarithmic); else as [`lines`].
///
/// # Errors
///
/// As of [`lines`].
pub fn lines_over_counts(
    path: &Path,
    title: &str,
    labels: [&str; 2],
    y_scale: Scale,
    series: &[Series],
) -> Result<(), BenchError> {
    picture(path, title, labels, y_scale, &[Panel::unnamed(series)], Axis::of_counts)
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
    picture(path, title, [x_label, y_label], y_scale, panels, Axis::of_sizes)
}

fn picture(
    path: &Path,
    title: &str,
    labels: [&str; 2],
    y_scale: Scale,
    panels: &[Panel],
    x_axis: fn(&[Series], usize) -> Option<Axis>,
) -> Result<(), BenchError> {
    let refused = |error: String| BenchError::Write { path: path.display().to_string(), error };
    let panels: Vec<Panel> = panels.iter().map(Panel::showable).collect();
    let format = Format::of(panels.len());
    let all: Vec<Series> = panels.iter().flat_map(|panel| panel.series.clone()).collect();
    let (Some(x), Some(y)) = (x_axis(&all, format.ticks_max), Axis::of_values(&all, y_scale)) else {
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

impl Panel {
    fn unnamed(series: &[Series]) -> Self {
        Self { name: String::new(), series: series.to_vec() }
    }

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

#[cfg(test)]
mod tests;
