//! An upload by parts that have numbers, S3's way and Google's: any machine that knows its name may send some.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use tokio::runtime::Runtime;

use super::Upload;
use super::errors::of;
use crate::outcome::{Failure, Kind};

/// The last number that stores take, of which no output is made: it is there to hear whether there is an upload.
const PROBE: usize = 9_999;

/// An upload.
pub(super) struct Parts {
    multipart: Arc<dyn MultipartStore>,
    runtime: &'static Runtime,
    path: Path,
    id: String,
    /// What the store calls each part that it has from here.
    done: Mutex<Vec<Option<PartId>>>,
}

impl Parts {
    pub(super) fn new(
        multipart: Arc<dyn MultipartStore>,
        runtime: &'static Runtime,
        path: Path,
        id: String,
    ) -> Self {
        Self { multipart, runtime, path, id, done: Mutex::default() }
    }

    /// Completes it, of parts that the store calls so.
    pub(super) fn complete_of(&self, parts: Vec<PartId>) -> Result<(), Failure> {
        let complete = self.multipart.complete_multipart(&self.path, &self.id, parts);
        self.runtime.block_on(complete).map(drop).map_err(|error| of(&error))
    }

    /// Takes back all of it.
    pub(super) fn take_back(&self) -> Result<(), Failure> {
        let abort = self.multipart.abort_multipart(&self.path, &self.id);
        self.runtime.block_on(abort).map_err(|error| of(&error))
    }

    fn put(&self, number: usize, bytes: Bytes) -> Result<PartId, Failure> {
        let put = self.multipart.put_part(&self.path, &self.id, number, bytes.into());
        let put = self.runtime.block_on(put).map_err(|error| of(&error));
        put.map_err(|failure| match failure.kind {
            // Of uploads that are no more some stores say only that there is nothing.
            Kind::Absent => Failure { kind: Kind::Lost, ..failure },
            _ => failure,
        })
    }

    fn done(&self) -> MutexGuard<'_, Vec<Option<PartId>>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upload for Parts {
    fn part(&self, number: usize, _: u64, bytes: Bytes) -> Result<(), Failure> {
        // A store that takes no part of an upload may hang up before the client has heard why, so it is asked again, in few words.
        let id = self.put(number, bytes).map_err(|failure| match failure.kind {
            Kind::Transient => self.put(PROBE, Bytes::from_static(b"?")).err().unwrap_or(failure),
            _ => failure,
        })?;
        let mut done = self.done();
        if done.len() <= number {
            done.resize(number + 1, None);
        }
        done[number] = Some(id);
        Ok(())
    }

    fn complete(&self) -> Result<(), Failure> {
        let parts: Option<Vec<PartId>> = self.done().clone().into_iter().collect();
        self.complete_of(parts.ok_or_else(|| Failure::new(Kind::Transient, "a part was not sent"))?)
    }

    fn abort(&self) {
        // What cannot be taken back is not seen either; the store's own rule for such uploads ends it.
        self.take_back().ok();
    }

    fn sent(&self, numbers: &Range<usize>) -> Option<Vec<String>> {
        let done = self.done();
        let parts = done.get(numbers.clone())?.iter();
        parts.map(|part| part.as_ref().map(|part| part.content_id.clone())).collect()
    }
}
