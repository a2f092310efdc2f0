//! A large object, or a range of one: parts of whole segments, which threads read, work on and send in any order; the thread that ends the last one
//! completes the object, or goes on with the range.

use std::cell::Cell;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use evener_files::object::{ObjectWork, ReadAt};
use evener_shards::Plan;

use super::core::Core;
use super::order::Order;
use super::{PART_BYTES, PARTS_MAX};
use crate::outcome::{Failure, Kind};
use crate::report::Ended;
use crate::store::{Found, Making, Upload};

/// One in work.
pub(super) struct Large {
    found: Found,
    making: Making,
    work: ObjectWork,
    upload: Arc<dyn Upload>,
    segments_per_part: u64,
    /// Numbers of the parts that are done here: all, or those of a range.
    parts: Range<usize>,
    /// Parts not yet ended, well or badly.
    left: AtomicUsize,
    /// The first failure.
    failure: Mutex<Option<Failure>>,
}

impl Large {
    /// Makes or reads the header, and begins the upload.
    pub(super) fn open(
        shard: &Order<'_>,
        core: &mut Core<'_, '_>,
        found: Found,
        making: Making,
    ) -> Result<Self, Failure> {
        let source = Stored::new(shard, &found);
        let work = source.or_why(core.begin(&source))?;
        let upload = shard.patiently(|| shard.destination.begin(&making))?;
        Ok(Self::new(found, making, work, upload, |parts| 0..parts))
    }

    /// The same for the parts of a range, which is given by `range` of how many the object has, in an upload that several machines share.
    pub(super) fn open_range(
        shard: &Order<'_>,
        core: &mut Core<'_, '_>,
        (found, making): (&Found, &Making),
        upload: &str,
        range: impl FnOnce(usize) -> Range<usize>,
    ) -> Result<Self, Failure> {
        let source = Stored::new(shard, found);
        let Plan { salt, source: place, .. } = shard.plan;
        let bytes = found.bytes.to_le_bytes();
        // What the object is, as each read demands it; and the upload, so that no later one has the same header.
        let about: [&[u8]; 6] = [
            salt,
            place.as_bytes(),
            found.name.as_bytes(),
            found.version.as_bytes(),
            &bytes,
            upload.as_bytes(),
        ];
        let work = source.or_why(core.begin_shared(&source, &about))?;
        let upload = shard.sharing()?.join(making, upload)?;
        Ok(Self::new(found.clone(), making.clone(), work, upload, range))
    }

    fn new(
        found: Found,
        making: Making,
        work: ObjectWork,
        upload: Arc<dyn Upload>,
        range: impl FnOnce(usize) -> Range<usize>,
    ) -> Self {
        let segments_per_part = segments_per_part(work.segment_bytes_out(), work.segment_count());
        let count = work.segment_count().div_ceil(segments_per_part);
        let parts = range(usize::try_from(count).expect("no more than a few thousand"));
        let (left, failure) = (AtomicUsize::new(parts.len()), Mutex::default());
        Self { found, making, work, upload, segments_per_part, parts, left, failure }
    }

    pub(super) fn name(&self) -> &str {
        &self.found.name
    }

    /// Parts that are done here, at least one of a whole object.
    pub(super) fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// Bytes of a part, read and made.
    pub(super) fn part_bytes(&self) -> u64 {
        let run = self.run(self.parts.start);
        [self.work.input(&run), self.work.output(&run)].iter().map(|space| space.end - space.start).sum()
    }

    /// Bytes of all parts that are done here, read and made.
    pub(super) fn bytes(&self) -> (u64, u64) {
        if self.parts.is_empty() {
            return (0, 0);
        }
        let run = self.run(self.parts.start).start..self.run(self.parts.end - 1).end;
        let [read, made] =
            [self.work.input(&run), self.work.output(&run)].map(|space| space.end - space.start);
        (read, made)
    }

    /// What the store calls the parts that were done here.
    pub(super) fn sent(&self) -> Result<Vec<String>, Failure> {
        let none = || (self.parts.is_empty()).then(Vec::new);
        let sent = none().or_else(|| self.upload.sent(&self.parts));
        sent.ok_or_else(|| Failure::new(Kind::Transient, "a part was not sent"))
    }

    /// Does the part `number` of those that are done here; whether it was the one that is ended last.
    pub(super) fn do_part(&self, shard: &Order<'_>, core: &mut Core<'_, '_>, number: usize) -> bool {
        let number = self.parts.start + number;
        let _waited_for = WaitedFor(&*self.upload);
        let tried = if self.failure().is_none() { self.try_part(shard, core, number) } else { Ok(()) };
        if let Err(failure) = tried {
            self.failure().get_or_insert(failure);
            self.upload.give_up();
        }
        // AcqRel: who ends the last part comes behind all that the others did.
        self.left.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Ends a whole object, all of whose parts have ended.
    pub(super) fn end(&self, shard: &Order<'_>) -> Ended {
        self.completed(shard).unwrap_or_else(|failure| {
            self.upload.abort();
            Ended::Failed(failure)
        })
    }

    /// Whether all parts ended well.
    pub(super) fn outcome(&self) -> Result<(), Failure> {
        self.failure().take().map_or(Ok(()), Err)
    }

    fn try_part(&self, shard: &Order<'_>, core: &mut Core<'_, '_>, number: usize) -> Result<(), Failure> {
        let run = self.run(number);
        let input = shard.patiently(|| shard.source.read(&self.found, self.work.input(&run)))?;
        let place = self.work.output(&run).start;
        let output = core.crypt(&self.work, &run, &input)?;
        shard.patiently(|| self.upload.part(number, place, output.clone()))
    }

    /// The segments of a part.
    fn run(&self, number: usize) -> Range<u64> {
        let first = number as u64 * self.segments_per_part;
        first..(first + self.segments_per_part).min(self.work.segment_count())
    }

    fn completed(&self, shard: &Order<'_>) -> Result<Ended, Failure> {
        self.outcome()?;
        let bytes_out = self.work.output(&(0..self.work.segment_count())).end;
        let done = Ended::Done { bytes_in: self.found.bytes, bytes_out };
        // Stores behind HTTP are not asked to complete only where nothing stands, so it is looked at once more. Directories are.
        if !self.making.replaces && shard.unless_finished(self.making.clone())?.is_none() {
            self.upload.abort();
            return Ok(Ended::Already);
        }
        match shard.patiently(|| self.upload.complete()) {
            Ok(()) => Ok(done),
            // An answer may have been lost: what stands there tells.
            Err(failure) => match shard.is_finished(&self.making) {
                Ok(true) => Ok(done),
                _ => Err(failure),
            },
        }
    }

    fn failure(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part that others may wait for: they hear of it where this thread panics.
struct WaitedFor<'a>(&'a dyn Upload);

impl Drop for WaitedFor<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.give_up();
        }
    }
}

/// Whole segments, so many that a part is not less than a store takes, and parts are not more.
fn segments_per_part(segment_bytes_out: u64, segment_count: u64) -> u64 {
    PART_BYTES.div_ceil(segment_bytes_out).max(segment_count.div_ceil(PARTS_MAX))
}

/// An object in its store, of which a header is read.
struct Stored<'a> {
    shard: &'a Order<'a>,
    found: &'a Found,
    /// Why a read failed.
    failure: Cell<Option<Failure>>,
}

impl<'a> Stored<'a> {
    const fn new(shard: &'a Order<'a>, found: &'a Found) -> Self {
        Self { shard, found, failure: Cell::new(None) }
    }

    /// Why the header could not be read, which says more than that it could not be.
    fn or_why<T>(&self, read: Result<T, Failure>) -> Result<T, Failure> {
        read.map_err(|failure| self.failure.take().unwrap_or(failure))
    }
}

impl ReadAt for Stored<'_> {
    fn byte_count(&self) -> u64 {
        self.found.bytes
    }

    fn read_exact_at(&self, parts: &mut [IoSliceMut<'_>], place: u64) -> io::Result<()> {
        let wanted: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let read = || self.shard.source.read(self.found, place..place + wanted);
        let bytes = self.shard.patiently(read).map_err(|failure| {
            let error = io::Error::other(failure.text.clone());
            self.failure.set(Some(failure));
            error
        })?;
        bytes[..].read_exact_at(parts, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_many_and_as_large_as_stores_take_them() {
        const MIB: u64 = 1 << 20;
        // Tink's templates, age, and segments of which a few make a part.
        for segment in [4096, 65_536, 65_552, MIB, 3 * MIB, 4 * MIB, 5 * MIB - 1, 7 * MIB, 20 * MIB] {
            for bytes in [9 * MIB, 1000 * MIB, 79 << 30, 5 << 40] {
                let count = u64::div_ceil(bytes, segment);
                let each = segments_per_part(segment, count);
                assert!(count.div_ceil(each) <= 10_000, "{segment} {bytes}");
                assert!(each * segment >= 5 * MIB, "{segment} {bytes}");
                assert!(
                    each * segment < (PART_BYTES.max(bytes / PARTS_MAX) + 2 * segment),
                    "no larger than it has to be"
                );
            }
        }
    }
}
