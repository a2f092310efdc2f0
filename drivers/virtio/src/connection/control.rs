//! The control part of a connection: messages over the socket, in the order of the profile.
//!
//! `connect -> ask -> agree -> share -> start -> configuration`, then `create` and `close` of sessions. What needs no answer in between goes
//! out together ([`Batch`]): a program that begins wakes the host five times, waits for it twice, and makes its region while the host
//! answers. Each answer has a deadline; whatever goes wrong here is the end of the connection.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use evener_core::driver::SILENCE_MAX;
use evener_fd::{CheckedFd, not_in_children};
use evener_ring::virtqueue::Events;
use evener_wire::{
    CONFIG_BYTES, Config, ConfigMessage, CreateSession, HEADER_BYTES, Header, MemoryTable, Message, Region,
    RingAddresses, RingDescriptor, RingState, SESSION_BYTES, features, number, protocol_features,
};
use rustix::fs::stat;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, send, sendmsg, socket_with,
};
use rustix::process::geteuid;
use zeroize::Zeroizing;

use crate::connection::error::ConnectionError;
use crate::connection::layout::{BASE, Parts};
use crate::module_name::Trusted;

/// The other side as it opens and closes sessions.
pub(crate) trait SessionControl {
    /// Opens a session: its id, or a negative number of the wire's.
    fn create(&mut self, session: &CreateSession<'_>) -> Result<Result<u64, i64>, ConnectionError>;

    /// Closes a session.
    fn close(&mut self, id: u64) -> Result<(), ConnectionError>;
}

/// The socket.
#[derive(Debug)]
pub(crate) struct Control {
    socket: CheckedFd,
}

/// What the two sides agreed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreement {
    pub(crate) events: Events,
    /// Whether the host was asked what it says of itself; a back end of other hands may say nothing.
    pub(crate) has_config: bool,
}

impl Control {
    /// Connects to a host of one whom the program trusts with its keys: before anything is sent, by what the kernel says of who listens.
    pub(crate) fn connect(path: &Path, trusted: &Trusted) -> Result<Self, ConnectionError> {
        let failed = |errno: Errno| ConnectionError::system("its socket", errno.into());
        let address = SocketAddrUnix::new(path).map_err(failed)?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let socket = socket.map_err(failed)?;
        // The first also limits the wait for a host that accepts no client.
        for way in [Timeout::Send, Timeout::Recv] {
            set_socket_timeout(&socket, way, Some(SILENCE_MAX.into())).map_err(failed)?;
        }
        let connected =
            until(Instant::now() + Duration::from(SILENCE_MAX), || Ok(connect(&socket, &address)?));
        connected.map_err(|error| ConnectionError::system("its socket", error))?;
        let uid = socket_peercred(&socket).map_err(failed)?.uid.as_raw();
        if !trusted.has(uid, geteuid().as_raw()) {
            return Err(ConnectionError::Stranger { uid });
        }
        check_directory(path, trusted)?;
        let socket = not_in_children(socket).map_err(|error| ConnectionError::system("its socket", error))?;
        Ok(Self { socket })
    }

    /// Asks what the host can do; [`Control::agree`] reads the answers. A back end without protocol features need not answer the second
    /// question, which is read only where the first answer offers them.
    pub(crate) fn ask(&self) -> Result<(), ConnectionError> {
        let mut batch = Batch::default();
        for message in [Message::SetOwner, Message::GetFeatures, Message::GetProtocolFeatures] {
            batch.add(message, &[]);
        }
        self.send_batch(&batch)
    }

    /// Settles what both sides can do, by the answers to [`Control::ask`].
    pub(crate) fn agree(&self) -> Result<Agreement, ConnectionError> {
        const NEEDED: u64 = features::VERSION_1 | features::PROTOCOL | features::INDIRECT;
        let offered = self.receive_number(Message::GetFeatures)?;
        if offered & NEEDED != NEEDED {
            return Err(ConnectionError::Lacks("version 1, protocol features or indirect descriptors"));
        }
        let protocol = self.receive_number(Message::GetProtocolFeatures)?;
        match protocol_features::clients_of_full(protocol) {
            Some((clients, true)) => return Err(ConnectionError::FullForUser { clients }),
            Some((clients, false)) => return Err(ConnectionError::Full { clients }),
            None => {}
        }
        if protocol & protocol_features::CRYPTO_SESSION == 0 {
            return Err(ConnectionError::Lacks("crypto sessions"));
        }
        let protocol = protocol & (protocol_features::CRYPTO_SESSION | protocol_features::CONFIG);
        let chosen = offered & (NEEDED | features::EVENT_IDX);
        let has_config = protocol & protocol_features::CONFIG != 0;
        let mut batch = Batch::default();
        batch.add(Message::SetProtocolFeatures, &protocol.to_ne_bytes());
        batch.add(Message::SetFeatures, &chosen.to_ne_bytes());
        if has_config {
            let size = u32::try_from(CONFIG_BYTES).expect("a few bytes");
            let question = ConfigMessage { offset: 0, size, flags: 0 }.to_bytes(&[0; CONFIG_BYTES]);
            batch.add(Message::GetConfig, &question);
        }
        self.send_batch(&batch)?;
        let events = if chosen & features::EVENT_IDX == 0 { Events::Flags } else { Events::Index };
        Ok(Agreement { events, has_config })
    }

    /// Hands over the memory and says where the queue lies in it.
    pub(crate) fn share(&self, memory: &File, bytes: usize, parts: Parts) -> Result<(), ConnectionError> {
        let region =
            Region { guest_address: BASE, size_bytes: bytes as u64, user_address: BASE, offset_bytes: 0 };
        let table = MemoryTable::new(&[region]).expect("one region is not too many");
        let mut batch = Batch::beside(memory.as_fd());
        batch.add(Message::SetMemTable, &table.to_bytes());
        let state = |number: u16| RingState { ring: 0, number: number.into() }.to_bytes();
        batch.add(Message::SetRingNum, &state(parts.size));
        batch.add(Message::SetRingBase, &state(0));
        let [descriptors, available, used] = parts.addresses();
        let addresses = RingAddresses { ring: 0, flags: 0, descriptors, used, available, log: 0 };
        batch.add(Message::SetRingAddr, &addresses.to_bytes());
        self.send_batch(&batch)
    }

    /// Hands over both events; the host serves the queue from here on.
    pub(crate) fn start(&self, kick: &CheckedFd, call: &CheckedFd) -> Result<(), ConnectionError> {
        let failed = |error| ConnectionError::system("an event", error);
        let ring = RingDescriptor { ring: 0, has_file: true }.to_bytes();
        let mut batch = Batch::beside(call.checked().map_err(failed)?);
        batch.add(Message::SetRingCall, &ring);
        self.send_batch(&batch)?;
        let mut batch = Batch::beside(kick.checked().map_err(failed)?);
        batch.add(Message::SetRingKick, &ring);
        batch.add(Message::SetRingEnable, &RingState { ring: 0, number: 1 }.to_bytes());
        self.send_batch(&batch)
    }

    /// What the host says of itself: the answer to the question of [`Control::agree`].
    pub(crate) fn configuration(&self) -> Result<Config, ConnectionError> {
        let mut answer = [0; ConfigMessage::HEAD_BYTES + CONFIG_BYTES];
        self.receive(Message::GetConfig, &mut answer)?;
        ConfigMessage::parse(&answer)?;
        Ok(Config::parse(&answer[ConfigMessage::HEAD_BYTES..])?)
    }

    fn receive_number(&self, message: Message) -> Result<u64, ConnectionError> {
        let mut answer = [0; 8];
        self.receive(message, &mut answer)?;
        Ok(number(&answer)?)
    }

    /// Sends header and payload together.
    fn send(&self, message: Message, payload: &[u8]) -> Result<(), ConnectionError> {
        let mut batch = Batch::default();
        batch.add(message, payload);
        self.send_batch(&batch)
    }

    /// Sends messages at once, with the file beside the first byte.
    fn send_batch(&self, batch: &Batch<'_>) -> Result<(), ConnectionError> {
        let failed = |error| gone_or("a message to the host", error);
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let files: Vec<BorrowedFd<'_>> = batch.file.into_iter().collect();
        if !files.is_empty() {
            beside.push(SendAncillaryMessage::ScmRights(&files));
        }
        let bytes = &batch.bytes[..];
        let (slices, deadline) = ([IoSlice::new(bytes)], Instant::now() + Duration::from(SILENCE_MAX));
        let first = || Ok(sendmsg(self.socket.checked()?, &slices, &mut beside, SendFlags::NOSIGNAL)?);
        let mut sent = until(deadline, first).map_err(failed)?;
        // A stream socket takes short messages whole; a signal may cut a wait for space.
        while sent < bytes.len() {
            let next = || Ok(send(self.socket.checked()?, &bytes[sent..], SendFlags::NOSIGNAL)?);
            sent += until(deadline, next).map_err(failed)?;
        }
        Ok(())
    }

    /// Reads the answer to `message`, which has the length of `payload`.
    fn receive(&self, message: Message, payload: &mut [u8]) -> Result<(), ConnectionError> {
        let deadline = Instant::now() + Duration::from(SILENCE_MAX);
        let mut header = [0; HEADER_BYTES];
        self.read_whole(&mut header, deadline)?;
        let header = Header::parse(&header)?;
        let fits = usize::try_from(header.payload_bytes).is_ok_and(|bytes| bytes == payload.len());
        if header.message != message || !header.is_reply || !fits {
            return Err(ConnectionError::Unasked);
        }
        self.read_whole(payload, deadline)
    }

    /// Fills `space`, at most until `deadline`, or for one read of [`SILENCE_MAX`] beyond.
    fn read_whole(&self, mut space: &mut [u8], deadline: Instant) -> Result<(), ConnectionError> {
        while !space.is_empty() {
            let read =
                until(deadline, || Ok(recv(self.socket.checked()?, &mut *space, RecvFlags::empty())?.0));
            match read.map_err(|error| gone_or("the host's answer", error))? {
                0 => return Err(ConnectionError::Gone),
                read if read < space.len() && Instant::now() >= deadline => {
                    return Err(ConnectionError::Silent);
                }
                read => space = &mut space[read..],
            }
        }
        Ok(())
    }
}

/// Messages that go out together. A file belongs to the message whose first byte it lies beside, so each with a file begins a batch.
#[derive(Default)]
struct Batch<'f> {
    bytes: Zeroizing<Vec<u8>>,
    file: Option<BorrowedFd<'f>>,
}

impl<'f> Batch<'f> {
    fn beside(file: BorrowedFd<'f>) -> Self {
        Self { bytes: Zeroizing::default(), file: Some(file) }
    }

    fn add(&mut self, message: Message, payload: &[u8]) {
        let payload_bytes = u32::try_from(payload.len()).expect("a message is short");
        // A key is the only message of its batch: what grows is not copied elsewhere with a key in it.
        self.bytes.reserve_exact(HEADER_BYTES + payload.len());
        self.bytes.extend_from_slice(&Header::request(message, payload_bytes).to_bytes());
        self.bytes.extend_from_slice(payload);
    }
}

/// Whether only those whom the program trusts can put another socket in this one's place. In a directory whose files only their owners may remove (mode 1777, as /tmp) no other user can
/// take away what is there; who puts a socket there first is told from a host by its user.
fn check_directory(path: &Path, trusted: &Trusted) -> Result<(), ConnectionError> {
    let parent =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let about = stat(parent).map_err(|errno| ConnectionError::system("its directory", errno.into()))?;
    let is_shared = about.st_mode & 0o022 != 0 && about.st_mode & 0o1000 == 0;
    if (is_shared || !trusted.has(about.st_uid, geteuid().as_raw())) && !cfg!(mutant = "any_directory") {
        return Err(ConnectionError::OpenDirectory {
            directory: parent.to_owned(),
            uid: about.st_uid,
            mode: about.st_mode & 0o7777,
        });
    }
    Ok(())
}

impl SessionControl for Control {
    fn create(&mut self, session: &CreateSession<'_>) -> Result<Result<u64, i64>, ConnectionError> {
        let mut payload = Zeroizing::new([0; SESSION_BYTES]);
        session.write(&mut payload)?;
        self.send(Message::CreateSession, &*payload)?;
        let mut answer = Zeroizing::new([0; SESSION_BYTES]);
        self.receive(Message::CreateSession, &mut *answer)?;
        let id = CreateSession::answered_id(&*answer)?;
        Ok(u64::try_from(id).map_err(|_| id))
    }

    /// No answer comes, and there is space for the message though the host stands still: it has read what was sent
    /// before it answered the last `create`, so that no more of these wait than sessions are open.
    fn close(&mut self, id: u64) -> Result<(), ConnectionError> {
        self.send(Message::CloseSession, &id.to_ne_bytes())
    }
}

/// A host that ends while messages to it are unread is seen by an error instead of the stream's end.
fn gone_or(step: &'static str, error: io::Error) -> ConnectionError {
    match error.kind() {
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => ConnectionError::Gone,
        _ => ConnectionError::system(step, error),
    }
}

/// Repeats a call that signals end, until `deadline`. A socket's own limit begins anew with each call, so beside a timer that
/// rings more often it is none.
fn until<T>(deadline: Instant, mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted && Instant::now() < deadline => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => return Err(ErrorKind::TimedOut.into()),
            other => return other,
        }
    }
}

impl Control {
    /// What its end is seen at.
    pub(crate) const fn socket(&self) -> &CheckedFd {
        &self.socket
    }
}
