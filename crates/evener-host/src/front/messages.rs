//! What each message of a client changes, and what is answered.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use evener_wire::{
    ConfigMessage, CreateSession, MemoryTable, Message, RingAddresses, RingDescriptor, RingState,
    SESSION_BYTES, WireError, features, number, protocol_features,
};
use zeroize::Zeroizing;

use crate::front::socket::Received;
use crate::state::client::{Client, State};
use crate::state::closer::{Foreign, is_eventfd};
use crate::state::faults::NoPages;
use crate::state::host_state::HostState;
use crate::state::memory::{Memory, MemoryRefusal};
use crate::state::ring::{Kick, Misplaced, RINGS_MAX, Ring};
use crate::state::shard::News;

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
    #[error("{0}")]
    NoPages(NoPages),
    #[error("it said nothing for {} s after it connected", .0.as_secs_f32())]
    Silent(Duration),
    #[error("it stopped in the middle of a message for {} s", .0.as_secs_f32())]
    Stuck(Duration),
    #[error("a ring is to be called or kicked by something that is no eventfd, or by nothing")]
    NoEventfd,
    #[error("features that were not offered: {0:#x}")]
    Features(u64),
    #[error("more descriptors beside a message than any has")]
    Descriptors,
    #[error("too many descriptors that its user sent wait to be closed")]
    Closing,
    #[error("the answer could not be sent")]
    Deaf,
}

/// Why a ring does not run in `memory`.
fn misplaced(memory: &Memory) -> Break {
    memory.refusal().map_or(Break::Misplaced, Break::NoPages)
}

/// What came of a message.
pub(crate) enum Handled {
    /// Nothing is to be answered.
    Done,
    Answer(Zeroizing<Vec<u8>>),
    /// Rings have to hold nothing first.
    Stops(RingStop),
}

/// Something for which rings have to hold nothing.
pub(crate) enum RingStop {
    /// The client's memory becomes this one. Rings that run go on in the new one where they stand.
    Memory(Memory),
    /// A ring ends; the answer says where it stands.
    Ring(usize),
}

pub(crate) fn handle(shared: &HostState, client: &Client, received: Received) -> Result<Handled, Break> {
    let Received { message, mut payload, descriptors } = received;
    let answer = |bytes: &[u8]| Ok(Handled::Answer(Zeroizing::new(bytes.to_vec())));
    match message {
        Message::GetConfig => answer(&config(shared, &payload)?),
        Message::CreateSession => {
            open_session(shared, client, &mut payload)?;
            Ok(Handled::Answer(payload))
        }
        Message::GetFeatures => answer(&FEATURES.to_ne_bytes()),
        Message::GetProtocolFeatures => answer(&PROTOCOL_FEATURES.to_ne_bytes()),
        Message::GetQueueNum => answer(&(RINGS_MAX as u64).to_ne_bytes()),
        Message::SetMemTable => {
            let table = MemoryTable::parse(&payload)?;
            Ok(Handled::Stops(RingStop::Memory(map(shared, client, &table, descriptors)?)))
        }
        Message::GetRingBase => {
            let index = index_of(RingState::parse(&payload)?.ring)?;
            Ok(Handled::Stops(RingStop::Ring(index)))
        }
        _ => set(client, message, &payload, descriptors).map(|()| Handled::Done),
    }
}

/// Maps memory of a client; once that is done its files were looked at, and close at once.
fn map(
    shared: &HostState,
    client: &Client,
    table: &MemoryTable,
    descriptors: Vec<Foreign>,
) -> Result<Memory, Break> {
    let files: Vec<File> = descriptors.into_iter().filter_map(Foreign::believed).map(File::from).collect();
    Memory::map(table, &files, &shared.allowance(client)).map_err(|refusal| {
        files.into_iter().for_each(|file| client.user.closer.close(file.into()));
        refusal.into()
    })
}

/// A message without an answer.
fn set(client: &Client, message: Message, payload: &[u8], descriptors: Vec<Foreign>) -> Result<(), Break> {
    match message {
        Message::SetFeatures => set_features(client, number(payload)?),
        Message::SetProtocolFeatures => offered(number(payload)?, PROTOCOL_FEATURES),
        Message::SetRingNum => set_size(client, RingState::parse(payload)?),
        Message::SetRingBase => {
            let state = RingState::parse(payload)?;
            let base = u16::try_from(state.number).map_err(|_| Break::RingSize(state.number))?;
            change(client, state.ring, |ring| ring.base = base)
        }
        Message::SetRingAddr => {
            let addresses = RingAddresses::parse(payload)?;
            change(client, addresses.ring, |ring| ring.addresses = Some(addresses))
        }
        Message::SetRingKick => {
            let (ring, file) = eventfd(payload, descriptors)?;
            let kick = Kick::new(file, &client.shard.watch, client.id).map_err(|_| Break::NoEventfd)?;
            change(client, ring, |ring| ring.kick = Some(kick))
        }
        Message::SetRingCall => {
            let (ring, file) = eventfd(payload, descriptors)?;
            change(client, ring, |ring| ring.call = Some(Arc::new(file)))
        }
        Message::SetRingEnable => {
            let state = RingState::parse(payload)?;
            change(client, state.ring, |ring| ring.is_off = state.number == 0)
        }
        Message::CloseSession => {
            let closed = client.lock().sessions.close(number(payload)?);
            client.shard.end_sessions(closed);
            Ok(())
        }
        // An error descriptor would be called where a connection ends here.
        Message::SetOwner | Message::ResetOwner | Message::SetRingErr => Ok(()),
        Message::GetFeatures
        | Message::GetProtocolFeatures
        | Message::GetQueueNum
        | Message::GetConfig
        | Message::GetRingBase
        | Message::SetMemTable
        | Message::CreateSession => unreachable!("`handle` answers these, or has them wait"),
    }
}

impl RingStop {
    /// Whether the rings hold nothing; from now on nothing more is taken from them.
    pub(crate) fn is_quiet(&self, client: &Client) -> bool {
        client.is_quiet(|index| match self {
            Self::Memory(_) => true,
            Self::Ring(ring) => index == *ring,
        })
    }

    /// Does it, and says what is answered.
    pub(crate) fn finish(self, shared: &HostState, client: &Client) -> Result<Option<Vec<u8>>, Break> {
        match self {
            Self::Memory(memory) => set_memory(shared, client, memory).map(|()| None),
            Self::Ring(index) => {
                let base = stop_ring(client, index);
                let ring = u32::try_from(index).expect("a few");
                Ok(Some(RingState { ring, number: base.into() }.to_bytes().to_vec()))
            }
        }
    }
}

fn config(shared: &HostState, payload: &[u8]) -> Result<Vec<u8>, Break> {
    let asked = ConfigMessage::parse(payload)?;
    // A part that is not there is answered with none, as the protocol demands.
    let part = asked.part(&shared.config).unwrap_or_default();
    let size = u32::try_from(part.len()).unwrap_or_default();
    Ok(ConfigMessage { size, ..asked }.to_bytes(part))
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

fn set_memory(shared: &HostState, client: &Client, memory: Memory) -> Result<(), Break> {
    let mut guard = client.lock();
    let state = &mut *guard;
    let before = std::mem::replace(&mut state.memory, Arc::new(memory));
    state.memory.take_over(&before);
    let restarted = restart_rings(state);
    drop(guard);
    // Outside the lock: to unmap many gigabytes takes long, and the module's thread may be at the door.
    shared.unmap_later(before);
    restarted?;
    client.shard.tell(News::Changed(client.id));
    Ok(())
}

/// Has rings that run go on in the client's new memory.
fn restart_rings(state: &mut State) -> Result<(), Break> {
    for ring in &mut state.rings {
        let ran = ring.device.is_some();
        ring.stop();
        if ran {
            ring.try_start(&state.memory, state.features).map_err(|Misplaced| misplaced(&state.memory))?;
        }
    }
    Ok(())
}

fn set_size(client: &Client, state: RingState) -> Result<(), Break> {
    let size = u16::try_from(state.number).ok().filter(|size| size.is_power_of_two() && *size <= SIZE_MAX);
    let size = size.ok_or(Break::RingSize(state.number))?;
    change(client, state.ring, |ring| ring.size = size)
}

/// Changes what is known of a ring, and starts it once all is known. A ring that runs is changed after a stop only.
fn change(client: &Client, index: u32, change: impl FnOnce(&mut Ring)) -> Result<(), Break> {
    let mut guard = client.lock();
    let state = &mut *guard;
    let ring = &mut state.rings[index_of(index)?];
    change(ring);
    ring.try_start(&state.memory, state.features).map_err(|Misplaced| misplaced(&state.memory))?;
    let is_served = ring.served().is_some();
    drop(guard);
    if is_served {
        client.shard.tell(News::Changed(client.id));
    }
    Ok(())
}

fn stop_ring(client: &Client, index: usize) -> u16 {
    let mut state = client.lock();
    let ring = &mut state.rings[index];
    // The next life begins with a kick of its own.
    ring.kick = None;
    ring.stop()
}

fn index_of(ring: u32) -> Result<usize, Break> {
    usize::try_from(ring).ok().filter(|index| *index < RINGS_MAX).ok_or(Break::NoRing(ring))
}

/// The ring and the one descriptor that a message is about. It must be an eventfd, which is written without waiting.
fn eventfd(payload: &[u8], descriptors: Vec<Foreign>) -> Result<(u32, OwnedFd), Break> {
    let about = RingDescriptor::parse(payload)?;
    let first = descriptors.into_iter().next().filter(|_| about.has_file).ok_or(Break::NoEventfd)?;
    let is_eventfd = |file: &OwnedFd| is_eventfd(file) || cfg!(mutant = "host_call_any_file");
    let is_ready = |file: &OwnedFd| is_eventfd(file) && rustix::io::ioctl_fionbio(file, true).is_ok();
    first.file().filter(|file| is_ready(file)).ok_or(Break::NoEventfd)?;
    Ok((about.ring.into(), first.believed().ok_or(Break::NoEventfd)?))
}

/// Opens a session and puts its id into the payload, or -1.
fn open_session(shared: &HostState, client: &Client, payload: &mut [u8]) -> Result<(), Break> {
    let asked = CreateSession::parse(payload)?;
    let (limits, user) = (&shared.limits, &client.user);
    let id = client.lock().sessions.open(
        &asked,
        &shared.does,
        limits.sessions_max,
        (user, limits.user_sessions_max),
    );
    if id.is_none() {
        client.counts.refused.add(1);
        shared.totals.refused.add(1);
    }
    let payload: &mut [u8; SESSION_BYTES] = payload.try_into().expect("parsed above");
    CreateSession::answer(payload, id.unwrap_or(REFUSED));
    Ok(())
}

pub(crate) const FEATURES: u64 =
    features::VERSION_1 | features::PROTOCOL | features::EVENT_IDX | features::INDIRECT;
const PROTOCOL_FEATURES: u64 = protocol_features::CRYPTO_SESSION | protocol_features::CONFIG;

/// Largest ring, in entries: QEMU's have 1024.
const SIZE_MAX: u16 = 4096;

/// The id of a session that there is not.
const REFUSED: i64 = -1;
