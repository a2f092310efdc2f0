//! A sealed whole that is read at any place: segments are opened as they are needed, and the last few are kept.
//!
//! `header -> body -> the last segment, for only it shows that nothing was cut off -> segments of a range, run by run`.

use std::collections::VecDeque;
use std::ops::Range;

use evener::Caller;
use evener_core::{Direction, Job};

use super::candidates::{KeyTrial, choose, read_header};
use super::{job, span};
use crate::armor::ARMOR_START_BYTES;
use crate::error::{FileError, FormatError};
use crate::format::{Body, Layout, Opener};
use crate::input::bytes::Bytes;

/// A sealed whole with the key that opens it.
pub(crate) struct OpenedSegments<'m, B> {
    pub(crate) source: B,
    body: Body,
    layout: Layout,
    /// Length of the plaintext, as its last segment shows it.
    text_bytes: u64,
    /// Segments that are open, with their index; the one that was used last is at the end.
    open: VecDeque<(u64, Box<Job<'m>>)>,
    /// Slots for more.
    free: Vec<Box<Job<'m>>>,
    /// Bytes of segments that were read from the source.
    pub(crate) read_bytes: u64,
}

impl<'m, B: Bytes> OpenedSegments<'m, B> {
    /// Finds the key and opens the last segment. As many segments are kept as there are `slots`.
    pub(crate) fn new(
        opener: &Opener,
        source: B,
        mut slots: Vec<Box<Job<'m>>>,
        caller: &mut Caller<'_, 'm>,
    ) -> Result<Self, FileError> {
        let start = source.start(ARMOR_START_BYTES)?;
        if opener.armor().is_some_and(|armor| armor.is_armored(&start)) {
            return Err(no_part_of("an armored file, in which no segment lies at a known place"));
        }
        let candidates = read_header(&source, |start, whole| opener.open(start, whole))?;
        let keys = &mut KeyTrial { caller, slots: &mut slots };
        let body = choose(candidates, &source, keys)?.ok_or_else(|| opener.no_key_fits())?;
        if body.as_serial().is_some() {
            return Err(no_part_of("a file in a cipher that goes from its first byte to its last"));
        }
        let layout = body.cut().of_cipher(source.count())?;
        let open = VecDeque::with_capacity(slots.len());
        let mut opened = Self { source, body, layout, text_bytes: 0, open, free: slots, read_bytes: 0 };
        let last = layout.segment_count() - 1;
        opened.open_run(last..last + 1, caller)?;
        let text = opened.text(last).map_or(0, <[u8]>::len) as u64;
        opened.text_bytes = layout.segment(last).plain.start + text;
        Ok(opened)
    }

    /// Length of the plaintext, in bytes.
    pub(crate) const fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    /// Where the segment that holds the byte `place` ends in the plaintext.
    pub(crate) fn segment_end(&self, place: u64) -> u64 {
        if place >= self.text_bytes {
            return self.text_bytes;
        }
        self.layout.segment(self.layout.index_of(place)).plain.end.min(self.text_bytes)
    }

    /// Hands the bytes of `range` to `take`, piece by piece; the range lies within the plaintext.
    pub(crate) fn each_piece(
        &mut self,
        range: &Range<u64>,
        caller: &mut Caller<'_, 'm>,
        mut take: impl FnMut(&[u8]) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let mut place = range.start;
        while place < range.end {
            let index = self.layout.index_of(place);
            if self.text(index).is_none() {
                let last = self.layout.index_of(range.end - 1);
                self.open_run(index..last + 1, caller)?;
            }
            let start = self.layout.segment(index).plain.start;
            let text = self.text(index).expect("it was opened above");
            let piece = &text[within(place - start, text.len())..within(range.end - start, text.len())];
            if piece.is_empty() {
                break;
            }
            take(piece)?;
            place += piece.len() as u64;
        }
        Ok(())
    }

    /// The plaintext of a segment that is open; it is then the one that was used last.
    fn text(&mut self, index: u64) -> Option<&[u8]> {
        let place = self.open.iter().position(|(open, _)| *open == index)?;
        let used = self.open.remove(place)?;
        self.open.push_back(used);
        self.open.back().map(|(_, job)| job.output())
    }

    /// Opens the first of `indices` and those behind it, as many as are not open and have space.
    fn open_run(&mut self, indices: Range<u64>, caller: &mut Caller<'_, 'm>) -> Result<(), FileError> {
        let space = (self.free.len() + self.open.len()) as u64;
        let end = indices.end.min(indices.start + space);
        let is_open = |index: &u64| self.open.iter().any(|(open, _)| open == index);
        let end = (indices.start..end).find(is_open).unwrap_or(end);
        let segments: Vec<_> = (indices.start..end).map(|index| self.layout.segment(index)).collect();
        while self.free.len() < segments.len() {
            self.free.extend(self.open.pop_front().map(|(_, job)| job));
        }
        let mut jobs = self.free.split_off(self.free.len() - segments.len());
        let opening = (&self.body, Direction::Decrypt);
        let opened = span::read_from(&self.source, opening, &segments, &mut jobs).and_then(|bytes| {
            caller.crypt(&mut jobs);
            self.read_bytes += bytes;
            jobs.iter().zip(&segments).try_for_each(|(job, segment)| job::check(job, segment.index))
        });
        match opened {
            Ok(()) => self.open.extend(segments.iter().map(|segment| segment.index).zip(jobs)),
            Err(_) => self.free.append(&mut jobs),
        }
        opened
    }
}

/// A place in a text of `bytes`, or its end.
fn within(place: u64, bytes: usize) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX).min(bytes)
}

fn no_part_of(what: &str) -> FileError {
    FormatError::Unsupported(format!("a part of {what}")).into()
}
