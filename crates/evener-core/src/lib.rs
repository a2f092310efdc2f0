//! What Evener decides, as pure code: no clock, thread, file or environment; time is an argument.
//!
//! The path of one job: a [`Session`] is prepared once, a [`Job`] lends it a span of memory, a
//! [`Plan`](plan::Plan) says which worker may take it, a driver ([`InlineDriver`] on a core, [`QueuedDriver`] on a
//! module) sets its [`Outcome`], and what that took goes into a [`Tally`].
//!
//! | room | what it does |
//! |---|---|
//! | `policy/` | decides which worker takes which job, when callers combine and calls are split, and how much that may lose |
//! | `cost/` | knows what a job costs, and learns it |
//! | `driver/` | says what a driver is, and holds the known answers that it is checked with |
//! | `counts.rs` | lays out the file of counts that other programs read |
//! | `job/` | holds jobs, sessions and algorithms |
//! | `math/` | computes in the field of 2^128 elements |
//! | `named.rs` | writes types whose values have names, and shows and finds such values |
//! | `tuning.rs` | writes the numbers of a policy as one struct |
//! | `units.rs` | has nanoseconds and blocks |
#![forbid(unsafe_code)]

pub mod cost;
pub mod counts;
pub mod driver;
pub mod job;
mod math;
mod named;
mod policy;
mod tuning;
pub mod units;

pub use cost::{estimate, tally};
pub use counts as statistics;
pub use driver::{cache, known_answers as known};
pub use job::{algorithm, class, method, padding, session};
pub use math::{ghash, xts};
pub use policy::{budget, combine, guard, objective, plan, split_policy as splits};

pub use algorithm::{Algorithm, Direction, Family, Hash};
pub use budget::{Budget, PercentOutOfRange};
pub use cache::SessionCache;
pub use class::Class;
pub use cost::{Cost, CostTable, Line};
pub use driver::{HasEnded, InlineDriver, Profile, QueuedDriver, Refusal};
pub use estimate::Estimator;
pub use guard::Guard;
pub use job::{Job, JobError, Outcome, SessionRef, TAG_BYTES_MAX};
pub use method::Method;
pub use objective::Objective;
pub use session::{Padding, Session, SessionError, SessionId, WithIv};
pub use tally::{Sample, Tally};
pub use units::{BLOCK_BYTES, Nanos};
