//! Places: where data come from and go to, and what outputs are called, by what the user named.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use evener::core::Direction;
use evener_files::{Naming, Source, Target, is_read_from_front_to_back, outputs};
use rustix::fs::{FileType, fstat};
use rustix::stdio::stdout;

use super::report_place::Used;
use crate::terminal::PathDisplay;

/// Where data come from and go to.
pub(super) struct Places {
    pub(super) sources: Vec<Source>,
    pub(super) target: Target,
    pub(super) naming: Naming,
    pub(super) direction: Direction,
}

/// What the user named.
pub(super) struct Named<'n> {
    pub(super) inputs: &'n [OsString],
    pub(super) output: Option<&'n OsStr>,
    pub(super) suffix: Option<&'n OsStr>,
}

impl Named<'_> {
    /// Their places; `usual` is the suffix of the format, and an `excerpt` goes to standard output as what has no name does.
    pub(super) fn places(&self, direction: Direction, usual: &str, excerpt: bool) -> Places {
        let target = match self.output {
            Some(output) if output == "-" => Target::Stdout,
            Some(output) => Target::Path(output.into()),
            None if excerpt || self.is_stream() => Target::Stdout,
            None => Target::Beside,
        };
        let suffix = match (&target, self.suffix) {
            (_, Some(suffix)) => Some(suffix),
            (Target::Beside, None) => Some(OsStr::new(usual)),
            _ => None,
        };
        let naming = match (suffix.map(OsStr::to_owned), direction) {
            (None, _) => Naming::Kept,
            (Some(suffix), Direction::Encrypt) => Naming::Added(suffix),
            (Some(suffix), Direction::Decrypt) => Naming::Taken(suffix),
        };
        Places { sources: self.sources(), target, naming, direction }
    }

    fn sources(&self) -> Vec<Source> {
        let source = |input: &OsString| if input == "-" { Source::Stdin } else { Source::Path(input.into()) };
        if self.inputs.is_empty() { vec![Source::Stdin] } else { self.inputs.iter().map(source).collect() }
    }

    /// Whether there is nothing beside which an output could lie.
    fn is_stream(&self) -> bool {
        match self.inputs {
            [] => true,
            [only] => only == "-" || is_read_from_front_to_back(Path::new(only)),
            several => several.iter().any(|input| input == "-"),
        }
    }
}

impl Places {
    /// The name of the output beside the only input.
    pub(super) fn only_output(&self) -> Option<String> {
        let (Target::Beside, [Source::Path(source)]) = (&self.target, &self.sources[..]) else { return None };
        let output = self.naming.output(source.file_name()?).ok()?;
        Some(PathDisplay(&source.with_file_name(output)).to_string())
    }

    /// What outputs are made, or where; `is_archive` says that there is one of all inputs, or one that is unpacked.
    pub(super) fn made(&self, is_archive: bool) -> Vec<Used> {
        let target = match &self.target {
            Target::Path(output) if is_archive && self.direction == Direction::Decrypt => {
                return vec![Used::Unpacked(output.clone())];
            }
            Target::Path(output) if is_archive || self.sources.contains(&Source::Stdin) => {
                return vec![Used::Made(output.clone())];
            }
            Target::Path(output) => Some(output.as_path()),
            Target::Beside => None,
            Target::Stdout | Target::Nowhere(_) => return Vec::new(),
        };
        let sources = self.sources.iter().filter_map(|source| match source {
            Source::Path(path) => Some(path.clone()),
            Source::Stdin => None,
        });
        let made = |(source, output): (PathBuf, PathBuf)| match source.is_dir() {
            true => Used::Mirror { output, source },
            false => Used::Made(output),
        };
        outputs(&sources.collect::<Vec<_>>(), target, &self.naming).into_iter().map(made).collect()
    }
}

/// Takes a suffix that makes names of names.
pub(super) fn suffix(text: OsString) -> Result<OsString, &'static str> {
    let bytes = text.as_bytes();
    let is_taken = [".evener-record", ".draft"].iter().any(|taken| bytes.ends_with(taken.as_bytes()));
    match bytes {
        b"" => Err("it is empty"),
        _ if bytes.contains(&b'/') => Err("a name has no slash"),
        _ if is_taken => Err("it is that of files of Evener's own"),
        _ => Ok(text),
    }
}

/// Whether another program seems to wait for standard output, or a reader: it goes to a pipe or a file.
pub(super) fn stdout_is_awaited() -> bool {
    let kind = fstat(stdout()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::RegularFile))
}
