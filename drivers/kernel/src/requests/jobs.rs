//! The driver that the runtime sees: it holds jobs, and runners work on copies of them.
//!
//! `submit -> (copy) -> desk -> runner -> desk -> poll -> (publish)`. A job's own memory is touched when its result is
//! published, and at no other time; so a runner that hangs in the kernel holds nothing of the caller's.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use evener_core::padding::{pad, padded_bytes, text_bytes};
use evener_core::{
    Algorithm, Direction, IsOver, Job, JobError, Nanos, Padding, Profile, QueuedDriver, Refusal,
};
use zeroize::Zeroizing;

use crate::pool::device::{Device, Spec, Task, error_of};
use crate::pool::syscall_pool::{Desk, FAREWELL};
use crate::process::fork_check::Birthplace;

/// A module behind the kernel, of one run.
pub(crate) struct Queued<'m, D: Device> {
    profile: Profile,
    algorithms: Arc<[Algorithm]>,
    device: Arc<D>,
    stuck: Arc<AtomicUsize>,
    desk: Arc<Desk<D>>,
    runners: Vec<JoinHandle<()>>,
    runners_max: u32,
    /// The process whose threads the runners are.
    home: Birthplace,
    held: Vec<(u64, Box<Job<'m>>)>,
    /// Answered without the module.
    answered: Vec<Box<Job<'m>>>,
    /// Memory of finished requests, for the next ones.
    spare: Vec<Zeroizing<Vec<u8>>>,
    taken: u64,
    /// A run that failed to start, or whose module has runners that never came back.
    is_lost: bool,
}

impl<'m, D: Device> Queued<'m, D> {
    /// With so many runners; what `profile` is wider waits at the desk, so that a runner that has finished need not sleep until there
    /// is more to do.
    pub(crate) fn new(
        profile: Profile,
        runners_max: u32,
        algorithms: Arc<[Algorithm]>,
        device: Arc<D>,
        stuck: Arc<AtomicUsize>,
    ) -> Self {
        let desk = desk(&profile, &device, &stuck);
        // Relaxed: a number that may be a moment old.
        let is_lost = stuck.load(Ordering::Relaxed) > 0;
        let mut this = Self {
            profile,
            algorithms,
            device,
            stuck,
            desk,
            runners: Vec::new(),
            home: Birthplace::here(),
            runners_max,
            held: Vec::new(),
            answered: Vec::new(),
            spare: Vec::new(),
            taken: 0,
            is_lost,
        };
        this.start();
        this
    }

    fn start(&mut self) {
        for _ in 0..self.runners_max {
            match self.desk.start_runner() {
                Ok(runner) => self.runners.push(runner),
                Err(_) => self.is_lost = self.runners.is_empty(),
            }
        }
    }

    /// Requests that it may hold: less where not all runners could be started.
    fn room(&self) -> usize {
        let missing = self.runners_max as usize - self.runners.len();
        (self.profile.width as usize).saturating_sub(missing)
    }

    /// In a forked child there are no runners, and what lies in the kernel is the parent's: what was held is lost here, and
    /// everything begins anew.
    fn mind_fork(&mut self) {
        if self.home.is_here() {
            return;
        }
        self.home = Birthplace::here();
        self.lose_held();
        self.runners.drain(..).for_each(mem::forget);
        let new = desk(&self.profile, &self.device, &self.stuck);
        // Its locks may be held by threads that are not here.
        mem::forget(mem::replace(&mut self.desk, new));
        self.start();
    }

    fn is_for_it(&self, job: &Job<'_>) -> bool {
        let (session, aad_bytes) = (job.session(), job.aad().len());
        // With padding, of which hashes, whose messages are no output, have none.
        let text_bytes = session.output_bytes_max(job.input_bytes()).max(job.input_bytes());
        self.desk.device().takes(session.algorithm(), text_bytes, aad_bytes)
    }

    /// The request of a job.
    fn task(&mut self, job: &mut Job<'_>) -> Task {
        if let Some(task) = self.task_in_its_own_room(job) {
            return task;
        }
        let session = job.session();
        let (algorithm, direction) = (session.algorithm(), session.direction());
        let aad = if algorithm.is_aead() { job.aad() } else { &[] };
        let is_padded = session.padding() == Padding::Pkcs7 && direction == Direction::Encrypt;
        let input = job.input();
        let text_bytes = if is_padded { padded_bytes(input.len()) } else { input.len() };
        let tag_bytes = if algorithm.is_aead() { algorithm.tag_bytes() } else { 0 };
        let (start, whole) = (aad.len(), aad.len() + text_bytes + tag_bytes);
        let mut room = with_room(self.spare.pop().unwrap_or_default(), whole);
        room.extend_from_slice(aad);
        room.extend_from_slice(input);
        room.resize(whole, 0);
        if is_padded {
            let text_end = input.len() % evener_core::BLOCK_BYTES;
            pad(&mut room[start + input.len() - text_end..], text_end);
        }
        if tag_bytes > 0 && direction == Direction::Decrypt {
            room[start + text_bytes..].copy_from_slice(&job.tag_given()[..tag_bytes]);
        }
        Task {
            number: self.taken,
            spec: Spec { algorithm, direction },
            iv: *job.iv(),
            aad_bytes: start,
            text_bytes,
            room,
            tag: *job.tag_given(),
            is_in_jobs_room: false,
            answer: Ok(()),
        }
    }

    /// The request of a job that owns its memory and needs nothing beside its text there: two copies less. A failed one may have
    /// replaced a part of its input; who lends jobs memory of their own keeps the input elsewhere (`offload.rs` of the runtime).
    fn task_in_its_own_room(&self, job: &mut Job<'_>) -> Option<Task> {
        let (session, text_bytes, iv) = (job.session(), job.input_bytes(), *job.iv());
        let (algorithm, direction) = (session.algorithm(), session.direction());
        let is_plain = algorithm.is_cipher() && !algorithm.is_aead() && session.padding() == Padding::None;
        let room = if is_plain { job.lend_room()? } else { return None };
        let task = Task::over(self.taken, Spec { algorithm, direction }, iv, room, text_bytes);
        Some(Task { is_in_jobs_room: true, ..task })
    }

    /// Gives a job back with what came of its request.
    fn publish(&mut self, task: Task, done: &mut Vec<Box<Job<'m>>>) {
        let Some(place) = self.held.iter().position(|(number, _)| *number == task.number) else { return };
        let (_, mut job) = self.held.swap_remove(place);
        match task.answer {
            Ok(()) if task.is_in_jobs_room => job.done(task.text_bytes),
            Ok(()) => publish(&task, &mut job),
            Err(failure) => job.fail(error_of(failure, task.spec)),
        }
        if task.is_in_jobs_room {
            job.put_room(task.room);
        } else {
            self.spare.push(task.room);
        }
        done.push(job);
    }

    fn lose_held(&mut self) {
        self.answered.extend(self.held.drain(..).map(|(_, mut job)| {
            job.fail(JobError::ModuleLost);
            job
        }));
    }
}

impl<'m, D: Device> QueuedDriver<'m> for Queued<'m, D> {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn supports(&self, algorithm: Algorithm, _direction: Direction) -> bool {
        self.algorithms.contains(&algorithm)
    }

    fn submit(&mut self, mut job: Box<Job<'m>>) -> Result<(), (Box<Job<'m>>, Refusal)> {
        self.mind_fork();
        if self.is_lost {
            return Err((job, Refusal::Lost));
        }
        if self.in_flight() >= self.room() {
            return Err((job, Refusal::Full));
        }
        if !self.is_for_it(&job) {
            job.fail(JobError::ModuleFull);
            self.answered.push(job);
        } else if job.input_bytes() == 0 && !needs_work(&job) {
            job.done(0);
            self.answered.push(job);
        } else {
            self.taken += 1;
            let task = self.task(&mut job);
            self.desk.give(task, self.desk.key(job.session()));
            self.held.push((self.taken, job));
        }
        Ok(())
    }

    fn poll(&mut self, done: &mut Vec<Box<Job<'m>>>, patience: Nanos) -> usize {
        self.mind_fork();
        let before = done.len();
        done.append(&mut self.answered);
        let patience = if done.len() > before || self.held.is_empty() { Nanos::ZERO } else { patience };
        for task in self.desk.take(patience.into()) {
            self.publish(task, done);
        }
        done.len() - before
    }

    fn in_flight(&self) -> usize {
        self.held.len() + self.answered.len()
    }

    fn core_time(&self) -> Nanos {
        self.desk.core_time()
    }

    fn abandon(&mut self, given_back: &mut Vec<Box<Job<'m>>>) {
        self.mind_fork();
        self.desk.forget_waiting();
        self.lose_held();
        given_back.append(&mut self.answered);
    }

    fn forget(&mut self, is_over: IsOver<'_>) {
        // In a forked child the keys are the parent's, and locks may be held by threads that are not here.
        if self.home.is_here() {
            self.desk.give_up(self.desk.keys.forget(is_over));
        }
    }
}

impl<D: Device> Drop for Queued<'_, D> {
    fn drop(&mut self) {
        if !self.home.is_here() {
            return;
        }
        self.desk.forget_waiting();
        if self.desk.close(FAREWELL) {
            // Threads that have nothing to do any more: keys are closed when this returns.
            self.runners.drain(..).for_each(|runner| drop(runner.join()));
            self.desk.keys.close_idle();
        }
        // Else the last runner that comes back closes them with the desk: beside requests that hang, that may hang as well.
    }
}

fn desk<D: Device>(profile: &Profile, device: &Arc<D>, stuck: &Arc<AtomicUsize>) -> Arc<Desk<D>> {
    Arc::new(Desk::new(Arc::clone(device), Arc::clone(stuck), together(profile) as usize))
}

/// Results for which the caller is woken together: half of what may be held, so that as many again are there to be handed over meanwhile.
pub(crate) const fn together(profile: &Profile) -> u32 {
    profile.width / 2
}

/// Whether a job without input has output: a digest, a tag, or padding.
fn needs_work(job: &Job<'_>) -> bool {
    let session = job.session();
    session.algorithm().tag_bytes() > 0 || session.output_bytes_max(0) > 0
}

/// Empty memory with so much room: never grown, because what was in it would stay behind unwiped.
fn with_room(spare: Zeroizing<Vec<u8>>, bytes: usize) -> Zeroizing<Vec<u8>> {
    if spare.capacity() < bytes {
        return Zeroizing::new(Vec::with_capacity(bytes));
    }
    let mut room = spare;
    room.clear();
    room
}

/// The result of a request that went well.
fn publish(task: &Task, job: &mut Job<'_>) {
    let Spec { algorithm, direction } = task.spec;
    if !algorithm.is_cipher() {
        return job.publish(&[], &task.tag[..algorithm.tag_bytes()]);
    }
    let mut text = task.text();
    if job.session().padding() == Padding::Pkcs7 && direction == Direction::Decrypt {
        let Some(kept) = text.last_chunk().and_then(text_bytes) else {
            return job.fail(JobError::BadPadding);
        };
        text = &text[..text.len() - evener_core::BLOCK_BYTES + kept];
    }
    let tag_start = task.aad_bytes + task.text_bytes;
    let tag_bytes = if direction == Direction::Encrypt { algorithm.tag_bytes() } else { 0 };
    job.publish(text, &task.room[tag_start..tag_start + tag_bytes]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::device::Failure;
    use evener_core::known::KNOWN;
    use evener_core::{InlineDriver as _, Outcome, Session};
    use evener_driver_libcrypto::Libcrypto;
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
            let aad = task.room[..aad_bytes].to_vec();
            let given = task.room[aad_bytes + text_bytes..].to_vec();
            let mut made = [Job::in_place(task.text_mut())];
            made[0].arm(&session, &iv[..algorithm.iv_bytes()], text_bytes);
            made[0].set_aad(&aad);
            made[0].set_tag(&given);
            Libcrypto::new().unwrap().run(&mut made);
            let (outcome, tag) = (made[0].outcome(), made[0].tag().to_vec());
            drop(made);
            match (outcome, algorithm.is_aead() && direction == Direction::Encrypt) {
                (Outcome::Failed(_), _) => return Err(Failure::NotAuthentic),
                (_, true) => task.room[aad_bytes + text_bytes..].copy_from_slice(&tag),
                _ => task.tag[..tag.len()].copy_from_slice(&tag),
            }
            Ok(())
        }
    }

    fn queued<'m>(device: &Arc<Soft>, stuck: &Arc<AtomicUsize>) -> Queued<'m, Soft> {
        let profile = Profile { name: "soft".to_owned(), detail: String::new(), width: 2, emulated: false };
        Queued::new(profile, 2, Algorithm::ALL.into(), Arc::clone(device), Arc::clone(stuck))
    }

    /// Runs all and returns them in any order.
    fn run<'m>(driver: &mut Queued<'m, Soft>, mut jobs: Vec<Box<Job<'m>>>) -> Vec<Box<Job<'m>>> {
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
            let mut room = vec![7; bytes + 16];
            let mut job = Job::in_place(&mut room);
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
            let mut room = vec![7; 8_192];
            let mut job = Job::in_place(&mut room);
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
        let mut rooms = [[7; 64]; 2];
        {
            let mut driver = queued(&device, &stuck);
            let mut given_back = Vec::new();
            for room in &mut rooms {
                let mut job = Job::in_place(room);
                job.arm(&session, &[3; 16], 64);
                assert!(driver.submit(job).is_ok());
            }
            assert_eq!(driver.poll(&mut given_back, Nanos::from_millis(50)), 0);
            driver.abandon(&mut given_back);
            assert_eq!(given_back.len(), 2);
            let lost = Outcome::Failed(JobError::ModuleLost);
            assert!(given_back.iter().all(|job| job.outcome() == lost));
        }
        // The driver is gone, its runners are not, and their module takes nothing.
        assert_eq!(stuck.load(Ordering::Relaxed), 2);
        let mut room = [7; 64];
        let mut job = Job::in_place(&mut room);
        job.arm(&session, &[3; 16], 64);
        assert_eq!(queued(&device, &stuck).submit(job).map_err(|(_, why)| why), Err(Refusal::Lost));
        device.shut(false);
        while stuck.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
        assert_eq!(rooms, [[7; 64]; 2]);
    }

    /// A device that gives back, as a digest, which signals its caller's thread holds off: the kernel's own word.
    struct Masked;

    impl Device for Masked {
        type Key = ();

        fn takes(&self, _: Algorithm, _: usize, _: usize) -> bool {
            true
        }

        fn open_key(&self, _: Spec, _: &[u8]) -> Result<(), Failure> {
            Ok(())
        }

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
        let mut driver = Queued::new(profile, 1, Algorithm::ALL.into(), Arc::new(Masked), Arc::default());
        let mut job = Job::apart(&[7; 64], &mut []);
        job.arm(&session, &[], 64);
        driver.submit(job).map_err(drop).unwrap();
        let mut done = Vec::new();
        driver.poll(&mut done, Nanos::from_millis(5_000));
        let mask = u64::from_str_radix(std::str::from_utf8(done[0].tag()).unwrap(), 16).unwrap();
        // All that can be blocked: not KILL and STOP, nor the two that the C library keeps for itself.
        let kept =
            [libc::SIGKILL, libc::SIGSTOP, 32, 33].iter().fold(0, |mask, number| mask | 1 << (number - 1));
        assert_eq!(mask | kept, u64::MAX, "{mask:#x}");
    }

    /// A device that closes keys when it is told to, and tells on which thread.
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
            let (closes, told) = &*self.0.closes;
            // Not for ever, so that the thread of the test sees what it did.
            let patience = Duration::from_secs(10);
            drop(told.wait_timeout_while(closes.lock().unwrap(), patience, |closes| !*closes).unwrap());
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
        let (session, mut room) = (cbc(Padding::None, Direction::Encrypt), [7; 64]);
        let profile = Profile { name: "stuck".to_owned(), detail: String::new(), width: 1, emulated: false };
        let device_of_driver = Arc::new(device.clone());
        let mut driver = Queued::new(profile, 1, Algorithm::ALL.into(), device_of_driver, Arc::clone(&stuck));
        let mut job = Job::in_place(&mut room);
        job.arm(&session, &[3; 16], 64);
        driver.submit(job).map_err(drop).unwrap();
        assert_eq!(driver.poll(&mut Vec::new(), Nanos::from_millis(5_000)), 1);
        driver.forget(&|_| true);
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
        let mut room = [7; 64];
        let mut driver = queued(&device, &stuck);
        let mut job = Job::in_place(&mut room);
        job.arm(&session, &[3; 16], 64);
        driver.submit(job).map_err(drop).unwrap();
        driver.poll(&mut Vec::new(), Nanos::from_millis(5_000));
        let desk = Arc::downgrade(&driver.desk);
        drop(driver);
        assert!(desk.upgrade().is_none(), "keys live as long as their desk");
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
            task.room.fill(0xEE);
            self.request.map_or(Ok(()), Err)
        }
    }

    #[test]
    fn what_the_kernel_says_becomes_the_job_s_error_and_its_text_stays() {
        let seal = || cbc(Padding::None, Direction::Encrypt);
        let open =
            || Session::new(Algorithm::Aes128Gcm, Direction::Decrypt, Padding::None, &[9; 16]).unwrap();
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
            let profile =
                Profile { name: "fails".to_owned(), detail: String::new(), width: 1, emulated: false };
            let mut room = [7; 64];
            let mut job = Job::in_place(&mut room);
            job.arm(&session, &[3; 16][..session.algorithm().iv_bytes()], 64);
            let mut driver = Queued::new(profile, 1, Algorithm::ALL.into(), Arc::new(device), Arc::default());
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
}
