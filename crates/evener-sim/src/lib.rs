//! Cores under a fair-share scheduler and crypto modules, in virtual time.
#![forbid(unsafe_code)]

pub mod papers;
