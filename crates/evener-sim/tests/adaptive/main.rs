//! The adaptive policy against lower bounds and against the papers' policies, on the costs of paper 002, table 2.

mod alone;
mod bench;
