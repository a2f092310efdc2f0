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

/// Whether any job writes where another reads or writes, or where it reads itself, unless it works in place. What is `read` besides belongs to
/// all of them.
pub(super) fn overlap(spans: &[Span], read: &[Place]) -> bool {
    let outputs = sorted(spans.iter().map(|span| span.output));
    if outputs.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        return true;
    }
    // What is read in place lies where it is written, which no other output touches.
    let apart = spans.iter().filter(|span| !span.is_in_place()).map(|span| span.input);
    let inputs = sorted(apart.chain(read.iter().copied()));
    let (mut reads, mut writes) = (inputs.iter().peekable(), outputs.iter().peekable());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn place(start: usize, len: usize) -> Place {
        Place { start: std::ptr::without_provenance_mut(start), len }
    }

    fn apart(input: usize, output: usize) -> Span {
        Span { input: place(input, 16), output: place(output, 16) }
    }

    #[test]
    fn what_one_job_writes_no_other_reads_or_writes_in_place_or_apart() {
        let here = |start| Span::in_place(place(start, 16));
        assert!(!overlap(&[here(64), here(80), apart(128, 160)], &[]));
        assert!(!overlap(&[apart(64, 128), apart(64, 144)], &[]), "an input of two");
        for spans in [[here(64), here(72)], [here(64), apart(64, 128)], [apart(64, 128), apart(128, 160)]] {
            let turned = [spans[1], spans[0]];
            assert!(overlap(&spans, &[]) && overlap(&turned, &[]), "{spans:?}");
        }
        assert!(overlap(&[apart(64, 72)], &[]), "its own input");
    }

    #[test]
    fn associated_data_is_no_output() {
        let spans = [Span::in_place(place(64, 16)), apart(128, 160)];
        assert!(!overlap(&spans, &[place(80, 16), place(128, 8), place(64, 0)]));
        assert!(overlap(&spans, &[place(72, 1)]) && overlap(&spans, &[place(150, 11)]));
    }
}
