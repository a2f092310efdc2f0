//! Space for data in the shared region: spans, given out from the front and taken back in any order.

/// A span of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) at: usize,
    /// Its length, a multiple of [`GRAIN`].
    bytes: usize,
}

/// Spans begin and end on multiples of so many bytes: two cache lines, so that two requests never share one.
const GRAIN: usize = 128;

/// The free spans, in order, no two of them adjacent. There are at most as many as requests are under way, and one more.
#[derive(Debug)]
pub(crate) struct Pool {
    free: Vec<Span>,
}

impl Pool {
    /// A pool of the bytes from `at` on, which is a multiple of the grain.
    pub(crate) fn new(at: usize, bytes: usize) -> Self {
        debug_assert!(at % GRAIN == 0, "the pool begins on a grain");
        Self { free: vec![Span { at, bytes: bytes / GRAIN * GRAIN }] }
    }

    /// The first free span of that length; none where there is none now.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<Span> {
        let bytes = bytes.max(1).checked_next_multiple_of(GRAIN)?;
        let place = self.free.iter().position(|span| span.bytes >= bytes)?;
        let found = &mut self.free[place];
        let taken = Span { at: found.at, bytes };
        found.at += bytes;
        found.bytes -= bytes;
        if found.bytes == 0 {
            self.free.remove(place);
        }
        Some(taken)
    }

    /// Takes a span back, which `take` gave.
    pub(crate) fn give_back(&mut self, span: Span) {
        let place = self.free.partition_point(|free| free.at < span.at);
        self.free.insert(place, span);
        self.join(place);
        if place > 0 {
            self.join(place - 1);
        }
    }

    /// Makes one of the span at `place` and the next, where they touch.
    fn join(&mut self, place: usize) {
        let Some(next) = self.free.get(place + 1).copied() else { return };
        if self.free[place].at + self.free[place].bytes == next.at {
            self.free[place].bytes += next.bytes;
            self.free.remove(place + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_never_overlap_and_all_space_comes_back() {
        let whole = GRAIN * 1_000;
        let mut pool = Pool::new(GRAIN, whole);
        let mut held: Vec<Span> = Vec::new();
        // A linear congruential generator (Knuth): any order will do, and each run takes the same.
        let mut state = 1_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let draw = usize::try_from(state >> 40).unwrap();
            if draw % 3 > 0 {
                held.extend(pool.take(draw % 20_000));
            } else if !held.is_empty() {
                pool.give_back(held.swap_remove(draw % held.len()));
            }
            let mut sorted = held.clone();
            sorted.sort_by_key(|span| span.at);
            assert!(sorted.windows(2).all(|two| two[0].at + two[0].bytes <= two[1].at));
            assert!(sorted.last().is_none_or(|last| last.at + last.bytes <= GRAIN + whole));
        }
        held.drain(..).for_each(|span| pool.give_back(span));
        assert_eq!(pool.take(whole), Some(Span { at: GRAIN, bytes: whole }));
        assert_eq!(pool.take(1), None);
    }
}
