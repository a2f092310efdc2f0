//! The simulator against the papers' tables and against an independent reference simulation of the same models.

mod bars;
mod claims_of_order;
mod golden;
mod policies;
mod port;
