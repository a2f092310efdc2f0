//! Test suites of other hands, through OpenSSL with and without Evener's provider.
//!
//! Path of one check: `x` fetches a suite ([`fetched`]) -> a [`Setup`] writes OpenSSL's configuration, with the
//! default provider alone or with Evener's before it -> the suite runs under both ([`bounded`]) -> what it says
//! under the one judges what it says under the other. The suites stand under `tests/`; `docs/design/conformance.md` says
//! what each proves and what it does not.
#![allow(unsafe_code, reason = "room: EVP is C's interface, and it is what is tested")]

pub mod checker;
pub mod differential;
pub mod evp_test;
pub mod ffi;
pub mod program;

mod certificate;
mod foreign_programs;
mod growth;
mod setup;

pub use certificate::make_certificate;
pub use foreign_programs::{bounded, fetched, openssl_build, openssl_sources, print_line, skipped};
pub use growth::{assert_no_growth, growth};
pub use setup::{Setup, built};
