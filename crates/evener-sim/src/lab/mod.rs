//! The lab makes one run: machine, costs, workload and a chooser go in, a report comes out.
//!
//! Path of one job: it arrives and waits in the backlog (`state/backlog.rs`) -> an idle worker asks the chooser
//! (`chooser.rs`; `fixed_plan.rs` for the papers' policies) -> a CPU worker computes it (`threads/cpu_worker.rs`), or a module
//! worker prepares it (`threads/module_worker.rs`), a thread of the driver takes it from the driver's queue
//! (`state/driver_queue.rs`) and calls the kernel with it (`threads/runner.rs`), the kernel's part of the path hands it to the module
//! and takes it back (`threads/kernel_thread.rs`) -> it is counted and its cost reported to the chooser
//! (`state/run_state.rs`) -> the report (`report.rs`, read off the engine by `readout.rs`). A job whose module is lost goes back to
//! the head of the backlog.

mod chooser;
mod fixed_plan;
mod readout;
mod report;
mod setup;
mod state;
mod threads;
mod workload;

use evener_core::Nanos;
use evener_core::plan::Dispatch;

pub use chooser::{Busy, Choice, Chooser, ClassView, Path, Sample, View, Which, Worker, WorkerView};
pub use fixed_plan::Planned;
pub use report::{JobReport, ModuleReport, Report, WorkerReport};
pub use setup::{
    CHECKED_FIRST, Class, CpuCap, CpuSide, ModuleCost, ModulePath, ModuleSide, Opening, Runners, Setup,
};
pub use workload::{Arrivals, Job, Workload};

use crate::engine::{Engine, Stuck, World as _};
use state::RunState;
use threads::Threads;

/// Runs a workload.
///
/// # Errors
///
/// [`Stuck`].
///
/// # Panics
///
/// Where a job names a class, or a module lacks one, that is not there.
pub fn run(setup: &Setup, workload: &Workload, chooser: &mut dyn Chooser) -> Result<Report, Stuck> {
    let classes = setup.classes.len();
    assert!(workload.jobs().iter().all(|job| job.class < classes), "jobs are of the setup's classes");
    assert!(setup.modules.iter().all(|module| module.costs.len() == classes), "modules know every class");
    let monitored = chooser.dispatch() == Dispatch::Monitor;
    let state = RunState::new(setup, workload, chooser);
    let mut engine = Engine::new(setup.cores, setup.scheduler, setup.end_max, state);
    let threads = Threads::new(setup, &mut engine, monitored);
    engine.world.set_threads(
        threads.crypto().collect(),
        threads.wakes.clone(),
        threads.driver_queues.clone(),
        threads.doorbell,
    );
    let makespan = if engine.world.is_over() { Nanos::ZERO } else { engine.run()? };
    Ok(readout::report(&engine, &threads, makespan))
}
