//! The papers' tables stand here, with the machines behind them and what the models make of both.

pub mod am3358;
pub mod android;
pub mod cell;
pub mod claims;
pub mod limits;
pub mod t2;
pub mod table;
