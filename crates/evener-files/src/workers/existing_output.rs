//! An existing output: what stands under a final name already, and whether it is the finished result of this run's keys.
//!
//! `is_finished`: what stands there -> time and length -> segment 0 of the encrypted side under the keys -> the first
//! bytes of the other side.

use std::io::IoSliceMut;

use evener_core::BLOCK_BYTES;
use rustix::fs::{FileType, Stat};
use zeroize::Zeroizing;

use super::armored_source;
use crate::armor::Armor;
use crate::error::{FileError, FormatError};
use crate::format::{Body, Cut, Layout, Recognized, SerialCipher};
use crate::input::source_file::SourceFile;
use crate::output::{OutputDir, mtime_of};
use crate::request::{Request, Task};
use crate::segments::{KeyTrial, START_BYTES, offset_and_len, opened_segment, read_header};
use crate::walk::Item;

/// Whether the finished result of `item` stands under its final name; what else stands there is an error. With
/// `force` nothing counts as finished, with `resume` time and length decide.
///
/// Comes before [`crate::segments::FileWork::open`], so that no key is derived for a file whose time or length does not fit.
pub(super) fn is_finished(
    request: &Request,
    item: &Item,
    source: &SourceFile,
    keys: &mut KeyTrial<'_, '_, '_>,
) -> Result<bool, FileError> {
    let OutputDir { is_new, .. } = &*item.dir;
    let Some(stat) = (if *is_new { None } else { item.dir.stat(&item.name)? }) else { return Ok(false) };
    let identity = |stat: &Stat| (stat.st_dev, stat.st_ino);
    if identity(&stat) == identity(&source.stat) {
        return Err(FileError::SameFile);
    }
    if request.options.force {
        return Ok(false);
    }
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(FileError::Exists);
    }
    let existing = item.dir.open_file(&item.name)?;
    let existing = if request.options.armor {
        // The text of another form than is asked for is not the finished result.
        match armored_source::dearmored(sealed_form(&request.task), existing, &item.dir, || false)? {
            binary if binary.named.is_some() => binary,
            _ => return Err(FileError::Exists),
        }
    } else {
        existing
    };
    let is_fit = mtime_of(&existing.stat) == mtime_of(&source.stat)
        && is_same_length(&request.task, source, &existing)?
        && (request.options.resume || do_keys_confirm(&request.task, source, &existing, keys)?);
    if is_fit { Ok(true) } else { Err(FileError::Exists) }
}

/// The text form of what is sealed.
const fn sealed_form(task: &Task) -> Option<Armor> {
    match task {
        Task::Encrypt(sealer) => sealer.armor(),
        Task::Decrypt(_) => None,
    }
}

/// Whether what stands there has the length that the input calls for.
fn is_same_length(task: &Task, source: &SourceFile, existing: &SourceFile) -> Result<bool, FileError> {
    match task {
        Task::Encrypt(sealer) => {
            let cut = sealer.cut_of(&existing.read_start(START_BYTES)?);
            Ok(existing.len() == cut.of_plain(source.len())?.cipher_bytes())
        }
        Task::Decrypt(opener) => {
            let cuts = read_header(source, |start, whole| opener.cuts(start, whole))?;
            let fits = |cut: &Cut| {
                cut.of_cipher(source.len()).is_ok_and(|layout| is_of_length(&layout, existing.len()))
            };
            Ok(cuts.iter().any(fits))
        }
    }
}

/// Whether `bytes` of plaintext may come out of a layout.
const fn is_of_length(layout: &Layout, bytes: u64) -> bool {
    let most = layout.plain_bytes();
    bytes == most || (!layout.plain_bytes_is_exact() && bytes < most && bytes + BLOCK_BYTES as u64 > most)
}

/// Whether the keys of this run show that one file is the other, encrypted.
fn do_keys_confirm(
    task: &Task,
    source: &SourceFile,
    existing: &SourceFile,
    keys: &mut KeyTrial<'_, '_, '_>,
) -> Result<bool, FileError> {
    let (bodies, cipher, plain) = match task {
        Task::Encrypt(sealer) => {
            let recognized = read_header(existing, |start, whole| sealer.recognize(start, whole));
            let mut bodies = Vec::new();
            for recognized in fitting(recognized)? {
                match recognized {
                    Recognized::IfOpens(body) => bodies.push(body),
                    Recognized::Named => return Ok(true),
                    Recognized::Unknown => return Err(FileError::UnknownRecipients),
                    Recognized::Other => return Ok(false),
                }
            }
            (bodies, existing, source)
        }
        Task::Decrypt(opener) => {
            let bodies = read_header(source, |start, whole| opener.open(start, whole));
            (fitting(bodies)?, source, existing)
        }
    };
    for body in bodies {
        if is_encrypted(&body, plain, cipher, keys)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a header gave; nothing where it is none for the keys.
fn fitting<T>(found: Result<Vec<T>, FileError>) -> Result<Vec<T>, FileError> {
    match found {
        Err(FileError::Format(error)) if !matches!(error, FormatError::Library(_)) => Ok(Vec::new()),
        found => found,
    }
}

/// Whether segment 0 of `cipher` opens under `body`, and what comes out is how `plain` begins.
fn is_encrypted(
    body: &Body,
    plain: &SourceFile,
    cipher: &SourceFile,
    keys: &mut KeyTrial<'_, '_, '_>,
) -> Result<bool, FileError> {
    let Ok(layout) = body.cut().of_cipher(cipher.len()) else { return Ok(false) };
    let segment = layout.segment(0);
    let (offset, bytes) = offset_and_len(&segment.cipher);
    let mut captured = vec![0; bytes];
    cipher.read(&mut [IoSliceMut::new(&mut captured)], offset)?;
    if let Some(serial) = body.as_serial() {
        return is_serial(serial, &captured, segment.last, plain);
    }
    let Some(job) = opened_segment(body, &captured, segment.last, keys)? else { return Ok(false) };
    let text = job.output();
    // Where more follows than the first segment, the lengths have been compared.
    let is_whole = !segment.last || text.len() as u64 == plain.len();
    let begins = is_whole && text.len() as u64 <= plain.len() && {
        let start = &mut captured[..text.len()];
        plain.read(&mut [IoSliceMut::new(start)], 0)?;
        start == text
    };
    keys.slots.push(job);
    Ok(begins)
}

/// Whether what comes out of the first bytes of a cipher that no driver has is how `plain` begins.
fn is_serial(
    cipher: &SerialCipher,
    captured: &[u8],
    is_whole: bool,
    plain: &SourceFile,
) -> Result<bool, FileError> {
    let (mut text, mut opened) = (cipher.begin()?, Zeroizing::new(Vec::new()));
    text.update(captured, &mut opened)?;
    if is_whole && text.finish(&mut opened).is_err() {
        return Ok(false);
    }
    let start = plain.read_start(opened.len())?;
    Ok(*start == **opened && (!is_whole || start.len() as u64 == plain.len()))
}
