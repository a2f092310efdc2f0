//! The threads of a run, in the order of their creation, which decides ties at the start.

mod cpu_worker;
mod kernel_thread;
mod module_worker;
mod monitor;
mod runner;

use crate::engine::{Context, Engine, EventId, Step, Thread, ThreadId, ThreadSpec, weight_of_nice};
use crate::lab::chooser::{Path, Worker};
use crate::lab::state::{DriverQueue, ModulePort, RequestSlot, RunState};
use crate::lab::{ModuleSide, Nanos, Setup};

use cpu_worker::CpuWorker;
use kernel_thread::KernelThread;
use module_worker::ModuleWorker;
use monitor::Monitor;
use runner::Runner;

/// The threads of a run, by kind.
#[derive(Default)]
pub(crate) struct Threads {
    pub(crate) cpu: Vec<ThreadId>,
    pub(crate) modules: Vec<ThreadId>,
    pub(crate) ports: Vec<ModulePort>,
    /// Requests that may be outstanding, by module.
    places: Vec<Vec<RequestSlot>>,
    /// Where the threads of its driver find their work, by module; unused where there are none.
    pub(crate) driver_queues: Vec<DriverQueue>,
    /// Threads of drivers, by module.
    pub(crate) runners: Vec<Vec<ThreadId>>,
    pub(crate) monitor: Option<ThreadId>,
    pub(crate) hogs: Vec<ThreadId>,
    /// What wakes each worker, CPU workers first.
    pub(crate) wakes: Vec<EventId>,
    /// What the busy monitor listens to.
    pub(crate) doorbell: Option<EventId>,
}

impl Threads {
    /// Creates all threads: the kernel's and the drivers' first, then the monitor, the workers and the hogs.
    pub(crate) fn new(setup: &Setup, engine: &mut Engine<'_, RunState<'_>>, monitored: bool) -> Self {
        let mut threads = Self::default();
        for (at, side) in setup.modules.iter().enumerate() {
            let port = attach_module(engine, at, side);
            threads.ports.push(port);
            threads.make_places(engine, at, side, port);
        }
        threads.wakes =
            (0..setup.cpu.workers as usize + setup.modules.len()).map(|_| engine.event()).collect();
        if monitored {
            let doorbell = engine.event();
            threads.doorbell = Some(doorbell);
            let body =
                Monitor::new(doorbell, setup.monitor, threads.wakes.clone(), setup.cpu.workers as usize);
            threads.monitor = Some(engine.spawn(ThreadSpec::default(), body));
        }
        threads.spawn_workers(setup, engine);
        threads.hogs = (0..setup.hogs).map(|_| engine.spawn(ThreadSpec::default(), Hog)).collect();
        threads
    }

    /// Makes the places of a module's requests, and the threads of its driver where it has some.
    fn make_places(
        &mut self,
        engine: &mut Engine<'_, RunState<'_>>,
        at: usize,
        side: &ModuleSide,
        port: ModulePort,
    ) {
        let place = |index| RequestSlot { index, done: engine.event() };
        self.places.push((0..side.depth as usize).map(place).collect());
        let wanted =
            if cfg!(mutant = "a_thread_for_each_request") { side.depth } else { side.path.runners.count };
        let count = if side.path.runner_share > 0.0 { wanted.max(1) } else { 0 };
        let rested = ThreadSpec { is_rested: true, ..spec(side) };
        let mut runner = || {
            let events = [engine.event(), engine.event()];
            engine.spawn(rested, Runner::new(at, port, events))
        };
        self.runners.push((0..count).map(|_| runner()).collect());
        self.driver_queues.push(DriverQueue::new(side.path.runners.together as usize, engine.event()));
    }

    /// Workers in their order; the first gets a core first.
    fn spawn_workers(&mut self, setup: &Setup, engine: &mut Engine<'_, RunState<'_>>) {
        let cpu = (0..setup.cpu.workers).map(|index| Worker { path: Path::Cpu, index });
        let modules = (0u32..).zip(&setup.modules).map(|(index, _)| Worker { path: Path::Module, index });
        let mut order: Vec<Worker> = match setup.first {
            Path::Cpu => cpu.chain(modules).collect(),
            Path::Module => modules.chain(cpu).collect(),
        };
        if !order.is_empty() {
            let turn = setup.turn % order.len();
            order.rotate_left(turn);
        }
        let mut workers: Vec<(Worker, ThreadId)> =
            order.into_iter().map(|worker| (worker, self.spawn_worker(worker, setup, engine))).collect();
        workers.sort_unstable();
        for (worker, thread) in workers {
            match worker.path {
                Path::Cpu => self.cpu.push(thread),
                Path::Module => self.modules.push(thread),
            }
        }
    }

    fn spawn_worker(&self, worker: Worker, setup: &Setup, engine: &mut Engine<'_, RunState<'_>>) -> ThreadId {
        let at = worker.index as usize;
        match worker.path {
            Path::Cpu => {
                let spec = ThreadSpec { weight: weight_of_nice(setup.cpu.nice), ..ThreadSpec::default() };
                engine.spawn(spec, CpuWorker::new(worker, self.wakes[at], self.doorbell))
            }
            Path::Module => {
                let (side, wake) = (&setup.modules[at], self.wakes[setup.cpu.workers as usize + at]);
                let places = self.places[at].clone();
                let body = ModuleWorker::new(at, side, self.ports[at], wake, self.doorbell, places);
                engine.spawn(spec(side), body)
            }
        }
    }

    /// All threads whose core time is crypto's.
    pub(crate) fn crypto(&self) -> impl Iterator<Item = ThreadId> {
        let kernels = self.ports.iter().filter_map(|port| port.kernel);
        let workers = self.cpu.iter().chain(&self.modules).chain(self.runners.iter().flatten());
        workers.copied().chain(kernels).chain(self.monitor)
    }
}

fn attach_module(engine: &mut Engine<'_, RunState<'_>>, at: usize, side: &ModuleSide) -> ModulePort {
    let module = engine.attach(side.spec);
    let (doorbell, answered) = (engine.event(), engine.event());
    let body = KernelThread::new(at, module, [doorbell, answered], side.path.kernel_waits);
    let own = spec(side);
    let ahead = ThreadSpec { priority: own.priority + side.path.kernel_priority, ..own };
    let kernel = (side.path.kernel_share > 0.0).then(|| engine.spawn(ahead, body));
    ModulePort { module, kernel, doorbell }
}

fn spec(side: &ModuleSide) -> ThreadSpec {
    ThreadSpec { priority: side.priority, ..ThreadSpec::default() }
}

/// Another program that always has something to compute.
struct Hog;

impl<S> Thread<S> for Hog {
    fn next(&mut self, _: &mut Context<'_, S>) -> Step {
        Step::Compute(Nanos(u64::MAX / 4))
    }
}
