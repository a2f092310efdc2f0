//! An existing output: what stands under a final name already, and whether it is the finished result of this run's request.
//!
//! `judge`: what stands there -> what the record says of it ([`recorded`]) -> else what it holds ([`super::proof`]) -> finished, to be made, an error.

use rustix::fs::{FileType, Stat};

use super::header::header_of;
use super::proof::{Proof, does_key_fit, prove};
use super::worker::Worker;
use super::{armored_source, links};
use crate::error::FileError;
use crate::input::source_file::SourceFile;
use crate::output::{renew, unnamed_file};
use crate::record::{Asked, Known, Row, Stamp, TICK};
use crate::request::{Existing, Request, Task};
use crate::segments::START_BYTES;
use crate::walk::{Identity, Item, What};

/// What is to be done about a file.
pub(super) enum Judged {
    /// Its finished result is there.
    Finished(Option<Linked>),
    /// It is to be made.
    ToDo(Box<ToDo>),
    /// Something is there that a run beside this one may just have made.
    Contested,
}

/// What a source with several names is, and its output.
pub(super) struct Linked {
    pub(super) source: Identity,
    pub(super) output: Identity,
    /// What is recorded of the output.
    pub(super) row: Option<Row>,
}

/// A file that is to be made.
pub(super) struct ToDo {
    pub(super) source: SourceFile,
    /// The source before it is read; `None` where a change of it might not show.
    pub(super) stamp: Option<Stamp>,
    /// Whether the output takes the place of another.
    pub(super) replaces: bool,
}

/// Whether the finished result of `item` stands under its final name. What else stands there is an error, unless the options say that it is
/// replaced.
pub(super) fn judge(worker: &mut Worker<'_, '_, '_>, item: &Item) -> Result<Judged, FileError> {
    match judge_now(worker, item, true) {
        Err(error) if may_be_of_another_run(&error) && worker.run.record.read_beside() => {
            // Its row may have come meanwhile.
            match judge_now(worker, item, true) {
                Err(error) if may_be_of_another_run(&error) => Ok(Judged::Contested),
                judged => judged,
            }
        }
        // Another thread gives it, under another of its names, what changed of its source.
        Err(FileError::Changed | FileError::OtherNames) if has_other_names(item) => judge_again(worker, item),
        judged => judged,
    }
}

/// Judges a file whose output another thread may be at under another of its names, until that has ended.
fn judge_again(worker: &mut Worker<'_, '_, '_>, item: &Item) -> Result<Judged, FileError> {
    let mut judged = judge_now(worker, item, true);
    for _ in 0..LOOKS_AT_NAMES {
        if !matches!(judged, Err(FileError::Changed | FileError::OtherNames)) {
            break;
        }
        std::thread::sleep(BETWEEN_LOOKS_AT_NAMES);
        judged = judge_now(worker, item, true);
    }
    judged
}

/// How often and at which intervals a file with several names is looked at again. Assumed, not measured: 0.2 s together, a thousand times
/// what it takes to set what changed.
const LOOKS_AT_NAMES: u32 = 40;
const BETWEEN_LOOKS_AT_NAMES: std::time::Duration = std::time::Duration::from_millis(5);

/// Names up to this length are good on most file systems; of a longer one it is asked before the work, not behind it.
const NAME_BYTES: usize = 255;

/// Whether the output is a file with several names.
fn has_other_names(item: &Item) -> bool {
    item.dir.stat(&item.name).is_ok_and(|stat| stat.is_some_and(|stat| stat.st_nlink > 1))
}

/// Judges a file that was put off to the end: waits a while for the row of a run beside this one.
pub(super) fn judge_contested(worker: &mut Worker<'_, '_, '_>, item: &Item) -> Result<(), FileError> {
    if matches!(item.what, What::Link(..)) {
        return if links::stands(item)? { Ok(()) } else { Err(FileError::Exists) };
    }
    let mut looks = 0;
    loop {
        let error = match judge_now(worker, item, false) {
            Ok(Judged::Finished(names)) => {
                names
                    .inspect(|names| worker.run.hard_links.done(names.source, Some(names.output), names.row));
                return Ok(());
            }
            Ok(_) => FileError::Exists,
            Err(error) => error,
        };
        looks += 1;
        let is_over = looks == LOOKS || worker.run.is_stopped() || !worker.run.record.read_beside();
        if is_over || !may_be_of_another_run(&error) {
            return Err(error);
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// How often and at which intervals a row of another run is waited for. Assumed, not measured: 10 s together, longer than a
/// settlement takes from the first name to the rows.
const LOOKS: u32 = 200;
const BETWEEN_LOOKS: std::time::Duration = std::time::Duration::from_millis(50);

const fn may_be_of_another_run(error: &FileError) -> bool {
    matches!(error, FileError::Exists | FileError::UnknownRecipients)
}

fn judge_now(worker: &mut Worker<'_, '_, '_>, item: &Item, is_met_first: bool) -> Result<Judged, FileError> {
    // In a directory that this run made nothing stands at first; a run beside it may have put something there since.
    let is_new = is_met_first && item.dir.is_new && item.name.len() <= NAME_BYTES;
    let stat = if is_new { None } else { item.dir.stat(&item.name)? };
    let Some(stat) = stat else { return Ok(Judged::ToDo(Box::new(open(worker, item)?))) };
    let identity = |stat: &Stat| (stat.st_dev, stat.st_ino);
    let linked =
        |names: Option<Identity>, row| names.map(|source| Linked { source, output: identity(&stat), row });
    let existing = worker.run.request.options.existing;
    let known = match existing {
        Existing::Replace => None,
        _ => worker.run.record.find(item.dir.spot.join(&item.name)),
    };
    if let Some(known) = known.filter(|known| worker.run.record.is_same(&known.row.output, &Stamp::of(&stat)))
    {
        if let Some(source) = recorded(worker, item, &known)? {
            let names = (source.st_nlink > 1).then(|| identity(&source));
            return Ok(Judged::Finished(linked(names, Some(known.row))));
        }
    }
    let todo = open(worker, item)?;
    let todo = ToDo { replaces: existing != Existing::Keep, ..todo };
    let source = &todo.source;
    if identity(&stat) == identity(source.named_stat()) {
        return Err(FileError::SameFile);
    }
    if worker.run.outputs.has_made(identity(&stat)) && stat.st_nlink == 1 {
        return Err(FileError::SameName);
    }
    if worker.run.outputs.is_input(identity(&stat)) {
        return Err(FileError::InputInOutput);
    }
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        return Err(FileError::Directory);
    }
    let replaced = |todo: ToDo| match worker.run.outputs.is_key(identity(&stat)) {
        true => Err(FileError::KeyInOutput),
        false => Ok(Judged::ToDo(Box::new(todo))),
    };
    if existing == Existing::Replace {
        return replaced(todo);
    }
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        // A link that Evener made of one that stood in the place of the source.
        let is_ours =
            known.is_some_and(|known| worker.run.record.is_same(&known.row.output, &Stamp::of(&stat)));
        return match existing {
            Existing::Update if is_ours => replaced(todo),
            _ if is_ours => Err(FileError::Outdated),
            _ => Err(FileError::Exists),
        };
    }
    match look_inside(worker, item, &todo, known)? {
        Found::Finished(row) => Ok(Judged::Finished(linked(todo.source.names(), row))),
        Found::Ours(_) if worker.run.outputs.is_key(identity(&stat)) => Err(FileError::KeyInOutput),
        Found::Ours(_) if existing == Existing::Update => Ok(Judged::ToDo(Box::new(todo))),
        Found::Ours(error) | Found::Others(error) => Err(error),
    }
}

/// What stands there.
enum Found {
    /// The finished result, and what is recorded of it.
    Finished(Option<Row>),
    /// An output of Evener's, and why it is not the finished result.
    Ours(FileError),
    Others(FileError),
}

/// Whether the record says that the output, which is as it was written, was made from the source as it is and for this request.
/// Returns what the source is.
fn recorded(worker: &mut Worker<'_, '_, '_>, item: &Item, known: &Known) -> Result<Option<Stat>, FileError> {
    let record = worker.run.record;
    let is_same = |stat: &Stat| record.is_same(&known.row.source, &Stamp::of(stat));
    let Some(source) = item.look().filter(is_same) else { return Ok(None) };
    match asked(worker, item, known)? {
        // Each file would only say so again, after a second of work.
        Asked::OtherPassphrase if worker.run.request.options.existing == Existing::Keep => {
            Err(FileError::OtherKey)
        }
        asked => Ok((asked == Asked::Same).then_some(source)),
    }
}

/// How a row stands to this run's request. The first of a group is opened, to see whether the passphrase is the same.
fn asked(worker: &mut Worker<'_, '_, '_>, item: &Item, known: &Known) -> Result<Asked, FileError> {
    let record = worker.run.record;
    let asked = record.asked(known);
    if asked != Asked::IfOpens {
        return Ok(asked);
    }
    record.confirm(known, || {
        let source = open(worker, item)?;
        let Some(existing) = open_existing(worker, item)? else { return Ok(false) };
        match does_key_fit(worker, &source.source, &existing) {
            Err(FileError::Format(_)) => Ok(false),
            fits => fits,
        }
    })
}

/// Opens both and compares them, as far as the keys at hand go.
fn look_inside(
    worker: &mut Worker<'_, '_, '_>,
    item: &Item,
    todo: &ToDo,
    known: Option<Known>,
) -> Result<Found, FileError> {
    let source = &todo.source;
    let record = worker.run.record;
    let Some(existing) = open_existing(worker, item)? else {
        // Another form than is asked for: Evener's own where the record knows it.
        let of_output = item.dir.stat(&item.name)?.as_ref().map(Stamp::of);
        let is_ours =
            known.zip(of_output).is_some_and(|(known, now)| record.is_same(&known.row.output, &now));
        return Ok(if is_ours { Found::Ours(FileError::Exists) } else { Found::Others(FileError::Exists) });
    };
    let (of_source, of_output) = (Stamp::of(source.named_stat()), Stamp::of(existing.named_stat()));
    let known = row_of(worker, item, &existing)?.or(known);
    let has_header = match known {
        Some(known) => {
            known.row.output.bytes == of_output.bytes
                && known.row.header == header_of(&worker.run.request.task, &existing)?
        }
        None => false,
    };
    let has_changed = known.is_some_and(|known| !record.is_same(&known.row.source, &of_source));
    let is_known = has_header && !has_changed;
    // Who promised it may not have seen which owner and mode it got with its name, and a row of a file that it replaced tells nothing of it.
    let promised = known.filter(|known| has_header && known.row.is_promise());
    let may_differ = !is_known || promised.is_some();
    let is_it = known.is_some_and(|known| record.is_same(&known.row.output, &of_output))
        || promised.is_some_and(|known| known.row.output.inode == of_output.inode);
    // Only its times are others, as where a file system rounds them: known by its header where nothing opens it, or nothing soon.
    if let Some(known) = known.filter(|_| is_known && worker.run.request.task.is_dear_to_open()) {
        if asked(worker, item, &known)? == Asked::Same {
            sync_name(item, Some(known), &of_output)?;
            let output = renewed(item, todo, &existing, may_differ, is_it)?;
            return Ok(Found::Finished(add(worker, item, todo.stamp, &existing, output)));
        }
    }
    let proof = prove(worker, source, &existing)?;
    let is_ours = proof == Proof::OfOtherContents
        || (has_header && matches!(worker.run.request.task, Task::Encrypt(_)))
        || is_it;
    Ok(match proof {
        Proof::Same => {
            sync_name(item, known, &of_output)?;
            let output = renewed(item, todo, &existing, may_differ, is_it)?;
            Found::Finished(add(worker, item, todo.stamp, &existing, output))
        }
        Proof::OfOtherContents => Found::Ours(FileError::Outdated),
        _ if is_ours && has_changed => Found::Ours(FileError::Outdated),
        _ if is_ours => Found::Ours(FileError::OtherKey),
        Proof::Unseen => Found::Others(FileError::UnknownRecipients),
        Proof::Other => Found::Others(FileError::Exists),
    })
}

/// What is written of the output that stands there, known by its header: a row that tells of it, or that a killed run promised it.
fn row_of(
    worker: &Worker<'_, '_, '_>,
    item: &Item,
    existing: &SourceFile,
) -> Result<Option<Known>, FileError> {
    let Request { task, .. } = worker.run.request;
    let (record, spot) = (worker.run.record, item.dir.spot.join(&item.name));
    if !matches!(task, Task::Encrypt(_)) || !record.tells_of(spot) {
        return Ok(None);
    }
    Ok(record.find_by_header(spot, header_of(task, existing)?))
}

/// Makes the name of an output last that a killed run, or one beside this one, gave it and did not say so.
fn sync_name(item: &Item, known: Option<Known>, output: &Stamp) -> Result<(), FileError> {
    match known {
        Some(known) if !known.row.is_promise() => Ok(()),
        _ => item.dir.sync_names_until(output.changed_ns),
    }
}

/// Opens what stands there; where a text is asked for, the binary file in it, and nothing where it is none.
fn open_existing(worker: &Worker<'_, '_, '_>, item: &Item) -> Result<Option<SourceFile>, FileError> {
    let existing = item.dir.open_file(&item.name)?;
    let Request { task, options, .. } = worker.run.request;
    let Task::Encrypt(sealer) = task else { return Ok(Some(existing)) };
    if !options.armor {
        return Ok(Some(existing));
    }
    let binary = armored_source::dearmored(
        sealer.armor(),
        existing,
        || unnamed_file(&item.dir),
        || worker.run.is_stopped(),
    )?;
    Ok(binary.named.is_some().then_some(binary))
}

/// Gives an output that was proven to be finished what else its source has, where that `may_differ`; `is_ours` says that the record knows
/// it as it is. What changed of the output alone, as times do in some stores, stays.
fn renewed(
    item: &Item,
    todo: &ToDo,
    existing: &SourceFile,
    may_differ: bool,
    is_ours: bool,
) -> Result<Stamp, FileError> {
    let stat = match may_differ {
        true => renew(existing, &todo.source, is_ours, item.dir.keep())?,
        false => *existing.named_stat(),
    };
    Ok(Stamp::of(&stat))
}

/// Records what was proven, and returns it.
fn add(
    worker: &mut Worker<'_, '_, '_>,
    item: &Item,
    source: Option<Stamp>,
    existing: &SourceFile,
    output: Stamp,
) -> Option<Row> {
    let header = header_of(&worker.run.request.task, existing).unwrap_or_default();
    let spot = item.dir.spot.join(&item.name);
    let row = Row { spot, source: source?, output, header };
    worker.proven(row);
    Some(row)
}

/// Opens the source; an armored one as the binary file in it.
fn open(worker: &Worker<'_, '_, '_>, item: &Item) -> Result<ToDo, FileError> {
    let mut source = item.open()?;
    let young = Stamp::of(&source.stat).settles_in();
    if !young.is_zero() && young <= TICK {
        // So that whatever is changed from now on shows: few files are so young, and the first of them waits for all.
        std::thread::sleep(young);
        source = item.open()?;
    }
    let stamp = Stamp::of(&source.stat);
    let stamp = stamp.settles_in().is_zero().then_some(stamp);
    if let Task::Decrypt(opener) = &worker.run.request.task {
        source.read_ahead(START_BYTES)?;
        source = armored_source::dearmored(
            opener.armor(),
            source,
            || unnamed_file(&item.dir),
            || worker.run.is_stopped(),
        )?;
    }
    Ok(ToDo { source, stamp, replaces: false })
}
