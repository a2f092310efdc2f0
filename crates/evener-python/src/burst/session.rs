//! A session: key, algorithm and direction, prepared once, for any thread.

use evener::core::{Algorithm, Direction, Padding};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use zeroize::Zeroizing;

use super::engine;
use crate::exceptions::Kind;
use crate::ffi;
use crate::process::enter;
use crate::words::one_of;

/// Key, algorithm and direction, checked once. The key is wiped with the last use of the session.
#[pyclass(frozen, module = "evener", name = "Session")]
pub(crate) struct Session {
    pub(super) handle: engine::Session,
}

/// Longest key: HMAC takes any length, and none needs more.
const KEY_BYTES_MAX: usize = 64 << 10;

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (algorithm, key=None, direction="encrypt", *, padding=false))]
    fn new(
        py: Python<'_>,
        algorithm: &str,
        key: Option<&Bound<'_, PyAny>>,
        direction: &str,
        padding: bool,
    ) -> PyResult<Self> {
        enter()?;
        let known: Algorithm = algorithm
            .parse()
            .map_err(|_| PyValueError::new_err(format!("there is no algorithm {algorithm:?}")))?;
        let direction = one_of(
            "direction",
            direction,
            &[("encrypt", Direction::Encrypt), ("decrypt", Direction::Decrypt)],
        )?;
        let padding = if padding { Padding::Pkcs7 } else { Padding::None };
        let mut space = Zeroizing::new(vec![0; KEY_BYTES_MAX]);
        let len = key.map_or(Ok(0), |key| ffi::copy_bytes(key, &mut space))?;
        let key = space.get(..len).ok_or_else(|| Kind::InvalidKey.exception("a key of more than 64 KiB"))?;
        // The first one looks at the machine, and the first of its kind may measure what its jobs cost.
        py.detach(|| engine::Session::open(known, direction, padding, key)).map(|handle| Self { handle })
    }

    /// The algorithm's name.
    #[getter(algorithm)]
    fn algorithm_name(&self) -> &'static str {
        self.algorithm().name()
    }

    /// ``encrypt`` or ``decrypt``.
    #[getter]
    fn direction(&self) -> String {
        self.core().direction().to_string()
    }

    /// Whether PKCS#7 is added and taken away.
    #[getter]
    fn padding(&self) -> bool {
        self.core().padding() == Padding::Pkcs7
    }

    /// Length of an IV, nonce, counter or tweak; 0 where there is none.
    #[getter]
    fn iv_bytes(&self) -> usize {
        self.algorithm().iv_bytes()
    }

    /// Length of a tag or digest; 0 where there is none.
    #[getter]
    fn tag_bytes(&self) -> usize {
        self.algorithm().tag_bytes()
    }

    fn __repr__(&self) -> String {
        let padding = if self.padding() { ", padding" } else { "" };
        format!("<evener.Session {} {}{padding}, key hidden>", self.algorithm(), self.core().direction())
    }

    /// Keys do not travel.
    fn __reduce__(&self) -> PyResult<()> {
        Err(pyo3::exceptions::PyTypeError::new_err("a session cannot be pickled: its key does not travel"))
    }
}

impl Session {
    pub(super) fn core(&self) -> &evener::core::Session {
        self.handle.core()
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        self.core().algorithm()
    }
}

/// A row for each algorithm: name, bytes of key (`None`: any), of IV, of tag.
#[pyfunction]
pub(crate) fn algorithms() -> Vec<(&'static str, Option<usize>, usize, usize)> {
    let row = |it: &Algorithm| (it.name(), it.key_bytes(), it.iv_bytes(), it.tag_bytes());
    Algorithm::ALL.iter().map(row).collect()
}
