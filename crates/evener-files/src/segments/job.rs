//! The job of one segment: what it is armed with, whether it went well, and what it adds to the output.

use std::io::IoSlice;
use std::ops::Range;

use evener_core::{BLOCK_BYTES, Direction, Job, Outcome};

use crate::error::{FileError, FormatError};
use crate::format::{Body, Iv, SegmentMac};

/// A block of ciphertext that some formats need from before a segment.
pub(crate) type Block = [u8; BLOCK_BYTES];

/// What the finished job of a segment adds to the output: its result and, at encryption, its tag, which is made here where the cipher makes none.
/// There is no other way from a job to an output, so that none writes what failed, or leaves a tag out.
pub(crate) fn emit<'j>(
    body: &Body,
    direction: Direction,
    job: &'j mut Job<'_>,
    segment: u64,
    parts: &mut Vec<IoSlice<'j>>,
) -> Result<(), FileError> {
    check(job, segment)?;
    let tag = match (direction, body.mac()) {
        (Direction::Encrypt, Some(mac)) => Some(authenticate(mac, job)),
        _ => None,
    };
    let job = &*job;
    parts.push(IoSlice::new(job.output()));
    match tag {
        Some(tag) => parts.push(IoSlice::new(&job.output_span()[tag])),
        None if direction == Direction::Encrypt && body.cut().tag_bytes() > 0 => {
            parts.push(IoSlice::new(job.tag()));
        }
        None => {}
    }
    Ok(())
}

/// Writes the tag of a segment that was encrypted behind it; returns where it stands.
fn authenticate(mac: &SegmentMac, job: &mut Job<'_>) -> Range<usize> {
    let (nonce, written) = (*job.iv(), job.output().len());
    let (cipher, rest) = job.space_mut().split_at_mut(written);
    mac.authenticate(&nonce, cipher, &mut rest[..mac.tag_bytes()]);
    written..written + mac.tag_bytes()
}

/// The failure of a job, as that of its file.
pub(crate) const fn check(job: &Job<'_>, segment: u64) -> Result<(), FileError> {
    match job.outcome() {
        Outcome::Failed(error) => Err(FileError::of_job(segment, error)),
        Outcome::Done { .. } | Outcome::Pending => Ok(()),
    }
}

/// Arms a job whose slot holds `input_bytes` of input, tag included; `before` is the block before it.
pub(crate) fn arm(
    body: &Body,
    direction: Direction,
    job: &mut Job<'_>,
    index: u64,
    last: bool,
    input_bytes: usize,
    before: Block,
) -> Result<(), FileError> {
    let iv = match body.iv(index, last)? {
        Iv::Known(iv) => iv,
        Iv::PreviousBlock => before,
    };
    let tag_bytes = match direction {
        Direction::Encrypt => 0,
        Direction::Decrypt => usize::try_from(body.cut().tag_bytes()).expect("a tag is short"),
    };
    let text_bytes = input_bytes - tag_bytes;
    let (text, tag) = job.space_mut()[..input_bytes].split_at(text_bytes);
    match body.mac() {
        Some(mac) if direction == Direction::Decrypt => {
            // Before the cipher sees it: CTR would make plaintext of anything.
            if !mac.is_authentic(&iv, text, tag) {
                return Err(FormatError::NotAuthentic { segment: index }.into());
            }
        }
        _ => {
            let mut given = Block::default();
            given[..tag_bytes].copy_from_slice(tag);
            job.set_tag(&given);
        }
    }
    job.arm(body.session(last).clone(), &iv, text_bytes);
    Ok(())
}
