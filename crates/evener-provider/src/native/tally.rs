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
    /// Whether they are the inner cipher's, which works in the kernel's place.
    is_direct: bool,
    /// Whether they are counted by the ways before the kernel.
    is_hidden: bool,
    /// Bytes of text of this message, which is counted when it is over.
    taken: usize,
    /// Messages that are over and not in the process's counts yet.
    uncounted: u32,
    counter: LocalCounter,
}

impl Tally {
    pub(super) fn of(row: &CipherRow) -> Self {
        Self { is_hidden: row.is_beneath, ..Self::default() }
    }

    /// Makes what counts are shown in: not with the first count, which many messages may precede.
    pub(super) fn prepare(&self, row: &CipherRow) {
        self.statistics(row).into_iter().for_each(Statistics::prepare);
    }

    /// From here on messages are the inner cipher's, or the kernel's.
    pub(super) fn set_direct(&mut self, row: &CipherRow, encrypts: bool, is_direct: bool) {
        if self.is_direct != is_direct {
            self.flush(row, encrypts);
            self.is_direct = is_direct;
        }
    }

    /// From here on messages are counted by the ways before the kernel, or here.
    pub(super) fn set_hidden(&mut self, row: &CipherRow, encrypts: bool, is_hidden: bool) {
        if self.is_hidden != is_hidden {
            self.flush(row, encrypts);
            self.is_hidden = is_hidden;
        }
    }

    /// What it has is not counted again in a copy.
    pub(super) fn forget(&mut self) {
        *self = Self { is_direct: self.is_direct, is_hidden: self.is_hidden, ..Self::default() };
    }

    /// The text of the message under way, which is counted elsewhere from here on.
    pub(super) fn give_up(&mut self) -> usize {
        std::mem::take(&mut self.taken)
    }

    /// More text of this message.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) {
        self.taken = self.taken.wrapping_add(bytes);
    }

    /// Text of this message so far, in bytes.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// Of the text that is taken next so much is counted elsewhere.
    pub(super) fn went_elsewhere(&mut self, bytes: usize) {
        self.taken = self.taken.wrapping_sub(bytes);
    }

    /// The message is over.
    #[inline]
    pub(super) fn end_message(&mut self, row: &CipherRow, encrypts: bool) {
        let bytes = std::mem::take(&mut self.taken);
        self.record(row, encrypts, bytes);
    }

    /// A call that is a request of its own is over, before which the message had so many bytes.
    pub(super) fn end_call(&mut self, row: &CipherRow, encrypts: bool, before: usize, bytes: usize) {
        let elsewhere = before.wrapping_sub(std::mem::replace(&mut self.taken, before));
        self.record(row, encrypts, bytes.saturating_sub(elsewhere));
    }

    #[inline]
    fn record(&mut self, row: &CipherRow, encrypts: bool, bytes: usize) {
        if bytes > 0 {
            let is_due = self.counter.record(bytes);
            self.uncounted += u32::from(!self.is_direct);
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
        let way = if self.is_direct { Count::Direct } else { Count::Kernel };
        match self.statistics(row).filter(|_| !self.counter.is_empty()) {
            Some(statistics) => statistics.flush(row.kind, direction, way, &mut self.counter),
            None => self.counter = LocalCounter::default(),
        }
    }

    /// Where a row's messages are shown, unless the ways before it do.
    fn statistics(&self, row: &CipherRow) -> Option<&'static Statistics> {
        prov(row).statistics.filter(|_| !self.is_hidden)
    }
}
