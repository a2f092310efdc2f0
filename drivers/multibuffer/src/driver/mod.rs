//! Gives bursts to libipsec-mb.
//!
//! The path of a burst: [`Multibuffer::run`] groups it by algorithm and direction; CBC encryption goes through
//! `cbc.rs` (lanes, slices, padding), what one job alone can spread over the units of a core through
//! `blocks.rs` (ECB, CBC decryption, CTR) and `aead.rs`, hashes and MACs through `hash.rs`.
//!
//! The library is loaded at run time, so that a program that links this crate runs without it: [`Unavailable`] says
//! why it is not there. It is used only in releases whose structures are known, and each algorithm only after
//! a known answer came out right (`self_test.rs`).

mod aead;
mod blocks;
mod cbc;
mod hash;
mod keyring;
mod padding_blocks;
mod padding_in_place;
mod self_test;
mod survey;

use std::ffi::{CStr, CString};
use std::ops::DerefMut;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use evener_core::{Algorithm, Direction, Family, HasEnded, Hash, InlineDriver, Job, JobError, Profile};

use self::keyring::Keyring;
use self::padding_blocks::Tails;
use self::self_test::Wrong;
use self::survey::Survey;
use crate::ffi::{self, AesKeys, GcmKeys, HmacKeys, KeySize, Manager, Work, load_first, load_first_of};
use crate::unavailable::Unavailable;

/// Whether the library exists for this processor. Said before anything of it is named, so that elsewhere nothing of it is linked.
const IS_MADE_FOR_THIS: bool = cfg!(all(target_arch = "x86_64", target_pointer_width = "64"));

/// libipsec-mb on one thread.
///
/// Prepared keys of the last 128 sessions stay in it until they are [evicted](InlineDriver::evict); they and the
/// library's own memory are wiped when they are dropped.
pub struct Multibuffer {
    profile: Profile,
    manager: Manager,
    aes: Keyring<AesKeys>,
    gcm: Keyring<GcmKeys>,
    hmac: Keyring<HmacKeys>,
    /// What the group at hand needs.
    survey: Survey,
    /// Its last blocks that hold padding.
    tails: Tails,
    /// What gave a wrong answer in the self-test.
    wrong: Wrong,
}

impl Multibuffer {
    /// Opens the library that the system has, and no more: from here on [`Multibuffer::load`] makes no system call but for memory, in this
    /// process and in its children, and may be put off until there is work.
    ///
    /// # Errors
    ///
    /// As there, but for known answers.
    pub fn find() -> Result<(), Unavailable> {
        if IS_MADE_FOR_THIS { ffi::find() } else { Err(Unavailable::OtherProcessor) }
    }

    /// Loads the library that the system has and lets it answer what is known, the first time in a process.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] with the reason; of the newest library, where none of several can be used.
    pub fn load() -> Result<Self, Unavailable> {
        if !IS_MADE_FOR_THIS {
            return Err(Unavailable::OtherProcessor);
        }
        load_first(|name| Self::load_named(name, |driver| self_test::wrong_answers_of(name, driver)))
    }

    /// As [`Multibuffer::load`], with the library at `path`.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] with the reason.
    pub fn load_from(path: &Path) -> Result<Self, Unavailable> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Unavailable::NotFound { reason: "a path has no zero byte in it".to_owned() })?;
        load_first_of(&[name.as_c_str()], |name| Self::load_named(name, self_test::wrong_answers))
    }

    fn load_named(name: &CStr, self_test: impl FnOnce(&mut Self) -> Wrong) -> Result<Self, Unavailable> {
        let manager = Manager::load(name)?;
        let mut driver = Self {
            profile: profile(&manager),
            manager,
            aes: Keyring::default(),
            gcm: Keyring::default(),
            hmac: Keyring::default(),
            survey: Survey::default(),
            tails: Tails::default(),
            wrong: Wrong::default(),
        };
        driver.wrong = self_test(&mut driver);
        match offered().any(|(algorithm, direction)| driver.supports(algorithm, direction)) {
            true => Ok(driver),
            false => Err(Unavailable::SelfTest { version: driver.manager.version().to_owned() }),
        }
    }

    /// What the library has but answers wrongly on this machine, so that it is not used.
    #[must_use]
    pub fn wrong_answers(&self) -> &[(Algorithm, Direction)] {
        &self.wrong
    }

    /// Runs jobs of one algorithm and direction. Returns false, and no outcome counts, where they are of several.
    fn run_uniform<'m, J>(&mut self, jobs: &mut [J]) -> bool
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let Some((algorithm, direction)) = jobs.first().map(|job| group(job)) else { return true };
        let family = if self.supports(algorithm, direction) { algorithm.family() } else { UNSUPPORTED };
        match family {
            Family::Cbc | Family::Ecb | Family::Ctr if self.survey(jobs) => self.run_surveyed(jobs),
            Family::Cbc | Family::Ecb | Family::Ctr => return false,
            _ if jobs.iter().any(|job| group(job) != (algorithm, direction)) => return false,
            Family::Gcm | Family::ChaCha20Poly1305 => jobs.iter_mut().for_each(|job| self.run_aead(job)),
            Family::Digest(hash) => self.run_hashes(Work::Digest(hash), jobs),
            Family::Hmac(hash) => self.run_hashes(Work::Hmac(hash), jobs),
            UNSUPPORTED => jobs.iter_mut().for_each(|job| job.fail(JobError::Unsupported)),
        }
        true
    }

    /// Runs jobs that were surveyed.
    fn run_surveyed<'m, J>(&mut self, jobs: &mut [J])
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let Some(session) = jobs.first().map(|job| job.session()) else { return };
        let (size, direction) = (KeySize::of(session.key().len()), session.direction());
        match (session.algorithm().family(), direction) {
            (Family::Cbc, Direction::Encrypt) => self.encrypt_cbc(size, jobs),
            (Family::Cbc, Direction::Decrypt) => self.decrypt_cbc(size, jobs),
            (Family::Ecb, _) => self.run_ecb(size, direction, jobs),
            _ => self.run_ctr(size, jobs),
        }
    }

    /// Runs jobs of several algorithms and directions, group by group.
    fn run_mixed(&mut self, burst: &mut [Box<Job<'_>>]) {
        let mut jobs: Vec<&mut Job<'_>> = burst.iter_mut().map(|job| &mut **job).collect();
        jobs.sort_by_key(|job| (job.session().algorithm().index(), job.session().direction()));
        for jobs in jobs.chunk_by_mut(|one, next| group(one) == group(next)) {
            let is_uniform = self.run_uniform(jobs);
            debug_assert!(is_uniform, "a group is of one algorithm and direction");
        }
    }
}

impl InlineDriver for Multibuffer {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        is_offered(algorithm, direction) && !self.wrong.contains(&(algorithm, direction))
    }

    fn job_bytes_max(&self, algorithm: Algorithm, _direction: Direction) -> usize {
        match algorithm.family() {
            Family::Digest(_) | Family::Hmac(_) => ffi::LANE_BYTES_MAX,
            Family::Gcm => ffi::GCM_BYTES_MAX,
            Family::ChaCha20Poly1305 => ffi::CHACHA_BYTES_MAX,
            _ => usize::MAX,
        }
    }

    fn takes_shared(&self) -> bool {
        true
    }

    fn run(&mut self, burst: &mut [Box<Job<'_>>]) {
        if !self.run_uniform(burst) {
            self.run_mixed(burst);
        }
    }

    fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.aes.evict(has_ended);
        self.gcm.evict(has_ended);
        self.hmac.evict(has_ended);
    }
}

/// The family that the library lacks, and what a job of any other is taken for that it may not run.
const UNSUPPORTED: Family = Family::Xts;

/// What decides how a job is run.
fn group(job: &Job<'_>) -> (Algorithm, Direction) {
    (job.session().algorithm(), job.session().direction())
}

/// Whether the library has it: everything but XTS and a plain MD5.
fn is_offered(algorithm: Algorithm, direction: Direction) -> bool {
    match algorithm.family() {
        Family::Xts | Family::Digest(Hash::Md5) => false,
        Family::Digest(_) | Family::Hmac(_) => direction == Direction::Encrypt,
        Family::Ecb | Family::Cbc | Family::Ctr | Family::Gcm | Family::ChaCha20Poly1305 => true,
    }
}

/// Everything that the library has.
fn offered() -> impl Iterator<Item = (Algorithm, Direction)> {
    let both = [Direction::Encrypt, Direction::Decrypt];
    let all = Algorithm::ALL.iter().flat_map(move |&algorithm| both.map(|direction| (algorithm, direction)));
    all.filter(|&(algorithm, direction)| is_offered(algorithm, direction))
}

fn profile(manager: &Manager) -> Profile {
    let (set, vectors) = (manager.instruction_set(), manager.has_vector_aes());
    Profile {
        name: "multibuffer".to_owned(),
        detail: format!("libipsec-mb {}, {set}{}", manager.version(), if vectors { " and VAES" } else { "" }),
        // Lanes of CBC encryption.
        width: if set == "AVX-512" && vectors { 16 } else { 8 },
        emulated: false,
    }
}
