//! A host for tests: a thread per connection that computes with libcrypto, counts, and errs when it is told to.

#![allow(dead_code, reason = "each test file uses a part of this")]

mod session;

use std::collections::HashMap;
use std::fs::File;
use std::io::{IoSliceMut, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{mem, thread};

use evener_core::JobError;
use evener_driver_libcrypto::Libcrypto;
use evener_ring::Region;
use evener_ring::virtqueue::{Chain, Device, Element, Events, Mapped, Tables};
use evener_testing::Folder;
use evener_wire::{
    Config, ConfigMessage, CreateSession, HEADER_BYTES, Header, MemoryTable, Message, RingAddresses,
    RingState, SESSION_BYTES, features, protocol_features,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use session::Opened;

/// What stands in the used ring instead of the request that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nonsense {
    /// A name beyond the queue.
    HeadBeyond,
    /// The name of no request that is under way.
    HeadNotHeld,
    /// One request again and again.
    Repeated,
    /// An index that counts more than was offered.
    IndexJumps,
    /// An index that goes back.
    IndexBack,
}

/// What is wrong with an answer to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Half as long.
    Short,
    /// Twice as long.
    Long,
    /// It says that it answers another message.
    Other,
    /// It says that it is none.
    NoReply,
    /// It comes twice.
    Twice,
    /// It has no header, but letters.
    Letters,
    /// Its header announces more than any message has.
    Endless,
    /// It ends in the middle, and so does the connection.
    CutOff,
}

/// What the host is told to do wrong, or to leave out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// Results differ in one bit.
    WrongBytes,
    /// Requests are taken and never given back.
    Hang,
    /// It works on the request that it has, and neither sleeps nor takes another.
    Busy,
    /// It says of each request that it is done, and does nothing.
    Idle,
    /// It takes no more sessions.
    NoSessions,
    /// It says nothing of itself.
    Mute,
    /// It answers, on the socket, to each request in the queue, which was not asked for.
    Talk,
    /// It answers the first question of a connection with the second, and the third when the queue is to be served.
    LateAnswers,
    /// It says of each request that it has written as much as can be said.
    Boast,
    /// It does not offer suppression by index.
    FlagsOnly,
}

/// What the host does wrong, and what it has seen.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// A bit for each [`Order`] that it follows.
    followed: AtomicU32,
    /// The status of every request, 0 to answer truly.
    pub(crate) status: AtomicU32,
    /// The connection ends after so many requests; 0: never.
    pub(crate) ends_after: AtomicU32,
    /// Sessions of a connection; 0: any number.
    pub(crate) sessions_max: AtomicU32,
    /// What it answers to a session too many.
    pub(crate) refusal: AtomicI64,
    /// What it writes into the used ring for one request; then it hangs.
    pub(crate) nonsense: Mutex<Option<Nonsense>>,
    /// The message that it answers wrongly.
    pub(crate) wrong: Mutex<Option<(Message, Wrong)>>,
    /// What it lacks: features of rings, and of the protocol.
    pub(crate) lacks: [AtomicU64; 2],
    pub(crate) seen: Seen,
}

impl Orders {
    pub(crate) fn give(&self, order: Order) {
        self.followed.fetch_or(1 << order as u32, SeqCst);
    }

    pub(crate) fn take_back(&self, order: Order) {
        self.followed.fetch_and(!(1 << order as u32), SeqCst);
    }

    fn has(&self, order: Order) -> bool {
        self.followed.load(SeqCst) & 1 << order as u32 != 0
    }
}

/// What the host sees.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Request,
    Kick,
    SessionOpened,
    SessionClosed,
    ConnectionBegun,
    ConnectionEnded,
}

/// What the host has seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// By [`Event`].
    counts: [AtomicU64; 6],
    /// Bytes of the client's memory, as they stood at its end.
    pub(crate) left: Mutex<Vec<u8>>,
}

impl Seen {
    pub(crate) fn count(&self, event: Event) -> u64 {
        self.counts[event as usize].load(SeqCst)
    }

    fn add(&self, event: Event, count: u64) {
        self.counts[event as usize].fetch_add(count, SeqCst);
    }
}

/// A host with its socket.
pub(crate) struct Peer {
    folder: Folder,
    pub(crate) orders: Arc<Orders>,
}

impl Peer {
    pub(crate) fn start() -> Self {
        let folder = Folder::temporary();
        let orders = Arc::new(Orders::default());
        let listener = UnixListener::bind(folder.join("socket")).unwrap();
        let shared = Arc::clone(&orders);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, orders) = (stream.unwrap(), Arc::clone(&shared));
                orders.seen.add(Event::ConnectionBegun, 1);
                thread::spawn(move || {
                    Connection::new(stream, &orders).serve();
                    orders.seen.add(Event::ConnectionEnded, 1);
                });
            }
        });
        Self { folder, orders }
    }

    /// Does this wrong from the start.
    pub(crate) fn with(order: Order) -> Self {
        let peer = Self::start();
        peer.orders.give(order);
        peer
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    pub(crate) fn name(&self, offer: &str) -> evener_driver_virtio::ModuleName {
        format!("hosted:{}{offer}", self.socket().display()).parse().unwrap()
    }
}

struct Connection<'o> {
    stream: UnixStream,
    orders: &'o Orders,
    libcrypto: Libcrypto,
    memory: Option<Memory>,
    size: u16,
    events: Events,
    device: Option<Device<Mapped>>,
    /// Where the used ring lies in the region, and how many requests went back by it.
    used_at: usize,
    given: u16,
    kick: Option<OwnedFd>,
    call: Option<OwnedFd>,
    sessions: HashMap<u64, Opened>,
    next_session: u64,
    served: u32,
    /// Answers that go out with a later one.
    withheld: Vec<u8>,
    is_over: bool,
}

struct Memory {
    region: Arc<Region>,
    base: u64,
}

impl Memory {
    fn offset(&self, address: u64) -> usize {
        usize::try_from(address.checked_sub(self.base).unwrap()).unwrap()
    }
}

impl Tables for Memory {
    fn copy_out(&self, address: u64, into: &mut [u8]) -> bool {
        self.region.copy_out(self.offset(address), into).is_ok()
    }
}

impl<'o> Connection<'o> {
    fn new(stream: UnixStream, orders: &'o Orders) -> Self {
        Self {
            stream,
            orders,
            libcrypto: Libcrypto::new().unwrap(),
            memory: None,
            size: 0,
            events: Events::Flags,
            device: None,
            used_at: 0,
            given: 0,
            kick: None,
            call: None,
            sessions: HashMap::new(),
            next_session: 1,
            served: 0,
            withheld: Vec::new(),
            is_over: false,
        }
    }

    fn serve(&mut self) {
        while !self.is_over {
            if self.is_called() {
                let Some((message, payload, file)) = self.receive() else { break };
                self.obey(message, payload, file);
            }
            self.drain();
        }
        if let Some(memory) = &self.memory {
            let mut bytes = vec![0; memory.region.byte_count()];
            memory.region.copy_out(0, &mut bytes).unwrap();
            *self.orders.seen.left.lock().unwrap() = bytes;
        }
    }

    /// Sleeps until something happens; says whether it is a message.
    fn is_called(&self) -> bool {
        let mut watched = vec![PollFd::new(&self.stream, PollFlags::IN)];
        watched.extend(self.kick.iter().map(|kick| PollFd::new(kick, PollFlags::IN)));
        // A glance now and then, for orders that change; a lost kick would still show as time.
        poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 200_000_000 })).unwrap();
        if watched.get(1).is_some_and(|kick| !kick.revents().is_empty()) {
            let mut count = [0; 8];
            rustix::io::read(self.kick.as_ref().unwrap(), &mut count).unwrap();
            self.orders.seen.add(Event::Kick, u64::from_ne_bytes(count));
        }
        !watched[0].revents().is_empty()
    }

    fn receive(&mut self) -> Option<(Message, Vec<u8>, Option<OwnedFd>)> {
        let mut header = [0; HEADER_BYTES];
        let mut space = [mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::WAITALL | RecvFlags::CMSG_CLOEXEC;
        let came = recvmsg(&self.stream, &mut [IoSliceMut::new(&mut header)], &mut beside, flags).ok()?;
        let file = beside.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        (came.bytes == HEADER_BYTES).then_some(())?;
        let header = Header::parse(&header).unwrap();
        let mut payload = vec![0; header.payload_bytes.try_into().unwrap()];
        self.stream.read_exact(&mut payload).ok()?;
        Some((header.message, payload, file))
    }

    fn obey(&mut self, message: Message, payload: Vec<u8>, file: Option<OwnedFd>) {
        match message {
            Message::GetFeatures => {
                let index = if self.orders.has(Order::FlagsOnly) { 0 } else { features::EVENT_IDX };
                let all = features::VERSION_1 | features::PROTOCOL | features::INDIRECT | index;
                let lacks = self.orders.lacks[0].load(SeqCst);
                self.reply(message, &(all & !lacks).to_ne_bytes());
            }
            Message::SetFeatures => {
                let chosen = evener_wire::number(&payload).unwrap();
                self.events = if chosen & features::EVENT_IDX == 0 { Events::Flags } else { Events::Index };
            }
            Message::GetProtocolFeatures => {
                let config = if self.orders.has(Order::Mute) { 0 } else { protocol_features::CONFIG };
                let all = protocol_features::CRYPTO_SESSION | config;
                let lacks = self.orders.lacks[1].load(SeqCst);
                self.reply(message, &(all & !lacks).to_ne_bytes());
            }
            Message::GetConfig => {
                let asked = ConfigMessage::parse(&payload).unwrap();
                self.reply(message, &asked.to_bytes(asked.part(&config().to_bytes()).unwrap()));
            }
            Message::SetMemTable => {
                let table = MemoryTable::parse(&payload).unwrap();
                let [region] = table.regions() else { panic!("one region") };
                assert_ne!(region.guest_address, 0);
                let (file, base) = (File::from(file.unwrap()), region.guest_address);
                assert_eq!(region.user_address, base, "no pointer of the client's");
                let mapped = Region::of_peer(&file, region.offset_bytes, region.size_bytes).unwrap();
                self.memory = Some(Memory { region: Arc::new(mapped), base });
            }
            Message::SetRingNum => {
                self.size = RingState::parse(&payload).unwrap().number.try_into().unwrap();
            }
            Message::SetRingAddr => self.find_queue(RingAddresses::parse(&payload).unwrap()),
            Message::SetRingKick => self.kick = file,
            Message::SetRingEnable => {
                self.stream.write_all(&mem::take(&mut self.withheld)).unwrap_or_default();
            }
            Message::SetRingCall => self.call = file,
            Message::CreateSession => self.create(payload),
            Message::CloseSession => {
                let id = evener_wire::number(&payload).unwrap();
                self.sessions.remove(&id).expect("a session that is open");
                self.orders.seen.add(Event::SessionClosed, 1);
            }
            _ => {}
        }
    }

    fn find_queue(&mut self, RingAddresses { descriptors, available, used, .. }: RingAddresses) {
        let memory = self.memory.as_ref().unwrap();
        let place = |address| (Arc::clone(&memory.region), memory.offset(address));
        self.used_at = memory.offset(used);
        let queue_memory =
            Mapped::new(self.size, [place(descriptors), place(available), place(used)]).unwrap();
        self.device = Some(Device::starting_at(queue_memory, self.events, 0).unwrap());
    }

    fn create(&mut self, payload: Vec<u8>) {
        let most = self.orders.sessions_max.load(SeqCst);
        let is_full = self.orders.has(Order::NoSessions)
            || most > 0 && self.sessions.len() >= usize::try_from(most).unwrap();
        let mut payload: [u8; SESSION_BYTES] = payload.try_into().unwrap();
        let opened = Opened::new(&CreateSession::parse(&payload).unwrap());
        let id = if is_full {
            self.orders.refusal.load(SeqCst)
        } else {
            i64::try_from(self.next_session).unwrap()
        };
        if !is_full {
            self.sessions.insert(self.next_session, opened);
            self.next_session += 1;
            self.orders.seen.add(Event::SessionOpened, 1);
        }
        CreateSession::answer(&mut payload, id);
        self.reply(Message::CreateSession, &payload);
    }

    fn reply(&mut self, message: Message, payload: &[u8]) {
        let header = Header::reply(message, payload.len().try_into().unwrap());
        let bytes = [&header.to_bytes(), payload].concat();
        let wrong = *self.orders.wrong.lock().unwrap();
        let bytes = match wrong.filter(|(to, _)| *to == message) {
            Some((_, wrong)) => self.spoilt(wrong, &bytes),
            None => bytes,
        };
        self.withheld.extend_from_slice(&bytes);
        let is_early = matches!(message, Message::GetFeatures | Message::GetConfig);
        if !(is_early && self.orders.has(Order::LateAnswers)) {
            self.stream.write_all(&mem::take(&mut self.withheld)).unwrap_or_default();
        }
    }

    /// What is sent instead of an answer.
    fn spoilt(&mut self, wrong: Wrong, right: &[u8]) -> Vec<u8> {
        let (head, payload) = right.split_at(HEADER_BYTES);
        let with = |at: usize, word: u32, payload: &[u8]| {
            let mut head = head.to_vec();
            head[at..at + 4].copy_from_slice(&word.to_ne_bytes());
            [&head, payload].concat()
        };
        let bytes = u32::try_from(payload.len()).unwrap();
        match wrong {
            Wrong::Short => with(8, bytes / 2, &payload[..payload.len() / 2]),
            Wrong::Long => with(8, bytes * 2, &payload.repeat(2)),
            Wrong::Other => with(0, Message::GetQueueNum as u32, payload),
            Wrong::NoReply => with(4, 1, payload),
            Wrong::Twice => right.repeat(2),
            Wrong::Letters => vec![b'A'; right.len()],
            Wrong::Endless => with(8, u32::MAX, payload),
            Wrong::CutOff => {
                self.is_over = true;
                right[..HEADER_BYTES + payload.len() / 2].to_vec()
            }
        }
    }

    /// Serves what waits, and asks for a kick for what comes next.
    fn drain(&mut self) {
        let mut chain = Chain::new();
        loop {
            let (Some(device), Some(memory)) = (&mut self.device, &self.memory) else { return };
            if !device.take(memory, &mut chain).unwrap() {
                let call = device.publish();
                if call {
                    rustix::io::write(self.call.as_ref().unwrap(), &1_u64.to_ne_bytes()).unwrap();
                }
                let device = self.device.as_mut().unwrap();
                if !device.listen().unwrap() {
                    return;
                }
                continue;
            }
            self.orders.seen.add(Event::Request, 1);
            self.served += 1;
            let last = self.orders.ends_after.load(SeqCst);
            if last > 0 && self.served > last {
                self.is_over = true;
                return;
            }
            while self.orders.has(Order::Busy) {
                thread::sleep(Duration::from_millis(1));
            }
            if self.orders.has(Order::Talk) {
                self.reply(Message::GetFeatures, &[0; 8]);
            }
            if !self.orders.has(Order::Hang) {
                self.answer(&chain);
            }
        }
    }

    fn answer(&mut self, chain: &Chain) {
        let memory = self.memory.as_ref().unwrap();
        if self.orders.has(Order::Idle) {
            let status = chain.writable().last().unwrap();
            scatter(memory, &[*status], &[0]);
            return self.give_back(chain.head(), 1);
        }
        let mut read = Vec::new();
        for element in chain.readable() {
            let start = read.len();
            read.resize(start + usize::try_from(element.len).unwrap(), 0);
            assert!(memory.copy_out(element.address, &mut read[start..]));
        }
        let space: u32 = chain.writable().iter().map(|element| element.len).sum();
        let space = usize::try_from(space).unwrap() - 1;
        let (mut written, mut status) = session::run(&self.sessions, &mut self.libcrypto, &read, space);
        if self.orders.has(Order::WrongBytes) {
            written.iter_mut().last().into_iter().for_each(|byte| *byte ^= 1);
        }
        if let Ok(told @ 1..) = u8::try_from(self.orders.status.load(SeqCst)) {
            status = told;
        }
        written.push(status);
        scatter(memory, chain.writable(), &written);
        let nonsense = self.orders.nonsense.lock().unwrap().take();
        match nonsense {
            Some(nonsense) => {
                self.write_nonsense(nonsense, chain.head());
                self.orders.give(Order::Hang);
            }
            None => self.give_back(chain.head(), u32::try_from(written.len()).unwrap()),
        }
    }

    fn give_back(&mut self, head: u16, written: u32) {
        let written = if self.orders.has(Order::Boast) { u32::MAX } else { written };
        self.given = self.given.wrapping_add(1);
        self.device.as_mut().unwrap().give_back(head, written);
    }

    /// By hand, past the device's side of the queue, which writes none; and calls the client for it.
    fn write_nonsense(&self, nonsense: Nonsense, head: u16) {
        let (memory, size) = (self.memory.as_ref().unwrap(), self.size);
        let put = |at: usize, bytes: &[u8]| memory.region.copy_in(self.used_at + at, bytes).unwrap();
        // A client that waits for half of six requests looks at three.
        let (at, three) = (self.given, self.given.wrapping_add(3));
        let (id, index) = match nonsense {
            Nonsense::HeadBeyond => (size, three),
            // Names are taken in turn, and less than half of them are out.
            Nonsense::HeadNotHeld => ((head + size / 2) % size, three),
            Nonsense::Repeated => (head, three),
            Nonsense::IndexJumps => (head, at.wrapping_add(1_000)),
            Nonsense::IndexBack => (head, at.wrapping_sub(1)),
        };
        for place in 0..3 {
            let place = usize::from(at.wrapping_add(place) % size);
            put(4 + 8 * place, &[u32::from(id).to_le_bytes(), 1_u32.to_le_bytes()].concat());
        }
        put(2, &index.to_le_bytes());
        rustix::io::write(self.call.as_ref().unwrap(), &1_u64.to_ne_bytes()).unwrap();
    }
}

fn scatter(memory: &Memory, elements: &[Element], mut bytes: &[u8]) {
    for element in elements {
        let (now, later) = bytes.split_at(usize::try_from(element.len).unwrap());
        memory.region.copy_in(memory.offset(element.address), now).unwrap();
        bytes = later;
    }
}

fn config() -> Config {
    Config {
        status: Config::READY,
        data_queues_max: 1,
        services: 0b1111,
        ciphers: 1 << 2 | 1 << 3 | 1 << 4 | 1 << 13,
        hashes: 1 << 1 | 1 << 2 | 1 << 4,
        macs: 1 << 1 | 1 << 2 | 1 << 4,
        aeads: 1 << 1 | 1 << 3,
        cipher_key_bytes_max: 64,
        auth_key_bytes_max: 512,
        request_bytes_max: 3 << 20,
    }
}

/// Statuses that a host may answer with, and what each means for a job.
pub(crate) const STATUSES: [(u32, JobError); 5] = [
    (1, JobError::Module { code: 1 }),
    (2, JobError::Module { code: 2 }),
    (3, JobError::Unsupported),
    (5, JobError::ModuleFull),
    (99, JobError::Module { code: 99 }),
];

/// A path at which no process listens.
pub(crate) fn nowhere() -> &'static Path {
    Path::new("/nonexistent/socket")
}
