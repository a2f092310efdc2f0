//! What threads take next: parts of large objects first, then objects of the listing, until both are at their end.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::feed::Feed;
use super::large::Large;
use crate::store::Found;

/// Something to do.
pub(super) enum Work {
    /// An object that no thread has looked at. The one that takes it calls [`Queue::looked_at`].
    Object(Found),
    /// A part of a large one.
    Part(Arc<Large>, usize),
}

/// The queue of a shard.
pub(super) struct Queue<'a> {
    /// Held while the store is asked for names.
    feed: Mutex<Feed<'a>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    large: VecDeque<(Arc<Large>, usize)>,
    /// Objects that threads look at, any of which may turn out to be large.
    looked_at: usize,
    is_listed: bool,
}

impl<'a> Queue<'a> {
    pub(super) fn new(feed: Feed<'a>) -> Self {
        Self { feed: Mutex::new(feed), state: Mutex::default(), changed: Condvar::new() }
    }

    /// The next thing to do; waits where one may still come.
    pub(super) fn next(&self) -> Option<Work> {
        loop {
            let mut state = self.state();
            if let Some(part) = state.next_part() {
                return Some(part);
            }
            if state.is_listed && state.looked_at == 0 {
                return None;
            }
            if state.is_listed {
                drop(self.changed.wait(state).unwrap_or_else(PoisonError::into_inner));
                continue;
            }
            drop(state);
            if let Some(found) = self.next_object() {
                return Some(Work::Object(found));
            }
        }
    }

    /// Takes the next name. It counts as looked at before another thread may see the end of the listing.
    fn next_object(&self) -> Option<Found> {
        let mut feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
        let found = feed.next();
        let mut state = self.state();
        match &found {
            Some(_) => state.looked_at += 1,
            None => state.is_listed = true,
        }
        drop(state);
        self.changed.notify_all();
        found
    }

    /// Has all threads work on a large object.
    pub(super) fn share(&self, large: Arc<Large>) {
        self.state().large.push_back((large, 0));
        self.changed.notify_all();
    }

    /// An object is done, or has been shared.
    pub(super) fn looked_at(&self) {
        self.state().looked_at -= 1;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next_part(&mut self) -> Option<Work> {
        let (large, next) = self.large.front_mut()?;
        let part = Work::Part(Arc::clone(large), *next);
        *next += 1;
        if *next == large.part_count() {
            self.large.pop_front();
        }
        Some(part)
    }
}
