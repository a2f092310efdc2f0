//! The limit on core time: what threads spend is charged, and a thread that has spent too much sleeps.

use std::sync::PoisonError;
use std::thread;

use evener_core::Nanos;

use super::Shared;

/// What of a thread's core time was charged to the budget. A thread that comes from elsewhere begins with nothing.
#[derive(Default)]
pub(crate) struct CoreTimeMeter {
    charged: Option<Nanos>,
}

impl Shared<'_> {
    /// Charges the core time of this thread since the last call, and sleeps until the budget lets it go on.
    pub(crate) fn wait_for_budget(&self, meter: &mut CoreTimeMeter) {
        while let Err(wait) = self.charge(meter) {
            if self.cancel.is_cancelled() || self.backlog.is_broken() {
                return;
            }
            thread::sleep(wait.into());
        }
    }

    /// Charges the core time of this thread since the last call.
    ///
    /// # Errors
    ///
    /// How long to wait before the thread may go on.
    pub(crate) fn charge(&self, meter: &mut CoreTimeMeter) -> Result<(), Nanos> {
        let Some(budget) = &self.budget else { return Ok(()) };
        let core = self.clock.thread_time();
        let mut budget = budget.lock().unwrap_or_else(PoisonError::into_inner);
        budget.spent(core - meter.charged.replace(core).unwrap_or(core));
        budget.may_spend(self.clock.now()).map(drop)
    }
}
