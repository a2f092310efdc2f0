//! Measurements whose results lie in docs/results: on this machine, and in the test bed's guest.

mod browser;
mod circumstances;
pub(crate) mod figures;
pub(crate) mod guest;
mod guest_files;
pub(crate) mod instructions;
mod packed;
mod papers;
mod processes;
mod provider_guest;
pub(crate) mod testbed;
