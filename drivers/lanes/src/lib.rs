//! Driver for kernels of our own (`evener-kernels`): a core's second method where they compute an algorithm.
//!
//! Path of a burst: [`Lanes::run`] takes group after group of one algorithm and direction -> CBC encryption goes through `cbc.rs`, many messages side by
//! side, and SHA-1, SHA-256 and HMAC through `hashes.rs`; AES-GCM through `aead.rs` and other modes of AES through `modes.rs`, one after the other -> each finds what was made of a session's key, or makes it, and runs by the widest
//! instructions that the processor has. Where it has none for AES there is CBC encryption alone, bitsliced.
//!
//! There is nothing to load, and what is asked before the driver is used is a known answer for each algorithm.
#![forbid(unsafe_code)]

mod aead;
mod cbc;
mod hashes;
mod modes;

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use evener_core::known::KNOWN;
use evener_core::{Algorithm, Direction, Family, HasEnded, InlineDriver, Job, JobError, Profile};
use evener_kernels::hashes::Means;
use evener_kernels::{Level, bitsliced};

use self::aead::Aead;
use self::cbc::{ByInstructions, Cbc, of_one_session};
use self::hashes::Hashes;
use self::modes::{Modes, UNIT_BYTES_MAX, mode_of};

/// Kernels on one thread.
///
/// Prepared keys of the last 32 sessions of AES-GCM, 128 of AES-CBC encryption and 32 of other modes, and 128 of HMAC, stay in it until they are [evicted](InlineDriver::evict), and are wiped when they are dropped.
pub struct Lanes {
    profile: Profile,
    ciphers: Ciphers,
    /// None where no instructions for hashes are.
    hashes: Option<Hashes>,
}

/// What runs ciphers.
enum Ciphers {
    ByInstructions {
        level: Level,
        aead: Aead,
        cbc: Cbc<ByInstructions>,
        modes: Modes,
    },
    /// CBC encryption alone.
    ByPlanes {
        means: bitsliced::Means,
        cbc: Cbc<bitsliced::Cbc>,
    },
}

impl Lanes {
    /// A driver of its own for the calling thread, by planes where the processor has no instructions for AES; none where the compiler that built this
    /// lacks them, or where a known answer did not come out.
    #[must_use]
    pub fn new() -> Option<Self> {
        static FOUND: AtomicU32 = AtomicU32::new(0);
        match Level::best() {
            Some(level) => Self::unchecked(level).checked(&FOUND),
            None if Self::are_there() => Self::without_aes(),
            None => None,
        }
    }

    /// Whether there are kernels for this processor: whether [`new`](Self::new) gives a driver if all answers are right. Where it has instructions for AES
    /// and the compiler lacked them, planes would only be slower than what other libraries make of those.
    #[must_use]
    pub fn are_there() -> bool {
        Level::best().is_some() || !Level::has_aes()
    }

    /// The same by planes whatever the processor has.
    #[must_use]
    pub fn without_aes() -> Option<Self> {
        static FOUND: AtomicU32 = AtomicU32::new(0);
        Self::of_planes(bitsliced::Means::best()).checked(&FOUND)
    }

    /// By what was found, 0 before: a thread that comes while another asks does so itself, and the child of a fork waits for no other thread.
    fn checked(mut self, found: &AtomicU32) -> Option<Self> {
        const RIGHT: u32 = 1;
        /// Whatever another thread has found.
        const WRONG: u32 = 2;
        // Relaxed: it says all.
        if found.load(Relaxed) == 0 {
            found.fetch_max(if self.answers_right() { RIGHT } else { WRONG }, Relaxed);
        }
        (found.load(Relaxed) == RIGHT).then_some(self)
    }

    /// A driver by these instructions and no wider ones, unasked: for comparing levels.
    #[must_use]
    pub fn unchecked(level: Level) -> Self {
        let cbc = Cbc::by_instructions(level);
        let ciphers =
            Ciphers::ByInstructions { level, aead: Aead::new(level), cbc, modes: Modes::new(level) };
        Self::of(ciphers, evener_kernels::lanes::Cbc::lanes(level))
    }

    /// A driver by these planes, likewise.
    #[must_use]
    pub fn of_planes(means: bitsliced::Means) -> Self {
        let cbc = Cbc::new(bitsliced::Cbc::new(means));
        Self::of(Ciphers::ByPlanes { means, cbc }, means.lanes())
    }

    fn of(ciphers: Ciphers, width: u32) -> Self {
        let (name, means) = ("lanes".to_owned(), Means::best());
        let profile = Profile { name, detail: ciphers.detail(means), width, emulated: false };
        Self { profile, ciphers, hashes: means.map(Hashes::new) }
    }

    /// The same, which hashes by these instructions, and by none not at all.
    #[must_use]
    pub fn hashing_by(mut self, means: Option<Means>) -> Self {
        self.hashes = means.map(Hashes::new);
        self.profile.detail = self.ciphers.detail(means);
        self
    }

    /// Whether kernels are written for this, here or on another processor.
    #[must_use]
    #[inline]
    pub const fn are_for(algorithm: Algorithm, direction: Direction) -> bool {
        match (algorithm.family(), direction) {
            (Family::Gcm, _) | (Family::Cbc, Direction::Encrypt) => true,
            (family, Direction::Encrypt) if hashes::kernel_of(family).is_some() => true,
            (family, direction) => mode_of(family, direction).is_some(),
        }
    }

    /// Runs jobs of one algorithm and direction, of which so many at the front are known to have one session.
    fn run_group(&mut self, group: &mut [Box<Job<'_>>], of_first: usize) {
        let Some((algorithm, direction)) = group.first().map(|job| kind(job)) else { return };
        if !self.supports(algorithm, direction) {
            return group.iter_mut().for_each(|job| job.fail(JobError::Unsupported));
        }
        match (&mut self.hashes, &mut self.ciphers) {
            (Some(hashes), _) if !algorithm.is_cipher() => hashes.run(group),
            (_, Ciphers::ByPlanes { cbc, .. }) => cbc.run(group, of_first),
            (_, Ciphers::ByInstructions { aead, .. }) if algorithm.family() == Family::Gcm => {
                group.iter_mut().for_each(|job| aead.run(job));
            }
            (_, Ciphers::ByInstructions { modes, .. })
                if mode_of(algorithm.family(), direction).is_some() =>
            {
                group.iter_mut().for_each(|job| modes.run(job));
            }
            (_, Ciphers::ByInstructions { cbc, .. }) => cbc.run(group, of_first),
        }
    }

    fn answers_right(&mut self) -> bool {
        let both = [Direction::Encrypt, Direction::Decrypt];
        let questions = KNOWN.iter().flat_map(|known| both.map(|direction| (known, direction)));
        let offered: Vec<_> =
            questions.filter(|(known, direction)| self.supports(known.algorithm, *direction)).collect();
        // One more than lanes, so that full lanes and a rest are both asked; of what goes one after the other one says all.
        let width = self.profile.width as usize + 1;
        offered.into_iter().all(|(known, direction)| {
            let is_alone = matches!(known.algorithm.family(), Family::Gcm)
                || mode_of(known.algorithm.family(), direction).is_some();
            known.is_right(direction, if is_alone { 1 } else { width }, |jobs| self.run(jobs))
        })
    }
}

impl InlineDriver for Lanes {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        let is_there = match algorithm.family() {
            Family::Cbc if direction == Direction::Encrypt => true,
            _ if algorithm.is_cipher() => matches!(self.ciphers, Ciphers::ByInstructions { .. }),
            _ => self.hashes.is_some(),
        };
        is_there && Self::are_for(algorithm, direction)
    }

    fn job_bytes_max(&self, algorithm: Algorithm, direction: Direction) -> usize {
        match algorithm.family() {
            Family::Cbc if direction == Direction::Encrypt => cbc::bytes_max(),
            Family::Gcm => aead::bytes_max(),
            Family::Xts => UNIT_BYTES_MAX,
            _ => usize::MAX,
        }
    }

    fn takes_shared(&self) -> bool {
        true
    }

    fn checked_from(&self, _algorithm: Algorithm, _direction: Direction) -> u32 {
        CHECKED_FROM
    }

    fn run(&mut self, burst: &mut [Box<Job<'_>>]) {
        let Some(first) = burst.first() else { return };
        let of_first = of_one_session(burst);
        if burst[of_first..].iter().all(|job| are_alike(first, job)) {
            return self.run_group(burst, of_first);
        }
        burst.sort_by_key(|job| (kind(job).0.index(), kind(job).1));
        burst.chunk_by_mut(|one, next| are_alike(one, next)).for_each(|group| self.run_group(group, 0));
    }

    fn run_alike(&mut self, burst: &mut [Box<Job<'_>>]) {
        self.run_group(burst, burst.len());
    }

    fn evict(&mut self, has_ended: HasEnded<'_>) {
        match &mut self.ciphers {
            Ciphers::ByInstructions { aead, cbc, modes, .. } => {
                aead.evict(has_ended);
                cbc.evict(has_ended);
                modes.evict(has_ended);
            }
            Ciphers::ByPlanes { cbc, .. } => cbc.evict(has_ended),
        }
        if let Some(hashes) = &mut self.hashes {
            hashes.evict(has_ended);
        }
    }
}

impl Ciphers {
    /// What stands behind a driver: what was measured by other instructions is not measured by these.
    fn detail(&self, means: Option<Means>) -> String {
        let ciphers = match self {
            Self::ByInstructions { level, .. } => format!("AES by {}", level.name()),
            Self::ByPlanes { means, .. } => format!("AES-CBC encryption, bitsliced, by {}", means.name()),
        };
        let hashes = means.map_or("no kernels", Means::name);
        format!("{ciphers}, hashes by {hashes}, Evener {}", env!("CARGO_PKG_VERSION"))
    }
}

/// Whether two jobs may be run together. Most bursts have one session, or few: then a job is told by its address.
#[inline]
fn are_alike(one: &Job<'_>, next: &Job<'_>) -> bool {
    ptr::eq(one.session(), next.session()) || kind(one) == kind(next)
}

/// What may be run together.
fn kind(job: &Job<'_>) -> (Algorithm, Direction) {
    (job.session().algorithm(), job.session().direction())
}

/// Bursts before the first that is compared with the plain method's. Assumed, not measured: 16, so that a run over a file or two need not set
/// libcrypto up, which takes 2 ms; what these kernels compute was compared at every length (`tests/`), and is by a known answer in each process.
const CHECKED_FROM: u32 = 16;
