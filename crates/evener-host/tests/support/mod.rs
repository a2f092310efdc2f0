//! A client made of bytes: messages, descriptors and rings are written by hand, from the specification and not with our wire crate.
#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, reason = "a test")]

pub(crate) mod numbers;

use std::fs::File;
use std::io::{IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use evener_core::{Algorithm, Direction, InlineDriver as _, Job, Outcome, Padding, Session};
use evener_testing::drivers::libcrypto;
use evener_testing::waiting::{TIMEOUT, soon};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// Where things lie in a client's memory of one MiB; guest addresses begin at [`GUEST`], user addresses at [`USER`].
pub(crate) const MEMORY_BYTES: u64 = 1 << 20;
pub(crate) const GUEST: u64 = 0x4000_0000;
pub(crate) const USER: u64 = 0x7F12_3456_7000;
pub(crate) const DESCRIPTORS: u64 = 0;
pub(crate) const AVAILABLE: u64 = 0x4000;
pub(crate) const USED: u64 = 0x6000;
pub(crate) const TABLE: u64 = 0x8000;
pub(crate) const DATA: u64 = 0x1_0000;
pub(crate) const RING: u16 = 64;

pub(crate) const NEXT: u16 = 1;
pub(crate) const WRITE: u16 = 2;
pub(crate) const INDIRECT: u16 = 4;

pub(crate) const EVENT_IDX: u64 = 1 << 29;
pub(crate) const ALL_FEATURES: u64 = 1 << 32 | 1 << 30 | EVENT_IDX | 1 << 28;

/// A client of its own hand.
pub(crate) struct Raw {
    pub(crate) stream: UnixStream,
    pub(crate) memory: File,
    pub(crate) queue: RawQueue,
    features: u64,
}

/// Its end of the queue.
pub(crate) struct RawQueue {
    pub(crate) kick: OwnedFd,
    pub(crate) call: OwnedFd,
    /// Requests so far.
    pub(crate) sent: u16,
    pub(crate) seen: u16,
}

pub(crate) fn memory(bytes: u64, seals: SealFlags) -> File {
    let file = File::from(memfd_create("raw", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap());
    file.set_len(bytes).unwrap();
    fcntl_add_seals(&file, seals).unwrap();
    file
}

pub(crate) fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

pub(crate) fn halves(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

impl Raw {
    /// Connects and says hello; nothing is set up yet.
    pub(crate) fn connect(socket: &Path) -> Self {
        Self::try_connect(socket).unwrap()
    }

    /// As [`Raw::connect`], where the host may refuse it.
    pub(crate) fn try_connect(socket: &Path) -> Option<Self> {
        let stream = UnixStream::connect(socket).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).ok()?;
        let memory = memory(MEMORY_BYTES, SealFlags::SHRINK | SealFlags::GROW);
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let queue = RawQueue { kick: event(), call: event(), sent: 0, seen: 0 };
        Some(Self { stream, memory, queue, features: 0 })
    }

    /// A session for AES-CBC encryption, where the host gives one.
    pub(crate) fn try_open_cbc(&mut self, key: &[u8]) -> Option<u64> {
        let mut payload = vec![0; 1072];
        payload[..8].copy_from_slice(&2_u64.to_ne_bytes());
        payload[8..16].copy_from_slice(&halves(&[3, key.len() as u32]));
        payload[32..34].copy_from_slice(&[1, 1]);
        payload[56..56 + key.len()].copy_from_slice(key);
        self.send(26, &payload, &[]);
        let mut answer = [0; 12 + 1072];
        self.stream.read_exact(&mut answer).ok()?;
        u64::try_from(i64::from_ne_bytes(answer[1076..].try_into().unwrap())).ok()
    }

    /// As [`Raw::wait`], of a client that is not owed an answer.
    pub(crate) fn wait_briefly(&self) -> bool {
        let deadline = Instant::now() + std::time::Duration::from_secs(5);
        while self.used() != self.queue.sent {
            let mut both = [
                PollFd::new(&self.queue.call, PollFlags::IN),
                PollFd::new(&self.stream, PollFlags::IN | PollFlags::RDHUP),
            ];
            poll(&mut both, Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 })).ok();
            if !both[1].revents().is_empty() || Instant::now() > deadline {
                return false;
            }
            if !both[0].revents().is_empty() {
                rustix::io::read(&self.queue.call, &mut [0_u8; 8]).ok();
            }
        }
        true
    }

    /// Connects and sets up one ring.
    pub(crate) fn ready(socket: &Path, features: u64) -> Self {
        let mut raw = Self::connect(socket);
        raw.set_up(features);
        raw
    }

    pub(crate) fn set_up(&mut self, features: u64) {
        self.features = features;
        self.send(3, &[], &[]);
        self.send(2, &words(&[features]), &[]);
        self.set_memory(&[[GUEST, MEMORY_BYTES, USER, 0]]);
        self.start_ring(0);
    }

    pub(crate) fn set_memory(&self, regions: &[[u64; 4]]) {
        let mut table = halves(&[regions.len() as u32, 0]);
        regions.iter().for_each(|region| table.extend(words(region)));
        let file = self.memory.try_clone().unwrap();
        let files: Vec<BorrowedFd<'_>> = regions.iter().map(|_| file.as_fd()).collect();
        self.send(5, &table, &files);
    }

    pub(crate) fn start_ring(&self, base: u16) {
        self.send(8, &halves(&[0, RING.into()]), &[]);
        self.send(10, &halves(&[0, base.into()]), &[]);
        let mut addresses = halves(&[0, 0]);
        addresses.extend(words(&[USER + DESCRIPTORS, USER + USED, USER + AVAILABLE, 0]));
        self.send(9, &addresses, &[]);
        let (kick, call) = (self.queue.kick.try_clone().unwrap(), self.queue.call.try_clone().unwrap());
        self.send(13, &words(&[0]), &[call.as_fd()]);
        self.send(12, &words(&[0]), &[kick.as_fd()]);
        self.send(18, &halves(&[0, 1]), &[]);
    }

    pub(crate) fn send(&self, message: u32, payload: &[u8], files: &[BorrowedFd<'_>]) {
        let header = halves(&[message, 1, payload.len() as u32]);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            assert!(beside.push(SendAncillaryMessage::ScmRights(files)));
        }
        let parts = [IoSlice::new(&header), IoSlice::new(payload)];
        // A host that has ended the connection is seen by the next answer.
        sendmsg(&self.stream, &parts, &mut beside, SendFlags::NOSIGNAL).ok();
    }

    /// The answer to a message, without its header.
    pub(crate) fn answer(&mut self, message: u32) -> Vec<u8> {
        let mut header = [0; 12];
        self.stream.read_exact(&mut header).unwrap();
        let field = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().unwrap());
        assert_eq!((field(0), field(4)), (message, 5), "the answer to {message}");
        let mut payload = vec![0; field(8) as usize];
        self.stream.read_exact(&mut payload).unwrap();
        payload
    }

    pub(crate) fn ask(&mut self, message: u32) -> u64 {
        self.send(message, &[], &[]);
        u64::from_ne_bytes(self.answer(message).try_into().unwrap())
    }

    /// Opens a session by its fields; the id, or -1.
    pub(crate) fn open(
        &mut self,
        op_code: u64,
        fields: [u32; 6],
        marks: [u8; 4],
        key: &[u8],
        auth: &[u8],
    ) -> i64 {
        let mut payload = vec![0; 1072];
        payload[..8].copy_from_slice(&op_code.to_ne_bytes());
        payload[8..32].copy_from_slice(&halves(&fields));
        payload[32..36].copy_from_slice(&marks);
        payload[56..56 + key.len()].copy_from_slice(key);
        payload[120..120 + auth.len()].copy_from_slice(auth);
        self.send(26, &payload, &[]);
        let answer = self.answer(26);
        assert_eq!(answer.len(), 1072);
        assert!(answer[56..632].iter().all(|byte| *byte == 0), "keys do not travel back");
        i64::from_ne_bytes(answer[1064..].try_into().unwrap())
    }

    /// A session for AES-CBC.
    pub(crate) fn open_cbc(&mut self, key: &[u8], encrypt: bool) -> u64 {
        let direction = if encrypt { 1 } else { 2 };
        let id = self.open(2, [3, key.len() as u32, 0, 0, 0, 0], [1, direction, 0, 0], key, &[]);
        u64::try_from(id).unwrap()
    }

    pub(crate) fn put(&self, at: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, at).unwrap();
    }

    pub(crate) fn get(&self, at: u64, bytes: usize) -> Vec<u8> {
        let mut into = vec![0; bytes];
        self.memory.read_exact_at(&mut into, at).unwrap();
        into
    }

    fn get_u16(&self, at: u64) -> u16 {
        u16::from_le_bytes(self.get(at, 2).try_into().unwrap())
    }

    /// Writes one descriptor of the ring.
    pub(crate) fn describe(&self, index: u16, address: u64, len: u32, flags: u16, next: u16) {
        self.put(DESCRIPTORS + 16 * u64::from(index), &descriptor(address, len, flags, next));
    }

    /// Makes a chain available and kicks.
    pub(crate) fn offer(&mut self, head: u16) {
        self.offer_quietly(head);
        self.kick();
    }

    pub(crate) fn kick(&self) {
        rustix::io::write(&self.queue.kick, &1_u64.to_ne_bytes()).unwrap();
    }

    pub(crate) fn offer_quietly(&mut self, head: u16) {
        self.put(AVAILABLE + 4 + 2 * u64::from(self.queue.sent % RING), &head.to_le_bytes());
        self.queue.sent = self.queue.sent.wrapping_add(1);
        // Wake me when that one is back, for who goes by index.
        let last = self.queue.sent.wrapping_sub(1);
        self.put(AVAILABLE + 4 + 2 * u64::from(RING), &last.to_le_bytes());
        self.put(AVAILABLE + 2, &self.queue.sent.to_le_bytes());
    }

    /// Waits for the call after which everything offered is back; `false` where the connection ended instead.
    pub(crate) fn wait(&mut self) -> bool {
        let deadline = Instant::now() + TIMEOUT;
        while self.used() != self.queue.sent {
            let mut both = [
                PollFd::new(&self.queue.call, PollFlags::IN),
                PollFd::new(&self.stream, PollFlags::IN | PollFlags::RDHUP),
            ];
            let answer = poll(&mut both, Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 }));
            // A test sends signals to all threads.
            assert!(matches!(answer, Ok(_) | Err(rustix::io::Errno::INTR)), "{answer:?}");
            if !both[1].revents().is_empty() {
                return false;
            }
            if !both[0].revents().is_empty() {
                rustix::io::read(&self.queue.call, &mut [0_u8; 8]).unwrap();
            }
            assert!(Instant::now() < deadline, "{} of {} came back", self.used(), self.queue.sent);
        }
        self.queue.seen = self.queue.sent;
        true
    }

    pub(crate) fn used(&self) -> u16 {
        self.get_u16(USED + 2)
    }

    pub(crate) fn avail_event(&self) -> u16 {
        self.get_u16(USED + 4 + 8 * u64::from(RING))
    }

    /// Head and bytes of what came back as number `at`.
    pub(crate) fn used_element(&self, at: u16) -> (u32, u32) {
        let bytes = self.get(USED + 4 + 8 * u64::from(at % RING), 8);
        let field = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        (field(0), field(4))
    }

    /// One request in an indirect table: readable parts copied to the data area, then space for `space` bytes and the status.
    /// Returns the space and the status, or nothing where the connection ended.
    pub(crate) fn request(&mut self, readable: &[&[u8]], space: usize) -> Option<(Vec<u8>, u8)> {
        let (place, status) = self.write_request(readable, space, 0);
        self.offer(0);
        self.wait().then(|| (self.get(place, space), self.get(status, 1)[0]))
    }

    /// Writes request number `slot` (each has 64 KiB) and its table under descriptor `slot`; returns offsets of space and status.
    pub(crate) fn write_request(&self, readable: &[&[u8]], space: usize, slot: u16) -> (u64, u64) {
        let mut at = DATA + 0x1_0000 * u64::from(slot);
        let mut table = Vec::new();
        let parts = readable.iter().filter(|part| !part.is_empty());
        for (next, part) in (1..).zip(parts) {
            self.put(at, part);
            table.extend(descriptor(GUEST + at, part.len() as u32, NEXT, next));
            at += part.len() as u64;
        }
        let place = at;
        self.put(place, &vec![0xEE; space]);
        if space > 0 {
            let next = (table.len() / 16 + 1) as u16;
            table.extend(descriptor(GUEST + at, space as u32, NEXT | WRITE, next));
            at += space as u64;
        }
        self.put(at, &[0xEE]);
        table.extend(descriptor(GUEST + at, 1, WRITE, 0));
        let home = TABLE + 1024 * u64::from(slot);
        self.put(home, &table);
        self.describe(slot, GUEST + home, table.len() as u32, INDIRECT, 0);
        (place, at)
    }

    /// Whether the host ends the connection; not at once, for the module's thread looks when it comes to it.
    pub(crate) fn ends(&mut self) -> bool {
        soon(|| self.is_ended())
    }

    /// Whether the host has ended the connection.
    pub(crate) fn is_ended(&mut self) -> bool {
        // A message that is answered: a host that goes on does.
        self.send(1, &[], &[]);
        let mut header = [0; 20];
        self.stream.read_exact(&mut header).is_err()
    }
}

/// Sends bytes with files beside the first.
pub(crate) fn send_bytes(stream: &UnixStream, bytes: &[u8], files: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    assert!(beside.push(SendAncillaryMessage::ScmRights(files)));
    // A host that has ended the connection is seen by the next answer.
    sendmsg(stream, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL).ok();
}

pub(crate) fn descriptor(address: u64, len: u32, flags: u16, next: u16) -> Vec<u8> {
    let mut bytes = address.to_le_bytes().to_vec();
    bytes.extend(len.to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    bytes.extend(next.to_le_bytes());
    bytes
}

/// A data request's header: opcode, session, then the fields from byte 24 on.
pub(crate) fn header(opcode: u32, session: u64, fields: &[u32], op_type: u32) -> Vec<u8> {
    let mut bytes = vec![0; 72];
    bytes[..4].copy_from_slice(&opcode.to_le_bytes());
    bytes[8..16].copy_from_slice(&session.to_le_bytes());
    for (place, field) in fields.iter().enumerate() {
        bytes[24 + 4 * place..28 + 4 * place].copy_from_slice(&field.to_le_bytes());
    }
    bytes[64..68].copy_from_slice(&op_type.to_le_bytes());
    bytes
}

/// The header of a cipher's request over `bytes` with an IV of 16.
pub(crate) fn cipher(encrypt: bool, session: u64, bytes: usize) -> Vec<u8> {
    header(u32::from(!encrypt), session, &[16, bytes as u32, bytes as u32], 1)
}

/// What libcrypto makes of it: output and tag, or nothing where it refuses.
pub(crate) fn judge(
    algorithm: Algorithm,
    direction: Direction,
    [key, iv, aad, input, tag]: [&[u8]; 5],
) -> Option<(Vec<u8>, Vec<u8>)> {
    let session = Session::new(algorithm, direction, Padding::None, key).unwrap();
    let mut output = vec![0; input.len()];
    let mut jobs = [Job::apart(input, &mut output)];
    jobs[0].arm(&session, iv, input.len());
    jobs[0].set_aad(aad);
    jobs[0].set_tag(tag);
    libcrypto().run(&mut jobs);
    let made = jobs[0].tag().to_vec();
    let Outcome::Done { written } = jobs[0].outcome() else { return None };
    drop(jobs);
    Some((output[..written].to_vec(), made))
}
