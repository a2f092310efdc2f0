//! The writing end: standard output, or a draft.

use std::io::{self, IoSlice, Write as _};
use std::path::{Path, PathBuf};

use evener_core::{Direction, Job};
use evener_fd::SystemError;
use rustix::fs::Mode;

use crate::error::FileError;
use crate::format::Body;
use crate::input::place::OpenPlaces;
use crate::output::{Draft, Origin, OutputDir, Outputs, Settlement, write_at};
use crate::request::{Request, RequestError, Target};
use crate::segments::job::{self};

/// Where a pipe's output goes: standard output, or a draft.
pub(super) struct Output {
    draft: Option<Draft>,
    pub(super) written: u64,
    target: PathBuf,
}

impl Output {
    pub(super) fn open(request: &Request) -> Result<Self, RequestError> {
        let Target::Path(path) = &request.target else {
            return Ok(Self { draft: None, written: 0, target: "-".into() });
        };
        let failed = |error: FileError| {
            let answer = io::Error::other(error.to_string());
            RequestError::Stdio(SystemError::of("write the output")(answer))
        };
        let parent =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let name = path.file_name().ok_or_else(|| RequestError::NoName(path.clone()))?;
        let outputs = Outputs::new(request.options.keep, OpenPlaces::new(1));
        let dir = OutputDir::open(parent, &outputs, None).map_err(failed)?;
        if !request.options.force && dir.stat(name).map_err(failed)?.is_some() {
            return Err(failed(FileError::Exists));
        }
        let mode = Mode::from_raw_mode(0o666);
        let draft = Draft::create(&dir, name, mode, request.options.force).map_err(failed)?;
        Ok(Self { draft: Some(draft), written: 0, target: path.clone() })
    }

    /// Writes a finished job; what failed is never written.
    pub(super) fn write_job(
        &mut self,
        body: &Body,
        direction: Direction,
        job: &Job<'_>,
        index: u64,
    ) -> Result<(), FileError> {
        job::check(job, index)?;
        let mut parts = Vec::with_capacity(2);
        job::emit_one(body, direction, job, &mut parts);
        self.write(&mut parts)
    }

    pub(super) fn write(&mut self, parts: &mut [IoSlice<'_>]) -> Result<(), FileError> {
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        match &self.draft {
            Some(draft) => write_at(&draft.file, parts, self.written)?,
            None => {
                let mut stdout = io::stdout().lock();
                let written = parts.iter().try_for_each(|part| stdout.write_all(part));
                let flushed = written.and_then(|()| stdout.flush());
                flushed.map_err(FileError::io("write to standard output"))?;
            }
        }
        self.written += bytes;
        Ok(())
    }

    /// Makes a draft final. What came through standard input has no time or mode to be kept.
    pub(super) fn finish(self) -> Result<(), FileError> {
        let Some(draft) = self.draft else { return Ok(()) };
        let mut settlement = Settlement::default();
        let origin = Origin { path: self.target, bytes_in: 0, bytes_out: self.written, names: None };
        settlement.add(draft.complete(None)?, origin);
        settlement.settle().into_iter().try_for_each(|(_, result)| result)
    }
}
