//! The command on files, trees, keys and formats: what comes back, what is written and what is refused.

#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod beside;
mod files;
mod filters;
mod finished_outputs;
mod formats;
mod interop;
mod keys;
mod messages;
mod mirror;
mod names;
mod no_threads;
mod parts;
mod shell;
mod spared;
mod sum;
mod trees;
