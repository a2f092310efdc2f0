//! `encrypt`, `decrypt` and `verify` of files and trees.
//!
//! `arguments -> Request -> a thread that works, without the interpreter ~ this thread, which looks for signals and calls the progress
//! callback -> JSON of the report, and an exception for each file that failed`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use evener::Cancel;
use evener::core::plan::Policy;
use evener::core::{Direction, Estimator, Objective};
use evener_fd::text::PathDisplay;
use evener_files::run_report::{Report, RunFacts};
use evener_files::{
    Existing, Filter, Keep, Naming, Options, Progress, Request, RequestError, Source, Summary, Target, Task,
    Trust, process,
};
use evener_machine::modules::ModuleSpec;
use evener_machine::{Choice, Machine, Silent, state};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::exceptions;
use crate::keys::KeyArguments;
use crate::process::enter;
use crate::words::one_of;

/// What is to be done with which files, as `evener/_files.py` gathers it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
#[expect(clippy::struct_excessive_bools, reason = "each is an argument")]
pub(crate) struct FileArguments {
    sources: Vec<PathBuf>,
    output: Option<PathBuf>,
    against: Option<PathBuf>,
    suffix: Option<PathBuf>,
    force: bool,
    update: bool,
    delete: bool,
    dry_run: bool,
    include: Vec<String>,
    exclude: Vec<String>,
    tar: bool,
    armor: bool,
    threads: Option<usize>,
    memory: Option<u64>,
    modules: Vec<PyBackedStr>,
    policy: PyBackedStr,
}

/// Memory for data in work unless told otherwise, as for the command.
const MEMORY_BYTES: u64 = 192 << 20;
/// How often this thread looks for signals and tells of progress.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// What a run came to: the report as JSON, and what failed, each with its exception.
type Outcome<'py> = (String, Vec<(String, Bound<'py, PyAny>)>);

/// Encrypts, decrypts or verifies.
#[pyfunction]
#[pyo3(signature = (what, keys, files, progress=None))]
pub(crate) fn run_files<'py>(
    py: Python<'py>,
    what: &str,
    keys: KeyArguments,
    files: FileArguments,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Outcome<'py>> {
    enter()?;
    let directions =
        [("encrypt", Direction::Encrypt), ("decrypt", Direction::Decrypt), ("verify", Direction::Decrypt)];
    let direction = one_of("what", what, &directions)?;
    let format = keys.format()?;
    // A key file may be a pipe, and a passphrase takes its time.
    let task = py.detach(|| match direction {
        Direction::Encrypt => keys.sealer().map(Task::Encrypt),
        Direction::Decrypt => keys.opener().map(Task::Decrypt),
    })?;
    let choice = files.choice()?;
    let (policy, is_verification) = (files.policy()?, what == "verify");
    let request = Request {
        task,
        sources: files.sources.iter().cloned().map(Source::Path).collect(),
        target: files.target(is_verification),
        options: files.options(
            direction,
            policy,
            keys.files(),
            (!is_verification).then(|| format.suffix()),
        )?,
    };
    let about = RunFacts {
        direction: directions.iter().find(|(name, _)| *name == what).map_or("encrypt", |(name, _)| *name),
        format: format.name(),
        output: None,
        policy: policy.name(),
        emulated_cpu: None,
    };
    let memory_is_fixed = files.memory.is_some();
    let work =
        move |told: &Progress, cancel: &Cancel| carry_out(request, &choice, memory_is_fixed, told, cancel);
    let summary = watched(py, progress.as_ref(), work)??;
    let failed = summary.failed.iter().map(|(path, error)| {
        let exception = exceptions::of_file(Some(path), error).into_value(py).into_bound(py).into_any();
        (PathDisplay(path).to_string(), exception)
    });
    let failed = failed.collect();
    let report = serde_json::to_string(&Report::new(&summary, about))
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    Ok((report, failed))
}

/// Runs `work` on a thread of its own; meanwhile this one lets other threads of Python's run, looks for signals and tells of progress. What
/// either raises stops the work, and is raised when it has ended.
fn watched<R: Send + 'static>(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Progress, &Cancel) -> R + Send + 'static,
) -> PyResult<R> {
    let progress = Arc::new(Progress::default());
    progress.is_watched.store(callback.is_some_and(wants_total), Ordering::Relaxed);
    let cancel = Cancel::default();
    let (sender, mut receiver) = channel();
    let (told, stop) = (Arc::clone(&progress), cancel.clone());
    let worker = thread::Builder::new().name("evener-python".to_owned());
    worker
        .spawn(move || sender.send(work(&told, &stop)).ok())
        .map_err(|error| PyRuntimeError::new_err(format!("no thread can be had: {error}")))?;
    let mut raised = None;
    loop {
        let waited = &mut receiver;
        let ended = match py.detach(move || waited.recv_timeout(BETWEEN_LOOKS)) {
            Ok(result) => Some(result),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                // Who pressed Ctrl-C before is told of that, which no handler of his would see again.
                return Err(raised.take().unwrap_or_else(|| {
                    PyRuntimeError::new_err("a thread of evener panicked, which is a fault of evener's")
                }));
            }
        };
        if raised.is_none() {
            let looked = py.check_signals().and_then(|()| tell(callback, &progress));
            if let Err(error) = looked {
                cancel.cancel();
                raised = Some(error);
            }
        }
        match (ended, raised.take()) {
            (Some(_), Some(error)) => return Err(error),
            (Some(result), None) => return Ok(result),
            (None, left) => raised = left,
        }
    }
}

/// Whether a callback looks at the total: all do but those that say that they do not, as `evener/aio.py` does.
fn wants_total(callback: &Bound<'_, PyAny>) -> bool {
    !matches!(callback.getattr("wants_total").and_then(|wants| wants.is_truthy()), Ok(false))
}

/// Tells how far the work is: files, bytes, bytes in all or `None` while they are not known.
fn tell(callback: Option<&Bound<'_, PyAny>>, progress: &Progress) -> PyResult<()> {
    let Some(callback) = callback else { return Ok(()) };
    let [files, bytes, total] =
        [&progress.files, &progress.bytes, &progress.total_bytes].map(|count| count.load(Ordering::Relaxed));
    callback.call1((files, bytes, (total > 0).then_some(total))).map(drop)
}

fn carry_out(
    mut request: Request,
    choice: &Choice,
    memory_is_fixed: bool,
    progress: &Progress,
    cancel: &Cancel,
) -> PyResult<Summary> {
    let (algorithms, direction) = match &request.task {
        Task::Encrypt(sealer) => (sealer.algorithms(), Direction::Encrypt),
        Task::Decrypt(opener) => (opener.algorithms(), Direction::Decrypt),
    };
    let operations: Vec<_> = algorithms.into_iter().map(|algorithm| (algorithm, direction)).collect();
    let machine = Machine::only_for(&operations, choice, false, &Silent);
    let mut machine = machine.map_err(|error| exceptions::of_machine(&error))?;
    if machine.has_choice() {
        machine.load_or_measure_costs(&operations, false);
    }
    request.options.learned.clone_from(&machine.learned);
    let mut done = process(&request, &machine, progress, cancel);
    if let (Err(RequestError::Memory { needed_bytes }), false) = (&done, memory_is_fixed) {
        request.options.memory_bytes = *needed_bytes;
        done = process(&request, &machine, progress, cancel);
    }
    let summary = done.map_err(|error| exceptions::of_request(&error))?;
    if !choice.modules.is_empty() {
        // A cache that cannot be written costs the next run its knowledge, and this one nothing.
        machine.save_costs(&summary.report.learned).ok();
    }
    Ok(summary)
}

impl FileArguments {
    fn choice(&self) -> PyResult<Choice> {
        let spec = |name: &PyBackedStr| name.parse::<ModuleSpec>().map_err(PyValueError::new_err);
        Ok(Choice { modules: self.modules.iter().map(spec).collect::<PyResult<_>>()?, cpu_cost: None })
    }

    fn policy(&self) -> PyResult<Policy> {
        let policy = one_of("policy", &self.policy, &Policy::ALL.map(|policy| (policy.name(), policy)))?;
        match (policy, self.modules.is_empty()) {
            (Policy::CpuOnly | Policy::Adaptive, _) | (_, false) => Ok(policy),
            (policy, true) => {
                Err(PyValueError::new_err(format!("the policy {policy} needs a module: modules=")))
            }
        }
    }

    fn target(&self, is_verification: bool) -> Target {
        match &self.output {
            _ if is_verification => Target::Nowhere(self.against.clone()),
            Some(output) => Target::Path(output.clone()),
            None => Target::Beside,
        }
    }

    fn options(
        &self,
        direction: Direction,
        policy: Policy,
        key_files: Vec<PathBuf>,
        usual_suffix: Option<&str>,
    ) -> PyResult<Options> {
        let suffix = match (&self.suffix, &self.output) {
            (Some(suffix), _) => Some(suffix.clone().into_os_string()),
            (None, None) => usual_suffix.map(Into::into),
            (None, Some(_)) => None,
        };
        let naming = match (suffix, direction) {
            (None, _) => Naming::Kept,
            (Some(suffix), Direction::Encrypt) => Naming::Added(suffix),
            (Some(suffix), Direction::Decrypt) => Naming::Taken(suffix),
        };
        let existing = match (self.force, self.update) {
            (true, true) => return Err(PyValueError::new_err("force and update exclude each other")),
            (true, false) => Existing::Replace,
            (false, true) => Existing::Update,
            (false, false) => Existing::Keep,
        };
        let cores = evener::core_budget().workers();
        Ok(Options {
            workers: self.threads.unwrap_or(cores).clamp(1, 1024),
            policy,
            objective: Objective::Throughput,
            budget: None,
            learned: Estimator::default(),
            memory_bytes: self.memory.unwrap_or(MEMORY_BYTES),
            existing,
            state_dir: state::directory(),
            trust: Trust::default(),
            naming,
            filter: Filter::new(&self.include, &self.exclude).map_err(PyValueError::new_err)?,
            delete: self.delete,
            is_rehearsal: self.dry_run,
            part: None,
            archive: self.tar,
            armor: self.armor,
            left_out: Vec::new(),
            key_files,
            keep: Keep::default(),
        })
    }
}
