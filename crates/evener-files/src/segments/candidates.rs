//! Candidates: the keys that a header leaves open, and the one under which segment 0 authenticates.

use std::io::IoSliceMut;

use evener::Caller;
use evener_core::{Direction, Job, JobError, Outcome};

use super::job::{Block, arm};
use crate::error::{FileError, FormatError};
use crate::format::{Body, Opened};
use crate::input::bytes::Bytes;

/// Bytes of a file that are looked at first for its header. Longer headers (many recipients) cost a second
/// look.
pub(crate) const START_BYTES: usize = 2_048;

/// What keys are tried with: who runs the job of segment 0, and jobs that are free.
pub(crate) struct KeyTrial<'t, 'c, 'm> {
    pub(crate) caller: &'t mut Caller<'c, 'm>,
    pub(crate) slots: &'t mut Vec<Box<Job<'m>>>,
}

/// Lets `read` have as much of the start of a source as it asks for; the second argument says that it is all.
pub(crate) fn read_header<T>(
    source: &impl Bytes,
    read: impl Fn(&[u8], bool) -> Result<Opened<T>, FormatError>,
) -> Result<Vec<T>, FileError> {
    let mut wanted = START_BYTES;
    loop {
        let start = source.start(wanted)?;
        match read(&start, start.len() as u64 == source.count())? {
            Opened::Ready(found) => return Ok(found),
            Opened::NeedMore { start_bytes } => wanted = start_bytes.max(2 * wanted),
        }
    }
}

/// The candidate under which segment 0 authenticates, `None` where there is none; with a single one that is found out later.
pub(crate) fn choose(
    mut candidates: Vec<Body>,
    source: &impl Bytes,
    keys: &mut KeyTrial<'_, '_, '_>,
) -> Result<Option<Body>, FileError> {
    if candidates.len() == 1 {
        return Ok(candidates.pop());
    }
    let mut captured = Vec::new();
    for body in candidates {
        let Ok(layout) = body.cut().of_cipher(source.count()) else { continue };
        let segment = layout.segment(0);
        let (offset, bytes) = offset_and_len(&segment.cipher);
        // One reading serves all candidates that need no more than it.
        if captured.len() < bytes {
            captured.resize(bytes, 0);
            source.fill(&mut [IoSliceMut::new(&mut captured)], offset)?;
        }
        if authenticates(&body, &captured[..bytes], segment.last, keys)? {
            return Ok(Some(body));
        }
    }
    Ok(None)
}

/// Whether segment 0 authenticates under a candidate.
pub(crate) fn authenticates(
    body: &Body,
    cipher: &[u8],
    last: bool,
    keys: &mut KeyTrial<'_, '_, '_>,
) -> Result<bool, FileError> {
    let opened = opened_segment(body, cipher, last, keys)?;
    let authenticates = opened.is_some();
    keys.slots.extend(opened);
    Ok(authenticates)
}

/// The job that opened segment 0 under a candidate, for its output to be compared; who has it puts it back into
/// the slots. `None` where the segment does not open.
fn opened_segment<'m>(
    body: &Body,
    cipher: &[u8],
    last: bool,
    keys: &mut KeyTrial<'_, '_, 'm>,
) -> Result<Option<Box<Job<'m>>>, FileError> {
    let mut job = keys.slots.pop().expect("a file is opened while a slot is free");
    let mut is_ready = job.space_mut().len() >= cipher.len() && cipher.len() as u64 >= body.cut().tag_bytes();
    if is_ready {
        job.space_mut()[..cipher.len()].copy_from_slice(cipher);
        let armed = arm(body, Direction::Decrypt, &mut job, 0, last, cipher.len(), Block::default());
        is_ready = armed.is_ok();
    }
    if !is_ready {
        keys.slots.push(job);
        return Ok(None);
    }
    let mut burst = vec![job];
    keys.caller.crypt(&mut burst);
    let outcome = burst[0].outcome();
    if matches!(outcome, Outcome::Done { .. }) {
        return Ok(burst.pop());
    }
    keys.slots.append(&mut burst);
    match outcome {
        Outcome::Failed(JobError::NotAuthentic | JobError::BadPadding | JobError::BadLength) => Ok(None),
        Outcome::Failed(error) => Err(FileError::of_job(0, error)),
        Outcome::Done { .. } | Outcome::Pending => Ok(None),
    }
}

pub(crate) fn offset_and_len(range: &std::ops::Range<u64>) -> (u64, usize) {
    let bytes = usize::try_from(range.end - range.start).expect("a segment fits a slot");
    (range.start, bytes)
}
