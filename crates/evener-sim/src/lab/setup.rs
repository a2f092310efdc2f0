//! What a run is made of: cores, classes of jobs, the CPU path, modules and the paths to them.

use evener_core::Nanos;

use super::chooser::Path;
use crate::engine::{ModuleSpec, SchedulerSpec};

/// One machine with its work.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Cores, at least one.
    pub cores: usize,
    /// How the cores are shared.
    pub scheduler: SchedulerSpec,
    /// The classes of jobs; jobs name them by position.
    pub classes: Vec<Class>,
    /// The CPU path.
    pub cpu: CpuSide,
    /// The module paths, one worker each.
    pub modules: Vec<ModuleSide>,
    /// Other programs that always have something to compute, one thread each, of usual weight.
    pub hogs: u32,
    /// Which path's workers are created first, which decides ties at the start.
    pub first: Path,
    /// By how many places the order of workers is turned: which worker starts alone on a core where there are more workers than cores.
    pub turn: usize,
    /// Core time that the busy monitor needs to hand over one job, where the policy has one.
    pub monitor: Nanos,
    /// Every cost of a job varies evenly by this part of it, for example 0.05.
    pub jitter: f64,
    /// Where chance begins.
    pub seed: u64,
    /// Virtual time after which a run counts as failed.
    pub end_max: Nanos,
}

/// A class of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Size of its jobs.
    pub bytes: u64,
    /// `c`: core time of a job on the CPU path.
    pub c: Nanos,
}

/// The workers of the CPU path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuSide {
    /// How many.
    pub workers: u32,
    /// Their nice value, -20 to 19.
    pub nice: i32,
    /// How much of the machine all crypto threads together may use.
    pub cap: Option<CpuCap>,
    /// Core time that a worker needs for each job beside the job itself: to claim it and to complete it. No chooser
    /// learns of it.
    pub hand_over: Nanos,
}

/// A limit on core time: a worker that has done a job sleeps as long as the share used exceeds `share`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuCap {
    /// Part of one core, above 0.
    pub share: f64,
    /// Whether the module path sleeps too; the CPU path always does.
    pub holds_module_path: bool,
    /// Whether interrupts count, which no thread's clock shows.
    pub counts_interrupts: bool,
}

/// One module and the path to it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleSide {
    /// The module.
    pub spec: ModuleSpec,
    /// Costs of a job, one for each class.
    pub costs: Vec<ModuleCost>,
    /// The threads that run the core's part of the path.
    pub path: ModulePath,
    /// Requests outstanding at most, at least 1.
    pub depth: u32,
    /// Priority of the path's threads; 0 is usual.
    pub priority: i32,
    /// As [`CpuSide::hand_over`], beyond `d`.
    pub hand_over: Nanos,
    /// What the first request takes beside the others, where the driver has threads.
    pub opening: Opening,
    /// One result in so many is checked by the path's worker at the cost of a CPU job, and the first
    /// [`CHECKED_FIRST`]; 0: none.
    pub check_every: u32,
}

/// The threads of a driver, each of which calls the kernel with one request at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runners {
    /// How many, at least 1. Of the requests outstanding those that none of them has wait in the driver's queue.
    pub count: u32,
    /// Results for which the path's worker is woken together while requests wait there.
    pub together: u32,
}

impl Runners {
    /// A single one, of which the worker hears of each result.
    pub const ONE: Self = Self { count: 1, together: 1 };
}

/// What a first request takes beside the others: memory is touched, a key is opened, and all requests wait for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// Core time of the worker.
    pub own: Nanos,
    /// Core time of the driver's thread that opens the key.
    pub driver: Nanos,
    /// Time in which that thread sleeps.
    pub wait: Nanos,
}

/// Results of a module that are checked whatever [`ModuleSide::check_every`] says, if any are: as the live system's.
pub const CHECKED_FIRST: u32 = 4;

/// What a job costs on the module path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleCost {
    /// `d`: core time.
    pub d: Nanos,
    /// `h`: time in which the module works and the core is free.
    pub h: Nanos,
}

/// The threads that run the core's part of a module job: the worker, threads of its driver, and the kernel on their behalf.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModulePath {
    /// Part of `d` that a thread of the kernel runs; 0: there is none.
    pub kernel_share: f64,
    /// Part of `d` that lies before the module's work, the rest lies behind it.
    pub front: f64,
    /// Whether the kernel's thread sleeps while the module works and then runs its rest. Otherwise it takes the
    /// next request, and its rest is an interrupt.
    pub kernel_waits: bool,
    /// Priority of that thread beyond that of the path's own.
    pub kernel_priority: i32,
    /// Part of `d` that the driver's own threads run, each of which calls the kernel with a request and sleeps there. 0: there are
    /// none. Each has a share of the core of its own, and has slept when the run begins.
    pub runner_share: f64,
    /// Those threads.
    pub runners: Runners,
}

impl ModulePath {
    /// The worker alone.
    pub const DIRECT: Self = Self {
        kernel_share: 0.0,
        front: FRONT,
        kernel_waits: true,
        kernel_priority: 0,
        runner_share: 0.0,
        runners: Runners::ONE,
    };
    /// One third in a thread of the kernel that serves one request at a time. Fitted on paper 002, table 2.
    pub const KERNEL_WAITS: Self = Self { kernel_share: KERNEL_SHARE, ..Self::DIRECT };
    /// One third in the kernel, its last part as an interrupt.
    pub const INTERRUPT: Self = Self { kernel_waits: false, ..Self::KERNEL_WAITS };

    /// So much in a thread of the kernel before which nothing else goes, as Linux's crypto engine has one (a realtime thread of
    /// `crypto/crypto_engine.c`): it serves one request at a time. So much in the driver's threads that wait for it, the rest is the worker's.
    #[must_use]
    pub const fn engine(kernel_share: f64, runner_share: f64, runners: Runners) -> Self {
        Self { kernel_share, kernel_priority: 1, runner_share, runners, ..Self::DIRECT }
    }
}

/// Explains that the module path has 59 to 61 % of the core at 8 to 64 bytes (two of three threads); chosen
/// while looking at the column *proposed* of paper 002, table 2.
const KERNEL_SHARE: f64 = 1.0 / 3.0;

/// Arbitrary: nothing in the papers says how much of `d` lies before the module's work.
const FRONT: f64 = 0.6;
