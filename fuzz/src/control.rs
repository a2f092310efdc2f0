//! The host's control loop, live: bytes -> messages, descriptors and memory of a client -> a host in this process, which must
//! end that connection in good order and go on serving another.

use std::fs::File;
use std::io::{IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use evener::{Cancel, CoreDrivers};
use evener_core::{Algorithm, Direction, InlineDriver as _, Job, Outcome, Padding, Session};
use evener_driver_libcrypto::Libcrypto;
use evener_host::{Access, Limits, Module, Setup, Socket};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};

/// A host with a core, and a client of it that must not notice anything.
struct Host {
    folder: tempfile::TempDir,
    bystander: Bystander,
}

/// Far beyond what any answer takes.
const TIMEOUT: Duration = Duration::from_secs(8);

impl Host {
    /// libFuzzer's hook ends the process at a panic of any thread, the host's among them.
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("host");
        let driver = Libcrypto::new().expect("libcrypto");
        let profile = driver.profile().clone();
        let module = Module::core(profile, CoreDrivers::new(Box::new(driver), None), Algorithm::ALL.to_vec());
        let limits = Limits { memory_bytes_max: 1 << 24, ..Limits::default() };
        let setup = Setup {
            socket: Socket::Path(socket.clone()),
            control: None,
            access: Access::default(),
            limits,
            module,
        };
        let (told, ready) = mpsc::channel();
        thread::spawn(move || {
            evener_host::run(setup, &Cancel::default(), || told.send(()).expect("somebody waits"))
                .expect("the host goes on until the process ends");
        });
        ready.recv_timeout(TIMEOUT).expect("the host begins");
        let bystander = Bystander::new(&socket);
        Self { folder, bystander }
    }
}

/// A client that has a text encrypted after each attack.
struct Bystander {
    client: Client,
    session: u64,
    /// Requests so far.
    sent: u16,
}

/// Where the parts of its request lie: header and IV, text, space, status.
const HEAD: u64 = 0x1000;
const TEXT: u64 = 0x2000;
const ROOM: u64 = 0x3000;
const STATUS: u64 = 0x4000;
const TEXT_BYTES: usize = 512;
const UNWRITTEN: u8 = 0xEE;

impl Bystander {
    fn new(socket: &Path) -> Self {
        let client = Client::new(socket);
        client.begins_well();
        let mut answer = vec![0; 12 + 1072];
        (&client.stream).read_exact(&mut answer).expect("the host answers");
        let id = answer.last_chunk().expect("it is longer");
        Self { client, session: u64::from_ne_bytes(*id), sent: 0 }
    }

    /// Has a text encrypted that is another one each time, and compares what comes with libcrypto's.
    fn goes_on(&mut self) {
        let text: Vec<u8> =
            (0..TEXT_BYTES).map(|at| (at as u64 * 7 + u64::from(self.sent)).to_le_bytes()[0]).collect();
        self.ask(&text);
        let got = self.client.get(ROOM, TEXT_BYTES);
        assert_eq!(self.client.get(STATUS, 1), [0], "the host fails others");
        assert!(got == encrypted(&text), "the host computes wrong for others");
    }

    /// One request of four descriptors, and its answer.
    fn ask(&mut self, text: &[u8]) {
        let bytes = u32::try_from(text.len()).expect("short");
        // Encryption by a cipher: session, lengths of IV, source and destination, and that it is no chain.
        let mut head = vec![0; 72 + 16];
        head[8..16].copy_from_slice(&self.session.to_le_bytes());
        for (at, field) in [(24, 16), (28, bytes), (32, bytes), (64, 1)] {
            head[at..at + 4].copy_from_slice(&field.to_le_bytes());
        }
        let (next, writable) = (1_u16, 2_u16);
        let pieces =
            [(HEAD, 88, next), (TEXT, bytes, next), (ROOM, bytes, next | writable), (STATUS, 1, writable)];
        let table = (1_u16..).zip(pieces).flat_map(|(behind, (address, len, flags))| {
            let ends = [flags.to_le_bytes(), behind.to_le_bytes()].concat();
            [&address.to_le_bytes()[..], &u32::to_le_bytes(len), &ends].concat()
        });
        let client = &self.client;
        client.put(DESCRIPTORS, &table.collect::<Vec<u8>>());
        client.put(HEAD, &head);
        client.put(TEXT, text);
        client.put(ROOM, &vec![UNWRITTEN; text.len()]);
        client.put(STATUS, &[UNWRITTEN]);
        // Its first descriptor is the head of each request; it wants to be called for this one.
        client.put(AVAILABLE + 4 + 2 * u64::from(self.sent % 16), &0_u16.to_le_bytes());
        client.put(AVAILABLE + 4 + 2 * 16, &self.sent.to_le_bytes());
        self.sent = self.sent.wrapping_add(1);
        client.put(AVAILABLE + 2, &self.sent.to_le_bytes());
        rustix::io::write(&client.kick, &1_u64.to_ne_bytes()).expect("an eventfd");
        let began = Instant::now();
        while client.get(USED + 2, 2) != self.sent.to_le_bytes() {
            assert!(began.elapsed() < TIMEOUT, "the host answers others no more");
            let soon = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let mut called = [PollFd::new(&client.call, PollFlags::IN)];
            if poll(&mut called, Some(&soon)).is_ok_and(|count| count > 0) {
                rustix::io::read(&client.call, &mut [0; 8]).expect("it was called");
            }
        }
    }
}

/// By libcrypto, with the key and the IV of zeros that a client has which begins well.
fn encrypted(text: &[u8]) -> Vec<u8> {
    let session = Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[0; 16]);
    let session = session.expect("a key of its length");
    let mut output = vec![0; text.len()];
    let mut jobs = [Job::apart(text, &mut output)];
    jobs[0].arm(&session, &[0; 16], text.len());
    Libcrypto::new().expect("libcrypto").run(&mut jobs);
    assert!(matches!(jobs[0].outcome(), Outcome::Done { .. }));
    drop(jobs);
    output
}

fn header(message: u32, bytes: usize) -> Vec<u8> {
    [message, 1, u32::try_from(bytes).expect("short")].map(u32::to_ne_bytes).concat()
}

/// One client and what it has at hand to send.
struct Client {
    stream: UnixStream,
    memory: File,
    kick: OwnedFd,
    call: OwnedFd,
}

const MEMORY_BYTES: u64 = 1 << 16;
/// Where the parts of the ring lie when the client begins as one of good faith does.
const DESCRIPTORS: u64 = 0;
const AVAILABLE: u64 = 0x400;
const USED: u64 = 0x800;

impl Client {
    fn new(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("the host listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a socket");
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd");
        Self { stream, memory: memory(SealFlags::SHRINK | SealFlags::GROW), kick: event(), call: event() }
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, at).expect("inside the file");
    }

    fn get(&self, at: u64, bytes: usize) -> Vec<u8> {
        let mut into = vec![0; bytes];
        self.memory.read_exact_at(&mut into, at).expect("inside the file");
        into
    }

    fn send(&self, message: u32, payload: &[u8], files: &[BorrowedFd<'_>]) {
        let head = header(message, payload.len());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            assert!(beside.push(SendAncillaryMessage::ScmRights(files)), "at most eight");
        }
        // Where the host has ended the connection this fails, as it should.
        sendmsg(
            &self.stream,
            &[IoSlice::new(&head), IoSlice::new(payload)],
            &mut beside,
            SendFlags::NOSIGNAL,
        )
        .ok();
    }

    /// Memory at address 0, a ring of 16 entries, and a session of AES-128-CBC.
    fn begins_well(&self) {
        let words = |numbers: &[u64]| numbers.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        let halves = |numbers: &[u32]| numbers.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        self.send(2, &words(&[1 << 32 | 1 << 30 | 1 << 29 | 1 << 28]), &[]);
        let table = [halves(&[1, 0]), words(&[0, MEMORY_BYTES, 0, 0])].concat();
        self.send(5, &table, &[self.memory.as_fd()]);
        self.send(8, &halves(&[0, 16]), &[]);
        self.send(9, &[halves(&[0, 0]), words(&[DESCRIPTORS, USED, AVAILABLE, 0])].concat(), &[]);
        self.send(13, &words(&[0]), &[self.call.as_fd()]);
        self.send(12, &words(&[0]), &[self.kick.as_fd()]);
        let mut session = vec![0; 1072];
        for (at, field) in [(0, 2), (8, 3), (12, 16), (32, 1), (33, 1)] {
            session[at] = field;
        }
        self.send(26, &session, &[]);
    }

    /// One step: a message with files, bytes in memory, or a kick and a short wait for what comes of it.
    fn step(&self, kind: u8, files: u8, content: &[u8]) {
        match kind {
            0..64 => self.send(kind.into(), content, &self.files(files)),
            64..160 => {
                let (place, content) = content.split_at(2.min(content.len()));
                let space = MEMORY_BYTES - content.len() as u64;
                let at = place.iter().fold(0, |at, &byte| at << 8 | u64::from(byte)) % space;
                self.put(at, content);
            }
            160..220 => {
                rustix::io::write(&self.kick, &1_u64.to_ne_bytes()).ok();
                let soon = Timespec { tv_sec: 0, tv_nsec: 500_000 };
                poll(&mut [PollFd::new(&self.call, PollFlags::IN)], Some(&soon)).ok();
            }
            // No message at all. The host may have ended the connection; libFuzzer's program does not ignore the signal for that.
            _ => _ = send(&self.stream, content, SendFlags::NOSIGNAL).ok(),
        }
    }

    /// Two bits for each of up to four: memory, memory that may shrink, an eventfd, a socket.
    fn files(&self, kinds: u8) -> Vec<BorrowedFd<'_>> {
        static UNSEALED: LazyLock<File> = LazyLock::new(|| memory(SealFlags::empty()));
        let count = usize::from(kinds >> 6);
        let file = |place: usize| match kinds >> (2 * place) & 3 {
            0 => self.memory.as_fd(),
            1 => UNSEALED.as_fd(),
            2 => self.kick.as_fd(),
            _ => self.stream.as_fd(),
        };
        (0..count).map(file).collect()
    }

    /// Says no more, and waits until the host has ended the connection too.
    fn ends(mut self) {
        self.stream.shutdown(std::net::Shutdown::Write).ok();
        let mut answers = Vec::new();
        let ended = self.stream.read_to_end(&mut answers);
        let is_open = ended.is_err_and(|error| {
            matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
        });
        assert!(!is_open, "the host keeps a connection that was closed");
    }
}

fn memory(seals: SealFlags) -> File {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(memfd_create("fuzz", flags).expect("the system has memfds"));
    file.set_len(MEMORY_BYTES).expect("space");
    fcntl_add_seals(&file, seals).expect("it may be sealed");
    file
}

/// The first byte says whether the client begins well; then steps: kind, files, length, content. Length 255 stands for 1072.
pub fn host_control(bytes: &[u8]) {
    static HOST: LazyLock<Mutex<Host>> = LazyLock::new(|| Mutex::new(Host::start()));
    let Some((&begin, mut steps)) = bytes.split_first() else { return };
    let mut host = HOST.lock().unwrap_or_else(PoisonError::into_inner);
    let client = Client::new(&host.folder.path().join("host"));
    if begin & 1 == 1 {
        client.begins_well();
    }
    while let Some((&[kind, files, len], rest)) = steps.split_first_chunk() {
        let len = if len == 255 { 1072 } else { usize::from(len) };
        let (content, later) = rest.split_at(len.min(rest.len()));
        let whole = [content, &vec![0; len - content.len()]].concat();
        client.step(kind, files, &whole);
        steps = later;
    }
    client.ends();
    host.bystander.goes_on();
}
