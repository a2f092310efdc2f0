//! The driver at devices of tests: what becomes of jobs, keys and memory, also where a call never returns.

use super::*;
use crate::pool::device::{Failure, Spec, takes_everything_without_keys};
use evener_core::known::KNOWN;
use evener_core::{InlineDriver as _, Outcome, Padding, Session};
use evener_driver_libcrypto::Libcrypto;
use std::mem;
use std::sync::{Condvar, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// A device that computes by libcrypto on the runner's thread, where the door is open.
#[derive(Default)]
struct Soft {
    is_shut: Mutex<bool>,
    opened: Condvar,
}

impl Soft {
    fn shut(&self, is_shut: bool) {
        *self.is_shut.lock().unwrap() = is_shut;
        self.opened.notify_all();
    }
}

impl Device for Soft {
    type Key = Vec<u8>;

    fn takes(&self, _: Algorithm, text_bytes: usize, _: usize) -> bool {
        text_bytes <= 4_096
    }

    fn open_key(&self, _: Spec, key: &[u8]) -> Result<Vec<u8>, Failure> {
        Ok(key.to_vec())
    }

    fn run(&self, key: &Vec<u8>, task: &mut Task) -> Result<(), Failure> {
        drop(self.opened.wait_while(self.is_shut.lock().unwrap(), |is_shut| *is_shut).unwrap());
        let Spec { algorithm, direction } = task.spec;
        let session = Session::new(algorithm, direction, Padding::None, key).unwrap();
        let (iv, aad_bytes, text_bytes) = (task.iv, task.aad_bytes, task.text_bytes);
        let aad = task.space[..aad_bytes].to_vec();
        let given = task.space[aad_bytes + text_bytes..].to_vec();
        let mut made = [Job::in_place(task.text_mut())];
        made[0].arm(&session, &iv[..algorithm.iv_bytes()], text_bytes);
        made[0].set_aad(&aad);
        made[0].set_tag(&given);
        Libcrypto::new().unwrap().run(&mut made);
        let (outcome, tag) = (made[0].outcome(), made[0].tag().to_vec());
        drop(made);
        match (outcome, algorithm.is_aead() && direction == Direction::Encrypt) {
            (Outcome::Failed(_), _) => return Err(Failure::NotAuthentic),
            (_, true) => task.space[aad_bytes + text_bytes..].copy_from_slice(&tag),
            _ => task.tag[..tag.len()].copy_from_slice(&tag),
        }
        Ok(())
    }
}

fn queued<'m>(device: &Arc<Soft>, stuck: &Arc<AtomicUsize>) -> JobDriver<'m, Soft> {
    let profile = Profile { name: "soft".to_owned(), detail: String::new(), width: 2, emulated: false };
    JobDriver::new(profile, 2, Algorithm::ALL.into(), Arc::clone(device), Arc::clone(stuck))
}

/// Runs all and returns them in any order.
fn run<'m>(driver: &mut JobDriver<'m, Soft>, mut jobs: Vec<Box<Job<'m>>>) -> Vec<Box<Job<'m>>> {
    let mut done = Vec::new();
    while !jobs.is_empty() || driver.in_flight() > 0 {
        while let Some(job) = jobs.pop() {
            if let Err((job, refusal)) = driver.submit(job) {
                assert_eq!(refusal, Refusal::Full);
                jobs.push(job);
                break;
            }
        }
        driver.poll(&mut done, Nanos::from_millis(5_000));
    }
    done
}

fn cbc(padding: Padding, direction: Direction) -> Session {
    Session::new(Algorithm::Aes128Cbc, direction, padding, &[9; 16]).unwrap()
}

#[test]
fn every_family_comes_back_as_published_in_both_directions() {
    let (device, stuck) = (Arc::default(), Arc::default());
    for known in KNOWN {
        for direction in known.directions() {
            let is_right = known.is_right(direction, 5, |jobs| {
                let all = mem::take(jobs);
                *jobs = run(&mut queued(&device, &stuck), all);
            });
            assert!(is_right, "{} {direction}", known.algorithm);
        }
    }
}

#[test]
fn padding_is_added_taken_off_and_refused_where_it_is_wrong() {
    let (device, stuck) = (Arc::default(), Arc::default());
    let [seal, open] = [Direction::Encrypt, Direction::Decrypt].map(|way| cbc(Padding::Pkcs7, way));
    for bytes in [0, 1, 15, 16, 17, 100] {
        let mut space = vec![7; bytes + 16];
        let mut job = Job::in_place(&mut space);
        job.arm(&seal, &[3; 16], bytes);
        let sealed = run(&mut queued(&device, &stuck), vec![job])[0].output().to_vec();
        assert_eq!(sealed.len(), bytes / 16 * 16 + 16);
        for damage in [0, 1] {
            let (mut damaged, mut text) = (sealed.clone(), vec![0; sealed.len()]);
            // The last byte of the block before is the last byte of the padding.
            let mut iv = [3; 16];
            match sealed.len().checked_sub(17) {
                Some(before) => damaged[before] ^= damage * 0x80,
                None => iv[15] ^= damage * 0x80,
            }
            let mut job = Job::apart(&damaged, &mut text);
            job.arm(&open, &iv, damaged.len());
            let opened = run(&mut queued(&device, &stuck), vec![job]);
            match damage {
                0 => assert_eq!(opened[0].output(), vec![7; bytes]),
                _ => assert_eq!(opened[0].outcome(), Outcome::Failed(JobError::BadPadding)),
            }
        }
    }
}

#[test]
fn what_is_too_long_is_left_to_others_untouched() {
    let (device, stuck) = (Arc::default(), Arc::default());
    // A digest is short, and its message is not.
    let md5 = Session::new(Algorithm::Md5, Direction::Encrypt, Padding::None, &[]).unwrap();
    for session in [cbc(Padding::None, Direction::Encrypt), md5] {
        let mut space = vec![7; 8_192];
        let mut job = Job::in_place(&mut space);
        job.arm(&session, &[3; 16], 8_192);
        let left = run(&mut queued(&device, &stuck), vec![job]);
        assert_eq!(left[0].outcome(), Outcome::Failed(JobError::ModuleFull));
        assert!(left[0].input().iter().all(|&byte| byte == 7));
    }
}

#[test]
fn runners_that_never_come_back_keep_nobody_and_hold_nothing_of_the_callers() {
    let (device, stuck): (Arc<Soft>, Arc<AtomicUsize>) = (Arc::default(), Arc::default());
    device.shut(true);
    let session = cbc(Padding::None, Direction::Encrypt);
    let mut spaces = [[7; 64]; 2];
    {
        let mut driver = queued(&device, &stuck);
        let mut given_back = Vec::new();
        for space in &mut spaces {
            let mut job = Job::in_place(space);
            job.arm(&session, &[3; 16], 64);
            assert!(driver.submit(job).is_ok());
        }
        assert_eq!(driver.poll(&mut given_back, Nanos::from_millis(50)), 0);
        driver.abandon(&mut given_back);
        assert_eq!(given_back.len(), 2);
        let lost = Outcome::Failed(JobError::ModuleLost);
        assert!(given_back.iter().all(|job| job.outcome() == lost));
    }
    // The driver was dropped, its runners live, and their module takes nothing.
    assert_eq!(stuck.load(Ordering::Relaxed), 2);
    let mut space = [7; 64];
    let mut job = Job::in_place(&mut space);
    job.arm(&session, &[3; 16], 64);
    assert_eq!(queued(&device, &stuck).submit(job).map_err(|(_, why)| why), Err(Refusal::Lost));
    device.shut(false);
    while stuck.load(Ordering::Relaxed) > 0 {
        thread::yield_now();
    }
    assert_eq!(spaces, [[7; 64]; 2]);
}

/// A device that gives back, as a digest, which signals its caller's thread holds off: the kernel's own word.
struct Masked;

impl Device for Masked {
    takes_everything_without_keys!();

    fn run(&self, (): &(), task: &mut Task) -> Result<(), Failure> {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        task.tag[..16].copy_from_slice(mask.trim().as_bytes());
        Ok(())
    }
}

#[test]
fn no_signal_of_the_program_ends_a_call_into_the_kernel() {
    let session = Session::new(Algorithm::Md5, Direction::Encrypt, Padding::None, &[]).unwrap();
    let profile = Profile { name: "masked".to_owned(), detail: String::new(), width: 1, emulated: false };
    let mut driver = JobDriver::new(profile, 1, Algorithm::ALL.into(), Arc::new(Masked), Arc::default());
    let mut job = Job::apart(&[7; 64], &mut []);
    job.arm(&session, &[], 64);
    driver.submit(job).map_err(drop).unwrap();
    let mut done = Vec::new();
    driver.poll(&mut done, Nanos::from_millis(5_000));
    let mask = u64::from_str_radix(std::str::from_utf8(done[0].tag()).unwrap(), 16).unwrap();
    // All that can be blocked: not KILL and STOP, nor the two that the C library keeps for itself.
    let unblockable =
        [libc::SIGKILL, libc::SIGSTOP, 32, 33].iter().fold(0, |mask, number| mask | 1 << (number - 1));
    assert_eq!(mask | unblockable, u64::MAX, "{mask:#x}");
}

/// A device that closes keys when the test lets it, and records on which thread.
#[derive(Clone, Default)]
struct Sticking {
    closes: Arc<(Mutex<bool>, Condvar)>,
    threads: Arc<Mutex<Vec<ThreadId>>>,
}

/// A key of it.
struct Stuck(Sticking);

impl Drop for Stuck {
    fn drop(&mut self) {
        self.0.threads.lock().unwrap().push(thread::current().id());
        let (closes, closing) = &*self.0.closes;
        // Not for ever, so that the thread of the test sees what it did.
        let timeout = Duration::from_secs(10);
        drop(closing.wait_timeout_while(closes.lock().unwrap(), timeout, |closes| !*closes).unwrap());
    }
}

impl Device for Sticking {
    type Key = Stuck;

    fn takes(&self, _: Algorithm, _: usize, _: usize) -> bool {
        true
    }

    fn open_key(&self, _: Spec, _: &[u8]) -> Result<Stuck, Failure> {
        Ok(Stuck(self.clone()))
    }

    fn run(&self, _: &Stuck, _: &mut Task) -> Result<(), Failure> {
        Ok(())
    }
}

#[test]
fn a_key_is_closed_by_a_runner_which_keeps_nobody_where_the_module_hangs_over_it() {
    let (device, stuck) = (Sticking::default(), Arc::new(AtomicUsize::new(0)));
    let (session, mut space) = (cbc(Padding::None, Direction::Encrypt), [7; 64]);
    let profile = Profile { name: "stuck".to_owned(), detail: String::new(), width: 1, emulated: false };
    let device_of_driver = Arc::new(device.clone());
    let mut driver = JobDriver::new(profile, 1, Algorithm::ALL.into(), device_of_driver, Arc::clone(&stuck));
    let mut job = Job::in_place(&mut space);
    job.arm(&session, &[3; 16], 64);
    driver.submit(job).map_err(drop).unwrap();
    assert_eq!(driver.poll(&mut Vec::new(), Nanos::from_millis(5_000)), 1);
    driver.evict(&|_| true);
    while device.threads.lock().unwrap().is_empty() {
        thread::yield_now();
    }
    assert_ne!(device.threads.lock().unwrap()[0], thread::current().id());
    drop(driver);
    assert_eq!(stuck.load(Ordering::Relaxed), 1, "it is still about it");
    *device.closes.0.lock().unwrap() = true;
    device.closes.1.notify_all();
    while stuck.load(Ordering::Relaxed) > 0 {
        thread::yield_now();
    }
    assert_eq!(device.threads.lock().unwrap().len(), 1);
}

#[test]
fn no_key_is_left_when_a_driver_is_gone() {
    let (device, stuck): (Arc<Soft>, Arc<AtomicUsize>) = (Arc::default(), Arc::default());
    let session = cbc(Padding::None, Direction::Encrypt);
    let mut space = [7; 64];
    let mut driver = queued(&device, &stuck);
    let mut job = Job::in_place(&mut space);
    job.arm(&session, &[3; 16], 64);
    driver.submit(job).map_err(drop).unwrap();
    driver.poll(&mut Vec::new(), Nanos::from_millis(5_000));
    let key = Arc::downgrade(&driver.pool.key(&session));
    drop(driver);
    assert!(key.upgrade().is_none(), "keys live as long as their pool");
}

/// A device that takes no key, or fails each request, as the test says.
struct Fails {
    key: Option<Failure>,
    request: Option<Failure>,
}

impl Device for Fails {
    type Key = ();

    fn takes(&self, _: Algorithm, _: usize, _: usize) -> bool {
        true
    }

    fn open_key(&self, _: Spec, _: &[u8]) -> Result<(), Failure> {
        self.key.map_or(Ok(()), Err)
    }

    fn run(&self, (): &(), task: &mut Task) -> Result<(), Failure> {
        task.space.fill(0xEE);
        self.request.map_or(Ok(()), Err)
    }
}

#[test]
fn what_the_kernel_says_becomes_the_job_s_error_and_its_text_stays() {
    let seal = || cbc(Padding::None, Direction::Encrypt);
    let open = || Session::new(Algorithm::Aes128Gcm, Direction::Decrypt, Padding::None, &[9; 16]).unwrap();
    let (key, request) = (
        |failure| Fails { key: Some(failure), request: None },
        |failure| Fails { key: None, request: Some(failure) },
    );
    let cases = [
        (key(Failure::KeyRefused(libc::EINVAL)), seal(), JobError::KeyRefused { code: libc::EINVAL }),
        (key(Failure::Full), seal(), JobError::ModuleFull),
        (key(Failure::Lost), seal(), JobError::ModuleLost),
        (request(Failure::Errno(libc::EIO)), seal(), JobError::Module { code: libc::EIO }),
        (request(Failure::Lost), seal(), JobError::ModuleLost),
        (request(Failure::NotAuthentic), open(), JobError::NotAuthentic),
        // Of a text that has no tag this means nothing.
        (request(Failure::NotAuthentic), seal(), JobError::Module { code: libc::EBADMSG }),
    ];
    for (device, session, error) in cases {
        let profile = Profile { name: "fails".to_owned(), detail: String::new(), width: 1, emulated: false };
        let mut space = [7; 64];
        let mut job = Job::in_place(&mut space);
        job.arm(&session, &[3; 16][..session.algorithm().iv_bytes()], 64);
        let mut driver = JobDriver::new(profile, 1, Algorithm::ALL.into(), Arc::new(device), Arc::default());
        driver.submit(job).map_err(drop).unwrap();
        let mut done = Vec::new();
        driver.poll(&mut done, Nanos::from_millis(5_000));
        assert_eq!(done[0].outcome(), Outcome::Failed(error));
        let is_redone = error != JobError::NotAuthentic;
        assert_eq!(
            (error.is_the_modules_fault(), done[0].input() == [7; 64]),
            (is_redone, is_redone),
            "{error:?}"
        );
    }
}
