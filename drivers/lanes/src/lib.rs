//! Driver for kernels of our own (`evener-kernels`): a core's second method where they compute an algorithm.
//!
//! Path of a burst: [`Lanes::run`] takes job after job -> `aead.rs` finds what was made of its session's key, or makes it, and runs the
//! message by the widest instructions that the processor has.
//!
//! There is nothing to load, and what is asked before the driver is used is a known answer for each algorithm.
#![forbid(unsafe_code)]

mod aead;

use std::sync::OnceLock;

use evener_core::known::KNOWN;
use evener_core::{Algorithm, Direction, Family, HasEnded, InlineDriver, Job, JobError, Profile};
use evener_kernels::Level;

use self::aead::Aead;

/// Kernels on one thread.
///
/// Prepared keys of the last 32 sessions stay in it until they are [evicted](InlineDriver::evict), and are wiped when they are dropped.
pub struct Lanes {
    profile: Profile,
    aead: Aead,
}

impl Lanes {
    /// A driver of its own for the calling thread; none where the processor, or the compiler that built this, lacks the instructions, or where a
    /// known answer did not come out.
    #[must_use]
    pub fn new() -> Option<Self> {
        static ARE_RIGHT: OnceLock<bool> = OnceLock::new();
        let mut driver = Self::unchecked(Level::best()?);
        ARE_RIGHT.get_or_init(|| driver.answers_right()).then_some(driver)
    }

    /// A driver by these instructions and no wider ones, unasked: for comparing levels.
    #[must_use]
    pub fn unchecked(level: Level) -> Self {
        let profile = Profile {
            name: "lanes".to_owned(),
            detail: format!("AES-GCM by {}, Evener {}", level.name(), env!("CARGO_PKG_VERSION")),
            width: 1,
            emulated: false,
        };
        Self { profile, aead: Aead::new(level) }
    }

    /// Whether kernels are written for an algorithm, here or on another processor.
    #[must_use]
    pub const fn are_for(algorithm: Algorithm) -> bool {
        matches!(algorithm.family(), Family::Gcm)
    }

    fn answers_right(&mut self) -> bool {
        let known = KNOWN.iter().filter(|known| Self::are_for(known.algorithm));
        let both = [Direction::Encrypt, Direction::Decrypt];
        let mut questions = known.flat_map(|known| both.map(|direction| (known, direction)));
        questions.all(|(known, direction)| known.is_right(direction, 1, |jobs| self.run(jobs)))
    }
}

impl InlineDriver for Lanes {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn supports(&self, algorithm: Algorithm, _direction: Direction) -> bool {
        Self::are_for(algorithm)
    }

    fn job_bytes_max(&self, _algorithm: Algorithm, _direction: Direction) -> usize {
        aead::bytes_max()
    }

    fn checked_from(&self, _algorithm: Algorithm) -> u32 {
        CHECKED_FROM
    }

    fn run(&mut self, burst: &mut [Box<Job<'_>>]) {
        for job in burst {
            match Self::are_for(job.session().algorithm()) {
                true => self.aead.run(job),
                false => job.fail(JobError::Unsupported),
            }
        }
    }

    fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.aead.evict(has_ended);
    }
}

/// Bursts before the first that is compared with the plain method's. Assumed, not measured: 16, so that a run over a file or two need not set
/// libcrypto up, which takes 2 ms; what these kernels compute was compared at every length (`tests/`), and is by a known answer in each process.
const CHECKED_FROM: u32 = 16;
