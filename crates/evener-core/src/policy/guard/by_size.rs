//! The regret guard over requests of any kind and length: whatever may leave the direct path is judged here.
//!
//! The path of one request: [`BySize::stays`] -> it stays, or goes another way -> [`BySize::stayed`] or [`BySize::went`] with
//! what it took.

use super::tuning::TUNING;
use super::{Counters, Guard};
use crate::units::Nanos;

/// One request: which kind of work, and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSize {
    /// Requests of one kind cost the same per byte. An index below the number given to [`BySize::new`].
    pub kind: usize,
    /// Length in bytes.
    pub bytes: usize,
}

/// A guard whose classes are kinds of work and powers of two in bytes.
#[derive(Clone, Debug)]
pub struct BySize {
    /// By kind; made with its first request, for all of them together are hundreds of kilobytes, and a program has few.
    guards: Vec<Option<Box<Guard>>>,
}

/// Classes of size: from 2^4 bytes, a block, to 2^30 and more.
const CLASS_FIRST: u32 = 4;
const CLASS_COUNT: usize = 27;

impl BySize {
    /// A guard over `kinds` kinds of work, of which nothing is known yet.
    #[must_use]
    pub fn new(kinds: usize) -> Self {
        Self { guards: vec![None; kinds] }
    }

    /// Whether the request that begins at `now` stays on the direct path: its class is locked, or it is control.
    ///
    /// # Panics
    ///
    /// Where the load's kind is not below the number of kinds, as all functions here.
    #[must_use]
    pub fn stays(&mut self, load: RequestSize, now: Nanos) -> bool {
        self.stays_after(load, 0, now)
    }

    /// The same after `skipped` requests that were routed without this question: it is control in the place of any of them.
    pub fn stays_after(&mut self, load: RequestSize, skipped: u32, now: Nanos) -> bool {
        let (guard, class) = (self.of(load), class(load));
        if guard.is_locked(class, now) {
            guard.kept_inline(class, 1);
            return true;
        }
        (0..=skipped).fold(false, |is_control, _| guard.is_control(class) || is_control)
    }

    /// Takes what others say that such a request takes on the direct path, where none of its class was measured.
    pub fn tell(&mut self, load: RequestSize, cost: Nanos) {
        self.of(load).tell(class(load), at_class_size(load, cost));
    }

    /// Takes what a request took that stayed.
    pub fn stayed(&mut self, load: RequestSize, cost: Nanos) {
        self.of(load).control(class(load), 1, at_class_size(load, cost));
    }

    /// Takes what a request took that went another way and ended at `now`. Returns whether that locked its class.
    pub fn went(&mut self, load: RequestSize, cost: Nanos, now: Nanos) -> bool {
        self.went_together(load, 1, cost, now)
    }

    /// The same of several, with their mean length and what they took together.
    pub fn went_together(&mut self, load: RequestSize, requests: u64, cost: Nanos, now: Nanos) -> bool {
        let (guard, class) = (self.of(load), class(load));
        let before = guard.counters(class).locks;
        guard.routed(class, requests, at_class_size(load, cost), now);
        guard.counters(class).locks > before
    }

    /// As [`went`](Self::went), by a way that works on a core and waits for no other, where one request may have paid for `requests` like it. What is
    /// beyond twice what those take on the direct path its thread lost its core for, which is no verdict, where that is rare.
    pub fn went_on_core(&mut self, load: RequestSize, requests: u64, cost: Nanos, now: Nanos) -> bool {
        let most = self.direct_mean(load).map_or(cost, |direct| Nanos(direct.0.saturating_mul(2 * requests)));
        let is_excused = cost > most && self.of(load).excuses(class(load));
        self.went(load, if is_excused { most } else { cost }, now)
    }

    /// Whether the load's class is locked at `now`.
    #[must_use]
    pub fn is_locked(&self, load: RequestSize, now: Nanos) -> bool {
        self.guards[load.kind].as_ref().is_some_and(|guard| guard.is_locked(class(load), now))
    }

    /// What such a request takes on the direct path; `None` where none of its class was measured.
    #[must_use]
    pub fn direct_mean(&self, load: RequestSize) -> Option<Nanos> {
        let entered = self.guards[load.kind].as_ref()?.inline_mean(class(load))?;
        Some(scaled(entered, load.bytes, entered_bytes(load)))
    }

    /// What happened in all classes so far.
    #[must_use]
    pub fn total(&self) -> Counters {
        let mut total = Counters::default();
        self.guards.iter().flatten().for_each(|guard| total += guard.total());
        total
    }

    fn of(&mut self, load: RequestSize) -> &mut Guard {
        self.guards[load.kind].get_or_insert_with(|| Box::new(Guard::new(CLASS_COUNT)))
    }
}

/// The class of its size.
fn class(load: RequestSize) -> usize {
    let power = load.bytes.max(1).ilog2().saturating_sub(CLASS_FIRST) as usize;
    power.min(CLASS_COUNT - 1)
}

/// Bytes at which requests of the load's class are entered: the smallest of its class, or `Tuning::entered_whole`. So requests of
/// one class are compared whatever their mixture.
fn entered_bytes(load: RequestSize) -> usize {
    1 << load.bytes.max(1).ilog2().min(TUNING.entered_whole)
}

fn at_class_size(load: RequestSize, cost: Nanos) -> Nanos {
    scaled(cost, entered_bytes(load), load.bytes.max(1))
}

/// What takes `cost` for `from` bytes, for `to` bytes.
fn scaled(cost: Nanos, to: usize, from: usize) -> Nanos {
    let scaled = u128::from(cost.0) * to as u128 / from as u128;
    Nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
}
