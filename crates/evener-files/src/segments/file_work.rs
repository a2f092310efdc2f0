//! The work on one file: its source, how it is cut, and what each segment's job is armed with, in both directions alike.

use evener_core::Direction;

use super::candidates::{KeyTrial, choose, offset_and_len, read_header};
use crate::armor::Armor;
use crate::error::FileError;
use crate::format::{Body, Layout, Segment};
use crate::input::source_file::SourceFile;
use crate::output::{CompleteDraft, Draft, Origin, write_text};
use crate::record::{Header, Row, Stamp};
use crate::request::{Request, Task};
use crate::walk::Item;

/// A source with everything that follows from it: how it is cut, and what each segment's job is armed with.
pub(crate) struct FileWork {
    pub(crate) source: SourceFile,
    pub(crate) body: Body,
    pub(crate) layout: Layout,
    pub(crate) direction: Direction,
    /// What is written before segment 0.
    pub(crate) header: Vec<u8>,
    /// The text form that the output is to have.
    pub(crate) armor: Option<Armor>,
    /// Whether the output takes the place of another.
    pub(crate) replaces: bool,
    /// The source as it was before it was read; `None` where a change in the same tick of the clock would not show in it.
    pub(crate) stamp: Option<Stamp>,
}

impl FileWork {
    /// Reads or makes the header of a source.
    pub(crate) fn open(
        request: &Request,
        source: SourceFile,
        keys: &mut KeyTrial<'_, '_, '_>,
    ) -> Result<Self, FileError> {
        match &request.task {
            Task::Encrypt(sealer) => {
                let sealing = sealer.seal()?;
                let layout = sealing.body.cut().of_plain(source.len())?;
                let (body, header) = (sealing.body, sealing.header);
                let armor = sealer.armor().filter(|_| request.options.armor);
                Ok(Self {
                    source,
                    body,
                    layout,
                    direction: Direction::Encrypt,
                    header,
                    armor,
                    replaces: false,
                    stamp: None,
                })
            }
            Task::Decrypt(opener) => {
                let candidates = read_header(&source, |start, whole| opener.open(start, whole))?;
                let body = choose(candidates, &source, keys)?.ok_or_else(|| opener.no_key_fits())?;
                let layout = body.cut().of_cipher(source.len())?;
                Ok(Self {
                    source,
                    body,
                    layout,
                    direction: Direction::Decrypt,
                    header: Vec::new(),
                    armor: None,
                    replaces: false,
                    stamp: None,
                })
            }
        }
    }

    /// Where a segment's input lies in the source: offset and length.
    pub(crate) fn input(&self, segment: &Segment) -> (u64, usize) {
        input_of(self.direction, segment)
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
        self.body.as_serial().is_some() || (self.direction == Direction::Encrypt && self.body.is_chained())
    }

    /// Length of the output as far as it is known beforehand.
    pub(crate) fn bytes_out(&self) -> u64 {
        match self.direction {
            Direction::Encrypt => self.layout.cipher_bytes(),
            Direction::Decrypt => self.layout.plain_bytes(),
        }
    }

    /// Whether runs of zeros in the output are left as holes: only what is decrypted has them.
    pub(crate) fn leaves_holes(&self, item: &Item) -> bool {
        self.direction == Direction::Decrypt && item.dir.keep().holes
    }

    /// A draft for the output.
    pub(crate) fn draft(&self, item: &Item) -> Result<Draft, FileError> {
        Draft::create_for(&item.dir, &item.name, &self.source, self.replaces)
    }

    /// Completes a draft in which all bytes stand; where the output is to be text, another one that holds that.
    pub(crate) fn complete(&self, draft: Draft, item: &Item) -> Result<CompleteDraft, FileError> {
        self.source.check_unchanged()?;
        let Some(armor) = self.armor else { return draft.complete(Some(&self.source)) };
        let text = self.draft(item)?;
        write_text(armor, &draft, &text)?;
        text.complete(Some(&self.source))
    }

    /// What is to be reported of the file when it is done, but for its path.
    pub(crate) fn origin(&self) -> Origin {
        let (bytes_in, bytes_out) = (self.source.len(), self.bytes_out());
        let (row, names) = (self.row(), self.source.names());
        Origin { bytes_in, bytes_out, row, names, ..Origin::default() }
    }

    /// What is to be recorded, but for the output's place and stamp.
    fn row(&self) -> Option<Row> {
        let source = self.stamp?;
        let header = match self.direction {
            Direction::Encrypt => Header::of(&self.header),
            Direction::Decrypt => Header::default(),
        };
        Some(Row { source, header, ..Row::default() })
    }
}

/// Where a segment's input lies in its source: offset and length.
pub(crate) fn input_of(direction: Direction, segment: &Segment) -> (u64, usize) {
    offset_and_len(match direction {
        Direction::Encrypt => &segment.plain,
        Direction::Decrypt => &segment.cipher,
    })
}
