//! Lanes of a program: where they come from (`source.rs`), and whether what they encrypt is right (`check.rs`).

pub(super) mod check;
pub(crate) mod source;
