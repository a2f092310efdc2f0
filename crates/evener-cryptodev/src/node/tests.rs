//! The node between a kernel of the test's own and its drivers: what a client ended or left leaves nothing in any of them.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use evener::{CoreDrivers, Setup, run};
use evener_core::{Algorithm, Direction, HasEnded, InlineDriver, Profile, Session, SessionId, SessionRef};
use evener_driver_kernel::ocf::{Call, CryptOp, SessionOp};

use super::*;

/// What a driver has made of sessions, and the sessions themselves.
#[derive(Clone, Default)]
struct OpenKeys {
    made: Arc<Mutex<BTreeSet<SessionId>>>,
    opened: Arc<Mutex<Vec<Weak<Session>>>>,
}

/// Leaves each text as it is.
struct Watched {
    profile: Profile,
    open_keys: OpenKeys,
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
            self.open_keys.made.lock().unwrap().insert(job.session().id());
            if let SessionRef::Shared(session) = job.session_ref() {
                self.open_keys.opened.lock().unwrap().push(Arc::downgrade(&session));
            }
            job.done(job.input_bytes());
        }
    }

    fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.open_keys.made.lock().unwrap().retain(|id| !has_ended(*id));
    }
}

/// The kernel's end of the node.
struct Kernel(UnixDatagram);

impl Kernel {
    /// Sends a message and returns the body of the answer.
    fn send(&self, kind: u32, body: &[u8]) -> Result<Vec<u8>, i32> {
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
        self.send(fuse::OPEN, &[]).unwrap()[..8].try_into().unwrap()
    }

    /// The last round of a call: all of the client's memory is there.
    fn call(&self, client: [u8; 8], call: Call, data: &[u8], space: usize) -> Result<Vec<u8>, i32> {
        let number = u32::try_from(u64::from(call.number())).unwrap();
        let lengths = [data.len(), space].map(|bytes| u32::try_from(bytes).unwrap().to_ne_bytes());
        let head = [[0_u32, number].map(u32::to_ne_bytes).concat(), vec![0; 8], lengths.concat()].concat();
        let answer = self.send(fuse::IOCTL, &[&client[..], &head, data].concat())?;
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
fn with_node(client: impl FnOnce(&Kernel, &OpenKeys) + Send) {
    let (server_end, kernel_end) = UnixDatagram::pair().unwrap();
    kernel_end.set_read_timeout(Some(LATE)).unwrap();
    let node = Node { cuse: OwnedFd::from(server_end).into(), buffer: vec![0; fuse::MESSAGE_BYTES_MAX] };
    let (open_keys, cancel, mut spaces) = (OpenKeys::default(), Cancel::default(), vec![vec![0; 256]; 2]);
    let profile = Profile { name: "watched".into(), detail: String::new(), width: 1, emulated: false };
    let driver = Watched { profile, open_keys: open_keys.clone() };
    run(Setup { callers: 1, ..Setup::default() }, |runtime| {
        let mut caller = runtime.caller(CoreDrivers::new(Box::new(driver), None));
        let jobs = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
        thread::scope(|scope| {
            let ends = CancelOnDrop(cancel.clone());
            scope.spawn(|| {
                let (kernel, _ends) = (Kernel(kernel_end), ends);
                client(&kernel, &open_keys);
            });
            node.serve(&mut caller, jobs, &cancel).unwrap();
        });
    });
}

/// Whether driver and runtime have sessions now, and how many there were.
fn open_keys(open_keys: &OpenKeys) -> (usize, usize, usize) {
    let opened = open_keys.opened.lock().unwrap();
    let alive = opened.iter().filter(|session| session.strong_count() > 0).count();
    (open_keys.made.lock().unwrap().len(), alive, opened.len())
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
        assert_eq!(open_keys(all), (3, 3, 3));
        kernel.end(one, sessions[0]);
        assert_eq!(open_keys(all), (2, 2, 3));
        kernel.send(fuse::RELEASE, &one).unwrap();
        assert_eq!(open_keys(all), (1, 1, 3));
        kernel.request(other, sessions[2], Call::Crypt);
        kernel.end(other, sessions[2]);
        assert_eq!(open_keys(all), (0, 0, 4));
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
        assert_eq!(open_keys(all), (0, 0, 1));
    });
}
