//! What threads that still run did so far, for reports of a run that goes on.
//!
//! A thread's drivers publish their tallies after each burst and before its jobs go home (`CoreDrivers::publish`), so that who has a job
//! back finds it counted. A thread that ends drops its drivers and leaves its report to the run.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::report::{ModuleReport, WorkerReport};
use crate::CoreDrivers;
use crate::cpu::LiveTallies;

/// The threads.
#[derive(Default)]
pub(super) struct LiveWorkers(Mutex<Vec<LiveWorker>>);

/// One of them.
struct LiveWorker {
    name: String,
    /// Gone with the thread's drivers.
    methods: Weak<LiveTallies>,
    /// For a module's worker: the module's part.
    module: Option<Arc<Mutex<ModuleReport>>>,
}

impl LiveWorkers {
    /// Adds the thread that has these drivers.
    pub(super) fn add(&self, name: String, core_drivers: &mut CoreDrivers) {
        self.push(LiveWorker { name, methods: core_drivers.go_live(), module: None });
    }

    /// The same for a module's worker, which writes what the module did.
    pub(super) fn add_module(
        &self,
        name: String,
        core_drivers: &mut CoreDrivers,
    ) -> Arc<Mutex<ModuleReport>> {
        let module = Arc::default();
        self.push(LiveWorker { name, methods: core_drivers.go_live(), module: Some(Arc::clone(&module)) });
        module
    }

    /// What each did so far.
    pub(super) fn reports(&self) -> Vec<WorkerReport> {
        let workers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        workers.iter().filter_map(LiveWorker::report).collect()
    }

    fn push(&self, worker: LiveWorker) {
        let mut workers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        workers.retain(|worker| worker.methods.strong_count() > 0);
        workers.push(worker);
    }
}

impl LiveWorker {
    fn report(&self) -> Option<WorkerReport> {
        let methods = self.methods.upgrade()?.get();
        let module = self.module.as_ref().map(|module| module.lock().unwrap_or_else(PoisonError::into_inner));
        Some(WorkerReport { name: self.name.clone(), methods, module: module.map(|module| module.clone()) })
    }
}
