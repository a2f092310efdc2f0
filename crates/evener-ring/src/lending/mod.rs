//! Lends a caller's buffers to other threads for the time of one call.
//!
//! | a caller wants | use | known as |
//! |---|---|---|
//! | its one request done together with those of others, by a thread that already combines | [`CombiningList`](crate::CombiningList), with [`ObjectPool`](crate::ObjectPool) for who may run a burst | flat combining (Hendler, Incze, Shavit, Tzafrir, SPAA 2010) |
//! | its own long buffer worked on by helpers beside it | [`lend()`](crate::lend()) at [`HelperSlot`](crate::HelperSlot)s, over [`Parts`](crate::Parts) | scoped fork and join |
//! | numbers given out once to several threads | [`Claims`](crate::Claims) | a work-sharing loop |
//!
//! In the first two the caller does not return before it alone has its memory again.

mod caller_slot;
mod claims;
mod combining_list;
mod helper_slot;
mod loan;
mod object_pool;
mod parts;

pub use caller_slot::{LendOutcome, LentWork};
pub use claims::Claims;
pub use combining_list::{Batch, CombiningList, Look};
pub use helper_slot::HelperSlot;
pub use loan::{HELPER_SLOTS_MAX, LendCounts, lend};
pub use object_pool::{ObjectPool, PERMITS_MAX, Permit};
pub use parts::{Part, PartBytes, Parts};
