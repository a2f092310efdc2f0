//! R7: where one synchronous request goes: there where `wait + service + price * core time` is least. The price of a core is
//! `lambda`; under objective `latency` next to nothing, for there the end decides.

use super::rows::float;
use super::table::Table;
use super::tuning::TUNING;
use crate::units::Nanos;

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// It runs where the caller stands.
    Inline,
    /// A module does it.
    Module(usize),
}

/// What a request would find at a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Time until the module would begin: requests before it, and the wake-up of its worker.
    pub wait: Nanos,
}

impl Table {
    /// Where one request of a class goes, with what it would find at each module.
    ///
    /// # Panics
    ///
    /// Where there is no such class, or fewer queues than modules.
    #[must_use]
    pub fn route(&self, class: usize, queues: &[Queue]) -> Route {
        let row = &self.rows[class];
        let Some(c) = row.c else { return Route::Inline };
        let inline = c * (1.0 + self.price_of_one);
        let mut best = (inline * (1.0 - TUNING.route_margin), Route::Inline);
        for (module, queue) in queues.iter().enumerate().take(self.capacities.len()) {
            let cell = &row.cells[module];
            if let Some(path) = cell.path {
                let cost = float(queue.wait) + path.latency + self.price_of_one * path.d;
                if cost < best.0 {
                    best = (cost, Route::Module(module));
                }
            }
        }
        best.1
    }
}
