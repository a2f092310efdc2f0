//! What a run did, as facts: the JSON that the command, the Python package and shards tell it in, described by
//! `docs/reference/schemas/report.schema.json`.

use std::path::Path;

use evener::core::{Method, Tally};
use evener::{ModuleReport, WorkerReport};
use evener_fd::text::{PathDisplay, one_line};
use serde::Serialize;

use crate::error::FileError;
use crate::report::{Planned, Summary};

/// A run's facts.
#[derive(Serialize)]
pub struct Report {
    version: &'static str,
    #[serde(flatten)]
    /// What the run was to do.
    pub about: RunFacts,
    outcome: Outcome,
    #[serde(flatten)]
    /// How many files, and how much.
    pub counts: FileCounts,
    /// From start to end.
    pub seconds: f64,
    /// Times that a class of jobs was kept on the CPU for a while, because modules had cost more than they saved.
    pub guard_locks: u64,
    /// What each worker did, by their names.
    pub workers: Vec<Worker>,
    /// What --dry-run says would be done with files that are not finished.
    pub planned: Vec<Entry>,
    /// Outputs that had lost their source: deleted, or with --dry-run to be deleted.
    pub deleted: Vec<String>,
    /// What was left out.
    pub skipped: Vec<Entry>,
    /// What failed.
    pub failed: Vec<Entry>,
}

/// How many files, and how much.
#[derive(Serialize)]
pub struct FileCounts {
    /// What was found: each is done, done before, left out or failed.
    found: u64,
    /// Files that this run finished.
    pub files: u64,
    /// Files whose finished result was there before.
    pub already_done: u64,
    /// Their input.
    pub bytes_in: u64,
    bytes_out: u64,
}

/// What one worker did.
#[derive(Serialize)]
pub struct Worker {
    /// What it is called.
    pub name: String,
    emulated: bool,
    /// One job after the other, on a core.
    pub plain: Work,
    /// Many jobs side by side, on a core.
    pub multi_buffer: Work,
    /// By a module, where it is one's.
    pub module: Option<Module>,
}

/// What was done in one way.
#[derive(Serialize)]
pub struct Work {
    bursts: u64,
    /// Jobs that were done.
    pub jobs: u64,
    bytes: u64,
    failed: u64,
    /// Jobs that were done again on a core.
    pub redone: u64,
    /// Estimated from a sample of bursts; none was sampled where it is null.
    core_seconds: Option<f64>,
}

/// A module's part.
#[derive(Serialize)]
pub struct Module {
    #[serde(flatten)]
    work: Work,
    checked: u64,
    /// Why it got no more jobs, where it gets none.
    pub quarantine: Option<String>,
}

/// A path with a reason.
#[derive(Serialize)]
pub struct Entry {
    /// It as one line.
    pub path: String,
    /// A sentence.
    pub reason: String,
    /// Whether the run ended before it, which is then the reason.
    #[serde(skip)]
    pub is_unbegun: bool,
}

/// What the summary of a run does not know of itself.
#[derive(Serialize)]
pub struct RunFacts {
    /// `encrypt`, `decrypt` or `verify`.
    pub direction: &'static str,
    /// `tink`, `age` or `openssl`.
    pub format: &'static str,
    /// The output of a run that makes one beside its input.
    #[serde(skip)]
    pub output: Option<String>,
    /// Which worker took which job.
    pub policy: &'static str,
    /// The processor whose cost every job on the CPU was topped up to; no figure is then a speed of Evener.
    pub emulated_cpu: Option<String>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything that was found is done.
    Done,
    /// Some files failed.
    SomeFailed,
    /// It was stopped before its end.
    Stopped,
}

impl Outcome {
    /// How the run of `summary` ended.
    #[must_use]
    pub fn of(summary: &Summary) -> Self {
        match (summary.cancelled, summary.failed.is_empty()) {
            (true, _) => Self::Stopped,
            (false, true) => Self::Done,
            (false, false) => Self::SomeFailed,
        }
    }
}

impl Report {
    /// The facts of a run that has ended.
    #[must_use]
    pub fn new(summary: &Summary, about: RunFacts) -> Self {
        let mut workers: Vec<Worker> = summary.report.workers.iter().map(Worker::new).collect();
        workers.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            version: env!("CARGO_PKG_VERSION"),
            about,
            outcome: Outcome::of(summary),
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

impl Report {
    /// Whether the run was stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.outcome == Outcome::Stopped
    }

    /// What was emulated: figures are then no speed of Evener.
    #[must_use]
    pub fn emulated(&self) -> Vec<String> {
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
    #[must_use]
    pub fn bytes(&self) -> [u64; 3] {
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
        Self { path: PathDisplay(path).to_string(), reason: one_line(&reason.to_string()), is_unbegun: false }
    }

    fn failed(path: &Path, error: &FileError) -> Self {
        Self { is_unbegun: matches!(error, FileError::Stopped), ..Self::new(path, error) }
    }
}
