//! The papers' tables and what the models make of them.

pub mod android;
pub mod cell;
pub mod table;
