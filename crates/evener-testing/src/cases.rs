//! Cases that know their result: libcrypto judges each before a run, and what came of it afterwards.

use std::sync::{Arc, OnceLock};

use evener_core::plan::Policy;
use evener_core::{
    Algorithm, Direction, InlineDriver as _, Job, JobError, Outcome, Padding, Session, SessionRef,
};
use evener_driver_libcrypto::Libcrypto;

use crate::noise::noise;
use crate::waiting::without_standstill;

/// What `seed` makes.
fn bytes(seed: usize, len: usize) -> Vec<u8> {
    noise(seed as u64, len)
}

/// A job to be done and what libcrypto makes of it.
#[derive(Debug)]
pub struct Case {
    session: Arc<Session>,
    iv: Vec<u8>,
    aad: Vec<u8>,
    tag: Vec<u8>,
    /// What is to be encrypted, decrypted or hashed.
    pub input: Vec<u8>,
    right: Result<(Vec<u8>, Vec<u8>), JobError>,
}

/// Key of an algorithm: one per process, so that sessions are few.
fn session(algorithm: Algorithm, direction: Direction) -> Arc<Session> {
    static SESSIONS: OnceLock<Vec<[Option<Arc<Session>>; 2]>> = OnceLock::new();
    let open = |algorithm: Algorithm, direction| {
        let padding = if algorithm.needs_whole_blocks() { Padding::Pkcs7 } else { Padding::None };
        let key = bytes(algorithm.index() + 1, algorithm.key_bytes().unwrap_or(20));
        Session::new(algorithm, direction, padding, &key).ok().map(Arc::new)
    };
    let both =
        |&algorithm: &Algorithm| [open(algorithm, Direction::Encrypt), open(algorithm, Direction::Decrypt)];
    let sessions = SESSIONS.get_or_init(|| Algorithm::ALL.iter().map(both).collect());
    sessions[algorithm.index()][direction as usize].clone().expect("the direction exists")
}

impl Case {
    /// Encrypts (or hashes) `len` bytes that `seed` makes.
    #[must_use]
    pub fn encrypt(algorithm: Algorithm, seed: usize, len: usize) -> Self {
        Self::judged(Self {
            session: session(algorithm, Direction::Encrypt),
            iv: bytes(seed ^ 0x1234, algorithm.iv_bytes()),
            aad: if algorithm.is_aead() { bytes(seed, seed % 20) } else { Vec::new() },
            tag: Vec::new(),
            input: bytes(seed, len),
            right: Err(JobError::Library),
        })
    }

    /// Decrypts what [`Case::encrypt`] gives.
    #[must_use]
    pub fn decrypt(algorithm: Algorithm, seed: usize, len: usize) -> Self {
        let encrypted = Self::encrypt(algorithm, seed, len);
        let (input, tag) = encrypted.right.clone().unwrap();
        let session = session(algorithm, Direction::Decrypt);
        Self::judged(Self { session, tag, input, ..encrypted })
    }

    /// Decrypts with a tag that does not fit.
    #[must_use]
    pub fn forged(algorithm: Algorithm, seed: usize, len: usize) -> Self {
        let mut case = Self::decrypt(algorithm, seed, len);
        case.tag[seed % 16] ^= 1;
        let case = Self::judged(case);
        assert_eq!(case.right, Err(JobError::NotAuthentic));
        case
    }

    /// The same with a session that only modules may use.
    #[must_use]
    pub fn for_modules_only(mut self) -> Self {
        let free = &self.session;
        let (algorithm, direction, padding) = (free.algorithm(), free.direction(), free.padding());
        let bound = Session::new(algorithm, direction, padding, free.key()).unwrap().for_modules_only();
        self.session = Arc::new(bound);
        self
    }

    /// Whether only modules may do it.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.session.is_for_modules_only()
    }

    /// Space for the output: padding adds up to a block.
    #[must_use]
    pub fn space_bytes(&self) -> usize {
        self.input.len() + 16
    }

    fn judged(mut self) -> Self {
        let mut space = vec![0; self.space_bytes()];
        self.right = {
            let mut judged = [Job::in_place(&mut space)];
            self.arm(&mut judged[0]);
            Libcrypto::new().unwrap().run(&mut judged);
            result(&judged[0])
        };
        self
    }

    /// Arms a job in place for this case, reading the input into its space.
    pub fn arm<'c>(&'c self, job: &mut Job<'c>) {
        job.space_mut()[..self.input.len()].copy_from_slice(&self.input);
        self.arm_apart(job);
    }

    /// Arms a job whose input is where it is.
    pub fn arm_apart<'c>(&'c self, job: &mut Job<'c>) {
        job.arm(SessionRef::Shared(Arc::clone(&self.session)), &self.iv, self.input.len());
        job.set_aad(&self.aad);
        job.set_tag(&self.tag);
    }

    /// Whether libcrypto says that this case goes well.
    #[must_use]
    pub fn goes_well(&self) -> bool {
        self.right.is_ok()
    }

    /// Fails unless `job` is what libcrypto makes of this case.
    pub fn check(&self, job: &Job<'_>) {
        let name = self.session.algorithm();
        assert!(result(job) == self.right, "{name}, {} bytes, job {}: {job:?}", self.input.len(), job.mark);
    }
}

fn result(job: &Job<'_>) -> Result<(Vec<u8>, Vec<u8>), JobError> {
    match job.outcome() {
        Outcome::Done { .. } => Ok((job.output().to_vec(), job.tag().to_vec())),
        Outcome::Failed(error) => Err(error),
        Outcome::Pending => panic!("a job came back that no driver had worked on"),
    }
}

/// Memory for jobs in place.
#[must_use]
pub fn spaces(cases: &[Case]) -> Vec<Vec<u8>> {
    cases.iter().map(|case| vec![0; case.space_bytes()]).collect()
}

/// An armed job per case, marked with its number: half of them in place, half apart.
#[must_use]
pub fn jobs<'m>(cases: &'m [Case], spaces: &'m mut [Vec<u8>]) -> Vec<Box<Job<'m>>> {
    let both = cases.iter().zip(spaces).enumerate();
    let job = |(number, (case, space)): (usize, (&'m Case, &'m mut Vec<u8>))| {
        let mut job = if number % 2 == 0 { Job::in_place(space) } else { Job::apart(&case.input, space) };
        if number % 2 == 0 {
            case.arm(&mut job);
        } else {
            case.arm_apart(&mut job);
        };
        job.mark = number as u64;
        job
    };
    both.map(job).collect()
}

/// Does `body` with the cases and the jobs that are armed for them. A body that stands still fails.
pub fn with_jobs(cases: Vec<Case>, body: impl FnOnce(&[Case], Vec<Box<Job<'_>>>) + Send + 'static) {
    without_standstill(move || body(&cases, jobs(&cases, &mut spaces(&cases))));
}

/// Does `body` under every policy, with the cases and jobs that are armed for them anew. A body that stands still fails.
pub fn under_every_policy(
    cases: Vec<Case>,
    body: impl Fn(Policy, &[Case], Vec<Box<Job<'_>>>) + Send + 'static,
) {
    without_standstill(move || {
        for policy in Policy::ALL {
            body(policy, &cases, jobs(&cases, &mut spaces(&cases)));
        }
    });
}

/// Fails unless each case's job came back exactly once and is what libcrypto makes of it. A job in place that was
/// run twice is not: its input was replaced by the first run.
pub fn check_all(cases: &[Case], came: &[Box<Job<'_>>]) {
    let mut marks: Vec<u64> = came.iter().map(|job| job.mark).collect();
    marks.sort_unstable();
    assert_eq!(marks, (0..cases.len() as u64).collect::<Vec<_>>());
    for job in came {
        cases[usize::try_from(job.mark).unwrap()].check(job);
    }
}

/// The marks in the order in which jobs came.
#[must_use]
pub fn marks(came: &[Box<Job<'_>>]) -> Vec<u64> {
    came.iter().map(|job| job.mark).collect()
}

/// So many cases of mixed algorithms and sizes, some of them forged.
#[must_use]
pub fn mixed_cases(count: usize) -> Vec<Case> {
    let case = |seed: usize| {
        let len = (seed * 37) % 700;
        match seed % 7 {
            0 => Case::encrypt(Algorithm::Aes128Cbc, seed, len),
            1 => Case::decrypt(Algorithm::Aes256Cbc, seed, len),
            2 => Case::encrypt(Algorithm::Aes256Gcm, seed, len),
            3 if seed % 3 == 0 => Case::forged(Algorithm::Aes128Gcm, seed, len),
            3 => Case::decrypt(Algorithm::Aes128Gcm, seed, len),
            4 => Case::encrypt(Algorithm::Sha256, seed, len),
            5 => Case::encrypt(Algorithm::HmacSha1, seed, len),
            _ => Case::encrypt(Algorithm::Aes128Ctr, seed, len),
        }
    };
    (0..count).map(case).collect()
}

/// So many encryptions by AES-128-CBC of up to half a kilobyte.
#[must_use]
pub fn cbc_cases(count: usize) -> Vec<Case> {
    (0..count).map(|seed| Case::encrypt(Algorithm::Aes128Cbc, seed, (seed * 29) % 500)).collect()
}
