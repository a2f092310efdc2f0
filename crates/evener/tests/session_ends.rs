//! A session that ends while its run goes on leaves nothing in any driver, also where its thread sleeps.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::thread;

use evener::{CoreDrivers, ModuleSetup, Resident, Runtime, Setup, Submitted, run};
use evener_core::plan::Policy;
use evener_core::{Algorithm, Job};
use evener_driver_emulated::{Emulated, Preset};
use evener_testing::cases::{Case, cbc_cases, check_all, jobs, spaces};
use evener_testing::drivers::OpenKeys;
use evener_testing::waiting::without_standstill;

fn core_drivers(number: usize, open_keys: &OpenKeys) -> CoreDrivers {
    CoreDrivers::new(Box::new(open_keys.by(number)), None)
}

/// Two CPU workers and a module.
fn setup<'m>(policy: Policy, open_keys: &OpenKeys) -> Setup<'m> {
    let preset: Preset = "emulated:d=0+0,h=1000+0,units=2".parse().unwrap();
    let module = Emulated::new(preset, Box::new(open_keys.by(0)));
    let modules = vec![ModuleSetup::new(Box::new(module), core_drivers(1, open_keys))];
    Setup {
        policy,
        modules,
        workers: vec![core_drivers(2, open_keys), core_drivers(3, open_keys)],
        callers: 1,
        ..Setup::default()
    }
}

/// Sends all through a stream; true if every result is libcrypto's.
fn pass<'m>(runtime: &Runtime<'_, 'm>, mut armed: Vec<Box<Job<'m>>>) -> Vec<Box<Job<'m>>> {
    let (mut sender, mut receiver) = runtime.stream();
    thread::scope(|scope| {
        scope.spawn(move || assert_eq!(sender.submit_all(&mut armed), Submitted::Yes));
        std::iter::from_fn(|| receiver.next()).collect()
    })
}

/// Waits until nothing is kept; a wait for ever is found by `without_standstill`.
fn wait_for_none(open_keys: &OpenKeys) {
    while open_keys.count() > 0 {
        thread::yield_now();
    }
}

#[test]
fn workers_forget_at_once_under_every_policy_and_go_on() {
    for policy in Policy::ALL {
        without_standstill(move || {
            let open_keys = OpenKeys::default();
            let (cases, again) = (cbc_cases(40), cbc_cases(40));
            let (mut space, mut other_space) = (spaces(&cases), spaces(&again));
            let (first, second) = (jobs(&cases, &mut space), jobs(&again, &mut other_space));
            let session = first[0].session().id();
            run(setup(policy, &open_keys), |runtime| {
                check_all(&cases, &pass(runtime, first));
                assert!(open_keys.count() > 0);
                runtime.end_session(session);
                wait_for_none(&open_keys);
                // A session that comes again is prepared again.
                check_all(&again, &pass(runtime, second));
                assert!(open_keys.count() > 0);
                runtime.end_session(session);
                wait_for_none(&open_keys);
            });
        });
    }
}

#[test]
fn a_caller_that_outlives_its_run_hears_of_sessions_that_end_later() {
    without_standstill(|| {
        for workers in [0, 1] {
            let (open_keys, cases): (_, &[Case]) = (OpenKeys::default(), cbc_cases(5).leak());
            let workers = (0..workers).map(|number| core_drivers(number, &open_keys)).collect();
            let mut resident = Resident::start(Setup { callers: 1, workers, ..Setup::default() }).unwrap();
            let mut caller = resident.caller(core_drivers(9, &open_keys)).unwrap();
            let mut burst = jobs(cases, spaces(cases).leak());
            caller.crypt(&mut burst);
            assert!(resident.stop().is_ok() && open_keys.count() == 1);
            resident.end_session(burst[0].session().id());
            caller.poll_ended();
            assert_eq!(open_keys.count(), 0);
        }
    });
}

#[test]
fn a_caller_forgets_with_its_next_burst_or_at_once_where_it_says_so_itself() {
    without_standstill(|| {
        let open_keys = OpenKeys::default();
        let (cases, others) = (cbc_cases(5), vec![Case::encrypt(Algorithm::Sha256, 1, 100)]);
        let (mut space, mut other_space) = (spaces(&cases), spaces(&others));
        let (mut first, mut second) = (jobs(&cases, &mut space), jobs(&others, &mut other_space));
        let (session, hash) = (first[0].session().id(), second[0].session().id());
        run(Setup { callers: 1, ..Setup::default() }, |runtime| {
            let mut caller = runtime.caller(core_drivers(9, &open_keys));
            caller.crypt(&mut first);
            runtime.end_session(session);
            caller.crypt(&mut second);
            assert!(open_keys.count() == 1 && open_keys.has(hash));
            caller.end_session(hash);
            assert_eq!(open_keys.count(), 0);
        });
    });
}
