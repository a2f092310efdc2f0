//! A session as a handle: threads share it, and it outlives its closing while jobs need it.

use std::sync::Arc;

use evener::core::{Algorithm, Direction, Padding, Session as Keyed};

use crate::runtime::Runtime;
use crate::{Error, Failure};

/// Key, algorithm, direction and padding. Dropped with the last job that needs it, when the key is wiped everywhere.
#[derive(Debug)]
pub struct Session {
    keyed: Keyed,
    runtime: Arc<Runtime>,
}

impl Session {
    /// Checks the parts.
    ///
    /// # Errors
    ///
    /// Which of them does not fit.
    pub fn open(
        runtime: &Arc<Runtime>,
        algorithm: &str,
        direction: Direction,
        padding: Padding,
        key: &[u8],
    ) -> Result<Self, Failure> {
        runtime.check_usable()?;
        let algorithm: Algorithm =
            algorithm.parse().map_err(|error| Failure::new(Error::Algorithm, error))?;
        let keyed = Keyed::new(algorithm, direction, padding, key)
            .map_err(|error| Failure::new(Error::Key, error))?;
        runtime.prepare(algorithm, direction);
        Ok(Self { keyed, runtime: Arc::clone(runtime) })
    }

    /// What jobs are armed with.
    #[must_use]
    #[inline]
    pub const fn keyed(&self) -> &Keyed {
        &self.keyed
    }

    /// Whose it is.
    #[must_use]
    #[inline]
    pub const fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.runtime.end_session(self.keyed.id());
    }
}
