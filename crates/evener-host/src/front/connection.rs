//! One connection: messages in, the client's state changed, answers out. A thread of its own, so that a module that hangs still
//! opens sessions and a client that dawdles delays nobody.

use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use evener_wire::{
    ConfigMessage, CreateSession, MemoryTable, Message, RingAddresses, RingDescriptor, RingState,
    SESSION_BYTES, WireError, features, number, protocol_features,
};
use rustix::event::{PollFd, PollFlags, poll};

use crate::front::socket::{NoMessage, Received, receive, reply};
use crate::state::client::{Client, files};
use crate::state::host_state::HostState;
use crate::state::memory::{Memory, MemoryRefusal};
use crate::state::ring::{Kick, Misplaced, RINGS_MAX, Ring, is_eventfd};

/// Why a connection is broken off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Break {
    #[error("{0}")]
    Wire(#[from] WireError),
    #[error("{0}")]
    Memory(#[from] MemoryRefusal),
    #[error("there is no ring {0}")]
    NoRing(u32),
    #[error("a ring of {0} entries")]
    RingSize(u32),
    #[error("a ring outside the client's memory")]
    Misplaced,
    #[error("a ring is to be called or kicked by something that is no eventfd, or by nothing")]
    NoEventfd,
    #[error("features that were not offered: {0:#x}")]
    Features(u64),
    #[error("the answer could not be sent")]
    Deaf,
}

impl From<Misplaced> for Break {
    fn from(_: Misplaced) -> Self {
        Self::Misplaced
    }
}

/// Serves a connection until it ends, and forgets the client.
pub(crate) fn serve(shared: &HostState, client: &Arc<Client>, mut stream: UnixStream) {
    let Ok(process) = client.peer.watch() else { return shared.leave(client) };
    while wait(&stream, process.as_ref()) && !client.is_over() {
        let outcome = match receive(&mut stream) {
            Ok(received) => handle(shared, client, &stream, received),
            Err(NoMessage::Ended) => break,
            Err(NoMessage::Wire(error)) => Err(error.into()),
        };
        if let Err(reason) = outcome {
            shared.break_off(client, reason);
            break;
        }
    }
    shared.leave(client);
}

/// Waits for a message; `false` where the process that connected has ended, though a child of it may hold the stream.
fn wait(stream: &UnixStream, process: Option<&OwnedFd>) -> bool {
    let readable = |file| PollFd::from_borrowed_fd(file, PollFlags::IN);
    let mut both: Vec<PollFd<'_>> = vec![readable(stream.as_fd())];
    let process = process.filter(|_| !cfg!(mutant = "host_process_unwatched"));
    both.extend(process.map(|process| readable(process.as_fd())));
    loop {
        match poll(&mut both, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
            // What the process sent before it ended does not matter any more: nobody waits for it.
            Ok(_) => return both.get(1).is_none_or(|process| process.revents().is_empty()),
        }
    }
}

fn handle(
    shared: &HostState,
    client: &Arc<Client>,
    stream: &UnixStream,
    received: Received,
) -> Result<(), Break> {
    let Received { message, mut payload, descriptors } = received;
    let answer = |bytes: &[u8]| reply(stream, message, bytes).map_err(|_| Break::Deaf);
    match message {
        Message::GetFeatures => answer(&FEATURES.to_ne_bytes()),
        Message::GetProtocolFeatures => answer(&PROTOCOL_FEATURES.to_ne_bytes()),
        Message::GetQueueNum => answer(&(RINGS_MAX as u64).to_ne_bytes()),
        Message::SetFeatures => set_features(client, number(&payload)?),
        Message::SetProtocolFeatures => offered(number(&payload)?, PROTOCOL_FEATURES),
        // An error descriptor would be called where a connection ends here.
        Message::SetOwner | Message::ResetOwner | Message::SetRingErr => Ok(()),
        Message::SetMemTable => set_memory(shared, client, &payload, descriptors),
        Message::SetRingNum => set_size(shared, client, RingState::parse(&payload)?),
        Message::SetRingBase => {
            let state = RingState::parse(&payload)?;
            let base = u16::try_from(state.number).map_err(|_| Break::RingSize(state.number))?;
            change(shared, client, state.ring, |ring| ring.base = base)
        }
        Message::SetRingAddr => {
            let addresses = RingAddresses::parse(&payload)?;
            change(shared, client, addresses.ring, |ring| ring.addresses = Some(addresses))
        }
        Message::SetRingKick => {
            let (ring, file) = eventfd(&payload, descriptors)?;
            let kick = Kick::new(file, &shared.watch).map_err(|_| Break::NoEventfd)?;
            change(shared, client, ring, |ring| ring.kick = Some(kick))
        }
        Message::SetRingCall => {
            let (ring, file) = eventfd(&payload, descriptors)?;
            change(shared, client, ring, |ring| ring.call = Some(Arc::new(file)))
        }
        Message::SetRingEnable => {
            let state = RingState::parse(&payload)?;
            change(shared, client, state.ring, |ring| ring.is_off = state.number == 0)
        }
        Message::GetRingBase => {
            let asked = RingState::parse(&payload)?;
            let index = index_of(asked.ring)?;
            let base = stop_ring(client, index);
            answer(&RingState { ring: asked.ring, number: base.into() }.to_bytes())
        }
        Message::GetConfig => {
            let asked = ConfigMessage::parse(&payload)?;
            // A part that is not there is answered with none, as the protocol demands.
            let part = asked.part(&shared.config).unwrap_or_default();
            let size = u32::try_from(part.len()).unwrap_or_default();
            answer(&ConfigMessage { size, ..asked }.to_bytes(part))
        }
        Message::CreateSession => {
            open_session(shared, client, &mut payload)?;
            answer(&payload)
        }
        Message::CloseSession => {
            let closed = client.lock().sessions.close(number(&payload)?);
            shared.end_sessions(closed);
            Ok(())
        }
    }
}

fn set_features(client: &Client, told: u64) -> Result<(), Break> {
    offered(told, FEATURES)?;
    client.lock().features = told;
    Ok(())
}

/// What a client may choose is what it was offered.
fn offered(told: u64, offer: u64) -> Result<(), Break> {
    if told & !offer == 0 || cfg!(mutant = "host_features_any") { Ok(()) } else { Err(Break::Features(told)) }
}

/// Takes the client's memory. Rings that run go on in the new one where they stand.
fn set_memory(
    shared: &HostState,
    client: &Client,
    payload: &[u8],
    descriptors: Vec<OwnedFd>,
) -> Result<(), Break> {
    let table = MemoryTable::parse(payload)?;
    let memory = Memory::map(&table, &files(descriptors), shared.limits.memory_bytes_max)?;
    let mut guard = client.quiesce(|_| true);
    let state = &mut *guard;
    let before = std::mem::replace(&mut state.memory, memory);
    for ring in &mut state.rings {
        let ran = ring.device.is_some();
        ring.stop();
        if ran {
            ring.try_start(&state.memory, state.features)?;
        }
    }
    drop(guard);
    // Outside the lock: to unmap many gigabytes takes long, and the module's thread may be at the door.
    drop(before);
    shared.wake();
    Ok(())
}

fn set_size(shared: &HostState, client: &Client, state: RingState) -> Result<(), Break> {
    let size = u16::try_from(state.number).ok().filter(|size| size.is_power_of_two() && *size <= SIZE_MAX);
    let size = size.ok_or(Break::RingSize(state.number))?;
    change(shared, client, state.ring, |ring| ring.size = size)
}

/// Changes what is known of a ring, and starts it once all is known. A ring that runs is changed after a stop only.
fn change(
    shared: &HostState,
    client: &Client,
    index: u32,
    change: impl FnOnce(&mut Ring),
) -> Result<(), Break> {
    let mut state = client.lock();
    let state = &mut *state;
    let ring = &mut state.rings[index_of(index)?];
    change(ring);
    ring.try_start(&state.memory, state.features)?;
    shared.wake();
    Ok(())
}

fn stop_ring(client: &Client, index: usize) -> u16 {
    let mut state = client.quiesce(|ring| ring == index);
    let ring = &mut state.rings[index];
    // The next life begins with a kick of its own.
    ring.kick = None;
    ring.stop()
}

fn index_of(ring: u32) -> Result<usize, Break> {
    usize::try_from(ring).ok().filter(|index| *index < RINGS_MAX).ok_or(Break::NoRing(ring))
}

/// The ring and the one descriptor that a message is about. It must be an eventfd, which is written without waiting.
fn eventfd(payload: &[u8], descriptors: Vec<OwnedFd>) -> Result<(u32, OwnedFd), Break> {
    let about = RingDescriptor::parse(payload)?;
    let file = descriptors.into_iter().next().filter(|_| about.has_file).ok_or(Break::NoEventfd)?;
    let is_eventfd = is_eventfd(&file) || cfg!(mutant = "host_call_any_file");
    if !is_eventfd || rustix::io::ioctl_fionbio(&file, true).is_err() {
        return Err(Break::NoEventfd);
    }
    Ok((about.ring.into(), file))
}

/// Opens a session and puts its id into the payload, or -1.
fn open_session(shared: &HostState, client: &Client, payload: &mut [u8]) -> Result<(), Break> {
    let asked = CreateSession::parse(payload)?;
    let id = client.lock().sessions.open(&asked, &shared.does, shared.limits.sessions_max);
    if id.is_none() {
        client.counts.refused.add(1);
        shared.totals.refused.add(1);
    }
    let payload: &mut [u8; SESSION_BYTES] = payload.try_into().expect("parsed above");
    CreateSession::answer(payload, id.unwrap_or(REFUSED));
    Ok(())
}

const FEATURES: u64 = features::VERSION_1 | features::PROTOCOL | features::EVENT_IDX | features::INDIRECT;
const PROTOCOL_FEATURES: u64 = protocol_features::CRYPTO_SESSION | protocol_features::CONFIG;

/// Largest ring, in entries: QEMU's have 1024.
const SIZE_MAX: u16 = 4096;

/// The id of a session that there is not.
const REFUSED: i64 = -1;
