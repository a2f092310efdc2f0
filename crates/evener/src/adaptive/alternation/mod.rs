//! Where the only core and the only module take turns.

pub(super) mod accounts;
mod protocol;
