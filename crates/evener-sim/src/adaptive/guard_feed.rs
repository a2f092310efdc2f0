//! The feed of the guard: jobs on cores, jobs on modules, and cores that rest and leave what waits to modules.

use evener_core::Nanos;
use evener_core::guard::{self, Guard};
use evener_core::plan::adaptive;

use crate::lab::{ClassView, Path, Sample, Setup};
use crate::rounding::round;

/// The guard and what it needs to know.
pub(super) struct GuardFeed {
    guard: Guard,
    pub(super) is_off: bool,
    /// By class.
    ledgers: Vec<Ledger>,
    /// By CPU worker, while it rests.
    rests: Vec<Option<Rest>>,
    /// Core time of all jobs on modules.
    on_modules: Nanos,
    /// Nanoseconds in which cores rested and no module path used them; below zero where paths used more.
    idle: i64,
}

#[derive(Clone, Copy, Default)]
struct Ledger {
    /// Jobs begun on modules, and ended on cores.
    routed: u64,
    on_cores: u64,
    /// What those took.
    core_time: Nanos,
    /// Jobs that cores take next, as control.
    owed: u32,
}

/// A core rests, from its last question on, and has perhaps rested before it.
#[derive(Clone, Copy)]
struct Rest {
    since: Nanos,
    /// The class that it left.
    class: usize,
    on_modules: Nanos,
    /// Time that the core would still need for the job that it left: until then a module that does it is not late.
    free: Nanos,
}

impl GuardFeed {
    pub(super) fn new(setup: &Setup) -> Self {
        let classes = setup.classes.len();
        Self {
            guard: Guard::new(classes),
            is_off: cfg!(mutant = "guard_off"),
            ledgers: vec![Ledger::default(); classes],
            rests: vec![None; setup.cpu.workers as usize],
            on_modules: Nanos::ZERO,
            idle: 0,
        }
    }

    pub(super) const fn guard(&self) -> &Guard {
        &self.guard
    }

    pub(super) fn is_locked(&self, class: usize, now: Nanos) -> bool {
        !self.is_off && self.guard.is_locked(class, now)
    }

    /// A module begins a job. Where cores run too few of the class by themselves, they owe it a control job.
    pub(super) fn record_routed(&mut self, class: usize) {
        let ledger = &mut self.ledgers[class];
        ledger.routed += 1;
        let is_known = ledger.on_cores > ledger.routed / guard::TUNING.control_period;
        if !self.is_off && !is_known && self.guard.is_control(class) && ledger.owed == 0 {
            ledger.owed = 1;
        }
    }

    /// The class of which a core is to run a job now.
    pub(super) fn take_owed(&mut self, classes: &[ClassView]) -> Option<usize> {
        let is_due = |&class: &usize| self.ledgers[class].owed > 0 && classes[class].waiting > 0;
        let class = (0..classes.len()).find(is_due)?;
        self.ledgers[class].owed -= 1;
        Some(class)
    }

    /// A job has ended; whether its class is locked from now on.
    pub(super) fn record(&mut self, sample: &Sample, lambda: f64) -> bool {
        let class = sample.class;
        if sample.worker.path == Path::Cpu {
            self.ledgers[class].on_cores += 1;
            self.ledgers[class].core_time += sample.core;
            self.guard.control(class, 1, sample.core);
            return false;
        }
        let d = sample.core + sample.interrupt;
        self.on_modules += d;
        self.guard.routed(class, 1, scaled(d, lambda), sample.now);
        self.guard.is_locked(class, sample.now)
    }

    /// A CPU worker takes a job, or nothing waits.
    pub(super) fn end_rest(&mut self, index: u32) {
        self.rests[index as usize] = None;
    }

    /// A CPU worker that gets `share` of a core rests although `class` waits; whether that class is locked now.
    pub(super) fn record_rest(&mut self, index: u32, class: usize, share: f64, now: Nanos) -> bool {
        let mut free = self.own_time(class, share);
        if let Some(rest) = self.rests[index as usize] {
            let passed = now - rest.since;
            free = rest.free - passed;
            self.count(&rest, passed - rest.free, share, now);
        }
        let on_modules = self.on_modules;
        self.rests[index as usize] = Some(Rest { since: now, class, on_modules, free });
        self.guard.is_locked(class, now)
    }

    /// Time that a job takes on a core, as measured.
    fn own_time(&self, class: usize, share: f64) -> Nanos {
        let Ledger { on_cores, core_time, .. } = self.ledgers[class];
        Nanos(core_time.0.checked_div(on_cores).map_or(0, |ns| scaled(Nanos(ns), 1.0 / share).0))
    }

    /// Books time of a core that rested, without what modules' paths used of it. What they used beyond a rest
    /// offsets the next one, for a job is booked at its end, wherever that falls.
    fn count(&mut self, rest: &Rest, time: Nanos, share: f64, now: Nanos) {
        self.idle += signed(scaled(time, share)) - signed(self.on_modules - rest.on_modules);
        if let Ok(idle @ 1..) = u64::try_from(self.idle) {
            self.idle = 0;
            self.guard.idled(rest.class, Nanos(idle), now);
        }
        self.idle = self.idle.max(-signed(adaptive::TUNING.credit_max));
    }
}

fn scaled(time: Nanos, by: f64) -> Nanos {
    Nanos(round(time.as_secs_f64() * 1e9 * by))
}

fn signed(time: Nanos) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}
