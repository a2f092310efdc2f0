//! The reading end: the header of an input, and then its segments, one after the other, into free slots.

use std::io::{self, BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::mpsc::Receiver;

use evener::Cancel;
use evener_core::{Direction, Job};
use rustix::fs::{FileType, fstat};

use super::ends::open_source;
use crate::armor::{ARMOR_START_BYTES, Armor};
use crate::error::FileError;
use crate::format::{Body, Opened, Opener};
use crate::input::interruptible::{InterruptibleReader, read_error};
use crate::request::{Request, RequestError, Source, Task};
use crate::segments::job::{self, Block};
use crate::segments::{KeyTrial, START_BYTES, authenticates};

/// The input after its header was read (or made), in either direction.
pub(super) struct SegmentReader<'i> {
    pub(super) body: Body,
    pub(super) direction: Direction,
    /// What is written first.
    pub(super) header: Vec<u8>,
    input: Box<dyn Read + Send + 'i>,
}

/// A segment that has been read.
pub(super) struct ReadSegment<'m> {
    pub(super) job: Box<Job<'m>>,
    /// Length of its input.
    pub(super) bytes: usize,
    /// Last block of it.
    pub(super) block: Block,
}

impl<'i> SegmentReader<'i> {
    /// Makes or reads the header.
    pub(super) fn open(
        task: &Task,
        mut input: Box<dyn Read + Send + 'i>,
        keys: &mut KeyTrial<'_, '_, '_>,
    ) -> Result<Self, FileError> {
        match task {
            Task::Encrypt(sealer) => {
                let sealing = sealer.seal()?;
                let (body, header) = (sealing.body, sealing.header);
                Ok(Self { body, direction: Direction::Encrypt, header, input })
            }
            Task::Decrypt(opener) => {
                if let Some(armor) = opener.armor() {
                    input = without_armor(armor, input).map_err(read_error)?;
                }
                let (mut start, bodies) = open_start(opener, &mut input)?;
                let header_bytes = bodies.first().map_or(0, |body| body.cut().header_bytes());
                let header_bytes = usize::try_from(header_bytes).expect("a header is short");
                let mut rest = start.split_off(header_bytes.min(start.len()));
                let body =
                    choose(bodies, &mut rest, &mut input, keys)?.ok_or_else(|| opener.no_key_fits())?;
                let input = Box::new(Cursor::new(rest).chain(input));
                Ok(Self { body, direction: Direction::Decrypt, header: Vec::new(), input })
            }
        }
    }

    /// Whether each segment needs the one before to be worked on first.
    pub(super) fn is_chained(&self) -> bool {
        self.direction == Direction::Encrypt && self.body.is_chained()
    }

    /// Input that segment `index` has if another follows.
    pub(super) fn full_bytes(&self, index: u64) -> usize {
        let bytes = match self.direction {
            Direction::Encrypt => self.body.cut().full_plain_bytes(index),
            Direction::Decrypt => self.body.cut().full_cipher_bytes(index),
        };
        usize::try_from(bytes).expect("a segment fits a slot")
    }

    /// Reads a segment into a free slot; waits for one. `None` where no slot will come any more.
    pub(super) fn read<'m>(
        &mut self,
        free: &Receiver<Box<Job<'m>>>,
        index: u64,
    ) -> Result<Option<ReadSegment<'m>>, FileError> {
        let Ok(mut job) = free.recv() else { return Ok(None) };
        let full = self.full_bytes(index);
        let space = &mut job.space_mut()[..full];
        let bytes = read_full(&mut self.input, space)?;
        let block = space[..bytes].last_chunk().copied().unwrap_or_default();
        Ok(Some(ReadSegment { job, bytes, block }))
    }

    /// Reads more bytes where no slots are needed; none at the end.
    pub(super) fn read_part(&mut self, part: &mut [u8]) -> Result<usize, FileError> {
        read_full(&mut self.input, part)
    }

    /// Whether a segment is the last, given whether it is full and what came after it. Padding always stands
    /// in a segment that is not full.
    pub(super) fn is_last(&self, is_full: bool, next_bytes: usize) -> bool {
        let pads = self.direction == Direction::Encrypt && self.body.cut().is_padded();
        !is_full || (next_bytes == 0 && !pads)
    }

    pub(super) fn arm(
        &self,
        piece: &mut ReadSegment<'_>,
        index: u64,
        last: bool,
        before: Block,
    ) -> Result<(), FileError> {
        if last && self.direction == Direction::Decrypt {
            self.body.cut().last_plain_bytes(index, piece.bytes as u64)?;
        }
        job::arm(&self.body, self.direction, &mut piece.job, index, last, piece.bytes, before)
    }
}

/// The first bytes of a stream and what they open.
fn open_start(opener: &Opener, input: &mut dyn Read) -> Result<(Vec<u8>, Vec<Body>), FileError> {
    let (mut start, mut wanted) = (Vec::new(), START_BYTES);
    loop {
        let old = start.len();
        start.resize(wanted, 0);
        let came = read_full(input, &mut start[old..])?;
        start.truncate(old + came);
        match opener.open(&start, start.len() < wanted)? {
            Opened::Ready(bodies) => return Ok((start, bodies)),
            Opened::NeedMore { start_bytes } => wanted = start_bytes.max(2 * wanted),
        }
    }
}

/// The candidate under which segment 0 authenticates; `rest` holds what was read beyond the header and grows
/// as far as a candidate needs.
fn choose(
    mut candidates: Vec<Body>,
    rest: &mut Vec<u8>,
    input: &mut dyn Read,
    keys: &mut KeyTrial<'_, '_, '_>,
) -> Result<Option<Body>, FileError> {
    if candidates.len() == 1 {
        return Ok(candidates.pop());
    }
    for body in candidates {
        let full = usize::try_from(body.cut().full_cipher_bytes(0)).expect("a segment fits a slot");
        // One byte more shows whether another segment follows.
        let old = rest.len();
        rest.resize(old.max(full + 1), 0);
        let came = read_full(input, &mut rest[old..])?;
        rest.truncate(old + came);
        let last = rest.len() <= full;
        if authenticates(&body, &rest[..full.min(rest.len())], last, keys)? {
            return Ok(Some(body));
        }
    }
    Ok(None)
}

/// Reads until `space` is full or the input ends.
fn read_full(input: &mut dyn Read, space: &mut [u8]) -> Result<usize, FileError> {
    let mut came = 0;
    while came < space.len() {
        match input.read(&mut space[came..]) {
            Ok(0) => break,
            Ok(more) => came += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(read_error(error)),
        }
    }
    Ok(came)
}

/// The binary bytes of an input that may be armored.
fn without_armor<'i>(
    armor: Armor,
    mut input: Box<dyn Read + Send + 'i>,
) -> io::Result<Box<dyn Read + Send + 'i>> {
    let mut start = Vec::new();
    input.by_ref().take(ARMOR_START_BYTES as u64).read_to_end(&mut start)?;
    let is_armored = armor.is_armored(&start);
    let input = Cursor::new(start).chain(input);
    if is_armored { armor.dearmored(BufReader::new(input)) } else { Ok(Box::new(input)) }
}

/// Opens the one input of a request, with its name. A read of it that waits ends with any of `causes`.
pub(crate) fn open_input(
    request: &Request,
    causes: &[&Cancel],
) -> Result<(PathBuf, Box<dyn Read + Send>), RequestError> {
    let path = match request.sources.as_slice() {
        [Source::Stdin] => None,
        [Source::Path(path)] => Some(path),
        sources => {
            let has_stdin = sources.contains(&Source::Stdin);
            return Err(RequestError::OneInput(if has_stdin { "input" } else { "output" }));
        }
    };
    let fd = open_source(path.map(PathBuf::as_path))?;
    let is_directory =
        fstat(&fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
    if is_directory {
        return Err(RequestError::OneInput(if path.is_some() { "output" } else { "input" }));
    }
    let name = path.cloned().unwrap_or_else(|| "-".into());
    Ok((name, Box::new(InterruptibleReader::new(fd, causes))))
}
