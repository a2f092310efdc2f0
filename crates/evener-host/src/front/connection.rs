//! One client's connection: messages in, what they change, answers out; each step as far as it goes without waiting.
//!
//! `read (a message is there) -> messages.rs -> answer -> write (what did not go at once)`. A message for which rings have to hold nothing waits:
//! until the front is told that something moved, or for [`SILENCE_MAX`], after which what the module holds finds its ring in another life.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evener_core::driver::SILENCE_MAX;
use evener_wire::Message;
use rustix::event::epoll::EventFlags;

use crate::front::messages::{self, Break, Handled, RingStop};
use crate::front::socket::{Incoming, NoMessage, Outgoing};
use crate::state::client::Client;
use crate::state::host_state::HostState;

/// Why a connection ends.
#[derive(Debug)]
pub(crate) enum End {
    /// The client has gone.
    Left,
    /// It broke the protocol.
    Broken(Break),
}

impl From<Break> for End {
    fn from(reason: Break) -> Self {
        Self::Broken(reason)
    }
}

impl From<NoMessage> for End {
    fn from(reason: NoMessage) -> Self {
        match reason {
            NoMessage::Ended => Self::Left,
            NoMessage::Wire(error) => Self::Broken(error.into()),
            NoMessage::Descriptors => Self::Broken(Break::Descriptors),
            NoMessage::Closing => Self::Broken(Break::Closing),
        }
    }
}

/// A connection, as the front has it.
pub(crate) struct Connection {
    pub(crate) client: Arc<Client>,
    /// Readable when the process that connected has ended, though a child of it may hold the stream.
    pub(crate) process: Option<OwnedFd>,
    incoming: Incoming,
    outgoing: Outgoing,
    /// What waits for rings to hold nothing, the message that wants it, and until when.
    stop: Option<(RingStop, Message, Instant)>,
    /// Since when it is to say something: it never did, or stopped in the middle of a message.
    owes_since: Option<Instant>,
    has_spoken: bool,
    /// What it is watched for.
    pub(crate) watched: EventFlags,
}

impl Connection {
    pub(crate) fn new(client: Arc<Client>, process: Option<OwnedFd>) -> Self {
        let incoming = Incoming::new(Arc::clone(&client.user.closer));
        Self {
            client,
            process,
            incoming,
            outgoing: Outgoing::default(),
            stop: None,
            owes_since: Some(Instant::now()),
            has_spoken: false,
            watched: EventFlags::IN,
        }
    }

    pub(crate) fn stream(&self) -> &UnixStream {
        self.client.stream()
    }

    /// What its stream is to be watched for now.
    pub(crate) fn wants(&self) -> EventFlags {
        match (&self.stop, self.outgoing.is_empty()) {
            // Nothing: a message of which one waits for the module is not over.
            (Some(_), _) => EventFlags::empty(),
            (None, false) => EventFlags::OUT,
            (None, true) => EventFlags::IN,
        }
    }

    /// Whether a message of it waits for the module.
    pub(crate) const fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    /// The stream is ready for what it was watched for.
    pub(crate) fn step(&mut self, shared: &HostState) -> Result<(), End> {
        if self.is_stopping() {
            // All that is told of a stream that is watched for nothing is its end.
            return Err(End::Left);
        }
        if !self.outgoing.is_empty() {
            return self.outgoing.go_on(self.client.stream()).map_err(|_| Break::Deaf.into());
        }
        let Some(received) = self.incoming.receive(self.client.stream())? else {
            self.owes_since = self.owes_since.or_else(|| Some(Instant::now()));
            return Ok(());
        };
        (self.owes_since, self.has_spoken) = (None, true);
        let message = received.message;
        match messages::handle(shared, &self.client, received)? {
            Handled::Done => Ok(()),
            Handled::Answer(payload) => self.answer(message, &payload),
            Handled::Stops(stop) => {
                self.stop = Some((stop, message, Instant::now() + Duration::from(SILENCE_MAX)));
                self.try_stop(shared)
            }
        }
    }

    /// Why it is put out, where it owes something for longer than it may. Between two messages it may say nothing for as long as it likes.
    pub(crate) fn check_silence(&self, most: Duration) -> Result<(), End> {
        let is_over = self.owes_since.is_some_and(|since| since.elapsed() >= most);
        match (is_over && !cfg!(mutant = "host_silence_unlimited"), self.has_spoken) {
            (false, _) => Ok(()),
            (true, false) => Err(Break::Silent(most).into()),
            (true, true) => Err(Break::Stuck(most).into()),
        }
    }

    /// Goes on with a message that waited, where its rings hold nothing now or its time is over.
    pub(crate) fn try_stop(&mut self, shared: &HostState) -> Result<(), End> {
        let is_due = |(stop, _, until): &(RingStop, Message, Instant)| {
            stop.is_quiet(&self.client) || Instant::now() >= *until
        };
        if !self.stop.as_ref().is_some_and(is_due) {
            return Ok(());
        }
        let Some((stop, message, _)) = self.stop.take() else { return Ok(()) };
        match stop.finish(shared, &self.client)? {
            Some(payload) => self.answer(message, &payload),
            None => Ok(()),
        }
    }

    fn answer(&mut self, message: Message, payload: &[u8]) -> Result<(), End> {
        self.outgoing.answer(self.client.stream(), message, payload).map_err(|_| Break::Deaf.into())
    }
}
