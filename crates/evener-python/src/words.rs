//! Arguments that are words out of a few.

use pyo3::PyResult;
use pyo3::exceptions::PyValueError;

/// The value that goes with `word`.
///
/// # Errors
///
/// `ValueError` with all that would do.
pub(crate) fn one_of<T: Copy>(name: &str, word: &str, values: &[(&str, T)]) -> PyResult<T> {
    if let Some((_, value)) = values.iter().find(|(known, _)| *known == word) {
        return Ok(*value);
    }
    let known: Vec<_> = values.iter().map(|(known, _)| *known).collect();
    Err(PyValueError::new_err(format!("{name}: {word:?} is none of {}", known.join(", "))))
}
