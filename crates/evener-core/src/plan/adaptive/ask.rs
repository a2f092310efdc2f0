//! What else the live system asks the table: its size, and the times that it counts with.

use super::Table;
use crate::units::Nanos;

impl Table {
    /// Lanes that it was made for: numbers below this.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.rows.len()
    }

    /// Modules that it was made for.
    #[must_use]
    pub fn modules(&self) -> usize {
        self.stations.len()
    }

    /// The price of a core to a single request, which counts when it ends and what it takes of a core.
    #[must_use]
    pub const fn price_of_one(&self) -> f64 {
        self.price_of_one
    }

    /// Time that a job of a lane takes, on a core or on module `module`; nothing where that is not known.
    #[must_use]
    pub fn expected(&self, lane: usize, module: Option<usize>) -> Nanos {
        let Some(row) = self.rows.get(lane) else { return Nanos::ZERO };
        let ns = match module {
            None => row.c.unwrap_or_default(),
            Some(module) => row.cells.get(module).map_or(0.0, |cell| cell.latency),
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cost is not below zero"
        )]
        Nanos(ns as u64)
    }
}
