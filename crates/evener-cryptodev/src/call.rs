//! OCF's calls, each in rounds: the kernel brings nothing of the client's memory until we have named it.
//!
//! `(nothing) -> the record -> the record and what it points to -> the answer`. A client may change its memory between the
//! rounds, so each round believes only what it was brought, and asks again, or refuses, where that does not fit.

use std::sync::Arc;

use evener_core::{Algorithm, Direction, Job, Session};
use evener_driver_kernel::ocf::{self, Call, CryptOp, SessionOp};
use evener_ring::wipe;
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::async_queue::AsyncRequest;
use crate::clients::{Clients, Key};
use crate::fuse::{Ioctl, Span};
use crate::outcome::result;
use crate::wiped::Wiped;

/// Longest text of a request, and so the memory that the job of [`Node::serve`](crate::Node::serve) needs: what CUSE hands over at once (32 pages) less
/// the request's other parts.
pub const TEXT_BYTES_MAX: usize = 120 << 10;

/// Longest key: that of a MAC (`CRYPTO_HMAC_MAX_KEY_LEN`).
const KEY_BYTES_MAX: u32 = 512;

/// The name that session info gives for what computes.
const DRIVER: &str = "evener";

/// What a call comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// More of the client's memory is needed.
    Fetch { input: Vec<Span>, output: Vec<Span> },
    /// What is written into the space that was requested.
    Done(Wiped),
}

/// Answers a call; `run` runs the one job of `burst`.
pub(crate) fn answer<'m>(
    ioctl: &Ioctl<'_>,
    clients: &mut Clients,
    run: impl FnOnce(&mut Vec<Box<Job<'m>>>),
    burst: &mut Vec<Box<Job<'m>>>,
) -> Result<Answer, Errno> {
    if ioctl.is_compat {
        return Err(Errno::NOSYS);
    }
    let is_it = |call: &Call| u64::from(call.number()) == u64::from(ioctl.number);
    match Call::ALL.into_iter().find(is_it).ok_or(Errno::NOTTY)? {
        Call::OpenSession => open_session(ioctl, clients),
        Call::CloseSession => close_session(ioctl, clients),
        Call::Crypt => crypt(ioctl, clients, run, burst),
        Call::SessionInfo => session_info(ioctl, clients),
        Call::Leave => submit(ioctl, clients),
        Call::Fetch => fetch(ioctl, clients),
    }
}

/// The record at the call's argument.
fn record(ioctl: &Ioctl<'_>, bytes: usize) -> Span {
    span(ioctl.argument, bytes)
}

fn span(address: impl TryInto<u64>, bytes: usize) -> Span {
    let wide = |bytes| u64::try_from(bytes).unwrap_or(u64::MAX);
    Span { address: address.try_into().unwrap_or(u64::MAX), bytes: wide(bytes) }
}

/// The parts that are not empty: the kernel takes no others.
fn named(spans: impl IntoIterator<Item = Span>) -> Vec<Span> {
    spans.into_iter().filter(|span| span.bytes > 0).collect()
}

fn open_session(ioctl: &Ioctl<'_>, clients: &mut Clients) -> Result<Answer, Errno> {
    let whole = record(ioctl, SessionOp::BYTES);
    let Some(op) = SessionOp::read(ioctl.data) else {
        return Ok(Answer::Fetch { input: vec![whole], output: vec![] });
    };
    if op.key_bytes > KEY_BYTES_MAX || op.mac_key_bytes > KEY_BYTES_MAX {
        return Err(Errno::INVAL);
    }
    let is_mac = op.cipher == 0;
    let (address, bytes) = if is_mac { (op.mac_key, op.mac_key_bytes) } else { (op.key, op.key_bytes) };
    let bytes = usize::try_from(bytes).map_err(|_| Errno::INVAL)?;
    let key = &ioctl.data[SessionOp::BYTES..];
    if key.len() != bytes {
        return match key.is_empty() {
            true => Ok(Answer::Fetch { input: named([whole, span(address, bytes)]), output: vec![whole] }),
            false => Err(Errno::INVAL),
        };
    }
    if bytes == 0 && !ioctl.has_space {
        return Ok(Answer::Fetch { input: vec![whole], output: vec![whole] });
    }
    let key = Key::new(op.cipher, op.mac, Zeroizing::new(key.to_vec()))?;
    let session = clients.add(ioctl.client, key)?;
    Ok(Answer::Done(SessionOp { session, ..op }.bytes().into()))
}

fn close_session(ioctl: &Ioctl<'_>, clients: &mut Clients) -> Result<Answer, Errno> {
    let Ok(session) = <[u8; 4]>::try_from(ioctl.data) else {
        return Ok(Answer::Fetch { input: vec![record(ioctl, 4)], output: vec![] });
    };
    clients.remove(ioctl.client, u32::from_ne_bytes(session))?;
    Ok(Answer::Done(Wiped::default()))
}

fn session_info(ioctl: &Ioctl<'_>, clients: &mut Clients) -> Result<Answer, Errno> {
    let Some(session) = ioctl.data.first_chunk() else {
        let whole = record(ioctl, ocf::SESSION_INFO_BYTES);
        return Ok(Answer::Fetch { input: vec![record(ioctl, 4)], output: vec![whole] });
    };
    let algorithm = clients.key(ioctl.client, u32::from_ne_bytes(*session))?.algorithm;
    let mut info = vec![0; ocf::SESSION_INFO_BYTES];
    info[..4].copy_from_slice(session);
    let [cipher, hash, flags] = ocf::SESSION_INFO_PLACES;
    let place = if algorithm.is_cipher() { cipher } else { hash };
    info[place..place + DRIVER.len()].copy_from_slice(DRIVER.as_bytes());
    // Programs that look for a device are to find one here, for that is why the node is there.
    info[flags..flags + 4].copy_from_slice(&ocf::IS_DEVICE.to_ne_bytes());
    Ok(Answer::Done(info.into()))
}

/// A request that was checked, with as much of the client's memory as the kernel fetched.
struct CheckedRequest<'a> {
    op: CryptOp,
    session: Arc<Session>,
    /// Text and IV, or nothing.
    data: &'a [u8],
    text_bytes: usize,
}

impl<'a> CheckedRequest<'a> {
    /// `None` where not even the record was brought.
    fn read(ioctl: &Ioctl<'a>, clients: &mut Clients) -> Result<Option<Self>, Errno> {
        let Some(op) = CryptOp::read(ioctl.data) else { return Ok(None) };
        let text_bytes = usize::try_from(op.len).map_err(|_| Errno::INVAL)?;
        if text_bytes > TEXT_BYTES_MAX || op.flags & !ocf::WRITE_IV != 0 {
            return Err(Errno::INVAL);
        }
        let key = clients.key(ioctl.client, op.session)?;
        if key.algorithm.iv_bytes() > 0 && op.iv == 0 {
            return Err(Errno::INVAL);
        }
        let session = key.session(direction(&op, key)?)?;
        Ok(Some(Self { op, session, data: &ioctl.data[CryptOp::BYTES..], text_bytes }))
    }

    fn algorithm(&self) -> Algorithm {
        self.session.algorithm()
    }

    /// The client's memory that is read.
    fn input(&self, record: Span) -> Vec<Span> {
        named([record, span(self.op.src, self.text_bytes), span(self.op.iv, self.algorithm().iv_bytes())])
    }

    /// Text and IV; fails where they are not as long as the record says.
    fn parts(&self) -> Result<(&'a [u8], &'a [u8]), Errno> {
        match self.data.len() == self.text_bytes + self.algorithm().iv_bytes() {
            true => Ok(self.data.split_at(self.text_bytes)),
            false => Err(Errno::INVAL),
        }
    }
}

/// The client's memory that a request writes: text or digest, and the next IV where it is wanted.
fn spaces(op: &CryptOp, algorithm: Algorithm) -> [Span; 2] {
    let space = match algorithm.is_cipher() {
        true => span(op.dst, usize::try_from(op.len).unwrap_or(usize::MAX)),
        false => span(op.mac, algorithm.tag_bytes()),
    };
    let iv_bytes = if op.flags & ocf::WRITE_IV == 0 { 0 } else { algorithm.iv_bytes() };
    [space, span(op.iv, iv_bytes)]
}

fn crypt<'m>(
    ioctl: &Ioctl<'_>,
    clients: &mut Clients,
    run: impl FnOnce(&mut Vec<Box<Job<'m>>>),
    burst: &mut Vec<Box<Job<'m>>>,
) -> Result<Answer, Errno> {
    let whole = record(ioctl, CryptOp::BYTES);
    let Some(request) = CheckedRequest::read(ioctl, clients)? else {
        return Ok(Answer::Fetch { input: vec![whole], output: vec![] });
    };
    if !ioctl.has_space && request.data.is_empty() {
        return Ok(match named(spaces(&request.op, request.algorithm())) {
            // Asks for no output, so it is done already.
            nothing if nothing.is_empty() => Answer::Done(Wiped::default()),
            output => Answer::Fetch { input: request.input(whole), output },
        });
    }
    let (text, iv) = request.parts()?;
    let job = burst.first_mut().ok_or(Errno::IO)?;
    job.space_mut()[..text.len()].copy_from_slice(text);
    job.arm(Arc::clone(&request.session), iv, text.len());
    let fits = job.lengths_fit();
    if fits {
        run(burst);
    }
    let job = burst.first_mut().ok_or(Errno::IO)?;
    let result = if fits { result(job, &request.op, text, iv) } else { Err(Errno::INVAL) };
    wipe(&mut job.space_mut()[..text.len()]);
    // Or the key would be there for as long as no other comes.
    job.disarm();
    result.map(Answer::Done)
}

/// `CIOCASYNCCRYPT`: what is wrong with the request itself is said at once, what becomes of it when it is fetched.
fn submit(ioctl: &Ioctl<'_>, clients: &mut Clients) -> Result<Answer, Errno> {
    let whole = record(ioctl, CryptOp::BYTES);
    let Some(request) = CheckedRequest::read(ioctl, clients)? else {
        return Ok(Answer::Fetch { input: vec![whole], output: vec![] });
    };
    if request.data.is_empty() && request.parts().is_err() {
        return Ok(Answer::Fetch { input: request.input(whole), output: vec![] });
    }
    let (text, iv) = request.parts()?;
    clients.queue.submit(AsyncRequest {
        client: ioctl.client,
        op: request.op,
        session: request.session,
        text: text.to_vec().into(),
        iv: iv.to_vec(),
    })?;
    Ok(Answer::Done(Wiped::default()))
}

/// `CIOCASYNCFETCH`: the record as it was submitted, and its results where it says. Between the rounds the request is the calling
/// thread's, or another's result might come to its memory.
fn fetch(ioctl: &Ioctl<'_>, clients: &mut Clients) -> Result<Answer, Errno> {
    if ioctl.thread == 0 {
        return Err(Errno::PERM);
    }
    if !ioctl.has_space {
        let (op, algorithm) = clients.queue.offer(ioctl.client, ioctl.thread)?;
        let [space, iv] = spaces(&op, algorithm);
        let output = named([record(ioctl, CryptOp::BYTES), space, iv]);
        return Ok(Answer::Fetch { input: vec![], output });
    }
    let (op, came) = clients.queue.take(ioctl.client, ioctl.thread)?;
    let mut data = Wiped::with_capacity(CryptOp::BYTES + came.len());
    data.extend_from_slice(&op.bytes());
    data.extend_from_slice(&came);
    Ok(Answer::Done(data))
}

fn direction(op: &CryptOp, key: &Key) -> Result<Direction, Errno> {
    match op.op {
        ocf::ENCRYPT => Ok(Direction::Encrypt),
        ocf::DECRYPT if key.algorithm.is_cipher() => Ok(Direction::Decrypt),
        _ => Err(Errno::INVAL),
    }
}

#[cfg(test)]
mod tests;
