//! The engine that was chosen for an update, and what is recorded of it in the guard afterwards.

use evener::offload::policy::{Concurrency, Measurement};
use evener_core::{Job, Nanos};

use super::{BlockBatch, BlockError, Engine, Fallback};

/// What the guard and the policy say about the update under way.
pub(crate) struct ModuleChoice {
    /// `None` where no guard judges.
    pub(crate) turn: Option<Measurement>,
    /// The engine that is to do it.
    pub(crate) engine: Option<&'static dyn Engine>,
    /// Its own core time before.
    pub(crate) core: Nanos,
    pub(crate) concurrency: Concurrency,
}

impl ModuleChoice {
    /// Whether the update is to stay on the direct path.
    pub(crate) fn stays(&self) -> bool {
        self.engine.is_none()
    }

    /// Has the engine do many jobs at once; `None` where they are to stay.
    pub(crate) fn run_batch(
        &self,
        jobs: &mut [Box<Job<'_>>],
        fallback: Fallback<'_>,
    ) -> Option<Result<(), BlockError>> {
        let turn = self.turn.as_ref();
        self.engine.map(|engine| engine.run_batch(&mut BlockBatch { jobs, fallback, turn }))
    }

    /// It is done. Whether its class was locked for what it took.
    pub(crate) fn end(self) -> bool {
        let Some(turn) = self.turn else { return false };
        turn.end(|| self.engine.map_or(Nanos::ZERO, |engine| engine.core_time() - self.core))
    }
}
