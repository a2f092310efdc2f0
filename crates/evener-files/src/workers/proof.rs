//! A proof from what two files hold: whether one is the other, encrypted under this run's keys.
//!
//! header of the encrypted side -> the candidates that its keys give -> segment 0 under each -> all segments, compared with the plaintext.

use std::io::IoSliceMut;

use evener_core::{BLOCK_BYTES, Direction};
use zeroize::Zeroizing;

use super::serial::read_input;
use super::worker::Worker;
use crate::error::{FileError, FormatError};
use crate::format::{Body, Layout, Recognized, Segment, SerialCipher};
use crate::input::source_file::SourceFile;
use crate::request::Task;
use crate::segments::{FileWork, KeyTrial, authenticates, job, offset_and_len, read_header, span};

/// What was found out about an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// One file is the other, whole.
    Same,
    /// An output under the key that seals, of something else.
    OfOtherContents,
    /// Nothing that this run's keys made, or nothing that shows it.
    Other,
    /// Perhaps: nothing at hand opens it.
    Unseen,
}

/// Compares a source with an output that stands there.
pub(super) fn prove(
    worker: &mut Worker<'_, '_, '_>,
    source: &SourceFile,
    existing: &SourceFile,
) -> Result<Proof, FileError> {
    let Some(bodies) = bodies(&worker.run.request.task, source, existing)? else { return Ok(Proof::Unseen) };
    let is_encryption = matches!(worker.run.request.task, Task::Encrypt(_));
    let (plain, cipher) = if is_encryption { (source, existing) } else { (existing, source) };
    let mut proof = Proof::Other;
    for body in bodies {
        let Ok(layout) = body.cut().of_cipher(cipher.len()) else { continue };
        if body.as_serial().is_none() && !opens(worker, &body, &layout, cipher)? {
            continue;
        }
        if is_of_length(&layout, plain.len()) {
            match compare(worker, &body, layout, Some(plain), cipher) {
                Ok(true) => return Ok(Proof::Same),
                Ok(false) | Err(FileError::Format(_)) => {}
                Err(error) => return Err(error),
            }
        }
        // Without tags anything opens, and a plaintext may be of any origin.
        if is_encryption && body.cut().tag_bytes() > 0 {
            proof = Proof::OfOtherContents;
        }
    }
    Ok(proof)
}

/// Whether the first segments of both are the same under this run's keys.
pub(super) fn does_key_fit(
    worker: &mut Worker<'_, '_, '_>,
    source: &SourceFile,
    existing: &SourceFile,
) -> Result<bool, FileError> {
    let Some(bodies) = bodies(&worker.run.request.task, source, existing)? else { return Ok(false) };
    let (plain, cipher) = match worker.run.request.task {
        Task::Encrypt(_) => (source, existing),
        Task::Decrypt(_) => (existing, source),
    };
    for body in bodies {
        let Ok(layout) = body.cut().of_cipher(cipher.len()) else { continue };
        let work = work_on(&body, layout, cipher)?;
        let begins = match body.as_serial() {
            Some(serial) => is_serial_same(worker, serial, &work, Some(plain), 1),
            None => is_span_same(worker, &work, Some(plain), 0, 1),
        };
        match begins {
            Ok(true) => return Ok(true),
            Ok(false) | Err(FileError::Format(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// What may be the body of the encrypted side: nothing where it is under none of this run's keys, `None` where nothing at hand tells.
fn bodies(task: &Task, source: &SourceFile, existing: &SourceFile) -> Result<Option<Vec<Body>>, FileError> {
    let sealer = match task {
        // A source that no key opens is an error of that source, whatever stands at its output.
        Task::Decrypt(opener) => {
            return read_header(source, |start, whole| opener.open(start, whole)).map(Some);
        }
        Task::Encrypt(sealer) => sealer,
    };
    let recognized = match read_header(existing, |start, whole| sealer.recognize(start, whole)) {
        Err(FileError::Format(error)) if !matches!(error, FormatError::Library(_)) => {
            return Ok(Some(Vec::new()));
        }
        recognized => recognized?,
    };
    let mut bodies = Vec::new();
    for recognized in recognized {
        match recognized {
            Recognized::IfOpens(body) => bodies.push(body),
            // The tags of SSH keys name who reads it, not what it holds.
            Recognized::Named | Recognized::Unknown => return Ok(None),
            Recognized::Other => {}
        }
    }
    Ok(Some(bodies))
}

/// Whether segment 0 opens under a body.
fn opens(
    worker: &mut Worker<'_, '_, '_>,
    body: &Body,
    layout: &Layout,
    cipher: &SourceFile,
) -> Result<bool, FileError> {
    let segment = layout.segment(0);
    let (offset, bytes) = offset_and_len(&segment.cipher);
    let mut captured = vec![0; bytes];
    cipher.read(&mut [IoSliceMut::new(&mut captured)], offset)?;
    let keys = &mut KeyTrial { caller: &mut worker.caller, slots: &mut worker.slots };
    authenticates(body, &captured, segment.last, keys)
}

/// Whether `bytes` of plaintext may come out of a layout.
const fn is_of_length(layout: &Layout, bytes: u64) -> bool {
    let most = layout.plain_bytes();
    bytes == most || (!layout.plain_bytes_is_exact() && bytes < most && bytes + BLOCK_BYTES as u64 > most)
}

/// Whether all of `cipher` is `plain`; without one, whether it opens at all.
///
/// # Errors
///
/// As of a decryption, where `cipher` does not open.
pub(super) fn compare(
    worker: &mut Worker<'_, '_, '_>,
    body: &Body,
    layout: Layout,
    plain: Option<&SourceFile>,
    cipher: &SourceFile,
) -> Result<bool, FileError> {
    let work = work_on(body, layout, cipher)?;
    let count = work.layout.segment_count();
    let mut first = 0;
    if let Some(serial) = body.as_serial() {
        if !is_serial_same(worker, serial, &work, plain, count)? {
            return Ok(false);
        }
        first = count;
    }
    while first < count {
        if worker.run.is_stopped() {
            return Err(FileError::Stopped);
        }
        let wanted = worker.run.plan.slots_per_span().min(worker.slots.len()) as u64;
        let end = count.min(first + wanted.max(1));
        if !is_span_same(worker, &work, plain, first, end)? {
            return Ok(false);
        }
        first = end;
    }
    plain.map_or(Ok(()), SourceFile::check_unchanged)?;
    cipher.check_unchanged()?;
    Ok(true)
}

/// The work of decrypting `cipher`.
fn work_on(body: &Body, layout: Layout, cipher: &SourceFile) -> Result<FileWork, FileError> {
    let source = cipher.share().map_err(FileError::io("read"))?;
    let (body, direction, header) = (body.clone(), Direction::Decrypt, Vec::new());
    Ok(FileWork { source, body, layout, direction, header, armor: None, replaces: false, stamp: None })
}

/// Whether segments `first..end` are what `plain` holds there.
fn is_span_same(
    worker: &mut Worker<'_, '_, '_>,
    work: &FileWork,
    plain: Option<&SourceFile>,
    first: u64,
    end: u64,
) -> Result<bool, FileError> {
    let span: Vec<_> = (first..end).map(|index| work.layout.segment(index)).collect();
    let mut jobs = worker.slots.split_off(worker.slots.len() - span.len());
    let mut held = vec![0; worker.run.plan.slot_bytes];
    let compared = span::read(work, &span, &mut jobs).and_then(|bytes| {
        worker.caller.crypt(&mut jobs);
        worker.run.progress.add_bytes(bytes);
        for (job, segment) in jobs.iter().zip(&span) {
            job::check(job, segment.index)?;
            if let Some(plain) = plain {
                if !stands_at(plain, segment, job.output(), &mut held)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    });
    worker.slots.append(&mut jobs);
    compared
}

/// Whether the first `most` segments of a cipher that no driver has are what `plain` begins with; where these are all, whether it ends there.
fn is_serial_same(
    worker: &Worker<'_, '_, '_>,
    serial: &SerialCipher,
    work: &FileWork,
    plain: Option<&SourceFile>,
    most: u64,
) -> Result<bool, FileError> {
    let (mut text, mut offset, count) = (serial.begin()?, 0, work.layout.segment_count());
    let (mut part, mut opened) = (Vec::new(), Zeroizing::new(Vec::new()));
    let is_same = |opened: &[u8], offset: u64| -> Result<bool, FileError> {
        let Some(plain) = plain else { return Ok(true) };
        if offset + opened.len() as u64 > plain.len() {
            return Ok(false);
        }
        let mut held = Zeroizing::new(vec![0; opened.len()]);
        plain.read(&mut [IoSliceMut::new(&mut held)], offset)?;
        Ok(**held == *opened)
    };
    for segment in (0..count.min(most)).map(|index| work.layout.segment(index)) {
        let bytes = read_input(worker, work, &segment, &mut part)?;
        opened.clear();
        text.update(&part, &mut opened)?;
        worker.run.progress.add_bytes(bytes as u64);
        if !is_same(&opened, offset)? {
            return Ok(false);
        }
        offset += opened.len() as u64;
    }
    if most < count {
        return Ok(true);
    }
    opened.clear();
    text.finish(&mut opened)?;
    let ends_at = offset + opened.len() as u64;
    Ok(is_same(&opened, offset)? && plain.is_none_or(|plain| plain.len() == ends_at))
}

/// Whether `plain` holds `text` where `segment` says, and ends there where that is the last one.
fn stands_at(plain: &SourceFile, segment: &Segment, text: &[u8], held: &mut [u8]) -> Result<bool, FileError> {
    let ends_at = segment.plain.start + text.len() as u64;
    if ends_at > plain.len() || (segment.last && ends_at != plain.len()) {
        return Ok(false);
    }
    let held = &mut held[..text.len()];
    plain.read(&mut [IoSliceMut::new(held)], segment.plain.start)?;
    Ok(held == text)
}
