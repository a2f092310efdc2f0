//! Shards of a tree of objects, without the objects: where a listing is cut ([`Cuts`]), and the largest objects in it ([`Ranged`]), the file that
//! says so ([`Plan`]), and what the two commands are asked for ([`Ask`]). docs/design/shards.md has the idea.
//!
//! ```text
//! names in order ─> Cuts::add ... ─> Cuts::finish ─> Plan ─> a file
//! a file ─> Plan::read ─> Plan::shard(number): the names that are its own, and no others', or a range of one object
//! ```
#![forbid(unsafe_code)]

mod cuts;
mod plan;
mod ranges;
mod task;

pub use cuts::{Cuts, OutOfOrder, Shard, Wanted};
pub use plan::{Direction, Plan, PlanError, Portion, SALT_BYTES};
pub use ranges::{RANGE_BYTES_MIN, Ranged};
pub use task::{Ask, Existing, Keys, Planning, ShardRun};
