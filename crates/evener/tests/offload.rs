//! Single requests that wait for a module: what it does is libcrypto's, what it fails or never answers goes back to the caller,
//! whose memory nobody has touched.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use evener::offload::{Bell, Offload, OutOfService, Request};
use evener_core::driver::{CalledDriver, Text, TimedDriver, Unanswered};
use evener_core::{Algorithm, Direction, InlineDriver as _, IsOver, Job, JobError, Nanos, Padding, Session};
use evener_driver_emulated::{Emulated, Fault, Preset, When};
use evener_driver_libcrypto::Libcrypto;

const TEXT: [u8; 4_096] = [7; 4_096];
const IV: [u8; 16] = [3; 16];

/// A module that meets `fault` from its `from`-th request on.
fn offload(fault: Fault, from: u64) -> Offload {
    let driver = move || -> Box<dyn evener_core::QueuedDriver<'static>> {
        let preset: Preset = "emulated:d=0+0,h=1000+0".parse().unwrap();
        let module = Emulated::new(preset, Box::new(Libcrypto::new().unwrap()));
        module.control().set_fault(fault, When { from, every: 1 });
        Box::new(module)
    };
    Offload::new("emulated".to_owned(), |_, _| true, driver)
}

fn session() -> Arc<Session> {
    Arc::new(Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[1; 16]).unwrap())
}

/// One request: what came out; nothing where the module failed it.
fn ask(offload: &Offload) -> Option<Vec<u8>> {
    let request = Request { session: &session(), iv: &IV, input: &TEXT, allowed: Nanos::from_millis(300) };
    let answer = offload.put(0, &request, None)?.wait()?;
    Some(answer.output().to_vec())
}

fn right() -> Vec<u8> {
    let (mut room, key) = (TEXT, session());
    let mut burst = [Job::in_place(&mut room)];
    burst[0].arm(Arc::clone(&key), &IV, TEXT.len());
    Libcrypto::new().unwrap().run(&mut burst);
    burst[0].output().to_vec()
}

#[test]
fn a_module_that_never_answers_keeps_no_caller_and_gets_no_more() {
    let (told, answers) = channel();
    thread::spawn(move || {
        let offload = offload(Fault::Hang, 3);
        let all = [ask(&offload), ask(&offload), ask(&offload), ask(&offload)];
        told.send((all, offload.why_out(0))).unwrap_or_default();
        // Not dropped: its driver still holds what it never gave back.
        std::mem::forget(offload);
    });
    let (all, why) = answers.recv_timeout(Duration::from_secs(60)).expect("the caller waits for ever");
    assert_eq!(all, [Some(right()), Some(right()), None, None]);
    assert_eq!(why, Some(OutOfService::Late));
}

/// Tells that it was rung.
struct Told(Sender<()>);

impl Bell for Told {
    fn ring(&self) {
        self.0.send(()).unwrap_or_default();
    }
}

#[test]
fn a_caller_that_was_put_aside_is_woken_though_the_module_never_answers() {
    let offload: &'static Offload = Box::leak(Box::new(offload(Fault::Hang, 1)));
    let (tell, told) = channel();
    let request = Request { session: &session(), iv: &IV, input: &TEXT, allowed: Nanos::from_millis(300) };
    let pending = offload.put(0, &request, Some(Box::new(Told(tell)))).unwrap();
    told.recv_timeout(Duration::from_secs(60)).expect("nobody wakes it");
    assert!(pending.is_over() && pending.wait().is_none());
    assert_eq!(offload.why_out(0), Some(OutOfService::Late));
}

#[test]
fn a_module_that_goes_away_is_out_of_service() {
    let offload = offload(Fault::Gone, 3);
    assert_eq!([ask(&offload), ask(&offload), ask(&offload)], [Some(right()), Some(right()), None]);
    assert_eq!(offload.why_out(0), Some(OutOfService::Lost));
    assert!(!offload.takes(0, Algorithm::Aes128Cbc, Direction::Encrypt, TEXT.len()));
}

/// A module that callers ask themselves, which computes by libcrypto and then ends as `ends` says of the request's number. It has no
/// driver for anybody else.
fn called(ends: impl Fn(u32) -> Result<(), JobError> + Send + Sync + Copy + 'static) -> Offload {
    let nobodys = || -> Box<dyn evener_core::QueuedDriver<'static>> { unreachable!("nobody puts a request") };
    let called = Offload::new("called".to_owned(), |_, _| true, nobodys);
    called.called(move || Box::new(Called { ends, count: AtomicU32::new(0) }))
}

struct Called<E> {
    ends: E,
    count: AtomicU32,
}

impl<E: Fn(u32) -> Result<(), JobError> + Send + Sync> CalledDriver for Called<E> {
    fn call(
        &self,
        session: &Session,
        iv: &[u8; 16],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), JobError> {
        let mut burst = [Job::apart(input, output)];
        burst[0].arm(session, iv, input.len());
        Libcrypto::new().unwrap().run(&mut burst);
        (self.ends)(self.count.fetch_add(1, Relaxed))
    }

    fn forget(&self, _: IsOver<'_>) {}
}

/// One request by each of the two ways; both come out alike, or neither does.
fn ask_twice(offload: &Offload) -> Option<Vec<u8>> {
    let request = Request { session: &session(), iv: &IV, input: &TEXT, allowed: Nanos::ZERO };
    let answer = offload.call(0, &request).map(|answer| answer.output().to_vec());
    let mut output = vec![0; TEXT.len()];
    let is_done = offload.call_into(0, &request, &mut output);
    assert_eq!(answer, is_done.then_some(output));
    answer
}

#[test]
fn a_module_that_callers_ask_themselves_is_asked_on_their_own_thread() {
    let told: &'static Mutex<Vec<thread::ThreadId>> = Box::leak(Box::new(Mutex::new(Vec::new())));
    let offload = called(move |_| {
        told.lock().unwrap().push(thread::current().id());
        Ok(())
    });
    assert_eq!(ask_twice(&offload), Some(right()));
    assert_eq!(*told.lock().unwrap(), [thread::current().id(); 2]);
    let request = Request { session: &session(), iv: &IV, input: &TEXT, allowed: Nanos::ZERO };
    assert!(self::offload(Fault::Hang, 1).call(0, &request).is_none(), "others have to be waited for");
}

#[test]
fn requests_of_callers_that_are_inside_are_ahead_of_others() {
    let inside: &'static Barrier = Box::leak(Box::new(Barrier::new(2)));
    let offload = called(|_| {
        inside.wait();
        inside.wait();
        Ok(())
    });
    thread::scope(|scope| {
        let asked = scope.spawn(|| ask_twice(&offload));
        let ahead = [(); 2].map(|()| {
            inside.wait();
            let ahead = offload.ahead(0);
            inside.wait();
            ahead
        });
        assert_eq!(asked.join().unwrap(), Some(right()));
        assert_eq!((ahead, offload.ahead(0)), ([1, 1], 0));
    });
}

#[test]
fn a_module_that_fails_whoever_asks_it_is_out_of_service_as_at_the_desk() {
    let out_by = |ends: fn(u32) -> Result<(), JobError>| {
        let offload = called(ends);
        let asked = (0..20).take_while(|_| offload.takes(0, Algorithm::Aes128Cbc, Direction::Encrypt, 64));
        let failed = asked.filter(|_| ask_twice(&offload).is_none()).count();
        (failed, offload.why_out(0))
    };
    assert_eq!(out_by(|_| Err(JobError::ModuleLost)), (1, Some(OutOfService::Lost)));
    assert_eq!(out_by(|_| Err(JobError::Module { code: 5 })), (4, Some(OutOfService::Errors)));
    assert_eq!(out_by(|_| Err(JobError::ModuleFull)), (20, None));
    // Seven in a row are none too many.
    assert_eq!(
        out_by(|number| if number % 16 < 6 { Err(JobError::Module { code: 5 }) } else { Ok(()) }).1,
        None
    );
}

/// A module that callers may leave, whose requests end as `ends` says of their number. Where they cannot, requests go to the
/// desk of one that answers at once.
fn timed(ends: impl Fn(u32) -> Result<(), Unanswered> + Send + Sync + Copy + 'static, can: bool) -> Offload {
    let make = move || -> Option<Box<dyn TimedDriver>> {
        can.then(|| Box::new(Timed { ends, count: AtomicU32::new(0) }) as Box<dyn TimedDriver>)
    };
    offload(Fault::None, 0).timed(make)
}

struct Timed<E> {
    ends: E,
    count: AtomicU32,
}

impl<E: Fn(u32) -> Result<(), Unanswered> + Send + Sync> TimedDriver for Timed<E> {
    fn ask_for(
        &self,
        _: &Session,
        _: &[u8; 16],
        text: &mut dyn Text,
        patience: Nanos,
    ) -> Result<(), Unanswered> {
        assert_eq!((text.input(), patience), (&TEXT[..], ALLOWED));
        (self.ends)(self.count.fetch_add(1, Relaxed)).map(|()| text.take(&right()))
    }

    fn takes(&self, _: Algorithm, bytes: usize) -> bool {
        bytes == TEXT.len()
    }

    fn core_time(&self) -> Nanos {
        USED
    }

    fn forget(&self, _: IsOver<'_>) {}
}

/// Core time of its threads.
const USED: Nanos = Nanos(4_711);

const ALLOWED: Nanos = Nanos::from_millis(300);

/// What a text is given.
#[derive(Default)]
struct Given(Vec<Vec<u8>>);

impl Text for Given {
    fn input(&self) -> &[u8] {
        &TEXT
    }

    fn take(&mut self, result: &[u8]) {
        self.0.push(result.to_vec());
    }
}

fn asked(offload: &Offload) -> (Option<bool>, Vec<Vec<u8>>) {
    let mut text = Given::default();
    let is_done = offload.ask_for(0, &session(), &IV, &mut text, ALLOWED);
    (is_done, text.0)
}

#[test]
fn a_result_whose_caller_may_leave_is_shown_once_or_not_at_all() {
    let fails = |number| if number % 2 == 0 { Ok(()) } else { Err(Unanswered::Failed(JobError::ModuleFull)) };
    let offload = timed(fails, true);
    for _ in 0..3 {
        assert_eq!(asked(&offload), (Some(true), vec![right()]));
        assert_eq!(asked(&offload), (Some(false), vec![]));
    }
    assert_eq!((offload.why_out(0), offload.ahead(0)), (None, 0));
    assert_eq!(offload.core_time(0), USED);
}

#[test]
fn what_callers_cannot_leave_goes_to_the_desk() {
    let offload = timed(|_| Ok(()), false);
    assert_eq!(asked(&offload), (None, vec![]));
    assert_eq!(ask(&offload), Some(right()));
    assert_eq!(
        asked(&self::offload(Fault::None, 0)),
        (None, vec![]),
        "nor where it is no way of the module's"
    );
}

#[test]
fn a_module_that_was_left_or_fails_one_request_after_the_other_is_out_of_service() {
    let out_by = |ends: fn(u32) -> Result<(), Unanswered>| {
        let offload = timed(ends, true);
        let failed = (0..20)
            .take_while(|_| offload.takes(0, Algorithm::Aes128Cbc, Direction::Encrypt, TEXT.len()))
            .filter(|_| asked(&offload).0 == Some(false))
            .count();
        assert_eq!(asked(&offload).0, Some(offload.why_out(0).is_none()), "nobody goes to one that is out");
        (failed, offload.why_out(0))
    };
    assert_eq!(out_by(|_| Err(Unanswered::Late)), (1, Some(OutOfService::Late)));
    assert_eq!(out_by(|_| Err(Unanswered::Failed(JobError::ModuleLost))), (1, Some(OutOfService::Lost)));
    assert_eq!(
        out_by(|_| Err(Unanswered::Failed(JobError::Module { code: 5 }))),
        (8, Some(OutOfService::Errors))
    );
    assert_eq!(out_by(|_| Ok(())), (0, None));
}
