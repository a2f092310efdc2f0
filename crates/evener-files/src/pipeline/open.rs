//! From a source file to segments that can be worked on, in both directions alike.

use std::io::IoSliceMut;

use evener::Caller;
use evener_core::{BLOCK_BYTES, Direction, Job, Outcome};

use super::place::{Draft, Origin, OutDir};
use super::process::Task;
use super::progress::FileError;
use super::read::{SourceFile, read_up_to};
use super::segments::{self, Block};
use super::tree::Item;
use crate::FormatError;
use crate::format::{Body, Cut, Iv, Layout, Opened, Segment};

/// Bytes of a file that are looked at first for its header. Longer headers (many recipients) cost a second
/// look.
pub(super) const START_BYTES: usize = 2_048;

/// A source with everything that follows from it: how it is cut, and what each segment's job is armed with.
pub(super) struct Work {
    pub(super) source: SourceFile,
    pub(super) body: Body,
    pub(super) layout: Layout,
    pub(super) direction: Direction,
    /// What is written before segment 0.
    pub(super) header: Vec<u8>,
}

impl Work {
    /// Reads or makes the header of a source. `slot` is room to try keys in.
    pub(super) fn open<'m>(
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
    pub(super) fn input(&self, segment: &Segment) -> (u64, usize) {
        range(match self.direction {
            Direction::Encrypt => &segment.plain,
            Direction::Decrypt => &segment.cipher,
        })
    }

    /// Where a segment's output starts.
    pub(super) fn output_offset(&self, segment: &Segment) -> u64 {
        match self.direction {
            Direction::Encrypt => segment.cipher.start,
            Direction::Decrypt => segment.plain.start,
        }
    }

    /// Whether segments must be encrypted one after the other.
    pub(super) fn is_chained(&self) -> bool {
        self.direction == Direction::Encrypt && is_chained(&self.body)
    }

    /// Length of the output as far as it is known beforehand.
    pub(super) fn bytes_out(&self) -> u64 {
        match self.direction {
            Direction::Encrypt => self.layout.cipher_bytes(),
            Direction::Decrypt => self.layout.plain_bytes(),
        }
    }

    /// A draft for the output.
    pub(super) fn draft(&self, item: &Item, force: bool) -> Result<Draft, FileError> {
        Draft::create(&item.dir, &item.name, super::place::mode_of(&self.source.stat), force)
    }

    /// What is to be said of the file when it is done.
    pub(super) fn origin(&self, item: &Item) -> Origin {
        Origin { path: item.source.clone(), bytes_in: self.source.len(), bytes_out: self.bytes_out() }
    }
}

/// Whether each segment needs the ciphertext of the one before.
pub(super) fn is_chained(body: &Body) -> bool {
    body.iv(1, false) == Ok(Iv::PreviousBlock)
}

/// Whether a finished result of `item` stands under its final name already: right length, same time. What
/// else stands there is an error. With `force` nothing counts as finished: the key may be another one.
///
/// Comes before [`Work::open`] and derives no key, for that may cost a second and 256 MiB (passphrases).
pub(super) fn is_done(task: &Task, item: &Item, source: &SourceFile, force: bool) -> Result<bool, FileError> {
    let OutDir { is_new, .. } = &*item.dir;
    let Some(standing) = (if *is_new { None } else { item.dir.stat(&item.name)? }) else { return Ok(false) };
    let identity = |stat: &rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    if identity(&standing) == identity(&source.stat) {
        return Err(FileError::SameFile);
    }
    if force {
        return Ok(false);
    }
    let same_time = super::place::mtime_of(&standing) == super::place::mtime_of(&source.stat);
    if same_time && is_same_length(task, item, source, u64::try_from(standing.st_size).unwrap_or(0))? {
        return Ok(true);
    }
    Err(FileError::Exists)
}

/// Whether an output of `bytes` has the length that the input calls for.
fn is_same_length(task: &Task, item: &Item, source: &SourceFile, bytes: u64) -> Result<bool, FileError> {
    match task {
        Task::Encrypt(sealer) => {
            let cut = sealer.cut_of(&standing_start(item)?);
            Ok(bytes == cut.of_plain(source.len())?.cipher_bytes())
        }
        Task::Decrypt(opener) => {
            let cuts = read_header(source, |start, whole| opener.cuts(start, whole))?;
            let fits =
                |cut: &Cut| cut.of_cipher(source.len()).is_ok_and(|layout| is_of_length(&layout, bytes));
            Ok(cuts.iter().any(fits))
        }
    }
}

/// Whether `bytes` of plaintext may come out of a layout.
const fn is_of_length(layout: &Layout, bytes: u64) -> bool {
    let most = layout.plain_bytes();
    bytes == most || (!layout.plain_bytes_is_exact() && bytes < most && bytes + BLOCK_BYTES as u64 > most)
}

/// The first bytes of what stands under the final name.
fn standing_start(item: &Item) -> Result<Vec<u8>, FileError> {
    let standing = item.dir.open_file(&item.name)?;
    let mut start = vec![0; START_BYTES];
    let came = read_up_to(&standing, &mut [IoSliceMut::new(&mut start)], 0);
    start.truncate(came.map_err(FileError::io("look at the output"))?);
    Ok(start)
}

/// Lets `read` have as much of the start of a source as it asks for; the second argument says that it is all.
fn read_header<T>(
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
        if fits(&body, &captured[..bytes], segment.last, caller, slots) {
            return Ok(body);
        }
    }
    Err(FormatError::NoKeyFits.into())
}

/// Whether segment 0 authenticates under a candidate.
pub(super) fn fits<'m>(
    body: &Body,
    cipher: &[u8],
    last: bool,
    caller: &mut Caller<'_, 'm>,
    slots: &mut Vec<Box<Job<'m>>>,
) -> bool {
    let Some(mut job) = slots.pop() else { return false };
    let mut has_room = job.room_mut().len() >= cipher.len() && cipher.len() as u64 >= body.cut().tag_bytes();
    if has_room {
        job.room_mut()[..cipher.len()].copy_from_slice(cipher);
        let armed =
            segments::arm(body, Direction::Decrypt, &mut job, 0, last, cipher.len(), Block::default());
        has_room = armed.is_ok();
    }
    let mut burst = vec![job];
    if has_room {
        caller.crypt(&mut burst);
    }
    let fits = has_room && matches!(burst[0].outcome(), Outcome::Done { .. });
    slots.append(&mut burst);
    fits
}

fn range(range: &std::ops::Range<u64>) -> (u64, usize) {
    let bytes = usize::try_from(range.end - range.start).expect("a segment fits a slot");
    (range.start, bytes)
}
