//! Decides, from what is known: who takes which job, when callers combine and calls are split, and what may be lost by it.

pub mod budget;
pub mod combine;
pub mod guard;
pub mod objective;
pub mod plan;
pub mod split_policy;
