//! One run: what is asked for, and the threads that do it.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use evener::core::plan::{Dispatch, Policy};
use evener::core::{Budget, Estimator, Objective};
use evener::{Cancel, CpuKit, Machinery, Setup};

use crate::format::{Opener, Sealer};
use crate::report::{FileError, Progress, Summary};
use crate::segments::buffers;
use crate::stream;
use crate::walk::tree;
use crate::walk::tree::{Met, Walk};
use crate::workers::pool::{Crew, Hand};

/// What is to be done, and with which keys.
pub enum Task {
    /// Plaintext in, encrypted files out.
    Encrypt(Sealer),
    /// Encrypted files in, plaintext out.
    Decrypt(Opener),
}

impl Task {
    /// Room that a segment needs in either form, in bytes.
    fn slot_bytes(&self) -> u64 {
        match self {
            Self::Encrypt(sealer) => sealer.slot_bytes(),
            Self::Decrypt(opener) => opener.slot_bytes(),
        }
    }
}

/// Where input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Standard input.
    Stdin,
    /// A file or a directory.
    Path(PathBuf),
}

/// Where output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard output; only authenticated bytes go there.
    Stdout,
    /// A file or a directory.
    Path(PathBuf),
}

/// How it is to be done.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads that work on the CPU, 1 or more.
    pub workers: usize,
    /// Who takes what.
    pub policy: Policy,
    /// What the adaptive policy is to be best at.
    pub objective: Objective,
    /// Part of the cores that the run may use, where it is limited.
    pub budget: Option<Budget>,
    /// Costs that earlier runs learned.
    pub learned: Estimator,
    /// Most memory for data in work, in bytes.
    pub memory_bytes: u64,
    /// Whether outputs that stand there already are replaced.
    pub force: bool,
    /// Whether outputs of fitting time and length count as finished without a look at their contents: under which key
    /// they are is not asked then.
    pub resume: bool,
}

/// A run.
pub struct Request {
    /// What is to be done.
    pub task: Task,
    /// With which inputs, in order.
    pub sources: Vec<Source>,
    /// Where to.
    pub target: Target,
    /// How.
    pub options: Options,
}

/// A request that cannot be carried out at all. Nothing was read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There is no input.
    #[error("no input")]
    NoInput,
    /// Standard input or output goes with nothing else.
    #[error("standard {0} takes exactly one input, which is no directory")]
    OneInput(&'static str),
    /// The output would be walked as input.
    #[error("the output {} lies inside the input {}", target.display(), input.display())]
    InsideInput {
        /// The input.
        input: PathBuf,
        /// The output.
        target: PathBuf,
    },
    /// An input without a name of its own, such as `/`, among several.
    #[error("the input {} has no name to be kept", .0.display())]
    NoName(PathBuf),
    /// Two inputs of the same name.
    #[error("two inputs would both go to {}", .0.display())]
    SameOutput(PathBuf),
    /// Segments do not fit the memory.
    #[error("segments of this size need {needed_bytes} bytes of memory (--memory)")]
    Memory {
        /// Bytes that would do.
        needed_bytes: u64,
    },
    /// Standard input or output failed.
    #[error("cannot {doing}: {error}")]
    Stdio {
        /// What was tried.
        doing: &'static str,
        /// The system's answer.
        error: io::Error,
    },
}

/// Does what `request` says.
///
/// Failures of single files are listed in the summary; everything else goes on.
///
/// # Errors
///
/// A [`RequestError`] where nothing could be begun.
pub fn process(
    request: &Request,
    machinery: &dyn Machinery,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<Summary, RequestError> {
    let start = Instant::now();
    let paths = || {
        request.sources.iter().map(|source| match source {
            Source::Stdin => None,
            Source::Path(path) => Some(path.clone()),
        })
    };
    let mut summary = match (&request.target, paths().collect::<Option<Vec<_>>>()) {
        _ if request.sources.is_empty() => return Err(RequestError::NoInput),
        (Target::Path(target), Some(sources)) => {
            let walk = Walk::new(&sources, target)?;
            run_crew(request, walk, &sources, machinery, progress, cancel)?
        }
        _ => stream::run(request, machinery, progress, cancel)?,
    };
    summary.cancelled = cancel.is_cancelled();
    summary.elapsed = start.elapsed();
    Ok(summary)
}

/// Cuts the memory of a run.
pub(crate) fn plan_slots(request: &Request, threads: usize) -> Result<buffers::Plan, RequestError> {
    buffers::Plan::new(request.task.slot_bytes(), threads, request.options.memory_bytes)
        .map_err(|buffers::TooLittle { needed_bytes }| RequestError::Memory { needed_bytes })
}

fn run_crew(
    request: &Request,
    walk: Walk,
    sources: &[PathBuf],
    machinery: &dyn Machinery,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<Summary, RequestError> {
    let threads = request.options.workers.max(1);
    let plan = plan_slots(request, threads)?;
    let mut memory = plan.allocate();
    let slots = plan.cut(&mut memory);
    let kits: Vec<CpuKit> = (0..threads).map(|_| machinery.kit()).collect();
    let setup = setup(request, machinery, &kits, plan.slots, cancel);
    let crew = Crew::new(request, walk, plan, progress, cancel);
    let ((), report) = evener::run(setup, |runtime| {
        thread::scope(|scope| {
            if progress.is_watched.load(Ordering::Relaxed) {
                scope.spawn(|| measure(sources, progress, cancel));
            }
            for (kit, slots) in kits.into_iter().zip(slots) {
                let hand = Hand::new(&crew, runtime.caller(kit), slots);
                scope.spawn(move || hand.work());
            }
        });
    });
    let mut summary = crew.finish();
    summary.report = report;
    Ok(summary)
}

/// The runtime for a crew of callers. Policies that deal jobs out to cores get workers of their own beside
/// them.
fn setup<'m>(
    request: &Request,
    machinery: &dyn Machinery,
    kits: &[CpuKit],
    home_jobs: usize,
    cancel: &Cancel,
) -> Setup<'m> {
    let mut setup = Setup {
        modules: machinery.modules(),
        policy: request.options.policy,
        objective: request.options.objective,
        budget: request.options.budget.clone(),
        learned: request.options.learned.clone(),
        callers: kits.len(),
        caller_width: kits.iter().map(CpuKit::width).max().unwrap_or(1),
        homes: kits.len() + 1,
        home_jobs,
        cancel: cancel.clone(),
        ..Setup::default()
    };
    let plan = setup.plan();
    if plan.cpu.jobs_max > 0 && !matches!(plan.dispatch, Dispatch::Pull | Dispatch::Weigh) {
        setup.workers = kits.iter().map(|_| machinery.kit()).collect();
    }
    setup
}

/// Adds up what there is to do, for whoever looks at the progress.
fn measure(sources: &[PathBuf], progress: &Progress, cancel: &Cancel) {
    let total = sources.iter().map(|source| tree::bytes_below(source, || cancel.is_cancelled())).sum();
    if !cancel.is_cancelled() {
        progress.expect_bytes(total);
    }
}

/// What a walk met that is no work.
pub(crate) fn note(summary: &mut Summary, met: Met) -> Option<tree::Item> {
    match met {
        Met::File(item) => return Some(item),
        Met::Skipped(path, skip) => summary.skipped.push((path, skip)),
        Met::Failed(path, error) => summary.failed.push((path, error)),
    }
    None
}

/// Records how a file ended.
pub(crate) fn record(summary: &mut Summary, path: PathBuf, bytes: (u64, u64), result: Result<(), FileError>) {
    match result {
        Ok(()) => {
            summary.files += 1;
            summary.bytes_in += bytes.0;
            summary.bytes_out += bytes.1;
        }
        Err(error) => summary.failed.push((path, error)),
    }
}
