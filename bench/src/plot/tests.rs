//! Axes, numbers and pictures: what stands on a picture, and where.

use super::axis::{bytes, linear_ticks, logarithmic_ticks, number};
use super::picture::{colours, rows};
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
fn counts_stand_below_a_picture_as_they_are() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let series = [line("one", &[(1.0, 1.0), (64.0, 2.0), (1500.0, 3.0)])];
    lines_over_counts(file.path(), "Title", ["processes", "rate"], Scale::Linear, &series).unwrap();
    let svg = std::fs::read_to_string(file.path()).unwrap();
    assert!(
        svg.contains("1024") && svg.contains("64") && !svg.contains("KiB") && !svg.contains("1 B"),
        "{svg}"
    );
}

#[test]
fn a_picture_names_every_series_and_both_axes() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let series = [line("one & two", &[(8.0, 1.0), (1024.0, 9.0)]), line("none", &[(8.0, f64::NAN)])];
    for scale in [Scale::Linear, Scale::Logarithmic] {
        lines(file.path(), "Title\nbelow", "size", "rate", scale, &series).unwrap();
        let svg = std::fs::read_to_string(file.path()).unwrap();
        for text in ["one &amp; two", "none", "Title", "below", "size", "rate", "8 B", "1 KiB", "</svg>"] {
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

#[test]
fn a_policy_has_the_same_colour_in_every_picture_and_no_two_lines_look_alike() {
    let of = |lines: &[(&str, bool)]| {
        let series = lines.iter().map(|&(name, dashed)| Series { dashed, ..line(name, &[]) });
        colours(&series.collect::<Vec<_>>())
    };
    let methods = of(&[("openssl, 1 core", true), ("openssl, 2 cores", true), ("evener adaptive", false)]);
    let policies =
        of(&[("cpu_only, emulated", false), ("adaptive, emulated", false), ("bound: costs", true)]);
    assert_eq!(methods[2], policies[1]);
    assert!(methods[0] != methods[1] && policies[0] != policies[1] && policies[2] != policies[1]);
    let dashed_too =
        of(&[("guest, adaptive", false), ("paper, adaptive", true), ("adaptive for cpu", false)]);
    assert!(dashed_too[0] == dashed_too[1] && dashed_too[2] != dashed_too[0], "{dashed_too:?}");
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
