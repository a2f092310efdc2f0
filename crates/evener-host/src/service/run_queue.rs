//! Clients that may have requests: users in turn, and of each user its clients in the order in which that was seen.
//!
//! `add -> asleep -> enqueue (a kick came) -> next (served) -> enqueue, at the end, or park -> ... -> remove`. A look costs the time of
//! the clients queued here, not of all that are connected. One user's thousand clients have one turn beside another user's one, which is
//! fair queueing in two levels (Demers, Keshav and Shenker, SIGCOMM 1989); clients of one user alone are served as they came.

use std::collections::{HashMap, VecDeque};

/// Clients by their numbers, and the queue of those that may have something.
#[derive(Debug)]
pub(crate) struct RunQueue<C> {
    members: HashMap<u64, Member<C>>,
    users: HashMap<u32, UserQueue>,
    /// Users of whom clients are queued, each once, in the order of their turns.
    turns: VecDeque<u32>,
    queued: usize,
    /// Requests of one user's clients that the module may hold.
    in_flight_max: usize,
    /// Of these, those that are done piece by piece.
    long_max: usize,
}

/// What is queued of one user.
#[derive(Debug, Default)]
struct UserQueue {
    /// Clients that there are.
    members: usize,
    /// Numbers of those queued, oldest first; of some that have gone, too.
    order: VecDeque<u64>,
    /// Requests that the module holds.
    in_flight: usize,
    /// Of these, those that are done piece by piece.
    long: usize,
}

#[derive(Debug)]
struct Member<C> {
    client: C,
    user: u32,
    state: ClientState,
    /// What is left of a share that ended with a burst.
    left: usize,
}

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientState {
    /// In the queue.
    Queued,
    /// In the caller's hands only.
    Served,
    /// It kicks when it has something.
    Asleep,
    /// It has something, and nothing of it is taken before something goes back.
    AtLimit,
}

impl<C: Clone> RunQueue<C> {
    pub(crate) fn new(in_flight_max: usize) -> Self {
        Self {
            members: HashMap::new(),
            users: HashMap::new(),
            turns: VecDeque::new(),
            queued: 0,
            in_flight_max,
            long_max: usize::MAX,
        }
    }

    /// Adds a client, asleep.
    pub(crate) fn add(&mut self, id: u64, user: u32, client: C) {
        let user = if cfg!(mutant = "host_users_as_one") { 0 } else { user };
        self.users.entry(user).or_default().members += 1;
        self.members.insert(id, Member { client, user, state: ClientState::Asleep, left: 0 });
    }

    /// Forgets a client.
    pub(crate) fn remove(&mut self, id: u64) {
        let Some(member) = self.members.remove(&id) else { return };
        if member.state == ClientState::Queued {
            self.queued -= 1;
        }
        if let Some(user) = self.users.get_mut(&member.user) {
            user.members -= 1;
            self.forget_unless_needed(member.user);
        }
    }

    /// Puts a client at the end of its user's queue; one that is queued keeps its place, and one that has gone has none.
    pub(crate) fn enqueue(&mut self, id: u64) {
        let Some(member) = self.members.get_mut(&id) else { return };
        if member.state == ClientState::Queued {
            return;
        }
        member.state = ClientState::Queued;
        self.queued += 1;
        let uid = member.user;
        let user = self.users.entry(uid).or_default();
        if user.order.is_empty() {
            self.turns.push_back(uid);
        }
        user.order.push_back(id);
    }

    /// As [`RunQueue::enqueue`], for one at its limit, of which something went back.
    pub(crate) fn resume(&mut self, id: u64) {
        if self.members.get(&id).is_some_and(|member| member.state == ClientState::AtLimit) {
            self.enqueue(id);
        }
    }

    /// The first client of the user whose turn it is. From now on it is served, until it is queued again or parked. A user of whom the module holds as much as it
    /// may is passed over, and so is one of whom as many long requests are done piece by piece: their pieces are its turns.
    pub(crate) fn next(&mut self) -> Option<C> {
        for _ in 0..self.turns.len() {
            let uid = self.turns.pop_front()?;
            let user = self.users.get_mut(&uid)?;
            let is_full =
                user.in_flight >= self.in_flight_max && !cfg!(mutant = "host_user_in_flight_unlimited");
            if is_full || user.long >= self.long_max {
                self.turns.push_back(uid);
                continue;
            }
            while let Some(id) = user.order.pop_front() {
                // Numbers come once, so this is the same client or none.
                let Some(member) = self.members.get_mut(&id) else { continue };
                member.state = ClientState::Served;
                self.queued -= 1;
                if !user.order.is_empty() {
                    self.turns.push_back(uid);
                }
                return Some(member.client.clone());
            }
            self.forget_unless_needed(uid);
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
        let Some(user) = self.users.get_mut(&member.user) else { return };
        if goes_on && user.order.back() == Some(&id) && !cfg!(mutant = "host_shares_cut") {
            member.left = left;
            user.order.pop_back();
            user.order.push_front(id);
            self.turns.retain(|uid| *uid != member.user);
            self.turns.push_front(member.user);
        }
    }

    /// Notes that the module holds so many requests of the user more.
    pub(crate) fn hold(&mut self, user: u32, requests: usize) {
        if requests > 0 {
            self.users.entry(user).or_default().in_flight += requests;
        }
    }

    /// Notes that one of them is back.
    pub(crate) fn release(&mut self, user: u32) {
        if let Some(known) = self.users.get_mut(&user) {
            known.in_flight = known.in_flight.saturating_sub(1);
            self.forget_unless_needed(user);
        }
    }

    /// From now on passes over users of whom so many requests are done piece by piece.
    pub(crate) fn limit_long(&mut self, most: usize) {
        self.long_max = most;
    }

    /// Notes that one of those that are held is done piece by piece.
    pub(crate) fn hold_long(&mut self, user: u32) {
        self.users.entry(user).or_default().long += 1;
    }

    /// Notes that it is done; it is held until it is [released](RunQueue::release).
    pub(crate) fn release_long(&mut self, user: u32) {
        if let Some(known) = self.users.get_mut(&user) {
            known.long = known.long.saturating_sub(1);
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

    /// How many users have clients here.
    pub(crate) fn users(&self) -> usize {
        self.users.len()
    }

    /// Whether a client could come by a kick.
    pub(crate) fn has_parked(&self) -> bool {
        self.queued < self.members.len()
    }

    /// Keeps nothing of users who have gone.
    fn forget_unless_needed(&mut self, uid: u32) {
        let is_over = |user: &UserQueue| user.members == 0 && user.in_flight == 0;
        if self.users.get(&uid).is_some_and(is_over) {
            self.users.remove(&uid);
            self.turns.retain(|queued| *queued != uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(ids: &[u64]) -> RunQueue<u64> {
        let mut queue = RunQueue::new(usize::MAX);
        ids.iter().for_each(|&id| queue.add(id, 7, id));
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

    #[test]
    fn a_user_whose_long_requests_are_done_piece_by_piece_has_no_other_turns_and_all_of_them_afterwards() {
        let mut queue = queue(&[1, 2]);
        queue.add(9, 8, 9);
        [1, 2, 9].into_iter().for_each(|id| queue.enqueue(id));
        queue.limit_long(1);
        assert_eq!(queue.next(), Some(1));
        queue.hold_long(7);
        assert_eq!(all(&mut queue), [9], "the other one waits for the end of the long one");
        queue.release_long(7);
        assert_eq!(all(&mut queue), [2]);
    }

    #[test]
    fn a_users_many_clients_have_one_turn_beside_another_users_one() {
        let mut queue = queue(&[1, 2, 3, 4]);
        queue.add(9, 8, 9);
        [1, 2, 3, 4, 9].into_iter().for_each(|id| queue.enqueue(id));
        let mut served = Vec::new();
        for _ in 0..8 {
            let id = queue.next().unwrap();
            served.push(id);
            queue.enqueue(id);
        }
        assert_eq!(served, [1, 9, 2, 9, 3, 9, 4, 9]);
    }

    #[test]
    fn a_user_of_whom_the_module_holds_enough_is_passed_over_until_one_is_back() {
        let mut queue = queue(&[1, 2]);
        queue.in_flight_max = 3;
        queue.add(9, 8, 9);
        [1, 2, 9].into_iter().for_each(|id| queue.enqueue(id));
        assert_eq!(queue.next(), Some(1));
        queue.hold(7, 3);
        assert_eq!((queue.next(), queue.next()), (Some(9), None));
        queue.release(7);
        assert_eq!(queue.next(), Some(2));
    }

    #[test]
    fn nothing_is_kept_of_users_who_have_gone() {
        let mut queue = queue(&[1]);
        queue.enqueue(1);
        queue.hold(7, 1);
        queue.remove(1);
        queue.release(7);
        assert_eq!((queue.users.len(), queue.turns.len(), queue.next()), (0, 0, None));
    }
}
