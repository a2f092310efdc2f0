//! How long a helper looks for another call before it sleeps.
//!
//! A call that it helped in ends -> [`SpinBudget::after`] -> [`SpinBudget::keeps_spinning`] after each look and each yield of its core,
//! until a call comes or it says no -> what that took is [`awake`](SpinBudget::awake).
//!
//! To wake a thread on an idle core takes 60 us here, in which the caller of a unit of XTS, 1,200 us of two threads' work,
//! is alone; programs that work through a file begin the next unit within 20 us. A core that is not idle is left at once.

use evener_core::Nanos;

/// A helper is awake for nothing for at most this part of the time that it worked: an eighth, of two threads' a sixteenth.
/// Assumed, not measured: an eighth, because what a wake-up costs a call is more below 1 ms.
const SHARE: u64 = 8;

/// And at most so long. Assumed, not measured: 100 us, one and a half times a wake-up.
const AWAKE_MAX: Nanos = Nanos::from_micros(100);

/// A yield that takes so long gave the core to another thread. On an idle core it takes 0.3 us; a thread that is let in
/// stays for its turn, 0.7 ms and more.
const TURN_MIN: Nanos = Nanos::from_micros(20);

/// One wait of a helper that yields its core between two looks.
pub(super) struct SpinBudget {
    began: Nanos,
    last: Nanos,
    until: Nanos,
}

impl SpinBudget {
    /// Begins at `now`, after a call in which the helper worked so long.
    pub(super) fn after(worked: Nanos, now: Nanos) -> Self {
        Self { began: now, last: now, until: now + AWAKE_MAX.min(Nanos(worked.0 / SHARE)) }
    }

    /// Whether it shall look again, after a yield that ended at `now`.
    pub(super) fn keeps_spinning(&mut self, now: Nanos) -> bool {
        let is_alone = now - self.last < TURN_MIN;
        if is_alone {
            self.last = now;
        }
        is_alone && now < self.until
    }

    /// Core time that it took so far.
    pub(super) fn awake(&self) -> Nanos {
        self.last - self.began
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks by yields of `yield_us` each; how many, and core time in microseconds.
    fn looks(worked_us: u64, yields_us: impl IntoIterator<Item = u64>) -> (usize, u64) {
        let mut now = Nanos::from_millis(7);
        let mut budget = SpinBudget::after(Nanos::from_micros(worked_us), now);
        let looked = yields_us.into_iter().take_while(|us| {
            now += Nanos::from_micros(*us);
            budget.keeps_spinning(now)
        });
        (looked.count(), budget.awake().0 / 1_000)
    }

    #[test]
    fn a_helper_is_awake_for_an_eighth_of_its_work_and_not_for_long() {
        let always = || std::iter::repeat(1);
        assert_eq!(looks(0, always()), (0, 1));
        assert_eq!(looks(400, always()), (49, 50));
        assert_eq!(looks(1_200, always()), (99, 100));
        assert_eq!(looks(1_000_000, always()), (99, 100));
    }

    #[test]
    fn a_helper_leaves_a_core_that_another_thread_wants() {
        assert_eq!(looks(10_000, [1, 1, 30, 1, 1]), (2, 2));
    }
}
