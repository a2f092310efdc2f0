//! Packages of the distribution: fetched and unpacked, never installed.

pub(crate) mod apt;
pub(crate) mod tools;
