//! The report of a run, and what follows from it.

use evener_core::Nanos;

use super::chooser::Worker;

/// What a run was like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// From the start to the end of the last job.
    pub makespan: Nanos,
    /// The CPU workers.
    pub cpu: Vec<WorkerReport>,
    /// The modules.
    pub modules: Vec<ModuleReport>,
    /// Core time of the busy monitor.
    pub monitor: Nanos,
    /// Core time of interrupts, which no thread's clock shows.
    pub interrupts: Nanos,
    /// Core time of each competing program.
    pub hogs: Vec<Nanos>,
    /// How often a core went over to another thread.
    pub switches: u64,
    /// Every job, in the order of its coming.
    pub jobs: Vec<JobReport>,
}

/// What a worker did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerReport {
    /// Jobs that it ended well.
    pub jobs: u32,
    /// Its core time.
    pub core: Nanos,
}

/// What a module and its path did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleReport {
    /// The worker.
    pub worker: WorkerReport,
    /// Core time of the driver's threads.
    pub runners: Nanos,
    /// Core time of the kernel's thread.
    pub kernel: Nanos,
    /// Requests that failed.
    pub failed: u32,
    /// Time in which the module worked, summed over its units.
    pub busy: Nanos,
}

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobReport {
    /// Its class.
    pub class: usize,
    /// When it came.
    pub arrived: Nanos,
    /// When it ended, and by whom; `None`: it was lost.
    pub ended: Option<(Nanos, Worker)>,
}

impl Report {
    /// Jobs that the CPU path did.
    #[must_use]
    pub fn cpu_jobs(&self) -> u32 {
        self.cpu.iter().map(|worker| worker.jobs).sum()
    }

    /// Jobs that modules did.
    #[must_use]
    pub fn module_jobs(&self) -> u32 {
        self.modules.iter().map(|module| module.worker.jobs).sum()
    }

    /// Core time of all crypto threads by their clocks, without the monitor's and without interrupts.
    #[must_use]
    pub fn crypto(&self) -> Nanos {
        let cpu = self.cpu.iter().map(|worker| worker.core);
        let modules = self.modules.iter().map(|module| module.worker.core + module.runners + module.kernel);
        cpu.chain(modules).sum()
    }

    /// Core time of all competing programs.
    #[must_use]
    pub fn hog(&self) -> Nanos {
        self.hogs.iter().copied().sum()
    }

    /// Jobs that never ended; anything above 0 is a bug.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.jobs.iter().filter(|job| job.ended.is_none()).count()
    }

    /// The time from coming to end that `permille` of the jobs do not exceed (nearest rank).
    #[must_use]
    pub fn latency(&self, permille: u32) -> Nanos {
        let spans = self.jobs.iter().filter_map(|job| Some(job.ended?.0 - job.arrived));
        let mut spans: Vec<Nanos> = spans.collect();
        spans.sort_unstable();
        let rank = (spans.len() * permille.min(1_000) as usize).div_ceil(1_000).max(1);
        spans.get(rank - 1).copied().unwrap_or_default()
    }
}
