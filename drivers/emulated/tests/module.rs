//! The module as the runtime sees it: right results, each job exactly once, time that is spent where it says.
//!
//! No test asserts how long anything takes: only what two runs, or two clocks over one run, have to do with each
//! other.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, where both mean a failed test")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use evener_core::{
    Algorithm, Direction, InlineDriver, Job, JobError, Nanos, Outcome, Padding, Profile, QueuedDriver,
    Refusal, Session,
};
use evener_driver_emulated::{Control, CostedCpu, Emulated, Fault, Preset, When};
use evener_driver_libcrypto::Libcrypto;
use evener_testing::{noise, requests};
use rustix::time::{ClockId, clock_gettime};

const INSTANT: &str = "emulated:d=0+0,h=0+0,depth=64";
const TIMEOUT: Nanos = Nanos::from_millis(2_000);

#[test]
fn results_are_those_of_libcrypto() {
    let mut libcrypto = Libcrypto::new().unwrap();
    let text = noise(7, 100 * 16);
    for session in requests::kinds(7) {
        let results = {
            let mut dst = vec![0xEE; text.len() + 16];
            let mut space = [&text[..], &[0xEE; 16]].concat();
            let jobs = vec![Job::apart(&text, &mut dst), Job::in_place(&mut space)];
            let mut module = module(INSTANT);
            let done = drain(&mut module, arm_all(jobs, &session, text.len()));
            done.iter().map(|job| result_of(job)).collect::<Vec<_>>()
        };
        let mut dst = vec![0xEE; text.len() + 16];
        let mut expected = arm_all(vec![Job::apart(&text, &mut dst)], &session, text.len());
        libcrypto.run(&mut expected);
        assert_eq!(results, [result_of(&expected[0]), result_of(&expected[0])], "{session:?}");
    }
}

#[test]
fn associated_data_and_tag_reach_the_module_and_come_back() {
    for &algorithm in Algorithm::ALL.iter().filter(|algorithm| algorithm.is_aead()) {
        let run = |on_module: bool, direction, src: &[u8], tag: &[u8]| {
            let session = session(algorithm, direction, Padding::None);
            let mut dst = vec![0; src.len()];
            let mut jobs = arm_all(vec![Job::apart(src, &mut dst)], &session, src.len());
            jobs[0].set_aad(b"header");
            jobs[0].set_tag(tag);
            match on_module {
                true => jobs = drain(&mut module(INSTANT), jobs),
                false => Libcrypto::new().unwrap().run(&mut jobs),
            }
            result_of(&jobs[0])
        };
        let text = noise(7, 100);
        let sealed = run(false, Direction::Encrypt, &text, &[]);
        assert_eq!(run(true, Direction::Encrypt, &text, &[]), sealed, "{algorithm}");
        let opened = run(true, Direction::Decrypt, &sealed.1, &sealed.2);
        assert_eq!(opened, (Outcome::Done { written: 100 }, text, sealed.2), "{algorithm}");
    }
}

#[test]
fn what_is_not_authentic_is_told_and_cleared_when_it_is_handed_back() {
    let session = session(Algorithm::Aes256Gcm, Direction::Decrypt, Padding::None);
    let mut space = noise(7, 64);
    let mut module = module(INSTANT);
    let done = drain(&mut module, arm_all(vec![Job::in_place(&mut space)], &session, 64));
    assert_eq!(done[0].outcome(), Outcome::Failed(JobError::NotAuthentic));
    drop(done);
    assert_eq!(space, [0; 64]);
}

#[test]
fn every_job_comes_back_exactly_once_whatever_goes_wrong() {
    let from_10_every_3 = When { from: 10, every: 3 };
    let faults = [Fault::None, Fault::Error { code: 5 }, Fault::WrongBytes, Fault::Hang, Fault::Gone];
    for fault in faults {
        for preset in ["emulated:d=0+0,h=0+0", "emulated:d=0+0,h=1000+0,units=3,depth=8", INSTANT] {
            let session = session(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None);
            let mut spaces = vec![[7; 32]; 50];
            let jobs = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
            let mut module = module(preset);
            module.control().set_fault(fault, from_10_every_3);
            let mut marks: Vec<u64> =
                drain(&mut module, arm_all(jobs, &session, 32)).iter().map(|job| job.mark).collect();
            marks.sort_unstable();
            assert_eq!(marks, (0..50).collect::<Vec<_>>(), "{fault:?} {preset}");
            assert_eq!(module.in_flight(), 0, "{fault:?} {preset}");
        }
    }
}

#[test]
fn a_fault_meets_the_jobs_it_is_meant_for_and_leaves_their_memory_as_submitted() {
    let session = session(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None);
    let mut spaces = vec![[7; 32]; 9];
    let jobs = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
    let mut module = module(INSTANT);
    module.control().set_fault(Fault::Error { code: 5 }, When { from: 2, every: 4 });
    let mut done = drain(&mut module, arm_all(jobs, &session, 32));
    done.sort_by_key(|job| job.mark);
    let failed = Outcome::Failed(JobError::Module { code: 5 });
    for job in &done {
        let met = [1, 5].contains(&job.mark);
        assert_eq!(job.outcome() == failed, met, "job {}", job.mark);
        assert_eq!(job.input() == [7; 32], met, "job {}", job.mark);
    }
    let counters = module.control().counters();
    assert_eq!((counters.submitted, counters.completed, counters.faults), (9, 9, 2));
}

#[test]
fn wrong_bytes_differ_in_one_bit_and_claim_success() {
    for session in requests::kinds(7) {
        let run = |fault| {
            let text = noise(7, 160);
            let mut dst = vec![0; 176];
            let mut module = module(INSTANT);
            module.control().set_fault(fault, When::ALWAYS);
            let done = drain(&mut module, arm_all(vec![Job::apart(&text, &mut dst)], &session, 160));
            result_of(&done[0])
        };
        let (wrong, right) = (run(Fault::WrongBytes), run(Fault::None));
        assert!(matches!(wrong.0, Outcome::Done { .. }), "{session:?}");
        if matches!(right.0, Outcome::Done { .. }) {
            let bits = |(_, output, tag): &JobResult| [&output[..], tag].concat();
            let differ =
                bits(&wrong).iter().zip(bits(&right)).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
            assert_eq!((differ, wrong.1.len()), (1, right.1.len()), "{session:?}");
        }
    }
}

#[test]
fn a_job_that_hangs_comes_back_only_when_it_is_given_up_and_the_module_works_again() {
    let session = session(Algorithm::Aes128Ctr, Direction::Encrypt, Padding::None);
    let mut spaces = [[1; 16]; 3];
    let mut module = module("emulated:d=0+0,h=0+0,units=1,depth=4");
    let control = module.control();
    control.set_fault(Fault::Hang, When { from: 2, every: 1_000 });
    let jobs: Vec<_> = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
    let mut jobs = arm_all(jobs, &session, 16);
    let third = jobs.pop().unwrap();
    jobs.into_iter().for_each(|job| module.submit(job).unwrap());
    let mut done = Vec::new();
    assert_eq!((module.poll(&mut done, TIMEOUT), module.poll(&mut done, Nanos::from_millis(5))), (1, 0));
    module.abandon(&mut done);
    assert_eq!(done[1].outcome(), Outcome::Failed(JobError::ModuleLost));
    assert_eq!(done[1].input(), [1; 16]);
    module.submit(third).unwrap();
    assert_eq!(module.poll(&mut done, TIMEOUT), 1);
}

#[test]
fn a_module_that_disappears_is_noticed_by_whoever_sleeps_on_it() {
    let session = session(Algorithm::Aes128Ctr, Direction::Encrypt, Padding::None);
    let mut space = [1; 16];
    let mut module = module("emulated:d=0+0,h=0+0");
    let control = module.control();
    control.set_fault(Fault::Hang, When::ALWAYS);
    module.submit(arm_all(vec![Job::in_place(&mut space)], &session, 16).remove(0)).unwrap();
    let mut done = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(5));
            control.set_fault(Fault::Gone, When::ALWAYS);
        });
        // Without the news this would sleep for an hour.
        assert_eq!(module.poll(&mut done, Nanos::from_millis(3_600_000)), 1);
    });
    assert_eq!(done[0].outcome(), Outcome::Failed(JobError::ModuleLost));
}

#[test]
fn a_module_that_is_gone_stays_so() {
    let session = session(Algorithm::Aes128Ctr, Direction::Encrypt, Padding::None);
    let mut space = [1; 16];
    let mut job = arm_all(vec![Job::in_place(&mut space)], &session, 16).remove(0);
    let mut module = module(INSTANT);
    let control = module.control();
    for fault in [Fault::Gone, Fault::None] {
        control.set_fault(fault, When::ALWAYS);
        let refusal;
        (job, refusal) = module.submit(job).unwrap_err();
        assert_eq!((refusal, job.input()), (Refusal::Lost, &[1; 16][..]));
    }
}

#[test]
fn a_full_module_gives_the_job_back_untouched() {
    let session = session(Algorithm::Aes128Ctr, Direction::Encrypt, Padding::None);
    let mut spaces = [[1; 16]; 4];
    let jobs = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
    let mut jobs = arm_all(jobs, &session, 16);
    let mut module = module("emulated:d=0+0,h=0+0,units=1,depth=3");
    assert_eq!(QueuedDriver::profile(&module).width, 3);
    let fourth = jobs.pop().unwrap();
    jobs.into_iter().for_each(|job| module.submit(job).unwrap());
    let (fourth, refusal) = module.submit(fourth).unwrap_err();
    assert_eq!((refusal, fourth.outcome(), fourth.input()), (Refusal::Full, Outcome::Pending, &[1; 16][..]));
}

#[test]
fn a_short_job_on_a_second_unit_overtakes_a_long_one() {
    let order = |preset| {
        let session = session(Algorithm::Aes128Ctr, Direction::Encrypt, Padding::None);
        let (mut long, mut short) = ([0; 10_000], [0; 10]);
        let mut module = module(preset);
        let mut done = Vec::new();
        for (mark, (space, bytes)) in [(&mut long[..], 10_000), (&mut short[..], 10)].into_iter().enumerate()
        {
            let mut job = Job::in_place(space);
            job.arm(&*session, &[0; 16], bytes);
            job.mark = mark as u64;
            module.submit(job).unwrap();
        }
        while module.in_flight() > 0 {
            module.poll(&mut done, TIMEOUT);
        }
        done.iter().map(|job| job.mark).collect::<Vec<_>>()
    };
    assert_eq!(order("emulated:d=0+0,h=0+2000000,units=2"), [1, 0]);
    assert_eq!(order("emulated:d=0+0,h=0+2000000,units=1,depth=2"), [0, 1]);
}

#[test]
fn units_work_side_by_side() {
    let session = session(Algorithm::Aes128Ctr, Direction::Encrypt, Padding::None);
    let h = Duration::from_millis(20);
    let ready_after_h = |preset| {
        let mut spaces = [[0; 16]; 4];
        let jobs = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
        let (mut module, mut done) = (module(preset), Vec::new());
        let began = Instant::now();
        arm_all(jobs, &session, 16).into_iter().for_each(|job| module.submit(job).unwrap());
        std::thread::sleep(h);
        module.poll(&mut done, Nanos::ZERO);
        (done.len(), began.elapsed())
    };
    assert_eq!(ready_after_h("emulated:d=0+0,h=20000000+0,units=4").0, 4);
    // Holds however late this thread wakes up.
    let (ready, passed) = ready_after_h("emulated:d=0+0,h=20000000+0,units=1,depth=4");
    assert!(h * u32::try_from(ready).unwrap() <= passed, "{ready} jobs in {passed:?}");
}

#[test]
fn waiting_does_not_burn_the_core() {
    let core = usual_core(|| time_of("emulated:d=0+0,h=10000000+0", 8, |_| {}).core);
    // Of 80 ms at least; so little that a loop is seen even where this thread gets a tenth of a core.
    assert!(core < Duration::from_millis(6), "{core:?}");
}

#[test]
fn no_job_is_ready_before_its_time_and_a_slower_pace_makes_it_later() {
    let ms = |took: Took| took.wall.as_millis();
    assert!(ms(time_of("emulated:d=0+0,h=5000000+0", 8, |_| {})) >= 8 * 5);
    assert!(ms(time_of("emulated:d=0+0,h=5000000+0", 8, |control| control.set_pace(800))) >= 8 * 40);
}

#[test]
fn d_is_core_time_and_everything_that_the_driver_does_is_in_it() {
    // Going to sleep and waking up for each job takes about as long as this d, so it shows where it is not in it.
    let core = usual_core(|| time_of("emulated:d=50000+0,h=20000+0", 200, |_| {}).core);
    let expected_time = Duration::from_micros(200 * 50);
    assert!(is_about(core, expected_time), "{core:?}");
}

#[test]
fn a_job_that_needs_more_core_time_than_d_is_counted() {
    let late = |preset| {
        let mut module = module(preset);
        let session = session(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None);
        let mut space = vec![0; 1 << 20];
        drain(&mut module, arm_all(vec![Job::in_place(&mut space)], &session, 1 << 20));
        module.control().counters().late
    };
    assert_eq!((late("emulated:d=1+0,h=0+0"), late("emulated:d=500000000+0,h=0+0")), (1, 0));
}

#[test]
fn a_costed_core_uses_up_c_and_computes_the_same() {
    let text = noise(7, 160);
    let session = session(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::Pkcs7);
    let run = |driver: &mut dyn InlineDriver| {
        let mut spaces = vec![vec![0; 176]; 10];
        let jobs = spaces.iter_mut().map(|space| Job::apart(&text, space)).collect();
        let mut burst = arm_all(jobs, &session, 160);
        driver.run(&mut burst);
        let core = usual_core(|| {
            let began = core_time();
            burst.iter_mut().for_each(|job| job.retry());
            driver.run(&mut burst);
            core_time() - began
        });
        (burst.iter().map(|job| result_of(job)).collect::<Vec<_>>(), core)
    };
    let preset: Preset = "emulated:c=1000000+0,d=0+0,h=0+0".parse().unwrap();
    let mut costed = CostedCpu::new(Box::new(Libcrypto::new().unwrap()), preset);
    assert!(costed.profile().emulated);
    let ((results, core), (expected, _)) = (run(&mut costed), run(&mut Libcrypto::new().unwrap()));
    assert_eq!(results, expected);
    let expected_time = Duration::from_millis(10);
    assert!(is_about(core, expected_time), "{core:?}");
}

#[test]
fn a_module_does_what_its_preset_has_figures_for() {
    let does = |preset, algorithm| module(preset).supports(algorithm, Direction::Encrypt);
    assert!(does("emulated:am3358", Algorithm::Aes256Gcm) && !does("emulated:am3358", Algorithm::Sha256));
    assert!(does("emulated:cell", Algorithm::Aes128Cbc) && !does("emulated:cell", Algorithm::Aes256Cbc));
    assert!(does("emulated:d=0+0,h=0+0", Algorithm::HmacMd5));
    assert!(!module(INSTANT).supports(Algorithm::HmacMd5, Direction::Decrypt));
}

/// Outcome, output and tag.
type JobResult = (Outcome, Vec<u8>, Vec<u8>);

fn result_of(job: &Job<'_>) -> JobResult {
    (job.outcome(), job.output().to_vec(), job.tag().to_vec())
}

fn module<'m>(preset: &str) -> Emulated<'m> {
    let module = Emulated::new(preset.parse().unwrap(), Box::new(Libcrypto::new().unwrap()));
    let Profile { name, emulated, .. } = QueuedDriver::profile(&module);
    assert_eq!((name.as_str(), *emulated), (preset, true));
    module
}

fn session(algorithm: Algorithm, direction: Direction, padding: Padding) -> Arc<Session> {
    requests::session(algorithm, direction, padding, 7)
}

fn arm_all<'m>(mut jobs: Vec<Box<Job<'m>>>, session: &'m Session, input_bytes: usize) -> Vec<Box<Job<'m>>> {
    for (mark, job) in (0..).zip(&mut jobs) {
        job.arm(session, &[9; 16][..session.algorithm().iv_bytes()], input_bytes);
        job.mark = mark;
    }
    jobs
}

/// Runs jobs as a worker does: submits while there is space, polls, gives up what hangs, keeps what is refused.
fn drain<'m>(module: &mut Emulated<'m>, jobs: Vec<Box<Job<'m>>>) -> Vec<Box<Job<'m>>> {
    let (mut waiting, mut done) = (jobs.into_iter(), Vec::new());
    let mut refused = None;
    loop {
        while let Some(job) = refused.take().or_else(|| waiting.next()) {
            match module.submit(job) {
                Ok(()) => {}
                Err((job, Refusal::Full)) => {
                    refused = Some(job);
                    break;
                }
                Err((job, _)) => done.push(job),
            }
        }
        if module.in_flight() == 0 {
            return done;
        }
        if module.poll(&mut done, Nanos::from_millis(20)) == 0 {
            module.abandon(&mut done);
        }
    }
}

/// The middle one of five: where a virtual machine is robbed of its core the thread's clock runs on, and the
/// module takes that off the next job.
fn usual_core(take: impl FnMut() -> Duration) -> Duration {
    let mut taken: Vec<Duration> = std::iter::repeat_with(take).take(5).collect();
    taken.sort_unstable();
    taken[2]
}

fn is_about(core: Duration, expected_time: Duration) -> bool {
    core > expected_time - expected_time / 10 && core < expected_time + expected_time / 4
}

/// What a run took.
struct Took {
    wall: Duration,
    core: Duration,
}

/// Runs `count` jobs of no weight, having set the switches.
fn time_of(preset: &str, count: usize, prepare: impl FnOnce(&Control)) -> Took {
    let session = session(Algorithm::Aes128Ctr, Direction::Encrypt, Padding::None);
    let mut spaces = vec![[0; 16]; 1 + count];
    let jobs = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
    let mut jobs = arm_all(jobs, &session, 16);
    let mut module = module(preset);
    // The first job of a session and of a process costs more than any other.
    drain(&mut module, jobs.drain(..1).collect());
    prepare(&module.control());
    let (wall, core) = (Instant::now(), core_time());
    let (mut done, mut jobs) = (Vec::new(), jobs.into_iter().peekable());
    while jobs.peek().is_some() || module.in_flight() > 0 {
        while module.in_flight() < QueuedDriver::profile(&module).width as usize {
            let Some(job) = jobs.next() else { break };
            module.submit(job).unwrap();
        }
        module.poll(&mut done, TIMEOUT);
    }
    assert_eq!(done.len(), count);
    Took { wall: wall.elapsed(), core: core_time() - core }
}

fn core_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}
