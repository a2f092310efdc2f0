//! The walk finds the input files one by one and says where the output of each goes.

pub(crate) mod descent;
pub(crate) mod tree;
