//! Figures of a round, from the log of its requests.

use evener_core::Nanos;

use super::board::{Entry, TICK_NS, Ticks, Usage};
use super::{Experiment, Mode};
use crate::medians::{Quantiles, jain_index};

/// What a round of processes did.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Figures {
    /// From the first request that was wanted to the last that was back, in seconds.
    pub wall_s: f64,
    /// Of all processes together: 10^6 bytes a second.
    pub mb_per_s: f64,
    /// Of a request, from wanted to back, in microseconds.
    pub p50_us: f64,
    /// The same.
    pub p99_us: f64,
    /// Switches to another process because one waited, for each 10^6 bytes.
    pub voluntary_per_mb: f64,
    /// Switches because its time was over, or another was to go first.
    pub involuntary_per_mb: f64,
    /// Core time, in milliseconds for each 10^6 bytes.
    pub core_ms_per_mb: f64,
    /// Jain's index of the requests that each process had back when half of all were: 1 where each had as many, one by their number where one had all.
    pub fairness: f64,
    /// Part of the units' time in which they worked on a request, from the first one until fewer processes are left than units; none where there never were more.
    pub busy: Option<f64>,
    /// Part of the requests for which this machine took longer than the core time that it was to emulate.
    pub late: f64,
    /// Grants that went before an earlier ticket; told where there is one permit, so that grants have an order.
    pub out_of_order: Option<usize>,
    /// Requests that waited for their permit under a ticket.
    #[serde(default)]
    pub waited: usize,
    /// Requests that were done.
    pub requests: usize,
    /// Results that were compared with what they should be.
    pub compared: usize,
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
impl Figures {
    /// Of the logs of all processes, each as long as the others; none where there is nothing.
    pub(super) fn of(
        experiment: &Experiment,
        mode: Mode,
        logs: &[Vec<Entry>],
        usages: &[Usage],
    ) -> Option<Self> {
        let all = || logs.iter().flatten();
        let count = all().count();
        let begun = all().map(|entry| entry.wanted).min()?;
        let ended = all().map(|entry| entry.back).max()?;
        let wall_s = seconds(ended - begun);
        let megabytes = (count * experiment.bytes) as f64 / 1e6;
        let times = all().map(|entry| Nanos(u64::from(entry.back.wrapping_sub(entry.wanted)) * TICK_NS));
        let times = Quantiles::of(times.collect())?;
        let sum = |of: fn(&Usage) -> u32| usages.iter().map(|usage| u64::from(of(usage))).sum::<u64>() as f64;
        Some(Self {
            wall_s,
            mb_per_s: megabytes / wall_s,
            p50_us: times.median.0 as f64 / 1e3,
            p99_us: times.p99.0 as f64 / 1e3,
            voluntary_per_mb: sum(|usage| usage.voluntary) / megabytes,
            involuntary_per_mb: sum(|usage| usage.involuntary) / megabytes,
            core_ms_per_mb: sum(|usage| usage.core_us) / 1e3 / megabytes,
            fairness: jain_index(&back_at_half(logs)),
            busy: busy(experiment.units, logs),
            late: sum(|usage| usage.late) / count as f64,
            out_of_order: (mode == Mode::Fifo && experiment.permits == 1).then(|| out_of_order(logs)),
            waited: all().filter(|entry| entry.ticket > 0).count(),
            requests: count,
            compared: usages.iter().map(|usage| usage.compared as usize).sum(),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn seconds(ticks: Ticks) -> f64 {
    (u64::from(ticks) * TICK_NS) as f64 / 1e9
}

/// Requests that each process had back when half of all were back.
fn back_at_half(logs: &[Vec<Entry>]) -> Vec<usize> {
    let mut times: Vec<Ticks> = logs.iter().flatten().map(|entry| entry.back).collect();
    times.sort_unstable();
    let half = times.get(times.len().saturating_sub(1) / 2).copied().unwrap_or_default();
    logs.iter().map(|log| log.iter().filter(|entry| entry.back <= half).count()).collect()
}

fn busy(units: usize, logs: &[Vec<Entry>]) -> Option<f64> {
    let mut ends: Vec<Ticks> = logs.iter().filter_map(|log| Some(log.last()?.back)).collect();
    ends.sort_unstable();
    let waits_until = *ends.get(logs.len().checked_sub(units + 1)?)?;
    let worked = || logs.iter().flatten().filter(|entry| entry.ends > entry.begins);
    let from = worked().map(|entry| entry.begins).min()?;
    let within = |entry: &Entry| u64::from(entry.ends.min(waits_until).saturating_sub(entry.begins));
    let work: u64 = worked().map(within).sum();
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let share = work as f64 / (units as u64 * u64::from(waits_until.checked_sub(from)?)) as f64;
    Some(share)
}

/// Of grants in the order in which they were made, those whose ticket is less than one before it. A request that did not wait has no ticket.
fn out_of_order(logs: &[Vec<Entry>]) -> usize {
    let mut grants: Vec<&Entry> = logs.iter().flatten().filter(|entry| entry.ticket > 0).collect();
    grants.sort_by_key(|entry| entry.before);
    let first = grants.first().map_or(0, |entry| entry.ticket);
    // Tickets wrap.
    let mut last = 0_u32;
    let mut count = 0;
    for grant in grants {
        let since = grant.ticket.wrapping_sub(first);
        count += usize::from(since < last);
        last = last.max(since);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(wanted: Ticks, begins: Ticks, ends: Ticks, back: Ticks) -> Entry {
        Entry { wanted, begins, ends, back, ..Entry::default() }
    }

    #[test]
    fn fairness_counts_what_each_had_when_half_was_done() {
        let one_first =
            [vec![entry(0, 0, 0, 10), entry(10, 0, 0, 20)], vec![entry(0, 0, 0, 30), entry(30, 0, 0, 40)]];
        assert_eq!(back_at_half(&one_first), [2, 0]);
        let in_turns =
            [vec![entry(0, 0, 0, 10), entry(10, 0, 0, 30)], vec![entry(0, 0, 0, 20), entry(20, 0, 0, 40)]];
        assert_eq!(back_at_half(&in_turns), [1, 1]);
    }

    #[test]
    fn units_are_busy_for_the_part_of_their_time_in_which_they_work_while_others_wait() {
        // One unit, two processes: work of 10 and of 10 after a gap of 5, while the second still has something to do.
        let logs = [vec![entry(0, 0, 10, 10)], vec![entry(0, 15, 25, 25), entry(25, 25, 35, 35)]];
        let share = busy(1, &logs[..]).unwrap();
        assert!((share - 1.0).abs() < 1e-9, "until the first has ended there is no gap: {share}");
        let logs = [vec![entry(0, 0, 10, 10), entry(10, 15, 25, 25)], vec![entry(0, 30, 40, 40)]];
        let share = busy(1, &logs[..]).unwrap();
        assert!((share - 0.8).abs() < 1e-9, "{share}");
        assert_eq!(busy(2, &logs[..]), None, "nobody waits");
    }

    #[test]
    fn a_grant_before_an_earlier_ticket_is_counted() {
        let grant = |ticket, before| Entry { ticket, before, ..Entry::default() };
        let right = [vec![grant(3, 0), grant(5, 2)], vec![grant(4, 1), grant(0, 7)]];
        assert_eq!(out_of_order(&right), 0);
        let barged = [vec![grant(3, 0), grant(5, 1)], vec![grant(4, 2), grant(6, 3)]];
        assert_eq!(out_of_order(&barged), 1);
        let wraps = [vec![grant(u32::MAX, 0), grant(2, 2)], vec![grant(1, 1)]];
        assert_eq!(out_of_order(&wraps), 0);
    }
}
