//! The writing end: standard output, a pipe, a device, or a draft.

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use evener_core::{Direction, Job};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;
use rustix::io::{Errno, writev};

use super::ends::{is_number, is_sink, is_terminal, open_sink};
use crate::armor::{Armor, Encoder};
use crate::error::FileError;
use crate::format::Body;
use crate::input::place::OpenPlaces;
use crate::output::{
    Draft, Origin, OutputDir, Outputs, PARTS_MAX, Settlement, SyncErrors, write_at, write_sparse_at,
};
use crate::request::{Existing, Request, RequestError, Source, Target, Task};
use crate::segments::job::{self};

/// Where a pipe's output goes.
pub(crate) struct Output<'s> {
    sink: Way<'s>,
    pub(super) written: u64,
    target: PathBuf,
    /// What makes text of it, where it is to be text.
    encoder: Option<Encoder>,
    /// Whether runs of zeros are left as holes, where that can be.
    leaves_holes: bool,
}

/// What takes authentic bytes, one part after the other.
pub(crate) trait Sink {
    /// Takes the next ones.
    fn write(&mut self, part: &[u8]) -> Result<(), FileError>;

    /// Whether they may end here.
    fn finish(&mut self) -> Result<(), FileError>;
}

enum Way<'s> {
    /// Bytes are gone when they are written.
    Open(OwnedFd),
    /// Bytes are there when all of them are.
    Draft(Draft),
    /// Bytes are not wanted.
    Nowhere,
    /// Bytes are taken apart.
    Sink(&'s mut dyn Sink),
}

impl<'s> Output<'s> {
    /// Of bytes that are taken apart and go below `target`.
    pub(crate) fn sink(sink: &'s mut dyn Sink, target: &Path) -> Self {
        let (sink, target) = (Way::Sink(sink), target.to_owned());
        Self { sink, written: 0, target, encoder: None, leaves_holes: false }
    }

    /// Of bytes that go where the caller says.
    pub(super) fn given(sink: &'s mut dyn Sink, request: &Request) -> Self {
        Self { encoder: encoder(request), ..Self::sink(sink, Path::new("-")) }
    }

    pub(crate) fn open(request: &Request) -> Result<Self, RequestError> {
        let target = match &request.target {
            Target::Path(path) if !is_sink(path) => return Self::draft(request, path),
            Target::Path(path) => Some(path.as_path()),
            Target::Nowhere(_) => return Ok(Self::nowhere()),
            Target::Stdout | Target::Beside => None,
        };
        let sink = open_sink(target, request.options.existing == Existing::Replace)?;
        let encoder = encoder(request);
        if matches!(request.task, Task::Encrypt(_)) && encoder.is_none() && is_terminal(&sink) {
            return Err(RequestError::Terminal);
        }
        let target = target.unwrap_or_else(|| Path::new("-")).to_owned();
        Ok(Self { sink: Way::Open(sink), written: 0, target, encoder, leaves_holes: false })
    }

    fn nowhere() -> Self {
        Self { sink: Way::Nowhere, written: 0, target: "-".into(), encoder: None, leaves_holes: false }
    }

    fn draft(request: &Request, path: &Path) -> Result<Self, RequestError> {
        let path = &within(path, &request.sources)?;
        let failed = |error: FileError| RequestError::Output { path: path.clone(), error };
        let parent =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let name = path.file_name().ok_or_else(|| RequestError::NoName(path.clone()))?;
        let options = &request.options;
        let outputs = Outputs::new(options.keep, OpenPlaces::new(1), &options.key_files);
        let dir = OutputDir::open(parent, &outputs, None).map_err(failed)?;
        let replace = options.existing == Existing::Replace;
        match dir.stat(name).map_err(failed)? {
            Some(_) if !replace => return Err(RequestError::Exists(path.clone())),
            Some(stat) if outputs.is_key((stat.st_dev, stat.st_ino)) => {
                return Err(failed(FileError::KeyInOutput));
            }
            _ => {}
        }
        let mode = Mode::from_raw_mode(0o666);
        let draft = Draft::create(&dir, name, mode, replace).map_err(failed)?;
        let leaves_holes = matches!(request.task, Task::Decrypt(_)) && request.options.keep.holes;
        let (sink, target) = (Way::Draft(draft), path.clone());
        Ok(Self { sink, written: 0, target, encoder: encoder(request), leaves_holes })
    }

    /// Writes a finished job; what failed is never written.
    pub(super) fn write_job(
        &mut self,
        body: &Body,
        direction: Direction,
        job: &mut Job<'_>,
        index: u64,
    ) -> Result<(), FileError> {
        let mut parts = Vec::with_capacity(2);
        job::emit(body, direction, job, index, &mut parts)?;
        self.write(&mut parts)
    }

    pub(super) fn write(&mut self, parts: &mut [IoSlice<'_>]) -> Result<(), FileError> {
        let Some(encoder) = &mut self.encoder else { return self.write_as_it_is(parts) };
        let mut text = Vec::new();
        parts.iter().for_each(|part| encoder.push(part, &mut text));
        self.write_as_it_is(&mut [IoSlice::new(&text)])
    }

    fn write_as_it_is(&mut self, parts: &mut [IoSlice<'_>]) -> Result<(), FileError> {
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        match &mut self.sink {
            Way::Sink(sink) => parts.iter().try_for_each(|part| sink.write(part))?,
            Way::Draft(draft) if self.leaves_holes => {
                write_sparse_at(&draft.file, parts, self.written)?;
            }
            Way::Draft(draft) => write_at(&draft.file, parts, self.written)?,
            Way::Open(fd) => write_all(fd, parts)?,
            Way::Nowhere => {}
        }
        self.written += bytes;
        Ok(())
    }

    /// Makes a draft final. What came through standard input has no time or mode to be kept.
    pub(super) fn finish(mut self) -> Result<(), FileError> {
        if let Some(encoder) = self.encoder.take() {
            let mut text = Vec::new();
            encoder.finish(&mut text);
            self.write_as_it_is(&mut [IoSlice::new(&text)])?;
        }
        let draft = match self.sink {
            Way::Draft(draft) => draft,
            Way::Sink(sink) => return sink.finish(),
            Way::Open(fd) => return evener_fd::close(fd).map_err(FileError::io("write the output")),
            Way::Nowhere => return Ok(()),
        };
        if self.leaves_holes {
            draft.set_len(self.written)?;
        }
        let errors = SyncErrors::default();
        let mut settlement = Settlement::new(&errors, None);
        let path = self.target;
        let origin = Origin { path, bytes_out: self.written, ..Origin::default() };
        settlement.add(draft.complete(None)?, origin);
        settlement.settle().into_iter().try_for_each(|(_, result)| result)
    }
}

/// What makes text of the output, where it is to be text.
fn encoder(request: &Request) -> Option<Encoder> {
    match &request.task {
        Task::Encrypt(sealer) if request.options.armor => sealer.armor().map(Armor::encoder),
        _ => None,
    }
}

/// The output's name: a source that has one of its own goes into a directory.
fn within(path: &Path, sources: &[Source]) -> Result<PathBuf, RequestError> {
    let ends_in_slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    if !ends_in_slash && !path.is_dir() {
        return Ok(path.to_owned());
    }
    match sources {
        [Source::Path(source)] if !is_number(source) => {
            let name = source.file_name().ok_or_else(|| RequestError::NoName(source.clone()))?;
            Ok(path.join(name))
        }
        _ => Err(RequestError::NoName("-".into())),
    }
}

/// Writes all `parts`, also where the other end wants to be waited for.
fn write_all(fd: &OwnedFd, mut parts: &mut [IoSlice<'_>]) -> Result<(), FileError> {
    while parts.iter().any(|part| !part.is_empty()) {
        let most = parts.len().min(PARTS_MAX);
        match writev(fd, &parts[..most]) {
            Ok(written) => IoSlice::advance_slices(&mut parts, written),
            Err(Errno::INTR) => {}
            // Another process that shares the descriptor has made it so.
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::new(fd, PollFlags::OUT)], None).ok();
            }
            Err(Errno::PIPE) => return Err(FileError::BrokenPipe),
            Err(errno) => return Err(FileError::io("write the output")(errno)),
        }
    }
    Ok(())
}
