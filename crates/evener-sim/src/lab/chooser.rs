//! The chooser decides which worker takes what: the calls by which idle workers claim, and by which measurements come in.

use evener_core::Nanos;
use evener_core::plan::Dispatch;

/// One of the two ways a job can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Path {
    /// A core does it.
    Cpu,
    /// A module does it, and a core what is left.
    Module,
}

/// A worker: the n-th of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Worker {
    /// Its path.
    pub path: Path,
    /// Its number there, from 0; for a module worker also the module's.
    pub index: u32,
}

/// What waits of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassView {
    /// Size of a job in bytes.
    pub bytes: u64,
    /// Jobs that wait.
    pub waiting: u32,
}

/// A job that a worker has taken and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    /// Its class.
    pub class: usize,
    /// When it was begun.
    pub since: Nanos,
}

/// What a worker does at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerView {
    /// The worker.
    pub worker: Worker,
    /// Its jobs, oldest first.
    pub busy: Vec<Busy>,
    /// Whether its module is lost, so that it takes nothing any more.
    pub is_lost: bool,
}

/// What a chooser decides by: the state at the time of a claim.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The time.
    pub now: Nanos,
    /// What waits in the list that the worker takes from, by class.
    pub classes: &'a [ClassView],
    /// All workers, CPU workers first.
    pub workers: &'a [WorkerView],
    /// Cores of the machine.
    pub cores: usize,
    /// Programs that compete for the cores.
    pub competing: u32,
}

impl View<'_> {
    /// Jobs that wait, of all classes.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.classes.iter().map(|class| class.waiting).sum()
    }
}

/// Which jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that have waited longest, of any class.
    Oldest,
    /// Those of one class that have waited longest.
    OfClass(usize),
}

/// An answer to an idle worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Take this many of those, or as many as there are. Where there is none, it is [`Choice::Rest`].
    Take {
        /// Which.
        which: Which,
        /// How many, at least 1.
        jobs: u32,
    },
    /// Nothing until the backlog grows. A module worker first ends what it has outstanding and asks again.
    Rest,
    /// The same, but for this time at most (at least 1 us).
    RestAtMost(Nanos),
    /// Nothing for now; ask again after this time (at least 1 us), or when a request of its own has ended.
    AskAgainIn(Nanos),
}

/// What one job took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it ended.
    pub now: Nanos,
    /// Its class.
    pub class: usize,
    /// Its size in bytes.
    pub bytes: u64,
    /// The worker that did it.
    pub worker: Worker,
    /// Core time by the clocks of the path's threads: `c`, or `d` without its interrupt.
    pub core: Nanos,
    /// Core time that only the interrupt took: the rest of `d`, on a path that has one.
    pub interrupt: Nanos,
    /// Time in which the module worked and the core was free: `h`; nothing on the CPU path.
    pub service: Nanos,
    /// Time from its beginning to its end, waiting for cores and module included.
    pub wall: Nanos,
}

/// Decides what idle workers take.
pub trait Chooser {
    /// How jobs reach workers.
    fn dispatch(&self) -> Dispatch {
        Dispatch::SharedQueue
    }

    /// CPU worker `index` is idle: what does it take?
    fn cpu_takes(&mut self, index: u32, view: &View<'_>) -> Choice;

    /// Module worker `index` has space for a request: what does it take?
    fn module_takes(&mut self, index: u32, view: &View<'_>) -> Choice;

    /// A job has ended well.
    fn observe(&mut self, sample: &Sample);

    /// Module `index` is lost; what it held is back in the backlog.
    fn lose(&mut self, index: u32);
}
