//! Permits and queue in every state of small worlds. What the processes say, and the words at the end, are judged without the algorithm.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "tests")]

mod batch;
mod explorer;
mod long_queue;

use self::explorer::{ALL, Event, Explorer, Life, Mishaps, State, Step};
use crate::gate::{Gate, Place, Request, Turn};
use crate::layout::{FREE, Identity, Line, Owner, Queue, Shape, WaitQueue};
use crate::world::millis;
use crate::{EXACT_FROM_NS, World as _};

/// A world to explore.
#[derive(Clone, Copy)]
struct Setting {
    processes: usize,
    permits: usize,
    requests: usize,
    longest_wait_ns: u64,
    predicted_ns: u64,
    mishaps: Mishaps,
}

impl Setting {
    /// Requests long enough for exact order, which wait for as long as it takes.
    const fn of(processes: usize, permits: usize, requests: usize) -> Self {
        let mishaps = Mishaps { switches: 2, deaths: 0, stops: 0, hurries: 0 };
        let (longest_wait_ns, predicted_ns) = (u64::MAX, EXACT_FROM_NS);
        Self { processes, permits, requests, longest_wait_ns, predicted_ns, mishaps }
    }

    const fn with(self, mishaps: Mishaps) -> Self {
        Self { mishaps, ..self }
    }

    fn shape(&self) -> Shape {
        Shape::new(1, self.permits, self.processes, 2).unwrap()
    }

    /// Explores it; returns the number of states.
    fn explore(&self, judge: &dyn Fn(&Self, &State)) -> usize {
        let shape = self.shape();
        let mut words = vec![0; shape.word_count()];
        words[shape.identity(0, Identity::Capacity)] = u32::try_from(self.permits).unwrap();
        let first = State::new(words, self.processes, self.mishaps);
        let mut first = first;
        first.words[shape.queue_word(0, Queue::Patrolled)] = millis(first.now);
        let program = |step: &Step<'_>, who: usize| self.program(step, who);
        let judged = |state: &State| judge(self, state);
        let watch = |state: &State| self.never_too_many(state);
        let states = Explorer { shape, first, program: &program, judge: &judged, watch: &watch }.run();
        println!("{states} states");
        states
    }

    fn program(&self, step: &Step<'_>, who: usize) {
        let shape = self.shape();
        let gate = Gate::new(step, &shape, 0, self.permits).unwrap();
        let (place, turn) = (Place { index: who, generation: 0 }, Turn::new(0));
        let request =
            Request { predicted_ns: self.predicted_ns, longest_wait_ns: self.longest_wait_ns, hopes: false };
        for _ in 0..self.requests {
            step.say(Event::Asks);
            match gate.acquire(place, &turn, &request) {
                Ok(grant) => {
                    step.say(Event::Enters(grant.ticket.map(|(_, position)| position)));
                    // A moment in which others see it inside.
                    step.load(shape.permit(0, grant.permit));
                    step.say(Event::Leaves);
                    gate.release(place, &turn, &grant, &request);
                }
                Err(_) => step.say(Event::Refused),
            }
        }
    }

    /// At no moment more processes that live are inside than there are permits.
    fn never_too_many(&self, state: &State) {
        let is_inside = |who: &usize| {
            let mut own = state.events.iter().filter(|(process, _)| process == who);
            let lives = state.processes[*who].life != Life::Dead;
            lives && matches!(own.next_back(), Some((_, Event::Enters(_))))
        };
        let inside = (0..self.processes).filter(is_inside).count();
        assert!(inside <= self.permits, "{inside} inside: {state:#?}");
    }

    /// Who has which permit, as the words have it.
    fn owners(&self, words: &[u32]) -> Vec<Option<usize>> {
        let word = |permit: usize| words[self.shape().permit(0, permit)];
        let owner = |permit: usize| Owner::of(word(permit), self.processes).map(|owner| owner.place);
        (0..self.permits).map(owner).collect()
    }
}

/// Grants of those who waited come in the order of their tickets (one permit, so that the next enters after the last left).
fn in_order(state: &State) {
    let ticket = |(_, event): &(usize, Event)| match event {
        Event::Enters(ticket) => *ticket,
        _ => None,
    };
    let tickets: Vec<u32> = state.events.iter().filter_map(ticket).collect();
    assert!(tickets.is_sorted_by(|one, next| one < next), "{tickets:?} of {state:#?}");
}

fn all_served(setting: &Setting, state: &State) {
    let entries = state.events.iter().filter(|(_, event)| matches!(event, Event::Enters(_))).count();
    assert_eq!(entries, setting.processes * setting.requests, "{state:#?}");
}

fn no_permit_is_lost(setting: &Setting, state: &State) {
    // One who comes a second later, with a place of its own, looks at everybody.
    let mut words = state.words.clone();
    let permits = judge_after_patrol(setting, state, &mut words);
    for owner in permits.into_iter().flatten() {
        assert_eq!(state.processes[owner].life, Life::Stopped, "permit of {owner}: {state:#?}");
    }
}

/// Runs a patrol over the words at the end, as the process of place 0, to whom all others look as they are.
fn judge_after_patrol(setting: &Setting, state: &State, words: &mut Vec<u32>) -> Vec<Option<usize>> {
    let world = After { state, words: std::cell::RefCell::new(std::mem::take(words)) };
    let shape = setting.shape();
    let gate = Gate::new(&world, &shape, 0, setting.permits).unwrap();
    gate.patrol(state.now + 1_000_000_000);
    setting.owners(&world.words.borrow())
}

/// The world after its end, or before its begin, for one who does one step after the other.
struct After<'s> {
    state: &'s State,
    words: std::cell::RefCell<Vec<u32>>,
}

impl crate::World for After<'_> {
    fn load(&self, at: usize) -> u32 {
        self.words.borrow()[at]
    }
    fn store(&self, at: usize, value: u32) {
        self.words.borrow_mut()[at] = value;
    }
    fn exchange(&self, at: usize, old: u32, new: u32) -> bool {
        let is_old = self.load(at) == old;
        if is_old {
            self.store(at, new);
        }
        is_old
    }
    fn count(&self, _: usize) {}
    fn fence(&self) {}
    fn sleep(&self, _: usize, _: u32, _: std::time::Duration) {}
    fn wake(&self, _: usize) -> bool {
        true
    }
    fn now(&self) -> u64 {
        self.state.now
    }
    fn seize(&self, place: usize) -> bool {
        self.state.processes[place].life == Life::Dead
    }
    fn let_go(&self, _: usize) {}
}

fn nobody_needs_a_timer(state: &State) {
    assert!(state.had_mishap() || state.timeouts == 0, "a wake-up was lost: {state:#?}");
}

fn all_is_well(setting: &Setting, state: &State) {
    all_served(setting, state);
    nobody_needs_a_timer(state);
    if setting.permits == 1 {
        in_order(state);
    }
    assert!(setting.owners(&state.words).iter().all(Option::is_none), "{state:#?}");
    let front = state.words[setting.shape().head(0, WaitQueue::Main)];
    assert_eq!(front, state.words[setting.shape().tail(0, WaitQueue::Main)], "{state:#?}");
}

#[test]
fn three_on_one_permit_are_served_in_order_and_nobody_is_forgotten() {
    assert!(Setting::of(3, 1, 1).explore(&all_is_well) > 1_000);
}

#[test]
fn two_that_come_again_and_again_are_served_in_order() {
    let every_order = Mishaps { switches: ALL, deaths: 0, stops: 0, hurries: 0 };
    assert!(Setting::of(2, 1, 1).with(every_order).explore(&all_is_well) > 1_000);
    let often = Mishaps { switches: 3, deaths: 0, stops: 0, hurries: 0 };
    assert!(Setting::of(2, 1, 3).with(often).explore(&all_is_well) > 1_000);
}

#[test]
fn three_on_two_permits_are_served() {
    assert!(Setting::of(3, 2, 1).explore(&all_is_well) > 1_000);
}

/// With a death, or two, before each of their steps.
fn survive(setting: Setting, deaths: u32, switches: u32) {
    let states =
        setting.with(Mishaps { switches, deaths, stops: 0, hurries: 0 }).explore(&|setting, state| {
            survivors_were_served(setting, state);
            no_permit_is_lost(setting, state);
            nobody_needs_a_timer(state);
        });
    assert!(states > 1_000);
}

#[test]
fn a_death_at_any_step_of_two_loses_no_permit_and_leaves_nobody_waiting() {
    survive(Setting::of(2, 1, 1), 1, ALL);
}

#[test]
fn a_death_at_any_step_of_three_loses_no_permit_and_leaves_nobody_waiting() {
    survive(Setting::of(3, 1, 1), 1, 1);
    survive(Setting::of(3, 2, 1), 1, 1);
}

#[test]
fn two_deaths_of_three_lose_no_permit_and_leave_nobody_waiting() {
    survive(Setting::of(3, 1, 1), 2, 0);
}

/// Minutes.
#[test]
#[ignore = "long: part of test-full"]
fn deaths_among_three_in_most_orders_lose_no_permit_and_leave_nobody_waiting() {
    survive(Setting::of(3, 1, 1), 1, 2);
    survive(Setting::of(3, 2, 1), 1, 2);
    survive(Setting::of(3, 1, 1), 2, 1);
    Setting::of(3, 1, 1).with(Mishaps { switches: 3, deaths: 0, stops: 0, hurries: 0 }).explore(&all_is_well);
}

#[test]
fn who_stands_still_in_the_queue_is_passed_over_and_one_that_holds_keeps_its_permit_only() {
    let mishaps = |switches| Mishaps { switches, deaths: 0, stops: 1, hurries: 0 };
    let long = Setting { longest_wait_ns: 3_000_000_000, ..Setting::of(2, 1, 1) };
    let waits = [long.with(mishaps(1)), Setting { processes: 3, ..long }.with(mishaps(0))];
    let judge = |setting: &Setting, state: &State| {
        no_permit_is_lost(setting, state);
        let stopped = state.processes.iter().position(|process| process.life == Life::Stopped);
        let held = setting.owners(&state.words)[0];
        if stopped.is_none() || held != stopped {
            survivors_were_served(setting, state);
        }
    };
    assert!(waits.iter().all(|wait| wait.explore(&judge) > 1_000));
}

#[test]
fn who_gives_up_leaves_no_trace_and_harms_nobody_behind() {
    let mishaps = Mishaps { switches: 1, deaths: 0, stops: 0, hurries: 2 };
    // Less than a watcher's look: each timer that fires is the end of a wait.
    let wait = Setting { longest_wait_ns: 30_000_000, ..Setting::of(3, 1, 1).with(mishaps) };
    wait.explore(&|setting, state| {
        let own = |who: usize| state.events.iter().filter(move |(by, _)| *by == who).map(|(_, event)| *event);
        for who in 0..setting.processes {
            assert_eq!(own(who).filter(|event| *event == Event::Asks).count(), 1);
            assert!(own(who).any(|event| matches!(event, Event::Enters(_) | Event::Refused)), "{state:#?}");
        }
        assert_eq!(setting.owners(&state.words), [None], "{state:#?}");
        let shape = setting.shape();
        assert_eq!(state.words[shape.queue_word(0, Queue::Watcher)], 0, "{state:#?}");
        in_order(state);
    });
}

#[test]
fn short_requests_come_again_before_those_who_wait_and_nobody_is_forgotten() {
    let every_order = Mishaps { switches: 3, deaths: 0, stops: 0, hurries: 0 };
    let short = Setting { predicted_ns: EXACT_FROM_NS - 1, ..Setting::of(2, 1, 3).with(every_order) };
    let (again, waited) = (std::cell::Cell::new(false), std::cell::Cell::new(false));
    short.explore(&|setting, state| {
        all_served(setting, state);
        let entries = state.events.iter().filter(|(_, event)| matches!(event, Event::Enters(_)));
        let who: Vec<usize> = entries.map(|(who, _)| *who).collect();
        again.set(again.get() || who == [0, 0, 0, 1, 1, 1]);
        waited.set(
            waited.get() || state.events.iter().any(|(_, event)| matches!(event, Event::Enters(Some(_)))),
        );
    });
    assert!(again.get() && waited.get());
}

fn survivors_were_served(setting: &Setting, state: &State) {
    for (who, process) in state.processes.iter().enumerate() {
        let entered =
            state.events.iter().filter(|(by, event)| *by == who && matches!(event, Event::Enters(_)));
        let served = entered.count();
        assert!(
            matches!(process.life, Life::Dead | Life::Stopped) || served == setting.requests,
            "{who} waits for ever: {state:#?}"
        );
    }
}

#[test]
fn the_words_of_a_place_are_where_the_explorer_takes_them_to_be() {
    let shape = Shape::new(1, 1, 2, 2).unwrap();
    assert_eq!(FREE, 0);
    assert_eq!(shape.place(1, Line::Generation) - shape.place(0, Line::Generation), crate::layout::LINE);
}
