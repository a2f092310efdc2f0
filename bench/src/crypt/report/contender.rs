//! What a contender took at a cell, as medians with bounds.

use std::fmt::Write as _;

use serde::Serialize;

use super::neighbours::BesideResult;
use crate::medians::Spread;

/// One contender at one cell.
#[derive(Debug, Serialize)]
pub struct ContenderResult {
    /// Who.
    pub contender: String,
    /// Whether an emulated module took part: then no figure here is a speed of Evener.
    pub emulated: bool,
    /// Rounds of all visits together.
    pub rounds: usize,
    /// Rounds of these that began while two workers shared a core: one of them began late.
    pub crowded_rounds: usize,
    /// What a round took.
    #[serde(flatten)]
    pub round: RoundTimes,
    /// What a request took, where they came one at a time.
    #[serde(flatten)]
    pub request: RequestTimes,
    /// Jobs of all rounds by worker and method.
    pub shares: Vec<(String, u64)>,
    /// How many times faster than each baseline, and the adaptive policy than each other one, from pairs within one run.
    pub faster_than: Vec<(String, Spread)>,
    /// What neighbours got meanwhile, and what the machine was busy for.
    pub beside: Option<BesideResult>,
}

/// What a round of a contender took.
#[derive(Debug, Serialize)]
pub struct RoundTimes {
    /// Time from the barrier to the end of the last job.
    pub milliseconds: Spread,
    /// Plaintext per time, in 10^6 bytes per second.
    pub megabytes_per_second: Spread,
    /// Core time, all threads together, where it was measured.
    pub core_milliseconds: Option<Spread>,
    /// Time by the paper's clock, creation and joining of threads included.
    pub paper_clock_milliseconds: Option<Spread>,
}

/// What a request of a contender took.
#[derive(Debug, Serialize)]
pub struct RequestTimes {
    /// Half of them no longer.
    pub request_microseconds: Option<Spread>,
    /// 99 of 100 no longer.
    pub request_p99_microseconds: Option<Spread>,
}

impl ContenderResult {
    /// Median time and rate, what it used of the cores, ratios with their bounds.
    pub(super) fn line(&self) -> String {
        let mut line = format!(
            "{:9.3} ms {:9.1} MB/s",
            self.round.milliseconds.median, self.round.megabytes_per_second.median
        );
        if let Some(core) = self.round.core_milliseconds {
            write!(line, "  core {:8.3} ms", core.median).ok();
        }
        if let Some(paper) = self.round.paper_clock_milliseconds {
            write!(line, "  paper's clock {:8.3} ms", paper.median).ok();
        }
        for (baseline, ratio) in &self.faster_than {
            write!(line, "  {:.2} [{:.2} {:.2}] x {baseline}", ratio.median, ratio.low, ratio.high).ok();
        }
        if let (Some(median), Some(p99)) =
            (self.request.request_microseconds, self.request.request_p99_microseconds)
        {
            write!(line, "  request {:.2} us, 99 of 100 {:.2} us", median.median, p99.median).ok();
        }
        if self.crowded_rounds > 0 {
            write!(
                line,
                "  ({} of {} rounds began with two workers on a core)",
                self.crowded_rounds, self.rounds
            )
            .ok();
        }
        if let Some(beside) = &self.beside {
            line += &beside.to_text();
        }
        if self.emulated {
            line.push_str("  (emulated)");
        }
        line
    }
}
