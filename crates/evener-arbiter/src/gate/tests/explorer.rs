//! Every state of a small world: processes run the real algorithm, and each access to a shared word is a step before which another process may go on, and this one may
//! die, stop for good, or be woken by its timer.
//!
//! A process is known by what its accesses answered so far. To let it make a step, its program runs from the start on these answers, makes one access more, and is unwound at the
//! next. States that were met before, by whatever order of steps, are not entered again.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use crate::World;
use crate::layout::{LINE, Line, Shape};

/// What may happen besides steps, and how often in one life of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mishaps {
    /// A process that could go on stands still while others go on. With few of these most errors are found that any order of steps shows (Musuvathi and Qadeer, PLDI 2007).
    pub(super) switches: u32,
    /// A process dies.
    pub(super) deaths: u32,
    /// A process stands still for ever, and lives.
    pub(super) stops: u32,
    /// A sleeper's time passes while others are about something.
    pub(super) hurries: u32,
}

/// As many switches as there are steps: every order.
pub(super) const ALL: u32 = u32::MAX;

/// A moment of the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) words: Vec<u32>,
    pub(super) now: u64,
    pub(super) processes: Vec<Process>,
    left: Mishaps,
    /// Who made the last step.
    current: Option<usize>,
    /// Who has the lock of a place that it found dead.
    seized: Vec<Option<usize>>,
    /// Sleepers' times that passed because no other process had anything to do.
    pub(super) timeouts: u32,
    /// What processes said of themselves, in order: process, and what.
    pub(super) events: Vec<(usize, Event)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    /// Answers to its accesses.
    answers: Vec<u64>,
    pub(super) life: Life,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Life {
    Ready,
    /// On this word, until this time.
    Asleep(usize, u64),
    Stopped,
    Dead,
    Done,
}

/// What a program tells the judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Event {
    Asks,
    /// With its ticket where it waited.
    Enters(Option<u32>),
    Leaves,
    Refused,
}

/// One process's view of the world during one step.
pub(super) struct Step<'s> {
    inner: RefCell<Inner>,
    shape: &'s Shape,
    who: usize,
}

struct Inner {
    state: State,
    /// Answers that were given again.
    given: usize,
    has_stepped: bool,
}

/// Thrown where a process comes to its next access.
struct Pause;

impl Step<'_> {
    /// An access that others can be before: the next answer, given again or made by `act`.
    fn access(&self, act: impl FnOnce(&mut State) -> u64) -> u64 {
        if let Some(answer) = self.answered() {
            return answer;
        }
        if self.inner.borrow().has_stepped {
            resume_unwind(Box::new(Pause));
        }
        self.inner.borrow_mut().has_stepped = true;
        self.quietly(act)
    }

    /// One that no other process can tell the moment of.
    fn quietly(&self, act: impl FnOnce(&mut State) -> u64) -> u64 {
        if let Some(answer) = self.answered() {
            return answer;
        }
        let mut inner = self.inner.borrow_mut();
        let answer = act(&mut inner.state);
        inner.state.processes[self.who].answers.push(answer);
        inner.given += 1;
        answer
    }

    fn answered(&self) -> Option<u64> {
        let mut inner = self.inner.borrow_mut();
        let answer = inner.state.processes[self.who].answers.get(inner.given).copied();
        inner.given += usize::from(answer.is_some());
        answer
    }

    pub(super) fn say(&self, event: Event) {
        self.quietly(|state| {
            state.events.push((self.who, event));
            0
        });
    }

    /// Whether no decision rests on a word.
    fn is_quiet(&self, at: usize) -> bool {
        let first = self.shape.place(0, Line::Generation);
        let quiet = [Line::Predicted, Line::Since, Line::Weight].map(|line| line as usize);
        at >= first && quiet.contains(&((at - first) % LINE))
    }
}

impl World for Step<'_> {
    fn load(&self, at: usize) -> u32 {
        let load = |state: &mut State| u64::from(state.words[at]);
        let answer = if self.is_quiet(at) { self.quietly(load) } else { self.access(load) };
        u32::try_from(answer).unwrap()
    }

    fn store(&self, at: usize, value: u32) {
        let store = |state: &mut State| {
            state.words[at] = value;
            0
        };
        if self.is_quiet(at) {
            self.quietly(store)
        } else {
            self.access(store)
        };
    }

    fn exchange(&self, at: usize, old: u32, new: u32) -> bool {
        let answer = self.access(|state| {
            let is_old = state.words[at] == old;
            if is_old {
                state.words[at] = new;
            }
            is_old.into()
        });
        answer == 1
    }

    fn count(&self, _: usize) {}

    fn fence(&self) {}

    fn sleep(&self, at: usize, seen: u32, timeout: Duration) {
        let who = self.who;
        let answer = self.access(|state| {
            let until = state.now.saturating_add(u64::try_from(timeout.as_nanos()).unwrap());
            if state.words[at] == seen {
                state.processes[who].life = Life::Asleep(at, until);
            }
            0
        });
        assert_eq!(answer, 0);
        if matches!(self.inner.borrow().state.processes[who].life, Life::Asleep(..)) {
            resume_unwind(Box::new(Pause));
        }
    }

    fn wake(&self, at: usize) -> bool {
        let answer = self.access(|state| {
            let sleeper = state
                .processes
                .iter_mut()
                .find(|process| matches!(process.life, Life::Asleep(on, _) if on == at));
            let was_asleep = sleeper.is_some();
            sleeper.into_iter().for_each(|process| process.life = Life::Ready);
            was_asleep.into()
        });
        answer == 1
    }

    fn now(&self) -> u64 {
        self.quietly(|state| state.now)
    }

    /// Places are their processes' numbers.
    fn seize(&self, place: usize) -> bool {
        let who = self.who;
        let answer = self.access(|state| {
            let lives = |process: usize| state.processes[process].life != Life::Dead;
            let is_free = state.seized[place].is_none_or(|by| !lives(by));
            let is_taken = place != who && !lives(place) && is_free;
            if is_taken {
                state.seized[place] = Some(who);
            }
            is_taken.into()
        });
        answer == 1
    }

    fn let_go(&self, place: usize) {
        self.access(|state| {
            state.seized[place] = None;
            0
        });
    }
}

/// What is explored.
pub(super) struct Explorer<'e> {
    pub(super) shape: Shape,
    pub(super) first: State,
    pub(super) program: &'e dyn Fn(&Step<'_>, usize),
    /// Called at the end of each life of the world.
    pub(super) judge: &'e dyn Fn(&State),
    /// Called in each state.
    pub(super) watch: &'e dyn Fn(&State),
}

impl State {
    pub(super) fn new(words: Vec<u32>, processes: usize, left: Mishaps) -> Self {
        let process = Process { answers: Vec::new(), life: Life::Ready };
        Self {
            words,
            now: 1_000_000_000,
            processes: vec![process; processes],
            left,
            current: None,
            seized: vec![None; processes],
            timeouts: 0,
            events: Vec::new(),
        }
    }

    fn any(&self, has: impl Fn(Life) -> bool) -> bool {
        self.processes.iter().any(|process| has(process.life))
    }

    /// A process died or stopped.
    pub(super) fn had_mishap(&self) -> bool {
        self.any(|life| matches!(life, Life::Dead | Life::Stopped))
    }
}

impl Explorer<'_> {
    /// Enters every state; returns how many there are.
    pub(super) fn run(&self) -> usize {
        let hashes = BuildHasherDefault::<DefaultHasher>::default();
        let (mut met, mut open) = (HashSet::new(), vec![self.first.clone()]);
        while let Some(state) = open.pop() {
            if met.insert(hashes.hash_one(&state)) {
                (self.watch)(&state);
                self.expand(&state, &mut open);
            }
        }
        met.len()
    }

    fn expand(&self, state: &State, open: &mut Vec<State>) {
        if state.any(|life| life == Life::Ready) {
            for who in 0..state.processes.len() {
                match state.processes[who].life {
                    Life::Ready => self.go_on(state, who, open),
                    Life::Asleep(_, until) if state.left.hurries > 0 => {
                        let mut next = state.clone();
                        next.left.hurries -= 1;
                        next.now = next.now.max(until);
                        next.processes[who].life = Life::Ready;
                        open.push(next);
                    }
                    _ => {}
                }
            }
            self.mishaps(state, open);
        } else if let Some(next) = pass_time(state) {
            open.push(next);
            self.mishaps(state, open);
        } else {
            (self.judge)(state);
        }
    }

    fn go_on(&self, state: &State, who: usize, open: &mut Vec<State>) {
        // Where every order is allowed, who made the last step makes no other state.
        if state.left.switches == ALL {
            return open.push(self.step(state, who));
        }
        let could = |current: usize| current != who && state.processes[current].life == Life::Ready;
        let is_switch = state.current.is_some_and(could);
        if is_switch && state.left.switches == 0 {
            return;
        }
        let mut next = self.step(state, who);
        next.left.switches -= u32::from(is_switch);
        next.current = Some(who);
        open.push(next);
    }

    fn mishaps(&self, state: &State, open: &mut Vec<State>) {
        for who in 0..state.processes.len() {
            if matches!(state.processes[who].life, Life::Ready | Life::Asleep(..)) {
                if state.left.deaths > 0 {
                    let mut next = state.clone();
                    next.left.deaths -= 1;
                    next.processes[who] = Process { answers: Vec::new(), life: Life::Dead };
                    open.push(next);
                }
                if state.left.stops > 0 {
                    let mut next = state.clone();
                    next.left.stops -= 1;
                    next.processes[who].life = Life::Stopped;
                    open.push(next);
                }
            }
        }
    }

    /// Lets a process make one step.
    fn step(&self, state: &State, who: usize) -> State {
        let inner = RefCell::new(Inner { state: state.clone(), given: 0, has_stepped: false });
        let step = Step { inner, shape: &self.shape, who };
        let ended = catch_unwind(AssertUnwindSafe(|| (self.program)(&step, who)));
        let mut next = step.inner.into_inner().state;
        match ended {
            Ok(()) => next.processes[who] = Process { answers: Vec::new(), life: Life::Done },
            Err(thrown) if thrown.is::<Pause>() => {}
            Err(thrown) => {
                eprintln!("{state:#?}");
                resume_unwind(thrown);
            }
        }
        next
    }
}

/// The sleeper whose time is over first wakes, where there is one.
fn pass_time(state: &State) -> Option<State> {
    let until = |process: &Process| match process.life {
        Life::Asleep(_, until) => Some(until),
        _ => None,
    };
    let first = state.processes.iter().filter_map(until).min()?;
    let mut next = state.clone();
    next.now = next.now.max(first);
    next.timeouts += 1;
    for process in &mut next.processes {
        if until(process).is_some_and(|until| until <= next.now) {
            process.life = Life::Ready;
        }
    }
    Some(next)
}
