//! Where a program is measured: a folder in memory, its configurations, and one run of it.
//!
//! Path of a run: [`Run::command`] (environment, counted or profiled) -> [`Run::timed`] (wall and core time of what stands in it) -> [`Used`].

use std::cell::{Cell, RefCell};
use std::fs::{self, File, Permissions};
use std::io::{Read as _, Seek as _};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use evener::Cancel;
use evener::core::counts::{Count, Row};
use evener::counts_file::{DIRECTORY_VARIABLE, Directories, Record, of_user};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::account::Account;
use super::configuration::Configuration;
use super::search_path::search_path;
use crate::error::BenchError;
use crate::programs::{port, stopwatch};

/// A server that does not answer by then never will.
const START: Duration = Duration::from_secs(30);

/// A folder in memory with the configurations of one program; removed when dropped.
#[derive(Debug)]
pub struct Place {
    folder: TempDir,
    account: Account,
    /// Whether the user still waits for what is measured.
    cancel: Cancel,
}

/// What a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Used {
    /// From the start of the work to its end.
    pub wall_s: f64,
    /// Of all processes of the program.
    pub core_s: f64,
}

/// What processes counted: [`Count::Direct`], [`Count::Kernel`], [`Count::Combined`], [`Count::Split`] and [`Count::Routed`].
pub type Counts = [u64; 5];

/// One run of a program by one configuration.
#[derive(Debug)]
pub struct Run<'a> {
    place: &'a Place,
    configuration: Configuration,
    profile: Option<PathBuf>,
    profiles: Cell<u32>,
    servers: RefCell<Vec<u32>>,
    used: Cell<Used>,
}

/// A server of a run; ends with this value.
#[derive(Debug)]
pub struct Server(Child);

impl Place {
    /// Makes the folder and writes the configurations; `hand` are lines of the one that is made by hand. What is measured there ends once `cancel` says so.
    ///
    /// # Errors
    ///
    /// [`BenchError::File`] where it cannot.
    pub fn make(module: &Path, hand: &[&str], cancel: &Cancel) -> Result<Self, BenchError> {
        let at = Path::new("/dev/shm");
        let folder = TempDir::with_prefix_in("evener-programs-", at).map_err(failed(at))?;
        let place = Self { folder, account: Account::open(), cancel: cancel.clone() };
        // Servers part from root's rights.
        fs::set_permissions(place.path(""), Permissions::from_mode(0o755)).map_err(failed(at))?;
        for configuration in Configuration::ALL {
            place.write(&format!("{}.cnf", configuration.word()), configuration.text(module, hand))?;
            let counts = place.counts(configuration);
            fs::create_dir(&counts).map_err(failed(&counts))?;
            fs::set_permissions(&counts, Permissions::from_mode(0o700)).map_err(failed(&counts))?;
        }
        Ok(place)
    }

    /// A file or folder of this name.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file.
    ///
    /// # Errors
    ///
    /// [`BenchError::File`] where it cannot.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<PathBuf, BenchError> {
        let path = self.path(name);
        fs::write(&path, bytes).map_err(failed(&path))?;
        Ok(path)
    }

    /// A program by OpenSSL alone, which is not counted.
    #[must_use]
    pub fn plain(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        self.environment(Configuration::Plain, &mut command);
        command
    }

    /// How core time is counted.
    #[must_use]
    pub fn account(&self) -> &'static str {
        self.account.in_words()
    }

    /// Bytes that do not repeat before a file of them ends.
    #[must_use]
    pub fn data(bytes: usize) -> Vec<u8> {
        (0_u64..)
            .flat_map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes())
            .take(bytes)
            .collect()
    }

    /// Forgets what earlier runs counted by this configuration.
    fn forget_counts(&self, configuration: Configuration) {
        let entries = fs::read_dir(self.counts(configuration)).into_iter().flatten().flatten();
        let counts =
            entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "stats"));
        // One that stays is counted twice, which a table shows and no time hangs on.
        counts.for_each(|path| fs::remove_file(path).unwrap_or_default());
    }

    /// A run by this configuration, to whose profile `perf` is asked where a file for it is named.
    #[must_use]
    pub fn run(&self, configuration: Configuration, profile: Option<PathBuf>) -> Run<'_> {
        self.forget_counts(configuration);
        Run {
            place: self,
            configuration,
            profile,
            profiles: Cell::default(),
            servers: RefCell::default(),
            used: Cell::default(),
        }
    }

    /// What processes counted by this configuration that were not yet cleared away.
    #[must_use]
    pub fn counted(&self, configuration: Configuration) -> Counts {
        let counts = self.counts(configuration);
        // A program that runs as another user was given the folder.
        let Ok(owner) = fs::metadata(&counts).map(|folder| folder.uid()) else { return Counts::default() };
        let records = of_user(&Directories::only(counts), owner);
        let of = |what| {
            let rows = |record: &Record| Row::all().map(|row| record.count(row, what)).sum::<u64>();
            records.iter().filter_map(|(_, record)| record.as_ref().ok()).map(rows).sum()
        };
        Count::WAYS.map(of)
    }

    fn counts(&self, configuration: Configuration) -> PathBuf {
        self.path(&format!("counts-{}", configuration.word()))
    }

    fn environment(&self, configuration: Configuration, command: &mut Command) {
        command.env("OPENSSL_CONF", self.path(&format!("{}.cnf", configuration.word())));
        command.env_remove("OPENSSL_MODULES").env(DIRECTORY_VARIABLE, self.counts(configuration));
        command.envs(configuration.variables().iter().copied()).current_dir(self.folder.path());
        command.env("PATH", search_path());
        command.stdin(Stdio::null());
    }
}

impl Run<'_> {
    /// The folder and what is in it.
    #[must_use]
    pub fn place(&self) -> &Place {
        self.place
    }

    /// Which configuration it is.
    #[must_use]
    pub const fn configuration(&self) -> Configuration {
        self.configuration
    }

    /// The program, by this run's configuration; what it and its children take is counted.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut words = match &self.profile {
            // Each command its own file.
            Some(file) => {
                self.profiles.set(self.profiles.get() + 1);
                super::sampler::record(file, self.profiles.get())
            }
            None => self.place.account.words(),
        };
        words.push(program.to_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        self.place.environment(self.configuration, &mut command);
        command
    }

    /// Runs a command to its end and gives what it said, without white space around it.
    ///
    /// # Errors
    ///
    /// [`BenchError::Command`] where it fails, [`BenchError::Stopped`] where the user waits for it no more: then it is ended.
    pub fn said(&self, command: Command) -> Result<String, BenchError> {
        stopwatch::run_until(command, &self.place.cancel).map(|said| trimmed(&said))
    }

    /// A client, or what looks at the result: by OpenSSL alone, and not counted.
    #[must_use]
    pub fn plain(&self, program: &str) -> Command {
        self.place.plain(program)
    }

    /// Starts a server, and waits until something listens at this port of the loopback.
    ///
    /// # Errors
    ///
    /// [`BenchError::Command`] where it ends before that, or takes too long.
    pub fn serve(&self, command: Command, port: u16) -> Result<Server, BenchError> {
        let is_up = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        let server = Server::start(command, is_up)?;
        self.counts_server(&server);
        Ok(server)
    }

    /// Counts what a server of this run takes that was started otherwise.
    pub fn counts_server(&self, server: &Server) {
        self.servers.borrow_mut().push(server.0.id());
    }

    /// Runs `work` by the clock: the program's work, and nothing else.
    ///
    /// # Errors
    ///
    /// Those of `work`.
    pub fn timed<T>(&self, work: impl FnOnce() -> Result<T, BenchError>) -> Result<T, BenchError> {
        let servers = self.servers.borrow().clone();
        let core = self.place.account.core_time(&servers);
        let started = Instant::now();
        let done = work()?;
        let wall = started.elapsed();
        let core = self.place.account.core_time(&servers).saturating_sub(core);
        self.used.set(Used { wall_s: wall.as_secs_f64(), core_s: core.as_secs_f64() });
        Ok(done)
    }

    /// Wall time as the program itself told it, where only a part of the run is in question.
    pub fn set_wall(&self, wall_s: f64) {
        self.used.set(Used { wall_s, ..self.used.get() });
    }

    /// What the run took.
    #[must_use]
    pub fn used(&self) -> Used {
        self.used.get()
    }
}

impl Server {
    /// Starts it and waits until it is up.
    ///
    /// # Errors
    ///
    /// As [`Run::serve`].
    pub fn start(mut command: Command, is_up: impl Fn() -> bool) -> Result<Self, BenchError> {
        let name = format!("{command:?}").chars().take(300).collect::<String>();
        let told = |reason: String| BenchError::Command { command: name.clone(), reason };
        let words = tempfile::tempfile().and_then(|file| Ok((file.try_clone()?, file.try_clone()?, file)));
        let (out, err, words) = words.map_err(|error| told(error.to_string()))?;
        let child = command.stdout(out).stderr(err).spawn();
        let mut server = Self(child.map_err(|error| told(error.to_string()))?);
        let until = Instant::now() + START;
        while !is_up() {
            if let Ok(Some(status)) = server.0.try_wait() {
                return Err(told(format!("{status} before it answered: {}", last_line(words))));
            }
            if Instant::now() > until {
                return Err(told("it does not answer".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// Asks it to end.
    pub fn ask_to_end(&self) {
        // It may have ended already.
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap_or_default();
    }

    /// Waits until it ends by itself, for at most so long.
    pub fn wait_for_its_end(&mut self, most: Duration) {
        let until = Instant::now() + most;
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ask_to_end();
        self.wait_for_its_end(Duration::from_secs(10));
        self.0.kill().unwrap_or_default();
        self.0.wait().map(drop).unwrap_or_default();
    }
}

/// What a program said last into this file.
fn last_line(mut file: File) -> String {
    let mut text = String::new();
    // What cannot be read is not told.
    _ = file.rewind().and_then(|()| file.read_to_string(&mut text));
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}

/// A port of the loopback that was free a moment ago; another program may take it before it is used.
///
/// # Errors
///
/// [`BenchError::Cell`] where there is none.
pub fn free_port() -> Result<u16, BenchError> {
    let found = port::free(IpAddr::V4(Ipv4Addr::LOCALHOST));
    found.map_err(|error| BenchError::Cell(format!("no port is free: {error}")))
}

/// Runs a command to its end and gives what it said, without white space around it.
///
/// # Errors
///
/// [`BenchError::Command`] where it fails.
pub fn said(command: Command) -> Result<String, BenchError> {
    stopwatch::run(command).map(|said| trimmed(&said))
}

fn trimmed(said: &[u8]) -> String {
    String::from_utf8_lossy(said).trim().to_owned()
}

/// Reads a file.
///
/// # Errors
///
/// [`BenchError::File`] where it cannot.
pub fn read(path: &Path) -> Result<Vec<u8>, BenchError> {
    fs::read(path).map_err(failed(path))
}

/// Names the file that failed.
pub fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> BenchError + use<> {
    let path = path.display().to_string();
    move |error| BenchError::File { path, error: error.to_string() }
}
