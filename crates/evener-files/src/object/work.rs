//! One object in either direction, cut into runs of segments that any thread takes in any order.

use std::io::IoSliceMut;
use std::ops::Range;

use evener::Caller;
use evener_core::{Direction, Job};

use super::{ReadAt, slots};
use crate::error::{FileError, FormatError};
use crate::format::{Body, Layout, Sealer, Sealing};
use crate::input::bytes::{Bytes, Foreign};
use crate::request::Task;
use crate::segments::{KeyTrial, choose, input_of, job, read_header, span};

/// Slots of one thread, used again and again; what they hold is wiped when they are dropped.
pub struct Slots<'m>(Vec<Box<Job<'m>>>);

impl Slots<'_> {
    /// So many, for whatever `task` meets. As many segments go to a caller in one burst.
    #[must_use]
    pub fn new(task: &Task, count: usize) -> Self {
        Self(slots(task.slot_bytes(), count.max(1)))
    }
}

/// An object of known length that is sealed or opened, by runs of its segments. Only formats whose segments need nothing of each other are
/// taken: age, Tink, and openssl enc in a cipher without a chain.
///
/// A run must be sealed once only, or from the same bytes: the same place under the same random values may not hold two plaintexts. Who has
/// to begin anew makes another one of these.
pub struct ObjectWork {
    header: Vec<u8>,
    body: Body,
    layout: Layout,
    direction: Direction,
}

impl ObjectWork {
    /// Begins an object of the length of `source`: makes its header under fresh random values, or reads it and finds the key.
    ///
    /// # Errors
    ///
    /// Those of the source; [`FileError::Format`] where no key fits, or no object of this format has this length or can be taken in any order.
    pub fn begin<'m>(
        task: &Task,
        source: impl ReadAt,
        slots: &mut Slots<'m>,
        caller: &mut Caller<'_, 'm>,
    ) -> Result<Self, FileError> {
        Self::begin_with(task, source, Sealer::seal, slots, caller)
    }

    /// As [`ObjectWork::begin`], for an object of which several machines have runs: where the header is made, it is not random, but the same for
    /// all who have the key and say the same `about`. No other plaintext that is or will be sealed under this key may have the same `about`, so
    /// this tells which object it is, pins its bytes, and has a random part of the try.
    ///
    /// # Errors
    ///
    /// As [`ObjectWork::begin`]; [`FileError::Format`] where [`ObjectWork::can_be_shared`] says no.
    pub fn begin_shared<'m>(
        task: &Task,
        source: impl ReadAt,
        about: &[&[u8]],
        slots: &mut Slots<'m>,
        caller: &mut Caller<'_, 'm>,
    ) -> Result<Self, FileError> {
        Self::begin_with(task, source, |sealer| sealer.seal_about(about), slots, caller)
    }

    /// Whether several machines that know nothing of each other can have runs of one object: always where it is opened, and where it is sealed in the
    /// Tink format, whose key all have. A file of age's has a key of its own, which only who made it has.
    #[must_use]
    pub const fn can_be_shared(task: &Task) -> bool {
        matches!(task, Task::Decrypt(_) | Task::Encrypt(Sealer::Tink(_)))
    }

    fn begin_with<'m>(
        task: &Task,
        source: impl ReadAt,
        seal: impl FnOnce(&Sealer) -> Result<Sealing, FormatError>,
        slots: &mut Slots<'m>,
        caller: &mut Caller<'_, 'm>,
    ) -> Result<Self, FileError> {
        let (source, direction) = (Foreign(source), direction(task));
        let (header, body) = match task {
            Task::Encrypt(sealer) => {
                let sealing = seal(sealer)?;
                (sealing.header, sealing.body)
            }
            Task::Decrypt(opener) => {
                let candidates = read_header(&source, |start, whole| opener.open(start, whole))?;
                let keys = &mut KeyTrial { caller, slots: &mut slots.0 };
                (Vec::new(), choose(candidates, &source, keys)?.ok_or_else(|| opener.no_key_fits())?)
            }
        };
        if body.as_serial().is_some() || body.is_chained() {
            let what = "the openssl format in a cipher whose segments are chained".into();
            return Err(FormatError::Unsupported(what).into());
        }
        let layout = match direction {
            Direction::Encrypt => body.cut().of_plain(source.count())?,
            Direction::Decrypt => body.cut().of_cipher(source.count())?,
        };
        Ok(Self { header, body, layout, direction })
    }

    /// How many segments there are, at least one.
    #[must_use]
    pub const fn segment_count(&self) -> u64 {
        self.layout.segment_count()
    }

    /// Bytes of output that a segment has if another follows it.
    #[must_use]
    pub fn segment_bytes_out(&self) -> u64 {
        match self.direction {
            Direction::Encrypt => self.body.cut().full_cipher_bytes(1),
            Direction::Decrypt => self.body.cut().full_plain_bytes(1),
        }
    }

    /// Where the input of a run of segments lies in the source.
    ///
    /// # Panics
    ///
    /// Where `run` is empty, or no run of this object: a bug of the caller.
    #[must_use]
    pub fn input(&self, run: &Range<u64>) -> Range<u64> {
        let [first, last] = self.ends(run).map(|segment| input_of(self.direction, &segment));
        first.0..last.0 + last.1 as u64
    }

    /// Where its output lies in the whole output; that of the first run begins with the header.
    ///
    /// # Panics
    ///
    /// As [`ObjectWork::input`].
    #[must_use]
    pub fn output(&self, run: &Range<u64>) -> Range<u64> {
        let [first, last] = self.ends(run);
        match self.direction {
            Direction::Encrypt if run.start == 0 => 0..last.cipher.end,
            Direction::Encrypt => first.cipher.start..last.cipher.end,
            Direction::Decrypt => first.plain.start..last.plain.end,
        }
    }

    fn ends(&self, run: &Range<u64>) -> [crate::format::Segment; 2] {
        [self.layout.segment(run.start), self.layout.segment(run.end - 1)]
    }

    /// Works on a run whose input is `input`, and appends its output to `output`. After an error `output` holds nothing that may be used.
    ///
    /// # Errors
    ///
    /// [`FileError::Format`] where a segment is not authentic, [`FileError::Stopped`] where the run of the caller is cancelled.
    ///
    /// # Panics
    ///
    /// As [`ObjectWork::input`], and where `input` is shorter than it says.
    pub fn crypt<'m>(
        &self,
        run: &Range<u64>,
        input: &[u8],
        output: &mut Vec<u8>,
        slots: &mut Slots<'m>,
        caller: &mut Caller<'_, 'm>,
    ) -> Result<(), FileError> {
        if run.start == 0 {
            output.extend_from_slice(&self.header);
        }
        let source = Window { start: self.input(run).start, bytes: input };
        let mut next = run.start;
        while next < run.end {
            let end = run.end.min(next + slots.0.len() as u64);
            let segments: Vec<_> = (next..end).map(|index| self.layout.segment(index)).collect();
            let mut jobs = slots.0.split_off(slots.0.len() - segments.len());
            let crypted = span::read_from(&source, (&self.body, self.direction), &segments, &mut jobs)
                .and_then(|_| {
                    caller.crypt(&mut jobs);
                    self.emit(next, &mut jobs, output)
                });
            slots.0.append(&mut jobs);
            crypted?;
            next = end;
        }
        Ok(())
    }

    fn emit(&self, first: u64, jobs: &mut [Box<Job<'_>>], output: &mut Vec<u8>) -> Result<(), FileError> {
        for (index, job) in (first..).zip(jobs) {
            let mut parts = Vec::with_capacity(2);
            job::emit(&self.body, self.direction, job, index, &mut parts)?;
            parts.iter().for_each(|part| output.extend_from_slice(part));
        }
        Ok(())
    }
}

const fn direction(task: &Task) -> Direction {
    match task {
        Task::Encrypt(_) => Direction::Encrypt,
        Task::Decrypt(_) => Direction::Decrypt,
    }
}

/// A part of a source that has been read.
struct Window<'b> {
    start: u64,
    bytes: &'b [u8],
}

impl Bytes for Window<'_> {
    fn count(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn fill(&self, parts: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), FileError> {
        Foreign(self.bytes).fill(parts, offset - self.start)
    }
}
