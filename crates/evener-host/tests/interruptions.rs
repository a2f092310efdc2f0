//! Signals that end every sleep in the kernel early, on both sides of the wire, and messages that come in single bytes: no job is
//! lost, none is done twice, and who says nothing is given up all the same.
#![allow(unsafe_code, reason = "support/ffi.rs: a handler of signals, and signals to threads")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::panic, reason = "a test")]

#[path = "support/ffi.rs"]
mod ffi;
mod support;

use std::io::{IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use evener_core::{Algorithm, Direction, Job, Outcome, Padding, Session, known};
use evener_driver_virtio::{ConnectionError, Module, OpenError};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use evener_testing::hosts::{Host, core};
use evener_testing::noise;
use evener_testing::waiting::TIMEOUT;
use ffi::Storm;

use support::{ALL_FEATURES, Raw, cipher, halves, judge};

/// Beyond the keys that the driver keeps open, so that sessions are opened and closed all the time.
const KEYS: usize = 70;
const ROUNDS: usize = 6;
const BYTES: usize = 2_048;

fn module(socket: &Path) -> Result<Module, OpenError> {
    Module::open(&format!("hosted:{}", socket.display()).parse().unwrap())
}

#[test]
fn signals_on_both_sides_lose_no_job_and_double_none() {
    let host = Host::start(core());
    let _storm = Storm::begin();
    let module = module(&host.socket()).unwrap();
    let asked = host.order("report")["totals"]["requests"].as_u64().unwrap();
    let sessions: Vec<_> = (0..KEYS).map(|key| session(&noise(key as u64, 16))).collect();
    let texts: Vec<_> = (0..ROUNDS).map(|round| noise(1_000 + round as u64, BYTES)).collect();
    let mut jobs: Vec<_> = (0..KEYS * ROUNDS).map(|mark| job(mark, &sessions, &texts)).collect();
    let (mut driver, since) = (module.driver(), Instant::now());
    assert!(known::ask(&mut *driver, &mut jobs, || since.elapsed() > TIMEOUT), "all come back");
    jobs.sort_by_key(|job| job.mark);
    for (mark, job) in jobs.iter().enumerate() {
        assert_eq!(job.mark, mark as u64, "each once");
        assert_eq!(job.outcome(), Outcome::Done { written: BYTES });
        let (key, text) = (noise((mark % KEYS) as u64, 16), &texts[mark / KEYS]);
        let right = judge(Algorithm::Aes128Cbc, Direction::Encrypt, [&key, &[9; 16], &[], text, &[]]);
        assert!(job.output() == right.unwrap().0, "job {mark}");
    }
    drop((driver, module));
    let report = host.stop();
    assert_eq!(report.totals.requests - asked, (KEYS * ROUNDS) as u64, "the host counts each once, too");
    assert_eq!((report.totals.failed, report.totals.refused, report.connections.broken_off), (0, 0, 0));
}

fn session(key: &[u8]) -> Arc<Session> {
    Arc::new(Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, key).unwrap())
}

fn job(mark: usize, sessions: &[Arc<Session>], texts: &[Vec<u8>]) -> Box<Job<'static>> {
    let mut job = Job::in_place(texts[mark / KEYS].clone().leak());
    job.arm(Arc::clone(&sessions[mark % KEYS]), &[9; 16], BYTES);
    job.mark = mark as u64;
    job
}

#[test]
fn a_host_that_says_nothing_is_given_up_though_signals_come_sooner_than_its_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("mute");
    // The kernel takes the connection; no process ever answers.
    let _mute = UnixListener::bind(&socket).unwrap();
    let _storm = Storm::begin();
    let (told, answer) = channel();
    thread::spawn(move || told.send(module(&socket).map(drop)).unwrap_or_default());
    let opened = answer.recv_timeout(Duration::from_secs(60)).expect("it waits for ever");
    assert!(
        matches!(opened, Err(OpenError::Unreachable { error: ConnectionError::Silent, .. })),
        "{opened:?}"
    );
}

#[test]
fn an_answer_to_a_client_that_has_gone_raises_no_signal() {
    let host = Host::start(core());
    ffi::count_broken_pipes();
    let ask_for_features = halves(&[1, 1, 0]);
    for _ in 0..50 {
        let mut client = UnixStream::connect(host.socket()).unwrap();
        client.write_all(&ask_for_features.repeat(20)).unwrap();
    }
    let since = Instant::now();
    while host.order("report")["connections"].as_u64().unwrap() < 50 {
        assert!(since.elapsed() < TIMEOUT, "each connection is taken, gone or not");
        thread::sleep(Duration::from_millis(1));
    }
    host.stop();
    assert_eq!(ffi::BROKEN_PIPES.load(Relaxed), 0);
}

/// Sends a message byte by byte, its descriptors beside the first.
fn send_in_bytes(raw: &mut Raw, message: u32, payload: &[u8], has_memory: bool) {
    let whole = [halves(&[message, 1, payload.len() as u32]), payload.to_vec()].concat();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let file = [raw.memory.as_fd()];
    if has_memory {
        assert!(beside.push(SendAncillaryMessage::ScmRights(&file)));
    }
    sendmsg(&raw.stream, &[IoSlice::new(&whole[..1])], &mut beside, SendFlags::NOSIGNAL).unwrap();
    for byte in whole[1..].chunks(1) {
        thread::sleep(Duration::from_micros(100));
        raw.stream.write_all(byte).unwrap();
    }
}

#[test]
fn messages_that_come_in_single_bytes_between_signals_are_understood() {
    let host = Host::start(core());
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let _storm = Storm::begin();
    send_in_bytes(&mut raw, 1, &[], false);
    assert_eq!(raw.answer(1), ALL_FEATURES.to_ne_bytes());
    let region = [support::GUEST, support::MEMORY_BYTES, support::USER, 0];
    let table = [halves(&[1, 0]), support::words(&region)].concat();
    send_in_bytes(&mut raw, 5, &table, true);
    let key = noise(3, 16);
    let mut payload = vec![0; 1072];
    payload[..8].copy_from_slice(&2_u64.to_ne_bytes());
    payload[8..16].copy_from_slice(&halves(&[3, 16]));
    payload[32..34].copy_from_slice(&[1, 1]);
    payload[56..72].copy_from_slice(&key);
    send_in_bytes(&mut raw, 26, &payload, false);
    let answer = raw.answer(26);
    let session = u64::from_ne_bytes(answer[1064..].try_into().unwrap());
    let plain = noise(4, 512);
    let (got, status) = raw.request(&[&cipher(true, session, 512), &[3; 16], &plain], 512).unwrap();
    let right = judge(Algorithm::Aes128Cbc, Direction::Encrypt, [&key, &[3; 16], &[], &plain, &[]]);
    assert!(status == 0 && got == right.unwrap().0);
    assert_eq!(host.stop().connections.broken_off, 0);
}
