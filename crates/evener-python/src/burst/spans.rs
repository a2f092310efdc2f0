//! Memory of a burst's jobs: no job writes where another one reads or writes.

use crate::ffi::Place;

/// One job's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) input: Place,
    pub(super) output: Place,
}

impl Span {
    /// Input and output are the same memory.
    pub(super) const fn in_place(place: Place) -> Self {
        Self { input: place, output: place }
    }

    fn is_in_place(&self) -> bool {
        self.input.start == self.output.start
    }
}

/// The first byte, and the first behind the last.
fn ends(place: Place) -> (usize, usize) {
    let start = place.start.addr();
    (start, start + place.len)
}

/// Whether any job writes where another reads or writes, or where it reads itself, unless it works in place.
pub(super) fn overlap(spans: &[Span]) -> bool {
    let outputs = sorted(spans.iter().map(|span| span.output));
    if outputs.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        return true;
    }
    if spans.iter().all(Span::is_in_place) {
        return false;
    }
    let inputs = sorted(spans.iter().map(|span| span.input));
    let apart = spans.iter().filter(|span| !span.is_in_place());
    let (mut reads, mut writes) =
        (inputs.iter().peekable(), sorted(apart.map(|span| span.output)).into_iter().peekable());
    while let (Some(read), Some(write)) = (reads.peek(), writes.peek()) {
        if read.1 <= write.0 {
            reads.next();
        } else if write.1 <= read.0 {
            writes.next();
        } else {
            return true;
        }
    }
    false
}

/// What is not empty, by its place: most often it is in order already.
fn sorted(places: impl Iterator<Item = Place>) -> Vec<(usize, usize)> {
    let mut ends: Vec<_> = places.filter(|place| place.len > 0).map(ends).collect();
    if !ends.is_sorted() {
        ends.sort_unstable();
    }
    ends
}
