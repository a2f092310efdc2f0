//! One ring of a client: told part by part over the connection, it runs once all is told, and each stop ends one life of it.
//!
//! `Ring::default() -> size, base, addresses, kick, call -> try_start (served by the module's thread) -> stop (life + 1) -> ...`

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use evener_ring::virtqueue::{Device, Events, Mapped, part_bytes};
use evener_wire::{RingAddresses, features};
use rustix::event::epoll;

use crate::state::memory::Memory;

/// Rings that a connection may have.
pub(crate) const RINGS_MAX: usize = 4;

/// A ring as it was told so far; it runs once all is told.
#[derive(Default)]
pub(crate) struct Ring {
    pub(crate) size: u16,
    pub(crate) base: u16,
    pub(crate) addresses: Option<RingAddresses>,
    pub(crate) kick: Option<Kick>,
    pub(crate) call: Option<Arc<OwnedFd>>,
    pub(crate) is_off: bool,
    pub(crate) device: Option<Device<Mapped>>,
    /// Counts stops, so that an answer to an earlier life of the ring is not given to a later one.
    pub(crate) life: u64,
    /// The client wants to be called; it is, once nothing of its waits.
    pub(crate) owes_call: bool,
    /// Nothing more is taken, because the ring is about to stop.
    pub(crate) is_closing: bool,
}

/// A kick descriptor, watched as long as it lives.
pub(crate) struct Kick {
    file: OwnedFd,
    watch: Arc<OwnedFd>,
}

impl Kick {
    /// Watches `file` with `watch` for every further write to it, which is then a kick of `client`.
    pub(crate) fn new(file: OwnedFd, watch: &Arc<OwnedFd>, client: u64) -> io::Result<Self> {
        // Edge-triggered: each write is an event, and the count need not be read.
        let each = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(watch, &file, epoll::EventData::new_u64(client), each)?;
        Ok(Self { file, watch: Arc::clone(watch) })
    }
}

impl Drop for Kick {
    fn drop(&mut self) {
        // Closing alone would not do: the client has the same file open.
        epoll::delete(&self.watch, &self.file).ok();
    }
}

/// Why a ring cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Misplaced;

impl Ring {
    /// Starts the ring once size, addresses and kick are known.
    pub(crate) fn try_start(&mut self, memory: &Memory, features: u64) -> Result<(), Misplaced> {
        let (Some(addresses), true) = (&self.addresses, self.kick.is_some() && self.device.is_none()) else {
            return Ok(());
        };
        if self.size == 0 {
            return Ok(());
        }
        let [descriptors, available, used] = part_bytes(self.size);
        let place = |address, bytes| memory.by_user(address, bytes).ok_or(Misplaced);
        let parts = [
            place(addresses.descriptors, descriptors)?,
            place(addresses.available, available)?,
            place(addresses.used, used)?,
        ];
        let mapped = Mapped::new(self.size, parts).map_err(|_| Misplaced)?;
        let device = Device::starting_at(mapped, events(features), self.base);
        self.device = Some(device.map_err(|_| Misplaced)?);
        Ok(())
    }

    /// Ends this life of the ring and says where the next one goes on.
    pub(crate) fn stop(&mut self) -> u16 {
        if let Some(mut device) = self.device.take() {
            // What the module held for too long may have come back just now; it was taken and will not be taken again.
            device.publish();
            self.base = device.position();
        }
        self.life += 1;
        (self.owes_call, self.is_closing) = (false, false);
        self.base
    }

    /// The device's side, where it may be served.
    pub(crate) fn served(&mut self) -> Option<&mut Device<Mapped>> {
        self.device.as_mut().filter(|_| !self.is_off && !self.is_closing)
    }
}

/// How wake-ups are suppressed. QEMU 10 tells nothing of its guest's features but that it speaks the protocol, so the bits of
/// rings count only where the one of virtio 1.0 came with them.
pub(super) const fn events(told: u64) -> Events {
    let wanted = features::VERSION_1 | features::EVENT_IDX;
    if told & wanted == wanted { Events::Index } else { Events::Flags }
}
