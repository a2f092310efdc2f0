//! What neighbours got, visit by visit, as medians with bounds.

use std::fmt::Write as _;

use evener_core::Nanos;
use serde::Serialize;

use crate::crypt::contender::Visit;
use crate::crypt::neighbours::NeighbourReport;
use crate::medians::{Quantiles, Spread};

/// What neighbours got beside a contender, or while none worked.
#[derive(Debug, Serialize)]
pub struct BesideResult {
    /// Cores of the machine that were not idle, for whatever reason.
    pub busy_cores: Option<Spread>,
    /// The same as time for a round, in milliseconds.
    pub busy_milliseconds: Option<Spread>,
    /// What the hog got.
    #[serde(flatten)]
    pub hog: HogResult,
    /// How late the probe woke.
    #[serde(flatten)]
    pub probe: ProbeResult,
}

/// What the hog got.
#[derive(Debug, Serialize)]
pub struct HogResult {
    /// Part of a core that it had, by its clock.
    pub hog_share: Option<Spread>,
    /// Work that it did per time over what it does while no contender works, in the same run.
    pub hog_speed: Option<Spread>,
}

/// How late the probe woke.
#[derive(Debug, Serialize)]
pub struct ProbeResult {
    /// Half of its alarms no later.
    pub late_microseconds: Option<Spread>,
    /// 99 of 100 no later.
    pub late_p99_microseconds: Option<Spread>,
    /// The latest of a visit.
    pub late_max_microseconds: Option<Spread>,
}

impl BesideResult {
    /// Of the visits of a contender, beside what neighbours got `alone` in the same runs; `None` where there were none.
    pub(crate) fn of(visits: &[Visit], alone: &[NeighbourReport]) -> Option<Self> {
        let pairs: Vec<(&NeighbourReport, &NeighbourReport)> =
            visits.iter().filter_map(|visit| visit.beside.as_ref()).zip(alone).collect();
        let rounds =
            |visit: &Visit| Some(visit.beside?.busy?.as_secs_f64() * 1e3 / count(visit.rounds.len()));
        let all: Vec<NeighbourReport> = pairs.iter().map(|(got, _)| **got).collect();
        let hog_speed = spread(pairs.iter().map(|(got, alone)| Some(speed(got)? / speed(alone)?)));
        let alone = Self::alone(&all)?;
        let hog = HogResult { hog_speed, ..alone.hog };
        Some(Self { hog, busy_milliseconds: spread(visits.iter().map(rounds)), ..alone })
    }

    /// Of looks at neighbours that had the machine to themselves; `None` where there were none.
    pub(crate) fn alone(looks: &[NeighbourReport]) -> Option<Self> {
        let wall = |got: &NeighbourReport| got.wall.as_secs_f64();
        let late = |of: fn(Quantiles) -> Nanos| {
            spread(looks.iter().map(|got| Some(of(got.late?).as_secs_f64() * 1e6)))
        };
        let share = |got: &NeighbourReport| (got.units > 0).then(|| got.core.as_secs_f64() / wall(got));
        (!looks.is_empty()).then(|| Self {
            busy_cores: spread(looks.iter().map(|got| Some(got.busy?.as_secs_f64() / wall(got)))),
            busy_milliseconds: None,
            hog: HogResult { hog_share: spread(looks.iter().map(share)), hog_speed: None },
            probe: ProbeResult {
                late_microseconds: late(|late| late.median),
                late_p99_microseconds: late(|late| late.p99),
                late_max_microseconds: late(|late| late.max),
            },
        })
    }

    /// The medians for people, each behind two spaces.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        let mut add = |before: &str, value: Option<Spread>, scale: f64, decimals: usize, after: &str| {
            if let Some(spread) = value {
                write!(text, "{before}{:.decimals$}{after}", spread.median * scale).ok();
            }
        };
        add("  busy ", self.busy_cores, 1.0, 2, " cores");
        add(", ", self.busy_milliseconds, 1.0, 3, " ms a round");
        add("  hog ", self.hog.hog_share, 100.0, 1, " % of a core");
        add(", ", self.hog.hog_speed, 100.0, 1, " % of its speed");
        add("  woken late ", self.probe.late_microseconds, 1.0, 0, " us");
        add(", 99 of 100 ", self.probe.late_p99_microseconds, 1.0, 0, "");
        add(", all ", self.probe.late_max_microseconds, 1.0, 0, " us");
        text
    }
}

/// Units of work per second; `None` without a hog.
fn speed(got: &NeighbourReport) -> Option<f64> {
    (got.units > 0).then(|| count(got.units) / got.wall.as_secs_f64())
}

fn spread(values: impl Iterator<Item = Option<f64>>) -> Option<Spread> {
    Spread::of(&values.flatten().collect::<Vec<_>>())
}

#[expect(clippy::cast_precision_loss, reason = "below 2^53")]
fn count(number: impl TryInto<u64>) -> f64 {
    number.try_into().unwrap_or(u64::MAX) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn got(wall_ms: u64, core_ms: u64, units: u64) -> NeighbourReport {
        let (wall, core) = (Nanos::from_millis(wall_ms), Nanos::from_millis(core_ms));
        NeighbourReport {
            wall,
            core,
            units,
            busy: Some(core),
            late: Quantiles::of(vec![Nanos::from_micros(wall_ms)]),
        }
    }

    fn visit(beside: NeighbourReport, rounds: usize) -> Visit {
        Visit { rounds: vec![Nanos(1); rounds], beside: Some(beside), ..Visit::default() }
    }

    #[test]
    fn speed_is_work_per_time_over_that_of_the_same_run_and_share_is_by_the_clock() {
        // Half of the time, and in it a quarter of the work: interrupts were charged to the hog.
        let visits = [visit(got(200, 100, 500), 4), visit(got(100, 50, 250), 2)];
        let result = BesideResult::of(&visits, &[got(100, 100, 1_000), got(100, 100, 2_000)]).unwrap();
        let value = |spread: Option<Spread>| spread.map(|spread| (spread.min, spread.max)).unwrap();
        assert_eq!(value(result.hog.hog_share), (0.5, 0.5));
        assert_eq!(value(result.hog.hog_speed), (0.125, 0.25));
        assert_eq!(value(result.busy_cores), (0.5, 0.5));
        assert_eq!(value(result.busy_milliseconds), (25.0, 25.0));
        assert_eq!(value(result.probe.late_max_microseconds), (100.0, 200.0));
        let text = result.to_text();
        assert!(text.contains("hog 50.0 % of a core, 18.8 % of its speed"), "{text}");
    }

    #[test]
    fn without_neighbours_nothing_is_told_of_them() {
        assert!(BesideResult::of(&[Visit::default()], &[]).is_none());
        let nobody = BesideResult::alone(&[NeighbourReport { late: None, ..got(100, 0, 0) }]).unwrap();
        assert!(nobody.hog.hog_share.is_none() && nobody.probe.late_microseconds.is_none());
    }
}
