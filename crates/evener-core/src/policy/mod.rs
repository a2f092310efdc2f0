//! Decides, from what is known: which worker takes which job, when callers combine and calls are split, and how much that may lose.

pub mod budget;
pub mod combine;
pub mod guard;
pub mod objective;
pub mod plan;
pub mod split_policy;
