//! What a shard says: a line of JSON for each object, and one for the whole.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use evener_fd::text::plain;
use rustix::fs::{Mode, OFlags, fstat};
use serde::Serialize;

use crate::outcome::{Exit, Failure, Kind};
use crate::spared::{self, Spared};

/// How an object ended.
pub(crate) enum Ended {
    /// It was made.
    Done { bytes_in: u64, bytes_out: u64 },
    /// Its finished output was there.
    Already,
    /// A range of it was made, or was there; the object itself is counted where it is completed.
    Range { bytes_in: u64, bytes_out: u64 },
    /// It was not made.
    Failed(Failure),
}

/// A line for an object.
#[derive(Serialize)]
struct ObjectLine<'a> {
    object: &'a str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_in: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_out: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    /// Whether another run may do it.
    #[serde(skip_serializing_if = "Option::is_none")]
    try_again: Option<bool>,
}

/// The last line.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Totals {
    pub(crate) shard: u32,
    pub(crate) objects: u64,
    pub(crate) done: u64,
    pub(crate) already_done: u64,
    pub(crate) failed: u64,
    /// Of those, how many another run may do.
    pub(crate) try_again: u64,
    /// Ranges of objects that are completed elsewhere, or were.
    #[serde(skip_serializing_if = "is_none")]
    pub(crate) ranges: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Requests that were tried again.
    pub(crate) retries: u64,
    pub(crate) elapsed_s: f64,
    pub(crate) exit_status: u8,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Where lines go.
pub(crate) type Lines = Box<dyn Write + Send>;

/// Opens where lines go, `-` being standard output. They take the place of nothing that the run reads or makes.
pub(crate) fn lines(path: &Path, spared: &Spared) -> Result<Lines, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdout()));
    }
    let failed = |error: io::Error| unwritten(&error);
    let refused = |why: &str| Failure::never(format_args!("the report {} {why}", path.display()));
    let named = evener_fd::Named::find(path).map_err(failed)?;
    // A device or a pipe takes the place of nothing.
    let takes_a_place = spared::standing(&named).map_err(failed)?.is_none_or(|stat| spared::is_file(&stat));
    if takes_a_place && spared.has_below(&named) {
        return Err(refused("would lie among the objects that this run reads or makes"));
    }
    // What stands there is looked at before it is cut off.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOCTTY;
    let file = File::from(named.open(flags, Mode::from_raw_mode(0o666)).map_err(failed)?);
    let stat = fstat(&file).map_err(|errno| unwritten(&errno.into()))?;
    if let Some(what) = spared.what(&stat) {
        return Err(refused(&format!("would take the place of {what}")));
    }
    if spared::is_file(&stat) {
        file.set_len(0).map_err(failed)?;
    }
    Ok(Box::new(file))
}

/// Another run may find space on a disk that is full.
fn unwritten(error: &io::Error) -> Failure {
    let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let kind = if is_full { Kind::Transient } else { Kind::Never };
    Failure::new(kind, format_args!("cannot write the report: {error}"))
}

/// A report that is being written, by several threads.
pub(crate) struct Report {
    state: Mutex<State>,
    start: Instant,
    is_quiet: bool,
}

struct State {
    totals: Totals,
    lines: Option<Lines>,
    /// Why lines could not be written.
    broken: Option<io::Error>,
}

impl Report {
    /// Begins one.
    pub(crate) fn new(shard: u32, lines: Option<Lines>, is_quiet: bool) -> Self {
        let state = State { totals: Totals { shard, ..Totals::default() }, lines, broken: None };
        Self { state: Mutex::new(state), start: Instant::now(), is_quiet }
    }

    /// Takes an object that ended; a failure is named on standard error at once.
    pub(crate) fn object(&self, name: &str, ended: &Ended) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let totals = &mut state.totals;
        totals.objects += u64::from(!matches!(ended, Ended::Range { .. }));
        let line = ObjectLine {
            object: name,
            outcome: "done",
            bytes_in: None,
            bytes_out: None,
            error: None,
            try_again: None,
        };
        let line = match ended {
            Ended::Done { bytes_in, bytes_out } => {
                (totals.done, totals.bytes_in) = (totals.done + 1, totals.bytes_in + bytes_in);
                totals.bytes_out += bytes_out;
                ObjectLine { bytes_in: Some(*bytes_in), bytes_out: Some(*bytes_out), ..line }
            }
            Ended::Range { bytes_in, bytes_out } => {
                (totals.ranges, totals.bytes_in) = (totals.ranges + 1, totals.bytes_in + bytes_in);
                totals.bytes_out += bytes_out;
                let (bytes_in, bytes_out) = (Some(*bytes_in), Some(*bytes_out));
                ObjectLine { outcome: "range-done", bytes_in, bytes_out, ..line }
            }
            Ended::Already => {
                totals.already_done += 1;
                ObjectLine { outcome: "already-done", ..line }
            }
            Ended::Failed(failure) => {
                totals.failed += 1;
                totals.try_again += u64::from(failure.is_for_again());
                say(format_args!("{name}: {failure}"));
                let (error, try_again) = (Some(failure.text.as_str()), Some(failure.is_for_again()));
                ObjectLine { outcome: "failed", error, try_again, ..line }
            }
        };
        state.write(&line);
    }

    /// Counts a request that is tried again.
    pub(crate) fn tried_again(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).totals.retries += 1;
    }

    /// Writes the last line and says how it went.
    pub(crate) fn finish(self) -> Result<Exit, Failure> {
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let exit = match &state.totals {
            Totals { failed: 0, .. } => Exit::Done,
            Totals { try_again: 0, .. } => Exit::Never,
            _ => Exit::Again,
        };
        state.totals.elapsed_s = self.start.elapsed().as_secs_f64();
        state.totals.exit_status = exit as u8;
        let totals = state.totals.clone();
        state.write(&totals);
        if !self.is_quiet {
            let Totals { shard, done, already_done, failed, ranges, bytes_in, elapsed_s, .. } = totals;
            let ranges = if ranges > 0 { ", its range is" } else { "" };
            say(format_args!(
                "shard {shard}: {done} objects done ({bytes_in} bytes), {already_done} were done{ranges}, {failed} failed; {elapsed_s:.1} s"
            ));
        }
        match state.broken {
            // What an object met for good counts more.
            Some(error) if exit == Exit::Never => {
                say(unwritten(&error));
                Ok(exit)
            }
            Some(error) => Err(unwritten(&error)),
            None => Ok(exit),
        }
    }
}

impl State {
    fn write(&mut self, line: &impl Serialize) {
        let Some(lines) = &mut self.lines else { return };
        let mut text = serde_json::to_vec(line).expect("texts and numbers can be written");
        text.push(b'\n');
        // One write, so that lines of several processes in one pipe stay lines.
        if let Err(error) = lines.write_all(&text).and_then(|()| lines.flush()) {
            self.broken.get_or_insert(error);
        }
    }
}

/// Says something on standard error, in plain characters: strangers give names to objects. Who has closed it does not want to hear.
pub(crate) fn say(text: impl std::fmt::Display) {
    _ = writeln!(io::stderr(), "evener: {}", plain(&text.to_string()));
}
