//! A run of a program: its environment, its host, and what all of them took.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use evener_bench::programs::host::Host;
use evener_bench::programs::openssl_conf::Providers;
use evener_bench::programs::stopwatch;
use evener_core::InlineDriver as _;
use evener_driver_libcrypto::Libcrypto;
use serde_json::Value;
use tempfile::TempDir;

use super::table::Program;

/// Where a program works, beside its host.
pub(super) struct Place {
    folder: TempDir,
    host: Host,
}

/// What one run took.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(super) struct Run {
    pub(super) wall_s: f64,
    /// Of all processes that ended, and of the host.
    pub(super) core_s: f64,
    #[serde(flatten)]
    pub(super) host: HostPart,
}

/// The host's part in a run.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(super) struct HostPart {
    /// Of the host alone.
    pub(super) host_s: f64,
    /// That the host did.
    pub(super) requests: u64,
}

impl Place {
    /// A folder in memory with the program's data, and a host that everybody may use.
    pub(super) fn prepare(evener: &Path, provider: &Path, program: &Program) -> anyhow::Result<Self> {
        let folder = TempDir::with_prefix_in("evener-programs-", "/dev/shm").context("/dev/shm")?;
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777))?;
        let control = folder.path().join("control");
        let mut options = vec!["--module".to_owned(), "cpu".to_owned()];
        options.extend(["--control".to_owned(), control.display().to_string()]);
        if let Some(uid) = postgres() {
            options.extend(["--allow-uid".to_owned(), uid]);
        }
        let words: Vec<&str> = options.iter().map(String::as_str).collect();
        let host = Host::start(Command::new(evener), &words).context("the host")?;
        let above = host.socket().parent().map(Path::to_owned).context("a socket lies in a folder")?;
        fs::set_permissions(above, Permissions::from_mode(0o755))?;
        let provider = provider.canonicalize().with_context(|| provider.display().to_string())?;
        let settings = [format!("modules = hosted:{}", host.socket().display())];
        for providers in Providers::BOTH {
            let path = folder.path().join(format!("{}.cnf", providers.name()));
            fs::write(path, providers.configuration(&provider, &settings))?;
        }
        let place = Self { folder, host };
        stopwatch::run(place.command(program, program.prepare, false, false))?;
        Ok(place)
    }

    /// The program's work, once.
    pub(super) fn run(&self, program: &Program, is_hosted: bool, is_set: bool) -> anyhow::Result<Run> {
        let (before, requests_before) = (self.host_seconds()?, self.host_requests()?);
        let used = stopwatch::time(vec![self.command(program, program.work, is_hosted, is_set)])?;
        let host_s = self.host_seconds()? - before;
        Ok(Run {
            wall_s: used.wall.as_secs_f64(),
            core_s: used.core.as_secs_f64() + host_s,
            host: HostPart { host_s, requests: self.host_requests()? - requests_before },
        })
    }

    /// A script, as the user `postgres` where a program of PostgreSQL would refuse root.
    fn command(&self, program: &Program, script: &str, is_hosted: bool, is_set: bool) -> Command {
        let words = ["sh", "-ec", script];
        let mut command = if program.is_postgres && rustix::process::geteuid().is_root() {
            let mut runuser = Command::new("runuser");
            runuser.args(["-u", "postgres", "--"]).args(words);
            runuser
        } else {
            let mut shell = Command::new(words[0]);
            shell.args(&words[1..]);
            shell
        };
        let providers = if is_hosted { Providers::Evener } else { Providers::Default };
        command.env("OPENSSL_CONF", self.folder.path().join(format!("{}.cnf", providers.name())));
        command.env("FOLDER", self.folder.path()).current_dir(self.folder.path());
        command.env("PG", postgres_programs().unwrap_or_default());
        if is_set {
            // Above all buffers of these programs, so that none is mapped and given back for each request.
            command.env("MALLOC_TRIM_THRESHOLD_", "67108864").env("MALLOC_MMAP_THRESHOLD_", "33554432");
        }
        command
    }

    /// Core time of the host so far: of all its threads, to the nanosecond.
    fn host_seconds(&self) -> anyhow::Result<f64> {
        let mut nanos = 0.0;
        for task in fs::read_dir(format!("/proc/{}/task", self.host.pid()))?.flatten() {
            let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            nanos += text.split(' ').next().and_then(|first| first.parse::<f64>().ok()).unwrap_or_default();
        }
        Ok(nanos * 1e-9)
    }

    /// Requests that the host did so far.
    fn host_requests(&self) -> anyhow::Result<u64> {
        let mut control =
            UnixStream::connect(self.folder.path().join("control")).context("the host's control")?;
        control.write_all(b"report\n")?;
        let mut line = String::new();
        BufReader::new(control).read_line(&mut line)?;
        let report: Value = serde_json::from_str(&line)?;
        report["totals"]["requests"].as_u64().context("the host counts no requests")
    }
}

/// What a program needs and is not there.
pub(super) fn missing(program: &Program) -> Option<&'static str> {
    let is_there = |what: &&&str| {
        let mut shell = Command::new("sh");
        shell.args(["-ec", what]).env("PG", postgres_programs().unwrap_or_default());
        stopwatch::run(shell).is_err()
    };
    program.needs.iter().find(is_there).copied()
}

/// Where the newest PostgreSQL that Debian installed has its programs.
fn postgres_programs() -> Option<PathBuf> {
    fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin")).max()
}

/// The number of the user `postgres`, where root has to become that one.
fn postgres() -> Option<String> {
    let mut id = Command::new("id");
    id.args(["-u", "postgres"]);
    let told = stopwatch::run(id).ok().filter(|_| rustix::process::geteuid().is_root())?;
    Some(String::from_utf8_lossy(&told).trim().to_owned())
}

/// Date, machine and versions, as a list.
pub(super) fn circumstances(evener: &Path) -> anyhow::Result<Vec<String>> {
    let said = |program: &Path, words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words);
        stopwatch::run(command)
            .map(|told| String::from_utf8_lossy(&told).trim().to_owned())
            .unwrap_or_default()
    };
    let information = fs::read_to_string("/proc/cpuinfo")?;
    let models = || information.lines().filter_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = models().next().map_or("unknown", |(_, model)| model);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    ensure!(evener.exists(), "{}", evener.display());
    Ok(vec![
        format!("date: {}", said(Path::new("date"), &["-u", "+%Y-%m-%d"])),
        format!("processor: {model}, {} cores", models().count()),
        format!("libraries: {}", Libcrypto::new()?.profile().detail),
        format!("evener: {}", said(evener, &["--version"])),
        format!("load of the machine at the end (1 minute): {}", load.split(' ').next().unwrap_or_default()),
    ])
}
