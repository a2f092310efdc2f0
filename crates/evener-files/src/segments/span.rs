//! A span of neighbouring segments: read into slots and armed in one go, and lined up for one write.

use std::io::{IoSlice, IoSliceMut};

use evener_core::{BLOCK_BYTES, Direction, Job};

use super::job::{Block, arm, check, emit_one};
use crate::error::FileError;
use crate::format::Segment;
use crate::segments::file_work::FileWork;

/// Reads neighbouring segments into the slots of `jobs` and arms them; returns the bytes read.
pub(crate) fn read(
    work: &FileWork,
    segments: &[Segment],
    jobs: &mut [Box<Job<'_>>],
) -> Result<u64, FileError> {
    let (offset, _) = work.input(&segments[0]);
    let mut parts: Vec<_> = jobs
        .iter_mut()
        .zip(segments)
        .map(|(job, segment)| IoSliceMut::new(&mut job.space_mut()[..work.input(segment).1]))
        .collect();
    let bytes = parts.iter().map(|part| part.len() as u64).sum();
    work.source.read(&mut parts, offset)?;
    let blocks = blocks_before(work, segments, jobs, offset)?;
    for ((job, segment), before) in jobs.iter_mut().zip(segments).zip(blocks) {
        let input_bytes = work.input(segment).1;
        arm(&work.body, work.direction, job, segment.index, segment.last, input_bytes, before)?;
    }
    Ok(bytes)
}

/// Checks that all of `jobs` went well and lines up what they add to the output.
pub(crate) fn emit<'j>(
    work: &FileWork,
    first: u64,
    jobs: &'j [Box<Job<'_>>],
    parts: &mut Vec<IoSlice<'j>>,
) -> Result<(), FileError> {
    for (index, job) in (first..).zip(jobs) {
        check(job, index)?;
        emit_one(&work.body, work.direction, job, parts);
    }
    Ok(())
}

/// For each segment the block of ciphertext before it, where the format decrypts with it; captured before
/// anything is decrypted in place.
fn blocks_before(
    work: &FileWork,
    segments: &[Segment],
    jobs: &mut [Box<Job<'_>>],
    offset: u64,
) -> Result<Vec<Block>, FileError> {
    let mut blocks = vec![Block::default(); segments.len()];
    if work.direction == Direction::Encrypt || !work.body.is_chained() {
        return Ok(blocks);
    }
    if segments[0].index > 0 {
        work.source.read(&mut [IoSliceMut::new(&mut blocks[0])], offset - BLOCK_BYTES as u64)?;
    }
    for ((job, segment), block) in jobs.iter_mut().zip(segments).zip(&mut blocks[1..]) {
        let end = work.input(segment).1;
        block.copy_from_slice(&job.space_mut()[end - BLOCK_BYTES..end]);
    }
    Ok(blocks)
}
