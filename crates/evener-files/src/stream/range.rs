//! A part of a file: the segments that hold it are opened, and no others but the last.

use std::io::IoSlice;

use evener::Caller;
use evener_core::Job;

use super::output::Output;
use crate::error::{FileError, FormatError};
use crate::input::source_file::SourceFile;
use crate::request::{Part, Request, Task};
use crate::segments::OpenedSegments;

/// Opens `source` and writes the part of its plaintext to `output`; returns the bytes of input that were read.
pub(super) fn write<'m>(
    request: &Request,
    source: SourceFile,
    part: Part,
    caller: &mut Caller<'_, 'm>,
    slots: Vec<Box<Job<'m>>>,
    output: &mut Output<'_>,
) -> Result<u64, FileError> {
    let Task::Decrypt(opener) = &request.task else {
        return Err(FormatError::Unsupported("a part of a file that is to be encrypted".into()).into());
    };
    let mut segments = OpenedSegments::new(opener, source, slots, caller)?;
    let bytes = segments.text_bytes();
    let range = part.within(bytes).ok_or(FileError::NoSuchPart { bytes })?;
    segments.each_piece(&range, caller, |piece| output.write(&mut [IoSlice::new(piece)]))?;
    segments.source.check_unchanged()?;
    Ok(segments.read_bytes)
}
