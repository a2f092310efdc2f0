//! Calls of cryptodev: what a client asks, what it gets back, and what becomes of requests that it left.

use evener_core::JobError;

use super::*;
use crate::async_queue::CLIENT_REQUESTS_MAX;
use crate::fuse::POLL_IN;
use std::collections::BTreeMap;

const ARGUMENT: u64 = 0x1000;
const KEY: u64 = 0x2000;
const TEXT: u64 = 0x3000;
const IV: u64 = 0x9000;

/// A client's memory, and the kernel between it and us.
struct Client {
    memory: BTreeMap<u64, Vec<u8>>,
    clients: Clients,
    number: u64,
    /// The thread of it that calls.
    thread: u32,
    /// What the client writes over its record before the last round.
    meanwhile: Option<Vec<u8>>,
}

impl Client {
    fn new() -> Self {
        let mut clients = Clients::default();
        let number = clients.open().unwrap();
        // These threads have numbers that others of the system may have, or none.
        clients.queue.has_ended = |_| false;
        Self { memory: BTreeMap::new(), clients, number, thread: 1, meanwhile: None }
    }

    /// Calls and goes through all rounds, jobs done by `run`.
    fn call(&mut self, call: Call, run: fn(&mut Vec<Box<Job<'_>>>)) -> Result<Vec<u8>, Errno> {
        let (mut data, mut has_space) = (Vec::new(), false);
        for _ in 0..4 {
            match self.round(call, &data, has_space, run)? {
                Answer::Done(written) => return Ok(written.to_vec()),
                Answer::Fetch { input, output } => {
                    has_space = !output.is_empty();
                    if let Some(record) = self.meanwhile.take_if(|_| has_space) {
                        self.memory.insert(ARGUMENT, record);
                    }
                    let fetch =
                        |span: &Span| &self.memory[&span.address][..usize::try_from(span.bytes).unwrap()];
                    data = input.iter().flat_map(fetch).copied().collect();
                }
            }
        }
        unreachable!("no call takes more rounds")
    }

    fn round(
        &mut self,
        call: Call,
        data: &[u8],
        has_space: bool,
        run: fn(&mut Vec<Box<Job<'_>>>),
    ) -> Result<Answer, Errno> {
        let mut memory = vec![0; TEXT_BYTES_MAX];
        let number = u32::try_from(u64::from(call.number())).unwrap();
        let (client, thread) = (self.number, self.thread);
        let ioctl = Ioctl { client, thread, number, argument: ARGUMENT, is_compat: false, data, has_space };
        answer(&ioctl, &mut self.clients, run, &mut vec![Job::in_place(&mut memory)])
    }

    /// Has what was left run by `leaves`, four at a time.
    fn run_left(&mut self) -> u64 {
        let mut spaces = vec![vec![0; TEXT_BYTES_MAX]; 4];
        let mut jobs = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
        self.clients.queue.run(&mut jobs, |jobs| jobs.iter_mut().for_each(leaves_one))
    }

    fn open(&mut self, cipher: u32, mac: u32, key: &[u8]) -> Result<u32, Errno> {
        self.memory.insert(KEY, key.to_vec());
        let (bytes, key) = (u32::try_from(key.len()).unwrap(), usize::try_from(KEY).unwrap());
        let op = match cipher {
            0 => SessionOp { mac, mac_key_bytes: bytes, mac_key: key, ..SessionOp::default() },
            _ => SessionOp { cipher, key_bytes: bytes, key, ..SessionOp::default() },
        };
        self.memory.insert(ARGUMENT, op.bytes());
        let written = self.call(Call::OpenSession, |_| ())?;
        Ok(SessionOp::read(&written).unwrap().session)
    }

    fn request(&mut self, session: u32, flags: u16, text: &[u8]) -> CryptOp {
        self.memory.insert(TEXT, text.to_vec());
        self.memory.insert(IV, vec![3; 16]);
        let [text_at, iv] = [TEXT, IV].map(|at| usize::try_from(at).unwrap());
        let len = u32::try_from(text.len()).unwrap();
        let op = CryptOp { session, flags, len, src: text_at, dst: text_at, mac: text_at, iv, op: 0 };
        self.memory.insert(ARGUMENT, op.bytes());
        op
    }
}

/// Says done and leaves the text as it is.
fn leaves(burst: &mut [Box<Job<'_>>]) {
    leaves_one(&mut burst[0]);
}

fn leaves_one(job: &mut Box<Job<'_>>) {
    let written = job.input_bytes();
    job.done(written);
}

#[test]
fn a_request_fetches_what_it_names_and_gives_text_and_next_iv_back() {
    let mut client = Client::new();
    let session = client.open(11, 0, &[1; 16]).unwrap();
    let text: Vec<u8> = (0..48).collect();
    client.request(session, ocf::WRITE_IV, &text);
    let written = client.call(Call::Crypt, |burst| leaves(burst)).unwrap();
    assert_eq!((&written[..48], &written[48..]), (&text[..], &text[32..]));
    client.memory.insert(ARGUMENT, session.to_ne_bytes().to_vec());
    assert_eq!(client.call(Call::CloseSession, |burst| leaves(burst)), Ok(vec![]));
    client.request(session, 0, &text);
    assert_eq!(client.call(Call::Crypt, |burst| leaves(burst)), Err(Errno::INVAL));
}

#[test]
fn a_record_that_grew_between_two_rounds_is_refused() {
    let mut client = Client::new();
    let session = client.open(11, 0, &[1; 16]).unwrap();
    let op = client.request(session, 0, &[7; 32]);
    client.meanwhile = Some(CryptOp { len: 4_096, ..op }.bytes());
    assert_eq!(client.call(Call::Crypt, |burst| leaves(burst)), Err(Errno::INVAL));
}

#[test]
fn lengths_that_no_request_has_are_refused_before_anything_is_fetched() {
    let mut client = Client::new();
    let session = client.open(11, 0, &[1; 16]).unwrap();
    for len in [u32::MAX, 1 << 20, 17] {
        let op = client.request(session, 0, &[7; 32]);
        client.memory.insert(ARGUMENT, CryptOp { len, ..op }.bytes());
        assert_eq!(client.call(Call::Crypt, |burst| leaves(burst)), Err(Errno::INVAL), "{len}");
    }
    assert_eq!(client.open(11, 0, &[1; 513]), Err(Errno::INVAL));
    assert!(client.open(0, 7, &[1; 512]).is_ok());
}

#[test]
fn a_session_is_said_to_be_a_device_s() {
    let mut client = Client::new();
    let session = client.open(11, 0, &[1; 32]).unwrap();
    client.memory.insert(ARGUMENT, session.to_ne_bytes().to_vec());
    let info = client.call(Call::SessionInfo, |burst| leaves(burst)).unwrap();
    assert_eq!((info.len(), &info[68..75], info[264]), (268, &b"evener\0"[..], 1));
}

/// Calls whose jobs are never run at once.
fn queued(client: &mut Client, call: Call) -> Result<Vec<u8>, Errno> {
    client.call(call, |_| unreachable!("it is left"))
}

#[test]
fn requests_that_were_left_are_fetched_in_their_order_when_they_are_done() {
    let mut client = Client::new();
    let session = client.open(11, 0, &[1; 16]).unwrap();
    let op = |client: &mut Client, turn| client.request(session, ocf::WRITE_IV, &[turn; 32]);
    for turn in 0..5 {
        op(&mut client, turn);
        assert_eq!(queued(&mut client, Call::Leave), Ok(vec![]));
    }
    assert!(!client.clients.queue.is_wanted());
    assert_eq!(queued(&mut client, Call::Fetch), Err(Errno::BUSY));
    assert!(client.clients.queue.is_wanted(), "they need not wait for others any more");
    assert_eq!((client.run_left(), client.run_left(), client.run_left()), (4, 1, 0));
    for turn in 0..5 {
        let written = queued(&mut client, Call::Fetch).unwrap();
        let (record, came) = written.split_at(CryptOp::BYTES);
        assert_eq!(CryptOp::read(record), Some(op(&mut client, turn)));
        // The text as it was when it was left, not as it is now, and the next IV: its last block.
        assert_eq!(came, [[turn; 32].as_slice(), &[turn; 16]].concat());
    }
    assert_eq!(queued(&mut client, Call::Fetch), Err(Errno::BUSY));
}

#[test]
fn a_client_leaves_so_many_requests_until_it_fetches_one() {
    let mut client = Client::new();
    let session = client.open(11, 0, &[1; 16]).unwrap();
    client.request(session, 0, &[7; 16]);
    let all: Vec<_> = (0..=CLIENT_REQUESTS_MAX).map(|_| queued(&mut client, Call::Leave)).collect();
    assert_eq!(all.iter().position(|it| *it == Err(Errno::BUSY)), Some(CLIENT_REQUESTS_MAX));
    assert_eq!(client.clients.queue.poll(client.number, Some(8)), 0);
    assert_eq!((client.run_left(), client.clients.queue.take_wakeups()), (4, vec![8]));
    assert_eq!(client.clients.queue.poll(client.number, Some(9)), POLL_IN);
    assert_eq!(client.clients.queue.take_wakeups(), [0; 0], "nothing that it could not do before");
    assert!(queued(&mut client, Call::Fetch).is_ok());
    assert_eq!(client.clients.queue.take_wakeups(), [9]);
    assert_eq!(queued(&mut client, Call::Leave), Ok(vec![]));
    // What it left goes with it.
    client.clients.close(client.number);
    assert_eq!(client.run_left(), 0);
}

#[test]
fn two_threads_that_fetch_at_once_get_a_request_each() {
    let mut client = Client::new();
    let session = client.open(11, 0, &[1; 16]).unwrap();
    for turn in 0..2 {
        client.request(session, 0, &vec![turn; 16 + 16 * usize::from(turn)]);
        assert_eq!(queued(&mut client, Call::Leave), Ok(vec![]));
    }
    client.run_left();
    let mut fetch = |thread, has_space| {
        client.thread = thread;
        client.round(Call::Fetch, &[], has_space, |_| ())
    };
    let bytes = |answer| match answer {
        Ok(Answer::Fetch { output, .. }) => output.iter().map(|span| span.bytes).sum::<u64>(),
        Ok(Answer::Done(written)) => written.len() as u64,
        Err(errno) => unreachable!("{errno}"),
    };
    assert_eq!([1, 2].map(|thread| bytes(fetch(thread, false))), [48 + 16, 48 + 32]);
    // One that was broken off is offered to the same thread again.
    assert_eq!(bytes(fetch(1, false)), 48 + 16);
    assert_eq!([2, 1].map(|thread| bytes(fetch(thread, true))), [48 + 32, 48 + 16]);
    assert_eq!(fetch(3, true), Err(Errno::BUSY));
    assert_eq!(fetch(0, false), Err(Errno::PERM), "threads of other name spaces have no numbers that differ");
}

#[test]
fn what_a_thread_was_about_to_fetch_when_it_was_killed_another_fetches() {
    let mut client = Client::new();
    let session = client.open(11, 0, &[1; 16]).unwrap();
    client.request(session, 0, &[7; 16]);
    assert_eq!(queued(&mut client, Call::Leave), Ok(vec![]));
    client.run_left();
    client.thread = 2;
    assert!(matches!(client.round(Call::Fetch, &[], false, |_| ()), Ok(Answer::Fetch { .. })));
    client.thread = 3;
    assert_eq!(queued(&mut client, Call::Fetch), Err(Errno::BUSY));
    let ready = client.clients.queue.poll(client.number, Some(9));
    assert_eq!((ready & POLL_IN, client.clients.queue.take_wakeups()), (0, vec![]));
    client.clients.queue.has_ended = |thread| thread == 2;
    assert_eq!(client.clients.queue.take_wakeups(), [9]);
    assert!(queued(&mut client, Call::Fetch).is_ok());
    assert_eq!(queued(&mut client, Call::Fetch), Err(Errno::BUSY));
}

#[test]
fn a_request_that_failed_is_told_in_its_turn_and_gone_then() {
    let mut client = Client::new();
    let session = client.open(11, 0, &[1; 16]).unwrap();
    for bytes in [16, 32] {
        client.request(session, 0, &[7; 32][..bytes]);
        assert_eq!(queued(&mut client, Call::Leave), Ok(vec![]));
    }
    let mut spaces = vec![vec![0; 64]; 2];
    let mut jobs = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
    client.clients.queue.run(&mut jobs, |jobs| {
        jobs[0].fail(JobError::ModuleLost);
        leaves_one(&mut jobs[1]);
    });
    assert_eq!(queued(&mut client, Call::Fetch), Err(Errno::IO));
    assert_eq!(queued(&mut client, Call::Fetch).map(|written| written.len()), Ok(48 + 32));
}
