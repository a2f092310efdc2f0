//! A span of neighbouring segments: read into slots and armed in one go, and lined up for one write.

use std::io::{IoSlice, IoSliceMut};

use evener_core::{BLOCK_BYTES, Direction, Job};

use super::job::{self, Block, arm};
use crate::error::FileError;
use crate::format::{Body, Segment};
use crate::input::bytes::Bytes;
use crate::segments::file_work::{FileWork, input_of};

/// Reads neighbouring segments into the slots of `jobs` and arms them; returns the bytes read.
pub(crate) fn read(
    work: &FileWork,
    segments: &[Segment],
    jobs: &mut [Box<Job<'_>>],
) -> Result<u64, FileError> {
    read_from(&work.source, (&work.body, work.direction), segments, jobs)
}

/// As [`read`], of any source.
pub(crate) fn read_from(
    source: &impl Bytes,
    (body, direction): (&Body, Direction),
    segments: &[Segment],
    jobs: &mut [Box<Job<'_>>],
) -> Result<u64, FileError> {
    let (offset, _) = input_of(direction, &segments[0]);
    let mut parts: Vec<_> = jobs
        .iter_mut()
        .zip(segments)
        .map(|(job, segment)| IoSliceMut::new(&mut job.space_mut()[..input_of(direction, segment).1]))
        .collect();
    let bytes = parts.iter().map(|part| part.len() as u64).sum();
    source.fill(&mut parts, offset)?;
    let blocks = blocks_before(source, (body, direction), segments, jobs)?;
    for ((job, segment), before) in jobs.iter_mut().zip(segments).zip(blocks) {
        let input_bytes = input_of(direction, segment).1;
        arm(body, direction, job, segment.index, segment.last, input_bytes, before)?;
    }
    Ok(bytes)
}

/// Lines up what all of `jobs` add to the output.
pub(crate) fn emit<'j>(
    work: &FileWork,
    first: u64,
    jobs: &'j mut [Box<Job<'_>>],
    parts: &mut Vec<IoSlice<'j>>,
) -> Result<(), FileError> {
    (first..).zip(jobs).try_for_each(|(index, job)| job::emit(&work.body, work.direction, job, index, parts))
}

/// For each segment the block of ciphertext before it, where the format decrypts with it; captured before
/// anything is decrypted in place.
fn blocks_before(
    source: &impl Bytes,
    (body, direction): (&Body, Direction),
    segments: &[Segment],
    jobs: &mut [Box<Job<'_>>],
) -> Result<Vec<Block>, FileError> {
    let mut blocks = vec![Block::default(); segments.len()];
    if direction == Direction::Encrypt || !body.is_chained() {
        return Ok(blocks);
    }
    if segments[0].index > 0 {
        let (offset, _) = input_of(direction, &segments[0]);
        source.fill(&mut [IoSliceMut::new(&mut blocks[0])], offset - BLOCK_BYTES as u64)?;
    }
    for ((job, segment), block) in jobs.iter_mut().zip(segments).zip(&mut blocks[1..]) {
        let end = input_of(direction, segment).1;
        block.copy_from_slice(&job.space_mut()[end - BLOCK_BYTES..end]);
    }
    Ok(blocks)
}
