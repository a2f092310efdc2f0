//! A verification: every encrypted file is opened whole and nothing is written; with sources beside it, both are compared.
//!
//! inputs -> [`Queue`] (names, lazily) -> a thread: header -> body -> all segments ([`compare`]) -> verified, or failed with the reason.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use evener::{Caller, Cancel};
use evener_core::Job;
use rustix::fs::{FileType, OFlags};

use super::proof::compare;
use super::worker::{Run, Worker};
use crate::armor::ARMOR_START_BYTES;
use crate::error::{FileError, FormatError};
use crate::input::beneath::Root;
use crate::input::source_file::SourceFile;
use crate::output::is_draft;
use crate::record::{Record, is_record};
use crate::report::{Progress, Summary};
use crate::request::Request;
use crate::segments::{FileWork, KeyTrial, slots};
use crate::walk::{Descent, Found};

/// A run that verifies.
pub(crate) struct Verification<'a> {
    run: Run<'a>,
    queue: Mutex<Queue>,
    summary: Mutex<Summary>,
}

/// An encrypted file, and the plaintext that it is compared with.
struct Pair {
    path: PathBuf,
    root: Option<Arc<Root>>,
    plain: Option<(Option<Arc<Root>>, PathBuf)>,
}

/// Inputs that were not looked at yet, each with its other side.
struct Queue {
    inputs: VecDeque<(PathBuf, Option<PathBuf>)>,
    /// The tree that is walked, and those that come next: the plain side after the encrypted one.
    trees: VecDeque<Tree>,
}

struct Tree {
    descent: Descent,
    other: Option<Arc<Root>>,
    /// Whether it is the plain side that is walked, for files that were never encrypted.
    is_plain_side: bool,
}

enum Met {
    Pair(Pair),
    Failed(PathBuf, FileError),
}

impl<'a> Verification<'a> {
    pub(crate) fn new(
        request: &'a Request,
        sources: &[PathBuf],
        against: Option<&Path>,
        plan: slots::Plan,
        progress: &'a Progress,
        record: &'a Record,
        cancel: &'a Cancel,
    ) -> Self {
        let other = |source: &PathBuf| match (against, sources.len()) {
            (Some(against), 1) => Some(against.to_owned()),
            (Some(against), _) => Some(against.join(source.file_name().unwrap_or_default())),
            (None, _) => None,
        };
        let inputs = sources.iter().map(|source| (source.clone(), other(source))).collect();
        let run = Run::new(request, plan, progress, record, cancel);
        Self { run, queue: Mutex::new(Queue { inputs, trees: VecDeque::new() }), summary: Mutex::default() }
    }

    /// One thread: verifies files until there are none.
    pub(crate) fn work<'m>(&self, caller: Caller<'_, 'm>, slots: Vec<Box<Job<'m>>>) {
        let mut worker = Worker::new(&self.run, caller, slots);
        while !self.run.is_stopped() {
            let met = self.queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            match met {
                None => break,
                Some(Met::Failed(path, error)) => worker.failed(path, error),
                Some(Met::Pair(pair)) if self.run.request.options.left_out.contains(&pair.path) => {}
                Some(Met::Pair(pair)) => {
                    let verified = verify(&mut worker, &pair);
                    if verified.is_ok() {
                        worker.run.progress.add_file();
                    }
                    let bytes = (verified.as_ref().copied().unwrap_or(0), 0);
                    worker.summary.record(pair.path, bytes, verified.map(drop));
                }
            }
        }
        let summary = worker.finish();
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).absorb(summary);
    }

    pub(crate) fn finish(self) -> Summary {
        self.summary.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens all of a file; returns its length.
fn verify(worker: &mut Worker<'_, '_, '_>, pair: &Pair) -> Result<u64, FileError> {
    let cipher = SourceFile::open(pair.root.as_deref(), &pair.path)?;
    if worker.run.request.is_armored(&cipher.read_start(ARMOR_START_BYTES)?) {
        let what = "verification of an armored file (evener decrypt -o /dev/null opens it)";
        return Err(FormatError::Unsupported(what.into()).into());
    }
    let plain = match &pair.plain {
        Some((root, path)) => match SourceFile::open(root.as_deref(), path) {
            Err(FileError::Io(error)) if error.answer().kind() == std::io::ErrorKind::NotFound => {
                return Err(FileError::NoCounterpart(path.clone()));
            }
            plain => Some(plain?),
        },
        None => None,
    };
    let bytes = cipher.len();
    let keys = &mut KeyTrial { caller: &mut worker.caller, slots: &mut worker.slots };
    let work = FileWork::open(worker.run.request, cipher, keys)?;
    if plain.is_none() && work.body.cut().tag_bytes() == 0 {
        let what = "verification of a format without authentication, but against its source";
        return Err(FormatError::Unsupported(what.into()).into());
    }
    match compare(worker, &work.body, work.layout, plain.as_ref(), &work.source)? {
        true => Ok(bytes),
        false => {
            Err(FileError::Differs(pair.plain.as_ref().map_or_else(PathBuf::new, |(_, path)| path.clone())))
        }
    }
}

impl Queue {
    fn next(&mut self) -> Option<Met> {
        loop {
            while let Some(tree) = self.trees.front_mut() {
                match tree.next() {
                    Some(met) => return Some(met),
                    None => drop(self.trees.pop_front()),
                }
            }
            let (path, plain) = self.inputs.pop_front()?;
            if !path.is_dir() {
                let plain = plain.map(|plain| (None, plain));
                return Some(Met::Pair(Pair { path, root: None, plain }));
            }
            match self.begin(&path, plain) {
                Ok(()) => {}
                Err(error) => return Some(Met::Failed(path, error)),
            }
        }
    }

    /// Begins a tree; of its plain side, too, comes what has no counterpart.
    fn begin(&mut self, path: &Path, plain: Option<PathBuf>) -> Result<(), FileError> {
        let root = Root::open(path)?;
        let plain = plain.as_deref().map(Root::open).transpose()?.map(Arc::new);
        let plain_side = match &plain {
            Some(plain) => {
                let (descent, sealed) = (Descent::new(Root::open(plain.path())?), Root::open(path)?);
                Some(Tree { descent, other: Some(Arc::new(sealed)), is_plain_side: true })
            }
            None => None,
        };
        self.trees.push_back(Tree { descent: Descent::new(root), other: plain, is_plain_side: false });
        self.trees.extend(plain_side);
        Ok(())
    }
}

impl Tree {
    fn next(&mut self) -> Option<Met> {
        loop {
            let (path, name) = match self.descent.next()? {
                Found::Other { path, name, kind: FileType::RegularFile, .. } => (path, name),
                Found::Failed(path, error) => return Some(Met::Failed(path, error)),
                Found::Other { .. } | Found::Directory { .. } => continue,
            };
            if is_draft(&name) || is_record(&name) {
                continue;
            }
            let relative = path.strip_prefix(self.descent.root.path()).expect("it was found below");
            let other = self.other.as_ref().map(|other| other.path().join(relative));
            match (&self.other, other) {
                (Some(sealed), Some(other)) if self.is_plain_side => {
                    if sealed.open_found(&other, OFlags::PATH | OFlags::CLOEXEC).is_err() {
                        return Some(Met::Failed(path, FileError::NoCounterpart(other)));
                    }
                }
                (plain, other) => {
                    let plain = other.map(|other| (plain.clone(), other));
                    let root = Some(Arc::clone(&self.descent.root));
                    return Some(Met::Pair(Pair { path, root, plain }));
                }
            }
        }
    }
}
