//! One run: it is refused, or goes to the threads of the pool or through a stream.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use evener::core::plan::Dispatch;
use evener::{Cancel, CoreDrivers, DriverFactory, Setup};

use crate::report::{Progress, Summary};
use crate::request::{Request, RequestError, Source, Target};
use crate::segments::slots::plan_slots;
use crate::walk::Walk;
use crate::workers::Workers;
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
    let paths = request.sources.iter().map(|source| match source {
        Source::Stdin => None,
        Source::Path(path) => Some(path.clone()),
    });
    let mut summary = match (&request.target, paths.collect::<Option<Vec<_>>>()) {
        _ if request.sources.is_empty() => return Err(RequestError::NoInput),
        (Target::Path(target), Some(sources)) if !stream::is_stream(request) => {
            let walk = Walk::new(&sources, target)?;
            run_workers(request, walk, &sources, driver_factory, progress, cancel)?
        }
        _ => stream::run(request, driver_factory, progress, cancel)?,
    };
    summary.cancelled = cancel.is_cancelled();
    summary.elapsed = start.elapsed();
    Ok(summary)
}

fn run_workers(
    request: &Request,
    walk: Walk,
    sources: &[PathBuf],
    driver_factory: &dyn DriverFactory,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<Summary, RequestError> {
    let threads = request.options.workers.max(1);
    let (plan, mut memory) = plan_slots(request, threads)?;
    let slots = plan.cut(&mut memory);
    let all_core_drivers: Vec<CoreDrivers> = (0..threads).map(|_| driver_factory.core_drivers()).collect();
    let setup = setup(request, driver_factory, &all_core_drivers, plan.slots, cancel);
    let workers = Workers::new(request, walk, plan, progress, cancel);
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
            for (core_drivers, slots) in workers_left {
                let (workers, caller) = (&workers, runtime.caller(core_drivers));
                let thread = thread::Builder::new().name("evener-files".to_owned());
                if thread.spawn_scoped(scope, move || workers.work(caller, slots)).is_err() {
                    // No further thread is to be had: those there are do all of it.
                    break;
                }
            }
            if let Some((core_drivers, slots)) = own {
                workers.work(runtime.caller(core_drivers), slots);
            }
        });
    })
    .map_err(RequestError::NoThread)?;
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
