//! A part of a file: the segments that hold it are opened, and no others but the last.
//!
//! `input -> header -> body -> segments of the range, span by span -> checked -> their part of the range -> output`. The last segment is
//! opened first, for only it shows that the file was not cut off.

use std::io::IoSlice;
use std::ops::Range;

use evener::Caller;
use evener_core::Job;

use super::output::Output;
use crate::armor::ARMOR_START_BYTES;
use crate::error::{FileError, FormatError};
use crate::input::source_file::SourceFile;
use crate::request::{Part, Request};
use crate::segments::{FileWork, KeyTrial, job, span};

/// Opens `source` and writes the part of its plaintext to `output`; returns the bytes of input that were read.
pub(super) fn write<'m>(
    request: &Request,
    source: SourceFile,
    part: Part,
    caller: &mut Caller<'_, 'm>,
    slots: &mut Vec<Box<Job<'m>>>,
    output: &mut Output<'_>,
) -> Result<u64, FileError> {
    if request.is_armored(&source.read_start(ARMOR_START_BYTES)?) {
        let what = "a part of an armored file, in which no segment lies at a known place";
        return Err(FormatError::Unsupported(what.into()).into());
    }
    let work = FileWork::open(request, source, &mut KeyTrial { caller, slots })?;
    if work.body.as_serial().is_some() {
        let what = "a part of a file in a cipher that goes from its first byte to its last";
        return Err(FormatError::Unsupported(what.into()).into());
    }
    let last = work.layout.segment_count() - 1;
    let (text_bytes, mut total) = open_last(&work, last, caller, slots)?;
    let range = part.within(text_bytes).ok_or(FileError::NoSuchPart { bytes: text_bytes })?;
    let mut index = work.layout.index_of(range.start);
    while range.start < range.end && index <= last {
        let first = work.layout.segment(index);
        if first.plain.start >= range.end {
            break;
        }
        let end = (index + slots.len() as u64).min(last + 1).min(work.layout.index_of(range.end - 1) + 1);
        let segments: Vec<_> = (index..end).map(|index| work.layout.segment(index)).collect();
        let mut jobs = slots.split_off(slots.len() - segments.len());
        let written = span::read(&work, &segments, &mut jobs).and_then(|bytes| {
            caller.crypt(&mut jobs);
            for (job, segment) in jobs.iter().zip(&segments) {
                job::check(job, segment.index)?;
                let text = job.output();
                output.write(&mut [IoSlice::new(&text[overlap(&range, segment.plain.start, text.len())])])?;
            }
            Ok(bytes)
        });
        slots.append(&mut jobs);
        total += written?;
        index = end;
    }
    work.source.check_unchanged()?;
    Ok(total)
}

/// Opens the last segment; returns the length of the whole plaintext, which a padded one shows only here, and the bytes read.
fn open_last<'m>(
    work: &FileWork,
    last: u64,
    caller: &mut Caller<'_, 'm>,
    slots: &mut Vec<Box<Job<'m>>>,
) -> Result<(u64, u64), FileError> {
    let segments = [work.layout.segment(last)];
    let mut jobs = slots.split_off(slots.len() - 1);
    let opened = span::read(work, &segments, &mut jobs).and_then(|bytes| {
        caller.crypt(&mut jobs);
        job::check(&jobs[0], last)?;
        Ok((segments[0].plain.start + jobs[0].output().len() as u64, bytes))
    });
    slots.append(&mut jobs);
    opened
}

/// The bytes of a text of `bytes` at `start` that lie in `range`.
fn overlap(range: &Range<u64>, start: u64, bytes: usize) -> Range<usize> {
    let within = |place: u64| usize::try_from(place.saturating_sub(start)).unwrap_or(usize::MAX).min(bytes);
    within(range.start)..within(range.end)
}
