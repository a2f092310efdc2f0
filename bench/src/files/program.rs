//! A program that takes part, as results name it.

use serde::Serialize;

/// A program.
#[derive(Debug, Serialize)]
pub struct Program {
    /// What it is called.
    pub name: &'static str,
    /// What it says of itself; `None` where it is not installed.
    pub version: Option<String>,
}
