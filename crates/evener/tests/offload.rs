//! Single requests that wait for a module: what it does is libcrypto's, what it fails or never answers goes back to the caller,
//! whose memory is untouched.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use evener::offload::{Offload, OutOfService, Request, Waker};
use evener_core::driver::{SingleDriver, Text, Unanswered};
use evener_core::{
    Algorithm, Direction, HasEnded, InlineDriver as _, Job, JobError, Nanos, Padding, Session, WithIv,
};
use evener_driver_emulated::{Emulated, Fault, Preset, When};
use evener_driver_libcrypto::Libcrypto;
use evener_testing::drivers::Stopped;

const TEXT: [u8; 4_096] = [7; 4_096];
const IV: [u8; 16] = [3; 16];

/// A module that meets `fault` from its `from`-th request on.
fn offload(fault: Fault, from: u64) -> Offload {
    let driver = move || -> Box<dyn evener_core::QueuedDriver<'static>> {
        let preset: Preset = "emulated:d=0+0,h=1000+0".parse().unwrap();
        let module = Emulated::new(preset, libcrypto());
        module.control().set_fault(fault, When { from, every: 1 });
        Box::new(module)
    };
    Offload::new("emulated".to_owned(), |_, _| true, driver)
}

fn libcrypto() -> Box<Libcrypto> {
    Box::new(Libcrypto::new().unwrap())
}

fn session() -> Arc<Session> {
    Arc::new(Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[1; 16]).unwrap())
}

/// One request: what came out; nothing where the module failed it.
fn request(offload: &Offload) -> Option<Vec<u8>> {
    let request = Request { session: &session(), iv: &IV, input: &TEXT, allowed: Nanos::from_millis(300) };
    let answer = offload.put(0, &request, None)?.wait()?;
    Some(answer.output().to_vec())
}

fn right() -> Vec<u8> {
    let (mut space, key) = (TEXT, session());
    let mut burst = [Job::in_place(&mut space)];
    burst[0].arm(Arc::clone(&key), &IV, TEXT.len());
    Libcrypto::new().unwrap().run(&mut burst);
    burst[0].output().to_vec()
}

#[test]
fn a_module_that_never_answers_keeps_no_caller_and_gets_no_more() {
    let (sender, answers) = channel();
    thread::spawn(move || {
        let offload = offload(Fault::Hang, 3);
        let all = [request(&offload), request(&offload), request(&offload), request(&offload)];
        sender.send((all, offload.why_out(0))).unwrap_or_default();
        // Not dropped: its driver still holds what it never gave back.
        std::mem::forget(offload);
    });
    let (all, why) = answers.recv_timeout(Duration::from_secs(60)).expect("the caller waits for ever");
    assert_eq!(all, [Some(right()), Some(right()), None, None]);
    assert_eq!(why, Some(OutOfService::Late));
}

#[test]
fn a_process_that_was_stopped_while_it_waited_keeps_its_module() {
    for (late, is_kept) in [(0, true), (1, true), (2, false)] {
        let offload = Offload::new("stopped".to_owned(), |_, _| true, move || Box::new(Stopped::new(late)));
        let request =
            Request { session: &session(), iv: &IV, input: &TEXT, allowed: Nanos::from_millis(400) };
        let answer = offload.put(0, &request, None).unwrap().wait();
        assert_eq!(answer.map(|answer| answer.output().to_vec()), is_kept.then(right), "{late}");
        assert_eq!(offload.why_out(0), (!is_kept).then_some(OutOfService::Late));
    }
}

/// Tells that it was rung.
struct Notifier(Sender<()>);

impl Waker for Notifier {
    fn wake(&self) {
        self.0.send(()).unwrap_or_default();
    }
}

#[test]
fn a_caller_that_was_put_aside_is_woken_though_the_module_never_answers() {
    let offload: &'static Offload = Box::leak(Box::new(offload(Fault::Hang, 1)));
    let (wake_sent, wakes) = channel();
    let request = Request { session: &session(), iv: &IV, input: &TEXT, allowed: Nanos::from_millis(300) };
    let pending = offload.put(0, &request, Some(Box::new(Notifier(wake_sent)))).unwrap();
    wakes.recv_timeout(Duration::from_secs(60)).expect("no ring wakes it");
    assert!(pending.is_over() && pending.wait().is_none());
    assert_eq!(offload.why_out(0), Some(OutOfService::Late));
}

#[test]
fn a_module_that_goes_away_is_out_of_service() {
    let offload = offload(Fault::Gone, 3);
    assert_eq!(
        [request(&offload), request(&offload), request(&offload)],
        [Some(right()), Some(right()), None]
    );
    assert_eq!(offload.why_out(0), Some(OutOfService::Lost));
    assert!(!offload.takes(0, Algorithm::Aes128Cbc, Direction::Encrypt, TEXT.len()));
}

#[test]
fn what_a_module_does_is_queried_again_when_its_driver_or_that_of_callers_is_made() {
    for makes_single in [false, true] {
        let is_made = Arc::new(AtomicBool::new(false));
        let (by_does, by_driver, by_single) = (Arc::clone(&is_made), Arc::clone(&is_made), is_made);
        let does = move |algorithm, _| algorithm == Algorithm::Aes128Cbc || !by_does.load(Relaxed);
        let make_driver = move || -> Box<dyn evener_core::QueuedDriver<'static>> {
            by_driver.store(true, Relaxed);
            Box::new(Emulated::new("emulated:d=0+0,h=1000+0".parse().unwrap(), libcrypto()))
        };
        let make_single = move || -> Option<Box<dyn SingleDriver>> {
            by_single.store(true, Relaxed);
            Some(Box::new(Single { ends: |_| Ok(()), count: AtomicU32::new(0) }))
        };
        let offload = Offload::new("emulated".to_owned(), does, make_driver).single(make_single);
        let takes = |algorithm| offload.takes(0, algorithm, Direction::Encrypt, TEXT.len());
        let both = [Algorithm::Aes128Cbc, Algorithm::Aes256Cbc];
        assert_eq!(both.map(takes), [true, true]);
        match makes_single {
            true => assert_eq!(submit_single(&offload), (Some(true), vec![right()])),
            false => assert_eq!(request(&offload), Some(right())),
        }
        assert_eq!(both.map(takes), [true, false]);
    }
}

#[test]
fn requests_of_callers_that_are_inside_are_ahead_of_others() {
    let inside: &'static Barrier = Box::leak(Box::new(Barrier::new(2)));
    let offload = single(
        |_| {
            inside.wait();
            inside.wait();
            Ok(())
        },
        true,
    );
    thread::scope(|scope| {
        let callers = scope.spawn(|| [submit_single(&offload), submit_single(&offload)]);
        let ahead = [(); 2].map(|()| {
            inside.wait();
            let ahead = offload.ahead(0);
            inside.wait();
            ahead
        });
        assert_eq!(callers.join().unwrap(), [(); 2].map(|()| (Some(true), vec![right()])));
        assert_eq!((ahead, offload.ahead(0)), ([1, 1], 0));
    });
}

/// A module for single requests, which end as `ends` says of their number. Where they cannot, requests go to the
/// queue of one that answers at once.
fn single(ends: impl Fn(u32) -> Result<(), Unanswered> + Send + Sync + Copy + 'static, can: bool) -> Offload {
    let make = move || -> Option<Box<dyn SingleDriver>> {
        can.then(|| Box::new(Single { ends, count: AtomicU32::new(0) }) as Box<dyn SingleDriver>)
    };
    offload(Fault::None, 0).single(make)
}

struct Single<E> {
    ends: E,
    count: AtomicU32,
}

impl<E: Fn(u32) -> Result<(), Unanswered> + Send + Sync> SingleDriver for Single<E> {
    fn run_single(&self, _: WithIv<'_>, text: &mut dyn Text, timeout: Nanos) -> Result<(), Unanswered> {
        assert_eq!((text.input(), timeout), (&TEXT[..], ALLOWED));
        (self.ends)(self.count.fetch_add(1, Relaxed)).map(|()| text.take(&right()))
    }

    fn takes(&self, _: Algorithm, bytes: usize) -> bool {
        bytes == TEXT.len()
    }

    fn core_time(&self) -> Nanos {
        USED
    }

    fn evict(&self, _: HasEnded<'_>) {}
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

fn submit_single(offload: &Offload) -> (Option<bool>, Vec<Vec<u8>>) {
    let mut text = Given::default();
    let is_done = offload.run_single(0, &session(), &IV, &mut text, ALLOWED);
    (is_done, text.0)
}

#[test]
fn a_result_of_a_single_request_is_shown_once_or_not_at_all() {
    let fails = |number| if number % 2 == 0 { Ok(()) } else { Err(Unanswered::Failed(JobError::ModuleFull)) };
    let offload = single(fails, true);
    for _ in 0..3 {
        assert_eq!(submit_single(&offload), (Some(true), vec![right()]));
        assert_eq!(submit_single(&offload), (Some(false), vec![]));
    }
    assert_eq!((offload.why_out(0), offload.ahead(0)), (None, 0));
    assert_eq!(offload.core_time(0), USED);
}

#[test]
fn a_request_that_the_single_driver_does_not_take_goes_to_the_queue() {
    let offload = single(|_| Ok(()), false);
    assert_eq!(submit_single(&offload), (None, vec![]));
    assert_eq!(request(&offload), Some(right()));
    assert_eq!(
        submit_single(&self::offload(Fault::None, 0)),
        (None, vec![]),
        "nor where it is no way of the module's"
    );
}

fn fails_but_for(right: &[u32], number: u32, error: JobError) -> Result<(), Unanswered> {
    if right.contains(&number) { Ok(()) } else { Err(Unanswered::Failed(error)) }
}

#[test]
fn a_module_that_was_left_or_fails_one_request_after_the_other_is_out_of_service() {
    let out_by = |ends: fn(u32) -> Result<(), Unanswered>| {
        let offload = single(ends, true);
        let failed = (0..20)
            .take_while(|_| offload.takes(0, Algorithm::Aes128Cbc, Direction::Encrypt, TEXT.len()))
            .filter(|_| submit_single(&offload).0 == Some(false))
            .count();
        assert_eq!(
            submit_single(&offload).0,
            Some(offload.why_out(0).is_none()),
            "no request goes to one that is out"
        );
        (failed, offload.why_out(0))
    };
    assert_eq!(out_by(|_| Err(Unanswered::Late)), (1, Some(OutOfService::Late)));
    assert_eq!(out_by(|_| Err(Unanswered::Failed(JobError::ModuleLost))), (1, Some(OutOfService::Lost)));
    assert_eq!(
        out_by(|_| Err(Unanswered::Failed(JobError::Module { code: 5 }))),
        (8, Some(OutOfService::Errors))
    );
    // Seven in a row are none too many, and a module that is full has no fault.
    assert_eq!(
        out_by(|number| fails_but_for(&[7, 15, 20], number, JobError::Module { code: 5 })),
        (18, None)
    );
    assert_eq!(out_by(|number| fails_but_for(&[20], number, JobError::ModuleFull)), (20, None));
    assert_eq!(out_by(|_| Ok(())), (0, None));
}
