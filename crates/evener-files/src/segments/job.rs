//! The job of one segment: what it is armed with, whether it went well, and what it adds to the output.

use std::io::IoSlice;

use evener_core::{BLOCK_BYTES, Direction, Job, Outcome};

use crate::error::{FileError, FormatError};
use crate::format::{Body, Iv};

/// A block of ciphertext that some formats need from before a segment.
pub(crate) type Block = [u8; BLOCK_BYTES];

/// What one finished job adds to the output: its result and, at encryption, its tag.
pub(crate) fn emit_one<'j>(
    body: &Body,
    direction: Direction,
    job: &'j Job<'_>,
    parts: &mut Vec<IoSlice<'j>>,
) {
    let output = job.output();
    parts.push(IoSlice::new(output));
    match (direction, body.mac()) {
        (Direction::Encrypt, Some(mac)) => {
            let end = output.len() + mac.tag_bytes();
            parts.push(IoSlice::new(&job.output_span()[output.len()..end]));
        }
        (Direction::Encrypt, None) if body.cut().tag_bytes() > 0 => parts.push(IoSlice::new(job.tag())),
        _ => {}
    }
}

/// Writes the tag of a segment that was encrypted behind it, where the cipher makes none.
pub(crate) fn authenticate(body: &Body, direction: Direction, job: &mut Job<'_>) {
    let (Direction::Encrypt, Some(mac), Outcome::Done { written }) = (direction, body.mac(), job.outcome())
    else {
        return;
    };
    let nonce = *job.iv();
    let (cipher, rest) = job.space_mut().split_at_mut(written);
    mac.authenticate(&nonce, cipher, &mut rest[..mac.tag_bytes()]);
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
