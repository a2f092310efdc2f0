//! Descriptors that clients send, and how they are closed. Who sends one chooses what it stands for, and who closes it last may wait as long as that wants: a TCP socket
//! lingers, a file waits for its server (FUSE). So a thread that serves others closes none that it has not looked at.
//!
//! `receive (with space for all that may come) -> Foreign -> believed (an eventfd, a sealed memfd), or Closer: a thread of the user's, while something waits`.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::mem::{self, MaybeUninit};
use std::net::Shutdown;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};

/// Closes for one user.
#[derive(Debug, Default)]
pub(crate) struct Closer(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Ending>,
    /// A thread is at it.
    is_running: bool,
    /// It has one in hand.
    is_closing: bool,
}

/// What is to be closed.
#[derive(Debug)]
enum Ending {
    File(OwnedFd),
    /// With what came and was not read. Others may have it as well: so it is read empty, and then it is no matter who is the last.
    Stream(UnixStream),
}

/// A descriptor that a client sent and that was not looked at.
#[derive(Debug)]
pub(crate) struct Foreign {
    file: Option<OwnedFd>,
    closer: Arc<Closer>,
}

impl Foreign {
    /// To be looked at.
    pub(crate) const fn file(&self) -> Option<&OwnedFd> {
        self.file.as_ref()
    }

    /// It was looked at, or its taker closes it by [`Closer::close`].
    pub(crate) fn believed(mut self) -> Option<OwnedFd> {
        self.file.take()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        match self.file.take() {
            Some(file) if !is_eventfd(&file) => self.closer.close(file),
            _ => {}
        }
    }
}

impl Closer {
    /// Closes a descriptor, elsewhere.
    pub(crate) fn close(self: &Arc<Self>, file: OwnedFd) {
        self.add(Ending::File(file));
    }

    /// Ends a stream both ways. Where something came on it that was not read, that is thrown away elsewhere.
    pub(crate) fn end(self: &Arc<Self>, stream: &UnixStream) {
        // It fails where the client was faster. From here on nothing more comes.
        stream.shutdown(Shutdown::Both).ok();
        let is_empty = ioctl_fionread(stream).is_ok_and(|bytes| bytes == 0);
        // Where no descriptor is to be had for it, the thread that lets go of it last closes what is in it.
        let same = if is_empty { None } else { stream.try_clone().ok() };
        same.into_iter().for_each(|same| self.add(Ending::Stream(same)));
    }

    /// How many wait, with the one that is being closed.
    pub(crate) fn count(&self) -> usize {
        let queue = self.queue();
        queue.waiting.len() + usize::from(queue.is_closing)
    }

    /// Whether so many wait that no more is taken of this user.
    pub(crate) fn is_full(&self) -> bool {
        self.count() >= WAITING_MAX
    }

    fn add(self: &Arc<Self>, ending: Ending) {
        if cfg!(mutant = "host_closes_itself") {
            return ending.close(self);
        }
        let mut queue = self.queue();
        queue.waiting.push_back(ending);
        if mem::replace(&mut queue.is_running, true) {
            return;
        }
        drop(queue);
        let own = Arc::clone(self);
        let thread = thread::Builder::new().name("evener-close".to_owned()).stack_size(STACK_BYTES);
        if thread.spawn(move || own.run()).is_err() {
            // None is to be had.
            self.run();
        }
    }

    /// Closes one after the other until none is left.
    fn run(self: &Arc<Self>) {
        loop {
            let mut queue = self.queue();
            let next = queue.waiting.pop_front();
            (queue.is_running, queue.is_closing) = (next.is_some(), next.is_some());
            drop(queue);
            let Some(next) = next else { return };
            next.close(self);
        }
    }

    /// The queue is whole between any two statements, so a panic elsewhere does not spoil it.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ending {
    fn close(self, closer: &Arc<Closer>) {
        match self {
            Self::File(file) => drop(file),
            Self::Stream(stream) => {
                let (mut space, mut descriptors) = ([0; 4096], Vec::new());
                while !matches!(receive(&stream, &mut space, closer, &mut descriptors), Ok(0) | Err(_)) {
                    // At once, for a stream may hold more than the host may have open.
                    descriptors.drain(..).for_each(|file| drop(file.believed()));
                }
            }
        }
    }
}

/// Receives bytes, and all descriptors that came beside them: those for which there is no space the system would close at once, in this thread.
pub(crate) fn receive(
    stream: &UnixStream,
    into: &mut [u8],
    closer: &Arc<Closer>,
    descriptors: &mut Vec<Foreign>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(stream, &mut [IoSliceMut::new(into)], &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            let foreign = files.map(|file| Foreign { file: Some(file), closer: Arc::clone(closer) });
            descriptors.extend(foreign);
        }
    }
    Ok(got.bytes)
}

/// Whether descriptors lie beside the next bytes, of which `into` may be given some; they stay where they are.
pub(crate) fn brings_descriptors(stream: &UnixStream, into: &mut [u8]) -> Result<bool, Errno> {
    // Without space for them the system gives none, and says so.
    let mut none = RecvAncillaryBuffer::default();
    let seen = recvmsg(stream, &mut [IoSliceMut::new(into)], &mut none, RecvFlags::PEEK)?;
    Ok(seen.flags.contains(ReturnFlags::CTRUNC))
}

/// Whether a descriptor can be written to without ever waiting for its reader, and closed: a call to a client that does not listen must not
/// stop the module's thread.
pub(crate) fn is_eventfd(file: &OwnedFd) -> bool {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    link.is_ok_and(|link| link.as_os_str() == "anon_inode:[eventfd]")
}

/// Descriptors that one message of a stream carries at most (`SCM_MAX_FD` of unix(7)).
const DESCRIPTORS_MAX: usize = 253;

/// Descriptors of a user that may wait: from then on no more are received of it, and it is let in no more. One message may bring 253 beyond that. Assumed, not measured: 64; of a client that means well none ever waits.
const WAITING_MAX: usize = 64;

/// The same of all users: then no client is let in for a while, for each takes a descriptor of the host's. Assumed, not measured: 1024, four times what
/// is kept back.
pub(crate) const WAITING_MAX_OF_ALL: usize = 1024;

/// It calls close and recvmsg.
const STACK_BYTES: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::os::fd::AsFd as _;

    use rustix::event::{EventfdFlags, eventfd};
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use super::*;

    #[test]
    fn what_is_known_not_to_wait_needs_no_thread() {
        let closer = Arc::new(Closer::default());
        let (client, host) = UnixStream::pair().unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let file = eventfd(0, EventfdFlags::empty()).unwrap();
        let files = [file.as_fd()];
        assert!(beside.push(SendAncillaryMessage::ScmRights(&files)));
        sendmsg(&client, &[IoSlice::new(b"x")], &mut beside, SendFlags::empty()).unwrap();
        let mut descriptors = Vec::new();
        assert_eq!(receive(&host, &mut [0; 8], &closer, &mut descriptors), Ok(1));
        assert_eq!(descriptors.len(), 1);
        drop(descriptors);
        closer.end(&host);
        assert_eq!(closer.count(), 0);
    }
}
