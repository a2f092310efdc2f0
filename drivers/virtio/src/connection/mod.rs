//! Carries requests to a host or a device: a connection shares a region and holds the queue in it, slots for requests, and what came back.
//!
//! | a request is | when |
//! |---|---|
//! | at its slot | it was copied in (`slots.rs`) |
//! | added | the queue has its descriptor; [`Connection::flush`] shows that to the other side |
//! | under way | the other side has it; `calls.rs` waits |
//! | back | [`Connection::collect`] found it; its status stays until [`Connection::take`] |
//!
//! The region holds the queue's parts, one slot per request (header, IV, status, table) and the pool of data. A slot's table is
//! the one descriptor that the queue needs for it; the pieces are header, IV, source, destination, status, as Linux's
//! driver lays them.

mod calls;
pub(crate) mod control;
pub(crate) mod error;
pub(crate) mod layout;
pub(crate) mod link;
mod pool;
mod session_cache;
mod sessions;
pub(crate) mod shared_connection;
mod slots;
#[cfg(test)]
pub(crate) mod test_peer;
pub(crate) mod wait;
pub(crate) mod wire_mapping;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use evener_ring::Region;
use evener_ring::virtqueue::{Driver, Mapped};
use evener_wire::Config;

pub(crate) use self::sessions::NoSession;
pub(crate) use self::slots::RequestSlot;
use crate::connection::control::Control;
use crate::connection::error::ConnectionError;
use crate::connection::layout::{
    DEPTH, PARTS, POOL_AT, POOL_BYTES, REGION_BYTES, SLOT_BYTES, SLOTS_AT, STATUS_AT, inside,
};
use crate::connection::link::{Link, OpenLink};
use crate::connection::pool::Pool;
use crate::connection::session_cache::SessionCache;
use crate::connection::wait::Spin;
use crate::module_name::Trusted;

/// A connection to a host, or a device.
#[derive(Debug)]
pub(crate) struct Connection {
    link: Box<dyn Link>,
    region: Arc<Region>,
    queue: Driver<Mapped>,
    pool: Pool,
    /// Seats without a request.
    free: Vec<usize>,
    /// Slot of each request by the name that the queue gave it.
    by_head: Vec<usize>,
    /// By slot: statuses of requests that came back and were not taken yet.
    back: [Option<u8>; DEPTH],
    /// What was wrong behind that.
    fault: Option<ConnectionError>,
    keys: SessionCache,
    config: Option<Config>,
    spin: Spin,
    /// Whether requests were added since the last flush.
    is_unshown: bool,
    /// When the last batch was shown, where that is of use.
    shown: Option<Instant>,
    /// So many must come back until the other side calls; 0: it has, or does so just now.
    until_call: u16,
    /// How much of the region the other side reaches, from its beginning.
    lent: usize,
    /// Where the data end that ever lay in the pool: pages behind that were never made.
    reached: usize,
}

impl Connection {
    /// Connects to a host and sets everything up.
    pub(crate) fn to_host(path: &Path, trusted: &Trusted) -> Result<Self, ConnectionError> {
        let control = Control::connect(path, trusted)?;
        control.ask()?;
        // Pages come when requests reach them: most programs have few at a time.
        let (region, memory) = shared()?;
        let linked = link::host(control, &region, &memory, PARTS)?;
        Ok(Self::over(linked, region))
    }

    /// Sets everything up with what `open` makes of the region: the queue's parts lie as said, a control queue at the offset.
    #[cfg(any(test, target_arch = "x86_64"))]
    pub(crate) fn to_device(
        open: impl FnOnce(&Arc<Region>, layout::Parts, usize) -> Result<OpenLink, ConnectionError>,
    ) -> Result<Self, ConnectionError> {
        let (region, _) = shared()?;
        let linked = open(&region, PARTS, layout::CONTROL_AT)?;
        Ok(Self::over(linked, region))
    }

    fn over(linked: OpenLink, region: Arc<Region>) -> Self {
        let OpenLink { link, queue, config, spin, lent } = linked;
        Self {
            link,
            region,
            queue,
            pool: Pool::new(POOL_AT, POOL_BYTES),
            free: (0..DEPTH).rev().collect(),
            by_head: vec![0; PARTS.size.into()],
            back: [None; DEPTH],
            fault: None,
            keys: SessionCache::default(),
            config,
            spin,
            is_unshown: false,
            shown: None,
            until_call: 0,
            lent,
            reached: POOL_AT,
        }
    }

    /// What the host says of itself.
    pub(crate) const fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    pub(crate) fn copy_in(&self, at: usize, bytes: &[u8]) {
        inside(self.region.copy_in(at, bytes));
    }

    pub(crate) fn copy_out(&self, at: usize, into: &mut [u8]) {
        inside(self.region.copy_out(at, into));
    }

    pub(crate) fn wipe(&self, at: usize, bytes: usize) {
        inside(self.region.wipe(at, bytes));
    }

    /// Ends a connection with requests under way: nothing works on the data any more, which are overwritten. Who sleeps at it wakes.
    pub(crate) fn end(mut self) {
        self.link.end();
        self.wipe(POOL_AT, self.reached - POOL_AT);
        if !cfg!(mutant = "end_wakes_nobody") {
            // Where that fails, the sleeper sleeps until its time is over.
            self.link.waiter().wake().unwrap_or_default();
        }
    }

    /// Shows the host what was added, and kicks it where it sleeps.
    pub(crate) fn flush(&mut self) -> Result<(), ConnectionError> {
        let is_new = std::mem::take(&mut self.is_unshown);
        if is_new {
            self.shown = self.spin.learns().then(Instant::now);
        }
        let is_wanted = self.queue.publish() || is_new && cfg!(mutant = "kick_always");
        if is_wanted { self.link.kick() } else { Ok(()) }
    }

    /// Looks what came back; says whether anything did. What came before something that cannot be counts, and the error follows.
    pub(crate) fn collect(&mut self) -> Result<bool, ConnectionError> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let mut any = false;
        loop {
            let used = match self.queue.take() {
                Ok(Some(used)) => used,
                Ok(None) => return Ok(any),
                Err(malformed) if any => {
                    self.fault = Some(malformed.into());
                    return Ok(any);
                }
                Err(malformed) => return Err(malformed.into()),
            };
            let number = self.by_head[usize::from(used.head)];
            let mut status = [0];
            self.copy_out(SLOTS_AT + number * SLOT_BYTES + STATUS_AT, &mut status);
            self.back[number] = Some(status[0]);
            self.until_call = self.until_call.saturating_sub(1);
            any = true;
        }
    }

    /// The other side is gone: what came back before counts, and the end follows.
    pub(crate) fn break_off(&mut self, end: ConnectionError) -> Result<(), ConnectionError> {
        self.collect()?;
        self.fault.get_or_insert(end);
        Ok(())
    }

    /// Whether the next look ends the connection: nothing comes behind what cannot be.
    pub(crate) const fn has_fault(&self) -> bool {
        self.fault.is_some() && !cfg!(mutant = "fault_slept_on")
    }

    /// Whether the request at that slot came back.
    pub(crate) fn is_back(&self, number: usize) -> bool {
        self.back[number].is_some()
    }

    /// Takes the status of the request at that slot; none where it did not come back.
    pub(crate) fn take(&mut self, number: usize) -> Option<u8> {
        self.back[number].take()
    }
}

/// A region of which the pages before the pool are made.
fn shared() -> Result<(Arc<Region>, File), ConnectionError> {
    let made = Region::create(c"evener-hosted", REGION_BYTES).and_then(|(region, memory)| {
        region.make_pages(0, POOL_AT)?;
        Ok((region, memory))
    });
    let (region, memory) = made.map_err(|error| ConnectionError::system("shared memory", error))?;
    Ok((Arc::new(region), memory))
}
