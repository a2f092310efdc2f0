//! The native half of the Python package `evener` (docs/design/python.md). Its functions take what the package's own modules have gathered;
//! signatures, defaults and documentation for users stand there, in `python/evener`.
//!
//! | room | what it has |
//! |---|---|
//! | `burst` | sessions, and thousands of jobs in one call |
//! | `streams` | encrypted files as file objects |
//! | `files` | runs over files and trees, with a progress callback |
//! | `keys` | keys as Python gives them, for one call |
//! | `exceptions` | Rust's errors as Python's exceptions |
//! | `ffi` | the C interface of CPython, as far as PyO3 does not wrap it |
//! | `process` | what a fork is told |
//! | `words` | arguments that are words out of a few |
#![allow(unsafe_code, reason = "room: memory that Python's objects lend")]

mod burst;
mod exceptions;
mod ffi;
mod files;
mod keys;
mod process;
mod streams;
mod words;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// The module `evener._evener`.
#[pymodule]
mod _evener {
    use super::*;

    #[pymodule_export]
    use super::burst::{Session, algorithms, configure, crypt_many, statistics};
    #[pymodule_export]
    use super::files::run_files;
    #[pymodule_export]
    use super::streams::{Reader, Writer, rename_new};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        if ffi::interpreter(module.py()) != 0 {
            return Err(PyImportError::new_err("evener cannot be used in subinterpreters"));
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
