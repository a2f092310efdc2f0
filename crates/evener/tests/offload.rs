//! Single requests that wait for a module: what it does is libcrypto's, what it fails or never answers goes back to the caller,
//! whose memory nobody has touched.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use evener::offload::{Bell, Offload, OutOfService, Request};
use evener_core::{Algorithm, Direction, InlineDriver as _, Job, Nanos, Padding, Session};
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
