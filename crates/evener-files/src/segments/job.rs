//! The job of one segment: what it is armed with, whether it went well, and what it adds to the output.

use std::io::IoSlice;

use evener_core::{BLOCK_BYTES, Direction, Job, Outcome};

use crate::error::FileError;
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
    parts.push(IoSlice::new(job.output()));
    if direction == Direction::Encrypt && body.cut().tag_bytes() > 0 {
        parts.push(IoSlice::new(job.tag()));
    }
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
        Direction::Decrypt => usize::try_from(body.cut().tag_bytes()).expect("a tag has 16 bytes"),
    };
    let text_bytes = input_bytes - tag_bytes;
    let mut tag = Block::default();
    tag[..tag_bytes].copy_from_slice(&job.room_mut()[text_bytes..input_bytes]);
    job.set_tag(&tag);
    job.arm(body.session(last).clone(), &iv, text_bytes);
    Ok(())
}
