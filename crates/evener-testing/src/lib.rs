//! What tests of several crates share. Nothing but tests depends on it.
//!
//! Path of a test: data without pattern ([`noise`]) becomes jobs ([`cases`], [`requests`]) -> drivers that wait, count or err as the
//! test says ([`drivers`]), a run of the runtime, a [host](hosts) or a [program](programs) does them -> libcrypto judges what
//! comes back, and [`waiting`] makes a red test of what never comes.
//!
//! Two ways of stating a job: a [`cases::Case`] knows its result and arms jobs for a run that a test begins itself; an
//! [`requests::JobSpec`] is data alone, which goes along any [`requests::Route`] and is judged afterwards, with the memory around it.
//!
//! Only integration tests may use this crate. It is built upon the crates that it helps to test, so that a unit test would have each
//! of their types twice: those of the crate under test, and those of the library that stands behind this one.
//!
//! What one suite alone needs stays beside it: C's interfaces as the provider's tests call them, which name libcrypto's functions and
//! nothing of Evener's (`crates/evener-provider/tests/support`); the client made of bytes that judges hosts
//! (`crates/evener-host/tests/support`), and the host that errs by order, which judges clients (`drivers/virtio/tests/support`): both are
//! the other end of one wire; a slow pipeline of other hands' ciphers (`crates/evener-files/tests/common`); what runs suites in
//! guests (`conformance/tests/support`). Tests of `evener-ring` and `evener-fd` use nothing of it: models and interpreters build all that they
//! depend on, and neither runs C.
#![allow(unsafe_code, reason = "room: a fork")]
#![allow(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "support of tests: what cannot go on fails the test, and what is skipped is printed"
)]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

pub mod arbiters;
pub mod cases;
pub mod drivers;
mod folder;
pub mod hosts;
mod noise;
pub mod programs;
pub mod requests;
pub mod waiting;

pub use folder::{Entry, Folder, allow, files, tree};
pub use noise::{Random, noise};
