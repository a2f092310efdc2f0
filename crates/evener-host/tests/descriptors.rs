//! Descriptors that have who closes or opens them wait: a client that sends them costs no other client a moment.
#![allow(unsafe_code, reason = "support/ffi.rs: a lease")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test; it says what it skips")]

#[path = "support/ffi.rs"]
mod ffi;
mod support;

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, ErrorKind, IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use evener_testing::hosts::{AT_ONCE, HostProcess, serve};
use evener_testing::waiting::soon;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, sockopt};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};

use support::{ALL_FEATURES, GUEST, MEMORY_BYTES, Raw, USER, halves, send_bytes, words};

#[test]
#[ignore = "a part of the others"]
fn host_process() {
    serve();
}

/// A host in a process of its own. It stands still while descriptors are sent and closed here, so that it is who closes them last.
struct Host(HostProcess);

impl Host {
    fn start() -> Self {
        Self(HostProcess::start("host_process", AT_ONCE))
    }

    fn socket(&self) -> PathBuf {
        self.0.control().with_file_name("host")
    }

    fn while_it_stands_still<T>(&self, work: impl FnOnce() -> T) -> T {
        self.signal(Signal::STOP);
        let done = work();
        self.signal(Signal::CONT);
        done
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.0.pid()).unwrap()).unwrap()
    }

    fn limit_open_files(&self, most: u64) {
        let before = getrlimit(Resource::Nofile);
        let limit = Rlimit { current: Some(most), maximum: before.maximum };
        prlimit(Some(self.pid()), Resource::Nofile, limit).unwrap();
    }

    fn open_files(&self) -> u64 {
        std::fs::read_dir(format!("/proc/{}/fd", self.0.pid())).unwrap().count() as u64
    }

    /// What its threads used so far, in hundredths of a second.
    fn core_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.pid())).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        // User's and system's, the 14th and 15th of all; the first of these is the third.
        let ticks = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum::<u64>();
        Duration::from_millis(10 * ticks)
    }

    /// A client that comes, is told what it asks, and gets a session.
    fn serves_another(&self) -> Raw {
        let mut raw = Raw::connect(&self.socket());
        raw.stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        raw.set_up(ALL_FEATURES);
        raw.open_cbc(&[1; 16], true);
        raw
    }
}

/// As long a socket lingers, and as long a client waits for its answer: a host that waited for the socket would be found out.
const LINGER: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(20);

/// A socket full of bytes that its other end never reads.
fn lingering() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // One that grows would take all.
    sockopt::set_socket_recv_buffer_size(&listener, 4096).unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    sender.set_nonblocking(true).unwrap();
    while sender.write(&[7; 1 << 16]).is_ok() {}
    sockopt::set_socket_linger(&sender, Some(LINGER)).unwrap();
    (sender.into(), other)
}

type Attack = (&'static str, fn(&Raw, &OwnedFd));

const ATTACKS: &[Attack] = &[
    ("beside a message that needs none", |raw, file| raw.send(3, &[], &[file.as_fd()])),
    ("beside a payload", |raw, file| {
        (&raw.stream).write_all(&halves(&[2, 1, 8])).unwrap();
        send_bytes(&raw.stream, &words(&[ALL_FEATURES]), &[file.as_fd()]);
    }),
    ("as an error descriptor", |raw, file| raw.send(14, &words(&[0]), &[file.as_fd()])),
    ("as a kick", |raw, file| raw.send(12, &words(&[0]), &[file.as_fd()])),
    ("as memory", |raw, file| {
        let table = [halves(&[1, 0]), words(&[GUEST, MEMORY_BYTES, USER, 0])].concat();
        raw.send(5, &table, &[file.as_fd()]);
    }),
    ("with half a message", |raw, file| send_bytes(&raw.stream, &halves(&[2, 1]), &[file.as_fd()])),
    ("beside what is no message", |raw, file| raw.send(0x4141_4141, &[], &[file.as_fd()])),
    ("out of band", |raw, file| {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let (mut beside, files) = (SendAncillaryBuffer::new(&mut space), [file.as_fd()]);
        assert!(beside.push(SendAncillaryMessage::ScmRights(&files)));
        if let Err(error) = sendmsg(&raw.stream, &[IoSlice::new(b"x")], &mut beside, SendFlags::OOB) {
            println!("skipped: no data out of band: {error}");
            // Else it would linger here.
            std::mem::forget(file.try_clone().unwrap());
        }
        raw.send(1, &[], &[]);
    }),
    ("behind what is no message", |raw, file| {
        raw.send(0x4141_4141, &[], &[]);
        send_bytes(&raw.stream, b"x", &[file.as_fd()]);
    }),
];

#[test]
fn a_descriptor_that_lingers_when_it_is_closed_has_no_other_client_wait() {
    let host = Host::start();
    let mut kept = Vec::new();
    for (name, attack) in ATTACKS {
        println!("{name}");
        kept.push(host.while_it_stands_still(|| {
            let raw = Raw::connect(&host.socket());
            let (file, other) = lingering();
            attack(&raw, &file);
            other
        }));
        host.serves_another();
    }
}

#[test]
fn who_has_too_many_descriptors_wait_is_let_in_no_more_and_what_it_has_goes_on() {
    let host = Host::start();
    let mut bystander = host.serves_another();
    let _kept: Vec<_> = host.while_it_stands_still(|| {
        let clients = (0..80).map(|_| {
            let raw = Raw::connect(&host.socket());
            let (file, other) = lingering();
            raw.send(3, &[], &[file.as_fd()]);
            other
        });
        clients.collect()
    });
    bystander.open_cbc(&[2; 16], true);
    // Once the host has come to them all.
    assert!(soon(|| {
        let mut late = Raw::connect(&host.socket());
        late.stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        late.send(1, &[], &[]);
        match late.stream.read(&mut [0]) {
            Ok(bytes) => bytes == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }));
}

/// Open files that a host is let have in the next test, of its clients and its own.
const OPEN_FILES: u64 = 700;

#[test]
fn what_one_user_sends_and_does_not_close_leaves_a_host_most_of_its_descriptors() {
    let host = Host::start();
    host.limit_open_files(OPEN_FILES);
    let mut bystander = host.serves_another();
    let null = File::open("/dev/null").unwrap();
    let (file, _other) = lingering();
    let mut clients: Vec<Raw> = (0..6).map(|_| Raw::connect(&host.socket())).collect();
    host.while_it_stands_still(|| {
        clients[0].send(3, &[], &[file.as_fd()]);
        drop(file);
        clients[1..].iter().for_each(|raw| raw.send(3, &[], &[null.as_fd(); 253]));
    });
    clients.iter_mut().skip(1).for_each(|raw| assert!(raw.ends()));
    bystander.open_cbc(&[2; 16], true);
    let held = host.open_files();
    assert!(held < 350, "{held} of {OPEN_FILES} are held");
}

#[test]
fn a_host_without_descriptors_waits_for_some_before_it_lets_in_an_administrator() {
    let host = Host::start();
    // As many as the standard ones: no other number is to be had.
    host.limit_open_files(3);
    let mut administrator = UnixStream::connect(host.0.control()).unwrap();
    administrator.write_all(b"report\n").unwrap();
    let before = host.core_time();
    std::thread::sleep(Duration::from_secs(2));
    let used = host.core_time() - before;
    assert!(used < Duration::from_millis(200), "it tries all the time: {used:?} of two seconds");
    host.limit_open_files(OPEN_FILES);
    administrator.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut answer = String::new();
    BufReader::new(administrator).read_line(&mut answer).unwrap();
    assert!(answer.starts_with('{'), "{answer}");
}

#[test]
fn memory_with_a_lease_on_it_has_no_other_client_wait() {
    let host = Host::start();
    ffi::take_no_notice_of_leases();
    let raw = Raw::connect(&host.socket());
    let memory = reopened(&raw);
    if let Err(error) = ffi::write_lease(&memory) {
        return println!("skipped: no lease is to be had here: {error}");
    }
    raw.set_memory(&[[GUEST, MEMORY_BYTES, USER, 0]]);
    host.serves_another();
}

/// The client's memory, opened anew: its first opening gets no lease.
fn reopened(raw: &Raw) -> File {
    let path = format!("/proc/self/fd/{}", raw.memory.as_raw_fd());
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}
