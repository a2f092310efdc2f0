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
    shape: Shape,
}

/// What a queue looks at of each job's session, found out once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Text is replaced and not only read.
    pub(crate) is_cipher: bool,
    /// There may be associated data.
    pub(crate) has_aad: bool,
    pub(crate) iv_bytes: usize,
    /// Length of a tag that goes in.
    pub(crate) tag_in: usize,
    /// Length of a tag or digest that comes out.
    pub(crate) tag_out: usize,
}

impl Shape {
    const fn of(algorithm: Algorithm, direction: Direction) -> Self {
        let is_checked = algorithm.is_aead() && matches!(direction, Direction::Decrypt);
        let tag = algorithm.tag_bytes();
        let (tag_in, tag_out) = if is_checked { (tag, 0) } else { (0, tag) };
        let (is_cipher, has_aad) = (algorithm.is_cipher(), algorithm.is_aead());
        Self { is_cipher, has_aad, iv_bytes: algorithm.iv_bytes(), tag_in, tag_out }
    }
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
        Ok(Self { keyed, runtime: Arc::clone(runtime), shape: Shape::of(algorithm, direction) })
    }

    /// What jobs are armed with.
    #[must_use]
    #[inline]
    pub const fn keyed(&self) -> &Keyed {
        &self.keyed
    }

    /// What a queue looks at.
    #[inline]
    pub(crate) const fn shape(&self) -> Shape {
        self.shape
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
