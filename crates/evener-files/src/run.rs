//! One run: it is refused, or goes to the threads of the pool or through a stream.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use evener::core::plan::Dispatch;
use evener::{Cancel, CoreDrivers, DriverFactory, Report, Setup};

use zeroize::Zeroizing;

use crate::error::FileError;
use crate::input::descriptors::Descriptors;
use crate::input::place::OpenPlaces;
use crate::mirror::{Deletion, NamedInput, Rehearsal};
use crate::output::Outputs;
use crate::record::{Record, RequestKey, RunOutput};
use crate::report::{Progress, Summary};
use crate::request::{Existing, Options, Request, RequestError, Source, Target, Task};
use crate::segments::slots::{Plan, plan_slots};
use crate::walk::Walk;
use crate::workers::{Pool, TreeRun, Verification, Workers};
use crate::{archive, stream, walk};

/// Does what `request` says.
///
/// Failures of single files are listed in the summary; everything else goes on.
///
/// # Errors
///
/// A [`RequestError`] where nothing could be begun.
pub fn process(
    request: &Request,
    driver_factory: &dyn DriverFactory,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<Summary, RequestError> {
    let start = Instant::now();
    let run = Run { request, driver_factory, progress, cancel };
    let through = stream::Run::new(request, driver_factory, progress, cancel);
    let paths = request.sources.iter().map(|source| match source {
        Source::Stdin => None,
        Source::Path(path) => Some(path.clone()),
    });
    let mut summary = match (&request.target, paths.collect::<Option<Vec<_>>>()) {
        _ if request.sources.is_empty() => return Err(RequestError::NoInput),
        _ if request.options.archive => archive::run(&through)?,
        _ if request.options.part.is_some() => stream::run_part(&through)?,
        (Target::Nowhere(Some(_)), None) => return Err(RequestError::StdinAgainst),
        (Target::Nowhere(against), Some(sources)) => run.verification(&sources, against.as_deref())?,
        (Target::Path(_) | Target::Beside, Some(sources)) if !stream::is_stream(request) => {
            let descriptors = Descriptors::of_process(request.options.workers.max(1));
            let open = OpenPlaces::new(descriptors.directories);
            let outputs = Outputs::new(request.options.keep, Arc::clone(&open), &request.options.key_files);
            if request.options.existing != Existing::Keep {
                outputs.keep_in_mind();
            }
            let (target, options) = (request.target.path(), &request.options);
            let walk = Walk::new(&sources, target, (&options.filter, &options.naming), &outputs, &open)?;
            let is_tree = walk.is_tree();
            let record = record(request, walk.is_tree());
            let all_outputs = Arc::clone(&outputs);
            let tree = TreeRun { walk, outputs, files_max: descriptors.files_per_thread };
            let mut summary = if request.options.is_rehearsal {
                rehearse(request, &sources, (&record, &all_outputs), is_tree)
            } else {
                run.workers(tree, &sources, &record)?
            };
            if request.options.delete {
                delete(request, &sources, (&record, &all_outputs), &mut summary, cancel);
            }
            summary.is_unrecorded = is_tree && record.is_lost();
            record.finish();
            summary
        }
        _ if request.options.is_rehearsal || request.options.delete => return Err(RequestError::FilesOnly),
        _ => stream::run(&through)?,
    };
    summary.cancelled = cancel.is_cancelled();
    summary.elapsed = start.elapsed();
    Ok(summary)
}

/// A run that has begun.
#[derive(Clone, Copy)]
struct Run<'a> {
    request: &'a Request,
    driver_factory: &'a dyn DriverFactory,
    progress: &'a Progress,
    cancel: &'a Cancel,
}

impl Run<'_> {
    fn workers(&self, tree: TreeRun, sources: &[PathBuf], record: &Record) -> Result<Summary, RequestError> {
        let Self { request, progress, cancel, .. } = *self;
        let pool = |plan| Workers::new(request, tree, plan, progress, record, cancel);
        let (workers, report) = self.on_threads(sources, pool)?;
        Ok(Summary { report, ..workers.finish() })
    }

    fn verification(&self, sources: &[PathBuf], against: Option<&Path>) -> Result<Summary, RequestError> {
        let Self { request, progress, cancel, .. } = *self;
        let record = Record::none();
        let pool = |plan| Verification::new(request, sources, against, plan, progress, &record, cancel);
        let (verification, report) = self.on_threads(sources, pool)?;
        let summary = verification.finish();
        Ok(Summary { found: summary.accounted_for(), report, ..summary })
    }

    /// Has as many threads work in the pool as the request says, or as are to be had; this one is among them.
    fn on_threads<P: Pool>(
        &self,
        sources: &[PathBuf],
        pool: impl FnOnce(Plan) -> P,
    ) -> Result<(P, Report), RequestError> {
        let Self { request, driver_factory, progress, cancel } = *self;
        let threads = request.options.workers.max(1);
        let (plan, mut memory) = plan_slots(request, threads)?;
        let slots = plan.cut(&mut memory);
        let all_core_drivers: Vec<CoreDrivers> =
            (0..threads).map(|_| driver_factory.core_drivers()).collect();
        let setup = setup(request, driver_factory, &all_core_drivers, plan.slots, cancel);
        let pool = pool(plan);
        let ((), report) = evener::try_run(setup, |runtime| {
            thread::scope(|scope| {
                if progress.is_watched.load(Ordering::Relaxed) {
                    let add_up = || add_up_bytes(sources, progress, cancel);
                    // No thread for it, no total.
                    thread::Builder::new().spawn_scoped(scope, add_up).ok();
                }
                let mut workers_left = all_core_drivers.into_iter().zip(slots).rev();
                // The last one is this thread's.
                let own = workers_left.next();
                let mut others = Vec::new();
                for (core_drivers, slots) in workers_left {
                    let (pool, caller) = (&pool, runtime.caller(core_drivers));
                    let thread = thread::Builder::new().name("evener-files".to_owned());
                    // Where no further thread is to be had, those there are do all of it.
                    let Ok(begun) = thread.spawn_scoped(scope, move || pool.work(caller, slots)) else {
                        break;
                    };
                    others.push(begun);
                }
                if let Some((core_drivers, slots)) = own {
                    pool.work(runtime.caller(core_drivers), slots);
                }
                evener::join_all(others);
            });
        })
        .map_err(RequestError::NoThread)?;
        Ok((pool, report))
    }
}

/// The budget of open directories.
fn open_places(request: &Request) -> Arc<OpenPlaces> {
    OpenPlaces::new(Descriptors::of_process(request.options.workers.max(1)).directories)
}

/// The inputs of a run with their places in the output.
fn named_inputs(request: &Request, sources: &[PathBuf], is_tree: bool) -> impl Iterator<Item = NamedInput> {
    let inputs = walk::inputs(sources, request.target.path(), &request.options.naming);
    inputs.unwrap_or_default().into_iter().map(move |input| NamedInput::of(input, is_tree))
}

/// What the run would do.
fn rehearse(
    request: &Request,
    sources: &[PathBuf],
    (record, outputs): (&Record, &Outputs),
    is_tree: bool,
) -> Summary {
    let mut summary = Summary::default();
    let options = &request.options;
    let (filter, naming) = (&options.filter, &options.naming);
    let (keep, existing) = (options.keep, options.existing);
    let (inputs, open) = (walk::identities(sources), &open_places(request));
    let rehearsal = Rehearsal { record, filter, naming, keep, existing, inputs, open, outputs };
    for named in named_inputs(request, sources, is_tree) {
        rehearsal.run(&named, &mut summary);
    }
    summary.planned.retain(|(path, _)| !options.left_out.contains(path));
    let is_left_out = |(path, error): &(PathBuf, FileError)| {
        matches!(error, FileError::NoSuffix(_)) && options.left_out.contains(path)
    };
    summary.failed.retain(|failed| !is_left_out(failed));
    summary.found = summary.planned.len() as u64 + summary.accounted_for();
    summary
}

/// Deletes outputs without source, where the run gives no doubt that the sources are all there.
fn delete(
    request: &Request,
    sources: &[PathBuf],
    (record, outputs): (&Record, &Outputs),
    summary: &mut Summary,
    cancel: &Cancel,
) {
    let found = summary.files + summary.already_done + summary.planned.len() as u64;
    summary.not_deleted = match summary.failed.is_empty() {
        _ if cancel.is_cancelled() => Some("the run was stopped"),
        false => Some("not every file was done"),
        true if found == 0 => Some("no source was found"),
        true if record.is_absent() && !request.options.is_rehearsal => {
            Some("no record tells which outputs are Evener's (HOME, EVENER_STATE_DIR)")
        }
        true => None,
    };
    if summary.not_deleted.is_some() {
        return;
    }
    let Options { filter, naming, is_rehearsal, .. } = &request.options;
    let (is_rehearsal, open) = (*is_rehearsal, &open_places(request));
    let deletion = Deletion { record, filter, naming, is_rehearsal, open, outputs, cancel };
    for named in named_inputs(request, sources, true).filter(|named| named.source.is_dir()) {
        let (deleted, done) = deletion.run(&named);
        summary.deleted.extend(deleted);
        summary.failed.extend(done.err());
    }
}

/// The record of a run into a directory. Of single files there is one only where nothing at hand opens what was made.
fn record(request: &Request, is_tree: bool) -> Record {
    let options = &request.options;
    let state_dir = options.state_dir.as_deref();
    // Outputs beside their files are single ones, wherever they lie.
    let target = request.target.path().unwrap_or_else(|| Path::new("."));
    let facts = (is_tree || !request.task.can_open()).then(|| {
        let mut facts = request.task.key_facts();
        if options.armor && matches!(request.task, Task::Encrypt(_)) {
            facts.parts.push(Zeroizing::new(b"as text".to_vec()));
        }
        facts
    });
    let key = facts.and_then(|facts| RequestKey::new(&facts, state_dir, !options.is_rehearsal));
    Record::open(key, RunOutput { target, is_tree, state_dir }, options.trust)
}

/// The runtime for threads that are callers. Policies that deal jobs out to cores get workers of their own beside
/// them.
fn setup<'m>(
    request: &Request,
    driver_factory: &dyn DriverFactory,
    all_core_drivers: &[CoreDrivers],
    home_jobs: usize,
    cancel: &Cancel,
) -> Setup<'m> {
    let mut setup = Setup {
        modules: driver_factory.modules(),
        policy: request.options.policy,
        objective: request.options.objective,
        budget: request.options.budget.clone(),
        learned: request.options.learned.clone(),
        callers: all_core_drivers.len(),
        caller_width: all_core_drivers.iter().map(CoreDrivers::width).max().unwrap_or(1),
        homes: all_core_drivers.len() + 1,
        home_jobs,
        cancel: cancel.clone(),
        ..Setup::default()
    };
    let plan = setup.plan();
    if plan.cpu.jobs_max > 0 && !matches!(plan.dispatch, Dispatch::SharedQueue | Dispatch::ByCost) {
        setup.workers = all_core_drivers.iter().map(|_| driver_factory.core_drivers()).collect();
    }
    setup
}

/// Adds up what there is to do, for the program that draws the progress.
fn add_up_bytes(sources: &[PathBuf], progress: &Progress, cancel: &Cancel) {
    let total = sources.iter().map(|source| walk::bytes_below(source, || cancel.is_cancelled())).sum();
    if !cancel.is_cancelled() {
        progress.expect_bytes(total);
    }
}
