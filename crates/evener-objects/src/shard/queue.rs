//! What threads take next: parts of large objects first, then objects of the listing, until both are at their end.

use std::mem;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::feed::{Feed, Next};
use super::parts::{Part, Parts};
use crate::store::Found;

/// Something to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Work<T> {
    /// An object that no thread has looked at. The one that takes it calls [`Queue::looked_at`].
    Object(Found),
    /// A part of a large one. The one that takes it calls [`Queue::part_ended`].
    Part(Part<T>),
}

/// The queue of a shard; `T` is a large object.
pub(super) struct Queue<'a, T> {
    state: Mutex<State<'a, T>>,
    changed: Condvar,
}

struct State<'a, T> {
    names: Names<'a>,
    parts: Parts<T>,
    /// Objects that threads look at, any of which may turn out to be large.
    looked_at: usize,
    /// A thread panicked, so that what it had is not done by anyone, or met what ends the run.
    is_broken: bool,
}

/// Names that no thread has taken.
enum Names<'a> {
    /// A thread may ask for the next one, but not before this.
    Feed(Feed<'a>, Option<Instant>),
    /// A thread asks; it has the feed, so that all others may take parts meanwhile.
    Asked,
    End,
}

impl<'a, T: Clone> Queue<'a, T> {
    /// Parts in work may have so many bytes beyond what each thread has anyway.
    pub(super) fn new(feed: Feed<'a>, extra_bytes_max: u64) -> Self {
        let names = Names::Feed(feed, None);
        let state = State { names, parts: Parts::new(extra_bytes_max), looked_at: 0, is_broken: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The next thing to do; waits where one may still come. None after [`Queue::break_down`].
    pub(super) fn next(&self) -> Option<Work<T>> {
        let mut state = self.state();
        loop {
            if state.is_broken {
                return None;
            }
            if let Some(part) = state.parts.next() {
                return Some(Work::Part(part));
            }
            match mem::replace(&mut state.names, Names::Asked) {
                Names::Feed(feed, Some(until)) if until > Instant::now() => {
                    state.names = Names::Feed(feed, Some(until));
                    let pause = until.saturating_duration_since(Instant::now());
                    state = self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
                }
                Names::Feed(feed, _) => {
                    drop(state);
                    if let Some(found) = self.next_object(feed) {
                        return Some(Work::Object(found));
                    }
                    state = self.state();
                }
                Names::End if state.looked_at == 0 && state.parts.is_empty() => {
                    state.names = Names::End;
                    return None;
                }
                names => {
                    state.names = names;
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Takes the next name. It counts as looked at before another thread may see the end of the listing.
    fn next_object(&self, mut feed: Feed<'a>) -> Option<Found> {
        let next = feed.next();
        let mut state = self.state();
        let found = match next {
            Next::Object(found) => {
                state.looked_at += 1;
                state.names = Names::Feed(feed, None);
                Some(found)
            }
            Next::Pause(pause) => {
                state.names = Names::Feed(feed, Some(Instant::now() + pause));
                None
            }
            Next::End => {
                state.names = Names::End;
                None
            }
        };
        drop(state);
        self.changed.notify_all();
        found
    }

    /// Has all threads work on a large object, by so many parts.
    pub(super) fn share(&self, large: T, part_count: usize, extra_bytes: u64) {
        self.state().parts.share(large, part_count, extra_bytes);
        self.changed.notify_all();
    }

    /// An object is done, or has been shared.
    pub(super) fn looked_at(&self) {
        self.state().looked_at -= 1;
        self.changed.notify_all();
    }

    /// A part is done, and its memory free.
    pub(super) fn part_ended(&self, part: &Part<T>) {
        self.state().parts.ended(part);
        self.changed.notify_all();
    }

    /// A thread panicked, or met what ends the run: the others end too, for what they may wait for never comes.
    pub(super) fn break_down(&self) {
        self.state().is_broken = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State<'a, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use evener_shards::Shard;

    use super::*;
    use crate::outcome::Retries;
    use crate::report::Report;
    use crate::store::breaking::Breaking;

    const RETRIES: Retries = Retries { timeout: Duration::from_secs(60) };
    const ALL: Shard = Shard { after: String::new(), objects: 0, bytes: 0 };

    fn taken(queue: &Queue<'_, &'static str>) -> Option<Part<&'static str>> {
        match queue.next() {
            Some(Work::Part(part)) => Some(part),
            None => None,
            Some(Work::Object(found)) => panic!("{found:?}"),
        }
    }

    #[test]
    fn parts_are_taken_while_a_broken_listing_pauses() {
        let (source, report) = (Breaking::new([None; 20]), Report::new(0, None, true));
        let queue = Queue::new(Feed::new(&source, &ALL, None, true, RETRIES, &report), 0);
        thread::scope(|scope| {
            let part = scope.spawn(|| taken(&queue).unwrap());
            // The next pause is of 800 ms at least.
            while source.left() > 15 {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(50));
            let start = Instant::now();
            queue.share("large", 1, 0);
            assert_eq!(part.join().unwrap().of, "large");
            assert!(
                start.elapsed() < Duration::from_millis(500),
                "it was not waited for the end of the pause"
            );
            assert_eq!(source.left(), 15, "it was not listed again first");
        });
    }

    #[test]
    fn who_finds_no_memory_for_a_part_waits_until_another_has_ended() {
        let (source, report) = (Breaking::new([None]), Report::new(0, None, true));
        let queue = Queue::new(Feed::new(&source, &ALL, None, true, RETRIES, &report), 10);
        queue.share("large", 2, 9);
        let first = taken(&queue).unwrap();
        thread::scope(|scope| {
            let second = scope.spawn(|| taken(&queue));
            thread::sleep(Duration::from_millis(100));
            assert!(!second.is_finished());
            queue.part_ended(&first);
            let second = second.join().unwrap().expect("a part was left");
            assert_eq!(second.number, 1);
            queue.part_ended(&second);
        });
        assert_eq!(queue.next(), None);
    }
}
