//! The node and its server: messages of the kernel's CUSE in, replies out, until it is stopped.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;

use evener::{Caller, Cancel};
use evener_core::Job;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::call::{self, Answer};
use crate::clients::Clients;
use crate::fuse::{self, Message, Reply, Request};
use crate::wiped::Wiped;

/// Where the kernel's CUSE is asked for a node.
const CUSE: &str = "/dev/cuse";

/// How often a server without requests checks whether it is to stop.
const CANCEL_CHECK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// How long asynchronous requests wait for others to run with, where no client fetches them. Assumed, not measured: 1 ms, because that is
/// several rounds of a call, in which a second request can come.
const BATCH_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Messages that overtake asynchronous requests before these run: three bring one of them, so
/// this is a burst. Assumed, not measured: 48, because a burst of 16 fills the lanes of AVX-512.
const OVERTAKES_MAX: u32 = 48;

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
    /// Those among them that were asynchronous.
    pub async_requests: u64,
}

/// A node that exists as long as this does.
pub struct Node {
    cuse: File,
    /// For one message, with keys and text in clear: zero but while that is worked on.
    buffer: Wiped,
    /// Bytes of the message that is there.
    message_bytes: usize,
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
        let mut node = Self::over(cuse);
        let first = node.next()?.map(|message| (message.unique, message.request));
        let Some((unique, Request::Init)) = first else { return Err(Error::Garbled) };
        node.cuse.write_all(&fuse::init_reply(unique, name)).map_err(Error::Refused)?;
        Ok(node)
    }

    fn over(cuse: File) -> Self {
        Self { cuse, buffer: vec![0; fuse::MESSAGE_BYTES_MAX].into(), message_bytes: 0 }
    }

    /// Answers requests until `cancel`. Jobs run by `caller`; `jobs`, at least one, bring the memory for them, of
    /// [`TEXT_BYTES_MAX`](crate::TEXT_BYTES_MAX) and
    /// a block each: so many asynchronous requests run side by side.
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
        let mut overtakes = 0;
        while !cancel.is_cancelled() {
            let waits = clients.queue.is_waiting();
            let is_due = clients.queue.is_wanted() || overtakes >= OVERTAKES_MAX;
            let mut answer = None;
            if waits && (is_due || !self.has_message(&BATCH_WAIT)?) {
                served.async_requests += clients.queue.run(&mut jobs, |jobs| caller.crypt(jobs));
                overtakes = 0;
            } else {
                answer = self.serve_one(caller, &mut jobs, &mut clients, &mut served)?;
            }
            clients.take_ended().into_iter().for_each(|session| caller.end_session(session));
            if let Some((unique, reply)) = answer {
                self.send(&reply.bytes(unique))?;
                overtakes = if waits { overtakes + 1 } else { 0 };
            }
            for sleeper in clients.queue.take_wakeups() {
                self.send(&fuse::wake(sleeper))?;
            }
        }
        served.requests += served.async_requests;
        Ok(served)
    }

    /// The answer to the next message, where one comes and wants one.
    fn serve_one<'m>(
        &mut self,
        caller: &mut Caller<'_, 'm>,
        jobs: &mut Vec<Box<Job<'m>>>,
        clients: &mut Clients,
        served: &mut Served,
    ) -> Result<Option<(u64, Reply)>, Error> {
        if !self.has_message(&CANCEL_CHECK_INTERVAL)? {
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
        let reply = answer(message, clients, run, jobs);
        self.buffer.wipe_first(self.message_bytes);
        Ok(reply.map(|reply| (unique, reply)))
    }

    /// A client that was killed meanwhile takes no reply: `ENOENT`.
    fn send(&self, message: &[u8]) -> Result<(), Error> {
        match (&self.cuse).write_all(message) {
            Err(error) if error.raw_os_error() != Some(Errno::NOENT.raw_os_error()) => {
                Err(Error::Refused(error))
            }
            _ => Ok(()),
        }
    }

    /// Whether a message is there, after so long at most.
    fn has_message(&self, timeout: &Timespec) -> Result<bool, Error> {
        let mut polled = [PollFd::from_borrowed_fd(self.cuse.as_fd(), PollFlags::IN)];
        match poll(&mut polled, Some(timeout)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(Error::Refused(error.into())),
        }
    }

    fn next(&mut self) -> Result<Option<Message<'_>>, Error> {
        match self.cuse.read(&mut self.buffer) {
            Ok(bytes) => {
                self.message_bytes = bytes;
                Message::parse(&self.buffer[..bytes]).map(Some).ok_or(Error::Garbled)
            }
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::INTR | Errno::NOENT)) => {
                Ok(None)
            }
            Err(error) => Err(Error::Refused(error)),
        }
    }
}

/// Longest name of a node.
const NAME_BYTES_MAX: usize = 32;

/// The answer to a message; nothing to those that want none.
fn answer<'m>(
    message: Message<'_>,
    clients: &mut Clients,
    run: impl FnOnce(&mut Vec<Box<Job<'m>>>),
    burst: &mut Vec<Box<Job<'m>>>,
) -> Option<Reply> {
    Some(match message.request {
        Request::Poll { client, sleeper } => Reply::Polled(clients.queue.poll(client, sleeper)),
        Request::Open => clients.open().map_or_else(Reply::Error, Reply::Opened),
        Request::Release { client } => {
            clients.close(client);
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
mod tests;
