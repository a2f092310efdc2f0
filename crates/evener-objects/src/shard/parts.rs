//! Parts of large objects that threads take next: no more of them at once than fit the memory.

use std::collections::VecDeque;

/// Those that no thread has taken; `T` is what they are of.
pub(super) struct Parts<T> {
    /// The next part of each object, and how many it has.
    waiting: VecDeque<(Part<T>, usize)>,
    /// Bytes that parts in work may have beyond what each thread has anyway, and those that they have.
    extra_bytes_max: u64,
    extra_bytes: u64,
}

/// A part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part<T> {
    pub(super) of: T,
    pub(super) number: usize,
    /// Bytes that it takes beyond what each thread has anyway.
    extra_bytes: u64,
}

impl<T: Clone> Parts<T> {
    pub(super) const fn new(extra_bytes_max: u64) -> Self {
        Self { waiting: VecDeque::new(), extra_bytes_max, extra_bytes: 0 }
    }

    /// Takes an object of at least one part in.
    pub(super) fn share(&mut self, of: T, count: usize, extra_bytes: u64) {
        self.waiting.push_back((Part { of, number: 0, extra_bytes }, count));
    }

    /// The next part, if it fits. One fits always, else it would never be done.
    pub(super) fn next(&mut self) -> Option<Part<T>> {
        let (next, count) = self.waiting.front_mut()?;
        let extra_bytes = self.extra_bytes.saturating_add(next.extra_bytes);
        if self.extra_bytes > 0 && extra_bytes > self.extra_bytes_max {
            return None;
        }
        self.extra_bytes = extra_bytes;
        let part = next.clone();
        next.number += 1;
        if next.number == *count {
            self.waiting.pop_front();
        }
        Some(part)
    }

    /// The memory of a part is free.
    pub(super) const fn ended(&mut self, part: &Part<T>) {
        self.extra_bytes -= part.extra_bytes;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_given_out_only_while_they_fit_and_one_always() {
        let mut parts = Parts::new(10);
        let names = |parts: &mut Parts<&'static str>| -> Vec<_> {
            std::iter::from_fn(|| parts.next()).map(|part| (part.of, part.number)).collect()
        };
        parts.share("usual", 2, 0);
        parts.share("larger", 3, 5);
        assert_eq!(names(&mut parts), [("usual", 0), ("usual", 1), ("larger", 0), ("larger", 1)]);
        let part = |of, number, extra_bytes| Part { of, number, extra_bytes };
        parts.ended(&part("usual", 0, 0));
        assert_eq!(names(&mut parts), []);
        parts.share("too large", 2, 11);
        parts.ended(&part("larger", 1, 5));
        assert_eq!(names(&mut parts), [("larger", 2)]);
        parts.ended(&part("larger", 0, 5));
        assert_eq!(names(&mut parts), []);
        parts.ended(&part("larger", 2, 5));
        assert_eq!(names(&mut parts), [("too large", 0)]);
        parts.ended(&part("too large", 0, 11));
        assert!(!parts.is_empty());
        assert_eq!(names(&mut parts), [("too large", 1)]);
        assert!(parts.is_empty());
    }
}
