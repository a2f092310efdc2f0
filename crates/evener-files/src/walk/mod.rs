//! The walk finds the input files one by one and says where the output of each goes.
//!
//! One file goes to the target itself (or into it, where it is a directory or ends in a slash); one directory
//! is mirrored by the target; several inputs go into the target under their own names; without a target each file's output goes beside it. Names
//! are kept byte by byte, but for the suffix that files get or lose where that is wanted. A link named as an input is followed, links inside a tree are met as links, and whatever is found in a directory
//! is opened there by its own name.

mod descent;
mod hard_links;
mod item;
mod placement;
#[cfg(test)]
mod tests;
mod traversal;

pub(crate) use descent::{Descent, Found, Order, bytes_below};
pub(crate) use hard_links::{HardLinks, Identity, Name, Names, Waiting};
pub(crate) use item::{Entry, Item, What};
pub use placement::outputs;
pub(crate) use placement::{Input, identities, inputs, named_inputs};
pub(crate) use traversal::Walk;
