//! A PostgreSQL cluster with a pgBackRest repository, run as the user `postgres` where we are root.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::counters::Counter;
use super::openssl_conf::Providers;
use super::stopwatch::{self, Used};
use crate::error::BenchError;

/// A running cluster and its repository; both end and go when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    folder: TempDir,
    programs: PathBuf,
}

impl Cluster {
    /// A cluster of about 16 MB per `scale`, and a repository with an empty stanza.
    ///
    /// # Errors
    ///
    /// Where PostgreSQL or pgBackRest is missing or refuses.
    pub fn generate(module: &Path, scale: u32) -> Result<Self, BenchError> {
        let folder = TempDir::with_prefix_in("evener-pg-", "/dev/shm").map_err(told("/dev/shm"))?;
        let cluster = Self { folder, programs: programs()? };
        cluster.lay_out(module)?;
        let (data, run, scale) = (cluster.path("data"), cluster.path("run"), scale.to_string());
        cluster.postgresql("initdb", &["-A", "trust", "-N", "-D", &data])?;
        cluster.write("data/postgresql.conf", &cluster.fill(POSTGRESQL))?;
        cluster.start("data")?;
        cluster.postgresql("pgbench", &["-q", "-i", "-s", &scale, "-h", &run, "postgres"])?;
        stopwatch::run(cluster.pgbackrest(Providers::Default, None, &["stanza-create"]))?;
        Ok(cluster)
    }

    /// Makes a full backup, behind a counter if there is one.
    ///
    /// # Errors
    ///
    /// Where one of the programs fails.
    pub fn backup(&self, providers: Providers, counter: Option<&Counter>) -> Result<Used, BenchError> {
        let words = ["backup", "--type=full", "--repo1-retention-full=1"];
        stopwatch::time(vec![self.pgbackrest(providers, counter, &words)])
    }

    /// Restores the last backup into a folder of its own, behind a counter if there is one.
    ///
    /// # Errors
    ///
    /// Where one of the programs fails.
    pub fn restore(&self, providers: Providers, counter: Option<&Counter>) -> Result<Used, BenchError> {
        let restored = self.path("restored");
        stopwatch::run(self.as_postgres("rm", &["-rf", &restored]))?;
        stopwatch::run(self.as_postgres("mkdir", &["-m", "700", &restored]))?;
        let place = format!("--pg1-path={restored}");
        stopwatch::time(vec![self.pgbackrest(providers, counter, &["restore", "--type=immediate", &place])])
    }

    /// What is in the cluster, as a digest over all accounts.
    ///
    /// # Errors
    ///
    /// Where one of the programs fails.
    pub fn fingerprint(&self) -> Result<String, BenchError> {
        let query = "select count(*), md5(string_agg(md5(a::text), '' order by aid)) from pgbench_accounts a";
        self.postgresql("psql", &["-XAt", "-h", &self.path("run"), "-c", query, "postgres"])
    }

    /// The same of what was restored last; the original is stopped meanwhile, for they share a socket.
    ///
    /// # Errors
    ///
    /// Where one of the programs fails.
    pub fn restored_fingerprint(&self) -> Result<String, BenchError> {
        self.stop("data")?;
        let answer = self.start("restored").and_then(|()| self.fingerprint());
        let stopped = self.stop("restored");
        self.start("data")?;
        stopped.and(answer)
    }

    fn lay_out(&self, module: &Path) -> Result<(), BenchError> {
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(self.folder.path(), open).map_err(told("/dev/shm"))?;
        self.write("pgbackrest.conf", &self.fill(PGBACKREST))?;
        for providers in Providers::BOTH {
            self.write(&format!("{}.cnf", providers.name()), &providers.configuration(module, &[]))?;
        }
        let folders = ["run", "repository", "log", "lock", "spool"].map(|name| self.path(name));
        stopwatch::run(self.as_postgres("mkdir", &folders)).map(drop)
    }

    fn start(&self, data: &str) -> Result<(), BenchError> {
        let (log, data) = (self.path("log/server"), self.path(data));
        self.postgresql("pg_ctl", &["-w", "-s", "-l", &log, "-D", &data, "start"]).map(drop)
    }

    fn stop(&self, data: &str) -> Result<(), BenchError> {
        self.postgresql("pg_ctl", &["-w", "-s", "-m", "immediate", "-D", &self.path(data), "stop"]).map(drop)
    }

    fn pgbackrest(&self, providers: Providers, counter: Option<&Counter>, words: &[&str]) -> Command {
        let mut all = counter.map(Counter::words).unwrap_or_default();
        all.extend(self.own_words(words));
        let mut command = self.as_postgres(&all[0], &all[1..]);
        command.env("OPENSSL_CONF", self.path(&format!("{}.cnf", providers.name())));
        command
    }

    /// What pgBackRest is started with, by the user who may: a program and its words, for an environment of the caller's.
    #[must_use]
    pub fn words(&self, words: &[&str]) -> Vec<String> {
        let own = self.own_words(words);
        let command = self.as_postgres(&own[0], &own[1..]);
        let all = std::iter::once(command.get_program()).chain(command.get_args());
        all.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    fn own_words(&self, words: &[&str]) -> Vec<String> {
        let configuration = format!("--config={}", self.path("pgbackrest.conf"));
        let first = ["pgbackrest", &configuration, "--stanza=main"];
        first.iter().chain(words).map(|&word| word.to_owned()).collect()
    }

    /// Runs one of PostgreSQL's programs and gives what it said.
    fn postgresql(&self, program: &str, words: &[&str]) -> Result<String, BenchError> {
        let program = self.programs.join(program).display().to_string();
        let said = stopwatch::run(self.as_postgres(&program, words))?;
        Ok(String::from_utf8_lossy(&said).trim().to_owned())
    }

    /// PostgreSQL refuses to run as root.
    fn as_postgres(&self, program: &str, words: &[impl AsRef<OsStr>]) -> Command {
        let mut command = match rustix::process::geteuid().is_root() {
            true => {
                let mut runuser = Command::new("runuser");
                runuser.args(["-u", "postgres", "--", program]);
                runuser
            }
            false => Command::new(program),
        };
        command.args(words).current_dir(self.folder.path());
        command
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> Result<(), BenchError> {
        let path = self.path(name);
        fs::write(&path, text).map_err(told(&path))
    }

    fn fill(&self, template: &str) -> String {
        template.replace("FOLDER", &self.folder.path().display().to_string())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Best effort: a cluster that never started has nothing to stop.
        self.stop("data").ok();
    }
}

fn told(path: &str) -> impl FnOnce(std::io::Error) -> BenchError {
    let path = path.to_owned();
    move |error| BenchError::File { path, error: error.to_string() }
}

/// Where the newest PostgreSQL that Debian installed has its programs.
fn programs() -> Result<PathBuf, BenchError> {
    let folder = "/usr/lib/postgresql";
    let versions = fs::read_dir(folder).map_err(told(folder))?;
    let newest = versions.flatten().map(|entry| entry.path().join("bin")).max();
    newest.ok_or_else(|| BenchError::Library("needed: the package postgresql".to_owned()))
}

const POSTGRESQL: &str = "\
listen_addresses = ''
unix_socket_directories = 'FOLDER/run'
fsync = off
max_wal_size = 4GB
archive_mode = on
archive_command = 'pgbackrest --config=FOLDER/pgbackrest.conf --stanza=main archive-push %p'
";

const PGBACKREST: &str = "\
[global]
repo1-path=FOLDER/repository
repo1-cipher-type=aes-256-cbc
repo1-cipher-pass=correct horse battery staple
compress-type=none
process-max=8
start-fast=y
log-level-console=error
log-level-file=off
lock-path=FOLDER/lock
spool-path=FOLDER/spool
log-path=FOLDER/log
[main]
pg1-path=FOLDER/data
pg1-socket-path=FOLDER/run
";
