//! A tree and its mirror side by side: what a run would do ([`Rehearsal`]), and outputs that have lost their source ([`Deletion`]).
//!
//! Both sides are entered by descriptors, name by name, and no link is followed below what was named; what is removed is removed in the
//! directory that is held open.

mod deletion;
mod rehearsal;
mod side;

pub(crate) use deletion::Deletion;
pub(crate) use rehearsal::Rehearsal;
pub(crate) use side::NamedInput;
