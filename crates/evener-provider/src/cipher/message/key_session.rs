//! The session of a key, for as long as a context has that key.
//!
//! Made when a request first needs it -> shared by copies of the context -> the last of them takes another key, or is freed -> the
//! engines are notified, so that no key stays open at a module. A request takes the session alone, so this costs it nothing.

use std::sync::Arc;

use evener_core::Session;

use crate::cipher::engine::registry;

/// A session whose end engines are notified of.
pub(crate) struct KeySession(Arc<Session>);

impl KeySession {
    pub(crate) fn new(session: Session) -> Arc<Self> {
        Arc::new(Self(Arc::new(session)))
    }

    /// The session, for one request.
    pub(crate) const fn session(&self) -> &Arc<Session> {
        &self.0
    }
}

impl Drop for KeySession {
    fn drop(&mut self) {
        if !cfg!(mutant = "keys_stay_at_modules") {
            registry::close_session(self.0.id());
        }
    }
}
