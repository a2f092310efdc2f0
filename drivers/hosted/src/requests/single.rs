//! Single requests of whoever waits for them, over a line that all threads of the process share.
//!
//! `seat and session -> copied in -> shown -> asleep -> copied out`. The text is copied before anything waits, so a caller whose time is over
//! leaves at once: the line ends with that, and a device reaches its memory no more.

use std::sync::Arc;

use evener_core::driver::{SingleDriver, Text, Unanswered};
use evener_core::{Algorithm, BLOCK_BYTES, Direction, IsOver, JobError, Nanos, Padding, Session};
use evener_ring::wipe;

use crate::connection::error::Trouble;
use crate::connection::layout::DATA_BYTES_MAX;
use crate::connection::shared_line::Shared;
use crate::connection::wire_mapping::{Lengths, Shape, verdict};
use crate::connection::{Line, Seat};
use crate::requests::capabilities::Offered;

/// Asks over a shared line.
pub(crate) struct Single {
    offered: Arc<Offered>,
    shared: Arc<Shared>,
}

impl Single {
    pub(crate) const fn new(offered: Arc<Offered>, shared: Arc<Shared>) -> Self {
        Self { offered, shared }
    }
}

impl SingleDriver for Single {
    fn takes(&self, algorithm: Algorithm, bytes: usize) -> bool {
        let is_plain = algorithm.is_cipher() && !algorithm.is_aead();
        let is_whole = !algorithm.needs_whole_blocks() || bytes % BLOCK_BYTES == 0;
        is_plain && is_whole && bytes > 0 && bytes <= DATA_BYTES_MAX.min(self.offered.request_bytes_max())
    }

    fn ask_for(
        &self,
        session: &Session,
        iv: &[u8; 16],
        text: &mut dyn Text,
        patience: Nanos,
    ) -> Result<(), Unanswered> {
        let full = Err(Unanswered::Failed(JobError::ModuleFull));
        let shape = Shape { algorithm: session.algorithm(), direction: session.direction() };
        let lengths = Lengths { text: text.input().len(), aad: 0 };
        let is_ours = self.offered.has(shape.algorithm, shape.direction) && shape.takes_key(session.key());
        if !is_ours || !self.takes(shape.algorithm, lengths.text) || session.padding() != Padding::None {
            return full;
        }
        if !self.shared.is_ours() {
            return Err(LOST);
        }
        let mut state = self.shared.lock();
        let begun = state.try_with(|line| begin(line, session, shape, lengths, iv, text.input()));
        let seat = match begun.ok_or(LOST)? {
            Ok(seat) => seat,
            Err(error) => return Err(Unanswered::Failed(error)),
        };
        let number = seat.number;
        let mut state = self.shared.wait(state, patience.into(), |line| usize::from(!line.is_back(number)));
        let Some(line) = state.line() else { return Err(LOST) };
        let Some(status) = line.take(number) else {
            // Nothing comes any more, or not in time.
            let is_late = !line.has_fault();
            state.end();
            return Err(if is_late { Unanswered::Late } else { LOST });
        };
        line.release(session.id());
        let done = verdict(status, shape).and_then(|()| line.has_worked(&seat, text.input(), status));
        if done.is_ok() {
            take(line, &seat, text, shape.direction);
        }
        if status == evener_wire::Status::InvalidSession as u8 {
            line.forget(session.id());
        }
        if done.is_err() || shape.direction == Direction::Decrypt {
            line.wipe(seat.dst_at, lengths.text);
        }
        line.free(seat);
        // Its session may have ended meanwhile.
        state.try_with(Line::close_orphans);
        done.map_err(Unanswered::Failed)
    }

    fn core_time(&self) -> Nanos {
        // All is done on threads of those who ask.
        Nanos::ZERO
    }

    fn forget(&self, is_over: IsOver<'_>) {
        if self.shared.is_ours() {
            self.shared.lock().try_with(|line| line.end_sessions(is_over));
        }
    }
}

const LOST: Unanswered = Unanswered::Failed(JobError::ModuleLost);

/// Puts a request into the queue and shows it; the seat is its place until it is back.
pub(crate) fn begin(
    line: &mut Line,
    session: &Session,
    shape: Shape,
    lengths: Lengths,
    iv: &[u8; 16],
    input: &[u8],
) -> Result<Result<Seat, JobError>, Trouble> {
    let Some(seat) = line.seat(shape, lengths) else { return Ok(Err(JobError::ModuleFull)) };
    // Who borrows a session says when it is over.
    let id = match line.session(session, || None, shape)? {
        Ok(id) => id,
        Err(refused) => {
            line.free(seat);
            return Ok(Err(refused.into()));
        }
    };
    line.copy_in(seat.src_at, input);
    line.add(&seat, shape, lengths, iv, id);
    line.flush()?;
    Ok(Ok(seat))
}

/// Gives a text its result: there, where it stands apart from the input; else by a room, for the input is looked at until then.
fn take(line: &Line, seat: &Seat, text: &mut dyn Text, direction: Direction) {
    if let Some((_, output)) = text.apart() {
        line.copy_out(seat.dst_at, output);
        return text.taken();
    }
    let mut room = vec![0; text.input().len()];
    line.copy_out(seat.dst_at, &mut room);
    text.take(&room);
    if direction == Direction::Decrypt {
        wipe(&mut room);
    }
}
