//! Pending samples: results of a module that the adaptive policy has not got yet.
//!
//! On the only core whatever is done about a result keeps the next request from the module: a look at a thread's clock is a system
//! call, and recording takes four locks. Where nothing is about to be decided, some results are recorded together:
//! `result -> [`PendingSamples::add`] -> [`PendingSamples::is_due`] -> [`PendingSamples::take`] -> each part to the policy`.

use std::ops::AddAssign;

use evener_core::{Class, Nanos};

use crate::adaptive::Circumstances;

/// Results that are recorded together: some 15 ms of them where turns are taken. With 8, recording and claiming took some 2 % of the core in the guest of
/// docs/design/testbed.md.
const GROUPED_MAX: u64 = 64;

/// Results that came about alike, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleGroup {
    pub(crate) origin: Origin,
    pub(crate) jobs: u64,
    pub(crate) bytes: u64,
    pub(crate) time: GroupTime,
}

/// How results came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) class: Class,
    /// Requests that the module held with them.
    pub(crate) held: u64,
    pub(crate) circumstances: Circumstances,
}

/// What results took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupTime {
    /// Time since the results before them.
    pub(crate) passed: Nanos,
    /// Of that, time in which the worker did something else.
    pub(crate) excluded: Nanos,
    /// What no clock shows of them.
    pub(crate) overhead: Nanos,
}

impl AddAssign for GroupTime {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.excluded += other.excluded;
        self.overhead += other.overhead;
    }
}

/// Results that are not recorded yet, in their order.
#[derive(Default)]
pub(crate) struct PendingSamples(Vec<SampleGroup>);

impl PendingSamples {
    /// Results have come.
    pub(crate) fn add(&mut self, part: SampleGroup) {
        match self.0.last_mut().filter(|last| last.origin == part.origin) {
            Some(last) => {
                last.jobs += part.jobs;
                last.bytes += part.bytes;
                last.time += part.time;
            }
            None => self.0.push(part),
        }
    }

    /// Whether it is time to record, where it may wait at all: for results of a module that was alone.
    pub(crate) fn is_due(&self) -> bool {
        let last = self.0.last().map(|last| last.origin.circumstances);
        let is_alone = last.is_some_and(|last| last.is_alone && !last.opened_key);
        !is_alone || self.jobs() >= GROUPED_MAX || cfg!(mutant = "told_one_by_one")
    }

    /// Jobs of all parts.
    pub(crate) fn jobs(&self) -> u64 {
        self.0.iter().map(|part| part.jobs).sum()
    }

    /// All groups, which are recorded now.
    pub(crate) fn take(&mut self) -> Vec<SampleGroup> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evener_core::{Algorithm, Direction};

    fn part(bytes: usize, is_alone: bool) -> SampleGroup {
        let class = Class::of(Algorithm::Aes128Cbc, Direction::Encrypt, bytes, true);
        let [passed, overhead] = [300, 100].map(Nanos::from_micros);
        SampleGroup {
            origin: Origin { class, held: 2, circumstances: Circumstances { opened_key: false, is_alone } },
            jobs: 1,
            bytes: bytes as u64,
            time: GroupTime { passed, excluded: Nanos::ZERO, overhead },
        }
    }

    #[test]
    fn many_results_of_a_module_that_works_by_itself_are_recorded_together_and_nothing_is_lost() {
        let mut pending = PendingSamples::default();
        let until_due = (1..).find(|_| {
            pending.add(part(16_384, true));
            pending.is_due()
        });
        assert_eq!(until_due, Some(GROUPED_MAX));
        let [passed, overhead] = [300 * GROUPED_MAX, 100 * GROUPED_MAX].map(Nanos::from_micros);
        let all = SampleGroup {
            jobs: GROUPED_MAX,
            bytes: GROUPED_MAX * 16_384,
            time: GroupTime { passed, excluded: Nanos::ZERO, overhead },
            ..part(16_384, true)
        };
        assert_eq!(pending.take(), [all]);
        assert_eq!(pending.jobs(), 0);
    }

    #[test]
    fn a_result_that_came_about_otherwise_is_recorded_at_once_and_in_a_group_of_its_own() {
        let mut pending = PendingSamples::default();
        pending.add(part(16_384, true));
        pending.add(part(4_096, true));
        assert!(!pending.is_due());
        pending.add(part(4_096, false));
        assert!(pending.is_due(), "a core worked beside it");
        assert_eq!(pending.take().len(), 3);
        let circumstances = Circumstances { opened_key: true, is_alone: true };
        let part = part(4_096, true);
        pending.add(SampleGroup { origin: Origin { circumstances, ..part.origin }, ..part });
        assert!(pending.is_due(), "a key was opened");
    }
}
