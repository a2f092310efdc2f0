//! A host's module as the runtime sees it: right results, each job exactly once, and what happens when the host errs, hangs, is
//! full, or goes away.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, where both mean a failed test")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod support;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use evener_core::{
    Algorithm, Direction, InlineDriver as _, Job, JobError, Nanos, Outcome, Padding, QueuedDriver, Refusal,
    Session, known,
};
use evener_driver_libcrypto::Libcrypto;
use evener_driver_virtio::{ConnectionError, DEPTH, LazyModule, Module, OpenError};
use evener_fd::SystemError;

use evener_testing::waiting::soon;
use support::{Event, Order, Peer, STATUSES, nowhere};

const TIMEOUT: Nanos = Nanos::from_millis(5_000);
/// When jobs that are not back will not come.
const LATE: Duration = Duration::from_secs(60);

fn session(algorithm: Algorithm, direction: Direction, padding: Padding, key: u8) -> Arc<Session> {
    let key: Vec<u8> = (key..).take(algorithm.key_bytes().unwrap_or(20)).collect();
    Arc::new(Session::new(algorithm, direction, padding, &key).unwrap())
}

fn cbc(key: u8) -> Arc<Session> {
    session(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, key)
}

/// Every algorithm with every direction and padding that it has.
fn every_session() -> Vec<Arc<Session>> {
    let mut all = Vec::new();
    for &algorithm in Algorithm::ALL {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            for padding in [Padding::None, Padding::Pkcs7] {
                let is_one = (algorithm.is_cipher() || direction == Direction::Encrypt)
                    && (padding == Padding::None || algorithm.needs_whole_blocks());
                all.extend(is_one.then(|| session(algorithm, direction, padding, 7)));
            }
        }
    }
    all
}

fn text(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect()
}

fn arm(job: &mut Job<'_>, session: &Arc<Session>, bytes: usize) {
    job.arm(Arc::clone(session), &[3; 16][..session.algorithm().iv_bytes()], bytes);
}

/// Outcome, output and tag.
type JobResult = (Outcome, Vec<u8>, Vec<u8>);

fn seen(job: &Job<'_>) -> JobResult {
    (job.outcome(), job.output().to_vec(), job.tag().to_vec())
}

/// What libcrypto makes of it.
fn expected(session: &Arc<Session>, src: &[u8], tag: &[u8], aad: &[u8]) -> JobResult {
    let mut dst = vec![0; src.len() + 16];
    let mut burst = [Job::apart(src, &mut dst)];
    arm(&mut burst[0], session, src.len());
    burst[0].set_tag(tag);
    burst[0].set_aad(aad);
    Libcrypto::new().unwrap().run(&mut burst);
    seen(&burst[0])
}

/// Runs all jobs; they come back in the order of their marks.
fn drain<'m>(driver: &mut dyn QueuedDriver<'m>, mut jobs: Vec<Box<Job<'m>>>) -> Vec<Box<Job<'m>>> {
    jobs.iter_mut().zip(0..).for_each(|(job, mark)| job.mark = mark);
    jobs.reverse();
    let since = Instant::now();
    assert!(known::ask(driver, &mut jobs, || since.elapsed() > LATE), "all come back");
    jobs.sort_by_key(|job| job.mark);
    assert!(jobs.iter().zip(0..).all(|(job, mark)| job.mark == mark), "each once");
    jobs
}

/// A host, and its module.
fn scene(offer: &str) -> (Peer, Module) {
    let peer = Peer::start();
    let module = open(&peer, offer);
    (peer, module)
}

fn open(peer: &Peer, offer: &str) -> Module {
    Module::open(&peer.name(offer)).unwrap()
}

#[test]
fn results_are_those_of_libcrypto_for_every_algorithm_padding_and_length() {
    for has_flags_only in [false, true] {
        let peer = Peer::start();
        if has_flags_only {
            peer.orders.give(Order::FlagsOnly);
        }
        let module = open(&peer, ",offer=all");
        let mut driver = module.driver();
        for session in every_session() {
            for bytes in [0, 1, 16, 31, 4096, 100_000] {
                compare(&mut *driver, &session, bytes);
            }
        }
    }
}

/// One job apart and one in place, against libcrypto. Blocks are whole where they must be.
fn compare(driver: &mut dyn QueuedDriver<'static>, session: &Arc<Session>, bytes: usize) {
    let pads = session.padding() == Padding::Pkcs7 && session.direction() == Direction::Encrypt;
    let is_whole = session.algorithm().needs_whole_blocks() && !pads;
    let bytes = if is_whole { bytes / 16 * 16 } else { bytes };
    let src: &'static [u8] = text(bytes).leak();
    let mut jobs = vec![
        Job::apart(src, vec![0xEE; bytes + 16].leak()),
        Job::in_place([src, &[0xEE; 16]].concat().leak()),
    ];
    for job in &mut jobs {
        arm(job, session, bytes);
        job.set_tag(&[9; 16]);
    }
    let (outcome, output, tag) = expected(session, src, &[9; 16], b"");
    for job in drain(driver, jobs) {
        assert_eq!((job.outcome(), job.output()), (outcome, &output[..]), "{session:?} {bytes}");
        if matches!(outcome, Outcome::Done { .. }) {
            assert_eq!(job.tag(), tag, "{session:?} {bytes}");
        }
    }
}

#[test]
fn associated_data_and_tags_reach_the_host_and_come_back() {
    let (_peer, module) = scene(",offer=all");
    let mut driver = module.driver();
    for &algorithm in Algorithm::ALL.iter().filter(|algorithm| algorithm.is_aead()) {
        let seal = session(algorithm, Direction::Encrypt, Padding::None, 1);
        let opens = session(algorithm, Direction::Decrypt, Padding::None, 1);
        let plain = text(1_000);
        let sealed = expected(&seal, &plain, &[], b"header");
        let mut run = |session: &Arc<Session>, src: &[u8], tag: &[u8], aad: &'static [u8]| {
            // Memory that lives as long as the driver's jobs may.
            let mut job = Job::apart(src.to_vec().leak(), vec![0; src.len()].leak());
            arm(&mut job, session, 1_000);
            job.set_tag(tag);
            job.set_aad(aad);
            seen(&drain(&mut *driver, vec![job])[0])
        };
        assert_eq!(run(&seal, &plain, &[], b"header"), sealed, "{algorithm}");
        let opened = run(&opens, &sealed.1, &sealed.2, b"header");
        assert_eq!((opened.0, &opened.1), (Outcome::Done { written: 1_000 }, &plain), "{algorithm}");
        let refused = run(&opens, &sealed.1, &sealed.2, b"Header");
        assert_eq!(refused.0, Outcome::Failed(JobError::NotAuthentic), "{algorithm}");
    }
}

#[test]
fn by_default_a_host_gets_only_what_costs_more_than_two_copies() {
    let (peer, module) = scene("");
    let does = |algorithm, direction| module.supports(algorithm, direction);
    assert!(does(Algorithm::Aes256Cbc, Direction::Encrypt) && does(Algorithm::Sha256, Direction::Encrypt));
    assert!(
        !does(Algorithm::Aes256Cbc, Direction::Decrypt) && !does(Algorithm::Aes128Ctr, Direction::Encrypt)
    );
    let more = open(&peer, ",offer=AES-128-CTR");
    assert!(more.supports(Algorithm::Aes128Ctr, Direction::Decrypt));
}

#[test]
fn a_connection_waits_for_answers_twice_and_sends_meanwhile_what_needs_none() {
    let peer = Peer::with(Order::LateAnswers);
    // Who waited for each answer would get none, and give up.
    let module = open(&peer, "");
    assert!(module.supports(Algorithm::Aes128Cbc, Direction::Encrypt));
}

#[test]
fn a_host_that_says_nothing_of_itself_is_asked_for_cbc_only() {
    let peer = Peer::with(Order::Mute);
    let module = open(&peer, ",offer=all");
    for &algorithm in Algorithm::ALL {
        let is_cbc = algorithm.family() == evener_core::Family::Cbc;
        assert_eq!(module.supports(algorithm, Direction::Encrypt), is_cbc, "{algorithm}");
    }
}

#[test]
fn a_module_that_computes_wrong_is_refused_with_what_it_got_wrong() {
    let peer = Peer::with(Order::WrongBytes);
    let error = Module::open(&peer.name("")).unwrap_err();
    let OpenError::WrongAnswer { wrong, .. } = &error else { panic!("{error}") };
    assert_eq!((wrong.algorithm, wrong.direction), (Algorithm::Aes128Cbc, Direction::Encrypt));
    assert!(error.to_string().contains("SP 800-38A"), "{error}");
}

#[test]
fn where_nobody_listens_the_reason_is_the_system_s() {
    let name = format!("hosted:{}", nowhere().display()).parse().unwrap();
    let error = Module::open(&name).unwrap_err();
    let OpenError::Unreachable { error, .. } = error else { panic!("{error}") };
    assert_eq!(
        error,
        ConnectionError::System(SystemError::of("its socket")(io::Error::from_raw_os_error(2)))
    );
}

#[test]
fn a_host_is_no_device_to_reserve_and_a_device_that_is_not_there_is_refused_as_it_is_opened() {
    assert!(LazyModule::reserve(&"hosted:/run/evener.sock".parse().unwrap()).is_none());
    let nowhere = "virtio:ffff:ff:1f.7".parse().unwrap();
    let refused = LazyModule::reserve(&nowhere).map(|later| later.unwrap_err());
    assert_eq!(refused, Some(Module::open(&nowhere).unwrap_err()));
}

/// Memory of jobs, which lives as long as any driver: texts of 4 KiB.
fn spaces(count: usize) -> &'static mut [Vec<u8>] {
    vec![text(4096); count].leak()
}

/// Jobs of 4 KiB of one session over memory of their own.
fn jobs<'m>(spaces: &'m mut [Vec<u8>], session: &Arc<Session>) -> Vec<Box<Job<'m>>> {
    let mut jobs: Vec<_> = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
    jobs.iter_mut().for_each(|job| arm(job, session, 4096));
    jobs
}

#[test]
fn a_full_queue_is_in_flight_and_one_poll_shows_all_of_it_without_a_kick_for_each() {
    let (peer, module) = scene("");
    let mut driver = module.driver();
    let count = usize::try_from(DEPTH).unwrap();
    let (session, spaces) = (cbc(1), spaces(count + 1));
    let mut waiting = jobs(spaces, &session);
    let last = waiting.pop().unwrap();
    let before = peer.orders.seen.count(Event::Kick);
    let asked = peer.orders.seen.count(Event::Request);
    waiting.into_iter().for_each(|job| driver.submit(job).unwrap());
    let (last, refusal) = driver.submit(last).unwrap_err();
    assert_eq!((refusal, driver.in_flight()), (Refusal::Full, count));
    assert_eq!(peer.orders.seen.count(Event::Request), asked, "nothing is shown before it is polled for");
    let mut done = Vec::new();
    assert!(driver.poll(&mut done, TIMEOUT) > 0);
    assert!(
        soon(|| peer.orders.seen.count(Event::Request) == asked + u64::from(DEPTH)),
        "all are shown at the first poll"
    );
    let kicks = peer.orders.seen.count(Event::Kick) - before;
    // One of this poll, and what the host had not counted yet of earlier ones.
    assert!(kicks < u64::from(DEPTH) / 2, "{kicks} kicks");
    while done.len() < count {
        assert!(driver.poll(&mut done, TIMEOUT) > 0);
    }
    driver.submit(last).unwrap();
    driver.poll(&mut done, TIMEOUT);
    let right = expected(&session, &text(4096), &[], b"");
    assert!(done.len() == count + 1 && done.iter().all(|job| seen(job) == right));
}

#[test]
fn a_host_that_is_awake_is_not_kicked() {
    let (peer, module) = scene("");
    let mut driver = module.driver();
    let (session, spaces) = (cbc(1), spaces(12));
    let mut waiting = jobs(spaces, &session);
    let last = waiting.pop().unwrap();
    let (kicks, asked) = (peer.orders.seen.count(Event::Kick), peer.orders.seen.count(Event::Request));
    peer.orders.give(Order::Busy);
    let mut done = Vec::new();
    for job in waiting {
        driver.submit(job).unwrap();
        assert_eq!(driver.poll(&mut done, Nanos::ZERO), 0, "it is busy with the first");
        assert!(soon(|| peer.orders.seen.count(Event::Request) == asked + 1));
    }
    peer.orders.take_back(Order::Busy);
    // The last one makes the host count what came before: an event adds up.
    driver.submit(last).unwrap();
    while driver.in_flight() > 0 {
        driver.poll(&mut done, TIMEOUT);
    }
    let kicks = peer.orders.seen.count(Event::Kick) - kicks;
    assert!(kicks <= 2, "{kicks} kicks: one for the first request, one where it slept before the last");
    assert!(done.len() == 12 && done.iter().all(|job| matches!(job.outcome(), Outcome::Done { .. })));
}

#[test]
fn a_host_that_says_done_and_does_nothing_passes_off_no_text_as_its_ciphertext() {
    let (peer, module) = scene("");
    let mut driver = module.driver();
    peer.orders.give(Order::Idle);
    for job in drain(&mut *driver, jobs(spaces(4), &cbc(1))) {
        assert_eq!(job.outcome(), Outcome::Failed(JobError::Module { code: 0 }));
        assert_eq!(job.input(), text(4096), "it can be redone");
    }
    drop((driver, module));
    assert!(soon(|| peer.orders.seen.count(Event::ConnectionEnded) >= 1));
    assert!(!has_text(&peer));
}

#[test]
fn a_host_that_goes_away_in_mid_run_is_noticed_at_once_and_loses_no_job() {
    let (peer, module) = scene("");
    let mut driver = module.driver();
    let (session, spaces) = (cbc(1), spaces(20));
    peer.orders.ends_after.store(peer.orders.seen.count(Event::Request).try_into().unwrap(), SeqCst);
    let (mut done, original) = (Vec::new(), text(4096));
    jobs(spaces, &session).into_iter().for_each(|job| driver.submit(job).unwrap());
    // A timeout of an hour: only the end of the connection can end this.
    while driver.in_flight() > 0 {
        assert!(driver.poll(&mut done, Nanos::from_millis(3_600_000)) > 0);
    }
    assert_eq!(done.len(), 20);
    let right = expected(&session, &original, &[], b"");
    let lost = done.iter().filter(|job| job.outcome() == Outcome::Failed(JobError::ModuleLost));
    assert!(
        lost.clone().count() > 0 && lost.clone().all(|job| job.input() == original),
        "redone from the same bytes"
    );
    assert!(
        done.iter().all(|job| seen(job) == right || job.outcome() == Outcome::Failed(JobError::ModuleLost))
    );
    let (_, refusal) = driver.submit(done.pop().unwrap()).unwrap_err();
    assert_eq!(refusal, Refusal::Lost);
}

#[test]
fn a_host_that_hangs_is_left_with_the_jobs_as_they_were_and_no_data_behind() {
    let (peer, module) = scene("");
    let mut driver = module.driver();
    peer.orders.give(Order::Hang);
    let (session, spaces) = (cbc(1), spaces(5));
    let mut done = Vec::new();
    jobs(spaces, &session).into_iter().for_each(|job| driver.submit(job).unwrap());
    assert_eq!(driver.poll(&mut done, Nanos::from_millis(20)), 0, "the deadline is the caller's");
    let asked = peer.orders.seen.count(Event::Request);
    assert!(soon(|| peer.orders.seen.count(Event::Request) >= asked));
    driver.abandon(&mut done);
    assert_eq!((done.len(), driver.in_flight()), (5, 0));
    let is_lost =
        |job: &Job<'_>| job.outcome() == Outcome::Failed(JobError::ModuleLost) && job.input() == text(4096);
    assert!(done.iter().all(|job| is_lost(job)));
    assert!(soon(|| peer.orders.seen.count(Event::ConnectionEnded) == 1), "the connection ends");
    assert!(!has_text(&peer));
}

/// Whether the text stands in what the host saw of the memory at the end of a connection.
fn has_text(peer: &Peer) -> bool {
    let left = peer.orders.seen.left.lock().unwrap();
    assert!(left.len() > 4096);
    let text = text(64);
    left.windows(64).any(|window| window == text)
}

#[test]
fn no_text_stays_in_shared_memory_after_its_job() {
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        let peer = Peer::start();
        let module = open(&peer, ",offer=all");
        let mut driver = module.driver();
        let seal = cbc(1);
        let sealed = expected(&seal, &text(4096), &[], b"").1;
        let session = session(Algorithm::Aes128Cbc, direction, Padding::None, 1);
        let spaces = vec![if direction == Direction::Encrypt { text(4096) } else { sealed }; 8].leak();
        let done = drain(&mut *driver, jobs(spaces, &session));
        assert!(done.iter().all(|job| matches!(job.outcome(), Outcome::Done { .. })));
        drop((driver, module));
        assert!(soon(|| peer.orders.seen.count(Event::ConnectionEnded) >= 1));
        assert!(!has_text(&peer), "{direction}");
    }
}

#[test]
fn a_status_becomes_the_job_s_outcome_and_the_input_stays() {
    let (peer, module) = scene("");
    let mut driver = module.driver();
    for (status, error) in STATUSES {
        peer.orders.status.store(status, SeqCst);
        let done = drain(&mut *driver, jobs(spaces(1), &cbc(1)));
        assert_eq!(done[0].outcome(), Outcome::Failed(error));
        assert!(error.is_the_modules_fault() && done[0].input() == text(4096));
    }
}

#[test]
fn a_session_is_opened_once_and_closed_when_nobody_has_it_any_more() {
    let (peer, module) = scene("");
    let mut driver = module.driver();
    let opened =
        || peer.orders.seen.count(Event::SessionOpened) - peer.orders.seen.count(Event::SessionClosed);
    let mut run = |session: &Arc<Session>| {
        let done = drain(&mut *driver, jobs(spaces(1), session));
        assert!(matches!(done[0].outcome(), Outcome::Done { .. }));
    };
    let created = || peer.orders.seen.count(Event::SessionOpened);
    run(&cbc(1));
    let (session, before) = (cbc(2), created());
    (0..5).for_each(|_| run(&session));
    assert_eq!(created(), before + 1);
    assert!(soon(|| opened() == 1), "the questions' keys and the first session's are closed");
    drop(session);
    run(&cbc(3));
    assert!(soon(|| opened() <= 1));
}

#[test]
fn a_full_host_gets_a_new_session_for_an_old_one_and_says_full_where_none_can_go() {
    const NO_SPACE: i64 = -5;
    let (peer, module) = scene("");
    let mut driver = module.driver();
    peer.orders.refusal.store(NO_SPACE, SeqCst);
    peer.orders.sessions_max.store(2, SeqCst);
    let sessions = [cbc(1), cbc(2), cbc(3)];
    for session in &sessions {
        let done = drain(&mut *driver, jobs(spaces(1), session));
        assert_eq!(seen(&done[0]), expected(session, &text(4096), &[], b""));
    }
    let mut waiting: Vec<Box<Job<'_>>> = spaces(3).iter_mut().map(|space| Job::in_place(space)).collect();
    waiting.iter_mut().zip(&sessions).for_each(|(job, session)| arm(job, session, 4096));
    let third = waiting.pop().unwrap();
    waiting.into_iter().for_each(|job| driver.submit(job).unwrap());
    let (third, refusal) = driver.submit(third).unwrap_err();
    assert_eq!(refusal, Refusal::Full, "both sessions are in use");
    let mut done = Vec::new();
    while driver.in_flight() > 0 {
        driver.poll(&mut done, TIMEOUT);
    }
    done.extend(drain(&mut *driver, vec![third]));
    assert!(done.len() == 3 && done.iter().all(|job| matches!(job.outcome(), Outcome::Done { .. })));
}

#[test]
fn a_host_that_refuses_a_key_answers_that_job_and_stays() {
    let (peer, module) = scene("");
    let mut driver = module.driver();
    drain(&mut *driver, jobs(spaces(1), &cbc(1)));
    peer.orders.give(Order::NoSessions);
    for (refusal, error) in [(-3, JobError::Module { code: -3 }), (-5, JobError::ModuleFull)] {
        peer.orders.refusal.store(refusal, SeqCst);
        let done = drain(&mut *driver, jobs(spaces(1), &cbc(2)));
        assert_eq!((done[0].outcome(), done[0].input()), (Outcome::Failed(error), &text(4096)[..]));
    }
    peer.orders.take_back(Order::NoSessions);
    let done = drain(&mut *driver, jobs(spaces(1), &cbc(1)));
    assert!(matches!(done[0].outcome(), Outcome::Done { .. }));
}

#[test]
fn what_is_longer_than_the_host_or_the_memory_takes_is_not_sent() {
    let (peer, module) = scene("");
    let mut driver = module.driver();
    let before = peer.orders.seen.count(Event::Request);
    let session = cbc(1);
    let mut both = vec![Job::in_place(text(2 << 20).leak()), Job::in_place(text(1 << 20).leak())];
    arm(&mut both[0], &session, 2 << 20);
    arm(&mut both[1], &session, 1 << 20);
    let done = drain(&mut *driver, both);
    assert_eq!(done[0].outcome(), Outcome::Failed(JobError::ModuleFull));
    assert_eq!(done[1].outcome(), Outcome::Done { written: 1 << 20 });
    assert_eq!(peer.orders.seen.count(Event::Request) - before, 1);
}
