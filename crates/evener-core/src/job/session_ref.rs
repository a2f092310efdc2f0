//! A session as a job holds it.

use std::ops::Deref;
use std::sync::Arc;

use crate::job::session::Session;

/// A session that a job borrows or shares. Borrowing costs nothing; sharing counts references.
#[derive(Clone, Debug)]
pub enum SessionRef<'m> {
    /// Lives longer than all jobs.
    Borrowed(&'m Session),
    /// Lives until the last job has come back.
    Shared(Arc<Session>),
}

impl Deref for SessionRef<'_> {
    type Target = Session;
    #[inline]
    fn deref(&self) -> &Session {
        match self {
            Self::Borrowed(session) => session,
            Self::Shared(session) => session,
        }
    }
}

impl<'m> From<&'m Session> for SessionRef<'m> {
    fn from(session: &'m Session) -> Self {
        Self::Borrowed(session)
    }
}

impl From<Arc<Session>> for SessionRef<'_> {
    fn from(session: Arc<Session>) -> Self {
        Self::Shared(session)
    }
}
