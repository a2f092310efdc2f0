//! What stands in an anchor, eleven words: magic, version, the five numbers of the shape, a number drawn at random in two words, the system's number of the
//! segment, and a check sum over all of these. A process that may write the file may write anything: whatever is not whole says nothing.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::{pread, pwrite, retry_on_intr};

use crate::layout::{Header, MAGIC, Shape, VERSION};

/// What an anchor says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) shape: [u32; 5],
    /// Drawn at random, and repeated in the segment.
    pub(super) number: [u32; 2],
    /// The system's number of the segment.
    pub(super) segment: i32,
}

/// What a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Segment(Anchor),
    OtherLayout {
        version: u32,
    },
    /// It is empty, cut, or written by halves.
    Nothing,
}

/// A segment as an anchor of any layout names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// Drawn at random.
    pub(super) number: [u32; 2],
    /// The system's.
    pub(super) segment: i32,
}

/// The segment that a file with these words names, where they are whole.
pub(super) fn named(words: &[u32; WORDS]) -> Option<Named> {
    let [magic, .., high, low, segment, check] = *words;
    let is_whole = magic == MAGIC && check == sum(&words[..WORDS - 1]);
    is_whole.then_some(Named { number: [high, low], segment: i32::from_ne_bytes(segment.to_ne_bytes()) })
}

/// What a file with these words says of a segment of this shape.
pub(super) fn parse(words: &[u32; WORDS], shape: Shape) -> Said {
    let [magic, version, rest @ ..] = words;
    match (*magic, *version) {
        (MAGIC, VERSION) => {}
        (MAGIC, version) => return Said::OtherLayout { version },
        _ => return Said::Nothing,
    }
    let [modules, permits, places, queue, classes, high, low, segment, check] = *rest;
    let found = [modules, permits, places, queue, classes];
    if check != sum(&words[..WORDS - 1]) {
        return Said::Nothing;
    }
    if found != shape.words() {
        return Said::OtherLayout { version: *version };
    }
    Said::Segment(Anchor {
        shape: found,
        number: [high, low],
        segment: i32::from_ne_bytes(segment.to_ne_bytes()),
    })
}

/// Writes what `anchor` says, as one piece.
pub(super) fn write(file: BorrowedFd<'_>, anchor: &Anchor) -> io::Result<()> {
    let mut words = [0; WORDS];
    words[..2].copy_from_slice(&[MAGIC, VERSION]);
    words[2..7].copy_from_slice(&anchor.shape);
    words[7..9].copy_from_slice(&anchor.number);
    words[9] = u32::from_ne_bytes(anchor.segment.to_ne_bytes());
    words[10] = sum(&words[..WORDS - 1]);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    match retry_on_intr(|| pwrite(file, &bytes, 0))? {
        BYTES => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Reads a file's words; those that it does not have are 0.
pub(super) fn read(file: BorrowedFd<'_>) -> io::Result<[u32; WORDS]> {
    let mut bytes = [0; BYTES];
    let count = retry_on_intr(|| pread(file, &mut bytes, 0))?;
    bytes[count..].fill(0);
    let mut words = [0; WORDS];
    for (word, part) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_ne_bytes([part[0], part[1], part[2], part[3]]);
    }
    Ok(words)
}

/// FNV-1a.
fn sum(words: &[u32]) -> u32 {
    let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
    bytes.fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The first words of a segment.
pub(super) fn header(anchor: &Anchor) -> [u32; HEADER] {
    let mut words = [0; HEADER];
    words[Header::Magic as usize] = MAGIC;
    words[Header::Version as usize] = VERSION;
    words[Header::Shape as usize..][..5].copy_from_slice(&anchor.shape);
    words[Header::Number as usize..][..2].copy_from_slice(&anchor.number);
    words
}

const WORDS: usize = 11;
/// Bytes of a file that says all.
pub(super) const BYTES: usize = WORDS * 4;
/// Words at the beginning of a segment that repeat what the anchor says.
pub(super) const HEADER: usize = 10;
