//! The other side's sessions of a connection: opened with the first request of one of ours, closed when that ends or makes space.

use std::sync::Weak;

use evener_core::{HasEnded, JobError, Session, SessionId};
use evener_wire::KEY_BYTES_MAX;

use crate::connection::Connection;
use crate::connection::error::ConnectionError;
use crate::connection::wire_mapping::Shape;

/// Some length for a key that may have any.
const SOME_MAC_KEY_BYTES: usize = 20;

/// Why a session is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// The host holds as many as it takes, and all of ours are in use.
    Full,
    /// The host refused, with this number.
    Refused(i64),
}

impl From<NoSession> for JobError {
    fn from(refused: NoSession) -> Self {
        match refused {
            NoSession::Full => Self::ModuleFull,
            NoSession::Refused(code) => Self::Module { code: i32::try_from(code).unwrap_or(i32::MIN) },
        }
    }
}

impl Connection {
    /// The other side's session for one of ours, opened where it is not; counts a use, which [`Connection::release`] ends. Whether anything has
    /// it still its owner tells; without one the caller will say so.
    pub(crate) fn session(
        &mut self,
        session: &Session,
        owner: impl FnOnce() -> Option<Weak<Session>>,
        shape: Shape,
    ) -> Result<Result<u64, NoSession>, ConnectionError> {
        if let Some(id) = self.keys.known(session.id()) {
            return Ok(Ok(id));
        }
        self.close_orphans()?;
        if self.keys.is_full() && !self.close_oldest()? {
            return Ok(Err(NoSession::Full));
        }
        let mut has_made_space = false;
        loop {
            match self.link.sessions().create(&shape.create(session.key()))? {
                Ok(id) => {
                    self.keys.insert(session.id(), owner(), id);
                    if has_made_space {
                        self.keys.limit();
                    }
                    return Ok(Ok(id));
                }
                // Not every host says why it refuses: an old session may be in the way.
                Err(_) if !has_made_space && self.close_oldest()? => has_made_space = true,
                Err(NO_SPACE) => return Ok(Err(NoSession::Full)),
                Err(code) => return Ok(Err(NoSession::Refused(code))),
            }
        }
    }

    /// Whether the other side opens a session of this shape, with some key.
    pub(crate) fn can_open(&mut self, shape: Shape) -> Result<bool, ConnectionError> {
        let key: [u8; KEY_BYTES_MAX] = std::array::from_fn(|at| u8::try_from(at).unwrap_or_default());
        let bytes = shape.algorithm.key_bytes().unwrap_or(SOME_MAC_KEY_BYTES);
        match self.link.sessions().create(&shape.create(&key[..bytes]))? {
            Ok(id) => self.link.sessions().close(id).map(|()| true),
            Err(_) => Ok(false),
        }
    }

    /// Ends a use of a session.
    pub(crate) fn release(&mut self, session: SessionId) {
        self.keys.release(session);
    }

    /// Forgets a session that the host does not know.
    pub(crate) fn evict(&mut self, session: SessionId) {
        self.keys.remove(session);
    }

    /// Closes sessions that have ended: now, or when their last request is back.
    pub(crate) fn end_sessions(&mut self, has_ended: HasEnded<'_>) -> Result<(), ConnectionError> {
        self.keys.mark_ended(has_ended);
        self.close_orphans()
    }

    /// Closes sessions that cannot be used any more.
    pub(crate) fn close_orphans(&mut self) -> Result<(), ConnectionError> {
        while let Some(orphan) = self.keys.take_orphan() {
            self.link.sessions().close(orphan)?;
        }
        Ok(())
    }

    /// Closes all sessions that no request uses.
    pub(crate) fn close_idle(&mut self) -> Result<(), ConnectionError> {
        while self.close_oldest()? {}
        Ok(())
    }

    fn close_oldest(&mut self) -> Result<bool, ConnectionError> {
        let Some(id) = self.keys.take_oldest() else { return Ok(false) };
        self.link.sessions().close(id)?;
        Ok(true)
    }
}

/// What a host answers that has no space for another session: the wire's "no space", negative.
const NO_SPACE: i64 = -(evener_wire::Status::NoSpace as i64);
