//! What messages and requests of a cipher in use count as: in the process's statistics, and for the guard.
//!
//! Path of one message: updates add to `taken` -> the next init, or the end, takes off what went another way ([`CipherCtx::count_request`]) and
//! counts the rest ([`CipherCtx::end_message`]) -> many of them are shown together.

use evener::counts_file::Statistics;
use evener::offload;
use evener::regret::{Measurement, Way, regret};
use evener::split::Helpers;
use evener_core::counts::Count;

use super::context::CipherCtx;
use crate::config::Guard;
use crate::counters;

impl CipherCtx {
    pub(crate) fn statistics(&self) -> Option<&'static Statistics> {
        self.prov().statistics
    }

    /// Bytes of this message went the way `way`.
    pub(crate) fn count_request(&self, way: Count, bytes: usize) {
        self.hot.elsewhere.set(self.hot.elsewhere.get().saturating_add(bytes));
        counters::count_request(self.statistics(), self.row().kind, self.message.direction(), bytes, way);
    }

    /// So many requests of `bytes` together were left undone by an engine; those of which a result was wrong are shown, too.
    #[cold]
    pub(crate) fn count_redone(&self, number: u32, bytes: usize) {
        self.count_event(Count::Redone, number, bytes);
        if let (Some(statistics), wrong @ 1..) = (self.statistics(), offload::wrong_results()) {
            statistics.show_wrong_modules(wrong);
        }
    }

    /// Something happened to a request of `bytes`, so many times.
    pub(crate) fn count_event(&self, event: Count, number: u32, bytes: usize) {
        counters::count_event(
            self.statistics(),
            self.row().kind,
            self.message.direction(),
            bytes,
            (event, number),
        );
    }

    /// Begins a request of `bytes` that may go this way, for the guard; `None` where there is none.
    pub(crate) fn guard_turn(&self, way: Way, bytes: usize) -> Option<Measurement> {
        match self.prov().settings.guard {
            Guard::On => Some(regret()?.begin(way, self.row().kind, bytes)),
            Guard::Off => None,
        }
    }

    /// An update of `bytes` for which splitting was considered is done.
    pub(crate) fn finish_split(&self, call: evener::split::Call, bytes: usize) {
        let taken_back = call.helpers().map_or(0, Helpers::taken_back);
        self.count_event(Count::TakenBack, taken_back, bytes);
        self.count_event(Count::Locked, call.end().into(), bytes);
    }

    /// Another message follows: of this one is counted what went the inner way.
    pub(super) fn end_message(&mut self) {
        let bytes = self.hot.taken.saturating_sub(self.hot.elsewhere.take());
        self.hot.taken = 0;
        if bytes > 0 {
            // Where it is time to flush, the next init does.
            _ = self.hot.direct.record(bytes);
        }
    }

    /// Ends the message and shows what was counted; before another key or direction, and at the end.
    pub(crate) fn end_and_flush(&mut self) {
        if self.hot.is_tracked {
            self.end_message();
            self.flush();
        }
    }

    /// Shows requests that are no messages: calls that were counted one by one.
    pub(crate) fn flush_requests(&mut self) {
        if self.hot.is_tracked {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let (kind, direction) = (self.row().kind, self.message.direction());
        if let Some(statistics) = self.statistics().filter(|_| !self.hot.direct.is_empty()) {
            let way = self.row().inner_way(self.hot.inner);
            statistics.flush(kind, direction, way, &mut self.hot.direct);
        }
    }
}
