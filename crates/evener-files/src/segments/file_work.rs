//! From a source file to segments that can be worked on, in both directions alike.

use std::io::IoSliceMut;

use evener::Caller;
use evener_core::{Direction, Job, JobError, Outcome};

use crate::error::{FileError, FormatError};
use crate::format::{Body, Iv, Layout, Opened, Segment};
use crate::input::source_file::SourceFile;
use crate::output::{Draft, Origin};
use crate::request::Task;
use crate::segments::span::{self, Block};
use crate::walk::tree::Item;

/// Bytes of a file that are looked at first for its header. Longer headers (many recipients) cost a second
/// look.
pub(crate) const START_BYTES: usize = 2_048;

/// A source with everything that follows from it: how it is cut, and what each segment's job is armed with.
pub(crate) struct Work {
    pub(crate) source: SourceFile,
    pub(crate) body: Body,
    pub(crate) layout: Layout,
    pub(crate) direction: Direction,
    /// What is written before segment 0.
    pub(crate) header: Vec<u8>,
}

impl Work {
    /// Reads or makes the header of a source. `slot` is room to try keys in.
    pub(crate) fn open<'m>(
        task: &Task,
        source: SourceFile,
        caller: &mut Caller<'_, 'm>,
        slot: &mut Vec<Box<Job<'m>>>,
    ) -> Result<Self, FileError> {
        match task {
            Task::Encrypt(sealer) => {
                let sealing = sealer.seal()?;
                let layout = sealing.body.cut().of_plain(source.len())?;
                let (body, header) = (sealing.body, sealing.header);
                Ok(Self { source, body, layout, direction: Direction::Encrypt, header })
            }
            Task::Decrypt(opener) => {
                let candidates = read_header(&source, |start, whole| opener.open(start, whole))?;
                let body = choose(candidates, &source, caller, slot)?;
                let layout = body.cut().of_cipher(source.len())?;
                Ok(Self { source, body, layout, direction: Direction::Decrypt, header: Vec::new() })
            }
        }
    }

    /// Where a segment's input lies in the source: offset and length.
    pub(crate) fn input(&self, segment: &Segment) -> (u64, usize) {
        range(match self.direction {
            Direction::Encrypt => &segment.plain,
            Direction::Decrypt => &segment.cipher,
        })
    }

    /// Where a segment's output starts.
    pub(crate) fn output_offset(&self, segment: &Segment) -> u64 {
        match self.direction {
            Direction::Encrypt => segment.cipher.start,
            Direction::Decrypt => segment.plain.start,
        }
    }

    /// Whether segments must be encrypted one after the other.
    pub(crate) fn is_chained(&self) -> bool {
        self.direction == Direction::Encrypt && is_chained(&self.body)
    }

    /// Length of the output as far as it is known beforehand.
    pub(crate) fn bytes_out(&self) -> u64 {
        match self.direction {
            Direction::Encrypt => self.layout.cipher_bytes(),
            Direction::Decrypt => self.layout.plain_bytes(),
        }
    }

    /// A draft for the output.
    pub(crate) fn draft(&self, item: &Item, force: bool) -> Result<Draft, FileError> {
        Draft::create(&item.dir, &item.name, crate::output::mode_of(&self.source.stat), force)
    }

    /// What is to be said of the file when it is done.
    pub(crate) fn origin(&self, item: &Item) -> Origin {
        Origin { path: item.source.clone(), bytes_in: self.source.len(), bytes_out: self.bytes_out() }
    }
}

/// Whether each segment needs the ciphertext of the one before.
pub(crate) fn is_chained(body: &Body) -> bool {
    body.iv(1, false) == Ok(Iv::PreviousBlock)
}

/// Lets `read` have as much of the start of a source as it asks for; the second argument says that it is all.
pub(crate) fn read_header<T>(
    source: &SourceFile,
    read: impl Fn(&[u8], bool) -> Result<Opened<T>, FormatError>,
) -> Result<Vec<T>, FileError> {
    let mut wanted = START_BYTES;
    loop {
        let start = source.read_start(wanted)?;
        match read(&start, start.len() as u64 == source.len())? {
            Opened::Ready(found) => return Ok(found),
            Opened::NeedMore { start_bytes } => wanted = start_bytes.max(2 * wanted),
        }
    }
}

/// The candidate under which segment 0 authenticates; with a single one that is found out later.
fn choose<'m>(
    mut candidates: Vec<Body>,
    source: &SourceFile,
    caller: &mut Caller<'_, 'm>,
    slots: &mut Vec<Box<Job<'m>>>,
) -> Result<Body, FileError> {
    if candidates.len() == 1 {
        return Ok(candidates.swap_remove(0));
    }
    let mut captured = Vec::new();
    for body in candidates {
        let Ok(layout) = body.cut().of_cipher(source.len()) else { continue };
        let segment = layout.segment(0);
        let (offset, bytes) = range(&segment.cipher);
        // One reading serves all candidates that need no more than it.
        if captured.len() < bytes {
            captured.resize(bytes, 0);
            source.read(&mut [IoSliceMut::new(&mut captured)], offset)?;
        }
        if fits(&body, &captured[..bytes], segment.last, caller, slots)? {
            return Ok(body);
        }
    }
    Err(FormatError::NoKeyFits.into())
}

/// Whether segment 0 authenticates under a candidate.
pub(crate) fn fits<'m>(
    body: &Body,
    cipher: &[u8],
    last: bool,
    caller: &mut Caller<'_, 'm>,
    slots: &mut Vec<Box<Job<'m>>>,
) -> Result<bool, FileError> {
    let opened = opened(body, cipher, last, caller, slots)?;
    let fits = opened.is_some();
    slots.extend(opened);
    Ok(fits)
}

/// The job that opened segment 0 under a candidate, for its output to be looked at; whoever gets it puts it back into
/// `slots`. `None` where the segment does not open.
pub(crate) fn opened<'m>(
    body: &Body,
    cipher: &[u8],
    last: bool,
    caller: &mut Caller<'_, 'm>,
    slots: &mut Vec<Box<Job<'m>>>,
) -> Result<Option<Box<Job<'m>>>, FileError> {
    let mut job = slots.pop().expect("a file is opened while a slot is free");
    let mut is_ready = job.room_mut().len() >= cipher.len() && cipher.len() as u64 >= body.cut().tag_bytes();
    if is_ready {
        job.room_mut()[..cipher.len()].copy_from_slice(cipher);
        let armed = span::arm(body, Direction::Decrypt, &mut job, 0, last, cipher.len(), Block::default());
        is_ready = armed.is_ok();
    }
    if !is_ready {
        slots.push(job);
        return Ok(None);
    }
    let mut burst = vec![job];
    caller.crypt(&mut burst);
    let outcome = burst[0].outcome();
    if matches!(outcome, Outcome::Done { .. }) {
        return Ok(burst.pop());
    }
    slots.append(&mut burst);
    match outcome {
        Outcome::Failed(JobError::NotAuthentic | JobError::BadPadding | JobError::BadLength) => Ok(None),
        Outcome::Failed(error) => Err(FileError::of_job(0, error)),
        Outcome::Done { .. } | Outcome::Pending => Ok(None),
    }
}

pub(crate) fn range(range: &std::ops::Range<u64>) -> (u64, usize) {
    let bytes = usize::try_from(range.end - range.start).expect("a segment fits a slot");
    (range.start, bytes)
}
