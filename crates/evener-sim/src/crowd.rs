//! Many processes that share one module, in virtual time: what `evener-bench`'s program `processes` does live.
//!
//! Path of a request: a permit, where the order has any -> `d` on a core -> a unit of the module for `h`, in the order of submission -> the permit goes back. A process
//! has one request at a time and asks for the next at once. Nothing is fitted: a switch between processes costs nothing, and who is woken needs no time to be so, beyond the wait for a core.

use std::collections::VecDeque;

use evener_core::Nanos;

use crate::engine::{
    Context, Engine, EventId, Faults, ModuleId, ModuleSpec, SchedulerSpec, Step, Stuck, Thread, ThreadSpec,
    World,
};

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Requests wait at the units, first come, first served.
    Module,
    /// Paper 001: 64 lists by process id; the head of a list does all its requests, then the next one.
    Lists,
    /// So many requests have a permit; the others wait, first come, first served.
    Fifo(u32),
    /// Paper 004: so many flags; who is woken because one went down looks again, and goes to the end of the list where it is up.
    Flags(u32),
    /// There is no module; `d` is all that a request takes.
    Cores,
}

/// Processes and their machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// Cores, at least one.
    pub cores: usize,
    /// Units of the module, at least one.
    pub units: u32,
    /// Who goes first.
    pub order: Order,
    /// A process for each of these ids, which name its list.
    pub ids: Vec<u32>,
    /// Requests of each process.
    pub requests: u32,
    /// Core time of a request.
    pub d: Nanos,
    /// What a unit takes for it.
    pub h: Nanos,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// When the last request was done.
    pub makespan: Nanos,
    /// Part of the units' time in which they worked, 0 to 1, from the beginning to the end.
    pub busy: f64,
    /// How long each request took from when it was wanted, in the order of their ends.
    pub times: Vec<Nanos>,
    /// Jain's index of the requests that each process had done when half of all were.
    pub fairness: f64,
}

/// Lists of paper 001.
const LISTS: u32 = 64;

impl Crowd {
    /// Lets the processes work until all are through.
    ///
    /// # Errors
    ///
    /// [`Stuck`]: no process gets ahead.
    ///
    /// # Panics
    ///
    /// Without cores or units.
    pub fn run(&self) -> Result<Outcome, Stuck> {
        let shared = Shared { gates: self.gates(), open: self.ids.len(), done: Vec::new() };
        let mut engine = Engine::new(self.cores, SchedulerSpec::linux(250, 0), LONGEST, shared);
        let module = engine.attach(ModuleSpec { units: self.units, faults: Faults::default() });
        for (number, id) in self.ids.iter().enumerate() {
            let [back, turn] = [engine.event(), engine.event()];
            let gate = if self.order == Order::Lists { (id % LISTS) as usize } else { 0 };
            let left = self.requests;
            let process = Process {
                crowd: self,
                number,
                gate,
                module,
                back,
                turn,
                left,
                wanted: Nanos::ZERO,
                state: State::Wanting,
            };
            engine.spawn(ThreadSpec::default(), process);
        }
        let makespan = engine.run()?;
        let work = engine.busy_time(module).as_secs_f64();
        let all = f64::from(self.units) * makespan.as_secs_f64();
        Ok(Outcome {
            makespan,
            busy: if all > 0.0 { work / all } else { 0.0 },
            fairness: fairness(&engine.world.done, self.ids.len()),
            times: engine.world.done.iter().map(|(_, time)| *time).collect(),
        })
    }

    fn gates(&self) -> Vec<Gate> {
        let gate = |permits| Gate { free: permits, waiting: VecDeque::new() };
        match self.order {
            Order::Lists => (0..LISTS).map(|_| gate(1)).collect(),
            Order::Fifo(permits) | Order::Flags(permits) => vec![gate(permits.max(1))],
            Order::Module | Order::Cores => Vec::new(),
        }
    }
}

/// Jain's index of the requests of each process among the first half.
#[expect(clippy::cast_precision_loss, reason = "a figure")]
fn fairness(done: &[(usize, Nanos)], processes: usize) -> f64 {
    let mut counts = vec![0_u32; processes];
    done.iter().take(done.len().div_ceil(2)).for_each(|(process, _)| counts[*process] += 1);
    let sum: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    let squares: f64 = counts.iter().map(|count| f64::from(*count).powi(2)).sum();
    if squares > 0.0 { sum * sum / (processes as f64 * squares) } else { 0.0 }
}

/// What the processes share.
struct Shared {
    gates: Vec<Gate>,
    open: usize,
    /// Process and time of each request, in the order of their ends.
    done: Vec<(usize, Nanos)>,
}

/// Permits, and who waits for one.
struct Gate {
    free: u32,
    waiting: VecDeque<EventId>,
}

impl World for Shared {
    fn is_over(&self) -> bool {
        self.open == 0
    }

    fn next_happening(&self) -> Option<Nanos> {
        None
    }

    fn happen(&mut self, _: Nanos, _: &mut Vec<EventId>) {}
}

/// A process between two of its steps.
struct Process<'c> {
    crowd: &'c Crowd,
    number: usize,
    gate: usize,
    module: ModuleId,
    /// Its request is back.
    back: EventId,
    /// It is its turn.
    turn: EventId,
    left: u32,
    wanted: Nanos,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    /// It wants its next request done.
    Wanting,
    /// It was told that it is its turn.
    Called,
    /// It has what it needs.
    Admitted,
    /// Its core's part is done.
    Prepared,
    /// A unit works on it.
    Submitted,
    /// Its request is done.
    Back,
    /// It has nothing more to do.
    Through,
}

impl Thread<Shared> for Process<'_> {
    fn next(&mut self, context: &mut Context<'_, Shared>) -> Step {
        loop {
            match self.state {
                State::Wanting => {
                    self.wanted = context.now;
                    // The head of a list has its turn for as long as it lives.
                    let has_turn = self.crowd.order == Order::Lists && self.left < self.crowd.requests;
                    if has_turn || context.world.gates.is_empty() {
                        self.state = State::Admitted;
                    } else if let Some(step) = self.enter(&mut context.world.gates[self.gate]) {
                        return step;
                    }
                }
                State::Called => {
                    if !matches!(self.crowd.order, Order::Flags(_)) {
                        self.state = State::Admitted;
                    } else if let Some(step) = self.enter(&mut context.world.gates[self.gate]) {
                        return step;
                    }
                }
                State::Admitted => {
                    self.state = State::Prepared;
                    return Step::Compute(self.crowd.d);
                }
                State::Prepared if self.crowd.order == Order::Cores => self.state = State::Back,
                State::Prepared => {
                    self.state = State::Submitted;
                    return Step::Submit {
                        module: self.module,
                        work: self.crowd.h,
                        interrupt: Nanos::ZERO,
                        done: self.back,
                    };
                }
                State::Submitted => {
                    self.state = State::Back;
                    return Step::Wait(self.back);
                }
                State::Back => {
                    let time = context.now - self.wanted;
                    context.world.done.push((self.number, time));
                    self.left -= 1;
                    self.state = if self.left == 0 { State::Through } else { State::Wanting };
                    let is_to_leave = self.left == 0 || self.crowd.order != Order::Lists;
                    let is_flags = matches!(self.crowd.order, Order::Flags(_));
                    let gate = context.world.gates.get_mut(self.gate).filter(|_| is_to_leave);
                    if let Some(next) = gate.and_then(|gate| gate.leave(is_flags)) {
                        return Step::Signal(next);
                    }
                }
                State::Through => {
                    context.world.open -= 1;
                    return Step::Exit;
                }
            }
        }
    }
}

impl Process<'_> {
    /// Takes a permit, or waits for one.
    fn enter(&mut self, gate: &mut Gate) -> Option<Step> {
        // Where permits are handed over, none is free while others wait.
        if gate.free > 0 {
            gate.free -= 1;
            self.state = State::Admitted;
            return None;
        }
        gate.waiting.push_back(self.turn);
        self.state = State::Called;
        Some(Step::Wait(self.turn))
    }
}

impl Gate {
    /// Gives a permit back: to who waits longest, or, of flags, to any process, and the one that waits longest is called.
    fn leave(&mut self, is_flag: bool) -> Option<EventId> {
        let next = self.waiting.pop_front();
        if is_flag || next.is_none() {
            self.free += 1;
        }
        next
    }
}

/// Virtual time after which a run counts as failed.
const LONGEST: Nanos = Nanos::from_millis(3_600_000);

#[cfg(test)]
mod tests {
    use super::*;

    fn crowd(order: Order, processes: u32) -> Crowd {
        let ids = (1_000..1_000 + processes).collect();
        Crowd { cores: 2, units: 8, order, ids, requests: 10, d: Nanos(12_000), h: Nanos::from_millis(1) }
    }

    fn requests_per_ms(crowd: &Crowd) -> f64 {
        let outcome = crowd.run().unwrap();
        let requests = crowd.ids.len() * crowd.requests as usize;
        assert_eq!(outcome.times.len(), requests);
        requests as f64 / (outcome.makespan.0 as f64 / 1e6)
    }

    #[test]
    fn a_process_alone_takes_both_parts_of_each_request_one_after_the_other() {
        for order in [Order::Module, Order::Lists, Order::Fifo(8), Order::Flags(8)] {
            let outcome = crowd(order, 1).run().unwrap();
            assert_eq!(outcome.makespan, Nanos(10 * 1_012_000), "{order:?}");
            assert!(outcome.times.iter().all(|time| *time == Nanos(1_012_000)) && outcome.fairness == 1.0);
        }
        let cores = crowd(Order::Cores, 2).run().unwrap();
        assert_eq!(cores.makespan, Nanos(10 * 12_000));
    }

    #[test]
    fn many_processes_are_bounded_by_units_and_permits_and_never_fall_with_their_number() {
        for processes in [64, 512] {
            let at_the_module = requests_per_ms(&crowd(Order::Module, processes));
            assert!(at_the_module > 7.8 && at_the_module <= 8.0, "{processes}: {at_the_module}");
            // With a permit for each unit the core's part of a request is a gap of its unit.
            let fifo = requests_per_ms(&crowd(Order::Fifo(8), processes));
            assert!((fifo - 8.0 / 1.012).abs() < 0.12, "{processes}: {fifo}");
            let spare = requests_per_ms(&crowd(Order::Fifo(10), processes));
            assert!(spare > 7.8 && spare <= 8.0, "{processes}: {spare}");
        }
    }

    #[test]
    fn equal_processes_in_one_queue_get_equal_parts_and_those_of_lists_go_one_after_the_other() {
        let fair = crowd(Order::Fifo(8), 128).run().unwrap();
        assert!(fair.fairness > 0.98, "{}", fair.fairness);
        let lists = crowd(Order::Lists, 128).run().unwrap();
        assert!(lists.fairness < 0.6, "{}", lists.fairness);
    }

    #[test]
    fn lists_of_unequal_length_leave_units_idle_at_the_end() {
        // All in one list: one unit of eight has work.
        let ids = (0..16).map(|number| number * LISTS).collect();
        let outcome = Crowd { ids, ..crowd(Order::Lists, 0) }.run().unwrap();
        assert!((outcome.busy - 1.0 / 8.0).abs() < 0.01, "{}", outcome.busy);
    }
}
