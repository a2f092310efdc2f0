//! Which method is in force for bursts of a class and width: one byte, so that a worker reads it without a lock.

use evener_core::Method;

/// Multi-buffer is in force; else plain.
pub(super) const MULTI: u8 = 1;
/// The next burst is to try the other method.
pub(super) const TRY: u8 = 2;
/// No worker has measured the method in force in this run: the next burst is sampled.
pub(super) const FRESH: u8 = 4;
/// No worker has looked yet: the estimator is to say what is in force.
pub(super) const UNSET: u8 = 8;

/// By which method a burst runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) method: Method,
    /// It is to be sampled, for no worker has done so in this run.
    pub(crate) is_fresh: bool,
    /// A part of it is to try the other method (`Costs::take_try`).
    pub(crate) wants_try: bool,
}

impl Chosen {
    /// Where there is only one method.
    pub(crate) const PLAIN: Self = Self { method: Method::Plain, is_fresh: false, wants_try: false };

    /// What the byte says.
    #[inline]
    pub(super) fn of_word(word: u8) -> Self {
        Self {
            method: if word & MULTI == 0 { Method::Plain } else { Method::MultiBuffer },
            is_fresh: word & FRESH != 0,
            wants_try: word & TRY != 0,
        }
    }
}
