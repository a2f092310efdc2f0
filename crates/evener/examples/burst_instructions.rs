//! Bursts of AES-128-CBC encryption by lanes, for counting what a job costs beside its bytes: by the driver alone, by a core's drivers, by a
//! caller of a run, or through the queue of one with one worker; *adaptive*: through the queue, beside a module that never pays.
//!
//! `valgrind --tool=callgrind .../burst_instructions driver|core|caller|queue|adaptive BYTES BURST BURSTS`: what two runs differ by that have unlike numbers of
//! bursts, over the jobs of the difference, is what a job takes, arming in it. Valgrind has no VAES, so the lanes are AES-NI's.
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

use std::env;
use std::time::Duration;

use evener::{CoreDrivers, Setup, Submitted, SystemClock, run};
use evener_core::plan::Policy;
use evener_core::{Algorithm, Direction, InlineDriver as _, Job, Padding, Session};
use evener_testing::drivers::{Fault, Scripted, lanes, scripted};

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).expect("a number");
    let (bytes, burst, bursts): (usize, usize, usize) = (number(1), number(2), number(3));
    let session = Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[7; 16])
        .expect("the key fits");
    let mut space = vec![3_u8; bytes * burst];
    let mut jobs: Vec<Box<Job<'_>>> = space.chunks_exact_mut(bytes).map(Job::in_place).collect();
    let Some(mut driver) = lanes() else { return };
    match words[0].as_str() {
        "driver" => (0..bursts).for_each(|_| {
            arm(&mut jobs, &session, bytes);
            driver.run(&mut jobs);
        }),
        "core" => {
            let mut core_drivers = in_plain_s_place();
            (0..bursts).for_each(|_| {
                arm(&mut jobs, &session, bytes);
                core_drivers.run(&mut jobs, &SystemClock);
            });
        }
        "caller" => {
            _ = run(Setup { callers: 1, ..Setup::default() }, |runtime| {
                let mut caller = runtime.caller(in_plain_s_place());
                (0..bursts).for_each(|_| {
                    arm(&mut jobs, &session, bytes);
                    caller.crypt(&mut jobs);
                });
            });
        }
        way => {
            let (workers, backlog_jobs) = (vec![in_plain_s_place()], burst);
            let slow = || scripted(Scripted::new(Fault::Slow(0)).with_pause(Duration::from_millis(5)), 0);
            let (policy, modules) = match way {
                "adaptive" => (Policy::Adaptive, vec![slow()]),
                _ => (Policy::CpuOnly, Vec::new()),
            };
            let setup =
                Setup { workers, backlog_jobs, home_jobs: burst, policy, modules, ..Setup::default() };
            _ = run(setup, |runtime| {
                let (mut sender, mut receiver) = runtime.stream();
                (0..bursts).for_each(|_| {
                    arm(&mut jobs, &session, bytes);
                    runtime.hold();
                    assert_eq!(sender.submit_all(&mut jobs), Submitted::Yes);
                    runtime.release();
                    receiver.wait_for_all();
                    jobs.extend((0..burst).map_while(|_| receiver.next()));
                });
            });
        }
    }
}

fn arm<'m>(jobs: &mut [Box<Job<'m>>], session: &'m Session, bytes: usize) {
    jobs.iter_mut().for_each(|job| job.arm(session, &[9; 16], bytes));
}

/// Lanes in the place of the plain method, so that nothing is chosen or tried.
fn in_plain_s_place() -> CoreDrivers {
    CoreDrivers::new(Box::new(lanes().expect("they were there")), None)
}
