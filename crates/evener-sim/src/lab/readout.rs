//! The readout: the report of a run, off an engine that has run.

use evener_core::Nanos;

use super::chooser::{Path, Worker};
use super::report::{ModuleReport, Report, WorkerReport};
use super::state::RunState;
use super::threads::Threads;
use crate::engine::Engine;

/// Reads the report off an engine that has run.
pub(super) fn report(engine: &Engine<'_, RunState<'_>>, threads: &Threads, makespan: Nanos) -> Report {
    let state = &engine.world;
    let did = |path, at: usize, thread| {
        let is_own = |worker: Worker| worker.path == path && worker.index as usize == at;
        let jobs = state.records.iter().filter(|job| job.ended.is_some_and(|(_, worker)| is_own(worker)));
        let jobs = u32::try_from(jobs.count()).unwrap_or(u32::MAX);
        WorkerReport { jobs, core: engine.core_time(thread) }
    };
    let runners =
        |at: usize| threads.runners[at].iter().map(|&thread| engine.core_time(thread)).sum::<Nanos>();
    let module = |at: usize| ModuleReport {
        worker: did(Path::Module, at, threads.modules[at]),
        runners: runners(at),
        kernel: threads.ports[at].kernel.map_or(Nanos::ZERO, |thread| engine.core_time(thread)),
        failed: state.failed[at],
        busy: engine.busy_time(threads.ports[at].module),
    };
    Report {
        makespan,
        cpu: threads.cpu.iter().enumerate().map(|(at, &thread)| did(Path::Cpu, at, thread)).collect(),
        modules: (0..threads.modules.len()).map(module).collect(),
        monitor: threads.monitor.map_or(Nanos::ZERO, |thread| engine.core_time(thread)),
        interrupts: engine.interrupt_time(),
        hogs: threads.hogs.iter().map(|&thread| engine.core_time(thread)).collect(),
        switches: engine.switches(),
        jobs: state.records.clone(),
    }
}
