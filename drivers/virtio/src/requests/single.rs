//! Single requests whose callers wait, over a connection that all threads of the process share.
//!
//! `slot and session -> copied in -> shown -> asleep -> copied out`. The text is copied before anything waits, so a caller whose time is over
//! leaves at once: the connection ends with that, and a device reaches its memory no more.

use std::sync::Arc;

use evener_core::driver::{SingleDriver, Text, Unanswered};
use evener_core::{Algorithm, BLOCK_BYTES, Direction, HasEnded, JobError, Nanos, Padding, Session, WithIv};
use evener_ring::wipe;

use crate::connection::error::ConnectionError;
use crate::connection::layout::DATA_BYTES_MAX;
use crate::connection::shared_connection::SharedConnection;
use crate::connection::wire_mapping::{Lengths, Shape, verdict};
use crate::connection::{Connection, RequestSlot};
use crate::requests::capabilities::Capabilities;

/// Asks over a shared connection.
pub(crate) struct SingleRequests {
    capabilities: Arc<Capabilities>,
    shared: Arc<SharedConnection>,
}

impl SingleRequests {
    pub(crate) const fn new(capabilities: Arc<Capabilities>, shared: Arc<SharedConnection>) -> Self {
        Self { capabilities, shared }
    }
}

impl SingleDriver for SingleRequests {
    fn takes(&self, algorithm: Algorithm, bytes: usize) -> bool {
        let is_plain = algorithm.is_cipher() && !algorithm.is_aead();
        let is_whole = !algorithm.needs_whole_blocks() || bytes % BLOCK_BYTES == 0;
        is_plain
            && is_whole
            && bytes > 0
            && bytes <= DATA_BYTES_MAX.min(self.capabilities.request_bytes_max())
    }

    fn run_single(&self, keyed: WithIv<'_>, text: &mut dyn Text, timeout: Nanos) -> Result<(), Unanswered> {
        let WithIv { session, iv } = keyed;
        let full = Err(Unanswered::Failed(JobError::ModuleFull));
        let shape = Shape { algorithm: session.algorithm(), direction: session.direction() };
        let lengths = Lengths { text: text.input().len(), aad: 0 };
        let is_ours =
            self.capabilities.has(shape.algorithm, shape.direction) && shape.takes_key(session.key());
        if !is_ours || !self.takes(shape.algorithm, lengths.text) || session.padding() != Padding::None {
            return full;
        }
        if !self.shared.is_ours() {
            return Err(LOST);
        }
        let mut state = self.shared.lock();
        let begun = state.try_with(|connection| start(connection, session, shape, lengths, iv, text.input()));
        let slot = match begun.ok_or(LOST)? {
            Ok(slot) => slot,
            Err(error) => return Err(Unanswered::Failed(error)),
        };
        let number = slot.number;
        let mut state =
            self.shared.wait(state, timeout.into(), |connection| usize::from(!connection.is_back(number)));
        let Some(connection) = state.connection() else { return Err(LOST) };
        let Some(status) = connection.take(number) else {
            // Nothing comes any more, or not in time.
            let is_late = !connection.has_fault();
            state.end();
            return Err(if is_late { Unanswered::Late } else { LOST });
        };
        connection.release(session.id());
        let mut done =
            verdict(status, shape).and_then(|()| connection.has_worked(&slot, text.input(), status));
        if done.is_ok() {
            done = take(connection, &slot, text, shape.direction);
        }
        if status == evener_wire::Status::InvalidSession as u8 {
            connection.evict(session.id());
        }
        if done.is_err() || shape.direction == Direction::Decrypt {
            connection.wipe(slot.dst_at, lengths.text);
        }
        connection.free(slot);
        // Its session may have ended meanwhile.
        state.try_with(Connection::close_orphans);
        done.map_err(Unanswered::Failed)
    }

    fn core_time(&self) -> Nanos {
        // All is done on threads of those who ask.
        Nanos::ZERO
    }

    fn evict(&self, has_ended: HasEnded<'_>) {
        if self.shared.is_ours() {
            self.shared.lock().try_with(|connection| connection.end_sessions(has_ended));
        }
    }
}

const LOST: Unanswered = Unanswered::Failed(JobError::ModuleLost);

/// Puts a request into the queue and shows it; the slot is its place until it is back.
pub(crate) fn start(
    connection: &mut Connection,
    session: &Session,
    shape: Shape,
    lengths: Lengths,
    iv: &[u8; 16],
    input: &[u8],
) -> Result<Result<RequestSlot, JobError>, ConnectionError> {
    let Some(slot) = connection.slot(shape, lengths) else { return Ok(Err(JobError::ModuleFull)) };
    // Who borrows a session says when it is over.
    let id = match connection.session(session, || None, shape)? {
        Ok(id) => id,
        Err(refused) => {
            connection.free(slot);
            return Ok(Err(refused.into()));
        }
    };
    connection.copy_in(slot.src_at, input);
    connection.add(&slot, shape, lengths, iv, id);
    connection.flush()?;
    Ok(Ok(slot))
}

/// Gives a text its result: there, where it stands apart from the input; else by a buffer, for the input is looked at until then. Without
/// memory for the space the text stays what it was.
fn take(
    connection: &Connection,
    slot: &RequestSlot,
    text: &mut dyn Text,
    direction: Direction,
) -> Result<(), JobError> {
    if let Some((_, output)) = text.apart() {
        connection.copy_out(slot.dst_at, output);
        text.taken();
        return Ok(());
    }
    let bytes = text.input().len();
    let mut space = Vec::new();
    space.try_reserve_exact(bytes).map_err(|_| JobError::ModuleFull)?;
    space.resize(bytes, 0);
    connection.copy_out(slot.dst_at, &mut space);
    text.take(&space);
    if direction == Direction::Decrypt {
        wipe(&mut space);
    }
    Ok(())
}
