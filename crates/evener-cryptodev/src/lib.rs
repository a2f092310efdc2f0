//! A `/dev/crypto` in user space: OCF, the papers' interface, for programs that know nothing else, and for tests.
//!
//! The way of one request: the client's `ioctl` -> the kernel's CUSE -> a message on `/dev/cuse` (`fuse.rs`) -> a call with
//! the memory that it names (`call.rs`; the kernel fetches that in a second round, on our word which) -> a session and a
//! job (`clients.rs`) -> the runtime -> the reply. One that the client leaves and fetches later waits (`queue.rs`) until
//! somebody asks for it, or nobody for anything, and then runs with all others that wait. A session that its client ends, or leaves
//! behind, ends in the runtime as well: no driver keeps anything of its key.
//!
//! Each request takes three or four changes of process and three copies: hundreds of microseconds where a device takes
//! tens. Of those whose clients wait for the answer one is worked on at a time.
#![forbid(unsafe_code)]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod call;
mod clients;
mod fuse;
mod outcome;
mod queue;

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;

use evener::{Caller, Cancel};
use evener_core::Job;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::call::Answer;
use crate::clients::Clients;
use crate::fuse::{Message, Reply, Request};

/// Longest text of a request, and so the memory that [`serve`]'s job needs: what CUSE hands over at once (32 pages) less
/// the request's other parts.
pub const TEXT_BYTES_MAX: usize = 120 << 10;

/// The door of the kernel's CUSE.
const CUSE: &str = "/dev/cuse";

/// How often a server that nobody asks looks whether it is to stop.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// How long requests that were left wait for others to run with, where nobody asks for them: several rounds of a call. A guess.
const LINGER: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Messages that pass requests which were left, before these run: three bring one of them, so this is a burst of 16. A guess.
const PASSED_MAX: u32 = 48;

/// Why there can be no node.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel has no CUSE, or keeps it shut.
    #[error(
        "no node can be made: {CUSE} cannot be opened ({0}); it needs the kernel's module `cuse` and root's rights"
    )]
    NoCuse(io::Error),
    /// A name that no node can have.
    #[error("{0:?} is no name of a node below /dev: letters, digits, - and _")]
    BadName(String),
    /// The kernel did not take the node, or broke off.
    #[error("the kernel refused the node: {0}")]
    Refused(io::Error),
    /// What came is not as the protocol says.
    #[error("the kernel sent a message that is none")]
    Garbled,
}

/// What a node did for its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// All requests.
    pub requests: u64,
    /// Those among them that were left, to be fetched later.
    pub left: u64,
}

/// A node that exists as long as this does.
pub struct Node {
    cuse: File,
    buffer: Vec<u8>,
}

impl Node {
    /// Makes `/dev/NAME`.
    ///
    /// # Errors
    ///
    /// An [`Error`] that says what is missing.
    pub fn new(name: &str) -> Result<Self, Error> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
            return Err(Error::BadName(name.to_owned()));
        }
        let cuse = OpenOptions::new().read(true).write(true).open(Path::new(CUSE)).map_err(Error::NoCuse)?;
        let mut node = Self { cuse, buffer: vec![0; fuse::MESSAGE_BYTES_MAX] };
        let first = node.next()?.map(|message| (message.unique, message.request));
        let Some((unique, Request::Init)) = first else { return Err(Error::Garbled) };
        node.cuse.write_all(&fuse::init_reply(unique, name)).map_err(Error::Refused)?;
        Ok(node)
    }

    /// Answers requests until `cancel`. Jobs run by `caller`; `jobs`, at least one, bring the memory for them, of [`TEXT_BYTES_MAX`] and
    /// a block each: so many of those that clients left run side by side.
    ///
    /// # Errors
    ///
    /// Where the kernel breaks off.
    pub fn serve<'m>(
        mut self,
        caller: &mut Caller<'_, 'm>,
        mut jobs: Vec<Box<Job<'m>>>,
        cancel: &Cancel,
    ) -> Result<Served, Error> {
        let mut served = Served::default();
        let mut clients = Clients::default();
        let mut passed = 0;
        while !cancel.is_cancelled() {
            let waits = clients.queue.is_waiting();
            let is_due = clients.queue.is_missed() || passed >= PASSED_MAX;
            let mut answer = None;
            if waits && (is_due || !self.has_message(&LINGER)?) {
                served.left += clients.queue.run(&mut jobs, |jobs| caller.crypt(jobs));
                passed = 0;
            } else {
                answer = self.turn(caller, &mut jobs, &mut clients, &mut served)?;
            }
            clients.take_ended().into_iter().for_each(|session| caller.end_session(session));
            if let Some((unique, reply)) = answer {
                self.say(&reply.bytes(unique))?;
                passed = if waits { passed + 1 } else { 0 };
            }
            for sleeper in clients.queue.woken() {
                self.say(&fuse::wake(sleeper))?;
            }
        }
        served.requests += served.left;
        Ok(served)
    }

    /// The answer to the next message, where one comes and wants one.
    fn turn<'m>(
        &mut self,
        caller: &mut Caller<'_, 'm>,
        jobs: &mut Vec<Box<Job<'m>>>,
        clients: &mut Clients,
        served: &mut Served,
    ) -> Result<Option<(u64, Reply)>, Error> {
        if !self.has_message(&GLANCE)? {
            return Ok(None);
        }
        let Some(message) = self.next()? else { return Ok(None) };
        let unique = message.unique;
        let run = |jobs: &mut Vec<Box<Job<'m>>>| {
            served.requests += 1;
            let idle = jobs.split_off(1);
            caller.crypt(jobs);
            jobs.extend(idle);
        };
        Ok(answer(message, clients, run, jobs).map(|reply| (unique, reply)))
    }

    /// A client that was killed meanwhile takes no reply: `ENOENT`.
    fn say(&self, message: &[u8]) -> Result<(), Error> {
        match (&self.cuse).write_all(message) {
            Err(error) if error.raw_os_error() != Some(Errno::NOENT.raw_os_error()) => {
                Err(Error::Refused(error))
            }
            _ => Ok(()),
        }
    }

    /// Whether a message is there, after so long at most.
    fn has_message(&self, patience: &Timespec) -> Result<bool, Error> {
        let mut asked = [PollFd::from_borrowed_fd(self.cuse.as_fd(), PollFlags::IN)];
        match poll(&mut asked, Some(patience)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(Error::Refused(error.into())),
        }
    }

    fn next(&mut self) -> Result<Option<Message<'_>>, Error> {
        match self.cuse.read(&mut self.buffer) {
            Ok(bytes) => Message::parse(&self.buffer[..bytes]).map(Some).ok_or(Error::Garbled),
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::INTR | Errno::NOENT)) => {
                Ok(None)
            }
            Err(error) => Err(Error::Refused(error)),
        }
    }
}

/// Longest name of a node.
const NAME_BYTES_MAX: usize = 32;

/// What is to be said to a message; nothing to those that want no answer.
fn answer<'m>(
    message: Message<'_>,
    clients: &mut Clients,
    run: impl FnOnce(&mut Vec<Box<Job<'m>>>),
    burst: &mut Vec<Box<Job<'m>>>,
) -> Option<Reply> {
    Some(match message.request {
        Request::Poll { client, sleeper } => Reply::Polled(clients.queue.poll(client, sleeper)),
        Request::Open => clients.come().map_or_else(Reply::Error, Reply::Opened),
        Request::Release { client } => {
            clients.go(client);
            Reply::Empty
        }
        Request::Ioctl(ioctl) => match call::answer(&ioctl, clients, run, burst) {
            Ok(Answer::Fetch { input, output }) => Reply::Retry { input, output },
            Ok(Answer::Done(data)) => Reply::Ioctl(data),
            Err(errno) => Reply::Error(errno),
        },
        Request::Interrupt => return None,
        Request::Init | Request::Other => Reply::Error(Errno::NOSYS),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;
    use std::sync::{Arc, Mutex, Weak};
    use std::thread;
    use std::time::{Duration, Instant};

    use evener::{CpuKit, Setup, run};
    use evener_core::{Algorithm, Direction, InlineDriver, IsOver, Profile, Session, SessionId, SessionRef};
    use evener_driver_kernel::ocf::{Call, CryptOp, SessionOp};

    use super::*;

    /// What a driver has made of sessions, and the sessions themselves.
    #[derive(Clone, Default)]
    struct Kept {
        made: Arc<Mutex<BTreeSet<SessionId>>>,
        seen: Arc<Mutex<Vec<Weak<Session>>>>,
    }

    /// Leaves each text as it is.
    struct Watched {
        profile: Profile,
        kept: Kept,
    }

    impl InlineDriver for Watched {
        fn profile(&self) -> &Profile {
            &self.profile
        }

        fn supports(&self, _: Algorithm, _: Direction) -> bool {
            true
        }

        fn run(&mut self, burst: &mut [Box<Job<'_>>]) {
            for job in burst {
                self.kept.made.lock().unwrap().insert(job.session().id());
                if let SessionRef::Shared(session) = job.session_ref() {
                    self.kept.seen.lock().unwrap().push(Arc::downgrade(&session));
                }
                job.done(job.input_bytes());
            }
        }

        fn forget(&mut self, is_over: IsOver<'_>) {
            self.kept.made.lock().unwrap().retain(|id| !is_over(*id));
        }
    }

    /// The kernel's end of the node.
    struct Kernel(UnixDatagram);

    impl Kernel {
        /// Sends a message and returns the body of the answer.
        fn ask(&self, kind: u32, body: &[u8]) -> Result<Vec<u8>, i32> {
            let bytes = u32::try_from(40 + body.len()).unwrap();
            let mut message = [bytes, kind, 7, 0, 0, 0, 0, 0, 1, 0].map(u32::to_ne_bytes).concat();
            message.extend(body);
            self.0.send(&message).unwrap();
            let mut answer = vec![0; fuse::MESSAGE_BYTES_MAX];
            let bytes = self.0.recv(&mut answer).unwrap();
            match i32::from_ne_bytes(answer[4..8].try_into().unwrap()) {
                0 => Ok(answer[16..bytes].to_vec()),
                error => Err(-error),
            }
        }

        fn open(&self) -> [u8; 8] {
            self.ask(fuse::OPEN, &[]).unwrap()[..8].try_into().unwrap()
        }

        /// The last round of a call: all of the client's memory is there.
        fn call(&self, client: [u8; 8], call: Call, data: &[u8], room: usize) -> Result<Vec<u8>, i32> {
            let number = u32::try_from(u64::from(call.number())).unwrap();
            let lengths = [data.len(), room].map(|bytes| u32::try_from(bytes).unwrap().to_ne_bytes());
            let head =
                [[0_u32, number].map(u32::to_ne_bytes).concat(), vec![0; 8], lengths.concat()].concat();
            let answer = self.ask(fuse::IOCTL, &[&client[..], &head, data].concat())?;
            Ok(answer[16..].to_vec())
        }

        fn session(&self, client: [u8; 8]) -> u32 {
            let op = SessionOp { cipher: 11, key_bytes: 16, key: 0x2000, ..SessionOp::default() };
            let data = [op.bytes(), vec![1; 16]].concat();
            let written = self.call(client, Call::OpenSession, &data, SessionOp::BYTES).unwrap();
            SessionOp::read(&written).unwrap().session
        }

        fn end(&self, client: [u8; 8], session: u32) {
            self.call(client, Call::CloseSession, &session.to_ne_bytes(), 0).unwrap();
        }

        /// Has a text encrypted, at once or later.
        fn request(&self, client: [u8; 8], session: u32, call: Call) {
            let op = CryptOp { session, len: 32, src: 1, dst: 1, iv: 1, ..CryptOp::default() };
            let data = [op.bytes(), vec![5; 32], vec![3; 16]].concat();
            self.call(client, call, &data, if call == Call::Crypt { 32 } else { 0 }).unwrap();
        }

        /// Fetches what was left, as soon as it is there.
        fn fetch(&self, client: [u8; 8]) -> Vec<u8> {
            let began = Instant::now();
            while let Err(error) = self.call(client, Call::Fetch, &[], 0) {
                assert!(error == Errno::BUSY.raw_os_error() && began.elapsed() < LATE);
            }
            self.call(client, Call::Fetch, &[], CryptOp::BYTES + 32).unwrap()
        }
    }

    /// When what did not happen will not.
    const LATE: Duration = Duration::from_secs(30);

    /// Ends the server, however its client ends.
    struct CancelOnDrop(Cancel);

    impl Drop for CancelOnDrop {
        fn drop(&mut self) {
            self.0.cancel();
        }
    }

    /// Serves a client with a driver that tells what it keeps.
    fn with_node(client: impl FnOnce(&Kernel, &Kept) + Send) {
        let (ours, kernels) = UnixDatagram::pair().unwrap();
        kernels.set_read_timeout(Some(LATE)).unwrap();
        let node = Node { cuse: OwnedFd::from(ours).into(), buffer: vec![0; fuse::MESSAGE_BYTES_MAX] };
        let (kept, cancel, mut rooms) = (Kept::default(), Cancel::default(), vec![vec![0; 256]; 2]);
        let profile = Profile { name: "watched".into(), detail: String::new(), width: 1, emulated: false };
        let driver = Watched { profile, kept: kept.clone() };
        run(Setup { callers: 1, ..Setup::default() }, |runtime| {
            let mut caller = runtime.caller(CpuKit::new(Box::new(driver), None));
            let jobs = rooms.iter_mut().map(|room| Job::in_place(room)).collect();
            thread::scope(|scope| {
                let ends = CancelOnDrop(cancel.clone());
                scope.spawn(|| {
                    let (kernel, _ends) = (Kernel(kernels), ends);
                    client(&kernel, &kept);
                });
                node.serve(&mut caller, jobs, &cancel).unwrap();
            });
        });
    }

    /// Whether driver and runtime have sessions now, and how many there were.
    fn kept(kept: &Kept) -> (usize, usize, usize) {
        let seen = kept.seen.lock().unwrap();
        let there = seen.iter().filter(|session| session.strong_count() > 0).count();
        (kept.made.lock().unwrap().len(), there, seen.len())
    }

    #[test]
    fn a_session_that_its_client_ended_or_left_behind_leaves_nothing_in_any_driver() {
        with_node(|kernel, all| {
            let (one, other) = (kernel.open(), kernel.open());
            let sessions = [one, one, other].map(|client| {
                let session = kernel.session(client);
                kernel.request(client, session, Call::Crypt);
                session
            });
            assert_eq!(kept(all), (3, 3, 3));
            kernel.end(one, sessions[0]);
            assert_eq!(kept(all), (2, 2, 3));
            kernel.ask(fuse::RELEASE, &one).unwrap();
            assert_eq!(kept(all), (1, 1, 3));
            kernel.request(other, sessions[2], Call::Crypt);
            kernel.end(other, sessions[2]);
            assert_eq!(kept(all), (0, 0, 4));
        });
    }

    #[test]
    fn what_was_left_with_a_session_that_ended_runs_and_leaves_nothing_either() {
        with_node(|kernel, all| {
            let client = kernel.open();
            let session = kernel.session(client);
            kernel.request(client, session, Call::Leave);
            kernel.end(client, session);
            assert_eq!(kernel.fetch(client)[CryptOp::BYTES..], [5; 32]);
            assert_eq!(kept(all), (0, 0, 1));
        });
    }
}
