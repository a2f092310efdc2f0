//! The programs, in the order of the table; a file for each kind.

mod php;
mod python;

use super::program::Program;

/// All programs.
pub const ALL: &[&dyn Program] = &[&python::AESGCM_16K, &python::AESGCM_1M, &php::GCM_8M, &php::GCM_256M];
