//! The readout: the report of a run, off an engine that has run.

use evener_core::Nanos;

use super::chooser::{Path, Worker};
use super::report::{ModuleReport, Report, WorkerReport};
use super::state::Hall;
use super::threads::Crew;
use crate::engine::Engine;

/// Reads the report off an engine that has run.
pub(super) fn report(engine: &Engine<'_, Hall<'_>>, crew: &Crew, makespan: Nanos) -> Report {
    let hall = &engine.world;
    let did = |path, at: usize, thread| {
        let is_own = |worker: Worker| worker.path == path && worker.index as usize == at;
        let jobs = hall.records.iter().filter(|job| job.ended.is_some_and(|(_, worker)| is_own(worker)));
        let jobs = u32::try_from(jobs.count()).unwrap_or(u32::MAX);
        WorkerReport { jobs, core: engine.core_time(thread) }
    };
    let runners = |at: usize| crew.runners[at].iter().map(|&thread| engine.core_time(thread)).sum::<Nanos>();
    let module = |at: usize| ModuleReport {
        worker: did(Path::Module, at, crew.modules[at]),
        runners: runners(at),
        kernel: crew.desks[at].kernel.map_or(Nanos::ZERO, |thread| engine.core_time(thread)),
        failed: hall.failed[at],
        busy: engine.busy_time(crew.desks[at].module),
    };
    Report {
        makespan,
        cpu: crew.cpu.iter().enumerate().map(|(at, &thread)| did(Path::Cpu, at, thread)).collect(),
        modules: (0..crew.modules.len()).map(module).collect(),
        monitor: crew.monitor.map_or(Nanos::ZERO, |thread| engine.core_time(thread)),
        interrupts: engine.interrupt_time(),
        hogs: crew.hogs.iter().map(|&thread| engine.core_time(thread)).collect(),
        switches: engine.switches(),
        jobs: hall.records.clone(),
    }
}
