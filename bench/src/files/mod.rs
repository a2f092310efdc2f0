//! Real files: `evener` against the programs that people use today, each started as a process of its own.
//!
//! Steps of one figure: sources are made in a folder ([`work_dir`]) -> every contender works once without a
//! clock, and its ciphertext is kept -> runs, in which all contenders take turns: memory is warmed, its commands
//! ([`contender`]) are timed ([`stopwatch`](crate::programs::stopwatch)), what came out is looked at and removed -> spreads and ratios
//! ([`report`]).
//!
//! Where the folder is on a disk, the other programs are followed by a sync, because `evener` syncs by itself.

use std::path::{Path, PathBuf};

use evener::Cancel;
use evener_core::Direction;

use crate::error::BenchError;
use crate::programs::stopwatch::{self, Used};
use contender::{Contender, Setting};
use report::CellResult;
pub use report::Results;
use work_dir::{Shape, WorkDir};

mod contender;
mod program;
pub mod report;
mod work_dir;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The command under test.
    pub evener: PathBuf,
    /// Where; each folder is measured by itself, in a new folder inside it that is removed at the end.
    pub folders: Vec<PathBuf>,
    /// What each contender does; work without a byte is left out.
    pub works: Vec<Work>,
    /// Turns of each contender.
    pub runs: usize,
    /// Whom to compare with; who is not installed is left out, and the results say so.
    pub rivals: Vec<Rival>,
    /// Processes side by side where a program takes one file at a time.
    pub processes: usize,
    /// What the results call this machine.
    pub machine: String,
}

evener_core::named! {
    /// A program to compare with.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Rival {
        /// `cp`: writes the same bytes without encrypting.
        Copy = "cp",
        /// `openssl enc`, AES-256-CTR with the key on the command line: its quickest way, without authentication.
        OpensslEnc = "openssl",
        /// `age` with one X25519 recipient.
        Age = "age",
    }
}

/// A thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// One file.
    Large {
        /// How long it is.
        bytes: u64,
    },
    /// A tree of small files.
    Tree {
        /// How many files.
        count: u64,
        /// How long each of them is.
        bytes: u64,
    },
    /// What lies there already, a file or a tree; it is only read.
    Own {
        /// Where.
        path: PathBuf,
        /// How many files.
        count: u64,
        /// How long they are together.
        bytes: u64,
    },
}

impl Work {
    /// The work on a file or tree of the user's.
    ///
    /// # Errors
    ///
    /// [`BenchError::File`] where it cannot be read, [`BenchError::Cell`] where something in it is no plain file, or has a name that cannot
    /// stand in a list, so that not every program would do the same with it.
    pub fn of(path: &Path) -> Result<Self, BenchError> {
        let path = std::fs::canonicalize(path).map_err(work_dir::wrong(path))?;
        work_dir::check_plain(&path)?;
        let Shape { files, bytes } = Shape::of(&path)?;
        Ok(Self::Own { path, count: files, bytes })
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Large { .. } => "large file",
            Self::Tree { .. } => "tree",
            Self::Own { .. } => "own files",
        }
    }

    const fn bytes(&self) -> u64 {
        match self {
            Self::Large { bytes } | Self::Own { bytes, .. } => *bytes,
            Self::Tree { count, bytes } => *count * *bytes,
        }
    }

    fn is_tree(&self) -> bool {
        match self {
            Self::Large { .. } => false,
            Self::Tree { .. } => true,
            Self::Own { path, .. } => path.is_dir(),
        }
    }
}

impl Plan {
    fn works(&self) -> impl Iterator<Item = &Work> {
        self.works.iter().filter(|work| work.bytes() > 0)
    }
}

/// Shared memory, and the current folder where it is on a disk.
#[must_use]
pub fn usual_folders() -> Vec<PathBuf> {
    let memory = Path::new("/dev/shm");
    let memory = memory.is_dir().then(|| memory.to_owned());
    let here = PathBuf::from(".");
    let disk = (!work_dir::is_tmpfs(&here)).then_some(here);
    [memory, disk].into_iter().flatten().collect()
}

/// Measures `plan`; `tell` hears what is being done.
///
/// # Errors
///
/// [`BenchError::Command`] where a program fails, [`BenchError::WrongFile`] where what it wrote is not right,
/// [`BenchError::Cell`] where there is nothing to do or no space for it, [`BenchError::Stopped`] where `cancel`
/// asks to stop. The folders are left as they were found.
pub fn measure(plan: &Plan, cancel: &Cancel, mut tell: impl FnMut(&str)) -> Result<Results, BenchError> {
    let (programs, contenders) = contender::installed(plan)?;
    if plan.works().next().is_none() || plan.runs == 0 || plan.folders.is_empty() {
        return Err(BenchError::Cell("there is nothing to measure".to_owned()));
    }
    let mut cells = Vec::new();
    for folder in &plan.folders {
        for work in plan.works() {
            let contest = Contest::prepare(plan, folder, work, &contenders, cancel, &mut tell)?;
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                cells.push(contest.run(direction, &mut tell)?);
            }
        }
    }
    Ok(Results::new(plan, programs, cells))
}

/// One work in one folder, ready to be timed.
struct Contest<'p> {
    plan: &'p Plan,
    folder: &'p Path,
    work: &'p Work,
    contenders: &'p [Contender],
    cancel: &'p Cancel,
    work_dir: WorkDir,
    setting: Setting,
    source: PathBuf,
    shape: Shape,
    /// What decrypting starts from, per contender; for `cp` the source itself.
    ciphers: Vec<PathBuf>,
}

impl<'p> Contest<'p> {
    /// Makes sources and keys and lets everyone encrypt once.
    fn prepare(
        plan: &'p Plan,
        folder: &'p Path,
        work: &'p Work,
        contenders: &'p [Contender],
        cancel: &'p Cancel,
        tell: &mut impl FnMut(&str),
    ) -> Result<Self, BenchError> {
        tell(&format!("{} in {}: making it, and encrypting it once untimed", work.name(), folder.display()));
        let work_dir = WorkDir::new(folder, space_bytes(plan, folder, work, contenders.len()))?;
        let mut source = work_dir.path("source");
        match work {
            Work::Large { bytes } => work_dir::make_file(&source, *bytes)?,
            Work::Tree { count, bytes } => work_dir::make_tree(&source, *count, *bytes)?,
            Work::Own { path, .. } => source.clone_from(path),
        }
        let shape = Shape::of(&source)?;
        let setting = Setting::new(plan, &work_dir, work.is_tree(), &source)?;
        let ciphers = Vec::new();
        let mut contest =
            Self { plan, folder, work, contenders, cancel, work_dir, setting, source, shape, ciphers };
        contest.encrypt_once()?;
        Ok(contest)
    }

    fn encrypt_once(&mut self) -> Result<(), BenchError> {
        for &contender in self.contenders {
            let cipher = self.work_dir.path(&format!("cipher-{}", contender.file_name()));
            self.turn(contender, Direction::Encrypt, &self.source, &cipher)?;
            if contender.encrypts() {
                self.ciphers.push(cipher);
            } else {
                self.work_dir.discard(&cipher, self.work.is_tree())?;
                self.ciphers.push(self.source.clone());
            }
        }
        Ok(())
    }

    /// All runs in one direction.
    fn run(&self, direction: Direction, tell: &mut impl FnMut(&str)) -> Result<CellResult, BenchError> {
        let mut used: Vec<Vec<Used>> = vec![Vec::new(); self.contenders.len()];
        for run in 0..self.plan.runs {
            let (place, runs) = (self.folder.display(), self.plan.runs);
            tell(&format!("{} in {place}: {direction}, run {} of {runs}", self.work.name(), run + 1));
            for turn in 0..self.contenders.len() {
                // Everyone is first, second and so on in turn: what a neighbour leaves behind hits all alike.
                let index = (run + turn) % self.contenders.len();
                used[index].push(self.timed(index, direction, run)?);
            }
        }
        Ok(CellResult::new(self, direction, &used))
    }

    /// One turn with the clock, and what it wrote looked at.
    fn timed(&self, index: usize, direction: Direction, run: usize) -> Result<Used, BenchError> {
        let contender = self.contenders[index];
        let from = if direction == Direction::Encrypt { &self.source } else { &self.ciphers[index] };
        let to = self.work_dir.path(&format!("{direction}-{run}-{}", contender.file_name()));
        let used = self.turn(contender, direction, from, &to)?;
        self.check(contender, direction, run, &to)?;
        self.work_dir.discard(&to, self.work.is_tree())?;
        Ok(used)
    }

    fn turn(
        &self,
        contender: Contender,
        direction: Direction,
        from: &Path,
        to: &Path,
    ) -> Result<Used, BenchError> {
        if self.setting.wants_folders(contender) {
            work_dir::make_folders_like(&self.source, to)?;
        }
        self.work_dir.settle(self.shape.bytes)?;
        let commands = self.setting.commands(contender, direction, from, to, self.work_dir.is_on_disk());
        let used = stopwatch::time(commands);
        // Looked at first: what the terminal stops along with us has failed for no other reason.
        if self.cancel.is_cancelled() { Err(BenchError::Stopped) } else { used }
    }

    /// The first time every byte that should be the source's, afterwards the number of files and bytes.
    fn check(
        &self,
        contender: Contender,
        direction: Direction,
        run: usize,
        to: &Path,
    ) -> Result<(), BenchError> {
        let is_plain = direction == Direction::Decrypt || !contender.encrypts();
        let shape = Shape::of(to)?;
        let fits = shape.files == self.shape.files
            && if is_plain { shape.bytes == self.shape.bytes } else { shape.bytes >= self.shape.bytes };
        if fits && (!is_plain || run > 0 || work_dir::same(&self.source, to)?) {
            return Ok(());
        }
        Err(BenchError::WrongFile {
            contender: contender.name().to_owned(),
            direction: direction.to_string(),
        })
    }
}

/// The most that a contest takes of a folder: source, ciphertexts, outputs that are kept, and some to spare.
fn space_bytes(plan: &Plan, folder: &Path, work: &Work, contenders: usize) -> u64 {
    let kept_outputs =
        if work.is_tree() && !work_dir::is_tmpfs(folder) { 2 * plan.runs * contenders } else { 1 };
    let copies = 1 + contenders + kept_outputs + 1;
    // A small file takes whole pages and some for its name.
    let per_file_bytes = match work {
        Work::Large { .. } => 0,
        Work::Tree { count, .. } | Work::Own { count, .. } => count * 4_096,
    };
    (work.bytes() + per_file_bytes).saturating_mul(copies as u64)
}
