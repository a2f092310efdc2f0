//! Sealing while one writes.

use std::io::{IoSlice, Write};
use std::mem::take;

use evener::Caller;
use evener_core::{Direction, Job};
use zeroize::Zeroizing;

use super::slots;
use crate::armor::Encoder;
use crate::error::FileError;
use crate::format::{Body, Sealer, SerialText};
use crate::segments::job::{self, Block};

/// Seals what is written to it and passes it on to `output`, as far as segments are full.
///
/// Nothing is complete before [`SealedWriter::finish`]: what a dropped writer leaves has no last segment, and no reader takes it, where the
/// format authenticates. Plaintext that waits is wiped.
pub struct SealedWriter<'m, W> {
    output: W,
    /// What makes text of it, where it is to be text.
    encoder: Option<Encoder>,
    body: Body,
    /// A cipher that no driver has.
    serial: Option<SerialText>,
    /// Segments that are armed and wait for their burst.
    burst: Vec<Box<Job<'m>>>,
    free: Vec<Box<Job<'m>>>,
    /// Index of the segment that is being filled, and bytes of it so far; it lies in the last free slot.
    index: u64,
    filled: usize,
    /// The last block of the segment before, where segments are chained.
    before: Block,
    /// Why nothing more is taken.
    failed: Option<FileError>,
}

impl<'m, W: Write> SealedWriter<'m, W> {
    /// Begins an object under fresh random values and writes its header. Up to `segments_max` segments go to the caller in one burst; `armor` says
    /// that it is to be text, where the format has a form for that.
    ///
    /// # Errors
    ///
    /// Those of [`Sealer::seal`] and of `output`.
    pub fn new(sealer: &Sealer, armor: bool, segments_max: usize, output: W) -> Result<Self, FileError> {
        let sealing = sealer.seal()?;
        let serial = sealing.body.as_serial().map(|cipher| cipher.begin()).transpose()?;
        let mut writer = Self {
            output,
            encoder: sealer.armor().filter(|_| armor).map(|armor| armor.encoder()),
            serial,
            burst: Vec::new(),
            free: slots(sealer.slot_bytes(), segments_max.max(1)),
            body: sealing.body,
            index: 0,
            filled: 0,
            before: Block::default(),
            failed: None,
        };
        writer.pass_on(&[IoSlice::new(&sealing.header)])?;
        Ok(writer)
    }

    /// Takes more plaintext.
    ///
    /// # Errors
    ///
    /// Those of `output` and of jobs. After one nothing more is taken, and every call gives it again.
    pub fn write(&mut self, text: &[u8], caller: &mut Caller<'_, 'm>) -> Result<(), FileError> {
        self.unless_failed(|writer| match writer.serial.is_some() {
            true => writer.write_serial(text),
            false => writer.fill(text, caller),
        })
    }

    /// Seals the last segment, flushes the output and gives it back.
    ///
    /// # Errors
    ///
    /// As [`SealedWriter::write`].
    pub fn finish(mut self, caller: &mut Caller<'_, 'm>) -> Result<W, FileError> {
        self.unless_failed(|writer| {
            writer.finish_segments(caller)?;
            if let Some(encoder) = writer.encoder.take() {
                let mut text = Vec::new();
                encoder.finish(&mut text);
                writer.pass_on(&[IoSlice::new(&text)])?;
            }
            writer.output.flush().map_err(FileError::io("write the output"))
        })?;
        Ok(self.output)
    }

    /// The output as it is: what was passed on so far.
    #[must_use]
    pub const fn output(&self) -> &W {
        &self.output
    }

    fn unless_failed(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        work(self).inspect_err(|error| self.failed = Some(error.clone()))
    }

    /// Fills segments, and sends off those that are full once more follows.
    fn fill(&mut self, mut text: &[u8], caller: &mut Caller<'_, 'm>) -> Result<(), FileError> {
        while !text.is_empty() {
            if self.filled == self.full_bytes() {
                self.arm(false, caller)?;
            }
            let (space, taken) = (self.full_bytes() - self.filled, text.len());
            let (now, later) = text.split_at(taken.min(space));
            let slot = self.free.last_mut().expect("a burst leaves a slot free");
            slot.space_mut()[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            text = later;
        }
        Ok(())
    }

    fn finish_segments(&mut self, caller: &mut Caller<'_, 'm>) -> Result<(), FileError> {
        if let Some(serial) = self.serial.take() {
            let mut end = Vec::new();
            serial.finish(&mut end)?;
            return self.pass_on(&[IoSlice::new(&end)]);
        }
        // Padding always stands in a segment that is not full.
        if self.body.cut().is_padded() && self.filled == self.full_bytes() {
            self.arm(false, caller)?;
        }
        self.arm(true, caller)?;
        self.send_off(caller)
    }

    /// Bytes of plaintext that the segment in work has if another follows.
    fn full_bytes(&self) -> usize {
        usize::try_from(self.body.cut().full_plain_bytes(self.index)).expect("a segment fits a slot")
    }

    /// Arms the segment in work and begins the next one.
    fn arm(&mut self, last: bool, caller: &mut Caller<'_, 'm>) -> Result<(), FileError> {
        let mut job = self.free.pop().expect("a burst leaves a slot free");
        let bytes = take(&mut self.filled);
        job::arm(&self.body, Direction::Encrypt, &mut job, self.index, last, bytes, self.before)?;
        self.burst.push(job);
        self.index += 1;
        // Of a chained format each segment needs the one before.
        if self.free.is_empty() || self.body.is_chained() {
            self.send_off(caller)?;
        }
        Ok(())
    }

    /// Runs what waits, and passes it on.
    fn send_off(&mut self, caller: &mut Caller<'_, 'm>) -> Result<(), FileError> {
        let mut burst = take(&mut self.burst);
        caller.crypt(&mut burst);
        let first = self.index - burst.len() as u64;
        let mut parts = Vec::with_capacity(2 * burst.len());
        for (index, job) in (first..).zip(&mut burst) {
            job::emit(&self.body, Direction::Encrypt, job, index, &mut parts)?;
        }
        self.pass_on(&parts)?;
        drop(parts);
        if let Some(block) = burst.last().and_then(|job| job.output().last_chunk()) {
            self.before = *block;
        }
        self.free.append(&mut burst);
        Ok(())
    }

    fn write_serial(&mut self, text: &[u8]) -> Result<(), FileError> {
        let mut sealed = Zeroizing::new(Vec::new());
        if let Some(serial) = &mut self.serial {
            serial.update(text, &mut sealed)?;
        }
        self.pass_on(&[IoSlice::new(&sealed)])
    }

    fn pass_on(&mut self, parts: &[IoSlice<'_>]) -> Result<(), FileError> {
        let failed = FileError::io("write the output");
        let Some(encoder) = &mut self.encoder else {
            return parts.iter().try_for_each(|part| self.output.write_all(part)).map_err(failed);
        };
        let mut text = Vec::new();
        parts.iter().for_each(|part| encoder.push(part, &mut text));
        self.output.write_all(&text).map_err(failed)
    }
}
