//! The method table: respected by whoever runs a burst, and measured so that it tells the truth.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use std::sync::Arc;

use evener::{CpuKit, calibrate};
use evener_core::method::{NEVER, SIZE_CLASS_BYTES};
use evener_core::{Algorithm, Direction, Job, Method, MethodTable, Padding, Session, Tally};

use support::drivers::{Fake, Runs, TestClock};

const PLAIN: u8 = b'p';
const MULTI: u8 = b'm';

fn session(algorithm: Algorithm) -> Arc<Session> {
    let key = support::bytes(1, algorithm.key_bytes().unwrap());
    Arc::new(Session::new(algorithm, Direction::Encrypt, Padding::None, &key).unwrap())
}

/// From 4 jobs of at most 512 bytes on, AES-128-CBC goes to multi-buffer; nothing else does.
fn table() -> Arc<MethodTable> {
    let mut table = MethodTable::plain_only();
    for class in 0..3 {
        table.set_width_min(Algorithm::Aes128Cbc, Direction::Encrypt, class, 4);
    }
    Arc::new(table)
}

/// A kit of two fakes with what each was given.
fn kit(multi: Fake) -> (CpuKit, Runs, Runs) {
    let plain = Fake::new(PLAIN, 1);
    let runs = (plain.runs(), multi.runs());
    (CpuKit::new(Box::new(plain), Some(Box::new(multi)), table()), runs.0, runs.1)
}

/// Runs jobs of these algorithms and sizes as one burst; returns who had each, in the caller's order.
fn who_ran(kit: &mut CpuKit, jobs: &[(Algorithm, usize)]) -> Vec<u8> {
    let mut rooms = vec![[0u8; 2_048]; jobs.len()];
    let sessions = [session(CBC), session(CTR)];
    let mut armed: Vec<_> = rooms.iter_mut().map(|room| Job::in_place(room)).collect();
    for (number, (job, &(algorithm, bytes))) in armed.iter_mut().zip(jobs).enumerate() {
        let session = sessions.iter().find(|session| session.algorithm() == algorithm).unwrap();
        job.arm(Arc::clone(session), &[0; 16], bytes);
        job.mark = number as u64;
    }
    kit.run(&mut armed, &TestClock::default());
    armed.sort_by_key(|job| job.mark);
    armed.iter().map(|job| job.output_span()[0]).collect()
}

const CBC: Algorithm = Algorithm::Aes128Cbc;
const CTR: Algorithm = Algorithm::Aes256Ctr;

#[test]
fn a_burst_goes_where_the_table_says_by_width_and_size() {
    let (mut kit, plain, multi) = kit(Fake::new(MULTI, 16));
    assert_eq!(who_ran(&mut kit, &[(CBC, 64); 3]), [PLAIN; 3]);
    assert_eq!(who_ran(&mut kit, &[(CBC, 64); 4]), [MULTI; 4]);
    assert_eq!(who_ran(&mut kit, &[(CBC, 1_024); 8]), [PLAIN; 8]);
    assert_eq!(who_ran(&mut kit, &[(CTR, 64); 8]), [PLAIN; 8]);
    assert_eq!(*plain.lock().unwrap(), [(3, 64), (8, 1_024), (8, 64)]);
    assert_eq!(*multi.lock().unwrap(), [(4, 64)]);
}

#[test]
fn each_algorithm_of_a_mixed_burst_is_one_run_of_its_own_method() {
    let (mut kit, plain, multi) = kit(Fake::new(MULTI, 16));
    let mixed = [(CBC, 64), (CTR, 64), (CBC, 64), (CTR, 64), (CBC, 64), (CBC, 64)];
    assert_eq!(who_ran(&mut kit, &mixed), [MULTI, PLAIN, MULTI, PLAIN, MULTI, MULTI]);
    assert_eq!((&**plain.lock().unwrap(), &**multi.lock().unwrap()), (&[(2, 64)][..], &[(4, 64)][..]));
}

#[test]
fn what_multi_buffer_does_not_take_stays_plain() {
    let (mut kit, _, multi) = kit(Fake::new(MULTI, 16).with_job_bytes_max(256));
    assert_eq!(who_ran(&mut kit, &[(CBC, 256); 4]), [MULTI; 4]);
    assert_eq!(who_ran(&mut kit, &[(CBC, 16), (CBC, 16), (CBC, 16), (CBC, 272)]), [PLAIN; 4]);
    assert_eq!(multi.lock().unwrap().len(), 1);
    let (mut kit, ..) = self::kit(Fake::new(MULTI, 16).only(|algorithm| algorithm == CTR));
    assert_eq!(who_ran(&mut kit, &[(CBC, 64); 4]), [PLAIN; 4]);
}

#[test]
fn each_method_has_its_own_tally() {
    let (mut kit, ..) = kit(Fake::new(MULTI, 16));
    who_ran(&mut kit, &[(CBC, 64); 4]);
    who_ran(&mut kit, &[(CBC, 64); 2]);
    let tallies = kit.take_tallies();
    let of = |method: Method| (tallies[method as usize].jobs, tallies[method as usize].bytes);
    assert_eq!((of(Method::Plain), of(Method::MultiBuffer)), ((2, 128), (4, 256)));
    assert_eq!(kit.take_tallies(), [Tally::default(); 2]);
}

/// The table that is measured with these costs of plain and multi-buffer, in nanoseconds by jobs and bytes.
fn measured(plain: fn(u64, u64) -> u64, multi: fn(u64, u64) -> u64) -> Vec<u16> {
    let clock = TestClock::default();
    let mut plain = Fake::new(PLAIN, 1).with_cost(&clock, plain);
    let mut multi = Fake::new(MULTI, 16).with_cost(&clock, multi).with_job_bytes_max(10_000);
    let mut table = MethodTable::guess();
    calibrate::measure(&mut plain, &mut multi, &[(CBC, Direction::Encrypt)], &clock, &mut table);
    (0..SIZE_CLASS_BYTES.len()).map(|class| table.width_min(CBC, Direction::Encrypt, class)).collect()
}

#[test]
fn calibration_never_chooses_multi_buffer_where_it_is_slower() {
    assert_eq!(measured(|_, bytes| bytes, |_, bytes| 2 * bytes), [NEVER; 6]);
    // Too little to be sure: 4 % faster.
    assert_eq!(measured(|_, bytes| 100 * bytes, |_, bytes| 96 * bytes), [NEVER; 6]);
}

#[test]
fn calibration_finds_the_width_from_which_on_multi_buffer_wins() {
    // Sixteen lanes at once take as long as five jobs one after the other: 8 is the first width tried that wins.
    // The last class stands for jobs of 16 KiB, which this multi-buffer does not take.
    let plain = |_, bytes| bytes;
    let multi = |jobs: u64, bytes: u64| 5 * bytes / jobs * jobs.div_ceil(16);
    assert_eq!(measured(plain, multi), [8, 8, 8, 8, 8, NEVER]);
}

#[test]
fn calibration_sees_a_fixed_cost_in_small_jobs_only() {
    let multi = |_, bytes: u64| 1_000 + bytes / 4;
    // 16 x 16 bytes: 256 against 1064; 16 x 64: 1024 against 1256; 256 bytes: from 8 jobs on 2048 against 1512.
    assert_eq!(measured(|_, bytes| bytes, multi), [NEVER, NEVER, 8, 2, 1, NEVER]);
}

#[test]
fn calibration_leaves_alone_what_was_not_asked_for() {
    let clock = TestClock::default();
    let (mut plain, mut multi) = (Fake::new(PLAIN, 1), Fake::new(MULTI, 16));
    let mut table = MethodTable::guess();
    calibrate::measure(&mut plain, &mut multi, &[], &clock, &mut table);
    assert_eq!(table, MethodTable::guess());
}
