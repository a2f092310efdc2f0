//! A host's module: named, asked what it does and known answers, and then used by as many runs as there are.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use evener_core::known::{self, KNOWN, Wrong};
use evener_core::{Algorithm, Direction, Job, Profile, QueuedDriver};

use crate::control::Trouble;
use crate::line::{self, Line};
use crate::name::ModuleName;
use crate::queued::Hosted;
use crate::shape::Shape;

/// Requests of one run that are at the host at the same time.
pub const DEPTH: u32 = 32;
const _: () = assert!(DEPTH as usize == line::DEPTH, "as many as a connection has seats");

/// Why a module cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No connection came about.
    #[error("{name} cannot be used: {trouble}")]
    Unreachable {
        /// The module.
        name: String,
        /// What went wrong.
        trouble: Trouble,
    },
    /// The host does nothing that it is offered.
    #[error("{name} does nothing that it is offered: CBC encryption and hashes, unless offer= says more")]
    NothingForUs {
        /// The module.
        name: String,
    },
    /// It computed something else than the known answer.
    #[error("{name} is refused: {wrong}")]
    WrongAnswer {
        /// The module.
        name: String,
        /// What it got wrong.
        wrong: Box<Wrong>,
    },
}

/// What a module does for us.
#[derive(Debug)]
pub(crate) struct Offered {
    name: ModuleName,
    table: BTreeSet<(usize, Direction)>,
    request_bytes_max: usize,
}

impl Offered {
    fn new(name: ModuleName, line: &Line) -> Self {
        let both = [Direction::Encrypt, Direction::Decrypt];
        let all = KNOWN.iter().flat_map(|known| both.map(|direction| (known.algorithm, direction)));
        let is_possible = |&(algorithm, direction): &(Algorithm, Direction)| {
            (algorithm.is_cipher() || direction == Direction::Encrypt)
                && name.offer().has(algorithm, direction)
                && Shape { algorithm, direction }.is_in(line.config())
        };
        let table =
            all.filter(is_possible).map(|(algorithm, direction)| (algorithm.index(), direction)).collect();
        let told = line.config().map_or(0, |config| config.request_bytes_max);
        // 0: the host sets no limit.
        let told = usize::try_from(told).ok().filter(|&most| most > 0);
        Self { name, table, request_bytes_max: told.unwrap_or(usize::MAX) }
    }

    pub(crate) fn has(&self, algorithm: Algorithm, direction: Direction) -> bool {
        self.table.contains(&(algorithm.index(), direction))
    }

    pub(crate) const fn request_bytes_max(&self) -> usize {
        self.request_bytes_max
    }

    pub(crate) fn socket(&self) -> &Path {
        self.name.socket()
    }
}

/// A module that gave all known answers.
#[derive(Debug)]
pub struct Module {
    profile: Profile,
    offered: Arc<Offered>,
    /// The connection by which it was asked, for the first run.
    line: Mutex<Option<Line>>,
}

impl Module {
    /// Connects, asks what the host does and known answers of all that it is offered.
    ///
    /// # Errors
    ///
    /// An [`OpenError`] where no connection comes about, or it does nothing for us, or computes wrong.
    pub fn open(name: &ModuleName) -> Result<Self, OpenError> {
        let module = Self::connect(name)?;
        module.ask_known_answers()?;
        Ok(module)
    }

    /// Connects, asks what the host does and nothing else: for whoever compares its first results himself.
    ///
    /// # Errors
    ///
    /// An [`OpenError`] where no connection comes about, or it does nothing for us.
    pub fn connect(name: &ModuleName) -> Result<Self, OpenError> {
        let shown = || name.to_string();
        let line =
            Line::open(name.socket()).map_err(|trouble| OpenError::Unreachable { name: shown(), trouble })?;
        let offered = Arc::new(Offered::new(name.clone(), &line));
        if offered.table.is_empty() {
            return Err(OpenError::NothingForUs { name: shown() });
        }
        let detail = "another process, by vhost-user-crypto".to_owned();
        let profile = Profile { name: shown(), detail, width: DEPTH, emulated: false };
        Ok(Self { profile, offered, line: Mutex::new(Some(line)) })
    }

    /// What it says of itself.
    #[must_use]
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Whether it does this for us.
    #[must_use]
    pub fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        self.offered.has(algorithm, direction)
    }

    /// A driver for one run, with a connection of its own. Where none comes about any more, it is lost from the beginning and
    /// says so to the first job.
    #[must_use]
    pub fn driver<'m>(&self) -> Box<dyn QueuedDriver<'m> + 'm> {
        Box::new(self.hosted())
    }

    fn hosted<'m>(&self) -> Hosted<'m> {
        // Not waited for: in a forked child it may be locked by a thread that is not there.
        let kept = self.line.try_lock().ok().and_then(|mut line| line.take()).filter(Line::is_ours);
        let line = kept.or_else(|| Line::open(self.offered.socket()).ok());
        Hosted::new(self.profile.clone(), Arc::clone(&self.offered), line)
    }

    fn ask_known_answers(&self) -> Result<(), OpenError> {
        for known in KNOWN {
            for direction in known.directions().filter(|&direction| self.supports(known.algorithm, direction))
            {
                let checked = known.check(direction, ANSWERS, |jobs| self.run(jobs));
                let name = || self.profile.name.clone();
                checked.map_err(|wrong| OpenError::WrongAnswer { name: name(), wrong: Box::new(wrong) })?;
            }
        }
        Ok(())
    }

    /// Runs jobs; those that do not come back in time come back as lost.
    fn run(&self, jobs: &mut Vec<Box<Job<'_>>>) {
        let mut driver = self.hosted();
        let began = Instant::now();
        known::ask(&mut driver, jobs, || began.elapsed() >= TRIAL_PATIENCE);
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = driver.into_line();
    }
}

/// Jobs of one question, so that requests are under way side by side.
const ANSWERS: usize = 5;

/// How long known answers may take.
const TRIAL_PATIENCE: Duration = Duration::from_secs(2);
