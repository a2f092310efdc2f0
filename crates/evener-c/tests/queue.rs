//! A queue over raw memory: every kind of job comes back once, as libcrypto judges it, and what cannot be done touches no memory.
#![allow(unsafe_code, reason = "room: memory lent as a program in C lends it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use std::{fs, ptr, thread};

use evener::core::{Algorithm, Direction, JobError, Nanos, Outcome, Padding};
use evener_c::abi::Job;
use evener_c::queue::Queue;
use evener_c::runtime::{Request, Runtime};
use evener_c::session::Session;
use evener_c::{Error, Failure, statistics};
use evener_testing::requests::{JobSpec, UNTOUCHED, judged, kinds};
use evener_testing::waiting::without_standstill;

fn runtime(threads: usize) -> Arc<Runtime> {
    Arc::new(
        Runtime::open(&Request { threads: Some(threads), no_cost_cache: true, ..Request::default() })
            .unwrap(),
    )
}

/// A job of a program, with the memory that it lends.
struct Lending {
    job: Box<Job>,
    spec: JobSpec,
    src: Vec<u8>,
    dst: Vec<u8>,
    session: Arc<Session>,
}

/// Bytes behind the space that a job needs.
const BEYOND: usize = 48;

impl Lending {
    /// In place or apart, as the spec's layout says.
    fn of(spec: JobSpec, runtime: &Arc<Runtime>) -> Self {
        let keyed = &spec.session;
        let name = keyed.algorithm().name();
        let session = Session::open(runtime, name, keyed.direction(), keyed.padding(), keyed.key());
        let session = Arc::new(session.unwrap());
        let space = keyed.output_bytes_max(spec.input.len()).max(spec.input.len());
        let shift = spec.layout.shift;
        let mut src = vec![UNTOUCHED; shift];
        src.extend_from_slice(&spec.input);
        src.resize(shift + space + BEYOND, UNTOUCHED);
        let mut dst = vec![UNTOUCHED; space + BEYOND];
        let start = src[shift..].as_mut_ptr();
        let in_place = spec.layout.in_place && keyed.algorithm().is_cipher();
        let job = Box::new(Job {
            session: Arc::as_ptr(&session),
            src: start.cast(),
            src_len: spec.input.len(),
            dst: if in_place { start.cast() } else { dst.as_mut_ptr().cast() },
            dst_space: space,
            aad: spec.aad.as_ptr().cast(),
            aad_len: spec.aad.len(),
            iv: padded(&spec.iv),
            tag: padded(&spec.tag),
            user_data: 7,
            written: 99,
            status: 99,
            reserved0: 0,
            reserved: [0; 4],
        });
        Self { job, spec, src, dst, session }
    }

    fn pointer(&mut self) -> *mut Job {
        &raw mut *self.job
    }

    /// Fails unless the job is what libcrypto makes of it, and nothing beyond its space was written.
    fn check(&self) {
        let (spec, right) = (&self.spec, judged(&self.spec));
        let status = match right.outcome {
            Outcome::Done { .. } => 0,
            Outcome::Failed(JobError::NotAuthentic) => Error::BadMessage as i32,
            Outcome::Failed(JobError::BadPadding) => Error::BadPadding as i32,
            other => panic!("{}: {other:?}", spec.what()),
        };
        assert_eq!(self.job.status, status, "{}", spec.what());
        assert_eq!(self.job.written, right.output.len(), "{}", spec.what());
        assert_eq!(self.job.user_data, 7);
        let is_in_place = ptr::eq(self.job.src, self.job.dst.cast_const());
        let out = if is_in_place { &self.src[spec.layout.shift..] } else { &self.dst };
        assert!(out[..right.output.len()] == right.output, "{}", spec.what());
        let space = spec.session.output_bytes_max(spec.input.len());
        let used = if is_in_place { space.max(spec.input.len()) } else { space };
        assert!(out[used..].iter().all(|byte| *byte == UNTOUCHED), "{}: beyond its space", spec.what());
        if spec.session.direction() == Direction::Encrypt {
            assert_eq!(self.job.tag[..right.tag.len()], right.tag, "{}", spec.what());
        }
    }

    /// Whether no byte that was lent has changed.
    fn is_untouched(&self) -> bool {
        let at = self.spec.layout.shift..self.spec.layout.shift + self.spec.input.len();
        self.src[at] == self.spec.input && self.dst.iter().all(|byte| *byte == UNTOUCHED)
    }
}

fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut padded = [0; N];
    padded[..bytes.len()].copy_from_slice(bytes);
    padded
}

/// Jobs of every kind and many lengths, some of them forged.
fn lendings(runtime: &Arc<Runtime>, seed: usize) -> Vec<Lending> {
    let lengths = [0, 1, 15, 16, 17, 64, 200, 1_000, 4_096];
    let specs = kinds(seed).enumerate().flat_map(|(kind, session)| {
        lengths.map(move |bytes| {
            let mut spec = JobSpec::noisy(&session, bytes, seed + kind * 7 + bytes);
            if kind % 3 == 0 && session.algorithm().is_aead() && session.direction() == Direction::Decrypt {
                spec.tag[3] ^= 1;
            }
            spec
        })
    });
    specs.map(|spec| Lending::of(spec, runtime)).collect()
}

fn crypt(queue: &mut Queue, lendings: &mut [Lending]) {
    let jobs: Vec<_> = lendings.iter_mut().map(Lending::pointer).collect();
    // SAFETY: each lending lives, and is left alone until the call returns.
    unsafe { queue.crypt(&jobs) }.unwrap();
}

/// Submits all in parts and reaps all.
fn through(queue: &mut Queue, lendings: &mut [Lending], part: usize) {
    let jobs: Vec<_> = lendings.iter_mut().map(Lending::pointer).collect();
    let (mut rest, mut came) = (&jobs[..], Vec::new());
    while came.len() < jobs.len() {
        // SAFETY: each lending lives, and is left alone until all are reaped.
        let taken = unsafe { queue.submit(&rest[..part.min(rest.len())]) }.unwrap();
        rest = &rest[taken..];
        let mut space = vec![ptr::null_mut(); 20];
        let count = queue.reap(&mut space, usize::from(taken == 0), None).unwrap();
        came.extend_from_slice(&space[..count]);
    }
    assert_eq!(queue.in_flight(), 0);
    let sorted = |mut jobs: Vec<*mut Job>| {
        jobs.sort_unstable();
        jobs
    };
    assert_eq!(sorted(came), sorted(jobs), "each comes back once");
}

#[test]
fn every_kind_of_job_is_done_as_libcrypto_does_it_at_once_and_by_workers() {
    without_standstill(|| {
        for threads in [0, 2] {
            let runtime = runtime(threads);
            let mut queue = Queue::open(&runtime, 50).unwrap();
            for seed in 0..3 {
                let mut lent = lendings(&runtime, seed * 100);
                crypt(&mut queue, &mut lent);
                lent.iter().for_each(Lending::check);
                let mut lent = lendings(&runtime, seed * 100 + 50);
                through(&mut queue, &mut lent, 17 + 30 * seed);
                lent.iter().for_each(Lending::check);
            }
            queue.close().unwrap();
        }
    });
}

/// A plain job of AES-128-CBC.
fn cbc(runtime: &Arc<Runtime>, bytes: usize) -> Lending {
    let mut all = kinds(1).filter(|session| session.algorithm() == Algorithm::Aes128Cbc);
    let session = all.find(|session| session.padding() == Padding::None).unwrap();
    // Apart: the even layouts are in place.
    Lending::of(JobSpec::noisy(&session, bytes, 9), runtime)
}

/// Makes a job one that cannot be.
type Spoil = Box<dyn Fn(&mut Job)>;

#[test]
fn a_job_that_cannot_be_is_invalid_and_touches_no_memory() {
    without_standstill(|| {
        for threads in [0, 1] {
            let (runtime, other) = (runtime(threads), runtime(0));
            let mut queue = Queue::open(&runtime, 64).unwrap();
            let stranger = Lending::of(cbc(&runtime, 64).spec, &other);
            let foreign = Arc::as_ptr(&stranger.session);
            let spoil: Vec<Spoil> = vec![
                Box::new(|job| job.reserved0 = 1),
                Box::new(|job| job.reserved[3] = 1),
                Box::new(|job| job.session = ptr::null()),
                Box::new(move |job| job.session = foreign),
                Box::new(|job| job.src = ptr::null()),
                Box::new(|job| job.dst = ptr::null_mut()),
                Box::new(|job| job.src_len = 63),
                Box::new(|job| job.src_len = usize::MAX),
                Box::new(|job| job.dst_space = usize::MAX),
                Box::new(|job| job.dst_space = 63),
                Box::new(|job| job.aad_len = 5),
                Box::new(|job| job.dst = job.src.cast_mut().wrapping_byte_add(1)),
                Box::new(|job| job.src = job.dst.wrapping_byte_add(63)),
                Box::new(|job| (job.dst, job.dst_space) = (job.src.cast_mut(), 63)),
            ];
            let count = spoil.len();
            for is_waited_for in [true, false] {
                let mut lent: Vec<Lending> = (0..=count).map(|_| cbc(&runtime, 64)).collect();
                spoil.iter().zip(&mut lent).for_each(|(spoil, lent)| spoil(&mut lent.job));
                match is_waited_for {
                    true => crypt(&mut queue, &mut lent),
                    false => through(&mut queue, &mut lent, 64),
                }
                for (number, lent) in lent[..count].iter().enumerate() {
                    assert_eq!((lent.job.status, lent.job.written), (Error::Invalid as i32, 0), "{number}");
                    assert!(lent.is_untouched(), "{number}");
                }
                lent[count].check();
            }
        }
    });
}

#[test]
fn a_session_may_be_closed_while_jobs_need_it_and_goes_with_the_last() {
    without_standstill(|| {
        let runtime = runtime(1);
        let mut queue = Queue::open(&runtime, 64).unwrap();
        for _ in 0..50 {
            let mut lent: Vec<Lending> = (0..10).map(|_| cbc(&runtime, 4_096)).collect();
            let sessions: Vec<_> = lent.iter().map(|lent| Arc::downgrade(&lent.session)).collect();
            let jobs: Vec<_> = lent.iter_mut().map(Lending::pointer).collect();
            // SAFETY: the lendings live until all are reaped; a session is let go of only after it was handed over.
            assert_eq!(unsafe { queue.submit(&jobs) }, Ok(10));
            for lent in &mut lent {
                // The box has a count of its own now.
                lent.session = Arc::clone(stand_in(&runtime));
            }
            assert!(sessions.iter().all(|session| session.strong_count() == 1), "the queue's");
            let mut space = [ptr::null_mut(); 10];
            assert_eq!(queue.reap(&mut space, 10, None), Ok(10));
            lent.iter().for_each(Lending::check);
            assert!(sessions.iter().all(|session| session.strong_count() == 0), "nobody's");
        }
    });
}

/// Some session.
fn stand_in(runtime: &Arc<Runtime>) -> &'static Arc<Session> {
    static SOME: std::sync::OnceLock<Arc<Session>> = std::sync::OnceLock::new();
    let open = || Arc::new(Session::open(runtime, "md5", Direction::Encrypt, Padding::None, &[]).unwrap());
    SOME.get_or_init(open)
}

#[test]
fn a_queue_takes_what_fits_and_a_reap_waits_no_longer_than_it_is_told() {
    without_standstill(|| {
        for threads in [0, 1] {
            let runtime = runtime(threads);
            let mut queue = Queue::open(&runtime, 5).unwrap();
            let mut lent: Vec<Lending> = (0..8).map(|_| cbc(&runtime, 64)).collect();
            let jobs: Vec<_> = lent.iter_mut().map(Lending::pointer).collect();
            let mut space = [ptr::null_mut(); 8];
            assert_eq!(queue.reap(&mut space, 3, None), Ok(0), "nothing is under way");
            // SAFETY: the lendings live until all are reaped.
            assert_eq!(unsafe { queue.submit(&jobs) }, Ok(5));
            // SAFETY: as above.
            assert_eq!(unsafe { queue.submit(&jobs[5..]) }, Ok(0));
            assert_eq!(queue.in_flight(), 5);
            assert_eq!(queue.reap(&mut space, 9, None), Ok(5));
            assert_eq!(queue.reap(&mut space, 1, Some(Nanos::from_millis(1))), Ok(0));
        }
    });
}

#[test]
fn closing_a_queue_waits_for_its_jobs_and_writes_what_came_of_them() {
    without_standstill(|| {
        let runtime = runtime(2);
        for _ in 0..30 {
            let mut queue = Queue::open(&runtime, 64).unwrap();
            let mut lent: Vec<Lending> = (0..40).map(|_| cbc(&runtime, 16_000)).collect();
            let jobs: Vec<_> = lent.iter_mut().map(Lending::pointer).collect();
            // SAFETY: the lendings live until the queue is closed.
            assert_eq!(unsafe { queue.submit(&jobs) }, Ok(40));
            queue.close().unwrap();
            lent.iter().for_each(Lending::check);
        }
    });
}

#[test]
fn after_its_runtime_was_closed_a_queue_gives_out_what_was_finished_and_takes_nothing() {
    without_standstill(|| {
        let runtime = runtime(1);
        let mut queue = Queue::open(&runtime, 8).unwrap();
        let mut lent: Vec<Lending> = (0..4).map(|_| cbc(&runtime, 64)).collect();
        let jobs: Vec<_> = lent.iter_mut().map(Lending::pointer).collect();
        // SAFETY: the lendings live until all are reaped.
        assert_eq!(unsafe { queue.submit(&jobs) }, Ok(4));
        runtime.close().unwrap();
        let mut space = [ptr::null_mut(); 8];
        assert_eq!(queue.reap(&mut space, 4, None), Ok(4));
        lent.iter().for_each(Lending::check);
        // SAFETY: nothing is taken.
        assert_eq!(unsafe { queue.submit(&jobs) }, Err(Error::Closed));
        // SAFETY: as above.
        assert_eq!(unsafe { queue.crypt(&jobs) }, Err(Error::Closed));
        let closed = |result: Result<Queue, Failure>| result.err().map(|failure| failure.error);
        assert_eq!(closed(Queue::open(&runtime, 8)), Some(Error::Closed));
        assert_eq!(statistics(&runtime).unwrap().jobs, 4, "it still says what was done");
    });
}

#[test]
fn a_session_ends_at_once_while_another_thread_waits_for_the_end_of_the_runtime() {
    without_standstill(|| {
        let runtime = Arc::new(
            Runtime::open(&Request {
                threads: Some(1),
                // Two seconds a request.
                modules: vec!["emulated:d=0+0,h=2000000000+0".to_owned()],
                policy: Some("module_only".to_owned()),
                no_cost_cache: true,
            })
            .unwrap(),
        );
        let mut queue = Queue::open(&runtime, 1).unwrap();
        let (mut under_way, other) = (cbc(&runtime, 512), cbc(&runtime, 512));
        let job = under_way.pointer();
        // SAFETY: the lending lives until the job is reaped.
        assert_eq!(unsafe { queue.submit(&[job]) }, Ok(1));
        let is_closed = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                runtime.close().unwrap();
                is_closed.store(true, SeqCst);
            });
            while runtime.check_usable().is_ok() {
                thread::yield_now();
            }
            // It has what it closes a moment later.
            thread::sleep(Duration::from_millis(100));
            drop(other.session);
            assert!(!is_closed.load(SeqCst), "the session's end waited for the runtime's");
        });
        assert_eq!(queue.reap(&mut [ptr::null_mut()], 1, None), Ok(1));
    });
}

#[test]
fn a_module_does_what_a_program_hands_over_and_is_counted() {
    without_standstill(|| {
        let request = |threads| Request {
            threads: Some(threads),
            modules: vec!["emulated:am3358".to_owned()],
            policy: Some("module_only".to_owned()),
            no_cost_cache: true,
        };
        let runtime = Arc::new(Runtime::open(&request(1)).unwrap());
        let mut queue = Queue::open(&runtime, 16).unwrap();
        let mut lent: Vec<Lending> = (0..24).map(|_| cbc(&runtime, 512)).collect();
        crypt(&mut queue, &mut lent[..8]);
        through(&mut queue, &mut lent[8..], 16);
        lent.iter().for_each(Lending::check);
        let known = statistics(&runtime).unwrap();
        assert_eq!((known.jobs, known.module_jobs, known.module_bytes), (24, 24, 24 * 512));
        assert!(known.checked >= 4 && known.lost_modules == 0);
        let without_threads = Runtime::open(&request(0)).err().map(|failure| failure.error);
        assert_eq!(without_threads, Some(Error::Invalid));
    });
}

/// A byte of a key that stands nowhere else.
fn key_byte(at: usize) -> u8 {
    u8::try_from((at * 37 + 101) % 256).unwrap()
}

/// How often that key lies in memory that this process writes, but for the stack of this thread, on which debug builds leave words.
fn keys_in_memory() -> usize {
    let (maps, memory) =
        (fs::read_to_string("/proc/self/maps").unwrap(), fs::File::open("/proc/self/mem").unwrap());
    let mut space = vec![0; 1 << 20];
    let (own, on_stack) = (space.as_ptr_range(), (&raw const memory).addr());
    let own = own.start.addr()..own.end.addr();
    let mut count = 0;
    for (start, end) in maps.lines().filter(|line| line.contains(" rw")).filter_map(|line| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
    }) {
        if (start..end).contains(&on_stack) {
            continue;
        }
        for at in (start..end).step_by(space.len() - 32) {
            let wanted = space.len().min(end - at);
            let Ok(read) = memory.read_at(&mut space[..wanted], at as u64) else { continue };
            let found = space[..read].windows(32).enumerate().filter(|(_, bytes)| bytes[0] == key_byte(0));
            let found =
                found.filter(|(_, bytes)| bytes.iter().enumerate().all(|(at, byte)| *byte == key_byte(at)));
            // What was read before lies in the space itself.
            count += found.filter(|(offset, _)| !own.contains(&(at + offset))).count();
        }
    }
    count
}

#[test]
fn a_queue_that_is_left_wipes_what_it_made_of_a_session_that_ends_after_the_runtime() {
    let runtime = runtime(0);
    let mut queue = Queue::open(&runtime, 8).unwrap();
    let mut key: Vec<u8> = (0..32).map(key_byte).collect();
    let session = Session::open(&runtime, "AES-256-CTR", Direction::Encrypt, Padding::None, &key);
    let session = Arc::new(session.unwrap());
    key.iter_mut().for_each(|byte| *byte = 0);
    drop(std::hint::black_box(key));
    let mut text = [0; 64];
    let place = (&raw mut text).cast();
    let job = Job {
        session: Arc::as_ptr(&session),
        src: place,
        src_len: 64,
        dst: place,
        dst_space: 64,
        ..Job::ZERO
    };
    let mut job = Box::new(job);
    // SAFETY: job and text are left alone until the call returns.
    unsafe { queue.crypt(&[&raw mut *job]) }.unwrap();
    assert!(job.status == 0 && keys_in_memory() >= 2, "the session's, and the drivers'");
    runtime.close().unwrap();
    drop(session);
    assert!(keys_in_memory() > 0, "the drivers' own");
    // SAFETY: nothing is taken.
    assert_eq!(unsafe { queue.submit(&[&raw mut *job]) }, Err(Error::Closed));
    assert_eq!(keys_in_memory(), 0);
}

#[test]
fn statistics_never_fall_whichever_queue_goes_and_outlive_the_runtime() {
    without_standstill(|| {
        for threads in [0, 1] {
            let runtime = runtime(threads);
            let mut left = Queue::open(&runtime, 8).unwrap();
            let mut known = 0;
            for round in 1..=300 {
                // Another size each, in homes that others had before.
                let mut queue = Queue::open(&runtime, 1 << (round % 9)).unwrap();
                crypt(&mut queue, &mut [cbc(&runtime, 64), cbc(&runtime, 64)]);
                through(&mut queue, &mut [cbc(&runtime, 64)], 1);
                for _ in 0..2 {
                    let now = statistics(&runtime).unwrap().jobs;
                    assert!(now >= known && now == 3 * round, "{now}, and {known} before");
                    known = now;
                    _ = queue.cancel();
                }
                drop(queue);
                assert_eq!(statistics(&runtime).unwrap().jobs, known);
            }
            crypt(&mut left, &mut [cbc(&runtime, 64)]);
            runtime.close().unwrap();
            assert_eq!(statistics(&runtime).unwrap().jobs, known + 1);
            drop(left);
            assert_eq!(statistics(&runtime).unwrap().jobs, known + 1);
        }
    });
}

#[test]
fn statistics_count_each_job_once_while_the_runtime_goes_on() {
    without_standstill(|| {
        for threads in [0, 2] {
            let runtime = runtime(threads);
            let mut queue = Queue::open(&runtime, 64).unwrap();
            for round in 1..=5 {
                let mut lent: Vec<Lending> = (0..30).map(|_| cbc(&runtime, 512)).collect();
                crypt(&mut queue, &mut lent[..10]);
                through(&mut queue, &mut lent[10..], 64);
                let known = statistics(&runtime).unwrap();
                assert_eq!((known.jobs, known.bytes, known.failed), (30 * round, 30 * 512 * round, 0));
            }
        }
    });
}
