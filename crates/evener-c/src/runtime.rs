//! The runtime: drivers for each thread, and threads that are started with the first queue.

use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use evener::core::plan::Policy;
use evener::core::{Algorithm, Direction, SessionId};
use evener::{
    Caller, DriverFactory as _, NoQueuePair, QueuePair, Report, Resident, SessionEnds, Setup, core_budget,
};
use evener_machine::modules::ModuleSpec;
use evener_machine::{Choice, Machine, MachineError, Silent};
use evener_ring::{Creator, with_signals_blocked};

use crate::{Error, Failure};

/// What a program asks for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Worker threads; `None`: as many as the process may use cores.
    pub threads: Option<usize>,
    /// Modules by the names that `--module` takes.
    pub modules: Vec<String>,
    /// A policy by its name; `None`: the default.
    pub policy: Option<String>,
    /// Costs are neither read nor written.
    pub no_cost_cache: bool,
}

/// Queues and callers that a runtime has at most.
const HOMES: usize = 1_024;

/// Jobs that wait in each of the runtime's own queues at most. Enough for some queues of usual depth; more wait at their submitters.
const BACKLOG_JOBS: usize = 4_096;

/// A runtime. Any thread may use it.
pub struct Runtime {
    creator: Creator,
    threads: usize,
    policy: Policy,
    machine: Mutex<Machine>,
    /// Whether what is learned of costs is kept for later programs.
    keeps_costs: bool,
    /// Set once, before the threads end.
    is_closed: AtomicBool,
    state: Mutex<State>,
    /// Where the threads were started: what is told without the state, which is another thread's for as long as these end.
    ends: OnceLock<SessionEnds>,
}

enum State {
    /// No queue was opened yet.
    Waiting,
    Running(Resident),
    /// What has run, if anything, says what was done and tells queues that are left of sessions that end.
    Closed(Option<Resident>),
}

impl State {
    const fn resident(&self) -> Option<&Resident> {
        match self {
            Self::Waiting => None,
            Self::Running(resident) => Some(resident),
            Self::Closed(resident) => resident.as_ref(),
        }
    }
}

/// The ways in of one queue.
pub(crate) struct Ways {
    /// `None` without worker threads.
    pub(crate) pair: Option<QueuePair<'static>>,
    pub(crate) caller: Caller<'static, 'static>,
}

impl Runtime {
    /// Looks at what is there; starts nothing.
    ///
    /// # Errors
    ///
    /// What of the request cannot be had.
    pub fn open(request: &Request) -> Result<Self, Failure> {
        let policy = match &request.policy {
            Some(name) => name.parse().map_err(|error| Failure::new(Error::Invalid, error))?,
            None if request.modules.is_empty() => Policy::CpuOnly,
            None => Policy::Adaptive,
        };
        let machine = machine(request)?;
        let threads = request.threads.unwrap_or_else(|| core_budget().workers());
        if threads == 0 && !request.modules.is_empty() {
            return Err(Failure::new(
                Error::Invalid,
                "a module needs a thread that waits for it, and there are to be none",
            ));
        }
        Ok(Self {
            creator: Creator::current(),
            threads,
            policy,
            machine: Mutex::new(machine),
            keeps_costs: !request.no_cost_cache,
            is_closed: AtomicBool::new(false),
            state: Mutex::new(State::Waiting),
            ends: OnceLock::new(),
        })
    }

    /// Fails in a child of the process that opened it.
    ///
    /// # Errors
    ///
    /// [`Error::Fork`].
    #[inline]
    pub fn check_process(&self) -> Result<(), Error> {
        if self.creator.is_current() { Ok(()) } else { Err(Error::Fork) }
    }

    /// Fails in a child, and after it was closed.
    ///
    /// # Errors
    ///
    /// [`Error::Fork`], [`Error::Closed`].
    #[inline]
    pub fn check_usable(&self) -> Result<(), Error> {
        self.check_process()?;
        // Relaxed: who comes a moment later has its jobs given up by the run.
        if self.is_closed.load(Ordering::Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }

    /// The ways in of one more queue, for so many jobs. Starts the threads where this is the first.
    pub(crate) fn ways(&self, depth: usize) -> Result<Ways, Failure> {
        self.check_process()?;
        let mut state = self.state();
        if let State::Waiting = *state {
            let refused = |error: &dyn fmt::Display| Failure::new(Error::System, error);
            let resident =
                with_signals_blocked(|| Resident::start(self.setup())).map_err(|error| refused(&error))?;
            let resident = resident.map_err(|error| refused(&error))?;
            self.ends.get_or_init(|| resident.session_ends());
            *state = State::Running(resident);
        }
        let State::Running(resident) = &*state else { return Err(Error::Closed.into()) };
        let pair = match resident.queue_pair(depth) {
            Ok(pair) => Some(pair),
            Err(NoQueuePair::NoWorkers) => None,
            Err(NoQueuePair::NoHome) => return Err(Error::Full.into()),
        };
        let caller = resident.caller(self.machine().core_drivers()).ok_or(Error::Full)?;
        Ok(Ways { pair, caller })
    }

    fn setup(&self) -> Setup<'static> {
        let machine = self.machine();
        Setup {
            workers: (0..self.threads).map(|_| machine.core_drivers()).collect(),
            modules: machine.modules(),
            learned: machine.learned.clone(),
            policy: self.policy,
            callers: usize::from(self.threads == 0),
            homes: HOMES,
            backlog_jobs: BACKLOG_JOBS,
            ..Setup::default()
        }
    }

    /// A session of this kind is opened: measures what its jobs cost, where no earlier program did and no thread works yet.
    pub(crate) fn prepare(&self, algorithm: Algorithm, direction: Direction) {
        if self.keeps_costs && matches!(*self.state(), State::Waiting) {
            self.machine().measure_unknown((algorithm, direction));
        }
    }

    /// A session has ended: what threads made of its key is wiped.
    pub(crate) fn end_session(&self, session: SessionId) {
        // In a child the threads are the parent's.
        if self.check_process().is_ok() {
            self.ends.get().into_iter().for_each(|ends| ends.end_session(session));
        }
    }

    /// Finishes what was submitted and ends the threads, once.
    ///
    /// # Errors
    ///
    /// [`Error::Fork`] in a child, where nothing is done; [`Error::Panic`] where a thread of the runtime had one.
    pub fn close(&self) -> Result<(), Failure> {
        self.check_process()?;
        self.is_closed.store(true, Ordering::Relaxed);
        // Held until the threads have ended: a thread that finds it closed may free what was lent.
        let mut state = self.state();
        let ended = stop(&mut state);
        if let (Some(resident), true) = (state.resident(), self.keeps_costs) {
            let report = resident.report();
            if report.total().jobs > 0 {
                // A cache that cannot be written costs later programs what was learned, and this one nothing.
                self.machine().save_costs(&report.learned).ok();
            }
        }
        ended.map_err(Failure::from)
    }

    /// Ends the threads after a panic of one of them: afterwards none touches memory that was lent.
    pub(crate) fn abandon(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        // What panicked is known already.
        stop(&mut self.state()).ok();
    }

    /// What was done so far.
    pub(crate) fn report(&self) -> Report {
        self.state().resident().map(Resident::report).unwrap_or_default()
    }

    /// Names of the modules.
    pub(crate) fn module_names(&self) -> Vec<String> {
        self.machine().module_names()
    }

    /// The policy.
    pub(crate) const fn policy(&self) -> Policy {
        self.policy
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Runtime {
    /// In a child the threads are not there, so that no one waits for them.
    fn drop(&mut self) {
        if self.check_process().is_err() {
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            mem::forget(mem::replace(state, State::Waiting));
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// Ends the threads, where they run.
///
/// # Errors
///
/// [`Error::Panic`] where one of them panicked.
fn stop(state: &mut State) -> Result<(), Error> {
    let mut ended = Ok(());
    *state = match mem::replace(state, State::Closed(None)) {
        State::Waiting => State::Closed(None),
        State::Running(mut resident) => {
            ended = resident.stop().map_err(|_| Error::Panic);
            State::Closed(Some(resident))
        }
        State::Closed(resident) => State::Closed(resident),
    };
    ended
}

/// The machine as the request wants it, with what is known of its costs.
fn machine(request: &Request) -> Result<Machine, Failure> {
    let spec = |name: &String| name.parse::<ModuleSpec>().map_err(|text| Failure::new(Error::Module, text));
    let modules = request.modules.iter().map(spec).collect::<Result<_, _>>()?;
    let choice = Choice { modules, ..Choice::default() };
    let mut machine = Machine::new(&choice, &Silent).map_err(|error| match error {
        MachineError::Libcrypto(_) => Failure::new(Error::Library, error),
        _ => Failure::new(Error::Module, error),
    })?;
    if !request.no_cost_cache {
        machine.load_costs();
    }
    Ok(machine)
}
