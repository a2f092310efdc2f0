//! What a run did, as facts: the JSON of `--json` (described by `docs/reference/schemas/report.schema.json`), and what the
//! summary for the eye is made of.

use std::path::Path;

use evener::core::{Method, Tally};
use evener::{ModuleReport, WorkerReport};
use evener_files::{FileError, Planned, Summary};
use serde::Serialize;

use crate::terminal::{Exit, PathDisplay};

/// A run's facts.
#[derive(Serialize)]
pub(crate) struct Report {
    version: &'static str,
    #[serde(flatten)]
    pub(crate) about: RunFacts,
    outcome: &'static str,
    #[serde(flatten)]
    pub(crate) counts: FileCounts,
    pub(crate) seconds: f64,
    /// Times that a class of jobs was kept on the CPU for a while, because modules had cost more than they saved.
    pub(crate) guard_locks: u64,
    pub(crate) workers: Vec<Worker>,
    /// What --dry-run says would be done with files that are not finished.
    pub(crate) planned: Vec<Entry>,
    /// Outputs that had lost their source: deleted, or with --dry-run to be deleted.
    pub(crate) deleted: Vec<String>,
    pub(crate) skipped: Vec<Entry>,
    pub(crate) failed: Vec<Entry>,
}

/// How many files, and how much.
#[derive(Serialize)]
pub(crate) struct FileCounts {
    /// What was found: each is done, done before, left out or failed.
    found: u64,
    pub(crate) files: u64,
    pub(crate) already_done: u64,
    pub(crate) bytes_in: u64,
    bytes_out: u64,
}

/// What one worker did.
#[derive(Serialize)]
pub(crate) struct Worker {
    pub(crate) name: String,
    emulated: bool,
    pub(crate) plain: Work,
    pub(crate) multi_buffer: Work,
    pub(crate) module: Option<Module>,
}

/// What was done in one way.
#[derive(Serialize)]
pub(crate) struct Work {
    bursts: u64,
    pub(crate) jobs: u64,
    bytes: u64,
    failed: u64,
    pub(crate) redone: u64,
    /// Estimated from a sample of bursts; none was sampled where it is null.
    core_seconds: Option<f64>,
}

/// A module's part.
#[derive(Serialize)]
pub(crate) struct Module {
    #[serde(flatten)]
    work: Work,
    checked: u64,
    pub(crate) quarantine: Option<String>,
}

/// A path with a reason.
#[derive(Serialize)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) reason: String,
    /// Whether the run ended before it, which is then the reason.
    #[serde(skip)]
    pub(crate) is_unbegun: bool,
}

/// What the summary of a run does not know of itself.
#[derive(Serialize)]
pub(crate) struct RunFacts {
    pub(crate) direction: &'static str,
    pub(crate) format: &'static str,
    /// The output of a run that makes one beside its input.
    #[serde(skip)]
    pub(crate) output: Option<String>,
    pub(crate) policy: &'static str,
    /// The processor whose cost every job on the CPU was topped up to; no figure is then a speed of Evener.
    pub(crate) emulated_cpu: Option<String>,
}

/// How a run ended.
pub(crate) fn exit(summary: &Summary) -> Exit {
    match (summary.cancelled, summary.failed.is_empty()) {
        (true, _) => Exit::Stopped,
        (false, true) => Exit::Done,
        (false, false) => Exit::SomeFailed,
    }
}

impl Report {
    pub(crate) fn new(summary: &Summary, about: RunFacts) -> Self {
        let outcome = match exit(summary) {
            Exit::Stopped => STOPPED,
            Exit::SomeFailed => "some_failed",
            Exit::Done | Exit::NothingDone => "done",
        };
        let mut workers: Vec<Worker> = summary.report.workers.iter().map(Worker::new).collect();
        workers.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            version: env!("CARGO_PKG_VERSION"),
            about,
            outcome,
            counts: FileCounts {
                found: summary.found,
                files: summary.files,
                already_done: summary.already_done,
                bytes_in: summary.bytes_in,
                bytes_out: summary.bytes_out,
            },
            seconds: summary.elapsed.as_secs_f64(),
            guard_locks: summary.report.guarded.locks,
            workers,
            planned: summary
                .planned
                .iter()
                .map(|(path, planned)| Entry::new(path, &plan(*planned)))
                .collect(),
            deleted: summary.deleted.iter().map(|path| PathDisplay(path).to_string()).collect(),
            skipped: summary.skipped.iter().map(|(path, reason)| Entry::new(path, reason)).collect(),
            failed: summary.failed.iter().map(|(path, error)| Entry::failed(path, error)).collect(),
        }
    }
}

const fn plan(planned: Planned) -> &'static str {
    match planned {
        Planned::Make => "make",
        Planned::Replace => "make again",
        Planned::LookInside => "look inside",
    }
}

const STOPPED: &str = "stopped";

impl Report {
    pub(crate) fn is_stopped(&self) -> bool {
        self.outcome == STOPPED
    }

    /// What was emulated: figures are then no speed of Evener.
    pub(crate) fn emulated(&self) -> Vec<String> {
        let cpu = self.about.emulated_cpu.iter().map(|cpu| format!("the CPU cost of {cpu}"));
        let modules = self.workers.iter().filter(|worker| worker.emulated).map(|worker| worker.name.clone());
        cpu.chain(modules).collect()
    }
}

impl Worker {
    fn new(report: &WorkerReport) -> Self {
        Self {
            name: report.name.clone(),
            emulated: report.name.starts_with("emulated"),
            plain: Work::new(&report.methods[Method::Plain as usize]),
            multi_buffer: Work::new(&report.methods[Method::MultiBuffer as usize]),
            module: report.module.as_ref().map(Module::new),
        }
    }

    /// Bytes by plain, by multi-buffer and by the module.
    pub(crate) fn bytes(&self) -> [u64; 3] {
        let module = self.module.as_ref().map_or(0, |module| module.work.bytes);
        [self.plain.bytes, self.multi_buffer.bytes, module]
    }
}

impl Work {
    fn new(tally: &Tally) -> Self {
        Self {
            bursts: tally.bursts,
            jobs: tally.jobs,
            bytes: tally.bytes,
            failed: tally.failed,
            redone: tally.redone,
            core_seconds: tally.core_time().map(|core| core.as_secs_f64()),
        }
    }
}

impl Module {
    fn new(report: &ModuleReport) -> Self {
        Self {
            work: Work::new(&report.tally),
            checked: report.checked,
            quarantine: report.quarantine.map(|why| why.to_string()),
        }
    }
}

impl Entry {
    fn new(path: &Path, reason: &impl std::fmt::Display) -> Self {
        Self {
            path: PathDisplay(path).to_string(),
            reason: crate::terminal::output::one_line(&reason.to_string()),
            is_unbegun: false,
        }
    }

    fn failed(path: &Path, error: &FileError) -> Self {
        Self { is_unbegun: matches!(error, FileError::Stopped), ..Self::new(path, error) }
    }
}
