//! What Evener decides, as pure code: no clock, thread, file or environment; time is an argument.
//!
//! The way of one job: a [`Session`] is prepared once, a [`Job`] lends it a span of memory, a
//! [`Plan`](plan::Plan) says who may take it, a driver ([`InlineDriver`] on a core, [`QueuedDriver`] on a
//! module) sets its [`Outcome`], and what that took goes into a [`Tally`].
#![forbid(unsafe_code)]

pub mod algorithm;
pub mod budget;
pub mod cache;
pub mod class;
pub mod combine;
pub mod cost;
pub mod driver;
pub mod estimate;
pub mod ghash;
pub mod guard;
pub mod job;
pub mod known;
pub mod method;
pub mod objective;
pub mod padding;
pub mod plan;
pub mod session;
pub mod splits;
pub mod statistics;
pub mod tally;
pub mod units;
pub mod xts;

pub use algorithm::{Algorithm, Direction, Family, Hash};
pub use budget::{Budget, PercentOutOfRange};
pub use cache::SessionCache;
pub use class::Class;
pub use cost::{Cost, CostTable, Line};
pub use driver::{InlineDriver, IsOver, Profile, QueuedDriver, Refusal};
pub use estimate::Estimator;
pub use guard::Guard;
pub use job::{Job, JobError, Outcome, SessionRef, TAG_BYTES_MAX};
pub use method::Method;
pub use objective::Objective;
pub use session::{Padding, Session, SessionError, SessionId};
pub use tally::{Sample, Tally};
pub use units::{BLOCK_BYTES, Nanos};
