//! The papers' tables and what the models make of them.

pub mod cell;
pub mod table;
