//! The driver that the runtime sees: it holds jobs, and the host works on copies of them.
//!
//! `submit -> (copy in) -> queue -> host -> queue -> poll -> (copy out)`. A job's own memory is written when its result is
//! copied out, and at no other time.

use std::sync::Arc;
use std::time::Duration;

use evener_core::job::{Memory, Parts};
use evener_core::padding::{pad, padded_bytes, text_bytes};
use evener_core::{
    Algorithm, BLOCK_BYTES, Direction, HasEnded, Job, JobError, Nanos, Padding, Profile, QueuedDriver,
    Refusal, SessionRef, TAG_BYTES_MAX,
};
use evener_wire::Status;

use crate::connection::layout::{DATA_BYTES_MAX, DEPTH};
use crate::connection::shared_connection::{SharedConnection, State};
use crate::connection::wire_mapping::{Lengths, Shape, verdict};
use crate::connection::{Connection, NoSession, RequestSlot};
use crate::requests::capabilities::Capabilities;

/// A host's module, of one run.
pub(crate) struct JobDriver<'m> {
    profile: Profile,
    capabilities: Arc<Capabilities>,
    shared: Arc<SharedConnection>,
    /// By slot.
    held: Vec<Option<Held<'m>>>,
    /// Which of these hold one, a bit each: of many processes on one core each finds its memory in no cache near, and
    /// all slots are 60 lines of it.
    held_slots: u32,
    /// Answered without the host.
    answered: Vec<Box<Job<'m>>>,
}

const _: () = assert!(DEPTH <= 32, "a bit for each slot");

/// A job at the host.
struct Held<'m> {
    job: Box<Job<'m>>,
    slot: RequestSlot,
    shape: Shape,
    lengths: Lengths,
}

/// What becomes of a job that is not sent.
enum Unsent {
    /// It can be offered again when something came back.
    Later,
    /// The host will not do it.
    Never(JobError),
    /// There is no host any more.
    Lost,
}

impl<'m> JobDriver<'m> {
    pub(crate) fn new(
        profile: Profile,
        capabilities: Arc<Capabilities>,
        shared: Arc<SharedConnection>,
    ) -> Self {
        let held = (0..DEPTH).map(|_| None).collect();
        Self { profile, capabilities, shared, held, held_slots: 0, answered: Vec::new() }
    }

    /// The connection without its sessions, for the next driver; none where jobs are under way or where it is lost.
    pub(crate) fn into_shared(self) -> Option<Arc<SharedConnection>> {
        let mut state = self.shared.lock();
        state.try_with(Connection::close_idle)?;
        (self.held_slots == 0).then(|| Arc::clone(&self.shared))
    }

    /// In a forked child the connection is the parent's: the child lets go of it, and makes its own where there can be two.
    fn check_fork(&mut self) {
        if self.shared.is_ours() {
            return;
        }
        // Closes this process's copies of socket and events where no other driver has them; the region was never here.
        self.shared = Arc::new(SharedConnection::new(self.capabilities.another_connection()));
        let mut answered = std::mem::take(&mut self.answered);
        self.lose_all(&mut answered);
        self.answered = answered;
    }

    fn send(&self, job: &Job<'_>) -> Result<(RequestSlot, Shape, Lengths), Unsent> {
        let session = job.session();
        let shape = Shape { algorithm: session.algorithm(), direction: session.direction() };
        let lengths = lengths_of(job);
        let (readable, writable) = shape.data_bytes(lengths);
        let src = readable.saturating_sub(lengths.aad);
        let is_long =
            src > self.capabilities.request_bytes_max() || readable.saturating_add(writable) > DATA_BYTES_MAX;
        if is_long || !shape.takes_key(session.key()) {
            return Err(Unsent::Never(JobError::ModuleFull));
        }
        let is_idle = self.held_slots == 0;
        let mut state = self.shared.lock();
        let connection = state.connection().ok_or(Unsent::Lost)?;
        // Others may have all of it, and bring nothing back here.
        let Some(slot) = connection.slot(shape, lengths) else {
            return Err(if is_idle { Unsent::Never(JobError::ModuleFull) } else { Unsent::Later });
        };
        let owner = || match job.session_ref() {
            SessionRef::Shared(session) => Some(Arc::downgrade(&session)),
            SessionRef::Borrowed(_) => None,
        };
        match connection.session(session, owner, shape) {
            Ok(Ok(id)) => {
                copy_in(connection, &slot, job, shape, lengths);
                connection.add(&slot, shape, lengths, job.iv(), id);
                Ok((slot, shape, lengths))
            }
            Ok(Err(refused)) => {
                connection.free(slot);
                Err(match refused {
                    // What is under way may end and make space.
                    NoSession::Full if !is_idle => Unsent::Later,
                    refused => Unsent::Never(refused.into()),
                })
            }
            Err(_) => Err(Unsent::Lost),
        }
    }

    /// Takes in what came back; waits for some of it where nothing did.
    fn collect(&mut self, done: &mut Vec<Box<Job<'m>>>, timeout: Duration) {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        // What came back before the end counts.
        state.try_with(Connection::flush);
        shared.collect(&mut state);
        if self.take_ready(&mut state, done) == 0 && self.held_slots != 0 && !timeout.is_zero() {
            // Half of what is under way: while the host works on the other half, this half is replaced.
            let count = self.held_count().div_ceil(2);
            let back = |connection: &Connection| {
                slots_of(self.held_slots).filter(|&number| connection.is_back(number)).count()
            };
            state = shared.wait(state, timeout, |connection| count.saturating_sub(back(connection)));
            if self.take_ready(&mut state, done) == 0
                && state.connection().is_some_and(|connection| connection.has_fault())
            {
                // Nothing of ours came before the end, and nothing will.
                state.end();
            }
        }
        if state.is_lost() {
            drop(state);
            self.lose_all(done);
        }
    }

    /// Jobs at the host.
    fn held_count(&self) -> usize {
        slots_of(self.held_slots).count()
    }

    fn take_ready(&mut self, state: &mut State, done: &mut Vec<Box<Job<'m>>>) -> usize {
        let before = done.len();
        let Some(connection) = state.connection() else { return 0 };
        for number in slots_of(self.held_slots) {
            let Some(status) = connection.take(number) else { continue };
            self.held_slots &= !(1 << number);
            done.extend(self.held[number].take().map(|held| held.finish(connection, status)));
        }
        if done.len() > before {
            state.try_with(Connection::close_orphans);
        }
        done.len() - before
    }

    /// Ends the connection and gives back every job that was under way.
    fn hang_up(&mut self, lost: &mut Vec<Box<Job<'m>>>) {
        self.shared.lock().end();
        self.lose_all(lost);
    }

    fn lose_all(&mut self, lost: &mut Vec<Box<Job<'m>>>) {
        let held = self.held.iter_mut().filter_map(Option::take);
        lost.extend(held.map(|mut held| {
            held.job.fail(JobError::ModuleLost);
            held.job
        }));
        self.held_slots = 0;
    }
}

/// The slots of a mask, one after the other.
fn slots_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let number = usize::try_from(mask.trailing_zeros()).expect("a bit's number");
        (mask != 0).then(|| {
            mask &= mask - 1;
            number
        })
    })
}

impl<'m> QueuedDriver<'m> for JobDriver<'m> {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        self.capabilities.has(algorithm, direction)
    }

    fn submit(&mut self, mut job: Box<Job<'m>>) -> Result<(), (Box<Job<'m>>, Refusal)> {
        self.check_fork();
        let early = if !job.lengths_fit() {
            Some(Err(JobError::BadLength))
        } else if job.input_bytes() == 0 && !needs_work(&job) {
            Some(Ok(()))
        } else {
            None
        };
        let answer = match early {
            Some(answer) => answer,
            None => match self.send(&job) {
                Ok((slot, shape, lengths)) => {
                    self.held_slots |= 1 << slot.number;
                    self.held[slot.number] = Some(Held { job, slot, shape, lengths });
                    return Ok(());
                }
                Err(Unsent::Later) => return Err((job, Refusal::Full)),
                Err(Unsent::Never(error)) => Err(error),
                Err(Unsent::Lost) => {
                    let mut lost = Vec::new();
                    self.hang_up(&mut lost);
                    self.answered.append(&mut lost);
                    return Err((job, Refusal::Lost));
                }
            },
        };
        match answer {
            Ok(()) => job.done(0),
            Err(error) => job.fail(error),
        }
        self.answered.push(job);
        Ok(())
    }

    fn poll(&mut self, done: &mut Vec<Box<Job<'m>>>, timeout: Nanos) -> usize {
        self.check_fork();
        let before = done.len();
        done.append(&mut self.answered);
        let timeout = if done.len() > before { Nanos::ZERO } else { timeout };
        self.collect(done, timeout.into());
        done.len() - before
    }

    fn in_flight(&self) -> usize {
        self.held_count() + self.answered.len()
    }

    fn abandon(&mut self, given_back: &mut Vec<Box<Job<'m>>>) {
        self.check_fork();
        given_back.append(&mut self.answered);
        self.hang_up(given_back);
    }

    fn evict(&mut self, has_ended: HasEnded<'_>) {
        if self.shared.is_ours() {
            // Where that fails, what was under way comes back as lost with the next poll.
            self.shared.lock().try_with(|connection| connection.end_sessions(has_ended));
        }
    }
}

impl Drop for JobDriver<'_> {
    /// Leaves no data behind in memory that the host may still have.
    fn drop(&mut self) {
        if self.held_slots != 0 && self.shared.is_ours() {
            self.shared.lock().end();
        }
    }
}

impl<'m> Held<'m> {
    /// Gives the job back with what came of its request, and its slot to the next.
    fn finish(self, connection: &mut Connection, status: u8) -> Box<Job<'m>> {
        let Self { mut job, slot, shape, lengths } = self;
        let (readable, writable) = shape.data_bytes(lengths);
        let mut outcome = verdict(status, shape);
        if outcome.is_ok() && shape.is_in_place() {
            outcome = connection.has_worked(&slot, job.input(), status);
        }
        match outcome {
            Ok(()) => copy_out(connection, &slot, &mut job, shape, lengths),
            Err(error) => job.fail(error),
        }
        if status == Status::InvalidSession as u8 {
            connection.evict(job.session().id());
        }
        // Text in clear does not stay behind.
        match shape.direction {
            // The result has taken its place.
            Direction::Encrypt if outcome.is_ok() && shape.is_in_place() => {}
            Direction::Encrypt => connection.wipe(slot.src_at, readable),
            Direction::Decrypt => connection.wipe(slot.dst_at, writable),
        }
        connection.release(job.session().id());
        connection.free(slot);
        job
    }
}

/// Whether a job without input has output: a digest, a tag, or padding.
fn needs_work(job: &Job<'_>) -> bool {
    let session = job.session();
    session.algorithm().tag_bytes() > 0 || session.output_bytes_max(0) > 0
}

fn is_padded(job: &Job<'_>, direction: Direction) -> bool {
    job.session().padding() == Padding::Pkcs7 && job.session().direction() == direction
}

fn lengths_of(job: &Job<'_>) -> Lengths {
    let padded = is_padded(job, Direction::Encrypt);
    let text = if padded { padded_bytes(job.input_bytes()) } else { job.input_bytes() };
    let aad = if job.session().algorithm().is_aead() { job.aad().len() } else { 0 };
    Lengths { text, aad }
}

/// Copies text, padding, tag and associated data to where the host reads them.
fn copy_in(connection: &Connection, slot: &RequestSlot, job: &Job<'_>, shape: Shape, lengths: Lengths) {
    let input = job.input();
    connection.copy_in(slot.src_at, input);
    let mut end = slot.src_at + input.len();
    if is_padded(job, Direction::Encrypt) {
        let rest = input.len() % BLOCK_BYTES;
        let mut last = [0; BLOCK_BYTES];
        pad(&mut last, rest);
        connection.copy_in(end, &last[rest..]);
        end = slot.src_at + lengths.text;
    }
    if shape.algorithm.is_aead() {
        if shape.direction == Direction::Decrypt {
            let tag_bytes = shape.algorithm.tag_bytes();
            connection.copy_in(end, &job.tag_given()[..tag_bytes]);
            end += tag_bytes;
        }
        connection.copy_in(end, job.aad());
    }
}

/// Copies the result into the job's own memory and ends the job.
fn copy_out(connection: &Connection, slot: &RequestSlot, job: &mut Job<'_>, shape: Shape, lengths: Lengths) {
    let tag_bytes = shape.algorithm.tag_bytes();
    if !shape.algorithm.is_cipher() {
        let mut digest = [0; TAG_BYTES_MAX];
        connection.copy_out(slot.dst_at, &mut digest[..tag_bytes]);
        return job.publish(&[], &digest[..tag_bytes]);
    }
    let strips = is_padded(job, Direction::Decrypt);
    let Parts { memory, tag, .. } = job.parts();
    let (Memory::InPlace { space, .. } | Memory::Apart { dst: space, .. }) = memory;
    let text = &mut space[..lengths.text];
    connection.copy_out(slot.dst_at, text);
    if shape.direction == Direction::Encrypt {
        connection.copy_out(slot.dst_at + lengths.text, &mut tag[..tag_bytes]);
    }
    if !strips {
        return job.done(lengths.text);
    }
    match text.last_chunk().and_then(text_bytes) {
        Some(kept) => job.done(lengths.text - BLOCK_BYTES + kept),
        None => job.fail(JobError::BadPadding),
    }
}
