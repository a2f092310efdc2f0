//! A connection of one client too many: it is told why, and ends.
//!
//! A front end asks for the protocol's features before anything that matters; there the host says how many clients it serves
//! ([`protocol_features::full`]). What else comes is no question that is answered, and no client is waited for.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evener_core::driver::SILENCE_MAX;
use evener_wire::{Message, protocol_features};

use crate::front::messages::FEATURES;
use crate::front::socket::{Incoming, Outgoing};
use crate::state::closer::Closer;
use crate::state::host_state::Full;

/// A connection that ends as soon as it was told why.
pub(crate) struct Refusal {
    stream: UnixStream,
    full: Full,
    incoming: Incoming,
    closer: Arc<Closer>,
    outgoing: Outgoing,
    was_asked: bool,
    until: Instant,
}

impl Refusal {
    pub(crate) fn new(stream: UnixStream, full: Full, closer: Arc<Closer>) -> Self {
        let until = Instant::now() + Duration::from(SILENCE_MAX);
        Self {
            stream,
            full,
            incoming: Incoming::new(Arc::clone(&closer)),
            closer,
            outgoing: Outgoing::default(),
            was_asked: false,
            until,
        }
    }

    /// Answers what came; `false` where the connection is to end. What does not go at once does not go.
    pub(crate) fn step(&mut self) -> bool {
        let received = match self.incoming.receive(&self.stream) {
            Ok(None) => return true,
            Ok(Some(received)) => received.message,
            Err(_) => return false,
        };
        match received {
            Message::SetOwner => true,
            // Once: that there are protocol features.
            Message::GetFeatures if !self.was_asked => {
                self.was_asked = true;
                self.answer(received, FEATURES)
            }
            Message::GetProtocolFeatures => {
                let clients = u32::try_from(self.full.clients).unwrap_or(u32::MAX);
                self.answer(received, protocol_features::full(clients, self.full.is_of_user));
                false
            }
            _ => false,
        }
    }

    pub(crate) fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    fn answer(&mut self, message: Message, number: u64) -> bool {
        let sent = self.outgoing.answer(&self.stream, message, &number.to_ne_bytes());
        sent.is_ok() && self.outgoing.is_empty()
    }
}

impl Drop for Refusal {
    fn drop(&mut self) {
        self.closer.end(&self.stream);
    }
}
