//! The desk at which callers leave requests and find results; whoever waits and finds the driver there leads.
//!
//! `put -> (waiting) -> lead: submit, poll -> (back) -> wait`. The lock is held for looks and moves only, never while the
//! module is called or waited for. What came back for nobody goes to the rooms again.
//!
//! Keys of sessions that have ended are given up by whoever ended them where nobody is at the module (`forget`), else by the
//! leader when he is back (`put_back`), and by the next caller who is: so nobody stands behind a request that never ends.

use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use evener_core::driver::{Clock as _, SingleDriver, Unanswered};
use evener_core::{Job, JobError, Nanos, Outcome, QueuedDriver, Refusal, SessionId};
use nix::sys::signal::{SigSet, SigmaskHow};

use super::buffers::{Room, Rooms};
use super::{Bell, MakeDriver, MakeSingle, Request};
use crate::SystemClock;
use crate::module_limits::ERRORS_MAX;

/// So many stand for a module that said that it is lost.
const LOST: u32 = u32::MAX;

/// Why a module gets no more requests of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutOfService {
    /// It went away.
    Lost,
    /// It was silent for too long.
    Late,
    /// It failed one request after the other.
    Errors,
    /// It computed something else than a core.
    WrongResult,
}

type Driver = Box<dyn QueuedDriver<'static>>;
type Guard<'s> = MutexGuard<'s, State>;

/// A request as it is put down.
pub(super) struct Order<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) bell: Option<Box<dyn Bell>>,
}

/// One process's desk.
pub(super) struct Desk {
    state: Mutex<State>,
    /// What callers ask that go past the desk; `None` inside where the module has none.
    single: OnceLock<Option<Box<dyn SingleDriver>>>,
    /// Callers that ask it.
    inside: AtomicU32,
    /// Whether sessions ended while there were some.
    has_over: AtomicBool,
    /// Something came back, the driver is free, or there is something for the attendant.
    changed: Condvar,
    /// Requests under way, for who only wants to know. Written under the lock.
    ahead: AtomicU32,
    /// Core time of threads that are nobody's who asks. Written under the lock.
    core_ns: AtomicU64,
    /// Whether it is in service: 1. Written under the lock.
    in_service: AtomicU32,
    /// As of the state: whether what goes well ends a row. Written under the lock.
    has_errors: AtomicBool,
}

struct State {
    driver: Place,
    waiting: Vec<Box<Job<'static>>>,
    back: BTreeMap<u64, Option<Room>>,
    /// Those whose callers are still there, and when these give up.
    expected: BTreeMap<u64, Wish>,
    rooms: Rooms,
    next: u64,
    errors_in_row: u32,
    out: Option<OutOfService>,
    is_attended: bool,
    attended_core: Nanos,
    /// Sessions that ended while somebody leads; none while the driver is here.
    over: Vec<SessionId>,
    /// Sessions that ended while callers are inside.
    over_of_single: Vec<SessionId>,
}

struct Wish {
    until: Nanos,
    bell: Option<Box<dyn Bell>>,
    /// Whether its caller may lead: not on the small stack of one that was put aside.
    may_lead: bool,
}

/// Where the driver is.
enum Place {
    /// Nobody has needed it yet.
    Unmade(Arc<MakeDriver>),
    /// Here.
    Here(Driver),
    /// With who leads, or gone with the service.
    Away,
}

impl Place {
    fn is_here(&self) -> bool {
        !matches!(self, Self::Away)
    }

    fn take(&mut self) -> Option<Driver> {
        match mem::replace(self, Self::Away) {
            Self::Unmade(make) => Some(make()),
            Self::Here(driver) => Some(driver),
            Self::Away => None,
        }
    }
}

impl Desk {
    pub(super) fn new(make_driver: Arc<MakeDriver>) -> Self {
        let state = State {
            driver: Place::Unmade(make_driver),
            waiting: Vec::new(),
            back: BTreeMap::new(),
            expected: BTreeMap::new(),
            rooms: Rooms::default(),
            next: 0,
            errors_in_row: 0,
            out: None,
            is_attended: false,
            attended_core: Nanos::ZERO,
            over: Vec::new(),
            over_of_single: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
            single: OnceLock::new(),
            inside: AtomicU32::new(0),
            has_over: AtomicBool::new(false),
            changed: Condvar::new(),
            ahead: AtomicU32::new(0),
            core_ns: AtomicU64::new(0),
            in_service: AtomicU32::new(1),
            has_errors: AtomicBool::new(false),
        }
    }

    // Relaxed, here and below: numbers that may be a moment old.
    pub(super) fn is_in_service(&self) -> bool {
        self.in_service.load(Relaxed) == 1
    }

    pub(super) fn ahead(&self) -> u32 {
        self.ahead.load(Relaxed).saturating_add(self.inside.load(Relaxed))
    }

    pub(super) fn core_time(&self) -> Nanos {
        let single = self.single().map(|driver| driver.core_time());
        Nanos(self.core_ns.load(Relaxed)) + single.unwrap_or_default()
    }

    pub(super) fn why_out(&self) -> Option<OutOfService> {
        self.state().out
    }

    /// Takes a request in and returns its number.
    pub(super) fn put(self: &Arc<Self>, order: Order<'_>) -> Option<u64> {
        let Order { request, bell } = order;
        let mut state = self.state();
        if state.out.is_some() || bell.is_some() && !self.attend_to(&mut state) {
            return None;
        }
        let number = state.next;
        let job = state.rooms.furnish(number, request.session, request.iv, request.input)?;
        state.next += 1;
        // Who leads sleeps no longer than until the first of all gives up: nobody who came later is late before.
        let last = state.expected.values().map(|wish| wish.until).max().unwrap_or_default();
        let until = last.max(SystemClock.now() + request.allowed);
        let is_rung = bell.is_some();
        state.waiting.push(job);
        state.expected.insert(number, Wish { until, bell, may_lead: !is_rung });
        self.count(&state);
        if is_rung {
            self.changed.notify_all();
        }
        Some(number)
    }

    /// Has `ask` wait for a request; whether it was done, and `None` where that does not take it, so that it goes to the desk.
    pub(super) fn ask_for(
        &self,
        make: &MakeSingle,
        ask: impl FnOnce(&dyn SingleDriver) -> Option<Result<(), Unanswered>>,
    ) -> Option<bool> {
        let driver = self.single.get_or_init(make).as_ref()?;
        if !self.is_in_service() {
            return Some(false);
        }
        self.inside.fetch_add(1, SeqCst);
        let done = ask(&**driver);
        self.is_back(done.unwrap_or(Ok(())));
        done.map(|done| done.is_ok())
    }

    /// A request that went past the desk is back. Nothing is locked where all is well.
    fn is_back(&self, done: Result<(), Unanswered>) {
        self.inside.fetch_sub(1, SeqCst);
        if done.is_err() || self.has_errors.load(Relaxed) {
            let mut state = self.state();
            let why = match done {
                Err(Unanswered::Late) => Some(OutOfService::Late),
                Ok(()) => state.judged(None),
                Err(Unanswered::Failed(error)) => state.judged(Some(error)),
            };
            self.count(&state);
            if let Some(why) = why.filter(|_| state.out.is_none()) {
                drop(self.end(state, why));
            }
        }
        if self.has_over.load(SeqCst) {
            self.give_up_of_single();
        }
    }

    pub(super) fn is_over(&self, number: u64) -> bool {
        let state = self.state();
        state.back.contains_key(&number) || state.out.is_some() || !state.expected.contains_key(&number)
    }

    /// Sleeps until the request is back, and leads where nobody does.
    pub(super) fn wait(&self, number: u64) -> Option<Room> {
        let mut state = self.state();
        loop {
            if let Some(back) = state.back.remove(&number) {
                state.expected.remove(&number);
                self.count(&state);
                return back;
            }
            let wish = state.expected.get(&number)?;
            let (left, may_lead) = (wish.until - SystemClock.now(), wish.may_lead);
            if left == Nanos::ZERO {
                drop(self.end(state, OutOfService::Late));
                return None;
            }
            state = match may_lead && state.driver.is_here() {
                true => self.lead(state),
                false => self.sleep(state, left),
            };
        }
    }

    /// Nobody asks for the result of that request any more.
    pub(super) fn leave(&self, number: u64) {
        let mut state = self.state();
        state.expected.remove(&number);
        if let Some(room) = state.back.remove(&number).flatten() {
            state.rooms.give_back(room);
        }
        if let Some(at) = state.waiting.iter().position(|job| job.mark == number) {
            let job = state.waiting.remove(at);
            state.keep(job);
        }
        self.count(&state);
    }

    /// A session has ended: its keys are given up.
    pub(super) fn forget(&self, session: SessionId) {
        let mut state = self.state();
        match mem::replace(&mut state.driver, Place::Away) {
            Place::Here(driver) => {
                state.over.push(session);
                state = self.put_back(state, driver);
                if let Some(why) = state.out {
                    state = self.end(state, why);
                }
                if !state.expected.is_empty() {
                    // Whoever came meanwhile may lead.
                    self.changed.notify_all();
                }
            }
            Place::Unmade(make) => state.driver = Place::Unmade(make),
            // Whoever has it takes it apart, and the keys with it.
            Place::Away if state.out.is_some() => {}
            Place::Away => state.over.push(session),
        }
        if self.single().is_none() {
            return;
        }
        state.over_of_single.push(session);
        drop(state);
        // Sequentially consistent, as in `is_back`: either this sees that nobody is inside, or who comes back last sees this.
        self.has_over.store(true, SeqCst);
        if self.inside.load(SeqCst) == 0 || cfg!(mutant = "keys_given_up_beside_callers") {
            self.give_up_of_single();
        }
    }

    /// Has the driver of single requests give up the keys of sessions that ended.
    fn give_up_of_single(&self) {
        self.has_over.store(false, SeqCst);
        let over = mem::take(&mut self.state().over_of_single);
        if let Some(driver) = self.single().filter(|_| !over.is_empty()) {
            driver.forget(&|session| over.contains(&session));
        }
    }

    fn single(&self) -> Option<&dyn SingleDriver> {
        self.single.get()?.as_deref()
    }

    /// Lays the driver down once it has given up the keys of sessions that ended.
    fn put_back<'s>(&'s self, mut state: Guard<'s>, mut driver: Driver) -> Guard<'s> {
        while !state.over.is_empty() {
            let over = mem::take(&mut state.over);
            drop(state);
            driver.forget(&|session| over.contains(&session));
            state = self.state();
        }
        state.driver = Place::Here(driver);
        state
    }

    pub(super) fn give_back(&self, room: Room) {
        self.state().rooms.give_back(room);
    }

    /// Ends the service: everybody who waits is told, and does his request himself.
    pub(super) fn put_out(&self, why: OutOfService) {
        drop(self.end(self.state(), why));
    }

    fn sleep<'s>(&self, state: Guard<'s>, time: Nanos) -> Guard<'s> {
        self.changed.wait_timeout(state, Duration::from(time)).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Hands over what waits, sleeps until something is back, and lays it out.
    fn lead<'s>(&'s self, mut state: Guard<'s>) -> Guard<'s> {
        let mut given = mem::take(&mut state.waiting);
        let first = state.expected.values().map(|wish| wish.until).min().unwrap_or_default();
        let place = mem::replace(&mut state.driver, Place::Away);
        drop(state);
        // It may take its time to be made, so not under the lock.
        let Some(mut driver) = { place }.take() else { return self.state() };
        let mut back = Vec::new();
        let mut is_lost = !hand_over(&mut *driver, &mut given);
        if driver.in_flight() > 0 {
            driver.poll(&mut back, first - SystemClock.now());
        } else {
            // It holds nothing and takes nothing.
            is_lost |= !given.is_empty();
        }
        let mut state = self.state();
        given.append(&mut state.waiting);
        state.waiting = given;
        self.core_ns.store((driver.core_time() + state.attended_core).0, Relaxed);
        back.drain(..).for_each(|job| state.settle(job));
        let now = SystemClock.now();
        let is_late = state.expected.iter().any(|(number, wish)| {
            !state.back.contains_key(number) && wish.until <= now && !cfg!(mutant = "never_late")
        });
        state = self.put_back(state, driver);
        let why = match state.why_out() {
            _ if state.out.is_some() => state.out,
            _ if is_lost => Some(OutOfService::Lost),
            Some(OutOfService::Lost) => Some(OutOfService::Lost),
            _ if is_late => Some(OutOfService::Late),
            why => why,
        };
        match why {
            Some(why) => state = self.end(state, why),
            None => state.ring(),
        }
        self.count(&state);
        self.changed.notify_all();
        state
    }

    /// Tells everybody who waits, and takes the driver apart; where somebody leads, he does that when he is back.
    fn end<'s>(&'s self, mut state: Guard<'s>, why: OutOfService) -> Guard<'s> {
        state.out.get_or_insert(why);
        self.in_service.store(0, Relaxed);
        state.ring_all();
        // Whoever finds no wish of his own goes; what is back is still there for him.
        let State { expected, back, .. } = &mut *state;
        expected.retain(|number, _| back.contains_key(number));
        let mut jobs = mem::take(&mut state.waiting);
        let driver = match mem::replace(&mut state.driver, Place::Away) {
            Place::Here(driver) => Some(driver),
            Place::Unmade(_) | Place::Away => None,
        };
        self.count(&state);
        drop(state);
        self.changed.notify_all();
        if let Some(mut driver) = driver {
            driver.abandon(&mut jobs);
            // May wait a moment for its threads, so not under the lock.
            drop(driver);
        }
        let mut state = self.state();
        jobs.into_iter().for_each(|job| state.keep(job));
        state
    }

    fn count(&self, state: &State) {
        // What is back is expected, too, until it is fetched.
        let ahead = state.expected.len() - state.back.len();
        self.ahead.store(u32::try_from(ahead).unwrap_or(u32::MAX), Relaxed);
        self.has_errors.store(state.errors_in_row > 0, Relaxed);
    }

    /// Sees to it that somebody leads for callers that were put aside.
    fn attend_to(self: &Arc<Self>, state: &mut State) -> bool {
        if state.is_attended {
            return true;
        }
        let desk = Arc::clone(self);
        // Signals are for the program's own threads, and the new one inherits the mask.
        let Ok(before) = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK) else { return false };
        let thread = thread::Builder::new().name("evener-module".into()).stack_size(256 << 10);
        state.is_attended = thread.spawn(move || desk.attend()).is_ok();
        before.thread_set_mask().is_ok() && state.is_attended
    }

    /// The attendant's life: leads as long as there is a request of somebody who was put aside.
    fn attend(&self) {
        let mut state = self.state();
        while state.out.is_none() {
            let has_work = state.expected.values().any(|wish| wish.bell.is_some());
            if has_work && state.driver.is_here() {
                state = self.lead(state);
                state.attended_core = SystemClock.thread_time();
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        state.is_attended = false;
    }

    /// The state is whole between any two statements, so a panic elsewhere does not spoil it.
    fn state(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A job came back from the driver.
    fn settle(&mut self, job: Box<Job<'static>>) {
        let number = job.mark;
        let error = match job.outcome() {
            Outcome::Done { .. } => None,
            Outcome::Failed(error) => Some(error),
            Outcome::Pending => Some(JobError::Module { code: 0 }),
        };
        self.judge(error);
        if !self.expected.contains_key(&number) {
            return self.keep(job);
        }
        let mut room = self.rooms.returned(job);
        if error.is_some() {
            room.take().into_iter().for_each(|room| self.rooms.give_back(room));
        }
        self.back.insert(number, room);
    }

    /// The same, and why that ends the service, where it does.
    fn judged(&mut self, error: Option<JobError>) -> Option<OutOfService> {
        self.judge(error);
        self.why_out()
    }

    /// Counts errors in a row.
    fn judge(&mut self, error: Option<JobError>) {
        match error {
            Some(JobError::ModuleFull) => {}
            Some(JobError::ModuleLost) => self.errors_in_row = LOST,
            Some(_) => self.errors_in_row = self.errors_in_row.saturating_add(1),
            None => self.errors_in_row = 0,
        }
    }

    /// Why the errors so far end the service, where they do.
    fn why_out(&self) -> Option<OutOfService> {
        match self.errors_in_row {
            LOST => Some(OutOfService::Lost),
            ERRORS_MAX.. => Some(OutOfService::Errors),
            _ => None,
        }
    }

    /// A job that nobody asks for any more.
    fn keep(&mut self, job: Box<Job<'static>>) {
        if let Some(room) = self.rooms.returned(job) {
            self.rooms.give_back(room);
        }
    }

    /// Rings for those whose results are there.
    fn ring(&mut self) {
        let Self { expected, back, .. } = self;
        let there = expected.iter_mut().filter(|(number, _)| back.contains_key(number));
        there.filter_map(|(_, wish)| wish.bell.take()).for_each(|bell| bell.ring());
    }

    fn ring_all(&mut self) {
        self.expected.values_mut().filter_map(|wish| wish.bell.take()).for_each(|bell| bell.ring());
    }
}

/// Hands jobs over, the first first, until the driver is full; those stay. False where it is gone.
fn hand_over(driver: &mut dyn QueuedDriver<'static>, jobs: &mut Vec<Box<Job<'static>>>) -> bool {
    let mut refused = Vec::new();
    let mut is_there = true;
    let mut rest = mem::take(jobs).into_iter();
    for job in rest.by_ref() {
        match driver.submit(job) {
            Ok(()) => {}
            Err((job, why)) => {
                is_there = why == Refusal::Full;
                refused.push(job);
                break;
            }
        }
    }
    refused.extend(rest);
    *jobs = refused;
    is_there
}
