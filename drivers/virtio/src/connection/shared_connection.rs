//! A connection that several runs, and callers who wait for single requests, share by leader and followers.
//!
//! `lock -> (slot, session, copy in, add, flush) -> wait -> what came back -> (copy out)`. The first thread that waits leads: it sleeps at the
//! connection, collects what comes back for all, and wakes the others, who sleep at a condition; one of them leads next. The lock is held
//! for looks and copies, and while a session is opened; never while requests are waited for. Where anything goes wrong the connection is
//! over for all.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use evener_ring::{Mapping, Words as _};

use crate::connection::Connection;
use crate::connection::error::ConnectionError;

/// A connection, for all threads of one process.
#[derive(Debug)]
pub(crate) struct SharedConnection {
    state: Mutex<State>,
    /// Something came back, or the leader is back.
    changed: Condvar,
    /// A word that a fork wipes: 1 in the process that made the connection. None where the system has no such memory, and no connection then.
    mark: Option<Mapping>,
}

#[derive(Debug)]
pub(crate) struct State {
    /// None: lost.
    connection: Option<Connection>,
    is_led: bool,
    followers: u32,
}

pub(crate) type Guard<'s> = MutexGuard<'s, State>;

impl SharedConnection {
    pub(crate) fn new(connection: Option<Connection>) -> Self {
        let mark = Mapping::wiped_by_fork(1).ok();
        if let Some(mark) = &mark {
            mark.words()[0].store(1, Relaxed);
        }
        let connection = connection.filter(|_| mark.is_some());
        let state = State { connection, is_led: false, followers: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new(), mark }
    }

    /// Whether this process made it. In a child, nothing of it may be touched: the region is not there, and the lock may be held by a thread
    /// that is not, either.
    pub(crate) fn is_ours(&self) -> bool {
        // Relaxed: a word that changes by a fork only.
        self.mark.as_ref().is_none_or(|mark| mark.words()[0].load(Relaxed) == 1)
    }

    /// The state is whole between any two statements, so a panic elsewhere does not spoil it.
    pub(crate) fn lock(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until none of the requests is missing that the caller waits for, or the connection is lost, now or with the next look, or for
    /// `timeout`.
    pub(crate) fn wait<'s>(
        &'s self,
        mut state: Guard<'s>,
        timeout: Duration,
        missing: impl Fn(&Connection) -> usize,
    ) -> Guard<'s> {
        // Read when it is first needed: what is there already needs no clock.
        let mut until = None;
        loop {
            if !state.connection.as_ref().is_some_and(Connection::has_fault) {
                self.collect(&mut state);
            }
            let missing =
                state.connection.as_ref().filter(|connection| !connection.has_fault()).map_or(0, &missing);
            if missing == 0 {
                break;
            }
            let left = match until {
                Some(until) => Instant::saturating_duration_since(&until, Instant::now()),
                None => {
                    until = Some(Instant::now() + timeout);
                    timeout
                }
            };
            if left.is_zero() {
                break;
            }
            state = match state.is_led {
                true => self.follow(state, left),
                false => self.lead(state, missing, left),
            };
        }
        // Who led leaves: another leads.
        if state.followers > 0 && !cfg!(mutant = "lead_not_handed_over") {
            self.changed.notify_all();
        }
        state
    }

    /// Looks what came back, for whomever, and tells those who sleep behind who leads; that one the other side calls.
    pub(crate) fn collect(&self, state: &mut State) {
        let any = state.try_with(Connection::collect);
        if state.followers > 0 && any != Some(false) && !cfg!(mutant = "followers_not_told") {
            self.changed.notify_all();
        }
    }

    /// Sleeps at the connection, without the lock.
    fn lead<'s>(&'s self, mut state: Guard<'s>, missing: usize, left: Duration) -> Guard<'s> {
        // What others wait for counts, too.
        let count = if state.followers > 0 { 1 } else { missing };
        let count = u16::try_from(count).expect("at most as many as slots");
        if state.try_with(|connection| connection.spin_until(count, left)) != Some(false) {
            return state;
        }
        let Some(Some(waiter)) = state.try_with(|connection| connection.request_call(count)) else {
            return state;
        };
        state.is_led = true;
        drop(state);
        let slept = waiter.sleep(left);
        let mut state = self.lock();
        state.is_led = false;
        // The answer to another thread that opens a session looks like an end; with the lock, that has read it.
        let slept = slept.or_else(|end| match cfg!(mutant = "answer_taken_for_end") {
            true => Err(end),
            false => waiter.sleep(Duration::ZERO),
        });
        if let Err(end) = slept {
            state.try_with(|connection| connection.break_off(end));
        }
        state
    }

    /// Sleeps until who leads has something, who may wait for more than the next that comes.
    fn follow<'s>(&'s self, mut state: Guard<'s>, left: Duration) -> Guard<'s> {
        if state.try_with(Connection::expedite_call) != Some(true) {
            return state;
        }
        state.followers += 1;
        let (mut state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        state.followers -= 1;
        state
    }
}

impl State {
    pub(crate) const fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut()
    }

    pub(crate) const fn is_lost(&self) -> bool {
        self.connection.is_none()
    }

    /// Does something with the connection, which is over where that fails. None where it is lost, now or before.
    pub(crate) fn try_with<T>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<T, ConnectionError>,
    ) -> Option<T> {
        let done = work(self.connection.as_mut()?);
        if done.is_err() {
            self.end();
        }
        done.ok()
    }

    /// Ends the connection, for all: who sleeps at it is woken, and tells those behind.
    pub(crate) fn end(&mut self) {
        self.connection.take().into_iter().for_each(Connection::end);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread::{self, Scope, ScopedJoinHandle};

    use evener_core::{Algorithm, Direction, Padding, Session};
    use evener_ring::virtqueue::Events;

    use super::*;
    use crate::connection::RequestSlot;
    use crate::connection::test_peer::TestPeer;
    use crate::connection::wire_mapping::{Lengths, Shape};
    use crate::requests::single::start;

    const BYTES: usize = 64;
    /// Who is not told comes back with its end, and then says how long that was.
    const LONG: Duration = Duration::from_secs(10);
    const AT_ONCE: Duration = Duration::from_secs(5);

    struct Scene {
        shared: Arc<SharedConnection>,
        session: Session,
    }

    impl Scene {
        fn new(events: Events) -> (Self, TestPeer) {
            let (connection, other) = TestPeer::new(events);
            let session = Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[1; 16]);
            (
                Self { shared: Arc::new(SharedConnection::new(Some(connection))), session: session.unwrap() },
                other,
            )
        }

        fn start(&self, state: &mut State) -> RequestSlot {
            let shape = Shape { algorithm: self.session.algorithm(), direction: self.session.direction() };
            let lengths = Lengths { text: BYTES, aad: 0 };
            let begin = |connection: &mut Connection| {
                start(connection, &self.session, shape, lengths, &[0; 16], &[7; BYTES])
            };
            state.try_with(begin).unwrap().unwrap()
        }

        /// Waits for so many requests, and says how long that was and how many were there then.
        fn wait(&self, requests: usize, timeout: Duration) -> (Duration, usize) {
            let mut state = self.shared.lock();
            let numbers: Vec<usize> = (0..requests).map(|_| self.start(&mut state).number).collect();
            let missing = |connection: &Connection| requests - count_of(&numbers, connection);
            let began = Instant::now();
            let mut state = self.shared.wait(state, timeout, missing);
            let there = state.connection().map_or(0, |connection| count_of(&numbers, connection));
            (began.elapsed(), there)
        }

        /// As that on a thread of its own, which sleeps when this returns: at the connection, or behind who does.
        fn sleeper<'s>(
            &'s self,
            scope: &'s Scope<'s, '_>,
            requests: usize,
            timeout: Duration,
        ) -> ScopedJoinHandle<'s, (Duration, usize)> {
            let sleepers = |state: &State| state.followers + u32::from(state.is_led);
            let before = sleepers(&self.shared.lock());
            let sleeper = scope.spawn(move || self.wait(requests, timeout));
            let began = Instant::now();
            while sleepers(&self.shared.lock()) == before {
                assert!(began.elapsed() < AT_ONCE, "nobody sleeps");
                thread::yield_now();
            }
            sleeper
        }
    }

    fn count_of(numbers: &[usize], connection: &Connection) -> usize {
        numbers.iter().filter(|&&number| connection.is_back(number)).count()
    }

    fn at_once((took, there): (Duration, usize)) -> usize {
        assert!(took < AT_ONCE, "{took:?}");
        there
    }

    #[test]
    fn who_leads_tells_those_behind_of_theirs_and_waits_on() {
        for events in [Events::Index, Events::Flags] {
            let (scene, mut other) = Scene::new(events);
            thread::scope(|scope| {
                let leader = scene.sleeper(scope, 1, LONG);
                let followers = [(); 3].map(|()| scene.sleeper(scope, 1, LONG));
                let [first, rest @ ..] = [(); 4].map(|()| other.take());
                for (chain, follower) in rest.iter().zip(followers) {
                    other.give_back(chain);
                    assert_eq!(at_once(follower.join().unwrap()), 1);
                }
                assert!(!leader.is_finished(), "its own is not back");
                other.give_back(&first);
                assert_eq!(at_once(leader.join().unwrap()), 1);
            });
        }
    }

    #[test]
    fn one_request_behind_a_leader_who_waits_for_more_is_called_for() {
        let (scene, mut other) = Scene::new(Events::Index);
        thread::scope(|scope| {
            let [leader, follower] = [3, 1].map(|requests| scene.sleeper(scope, requests, LONG));
            let all = [(); 4].map(|()| other.take());
            other.give_back(&all[3]);
            assert_eq!(at_once(follower.join().unwrap()), 1);
            all[..3].iter().for_each(|chain| other.give_back(chain));
            assert_eq!(at_once(leader.join().unwrap()), 3);
        });
    }

    #[test]
    fn where_who_leads_leaves_another_leads() {
        let (scene, mut other) = Scene::new(Events::Index);
        thread::scope(|scope| {
            let leader = scene.sleeper(scope, 1, Duration::from_millis(200));
            let followers = [(); 2].map(|()| scene.sleeper(scope, 1, LONG));
            assert_eq!(leader.join().unwrap().1, 0, "its time is over");
            let [_, rest @ ..] = [(); 3].map(|()| other.take());
            rest.iter().for_each(|chain| other.give_back(chain));
            assert!(followers.map(|follower| at_once(follower.join().unwrap())) == [1, 1]);
        });
    }

    #[test]
    fn what_somebody_who_does_not_wait_finds_is_told_to_those_who_do() {
        let (scene, mut other) = Scene::new(Events::Index);
        thread::scope(|scope| {
            let [leader, follower] = [(); 2].map(|()| scene.sleeper(scope, 1, LONG));
            let (first, second) = (other.take(), other.take());
            // Who leads is called, and comes too late to find it.
            let mut state = scene.shared.lock();
            other.give_back(&second);
            scene.shared.collect(&mut state);
            drop(state);
            assert_eq!(at_once(follower.join().unwrap()), 1);
            other.give_back(&first);
            assert_eq!(at_once(leader.join().unwrap()), 1);
        });
    }

    #[test]
    fn an_end_is_told_to_all_who_sleep_at_once() {
        let (scene, _other) = Scene::new(Events::Index);
        thread::scope(|scope| {
            let sleepers = [(); 4].map(|()| scene.sleeper(scope, 1, LONG));
            scene.shared.lock().end();
            assert!(sleepers.map(|sleeper| at_once(sleeper.join().unwrap())) == [0; 4]);
        });
    }

    #[test]
    fn what_came_before_nonsense_counts_and_nobody_waits_for_what_would_come_behind() {
        let (scene, mut other) = Scene::new(Events::Index);
        thread::scope(|scope| {
            let leader = scene.sleeper(scope, 3, LONG);
            let all = [(); 3].map(|()| other.take());
            // The first one three times.
            (0..3).for_each(|_| other.give_back(&all[0]));
            assert_eq!(at_once(leader.join().unwrap()), 1);
        });
        scene.shared.collect(&mut scene.shared.lock());
        assert!(scene.shared.lock().is_lost());
    }

    #[test]
    fn a_wait_is_as_long_as_its_timeout() {
        let (scene, _other) = Scene::new(Events::Index);
        let timeout = Duration::from_millis(300);
        let (took, there) = scene.wait(1, timeout);
        assert!(there == 0 && took >= timeout && took < timeout * 2, "{took:?}");
        assert_eq!(at_once(scene.wait(1, Duration::ZERO)), 0);
    }
}
