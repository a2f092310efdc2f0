//! The installed OpenSSL: where it keeps its files, and which providers its configuration names.

pub(crate) mod config;
pub(crate) mod system;
