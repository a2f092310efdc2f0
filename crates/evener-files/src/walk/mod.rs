//! The walk finds the input files one by one and says where the output of each goes.
//!
//! One file goes to the target itself (or into it, where it is a directory or ends in a slash); one directory
//! is mirrored by the target; several inputs go into the target under their own names. Names are kept byte by
//! byte. A link named as an input is followed, links inside a tree are reported, and whatever is found below a
//! directory is opened beneath it.

mod descent;
mod item;
mod placement;
#[cfg(test)]
mod tests;
mod traversal;

pub(crate) use descent::{Descent, Found, bytes_below};
pub(crate) use item::{Entry, Item};
pub(crate) use traversal::Walk;
