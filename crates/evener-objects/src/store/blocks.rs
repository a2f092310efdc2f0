//! An upload to Azure. Its blocks have no numbers: a list of them, sent last, tells their order, and the mark goes with that list.
//!
//! `object_store` sends a mark with the list only where it numbers the blocks itself, in the order in which it is given them. So a thread waits
//! with its block until those before it are on their way; they travel at once all the same. Blocks and list are sent again by `object_store`,
//! for neither can be given to it twice.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use object_store::{MultipartUpload, UploadPart};
use tokio::runtime::Runtime;

use super::Upload;
use super::errors::of;
use crate::outcome::{Failure, Kind};

pub(super) struct Blocks {
    runtime: &'static Runtime,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    upload: Box<dyn MultipartUpload>,
    /// Blocks that are on their way.
    begun: usize,
    is_given_up: bool,
}

impl Blocks {
    pub(super) fn new(upload: Box<dyn MultipartUpload>, runtime: &'static Runtime) -> Self {
        let state = Mutex::new(State { upload, begun: 0, is_given_up: false });
        Self { runtime, state, changed: Condvar::new() }
    }

    /// A block that is on its way, when all before it are.
    fn in_turn(&self, number: usize, bytes: Bytes) -> Result<UploadPart, Failure> {
        let is_early = |state: &mut State| state.begun < number && !state.is_given_up;
        let state = self.changed.wait_while(self.state(), is_early);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.begun != number {
            return Err(Failure::new(Kind::Exhausted, "a block before it was not sent"));
        }
        state.begun += 1;
        self.changed.notify_all();
        Ok(state.upload.put_part(bytes.into()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upload for Blocks {
    fn part(&self, number: usize, _: u64, bytes: Bytes) -> Result<(), Failure> {
        let sent = self.in_turn(number, bytes)?;
        self.runtime.block_on(sent).map_err(|error| exhausted(of(&error)))
    }

    fn complete(&self) -> Result<(), Failure> {
        let mut state = self.state();
        self.runtime.block_on(state.upload.complete()).map(drop).map_err(|error| exhausted(of(&error)))
    }

    fn give_up(&self) {
        self.state().is_given_up = true;
        self.changed.notify_all();
    }

    // Blocks without a list are no part of the object, and Azure drops them after a week.
    fn abort(&self) {}
}

/// `object_store` has tried for as long as it was to be.
fn exhausted(failure: Failure) -> Failure {
    let kind = if failure.kind == Kind::Transient { Kind::Exhausted } else { failure.kind };
    Failure { kind, ..failure }
}
