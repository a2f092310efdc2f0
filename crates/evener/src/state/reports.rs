//! What threads did: those that have ended, and in a run that goes on those that still work.
//!
//! A thread's drivers publish their tallies after each burst and before its jobs go home (`CoreDrivers::publish`), so that who has a job
//! back finds it counted. A thread that ends leaves its report here in the moment in which its own tallies go, so that no sum ever falls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::report::{ModuleReport, WorkerReport};
use crate::CoreDrivers;
use crate::cpu::LiveTallies;

/// The threads' reports.
#[derive(Default)]
pub(super) struct Reports(Mutex<Threads>);

#[derive(Default)]
struct Threads {
    /// Those that have ended.
    ended: Vec<WorkerReport>,
    /// Those that may be asked for before.
    live: Vec<LiveWorker>,
}

/// A thread that works.
struct LiveWorker {
    name: String,
    /// Gone with the thread's drivers.
    methods: Weak<LiveTallies>,
    /// For a module's worker: the module's part.
    module: Option<Arc<Mutex<ModuleReport>>>,
}

impl Reports {
    /// Adds the thread that has these drivers.
    pub(super) fn add(&self, name: String, core_drivers: &mut CoreDrivers) {
        self.threads().live.push(LiveWorker { name, methods: core_drivers.go_live(), module: None });
    }

    /// The same for a module's worker, which writes what the module did.
    pub(super) fn add_module(
        &self,
        name: String,
        core_drivers: &mut CoreDrivers,
    ) -> Arc<Mutex<ModuleReport>> {
        let module = Arc::default();
        let live = LiveWorker { name, methods: core_drivers.go_live(), module: Some(Arc::clone(&module)) };
        self.threads().live.push(live);
        module
    }

    /// A thread ends: takes what its drivers did.
    pub(super) fn end(&self, name: String, core_drivers: &mut CoreDrivers, module: Option<ModuleReport>) {
        let mut threads = self.threads();
        let methods = core_drivers.take_tallies();
        threads.live.retain(|worker| worker.methods.strong_count() > 0);
        threads.ended.push(WorkerReport { name, methods, module });
    }

    /// The same where threads come and go without end: all that have this name have one report.
    pub(super) fn end_among(&self, name: &str, core_drivers: &mut CoreDrivers) {
        let mut threads = self.threads();
        let methods = core_drivers.take_tallies();
        threads.live.retain(|worker| worker.methods.strong_count() > 0);
        match threads.ended.iter_mut().find(|ended| ended.name == name) {
            Some(ended) => ended.methods.iter_mut().zip(methods).for_each(|(sum, method)| *sum += method),
            None => threads.ended.push(WorkerReport { name: name.to_owned(), methods, module: None }),
        }
    }

    /// What each did so far.
    pub(super) fn all(&self) -> Vec<WorkerReport> {
        let threads = self.threads();
        let mut all = threads.ended.clone();
        all.extend(threads.live.iter().filter_map(LiveWorker::report));
        all
    }

    /// Whole between any two statements, so a panic elsewhere does not spoil it.
    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveWorker {
    fn report(&self) -> Option<WorkerReport> {
        let methods = self.methods.upgrade()?.get();
        let module = self.module.as_ref().map(|module| module.lock().unwrap_or_else(PoisonError::into_inner));
        Some(WorkerReport { name: self.name.clone(), methods, module: module.map(|module| module.clone()) })
    }
}
