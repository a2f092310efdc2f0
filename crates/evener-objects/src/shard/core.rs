//! What a thread computes with: slots, and a way into the runtime.

use std::ops::Range;

use bytes::Bytes;
use evener::Caller;
use evener_files::object::{ObjectWork, ReadAt, Slots};
use evener_files::{FileError, FormatError, Task};

use crate::outcome::{Failure, Kind};

/// A thread's own.
pub(super) struct Core<'a, 'r> {
    task: &'a Task,
    slots: Slots<'static>,
    caller: Caller<'r, 'static>,
}

impl<'a, 'r> Core<'a, 'r> {
    /// With slots for so many segments.
    pub(super) fn new(task: &'a Task, slots: usize, caller: Caller<'r, 'static>) -> Self {
        Self { task, slots: Slots::new(task, slots), caller }
    }

    /// Begins the work on an object.
    pub(super) fn begin(&mut self, source: &(impl ReadAt + ?Sized)) -> Result<ObjectWork, Failure> {
        ObjectWork::begin(self.task, source, &mut self.slots, &mut self.caller).map_err(of)
    }

    /// Begins the work on an object of which other machines have other runs.
    pub(super) fn begin_shared(
        &mut self,
        source: &(impl ReadAt + ?Sized),
        about: &[&[u8]],
    ) -> Result<ObjectWork, Failure> {
        ObjectWork::begin_shared(self.task, source, about, &mut self.slots, &mut self.caller).map_err(of)
    }

    /// The output of a run of segments.
    pub(super) fn crypt(
        &mut self,
        work: &ObjectWork,
        run: &Range<u64>,
        input: &[u8],
    ) -> Result<Bytes, Failure> {
        let space = work.output(run);
        let mut output =
            Vec::with_capacity(usize::try_from(space.end - space.start).map_err(Failure::never)?);
        work.crypt(run, input, &mut output, &mut self.slots, &mut self.caller).map_err(of)?;
        Ok(output.into())
    }
}

/// What an error of the file's means for the object.
fn of(error: FileError) -> Failure {
    let kind = match &error {
        FileError::Changed => Kind::Changed,
        FileError::Format(FormatError::Library(_))
        | FileError::Io(_)
        | FileError::Stopped
        | FileError::Job { .. } => Kind::Transient,
        _ => Kind::Never,
    };
    Failure::new(kind, error)
}
