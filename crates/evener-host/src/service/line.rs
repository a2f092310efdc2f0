//! Clients that may have requests, in the order in which that was seen.
//!
//! `add -> asleep -> stand (a kick came) -> next (served) -> stand, at the end of the line, or rest -> ... -> remove`. A look costs the time of
//! those who stand here, not of all who are connected.

use std::collections::{HashMap, VecDeque};

/// Clients by their numbers, and the line of those who may have something.
#[derive(Debug)]
pub(crate) struct Line<C> {
    members: HashMap<u64, Member<C>>,
    /// Numbers of those who stand, oldest first; of some who have gone, too.
    order: VecDeque<u64>,
    standing: usize,
}

#[derive(Debug)]
struct Member<C> {
    client: C,
    place: Place,
}

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the line.
    Standing,
    /// In nobody's hands but the caller's.
    Served,
    /// It kicks when it has something.
    Asleep,
    /// It has something, and nothing of it is taken before something goes back.
    AtLimit,
}

impl<C: Clone> Line<C> {
    pub(crate) fn new() -> Self {
        Self { members: HashMap::new(), order: VecDeque::new(), standing: 0 }
    }

    /// Adds a client, asleep.
    pub(crate) fn add(&mut self, id: u64, client: C) {
        self.members.insert(id, Member { client, place: Place::Asleep });
    }

    /// Forgets a client.
    pub(crate) fn remove(&mut self, id: u64) {
        let gone = self.members.remove(&id);
        if gone.is_some_and(|member| member.place == Place::Standing) {
            self.standing -= 1;
        }
    }

    /// Puts a client at the end of the line; one that stands keeps its place, and one that has gone has none.
    pub(crate) fn stand(&mut self, id: u64) {
        let Some(member) = self.members.get_mut(&id) else { return };
        if member.place != Place::Standing {
            member.place = Place::Standing;
            self.order.push_back(id);
            self.standing += 1;
        }
    }

    /// As [`Line::stand`], for one at its limit, of which something went back.
    pub(crate) fn stand_again(&mut self, id: u64) {
        if self.members.get(&id).is_some_and(|member| member.place == Place::AtLimit) {
            self.stand(id);
        }
    }

    /// Who stands first. From now on it is served, until it stands or rests.
    pub(crate) fn next(&mut self) -> Option<C> {
        while let Some(id) = self.order.pop_front() {
            // Numbers come once, so this is the same client or none.
            if let Some(member) = self.members.get_mut(&id) {
                member.place = Place::Served;
                self.standing -= 1;
                return Some(member.client.clone());
            }
        }
        None
    }

    /// Lets a client that was served wait elsewhere.
    pub(crate) fn rest(&mut self, id: u64, place: Place) {
        if let Some(member) = self.members.get_mut(&id).filter(|member| member.place == Place::Served) {
            member.place = place;
        }
    }

    /// How many stand.
    pub(crate) const fn standing(&self) -> usize {
        self.standing
    }

    /// Whether anybody could come by a kick.
    pub(crate) fn has_others(&self) -> bool {
        self.standing < self.members.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(ids: &[u64]) -> Line<u64> {
        let mut line = Line::new();
        ids.iter().for_each(|&id| line.add(id, id));
        line
    }

    fn all(line: &mut Line<u64>) -> Vec<u64> {
        std::iter::from_fn(|| line.next()).collect()
    }

    #[test]
    fn who_was_seen_first_is_served_first_and_kicks_twice_for_one_place() {
        let mut line = line(&[1, 2, 3]);
        assert_eq!(line.next(), None, "all sleep");
        [2, 1, 2, 3, 1].into_iter().for_each(|id| line.stand(id));
        assert_eq!(line.standing(), 3);
        assert_eq!(all(&mut line), [2, 1, 3]);
    }

    #[test]
    fn who_has_more_stands_behind_all_who_came_meanwhile() {
        let mut line = line(&[1, 2, 3]);
        [1, 2].into_iter().for_each(|id| line.stand(id));
        assert_eq!(line.next(), Some(1));
        line.stand(3);
        line.stand(1);
        assert_eq!(all(&mut line), [2, 3, 1]);
    }

    #[test]
    fn who_is_at_its_limit_is_passed_over_until_something_goes_back() {
        let mut line = line(&[1, 2]);
        line.stand(1);
        assert_eq!(line.next(), Some(1));
        line.rest(1, Place::AtLimit);
        line.stand_again(2);
        assert_eq!((line.next(), line.standing()), (None, 0), "the other one sleeps");
        line.stand_again(1);
        line.stand_again(1);
        assert_eq!(all(&mut line), [1]);
    }

    #[test]
    fn who_has_gone_is_served_no_more_and_takes_no_place() {
        let mut line = line(&[1, 2, 3]);
        [1, 2, 3].into_iter().for_each(|id| line.stand(id));
        line.remove(2);
        line.remove(7);
        assert_eq!(line.standing(), 2);
        line.stand(2);
        assert_eq!(all(&mut line), [1, 3]);
        assert!(line.has_others());
        line.remove(1);
        line.remove(3);
        assert!(!line.has_others());
    }

    #[test]
    fn a_kick_while_a_client_is_served_is_not_lost() {
        let mut line = line(&[1]);
        line.stand(1);
        assert_eq!(line.next(), Some(1));
        line.stand(1);
        line.rest(1, Place::Asleep);
        assert_eq!(all(&mut line), [1]);
    }
}
