//! Carries requests to a host or a device: a connection shares a region and holds the queue in it, slots for requests, and what came back.
//!
//! The region holds the queue's parts, one slot per request (header, IV, status, table) and the pool of data. A slot's table is
//! the one descriptor that the queue needs for it; the pieces are header, IV, source, destination, status, as Linux's
//! driver lays them.

mod control;
pub(crate) mod error;
pub(crate) mod layout;
pub(crate) mod link;
mod pool;
mod session_cache;
mod sessions;
pub(crate) mod shared_connection;
#[cfg(test)]
pub(crate) mod test_peer;
pub(crate) mod wait;
pub(crate) mod wire_mapping;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evener_core::{BLOCK_BYTES, JobError};
use evener_ring::Region;
use evener_ring::virtqueue::{Driver, Mapped, PIECE_BYTES, Piece, write_table};
use evener_wire::{Config, DATA_HEADER_BYTES};

pub(crate) use self::sessions::NoSession;
use crate::connection::control::Control;
use crate::connection::error::ConnectionError;
use crate::connection::layout::{
    BASE, DEPTH, IV_AT, PAGE, PARTS, POOL_AT, POOL_BYTES, REGION_BYTES, SLOT_BYTES, SLOTS_AT, STATUS_AT,
    TABLE_AT, inside,
};
use crate::connection::link::{Link, OpenLink};
use crate::connection::pool::{Pool, Span};
use crate::connection::session_cache::SessionCache;
use crate::connection::wait::{Spin, Waiter, spin_until};
use crate::connection::wire_mapping::{Lengths, Shape};
use crate::module_name::Trusted;

/// Most pieces of a request.
const PIECES: usize = 5;

/// What stands in a status before the host has written it: no number of the wire's.
const UNWRITTEN: u8 = 0xFF;

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
    /// Where the data end that ever lay in the pool: pages behind that were never touched.
    reached: usize,
}

/// The place of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestSlot {
    pub(crate) number: usize,
    data: Span,
    /// Where the host reads, in the region.
    pub(crate) src_at: usize,
    /// Where it writes; the same where the result takes the text's place.
    pub(crate) dst_at: usize,
}

impl Connection {
    /// Connects to a host and sets everything up.
    pub(crate) fn to_host(path: &Path, trusted: &Trusted) -> Result<Self, ConnectionError> {
        let control = Control::connect(path, trusted)?;
        // Pages come when they are touched: most programs have few requests at a time.
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

    /// A place for a request; none where there is none now.
    pub(crate) fn slot(&mut self, shape: Shape, lengths: Lengths) -> Option<RequestSlot> {
        let number = *self.free.last()?;
        let (readable, writable) = shape.data_bytes(lengths);
        let apart = if shape.is_in_place() { 0 } else { readable.next_multiple_of(64) };
        let data = self.pool.take(apart + writable)?;
        if !self.is_lent_to(data.at + apart + writable) {
            self.pool.give_back(data);
            return None;
        }
        self.free.pop();
        self.reached = self.reached.max(data.at + apart + writable);
        Some(RequestSlot { number, data, src_at: data.at, dst_at: data.at + apart })
    }

    /// Ends a slot's use.
    pub(crate) fn free(&mut self, slot: RequestSlot) {
        self.pool.give_back(slot.data);
        self.free.push(slot.number);
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

    /// Adds the request at `slot`, whose data lies there. The host sees it after [`Connection::flush`].
    pub(crate) fn add(
        &mut self,
        slot: &RequestSlot,
        shape: Shape,
        lengths: Lengths,
        iv: &[u8; 16],
        session: u64,
    ) {
        let at = SLOTS_AT + slot.number * SLOT_BYTES;
        let iv = &iv[..shape.algorithm.iv_bytes()];
        self.copy_in(at, &shape.request(session, lengths).to_bytes());
        self.copy_in(at + IV_AT, iv);
        self.copy_in(at + STATUS_AT, &[UNWRITTEN]);
        let (readable, writable) = shape.data_bytes(lengths);
        let all = [
            (at, DATA_HEADER_BYTES, false),
            (at + IV_AT, iv.len(), false),
            (slot.src_at, readable, false),
            (slot.dst_at, writable, true),
            (at + STATUS_AT, 1, true),
        ];
        let mut pieces = [Piece::default(); PIECES];
        let mut count = 0;
        for (at, bytes, is_writable) in all.into_iter().filter(|(_, bytes, _)| *bytes > 0) {
            let len = u32::try_from(bytes).expect("inside the region");
            pieces[count] = Piece { address: BASE + at as u64, len, is_writable };
            count += 1;
        }
        let mut table = [0; PIECES * PIECE_BYTES];
        let table = &mut table[..count * PIECE_BYTES];
        write_table(&pieces[..count], table);
        self.copy_in(at + TABLE_AT, table);
        let head = self.queue.add_table(BASE + (at + TABLE_AT) as u64, count);
        let head = head.expect("the queue has more entries than there are slots");
        self.by_head[usize::from(head)] = slot.number;
        self.is_unshown = true;
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

    /// Looks awake whether `count` requests came back, for as long as that is sooner than to sleep, and `limit` at most.
    pub(crate) fn spin_until(&mut self, count: u16, limit: Duration) -> Result<bool, ConnectionError> {
        let Some(pays) = self.spin.next() else { return Ok(false) };
        self.queue.quiet();
        let queue = &mut self.queue;
        if spin_until(pays.min(limit), || Ok(queue.look()? >= count))? {
            // Another thread may have waited in between; of that wait nothing is learned.
            if let Some(shown) = self.shown {
                self.spin.came(shown.elapsed());
            }
            return Ok(true);
        }
        // A wait that had less time says nothing of the host.
        if pays <= limit {
            self.spin.missed();
        }
        Ok(false)
    }

    /// Asks for a call once `count` requests came back. None where they are back already, else where to wait for that.
    pub(crate) fn request_call(&mut self, count: u16) -> Result<Option<Arc<Waiter>>, ConnectionError> {
        let is_there = self.queue.wake_after(count)?;
        // Where they are back, the other side may have seen the old wish or the new, so that no call is certain.
        self.until_call = if is_there { u16::MAX } else { count };
        Ok((!is_there).then(|| Arc::clone(self.link.waiter())))
    }

    /// Has the thread that sleeps at the connection called for the next request that comes back, though it asked for more. Says whether that is so; if not,
    /// something came back.
    pub(crate) fn expedite_call(&mut self) -> Result<bool, ConnectionError> {
        // A call that comes anyway is left as it is: a new wish could hide the old one from the other side.
        if self.until_call <= 1 || cfg!(mutant = "follower_asks_no_call") {
            return Ok(true);
        }
        match self.request_call(1)? {
            Some(_) => Ok(true),
            // The sleeper's may be among it, and its wish was overwritten.
            None => self.link.waiter().wake().map(|()| false),
        }
    }

    /// Whether the other side reaches the region up to there, or does now: each time at least twice as much as before, for each costs a call.
    fn is_lent_to(&mut self, end: usize) -> bool {
        if end <= self.lent {
            return true;
        }
        let most = end.max(2 * self.lent).next_multiple_of(PAGE).min(self.region.byte_count());
        let is_lent = self.link.lend(&self.region, self.lent..most).is_ok();
        if is_lent && !cfg!(mutant = "lent_again") {
            self.lent = most;
        }
        is_lent
    }

    /// An error where the input still stands where the result should, by its first and last block: a host that says that it is done and has
    /// done nothing must not make a text pass for its ciphertext. Of a right result this is so once in 2^128.
    pub(crate) fn has_worked(&self, slot: &RequestSlot, input: &[u8], status: u8) -> Result<(), JobError> {
        let (Some(first), Some(last)) = (input.first_chunk(), input.last_chunk()) else { return Ok(()) };
        let stands = |at: usize, block: &[u8; BLOCK_BYTES]| {
            let mut found = [0; BLOCK_BYTES];
            self.copy_out(at, &mut found);
            found == *block
        };
        let is_untouched =
            stands(slot.dst_at, first) || stands(slot.dst_at + input.len() - BLOCK_BYTES, last);
        match is_untouched && !cfg!(mutant = "text_for_result") {
            true => Err(JobError::Module { code: status.into() }),
            false => Ok(()),
        }
    }
}

fn shared() -> Result<(Arc<Region>, File), ConnectionError> {
    let made = Region::create(c"evener-hosted", REGION_BYTES);
    let (region, memory) = made.map_err(|error| ConnectionError::system("shared memory", error))?;
    Ok((Arc::new(region), memory))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use evener_core::{Algorithm, Direction};
    use evener_ring::virtqueue::Events;

    use super::*;
    use crate::connection::layout::{DATA_BYTES_MAX, LENT_FIRST};
    use crate::connection::test_peer::TestPeer;

    const SHAPE: Shape = Shape { algorithm: Algorithm::Aes128Cbc, direction: Direction::Encrypt };

    fn slot(connection: &mut Connection, bytes: usize) -> Option<RequestSlot> {
        connection.slot(SHAPE, Lengths { text: bytes, aad: 0 })
    }

    #[test]
    fn a_device_is_lent_what_requests_reach_each_page_once_and_no_sooner() {
        let (mut connection, other) = TestPeer::reaching(LENT_FIRST, Events::Index);
        let spans = || other.lent.spans.lock().unwrap().clone();
        let first: Vec<RequestSlot> = (0..3).map(|_| slot(&mut connection, 16 << 10).unwrap()).collect();
        assert_eq!(spans(), []);
        let mut slots: Vec<RequestSlot> = (0..5).map(|_| slot(&mut connection, 16 << 10).unwrap()).collect();
        assert_eq!(spans(), [LENT_FIRST..2 * LENT_FIRST, 2 * LENT_FIRST..4 * LENT_FIRST]);
        slots.push(slot(&mut connection, DATA_BYTES_MAX).unwrap());
        let largest = slot(&mut connection, DATA_BYTES_MAX - (128 << 10));
        slots.push(largest.expect("a device reaches everything in the end"));
        let spans = spans();
        assert!(spans.windows(2).all(|two| two[0].end == two[1].start), "{spans:?}");
        assert_eq!(spans.last().map(|last| last.end), Some(REGION_BYTES));
        assert!(spans.iter().all(|span| span.start % PAGE == 0 && span.end % PAGE == 0), "{spans:?}");
        first.into_iter().chain(slots).for_each(|slot| connection.free(slot));
        assert!(slot(&mut connection, DATA_BYTES_MAX).is_some());
        assert_eq!(other.lent.spans.lock().unwrap().len(), spans.len(), "it has that already");
    }

    #[test]
    fn where_no_more_can_be_lent_what_has_room_in_the_rest_goes_on() {
        let (mut connection, other) = TestPeer::reaching(LENT_FIRST, Events::Index);
        other.lent.is_refused.store(true, Relaxed);
        for _ in 0..3 {
            assert!(slot(&mut connection, 64 << 10).is_none());
            let all: Vec<RequestSlot> = (0..3).map(|_| slot(&mut connection, 16 << 10).unwrap()).collect();
            assert!(slot(&mut connection, 16 << 10).is_none());
            all.into_iter().for_each(|slot| connection.free(slot));
        }
        other.lent.is_refused.store(false, Relaxed);
        assert!(slot(&mut connection, 64 << 10).is_some());
        connection.end();
    }
}
