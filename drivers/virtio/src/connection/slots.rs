//! Places for requests in the region that a connection shares: taken, filled, shown to the queue as one descriptor, looked at when the request is back.
//!
//! [`Connection::slot`] takes header and data -> the caller copies its text in -> [`Connection::add`] writes header, IV and the table of elements -> the other side works ->
//! [`Connection::has_worked`] -> [`Connection::free`].

use evener_core::{BLOCK_BYTES, JobError};
use evener_ring::virtqueue::{DESCRIPTOR_BYTES, Element, write_table};
use evener_wire::DATA_HEADER_BYTES;

use super::Connection;
use super::layout::{BASE, IV_AT, PAGE, SLOT_BYTES, SLOTS_AT, STATUS_AT, TABLE_AT};
use super::pool::Span;
use super::wire_mapping::{Lengths, Shape};

/// Most elements of a request.
const ELEMENTS: usize = 5;

/// What stands in a status before the host has written it: no number of the wire's.
const UNWRITTEN: u8 = 0xFF;

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
    /// A place for a request; none where there is none now.
    pub(crate) fn slot(&mut self, shape: Shape, lengths: Lengths) -> Option<RequestSlot> {
        let number = *self.free.last()?;
        let (readable, writable) = shape.data_bytes(lengths);
        let apart = if shape.is_in_place() { 0 } else { readable.next_multiple_of(64) };
        let data = self.pool.take(apart + writable)?;
        let end = data.at + apart + writable;
        if !(self.has_pages_to(end) && self.is_lent_to(end)) {
            self.pool.give_back(data);
            return None;
        }
        self.free.pop();
        Some(RequestSlot { number, data, src_at: data.at, dst_at: data.at + apart })
    }

    /// Ends a slot's use.
    pub(crate) fn free(&mut self, slot: RequestSlot) {
        self.pool.give_back(slot.data);
        self.free.push(slot.number);
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
        let mut elements = [Element::default(); ELEMENTS];
        let mut count = 0;
        for (at, bytes, is_writable) in all.into_iter().filter(|(_, bytes, _)| *bytes > 0) {
            let len = u32::try_from(bytes).expect("inside the region");
            elements[count] = Element { address: BASE + at as u64, len, is_writable };
            count += 1;
        }
        let mut table = [0; ELEMENTS * DESCRIPTOR_BYTES];
        let table = &mut table[..count * DESCRIPTOR_BYTES];
        write_table(&elements[..count], table);
        self.copy_in(at + TABLE_AT, table);
        let head = self.queue.add_table(BASE + (at + TABLE_AT) as u64, count);
        let head = head.expect("the queue has more entries than there are slots");
        self.by_head[usize::from(head)] = slot.number;
        self.is_unshown = true;
    }

    /// Whether the pool's pages are there up to there, or are made now. To touch one for which the system has no memory would end the program by a signal.
    fn has_pages_to(&mut self, end: usize) -> bool {
        let reached = self.reached;
        if end <= reached {
            return true;
        }
        let has_pages = self.region.make_pages(reached, end - reached).is_ok();
        if has_pages {
            self.reached = end;
        }
        has_pages
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

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    use evener_core::{Algorithm, Direction};
    use evener_ring::Region;
    use evener_ring::virtqueue::Events;

    use super::*;
    use crate::connection::layout::{DATA_BYTES_MAX, LENT_FIRST, REGION_BYTES};
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
    fn where_the_system_has_no_memory_for_more_what_has_space_in_the_rest_goes_on() {
        let (mut connection, _other) = TestPeer::new(Events::Index);
        let first = slot(&mut connection, 16 << 10).unwrap();
        connection.free(first);
        // A region that ends there: what lies behind cannot be made.
        let (short, _) = Region::create(c"short", connection.reached.next_multiple_of(PAGE)).unwrap();
        connection.region = Arc::new(short);
        for _ in 0..3 {
            assert!(slot(&mut connection, 64 << 10).is_none());
            let small = slot(&mut connection, 16 << 10).unwrap();
            assert!(slot(&mut connection, 16 << 10).is_none());
            connection.free(small);
        }
        connection.end();
    }

    #[test]
    fn where_no_more_can_be_lent_what_has_space_in_the_rest_goes_on() {
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
