//! Files of ciphers that no driver has: one thread takes each from its first byte to its last.

use std::io::{IoSlice, IoSliceMut};

use zeroize::Zeroizing;

use super::worker::Worker;
use crate::error::FileError;
use crate::format::{Segment, SerialCipher};
use crate::output::{CompleteDraft, Origin, write_at};
use crate::segments::FileWork;
use crate::walk::Item;

/// Works on one file.
pub(super) fn run(worker: &mut Worker<'_, '_, '_>, item: Item, work: &FileWork) {
    let cipher = work.body.as_serial().expect("the pool has looked");
    let finished = crypt(worker, &item, work, cipher);
    worker.finished(item, finished);
}

fn crypt(
    worker: &Worker<'_, '_, '_>,
    item: &Item,
    work: &FileWork,
    cipher: &SerialCipher,
) -> Result<(CompleteDraft, Origin), FileError> {
    work.source.announce();
    let draft = work.draft(item)?;
    write_at(&draft.file, &mut [IoSlice::new(&work.header)], 0)?;
    let (mut text, mut offset) = (cipher.begin()?, work.header.len() as u64);
    let (mut part, mut output) = (Zeroizing::new(Vec::new()), Zeroizing::new(Vec::new()));
    for segment in (0..work.layout.segment_count()).map(|index| work.layout.segment(index)) {
        let bytes = read_input(worker, work, &segment, &mut part)?;
        output.clear();
        text.update(&part, &mut output)?;
        write_at(&draft.file, &mut [IoSlice::new(&output)], offset)?;
        offset += output.len() as u64;
        worker.run.progress.add_bytes(bytes as u64);
    }
    output.clear();
    text.finish(&mut output)?;
    write_at(&draft.file, &mut [IoSlice::new(&output)], offset)?;
    let bytes_out = offset + output.len() as u64;
    Ok((work.complete(draft, item)?, Origin { bytes_out, ..work.origin() }))
}

/// Reads what a segment takes in, and says how long that is; an error where the run is to stop.
pub(super) fn read_input(
    worker: &Worker<'_, '_, '_>,
    work: &FileWork,
    segment: &Segment,
    part: &mut Vec<u8>,
) -> Result<usize, FileError> {
    if worker.run.is_stopped() {
        return Err(FileError::Stopped);
    }
    let (from, bytes) = work.input(segment);
    part.resize(bytes, 0);
    work.source.read(&mut [IoSliceMut::new(part)], from)?;
    Ok(bytes)
}
