//! The command among faults, kills, damage and strangers: what has a final name is whole, and nothing is lost in silence.

#[path = "../common/mod.rs"]
mod common;

mod closes;
mod damage;
mod done_sequences;
mod drafts;
mod faults;
mod interruption;
mod kills;
mod links;
mod promises;
mod refused_calls;
mod rivals;
mod traced_calls;
mod tree_round_trips;
