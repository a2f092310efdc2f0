//! Driver for kernels of our own (`evener-kernels`): a core's second method where they compute an algorithm.
//!
//! Path of a burst: [`Lanes::run`] takes group after group of one algorithm and direction -> CBC encryption goes through `cbc.rs`, many messages side by
//! side, and SHA-1, SHA-256 and HMAC through `hashes.rs`; AES-GCM through `aead.rs`, one after the other -> each finds what was made of a session's key, or makes it, and runs by the widest
//! instructions that the processor has.
//!
//! There is nothing to load, and what is asked before the driver is used is a known answer for each algorithm.
#![forbid(unsafe_code)]

mod aead;
mod cbc;
mod hashes;

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use evener_core::known::KNOWN;
use evener_core::{Algorithm, Direction, Family, HasEnded, InlineDriver, Job, JobError, Profile};
use evener_kernels::Level;
use evener_kernels::hashes::Means;

use self::aead::Aead;
use self::cbc::{Cbc, of_one_session};
use self::hashes::Hashes;

/// Kernels on one thread.
///
/// Prepared keys of the last 32 sessions of AES-GCM and 128 of AES-CBC, and 128 of HMAC, stay in it until they are [evicted](InlineDriver::evict), and are wiped when they are dropped.
pub struct Lanes {
    profile: Profile,
    level: Level,
    aead: Aead,
    cbc: Cbc,
    /// None where no instructions for hashes are.
    hashes: Option<Hashes>,
}

impl Lanes {
    /// A driver of its own for the calling thread; none where the processor, or the compiler that built this, lacks the instructions, or where a
    /// known answer did not come out.
    #[must_use]
    pub fn new() -> Option<Self> {
        /// What was found, 0 before: a thread that comes while another asks does so itself, and the child of a fork waits for no other thread.
        static FOUND: AtomicU32 = AtomicU32::new(0);
        const RIGHT: u32 = 1;
        /// Whatever another thread has found.
        const WRONG: u32 = 2;
        let mut driver = Self::unchecked(Level::best()?);
        // Relaxed: it says all.
        if FOUND.load(Relaxed) == 0 {
            FOUND.fetch_max(if driver.answers_right() { RIGHT } else { WRONG }, Relaxed);
        }
        (FOUND.load(Relaxed) == RIGHT).then_some(driver)
    }

    /// Whether this processor has the instructions, and they are built in: whether [`new`](Self::new) gives a driver if all answers are right.
    #[must_use]
    pub fn are_there() -> bool {
        Level::best().is_some()
    }

    /// A driver by these instructions and no wider ones, unasked: for comparing levels.
    #[must_use]
    pub fn unchecked(level: Level) -> Self {
        let profile = Profile {
            name: "lanes".to_owned(),
            detail: detail(level, Means::best()),
            width: evener_kernels::lanes::Cbc::lanes(level),
            emulated: false,
        };
        Self {
            profile,
            level,
            aead: Aead::new(level),
            cbc: Cbc::new(level),
            hashes: Means::best().map(Hashes::new),
        }
    }

    /// The same, which hashes by these instructions, and by none not at all.
    #[must_use]
    pub fn hashing_by(mut self, means: Option<Means>) -> Self {
        self.hashes = means.map(Hashes::new);
        self.profile.detail = detail(self.level, means);
        self
    }

    /// Whether kernels are written for this, here or on another processor.
    #[must_use]
    #[inline]
    pub const fn are_for(algorithm: Algorithm, direction: Direction) -> bool {
        match (algorithm.family(), direction) {
            (Family::Gcm, _) | (Family::Cbc, Direction::Encrypt) => true,
            (family, Direction::Encrypt) => hashes::kernel_of(family).is_some(),
            _ => false,
        }
    }

    /// Runs jobs of one algorithm and direction, of which so many at the front are known to have one session.
    fn run_group(&mut self, group: &mut [Box<Job<'_>>], of_first: usize) {
        let Some((algorithm, direction)) = group.first().map(|job| kind(job)) else { return };
        match (algorithm.family(), &mut self.hashes) {
            (Family::Cbc, _) if direction == Direction::Encrypt => self.cbc.run(group, of_first),
            (Family::Gcm, _) => group.iter_mut().for_each(|job| self.aead.run(job)),
            (Family::Digest(_) | Family::Hmac(_), Some(hashes)) => hashes.run(group),
            _ => group.iter_mut().for_each(|job| job.fail(JobError::Unsupported)),
        }
    }

    fn answers_right(&mut self) -> bool {
        let both = [Direction::Encrypt, Direction::Decrypt];
        let questions = KNOWN.iter().flat_map(|known| both.map(|direction| (known, direction)));
        let offered: Vec<_> =
            questions.filter(|(known, direction)| self.supports(known.algorithm, *direction)).collect();
        // One more than lanes, so that full lanes and a rest are both asked.
        let width = self.profile.width as usize + 1;
        offered.into_iter().all(|(known, direction)| known.is_right(direction, width, |jobs| self.run(jobs)))
    }
}

impl InlineDriver for Lanes {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        Self::are_for(algorithm, direction) && (algorithm.is_cipher() || self.hashes.is_some())
    }

    fn job_bytes_max(&self, algorithm: Algorithm, _direction: Direction) -> usize {
        match algorithm.family() {
            Family::Cbc => cbc::bytes_max(),
            Family::Gcm => aead::bytes_max(),
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

    fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.aead.evict(has_ended);
        self.cbc.evict(has_ended);
        if let Some(hashes) = &mut self.hashes {
            hashes.evict(has_ended);
        }
    }
}

/// What stands behind a driver: what was measured by other instructions is not measured by these.
fn detail(level: Level, means: Option<Means>) -> String {
    let (level, means) = (level.name(), means.map_or("no kernels", Means::name));
    let version = env!("CARGO_PKG_VERSION");
    format!("AES-GCM, and AES-CBC encryption, by {level}, hashes by {means}, Evener {version}")
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
