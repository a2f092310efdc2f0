//! One connection: the region, the queue in it, seats for requests, and the events.
//!
//! The region holds the queue's parts, one seat per request (header, IV, status, table) and the pool of data. A seat's table is
//! the one descriptor that the queue needs for it; the pieces are header, IV, source, destination, status, as Linux's
//! driver lays them.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use evener_core::{IsOver, Job};
use evener_ring::virtqueue::{Driver, Mapped, PIECE_BYTES, Piece, write_table};
use evener_ring::{Mapping, OutOfRegion, Region, Words as _};
use evener_wire::{Config, DATA_HEADER_BYTES};

use crate::control::{BASE, Control, Parts, Trouble};
use crate::keys::Keys;
use crate::pool::{Pool, Span};
use crate::shape::{Lengths, Shape};
use crate::wait::{Spin, event, look_awake, ring, sleep};

/// Requests of one connection that are under way at the same time: two batches of sixteen, the lanes of a multi-buffer core.
pub(crate) const DEPTH: usize = 32;

/// Bytes for data: a full queue of 64 KiB, or two requests of 1 MiB with padding or tag.
pub(crate) const POOL_BYTES: usize = (4 << 20) + (64 << 10);

/// Longest data of one request, both ways together: half of the pool, so that two are under way.
pub(crate) const DATA_BYTES_MAX: usize = POOL_BYTES / 2;

const PARTS: Parts = Parts { size: 64, descriptors: 0, available: 1024, used: 2048 };
const SEATS_AT: usize = 4096;
const SEAT_BYTES: usize = 256;
const IV_AT: usize = DATA_HEADER_BYTES;
const STATUS_AT: usize = 96;
const TABLE_AT: usize = 128;
const POOL_AT: usize = SEATS_AT + DEPTH * SEAT_BYTES;

/// Most pieces of a request.
const PIECES: usize = 5;

/// What stands in a status before the host has written it: no number of the wire's.
const UNWRITTEN: u8 = 0xFF;

/// A connection to a host.
#[derive(Debug)]
pub(crate) struct Line {
    control: Control,
    kick: OwnedFd,
    call: OwnedFd,
    region: Arc<Region>,
    queue: Driver<Mapped>,
    pool: Pool,
    /// Seats without a request.
    free: Vec<usize>,
    /// Seat of each request by the name that the queue gave it.
    by_head: Vec<usize>,
    keys: Keys,
    config: Option<Config>,
    spin: Spin,
    /// Whether requests were added since the last flush.
    is_unshown: bool,
    /// When the last batch was shown.
    shown: Instant,
    /// A word that a fork wipes: 1 in the process that made the connection.
    mark: Mapping,
}

/// The place of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    pub(crate) number: usize,
    data: Span,
    /// Where the host reads, in the region.
    pub(crate) src_at: usize,
    /// Where it writes; the same where the result takes the text's place.
    pub(crate) dst_at: usize,
}

/// Why a session is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// The host holds as many as it takes, and all of ours are in use.
    Full,
    /// The host refused, with this number.
    Refused(i64),
}

impl Line {
    /// Connects and sets everything up.
    pub(crate) fn open(path: &Path) -> Result<Self, Trouble> {
        let failed = |error: std::io::Error| Trouble::system("shared memory", &error);
        let mut control = Control::connect(path)?;
        let agreement = control.agree()?;
        let (region, memory) = Region::create(c"evener-hosted", POOL_AT + POOL_BYTES).map_err(failed)?;
        let region = Arc::new(region);
        let places = [PARTS.descriptors, PARTS.available, PARTS.used].map(|at| (Arc::clone(&region), at));
        let home = Mapped::new(PARTS.size, places).expect("the parts lie inside the region");
        let queue = Driver::new(home, agreement.events).expect("a home has the slices of one size");
        control.share(&memory, region.byte_count(), PARTS)?;
        let (kick, call) = (event()?, event()?);
        control.start(&kick, &call)?;
        let mark = Mapping::wiped_by_fork(1).map_err(failed)?;
        mark.words()[0].store(1, Relaxed);
        Ok(Self {
            control,
            kick,
            call,
            region,
            queue,
            pool: Pool::new(POOL_AT, POOL_BYTES),
            free: (0..DEPTH).rev().collect(),
            by_head: vec![0; PARTS.size.into()],
            keys: Keys::default(),
            config: agreement.config,
            spin: Spin::new(),
            is_unshown: false,
            shown: Instant::now(),
            mark,
        })
    }

    /// What the host says of itself.
    pub(crate) const fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    /// Whether this process made it. In a child, nothing of it may be touched: the region is not there.
    pub(crate) fn is_ours(&self) -> bool {
        // Relaxed: a word that changes by a fork only.
        self.mark.words()[0].load(Relaxed) == 1
    }

    /// A place for a request; none where there is none now.
    pub(crate) fn seat(&mut self, shape: Shape, lengths: Lengths) -> Option<Seat> {
        let number = *self.free.last()?;
        let (readable, writable) = shape.data_bytes(lengths);
        let apart = if shape.is_in_place() { 0 } else { readable.next_multiple_of(64) };
        let data = self.pool.take(apart + writable)?;
        self.free.pop();
        Some(Seat { number, data, src_at: data.at, dst_at: data.at + apart })
    }

    /// Ends a seat's use.
    pub(crate) fn free(&mut self, seat: Seat) {
        self.pool.give_back(seat.data);
        self.free.push(seat.number);
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

    /// Overwrites all data: for a connection that ends with requests under way.
    pub(crate) fn wipe_all(&self) {
        self.wipe(POOL_AT, POOL_BYTES);
    }

    /// The host's session for a job, opened where it is not; counts a use, which [`Line::release`] ends.
    pub(crate) fn session(&mut self, job: &Job<'_>, shape: Shape) -> Result<Result<u64, NoSession>, Trouble> {
        let session = job.session();
        if let Some(id) = self.keys.known(session.id()) {
            return Ok(Ok(id));
        }
        self.close_orphans()?;
        if self.keys.is_full() && !self.close_oldest()? {
            return Ok(Err(NoSession::Full));
        }
        let mut has_made_room = false;
        loop {
            match self.control.create(&shape.create(session.key()))? {
                Ok(id) => {
                    self.keys.keep(job, id);
                    if has_made_room {
                        self.keys.limit();
                    }
                    return Ok(Ok(id));
                }
                // Not every host says why it refuses: an old session may be in the way.
                Err(_) if !has_made_room && self.close_oldest()? => has_made_room = true,
                Err(NO_SPACE) => return Ok(Err(NoSession::Full)),
                Err(code) => return Ok(Err(NoSession::Refused(code))),
            }
        }
    }

    /// Ends a use of a session.
    pub(crate) fn release(&mut self, job: &Job<'_>) {
        self.keys.release(job.session().id());
    }

    /// Forgets a session that the host does not know.
    pub(crate) fn forget(&mut self, job: &Job<'_>) {
        self.keys.forget(job.session().id());
    }

    /// Closes sessions that have ended: now, or when their last request is back.
    pub(crate) fn end_sessions(&mut self, is_over: IsOver<'_>) -> Result<(), Trouble> {
        self.keys.end(is_over);
        self.close_orphans()
    }

    /// Closes sessions that nobody can use any more.
    pub(crate) fn close_orphans(&mut self) -> Result<(), Trouble> {
        while let Some(orphan) = self.keys.take_orphan() {
            self.control.close(orphan)?;
        }
        Ok(())
    }

    /// Closes all sessions that no request uses.
    pub(crate) fn close_idle(&mut self) -> Result<(), Trouble> {
        while self.close_oldest()? {}
        Ok(())
    }

    /// Adds the request at `seat`, whose data lies there. The host sees it after [`Line::flush`].
    pub(crate) fn add(&mut self, seat: &Seat, shape: Shape, lengths: Lengths, iv: &[u8; 16], session: u64) {
        let at = SEATS_AT + seat.number * SEAT_BYTES;
        let iv = &iv[..shape.algorithm.iv_bytes()];
        self.copy_in(at, &shape.request(session, lengths).to_bytes());
        self.copy_in(at + IV_AT, iv);
        self.copy_in(at + STATUS_AT, &[UNWRITTEN]);
        let (readable, writable) = shape.data_bytes(lengths);
        let all = [
            (at, DATA_HEADER_BYTES, false),
            (at + IV_AT, iv.len(), false),
            (seat.src_at, readable, false),
            (seat.dst_at, writable, true),
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
        let head = head.expect("the queue has more entries than there are seats");
        self.by_head[usize::from(head)] = seat.number;
        self.is_unshown = true;
    }

    /// Shows the host what was added, and kicks it where it sleeps.
    pub(crate) fn flush(&mut self) -> Result<(), Trouble> {
        let is_new = std::mem::take(&mut self.is_unshown);
        if is_new {
            self.shown = Instant::now();
        }
        let is_wanted = self.queue.publish() || is_new && cfg!(mutant = "kick_always");
        if is_wanted { ring(&self.kick) } else { Ok(()) }
    }

    /// The seat of the next request that came back, with its status; none where none did.
    pub(crate) fn take(&mut self) -> Result<Option<(usize, u8)>, Trouble> {
        let Some(used) = self.queue.take()? else { return Ok(None) };
        let number = self.by_head[usize::from(used.head)];
        let mut status = [0];
        self.copy_out(SEATS_AT + number * SEAT_BYTES + STATUS_AT, &mut status);
        Ok(Some((number, status[0])))
    }

    /// Waits until `count` requests came back, or `until`.
    pub(crate) fn wait(&mut self, count: u16, until: Instant) -> Result<(), Trouble> {
        let left = until.saturating_duration_since(Instant::now());
        if let Some(limit) = self.spin.next() {
            self.queue.quiet();
            let queue = &mut self.queue;
            if look_awake(limit.min(left), || Ok(queue.look()? >= count))? {
                self.spin.came(self.shown.elapsed());
                return Ok(());
            }
            // A wait that had less time says nothing of the host.
            if limit <= left {
                self.spin.missed();
            }
        }
        while !self.queue.wake_after(count)? && Instant::now() < until {
            sleep(&self.call, self.control.as_fd(), until)?;
        }
        Ok(())
    }

    fn close_oldest(&mut self) -> Result<bool, Trouble> {
        let Some(id) = self.keys.take_oldest() else { return Ok(false) };
        self.control.close(id)?;
        Ok(true)
    }
}

/// What a host answers that has no room for another session: the wire's "no space", negative.
const NO_SPACE: i64 = -(evener_wire::Status::NoSpace as i64);

/// A seat lies inside the region, and its data inside its span.
fn inside(result: Result<(), OutOfRegion>) {
    result.expect("seats and spans lie inside the region");
}
