//! Clients that may have requests, in the order in which that was seen.
//!
//! `add -> asleep -> enqueue (a kick came) -> next (served) -> enqueue, at the end, or park -> ... -> remove`. A look costs the time of
//! the clients queued here, not of all that are connected.

use std::collections::{HashMap, VecDeque};

/// Clients by their numbers, and the queue of those that may have something.
#[derive(Debug)]
pub(crate) struct RunQueue<C> {
    members: HashMap<u64, Member<C>>,
    /// Numbers of those queued, oldest first; of some that have gone, too.
    order: VecDeque<u64>,
    queued: usize,
}

#[derive(Debug)]
struct Member<C> {
    client: C,
    state: ClientState,
    /// What is left of a share that ended with a burst.
    left: usize,
}

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientState {
    /// In the queue.
    Queued,
    /// In nobody's hands but the caller's.
    Served,
    /// It kicks when it has something.
    Asleep,
    /// It has something, and nothing of it is taken before something goes back.
    AtLimit,
}

impl<C: Clone> RunQueue<C> {
    pub(crate) fn new() -> Self {
        Self { members: HashMap::new(), order: VecDeque::new(), queued: 0 }
    }

    /// Adds a client, asleep.
    pub(crate) fn add(&mut self, id: u64, client: C) {
        self.members.insert(id, Member { client, state: ClientState::Asleep, left: 0 });
    }

    /// Forgets a client.
    pub(crate) fn remove(&mut self, id: u64) {
        let gone = self.members.remove(&id);
        if gone.is_some_and(|member| member.state == ClientState::Queued) {
            self.queued -= 1;
        }
    }

    /// Puts a client at the end of the queue; one that is queued keeps its place, and one that has gone has none.
    pub(crate) fn enqueue(&mut self, id: u64) {
        let Some(member) = self.members.get_mut(&id) else { return };
        if member.state != ClientState::Queued {
            member.state = ClientState::Queued;
            self.order.push_back(id);
            self.queued += 1;
        }
    }

    /// As [`RunQueue::enqueue`], for one at its limit, of which something went back.
    pub(crate) fn resume(&mut self, id: u64) {
        if self.members.get(&id).is_some_and(|member| member.state == ClientState::AtLimit) {
            self.enqueue(id);
        }
    }

    /// The client that is first. From now on it is served, until it is queued again or parked.
    pub(crate) fn next(&mut self) -> Option<C> {
        while let Some(id) = self.order.pop_front() {
            // Numbers come once, so this is the same client or none.
            if let Some(member) = self.members.get_mut(&id) {
                member.state = ClientState::Served;
                self.queued -= 1;
                return Some(member.client.clone());
            }
        }
        None
    }

    /// What a client may take in its turn: what is left of its last share, or else a new one.
    pub(crate) fn share(&mut self, id: u64, new: usize) -> usize {
        let left = self.members.get_mut(&id).map_or(0, |member| std::mem::take(&mut member.left));
        if left > 0 { left } else { new }
    }

    /// Ends the turn of a client that was served and queued or parked. Where the burst is full and it wants what is left of its share, it is first in the next.
    pub(crate) fn end_turn(&mut self, id: u64, left: usize, is_full: bool) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let goes_on = is_full && left > 0 && member.state == ClientState::Queued;
        if goes_on && self.order.back() == Some(&id) && !cfg!(mutant = "host_shares_cut") {
            member.left = left;
            self.order.pop_back();
            self.order.push_front(id);
        }
    }

    /// Lets a client that was served wait elsewhere.
    pub(crate) fn park(&mut self, id: u64, state: ClientState) {
        if let Some(member) = self.members.get_mut(&id).filter(|member| member.state == ClientState::Served) {
            member.state = state;
        }
    }

    /// How many are queued.
    pub(crate) const fn queued(&self) -> usize {
        self.queued
    }

    /// Whether a client could come by a kick.
    pub(crate) fn has_parked(&self) -> bool {
        self.queued < self.members.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(ids: &[u64]) -> RunQueue<u64> {
        let mut queue = RunQueue::new();
        ids.iter().for_each(|&id| queue.add(id, id));
        queue
    }

    fn all(queue: &mut RunQueue<u64>) -> Vec<u64> {
        std::iter::from_fn(|| queue.next()).collect()
    }

    #[test]
    fn who_was_seen_first_is_served_first_and_kicks_twice_for_one_place() {
        let mut queue = queue(&[1, 2, 3]);
        assert_eq!(queue.next(), None, "all sleep");
        [2, 1, 2, 3, 1].into_iter().for_each(|id| queue.enqueue(id));
        assert_eq!(queue.queued(), 3);
        assert_eq!(all(&mut queue), [2, 1, 3]);
    }

    #[test]
    fn who_has_more_stands_behind_all_who_came_meanwhile() {
        let mut queue = queue(&[1, 2, 3]);
        [1, 2].into_iter().for_each(|id| queue.enqueue(id));
        assert_eq!(queue.next(), Some(1));
        queue.enqueue(3);
        queue.enqueue(1);
        assert_eq!(all(&mut queue), [2, 3, 1]);
    }

    #[test]
    fn who_is_at_its_limit_is_passed_over_until_something_goes_back() {
        let mut queue = queue(&[1, 2]);
        queue.enqueue(1);
        assert_eq!(queue.next(), Some(1));
        queue.park(1, ClientState::AtLimit);
        queue.resume(2);
        assert_eq!((queue.next(), queue.queued()), (None, 0), "the other one sleeps");
        queue.resume(1);
        queue.resume(1);
        assert_eq!(all(&mut queue), [1]);
    }

    #[test]
    fn who_has_gone_is_served_no_more_and_takes_no_place() {
        let mut queue = queue(&[1, 2, 3]);
        [1, 2, 3].into_iter().for_each(|id| queue.enqueue(id));
        queue.remove(2);
        queue.remove(7);
        assert_eq!(queue.queued(), 2);
        queue.enqueue(2);
        assert_eq!(all(&mut queue), [1, 3]);
        assert!(queue.has_parked());
        queue.remove(1);
        queue.remove(3);
        assert!(!queue.has_parked());
    }

    #[test]
    fn a_kick_while_a_client_is_served_is_not_lost() {
        let mut queue = queue(&[1]);
        queue.enqueue(1);
        assert_eq!(queue.next(), Some(1));
        queue.enqueue(1);
        queue.park(1, ClientState::Asleep);
        assert_eq!(all(&mut queue), [1]);
    }
}
