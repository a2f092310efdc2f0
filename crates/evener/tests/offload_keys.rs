//! Keys at a module that serves single requests: one whose session has ended is given up at once where the module is at rest, and
//! else by the one that comes back from it, for no caller is to wait behind a request that may never end.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use evener::offload::{Offload, Request};
use evener_core::driver::{SingleDriver, Text, Unanswered};
use evener_core::{
    Algorithm, Direction, HasEnded, InlineDriver as _, Job, Nanos, Padding, Session, SessionId, WithIv,
};
use evener_driver_emulated::{Emulated, Preset};
use evener_driver_libcrypto::Libcrypto;
use evener_testing::drivers::{Probe, Probed};

const TEXT: [u8; 4_096] = [7; 4_096];
const IV: [u8; 16] = [3; 16];

/// No test is to fail because the machine is busy.
const ALLOWED: Nanos = Nanos::from_millis(20_000);

fn session() -> Arc<Session> {
    Arc::new(Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[1; 16]).unwrap())
}

fn right() -> Vec<u8> {
    let (mut space, key) = (TEXT, session());
    let mut burst = [Job::in_place(&mut space)];
    burst[0].arm(&*key, &IV, TEXT.len());
    Libcrypto::new().unwrap().run(&mut burst);
    burst[0].output().to_vec()
}

/// The keys of a module.
#[derive(Clone, Default)]
struct Keys {
    open: Arc<Mutex<BTreeSet<SessionId>>>,
    /// Those that were given up, and on which threads.
    closed: Arc<Mutex<Vec<(SessionId, ThreadId)>>>,
    /// Whether a caller of the module is to stay there.
    stays: Arc<AtomicBool>,
    /// Whether one does.
    is_inside: Arc<AtomicBool>,
    /// Whether it takes its time over a key.
    dawdles: Arc<AtomicBool>,
}

impl Keys {
    fn evict(&self, has_ended: HasEnded<'_>) {
        let mut open = self.open.lock().unwrap();
        let over: Vec<SessionId> = open.iter().copied().filter(|&id| has_ended(id)).collect();
        open.retain(|id| !over.contains(id));
        self.closed.lock().unwrap().extend(over.iter().map(|&id| (id, thread::current().id())));
        while self.dawdles.load(SeqCst) {
            thread::yield_now();
        }
    }

    /// Whether the caller is in the module.
    fn stay(&self) {
        while self.stays.load(SeqCst) {
            self.is_inside.store(true, SeqCst);
            thread::yield_now();
        }
        self.is_inside.store(false, SeqCst);
    }

    fn closed(&self) -> Vec<(SessionId, ThreadId)> {
        self.closed.lock().unwrap().clone()
    }
}

/// Of a module that is waited for.
impl Probe<'static> for Keys {
    fn before_submit(&mut self, job: &Job<'static>) {
        self.open.lock().unwrap().insert(job.session().id());
    }

    fn before_poll(&mut self) {
        self.stay();
    }

    fn before_evict(&mut self, has_ended: HasEnded<'_>) {
        self.evict(has_ended);
    }
}

/// One that callers call themselves.
struct Called(Keys);

impl SingleDriver for Called {
    fn takes(&self, _: Algorithm, _: usize) -> bool {
        true
    }

    fn run_single(&self, keyed: WithIv<'_>, text: &mut dyn Text, _: Nanos) -> Result<(), Unanswered> {
        let WithIv { session, iv } = keyed;
        self.0.open.lock().unwrap().insert(session.id());
        let mut space = text.input().to_vec();
        let mut burst = [Job::in_place(&mut space)];
        burst[0].arm(session, iv, TEXT.len());
        Libcrypto::new().unwrap().run(&mut burst);
        self.0.stay();
        text.take(burst[0].output());
        Ok(())
    }

    fn core_time(&self) -> Nanos {
        Nanos::ZERO
    }

    fn evict(&self, has_ended: HasEnded<'_>) {
        self.0.evict(has_ended);
    }
}

/// A module of each of the two ways.
fn both_ways() -> [(Offload, Keys); 2] {
    [Keys::default(), Keys::default()].map(|keys| {
        let (waited, called) = (keys.clone(), keys.clone());
        let offload = Offload::new(
            "watched".to_owned(),
            |_, _| true,
            move || {
                let preset: Preset = "emulated:d=0+0,h=1000+0".parse().unwrap();
                let module = Emulated::new(preset, Box::new(Libcrypto::new().unwrap()));
                Box::new(Probed::new(Box::new(module), waited.clone()))
            },
        );
        (offload.single(move || Some(Box::new(Called(called.clone())))), keys)
    })
}

/// One request, by the way of that number.
fn request(offload: &Offload, driver_kind: usize, session: &Arc<Session>) -> Option<Vec<u8>> {
    let request = Request { session, iv: &IV, input: &TEXT, allowed: ALLOWED };
    if driver_kind == 0 {
        return Some(offload.put(0, &request, None)?.wait()?.output().to_vec());
    }
    let mut given = Given(None);
    offload.run_single(0, session, &IV, &mut given, ALLOWED).filter(|&is_done| is_done)?;
    given.0
}

/// What a text is given.
struct Given(Option<Vec<u8>>);

impl Text for Given {
    fn input(&self) -> &[u8] {
        &TEXT
    }

    fn take(&mut self, result: &[u8]) {
        assert!(self.0.replace(result.to_vec()).is_none());
    }
}

#[test]
fn a_key_is_given_up_at_once_where_the_module_is_at_rest() {
    for (driver_kind, (offload, keys)) in both_ways().into_iter().enumerate() {
        let sessions = [session(), session()];
        let id = sessions[0].id();
        offload.evict(0, id);
        sessions.iter().for_each(|session| assert!(request(&offload, driver_kind, session) == Some(right())));
        // A child of fork, whose parent's keys these are.
        offload.evict(1, id);
        assert!(keys.closed().is_empty());
        offload.evict(0, id);
        assert_eq!(keys.closed(), [(id, thread::current().id())]);
        assert_eq!(*keys.open.lock().unwrap(), BTreeSet::from([sessions[1].id()]));
        // One that comes again all the same.
        assert!(request(&offload, driver_kind, &sessions[0]) == Some(right()));
    }
}

#[test]
fn a_key_whose_session_ends_while_somebody_is_at_the_module_is_given_up_by_him() {
    for (driver_kind, (offload, keys)) in both_ways().into_iter().enumerate() {
        let [over, other] = [session(), session()];
        assert!(request(&offload, driver_kind, &over) == Some(right()));
        keys.stays.store(true, SeqCst);
        thread::scope(|scope| {
            let requested = scope.spawn(|| (request(&offload, driver_kind, &other), thread::current().id()));
            while !keys.is_inside.load(SeqCst) {
                thread::yield_now();
            }
            // Were it to wait for that caller, it would wait for ever.
            offload.evict(0, over.id());
            let early = keys.closed();
            keys.stays.store(false, SeqCst);
            let (answer, thread) = requested.join().unwrap();
            assert!(early.is_empty() && answer == Some(right()));
            assert_eq!(keys.closed(), [(over.id(), thread)]);
        });
    }
}

#[test]
fn a_request_that_comes_while_a_key_is_given_up_is_done_right_afterwards() {
    let [(offload, keys), _] = both_ways();
    let [over, other] = [session(), session()];
    assert!(request(&offload, 0, &over) == Some(right()));
    keys.dawdles.store(true, SeqCst);
    thread::scope(|scope| {
        scope.spawn(|| offload.evict(0, over.id()));
        while keys.closed().is_empty() {
            thread::yield_now();
        }
        let requested = scope.spawn(|| request(&offload, 0, &other));
        while offload.ahead(0) == 0 {
            thread::yield_now();
        }
        // It has the time to fall asleep.
        thread::sleep(Duration::from_millis(50));
        keys.dawdles.store(false, SeqCst);
        assert!(requested.join().unwrap() == Some(right()), "no thread woke it before its time was over");
    });
}

#[test]
fn no_request_is_lost_and_no_key_is_left_where_threads_ask_and_end_sessions_at_once() {
    for (driver_kind, (offload, keys)) in both_ways().into_iter().enumerate() {
        let right = right();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let session = session();
                        assert!(request(&offload, driver_kind, &session).as_ref() == Some(&right));
                        offload.evict(0, session.id());
                    }
                });
            }
        });
        assert_eq!(offload.why_out(0), None);
        assert_eq!((keys.open.lock().unwrap().len(), keys.closed().len()), (0, 800));
    }
}
