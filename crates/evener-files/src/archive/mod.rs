//! Archives: a tree goes into one encrypted file, or comes out of one, so that names, sizes, times and links are hidden as well.
//!
//! inputs -> [`Packer`] (bytes of a tar archive, as they are asked for) -> the stream that encrypts
//! the stream that decrypts -> [`Unpacker`] (takes authentic bytes as they come) -> drafts -> their names

mod acl;
mod member;
mod packer;
mod unpacker;

use std::path::Path;
use std::sync::{Arc, PoisonError};

use crate::error::FileError;
use crate::input::descriptors::Descriptors;
use crate::input::place::OpenPlaces;
use crate::output::{OutputDir, Outputs, SyncErrors};
use crate::report::Summary;
use crate::request::{Existing, RequestError, Source, Target, Task};
use crate::stream;
use crate::walk::named_inputs;
use packer::{Packed, Packer};
use unpacker::Unpacker;

/// Packs or unpacks.
pub(crate) fn run(run: &stream::Run<'_>) -> Result<Summary, RequestError> {
    let open = OpenPlaces::new(Descriptors::of_process(run.request.options.workers.max(1)).directories);
    match run.request.task {
        Task::Encrypt(_) => pack(run, &open),
        Task::Decrypt(_) => unpack(run, &open),
    }
}

fn pack(run: &stream::Run<'_>, open: &Arc<OpenPlaces>) -> Result<Summary, RequestError> {
    let (request, options) = (run.request, &run.request.options);
    let sources = request.sources.iter().map(|source| match source {
        Source::Stdin => Err(RequestError::ArchiveOfStdin),
        Source::Path(path) => Ok(path.clone()),
    });
    let target = match &request.target {
        Target::Path(path) => path.as_path(),
        Target::Stdout | Target::Beside | Target::Nowhere(_) => Path::new("-"),
    };
    let inputs = named_inputs(&sources.collect::<Result<Vec<_>, _>>()?, stream::place_of(&request.target))?;
    let packed = Arc::new(Packed::default());
    let packer = Packer::new(inputs, &options.filter, options.keep, open, &packed);
    let output = stream::Output::open(request)?;
    let ended = run.through(Box::new(packer), output)?;
    let mut summary = std::mem::take(&mut *packed.summary.lock().unwrap_or_else(PoisonError::into_inner));
    let fatal = packed.fatal.lock().unwrap_or_else(PoisonError::into_inner).take();
    (summary.report, summary.bytes_out) = (ended.report, ended.bytes_out);
    if let Err(error) = ended.result {
        // What was read went nowhere.
        (summary.files, summary.bytes_in) = (0, 0);
        summary.failed.push(fatal.unwrap_or_else(|| (target.to_owned(), error)));
        summary.found = summary.accounted_for();
    }
    Ok(summary)
}

fn unpack(run: &stream::Run<'_>, open: &Arc<OpenPlaces>) -> Result<Summary, RequestError> {
    let (request, options) = (run.request, &run.request.options);
    let Target::Path(target) = &request.target else { return Err(RequestError::ArchiveToStdout) };
    let (path, input) = run.open_input()?;
    let outputs = Outputs::new(options.keep, Arc::clone(open), &options.key_files);
    let failed = |error: FileError| RequestError::Output { path: target.clone(), error };
    let root = OutputDir::open(target, &outputs, None).map_err(failed)?;
    let errors = SyncErrors::default();
    let replace = options.existing == Existing::Replace;
    let mut unpacker = Unpacker::new(root, &outputs, &errors, &options.filter, replace);
    let ended = run.through(input, stream::Output::sink(&mut unpacker, target))?;
    let result = ended.result;
    let mut summary = unpacker.end(result.is_ok(), run.cancel.is_cancelled());
    summary.report = ended.report;
    if let Err(error) = result {
        summary.failed.push((path, error));
        summary.found = summary.accounted_for();
    }
    Ok(summary)
}
