//! Leave to skip the policy: updates of one context that stay on the core without a question, so many for each question.

/// Updates of one length that stay with the inner function.
#[derive(Default)]
pub(in crate::cipher) struct PolicySkips {
    len: usize,
    left: u32,
    /// Of the last time.
    granted: u32,
}

/// Most updates at a time. Assumed, not measured: 16, because a fork's child and a context that is freed leave so many out at most, and the question is then a sixteenth of 100 instructions.
const UPDATES_MAX: u32 = 16;

impl PolicySkips {
    /// Takes one of them, if there is one of `len` bytes.
    #[inline]
    pub(in crate::cipher) const fn take(&mut self, len: usize) -> bool {
        let is_left = self.left > 0 && self.len == len;
        self.left -= is_left as u32;
        is_left
    }

    /// How many to ask for: twice as many as the last time, so that a context of one update takes no more than that from others.
    pub(in crate::cipher) const fn next(&self) -> u32 {
        let next = 2 * self.granted;
        if next > UPDATES_MAX {
            UPDATES_MAX
        } else if next == 0 {
            1
        } else {
            next
        }
    }

    /// So many were granted; whether the update under way is the first of them.
    pub(in crate::cipher) const fn begin(&mut self, len: usize, granted: u32) -> bool {
        *self = Self { len, left: granted.saturating_sub(1), granted };
        granted > 0
    }

    /// The next updates are of another class.
    pub(in crate::cipher) const fn end(&mut self) {
        self.left = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::PolicySkips;

    /// Questions that so many updates of one length make of those that `granted` leaves of what is asked for.
    fn questions(updates: u32, granted: fn(u32) -> u32) -> u32 {
        let mut run = PolicySkips::default();
        let mut asked = 0;
        for _ in 0..updates {
            if !run.take(4_096) {
                asked += 1;
                let wanted = run.next();
                _ = run.begin(4_096, granted(wanted));
            }
        }
        asked
    }

    #[test]
    fn a_context_asks_for_one_update_first_and_then_for_more() {
        assert_eq!([1, 2, 3, 4, 7, 8].map(|updates| questions(updates, |wanted| wanted)), [1, 2, 2, 3, 3, 4]);
        assert!((62..70).contains(&questions(1_000, |wanted| wanted)), "1000 by sixteens");
    }

    #[test]
    fn where_the_policy_grants_nothing_each_update_asks() {
        assert_eq!(questions(50, |_| 0), 50);
    }

    #[test]
    fn a_run_is_of_one_length_and_ends_with_its_class() {
        let mut run = PolicySkips::default();
        assert!(run.begin(4_096, 8) && !run.take(8_192) && run.take(4_096));
        run.end();
        assert!(!run.take(4_096));
        assert!(!run.begin(4_096, 0), "nothing was granted");
    }
}
