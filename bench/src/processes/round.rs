//! One round: the processes are forked, start together, and are reaped.

use std::fs::{Permissions, set_permissions};
use std::io::{Write as _, stderr};
use std::os::unix::fs::PermissionsExt as _;
use std::thread;
use std::time::{Duration, Instant};

use evener_arbiter::{Arbiter, Module, Options, Shape};
use evener_fd::Directories;
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use tempfile::TempDir;

use super::board::{Board, Entry, Usage};
use super::child::Child;
use super::process::{self, Start};
use super::{Experiment, Figures, LISTS, Mode};
use crate::error::BenchError;

/// The arbiters of a measurement, in a segment each, which is theirs alone and which goes with this.
#[derive(Debug)]
pub struct Gates {
    experiment: Experiment,
    arbiters: [Arbiter; 2],
    /// The module's gate alone, and the 64 lists.
    gate: Vec<Module>,
    lists: Vec<Module>,
    _folder: TempDir,
}

/// What a round was.
#[derive(Clone, Debug)]
pub struct Round {
    /// What it did.
    pub figures: Figures,
    /// The processes' ids, in the order of their start.
    pub ids: Vec<u32>,
}

/// Processes that a round may have: what the arbiter's segment has places for, less this process and the others that look on.
#[must_use]
pub const fn processes_max() -> usize {
    Shape::USUAL.places() - 8
}

impl Gates {
    /// Makes the segments, and names the modules in them.
    ///
    /// # Errors
    ///
    /// [`BenchError::Library`] where there is no segment to be had.
    pub fn new(experiment: &Experiment) -> Result<Self, BenchError> {
        let lost = |error: String| BenchError::Library(format!("no arbiter: {error}"));
        let folder = TempDir::with_prefix("evener-processes-").map_err(|error| lost(error.to_string()))?;
        set_permissions(folder.path(), Permissions::from_mode(0o700))
            .map_err(|error| lost(error.to_string()))?;
        let attach = |name: &str, shape| {
            let directories = Directories::only(folder.path().to_owned());
            let options = Options { directories, name: name.to_owned(), shape, ..Options::default() };
            Arbiter::attach(&options).map_err(|error| lost(error.to_string()))
        };
        let arbiters = [attach("arbiter", Shape::USUAL)?, attach("lists", Shape::LISTS)?];
        let gate = vec![arbiters[0].module("the module", experiment.permits)];
        let lists = (0..LISTS).map(|list| arbiters[1].module(&format!("list {list}"), 1)).collect();
        let gates = Self { experiment: experiment.clone(), arbiters, gate, lists, _folder: folder };
        let is_named = |module: &Module| module.capacity().is_some();
        match gates.gate.iter().chain(&gates.lists).all(is_named) {
            true => Ok(gates),
            false => Err(lost("the segment has no space".to_owned())),
        }
    }

    /// Has so many processes do so many requests each.
    ///
    /// # Errors
    ///
    /// [`BenchError`] where they cannot be started, or one of them fails or does not end in time.
    pub fn round(&self, mode: Mode, processes: usize, requests: usize) -> Result<Round, BenchError> {
        check(mode, processes)?;
        let experiment = &self.experiment;
        let board = Board::new(experiment.units.max(1), processes, requests)?;
        let gates = match mode {
            Mode::Lists64 => &self.lists[..],
            Mode::Fifo | Mode::Flags => &self.gate,
            Mode::Plain | Mode::Queue | Mode::Cores => &[],
        };
        let mut children = Vec::with_capacity(processes);
        for number in 0..processes {
            let start = Start { board: &board, experiment, mode, gates, number, requests };
            children.push(fork(&start, processes)?);
            // A host answers a few newcomers at a time, and each asks whether it computes rightly.
            self.wait_until_ready(&board, (number + 1).saturating_sub(NEWCOMERS_MAX))?;
        }
        self.wait_until_ready(&board, processes)?;
        board.start();
        let ids: Vec<u32> = children.iter().map(Child::id).collect();
        let lost = children.into_iter().map(Child::ends_well).filter(|is_well| !is_well).count();
        if lost > 0 {
            return Err(BenchError::Library(format!(
                "{lost} of {processes} processes failed ({})",
                mode.name()
            )));
        }
        let log = |process| (0..requests).map(|request| board.read_entry(process, request)).collect();
        let logs: Vec<Vec<Entry>> = (0..processes).map(log).collect();
        let usages: Vec<Usage> = (0..processes).map(|process| board.read_usage(process)).collect();
        let figures = Figures::of(experiment, mode, &logs, &usages);
        let figures = figures.ok_or_else(|| BenchError::Cell("a round without a request".to_owned()))?;
        Ok(Round { figures, ids })
    }

    /// Waits until so many are ready.
    fn wait_until_ready(&self, board: &Board, processes: usize) -> Result<(), BenchError> {
        let until = Instant::now() + self.experiment.limit;
        while board.ready() < processes {
            if Instant::now() > until || board.failures() > 0 {
                let ready = board.ready();
                return Err(BenchError::Library(format!("only {ready} of {processes} processes got ready")));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// Processes that get ready at the same time.
const NEWCOMERS_MAX: usize = 16;

impl Drop for Gates {
    fn drop(&mut self) {
        self.arbiters.iter().for_each(Arbiter::unlink);
    }
}

/// Whether there is space for so many.
fn check(mode: Mode, processes: usize) -> Result<(), BenchError> {
    if mode.has_gate() && processes > processes_max() {
        let most = processes_max();
        return Err(BenchError::Cell(format!(
            "the arbiter's segment has places for {most} processes, not {processes}"
        )));
    }
    match getrlimit(Resource::Nproc).current {
        Some(most) if most < processes as u64 => Err(BenchError::Cell(format!(
            "this user may have {most} processes (RLIMIT_NPROC), not {processes}: ulimit -u says and raises it"
        ))),
        _ => Ok(()),
    }
}

fn fork(start: &Start<'_>, processes: usize) -> Result<Child, BenchError> {
    // The limit counts from the start, and once more for getting ready.
    let seconds = u32::try_from(start.experiment.limit.as_secs().saturating_mul(2)).unwrap_or(u32::MAX);
    let life = || match bind(start.experiment.bound_to).and_then(|()| process::run(start)) {
        Ok(()) => true,
        Err(error) => {
            // The first says why. Where no process reads it, the round fails all the same.
            if start.board.count_failure() == 0 {
                writeln!(stderr(), "process {}: {error}", start.number).unwrap_or_default();
            }
            false
        }
    };
    Child::fork(seconds.max(1), life).map_err(|error| {
        BenchError::Library(format!("process {} of {processes} cannot be started: {error}", start.number + 1))
    })
}

fn bind(core: Option<usize>) -> Result<(), BenchError> {
    let Some(core) = core else { return Ok(()) };
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(|error| BenchError::Library(format!("core {core}: {error}")))
}
