//! Lends a caller's buffers to other threads for the time of one call.
//!
//! | a caller wants | use | known as |
//! |---|---|---|
//! | its one request done together with those of others, by whichever thread is there | [`Gather`](crate::Gather), with [`Permits`](crate::Permits) for who may run a burst | flat combining (Hendler, Incze, Shavit, Tzafrir, SPAA 2010) |
//! | its own long buffer worked on by helpers beside it | [`lend()`](crate::lend()) at [`Seat`](crate::Seat)s, over [`Parts`](crate::Parts) | scoped fork and join |
//! | numbers given out once to several threads | [`Claims`](crate::Claims) | a work-sharing loop |
//!
//! In the first two the caller does not return before it alone has its memory again.

mod caller_slot;
mod claims;
mod combining_list;
mod helper_slot;
mod parts;
mod try_pool;

pub use caller_slot::{Errand, Return};
pub use claims::Claims;
pub use combining_list::{Batch, Gather, Look};
pub use helper_slot::{Lent, SEATS_MAX, Seat, lend};
pub use parts::{Part, PartBytes, Parts};
pub use try_pool::{PERMITS_MAX, Permit, Permits};
