//! One run: it is refused, or goes to the threads of the pool or through a stream.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use evener::core::plan::Dispatch;
use evener::{Cancel, CoreDrivers, DriverFactory, Setup};

use crate::input::descriptors::Descriptors;
use crate::input::place::OpenPlaces;
use crate::output::Outputs;
use crate::report::{Progress, Summary};
use crate::request::{Request, RequestError, Source, Target};
use crate::segments::slots::plan_slots;
use crate::walk::Walk;
use crate::workers::{TreeRun, Workers};
use crate::{stream, walk};

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
    let paths = || {
        request.sources.iter().map(|source| match source {
            Source::Stdin => None,
            Source::Path(path) => Some(path.clone()),
        })
    };
    let mut summary = match (&request.target, paths().collect::<Option<Vec<_>>>()) {
        _ if request.sources.is_empty() => return Err(RequestError::NoInput),
        (Target::Path(target), Some(sources)) => {
            let descriptors = Descriptors::of_process(request.options.workers.max(1));
            let open = OpenPlaces::new(descriptors.directories);
            let outputs = Outputs::new(request.options.keep, Arc::clone(&open));
            let walk = Walk::new(&sources, target, &outputs, &open)?;
            let tree = TreeRun { walk, outputs, files_max: descriptors.files_per_thread };
            run_workers(request, tree, &sources, driver_factory, progress, cancel)?
        }
        _ => stream::run(request, driver_factory, progress, cancel)?,
    };
    summary.cancelled = cancel.is_cancelled();
    summary.elapsed = start.elapsed();
    Ok(summary)
}

fn run_workers(
    request: &Request,
    tree: TreeRun,
    sources: &[PathBuf],
    driver_factory: &dyn DriverFactory,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<Summary, RequestError> {
    let threads = request.options.workers.max(1);
    let plan = plan_slots(request, threads)?;
    let mut memory = plan.allocate();
    let slots = plan.cut(&mut memory);
    let all_core_drivers: Vec<CoreDrivers> = (0..threads).map(|_| driver_factory.core_drivers()).collect();
    let setup = setup(request, driver_factory, &all_core_drivers, plan.slots, cancel);
    let workers = Workers::new(request, tree, plan, progress, cancel);
    let ((), report) = evener::run(setup, |runtime| {
        thread::scope(|scope| {
            if progress.is_watched.load(Ordering::Relaxed) {
                scope.spawn(|| add_up_bytes(sources, progress, cancel));
            }
            for (core_drivers, slots) in all_core_drivers.into_iter().zip(slots) {
                let (workers, caller) = (&workers, runtime.caller(core_drivers));
                scope.spawn(move || workers.work(caller, slots));
            }
        });
    });
    let mut summary = workers.finish();
    summary.report = report;
    Ok(summary)
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
