//! Kernels beside the inner cipher: of what they computed a sample is computed again, as of lanes (`cipher/lane/check.rs`) and modules.
//!
//! Path: [`Turn::comes`] counts down in the context -> a message of GCM has an inner context beside it (`shadow.rs`), a piece of the other modes is computed
//! again ([`Sample`]) -> the same, and nothing happens; or another result, and the inner cipher's takes its place, and the kernel of that class is out of service
//! in this process ([`found_wrong`]), which `evener status` shows.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use evener_core::counts::Count;
use evener_core::job::Memory;
use evener_core::{Algorithm, Direction};
use zeroize::Zeroizing;

use super::class::Class;
use super::prov;
use crate::cipher::comparison::{self, ResultCheck};
use crate::cipher::engine::Fallback;
use crate::counters;
use crate::ffi::reserve::zeroed;
use crate::inner_cipher::call::Update;
use crate::state::rows::CipherRow;

/// Requests of each class that are computed again whatever that costs. Assumed, not measured: 4, as of lanes, because a kernel that computes
/// wrongly at all is wrong from the start.
const CHECKED_FIRST: u32 = 4;
/// Of later ones, one in so many. Assumed, not measured: 1024, because for 16 bytes the inner cipher's context, which has to be made, takes as many instructions as five
/// requests, so that it is half of a hundredth.
const CHECKED: u32 = 1_024;
/// Pieces that are longer are not looked at: there would be a copy of all of it, for what is done in place cannot be done again else.
pub(super) const CHECKED_BYTES_MAX: usize = 256 << 10;

/// What the process knows of one class.
struct Checks {
    /// Checks that are due.
    due: AtomicU32,
    /// Requests of contexts that have ended since the last one.
    requests: AtomicU32,
    is_wrong: AtomicBool,
}

static CHECKS: [Checks; Class::COUNT] = [const {
    Checks {
        due: AtomicU32::new(CHECKED_FIRST),
        requests: AtomicU32::new(0),
        is_wrong: AtomicBool::new(false),
    }
}; Class::COUNT];

/// Results that differed, of all classes.
static WRONG: AtomicU32 = AtomicU32::new(0);

/// Whether the kernel of a class is out of service.
#[inline]
pub(crate) fn is_out_of_service(class: Class) -> bool {
    // Relaxed, as below: who sees it late has the kernel once more.
    has_wrong_ones() && CHECKS[class.index()].is_wrong.load(Relaxed)
}

/// Whether the kernel of any class is.
#[inline]
pub(super) fn has_wrong_ones() -> bool {
    WRONG.load(Relaxed) != 0
}

/// A result was not the inner cipher's: the kernel of this class is out of service from here on.
#[cold]
pub(super) fn found_wrong(row: &CipherRow, class: Class) {
    CHECKS[class.index()].is_wrong.store(true, Relaxed);
    // Saturating: 0 would put them back.
    let (Ok(before) | Err(before)) = WRONG.fetch_update(Relaxed, Relaxed, |count| count.checked_add(1));
    let prov = prov(row);
    prov.counts.wrong_kernels.fetch_add(1, Relaxed);
    if let Some(statistics) = prov.statistics {
        statistics.show_wrong_kernels(before.saturating_add(1));
    }
}

/// The inner cipher did a piece in the place of a kernel that is out of service.
pub(super) fn count_direct(row: &CipherRow, encrypts: bool, bytes: usize) {
    let statistics = prov(row).statistics.filter(|_| !row.is_beneath);
    counters::count_request(statistics, row.kind, direction(encrypts), bytes, Count::Direct);
}

/// A request was done again by the inner cipher.
#[cold]
pub(super) fn count_redone(row: &CipherRow, encrypts: bool, bytes: usize) {
    let event = (Count::Redone, 1);
    counters::count_event(prov(row).statistics, row.kind, direction(encrypts), bytes, event);
}

pub(super) fn direction(encrypts: bool) -> Direction {
    if encrypts { Direction::Encrypt } else { Direction::Decrypt }
}

/// When a context's next request is to be computed again: a count that is its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Requests until then.
    left: u32,
}

impl Default for Turn {
    fn default() -> Self {
        Self { left: CHECKED }
    }
}

impl Turn {
    /// That of a context that is timed, or asked a known question.
    pub(super) const NEVER: Self = Self { left: u32::MAX };

    /// Takes a check that is due, for the first request of this key.
    pub(super) fn take_due(&mut self, class: Class) {
        let due = &CHECKS[class.index()].due;
        // A look first: what is hardly ever written is in all caches.
        let takes = self.left <= CHECKED && due.load(Relaxed) > 0;
        if takes && due.fetch_update(Relaxed, Relaxed, |due| due.checked_sub(1)).is_ok() {
            self.left = 1;
        }
    }

    /// Counts a request; whether it is its turn, or was that of one before it and none was looked at since.
    #[inline]
    pub(super) fn comes(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.has_come()
    }

    /// Whether it is the next one's.
    #[inline]
    pub(super) fn is_next(self) -> bool {
        self.left <= 1
    }

    /// Whether the request that was counted last is to be looked at.
    #[inline]
    pub(super) fn has_come(self) -> bool {
        self.left == 0
    }

    /// The turn is over.
    pub(super) fn begin_anew(&mut self) {
        self.left = CHECKED;
    }

    /// The context ends: what it has counted counts for the next.
    pub(super) fn end(self, class: Class) {
        let checks = &CHECKS[class.index()];
        let counted = CHECKED.saturating_sub(self.left);
        // Relaxed, and in two steps: what two threads do at once may count once.
        let requests = checks.requests.load(Relaxed).saturating_add(counted);
        if requests >= CHECKED {
            checks.due.store(1, Relaxed);
        }
        checks.requests.store(if requests >= CHECKED { 0 } else { requests }, Relaxed);
    }
}

/// A piece of ECB, CBC, CTR or XTS as it was before the kernel had it.
pub(super) struct Sample {
    algorithm: Algorithm,
    encrypts: bool,
    iv: [u8; 16],
    /// Output that no input of this copy belongs to: of a block of key stream that was begun.
    skipped: usize,
    input: Zeroizing<Vec<u8>>,
}

impl Sample {
    /// A copy of a piece before which this `held` input waits, or of which so many bytes are `skipped`; `None` where there is none or no memory for it.
    pub(super) fn of(
        row: &CipherRow,
        encrypts: bool,
        iv: [u8; 16],
        (held, skipped): (&[u8], usize),
        call: &Update,
    ) -> Option<Self> {
        let algorithm = row.algorithm?;
        let piece = call.input().get(skipped..)?;
        if piece.is_empty() || piece.len() > CHECKED_BYTES_MAX {
            return None;
        }
        let mut input = Zeroizing::new(zeroed(held.len() + piece.len())?);
        let (first, rest) = input.split_at_mut(held.len());
        first.copy_from_slice(held);
        rest.copy_from_slice(piece);
        Some(Self { algorithm, encrypts, iv, skipped, input })
    }

    /// Whether there is anything to compare in so many bytes of output.
    pub(super) fn is_of(&self, written: usize) -> bool {
        written > self.skipped
    }

    /// Whether the `written` bytes of output are what the inner cipher makes of the same under `key`; puts that there where they are not. An error where it
    /// cannot be made.
    pub(super) fn settle(
        mut self,
        row: &CipherRow,
        key: &[u8],
        call: &Update,
        written: usize,
    ) -> Result<bool, ()> {
        let Some(output) = written.checked_sub(self.skipped) else { return Ok(true) };
        // What is held back is compared when it comes out.
        self.input.truncate(output);
        let output = call.space(written).get_mut(self.skipped..).ok_or(())?;
        let direction = direction(self.encrypts);
        let plain = Fallback::new(row, direction, key);
        let part: Range<usize> = comparison::some_part(self.algorithm.family(), output.len());
        let (algorithm, iv) = (self.algorithm, self.iv);
        if (ResultCheck { algorithm, direction, iv, input: &self.input }).is_right(plain, output, part) {
            return Ok(true);
        }
        let input_bytes = self.input.len();
        plain.run(&iv, &mut Memory::InPlace { space: &mut self.input, input_bytes }).map_err(drop)?;
        output.copy_from_slice(&self.input);
        Ok(false)
    }
}

/// Whether kernels are given other keys than the programs'.
static IS_PLANTED: AtomicBool = AtomicBool::new(false);

/// For tests: from here on kernels compute with a key that has one bit changed.
pub fn plant_wrong_kernels() {
    IS_PLANTED.store(true, Relaxed);
}

/// Whether a look at a message begins with an unwinding.
static UNWINDS: AtomicBool = AtomicBool::new(false);

/// For tests: from here on each message of GCM that is to be computed again unwinds what begins it.
pub fn plant_unwinding() {
    UNWINDS.store(true, Relaxed);
}

/// Unwinds, where that was planted.
pub(super) fn unwind_where_planted() {
    if UNWINDS.load(Relaxed) {
        std::panic::resume_unwind(Box::new("planted"));
    }
}

/// The key that a kernel computes with: but for a test's, this one.
pub(super) fn with_key<T>(key: &[u8], set: impl FnOnce(&[u8]) -> T) -> T {
    if !IS_PLANTED.load(Relaxed) {
        return set(key);
    }
    let mut other = Zeroizing::new(key.to_vec());
    if let Some(byte) = other.first_mut() {
        *byte ^= 1;
    }
    set(&other)
}
