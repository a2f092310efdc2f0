//! The node between a kernel of the test's own and its drivers: what a client ended or left leaves nothing in any of them.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use evener::{CoreDrivers, Setup, run};
use evener_core::{Algorithm, Direction, HasEnded, InlineDriver, Profile, Session, SessionId, SessionRef};
use evener_driver_kernel::ocf::{Call, CryptOp, SessionOp};

use zeroize::{Zeroize as _, Zeroizing};

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

/// Turns every bit of a text.
struct Inverting(Profile);

impl InlineDriver for Inverting {
    fn profile(&self) -> &Profile {
        &self.0
    }

    fn supports(&self, _: Algorithm, _: Direction) -> bool {
        true
    }

    fn run(&mut self, burst: &mut [Box<Job<'_>>]) {
        for job in burst {
            let bytes = job.input_bytes();
            job.space_mut()[..bytes].iter_mut().for_each(|byte| *byte = !*byte);
            job.done(bytes);
        }
    }

    fn evict(&mut self, _: HasEnded<'_>) {}
}

/// The kernel's end of the node.
struct Kernel(UnixDatagram);

impl Kernel {
    /// Sends a message and returns the body of the answer.
    fn send(&self, kind: u32, body: &[u8]) -> Result<Vec<u8>, i32> {
        self.0.send(&message(kind, body)).unwrap();
        let mut answer = Zeroizing::new(vec![0; fuse::MESSAGE_BYTES_MAX]);
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
        let mut answer = self.send(fuse::IOCTL, &ioctl_body(client, call, data, space))?;
        let came = answer[16..].to_vec();
        answer.zeroize();
        Ok(came)
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

    /// Fetches what was left of 32 bytes, as soon as it is there.
    fn fetch(&self, client: [u8; 8]) -> Vec<u8> {
        self.fetch_into(client, 32)
    }

    fn fetch_into(&self, client: [u8; 8], bytes: usize) -> Vec<u8> {
        let began = Instant::now();
        while let Err(error) = self.call(client, Call::Fetch, &[], 0) {
            assert!(error == Errno::BUSY.raw_os_error() && began.elapsed() < LATE);
        }
        self.call(client, Call::Fetch, &[], CryptOp::BYTES + bytes).unwrap()
    }
}

/// A message of the kernel's.
fn message(kind: u32, body: &[u8]) -> Vec<u8> {
    let bytes = u32::try_from(40 + body.len()).unwrap();
    let mut message = [bytes, kind, 7, 0, 0, 0, 0, 0, 1, 0].map(u32::to_ne_bytes).concat();
    message.extend(body);
    message
}

fn ioctl_body(client: [u8; 8], call: Call, data: &[u8], space: usize) -> Vec<u8> {
    let number = u32::try_from(u64::from(call.number())).unwrap();
    let lengths = [data.len(), space].map(|bytes| u32::try_from(bytes).unwrap().to_ne_bytes());
    let head = [[0_u32, number].map(u32::to_ne_bytes).concat(), vec![0; 8], lengths.concat()].concat();
    [&client[..], &head, data].concat()
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
    let open_keys = OpenKeys::default();
    let profile = Profile { name: "watched".into(), detail: String::new(), width: 1, emulated: false };
    let driver = Watched { profile, open_keys: open_keys.clone() };
    serve(Box::new(driver), |kernel| client(kernel, &open_keys));
}

/// Serves a client with that driver.
fn serve(driver: Box<dyn InlineDriver>, client: impl FnOnce(&Kernel) + Send) {
    let (server_end, kernel_end) = UnixDatagram::pair().unwrap();
    kernel_end.set_read_timeout(Some(LATE)).unwrap();
    let node = Node::over(OwnedFd::from(server_end).into());
    let (cancel, mut spaces) = (Cancel::default(), vec![vec![0; 1024]; 2]);
    run(Setup { callers: 1, ..Setup::default() }, |runtime| {
        let mut caller = runtime.caller(CoreDrivers::new(driver, None));
        let jobs = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
        thread::scope(|scope| {
            let ends = CancelOnDrop(cancel.clone());
            scope.spawn(|| {
                let (kernel, _ends) = (Kernel(kernel_end), ends);
                client(&kernel);
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

/// What a text begins with sixteen times over, and the same with every bit turned: this program has no other copy of that.
const PART: [u8; 32] = *b"a part of a text for one request";
const TEXT_BYTES: usize = 16 * PART.len();

/// How often what [`PART`] becomes stands in this process's own memory.
fn count_of_turned_parts() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let memory = File::open("/proc/self/mem").unwrap();
    let spans = maps.lines().filter(|line| line.contains(" rw-p ")).map(|line| {
        let (from, rest) = line.split_once('-').unwrap();
        let to = rest.split_once(' ').unwrap().0;
        [from, to].map(|address| u64::from_str_radix(address, 16).unwrap())
    });
    let is_it = |bytes: &&[u8]| bytes.iter().zip(PART).all(|(byte, part)| *byte == !part);
    let count_in = |[from, to]: [u64; 2]| {
        let mut bytes = Zeroizing::new(vec![0; usize::try_from(to - from).unwrap()]);
        // A span that has gone meanwhile holds nothing.
        let is_read = memory.read_exact_at(&mut bytes, from).is_ok();
        if is_read { bytes.windows(PART.len()).filter(is_it).count() } else { 0 }
    };
    spans.map(count_in).sum()
}

#[test]
fn once_a_request_is_answered_its_result_stands_nowhere_in_the_servers_memory() {
    let profile = Profile { name: "inverting".into(), detail: String::new(), width: 1, emulated: false };
    serve(Box::new(Inverting(profile)), |kernel| {
        let client = kernel.open();
        let session = kernel.session(client);
        let len = u32::try_from(TEXT_BYTES).unwrap();
        let op = CryptOp { session, len, src: 1, dst: 1, iv: 1, ..CryptOp::default() };
        let data = [op.bytes(), PART.repeat(16), vec![3; 16]].concat();
        for _ in 0..3 {
            let mut came = kernel.call(client, Call::Crypt, &data, TEXT_BYTES).unwrap();
            assert!(came.iter().zip(PART.iter().cycle()).all(|(byte, part)| *byte == !part));
            came.zeroize();
            kernel.call(client, Call::Leave, &data, 0).unwrap();
            kernel.fetch_into(client, TEXT_BYTES).zeroize();
        }
        // The server has sent its answer before, and is about to forget it.
        let began = Instant::now();
        while count_of_turned_parts() > 0 {
            assert!(began.elapsed() < LATE, "{} parts are left", count_of_turned_parts());
        }
    });
}

#[test]
fn a_message_is_wiped_when_it_was_worked_on() {
    let (server_end, kernel_end) = UnixDatagram::pair().unwrap();
    let mut node = Node::over(OwnedFd::from(server_end).into());
    let profile = Profile { name: "inverting".into(), detail: String::new(), width: 1, emulated: false };
    run(Setup { callers: 1, ..Setup::default() }, |runtime| {
        let mut caller = runtime.caller(CoreDrivers::new(Box::new(Inverting(profile)), None));
        let (mut clients, mut served) = (Clients::default(), Served::default());
        let client = clients.open().unwrap();
        let op = SessionOp { cipher: 11, key_bytes: 16, key: 0x2000, ..SessionOp::default() };
        let data = [op.bytes(), vec![0xA5; 16]].concat();
        kernel_end
            .send(&message(
                fuse::IOCTL,
                &ioctl_body(client.to_ne_bytes(), Call::OpenSession, &data, SessionOp::BYTES),
            ))
            .unwrap();
        let answer = node.serve_one(&mut caller, &mut Vec::new(), &mut clients, &mut served).unwrap();
        assert!(matches!(answer, Some((_, Reply::Ioctl(_)))), "{answer:?}");
        assert!(node.buffer.iter().all(|byte| *byte == 0));
    });
}
