//! Who takes part, and the commands that do one work: in the shortest way that each program has.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use evener_core::Direction;

use super::program::Program;
use super::work_dir::{self, WorkDir};
use super::{Plan, Rival};
use crate::error::BenchError;
use crate::programs::stopwatch;

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contender {
    Rival(Rival),
    /// Evener, with a Tink keyset.
    Tink,
    /// Evener, with an age recipient.
    Age,
}

impl Contender {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rival(Rival::Copy) => "cp",
            Self::Rival(Rival::OpensslEnc) => "openssl enc",
            Self::Rival(Rival::Age) => "age",
            Self::Tink => "evener tink",
            Self::Age => "evener age",
        }
    }

    pub(super) fn file_name(self) -> String {
        self.name().replace(' ', "-")
    }

    pub(super) const fn is_evener(self) -> bool {
        matches!(self, Self::Tink | Self::Age)
    }

    pub(super) fn encrypts(self) -> bool {
        self != Self::Rival(Rival::Copy)
    }
}

/// The versions of everyone asked for, and those who are there; rivals first.
///
/// # Errors
///
/// [`BenchError::Command`] where `evener` itself cannot be started.
pub(super) fn installed(plan: &Plan) -> Result<(Vec<Program>, Vec<Contender>), BenchError> {
    let mut programs = Vec::new();
    let mut contenders = Vec::new();
    for &rival in &plan.rivals {
        let version = version(
            Path::new(rival.name()),
            if rival == Rival::OpensslEnc { "version" } else { "--version" },
        );
        if version.is_ok() {
            contenders.push(Contender::Rival(rival));
        }
        programs.push(Program { name: rival.name(), version: version.ok() });
    }
    programs.push(Program { name: "evener", version: Some(version(&plan.evener, "--version")?) });
    contenders.extend([Contender::Tink, Contender::Age]);
    Ok((programs, contenders))
}

/// The first line that a program says of itself.
fn version(program: &Path, option: &str) -> Result<String, BenchError> {
    let mut command = Command::new(program);
    command.arg(option);
    let said = stopwatch::run(command)?;
    Ok(String::from_utf8_lossy(&said).lines().next().unwrap_or_default().trim().to_owned())
}

/// What commands are made of.
pub(super) struct Setting {
    evener: PathBuf,
    keyset: PathBuf,
    identity: PathBuf,
    recipient: String,
    is_tree: bool,
    /// The files of the tree, one on a line, for programs that take one at a time.
    list: PathBuf,
    processes: usize,
}

impl Setting {
    /// Makes keys, and the list of `source`'s files.
    pub(super) fn new(
        plan: &Plan,
        work_dir: &WorkDir,
        is_tree: bool,
        source: &Path,
    ) -> Result<Self, BenchError> {
        let [keyset, identity, list] = ["key.json", "identity", "list"].map(|name| work_dir.path(name));
        let keygen = |arguments: &[&str], file: &Path| {
            let mut command = Command::new(&plan.evener);
            command.arg("keygen").args(arguments).arg(file);
            stopwatch::run(command)
        };
        keygen(&[], &keyset)?;
        keygen(&["--age"], &identity)?;
        fs::write(&list, work_dir::list(source)?).map_err(work_dir::wrong(&list))?;
        let recipient = recipient(&fs::read_to_string(&identity).map_err(work_dir::wrong(&identity))?);
        let (evener, processes) = (plan.evener.clone(), plan.processes);
        Ok(Self { evener, keyset, identity, recipient, is_tree, list, processes })
    }

    /// Whether the folders of the output have to be there before the program starts.
    pub(super) fn wants_folders(&self, contender: Contender) -> bool {
        self.is_tree && matches!(contender, Contender::Rival(Rival::OpensslEnc | Rival::Age))
    }

    /// What does the work from `from` to `to`, with a sync behind where it `must_sync` and does not by itself.
    pub(super) fn commands(
        &self,
        contender: Contender,
        direction: Direction,
        from: &Path,
        to: &Path,
        must_sync: bool,
    ) -> Vec<Command> {
        let age_key = self.age_key(direction);
        let work = match contender {
            Contender::Rival(Rival::Copy) => self.copy(from, to),
            Contender::Rival(Rival::OpensslEnc) => self.openssl(direction, from, to),
            Contender::Rival(Rival::Age) => self.age(direction, from, to),
            Contender::Tink => self.evener(direction, ["--key".into(), self.keyset.clone().into()], from, to),
            Contender::Age => self.evener(direction, age_key, from, to),
        };
        let sync = (must_sync && !contender.is_evener()).then(|| self.sync(to));
        [Some(work), sync].into_iter().flatten().collect()
    }

    /// The same in `age` and in `evener`.
    fn age_key(&self, direction: Direction) -> [OsString; 2] {
        match direction {
            Direction::Encrypt => ["-r".into(), self.recipient.clone().into()],
            Direction::Decrypt => ["-i".into(), self.identity.clone().into()],
        }
    }

    fn evener(&self, direction: Direction, key: [OsString; 2], from: &Path, to: &Path) -> Command {
        let mut command = Command::new(&self.evener);
        command.arg(direction.to_string()).arg("--quiet").args(key).arg("-o").args([to, from]);
        command
    }

    fn copy(&self, from: &Path, to: &Path) -> Command {
        let mut command = Command::new("cp");
        command.args(self.is_tree.then_some("-r")).arg("--reflink=never").args([from, to]);
        command
    }

    fn openssl(&self, direction: Direction, from: &Path, to: &Path) -> Command {
        let mut command = self.one_at_a_time("openssl");
        command.args(["enc", if direction == Direction::Encrypt { "-e" } else { "-d" }, "-aes-256-ctr"]);
        command.args(["-K", OPENSSL_KEY, "-iv", OPENSSL_IV]);
        command.arg("-in").arg(self.each(from)).arg("-out").arg(self.each(to));
        command
    }

    fn age(&self, direction: Direction, from: &Path, to: &Path) -> Command {
        let mut command = self.one_at_a_time("age");
        command.args((direction == Direction::Decrypt).then_some("-d")).args(self.age_key(direction));
        command.arg("-o").args([self.each(to), self.each(from)]);
        command
    }

    /// The start of a command that takes one file at a time: for a tree, by xargs.
    fn one_at_a_time(&self, program: &str) -> Command {
        if !self.is_tree {
            return Command::new(program);
        }
        let mut command = Command::new("xargs");
        command.arg("-a").arg(&self.list).args([
            "-d",
            "\\n",
            "-P",
            &self.processes.to_string(),
            "-I",
            EACH,
            program,
        ]);
        command
    }

    fn each(&self, path: &Path) -> PathBuf {
        if self.is_tree { path.join(EACH) } else { path.to_owned() }
    }

    fn sync(&self, path: &Path) -> Command {
        let mut command = Command::new("sync");
        command.args(self.is_tree.then_some("-f")).arg(path);
        command
    }
}

/// The public key that `evener keygen --age` writes as a comment.
fn recipient(identity: &str) -> String {
    let word = identity.split_whitespace().find(|word| word.starts_with("age1"));
    word.unwrap_or_default().to_owned()
}

/// What xargs replaces by a path from its list.
const EACH: &str = "{}";
const OPENSSL_KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const OPENSSL_IV: &str = "000102030405060708090a0b0c0d0e0f";
