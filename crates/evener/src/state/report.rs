//! What callers, workers and modules did, collected at the end of a run.

use evener_core::guard::Counters;
use evener_core::{Estimator, JobError, Method, Nanos, Tally};

/// Why a module is out of service in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quarantine {
    /// A sampled result differed from the CPU's.
    WrongResult,
    /// It held jobs and finished none for the time allowed.
    Hung,
    /// It went away.
    Lost,
    /// It reported too many errors in a row; the last one.
    Errors(JobError),
}

impl std::fmt::Display for Quarantine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::WrongResult => f.write_str("gave a wrong result"),
            Self::Hung => f.write_str("stopped answering"),
            Self::Lost => f.write_str("went away"),
            Self::Errors(last) => write!(f, "failed several jobs in a row, the last because {last}"),
        }
    }
}

/// What a module worker did beside its tallies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleReport {
    /// What the module did.
    pub tally: Tally,
    /// What of its core time threads of the driver's own took.
    pub driver_core: Nanos,
    /// Results compared with the CPU's.
    pub checked: u64,
    /// Why it was taken out of service, if it was.
    pub quarantine: Option<Quarantine>,
}

/// What one worker did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerReport {
    /// `cpu 0`, `caller 1`, `emulated:am3358`; `callers that went` to a [resident](crate::Resident) run, together; `no worker` for jobs that are
    /// for modules only and found none when they came.
    pub name: String,
    /// By method of the core; for a module worker what it did on the CPU (redone and checked jobs).
    pub methods: [Tally; Method::ALL.len()],
    /// For a module worker: the module's part.
    pub module: Option<ModuleReport>,
}

/// What all workers did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// One entry per worker and caller, and one for jobs that none of them had, where there were any.
    pub workers: Vec<WorkerReport>,
    /// What is known of costs after the run.
    pub learned: Estimator,
    /// What the adaptive policy's guard did.
    pub guarded: Counters,
}

impl Report {
    /// The sum over all workers by one method of the core.
    #[must_use]
    pub fn method(&self, method: Method) -> Tally {
        self.sum(|worker| worker.methods[method as usize])
    }

    /// The sum over all modules.
    #[must_use]
    pub fn modules(&self) -> Tally {
        self.sum(|worker| worker.module.as_ref().map_or_else(Tally::default, |module| module.tally))
    }

    /// Everything: each job counted once.
    #[must_use]
    pub fn total(&self) -> Tally {
        let mut total = self.modules();
        Method::ALL.into_iter().for_each(|method| total += self.method(method));
        total
    }

    fn sum(&self, part: impl Fn(&WorkerReport) -> Tally) -> Tally {
        self.workers.iter().fold(Tally::default(), |mut sum, worker| {
            sum += part(worker);
            sum
        })
    }
}
