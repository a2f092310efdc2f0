//! What a context of ours has done, shown now and then: in the process's counts and in the statistics.

use std::sync::atomic::Ordering::Relaxed;

use evener::statistics::{LocalCounter, Statistics};
use evener_core::Direction;
use evener_core::counts::Count;

use super::prov;
use crate::state::rows::CipherRow;

/// Messages and bytes of one context and one direction.
#[derive(Default)]
pub(super) struct Tally {
    /// Bytes of text of this message, which is counted when it is over.
    taken: usize,
    /// Messages that are over and not in the process's counts yet.
    uncounted: u32,
    counter: LocalCounter,
}

impl Tally {
    /// Makes what counts are shown in: not with the first count, which many messages may precede.
    pub(super) fn prepare(row: &CipherRow) {
        statistics(row).into_iter().for_each(Statistics::prepare);
    }

    /// More text of this message.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) {
        self.taken = self.taken.wrapping_add(bytes);
    }

    /// Of the text that is taken next so much is counted elsewhere.
    pub(super) fn went_elsewhere(&mut self, bytes: usize) {
        self.taken = self.taken.wrapping_sub(bytes);
    }

    /// The message is over.
    #[inline]
    pub(super) fn end_message(&mut self, row: &CipherRow, encrypts: bool) {
        if self.taken > 0 {
            let is_due = self.counter.record(self.taken);
            (self.taken, self.uncounted) = (0, self.uncounted + 1);
            if is_due {
                self.show(row, encrypts);
            }
        }
    }

    /// The message is over, and all is shown: before another direction, and at the end.
    pub(super) fn flush(&mut self, row: &CipherRow, encrypts: bool) {
        self.end_message(row, encrypts);
        self.show(row, encrypts);
    }

    fn show(&mut self, row: &CipherRow, encrypts: bool) {
        let prov = prov(row);
        prov.counts.native.fetch_add(std::mem::take(&mut self.uncounted), Relaxed);
        let direction = if encrypts { Direction::Encrypt } else { Direction::Decrypt };
        match statistics(row).filter(|_| !self.counter.is_empty()) {
            Some(statistics) => statistics.flush(row.kind, direction, Count::Kernel, &mut self.counter),
            None => self.counter = LocalCounter::default(),
        }
    }
}

/// Where a row's messages are shown, unless the ways before it do.
fn statistics(row: &CipherRow) -> Option<&'static Statistics> {
    prov(row).statistics.filter(|_| !row.is_beneath)
}
