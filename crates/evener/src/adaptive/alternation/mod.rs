//! Alternation: where the only core and the only module share that core, each works by itself now and then, so that it is measured by itself.
//!
//! ```text
//!            offer_to_module, by the core's worker            its last request is drained, or its time is over
//!   ByPlan ──────────────────────────────────────> Module ────────────────────────────────────────────────────> ByPlan
//!            module_in_turn, by the module's worker           the core claims again after its jobs, or none wait
//!   ByPlan ──────────────────────────────────────> Core ──────────────────────────────────────────────────────> ByPlan
//! ```
//!
//! | phase | the core's worker | the module's worker |
//! |---|---|---|
//! | ByPlan | does as the plan says | does as the plan says |
//! | Module | rests | takes the requests of the turn, one by one |
//! | Core | waits until the module is drained, then runs the jobs of the turn | takes nothing |
//!
//! A worker whose claim was answered with a wait sleeps at its doorbell; the answer may be out of date by then. So each change counts a version up
//! ([`Alternation::mark_changed`]) before the doorbell is rung, and the worker compares it with the version of its last claim
//! ([`Alternation::has_changed`]) before it sleeps.
//!
//! What turns cost and measured is in `accounts.rs`; what begins and ends them in `protocol.rs`; the flags that workers read without
//! the lock are here.

pub(super) mod accounts;
mod protocol;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::accounts::{Phase, Turns};
use crate::queue::class_queues::ClassQueues;

/// The two workers between which turns alternate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerKind {
    /// The only core's worker.
    Core,
    /// The only module's.
    Module,
}

/// The turns of a run, and what its two workers know of them.
pub(crate) struct Alternation {
    /// Where the only core and the only module take turns. Locked after the state and before the costs where they are, too.
    turns: Option<Mutex<Turns>>,
    /// Whether one of the two has a turn: a hint that spares the reader the lock.
    has_turn: AtomicBool,
    /// The guard would lock a class: it is the core's turn at once.
    is_alarmed: AtomicBool,
    /// Times that the only core began to work, and that it rested: odd while it works. Written by its worker.
    core_changes: AtomicU32,
    /// The rest, by that, from which it was last woken because the module took no more; odd, so that the first one is another.
    woken_in: AtomicU32,
    /// Times that the answer to each [`WorkerKind`] may have changed.
    version: [AtomicU32; 2],
    /// The value of `version` at the last claim of each.
    seen_version: [AtomicU32; 2],
}

impl Alternation {
    /// With turns, or without: then the plan alone decides.
    pub(super) fn new(turns: Option<Turns>) -> Self {
        Self {
            turns: turns.map(Mutex::new),
            has_turn: AtomicBool::new(false),
            is_alarmed: AtomicBool::new(false),
            core_changes: AtomicU32::new(0),
            woken_in: AtomicU32::new(0),
            version: [const { AtomicU32::new(0) }; 2],
            seen_version: [const { AtomicU32::new(0) }; 2],
        }
    }

    /// Whether core and module take turns.
    pub(crate) const fn takes_turns(&self) -> bool {
        self.turns.is_some()
    }

    /// Whether one of the two has a turn.
    pub(crate) fn has_turn(&self) -> bool {
        // Relaxed: a worker that got an old answer claims again soon.
        self.has_turn.load(Ordering::Relaxed)
    }

    /// A worker is about to claim.
    pub(super) fn note_query(&self, worker: WorkerKind) {
        if self.turns.is_some() {
            // Relaxed: the doorbell that is rung after each change orders it, `docs/design/ring.md`.
            let version = self.version[worker as usize].load(Ordering::Relaxed);
            self.seen_version[worker as usize].store(version, Ordering::Relaxed);
        }
    }

    /// Whether the answer to a worker's last claim may be out of date. The worker calls it once it listens at its doorbell: between the claim and that
    /// no ring could wake it.
    pub(crate) fn has_changed(&self, worker: WorkerKind) -> bool {
        let [version, answered] =
            [&self.version, &self.seen_version].map(|words| words[worker as usize].load(Ordering::Relaxed));
        version != answered && !cfg!(mutant = "turns_unheard")
    }

    /// The answer to these workers may have changed; call it before they are woken.
    pub(super) fn mark_changed(&self, to: &[WorkerKind]) {
        if self.turns.is_some() {
            to.iter().for_each(|worker| _ = self.version[*worker as usize].fetch_add(1, Ordering::Relaxed));
        }
    }

    /// The only core begins to work, or rests.
    pub(crate) fn set_core_working(&self, works: bool) {
        // Relaxed: on one core every thread sees what was written before.
        let changes = self.core_changes.load(Ordering::Relaxed);
        if self.turns.is_some() && (changes % 2 == 1) != works {
            self.core_changes.store(changes.wrapping_add(1), Ordering::Relaxed);
        }
    }

    /// How often the only core has begun or rested, if it rests now; `None` where it works or turns are not taken.
    pub(crate) fn core_rest(&self) -> Option<u32> {
        let changes = self.core_changes.load(Ordering::Relaxed);
        (self.turns.is_some() && changes % 2 == 0).then_some(changes)
    }

    /// The module was to take nothing of what waits: whether the only core, which rests, is to be woken for it. Once in a rest, for
    /// the plan may leave it to the module all the same.
    pub(crate) fn should_wake_core(&self, queues: &ClassQueues<'_>) -> bool {
        let Some(rests) = self.core_rest().filter(|_| !self.has_turn() && !queues.is_empty()) else {
            return false;
        };
        // Relaxed: only the module's worker comes here.
        let is_first = self.woken_in.swap(rests | 1, Ordering::Relaxed) != rests | 1;
        let is_left = is_first && !cfg!(mutant = "core_left_asleep");
        if is_left {
            self.mark_changed(&[WorkerKind::Core]);
        }
        is_left
    }

    /// One of the two has a turn, or none any more.
    fn set_turn(&self, has_turn: bool) {
        self.has_turn.store(has_turn, Ordering::Relaxed);
    }

    /// The guard would lock a class, or not.
    pub(super) fn alarm(&self, is_alarm: bool) {
        // Relaxed: the worker that sees it takes it away.
        self.is_alarmed.fetch_or(is_alarm && !cfg!(mutant = "alarm_unheard"), Ordering::Relaxed);
    }

    /// Whether there was an alarm, which is over with that.
    fn take_alarm(&self) -> bool {
        // Relaxed: one flag, which is taken away once.
        self.is_alarmed.load(Ordering::Relaxed) && self.is_alarmed.swap(false, Ordering::Relaxed)
    }

    /// The queue of which it is the module's turn.
    pub(super) fn queue_of_module_turn(&self) -> Option<usize> {
        match self.turns()?.phase {
            Phase::Module { queue, .. } => Some(queue),
            Phase::Core { .. } | Phase::ByPlan => None,
        }
    }

    /// The turns, locked; `None` where none are taken.
    pub(super) fn turns(&self) -> Option<MutexGuard<'_, Turns>> {
        self.turns.as_ref().map(|turns| turns.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests;
