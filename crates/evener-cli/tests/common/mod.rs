//! What every test of the command needs: a folder of its own, and the command in it.
#![allow(dead_code, unused_imports, unreachable_pub, reason = "each test file uses a part of this")]
#![allow(clippy::unwrap_used, reason = "support of tests")]

pub mod activity;

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use evener_testbed::write_program;
use evener_testing::Folder;
pub use evener_testing::programs::{Ran, Run, misfits, skipped, there_is};
pub use evener_testing::{allow, files, noise, tree};

/// The command under test.
pub const EVENER: &str = env!("CARGO_BIN_EXE_evener");

/// A folder for files of the command.
pub struct Place(Folder);

impl Deref for Place {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.0
    }
}

impl Place {
    pub fn new() -> Self {
        Self(Folder::new_in(Path::new(env!("CARGO_TARGET_TMPDIR"))))
    }

    /// A place with the keyset `k.json`.
    pub fn with_key() -> Self {
        let place = Self::new();
        place.keyset("k.json");
        place
    }

    /// A place that other users can reach too.
    pub fn open_to_all() -> Self {
        Self(Folder::open_to_all())
    }

    /// One for a test that needs programs of other hands; nothing, said in print, where one is not installed.
    pub fn with_programs(names: &[&str]) -> Option<Self> {
        let Some(absent) = names.iter().find(|name| !there_is(name)) else { return Some(Self::new()) };
        skipped(&format!("{absent} is not installed"));
        None
    }

    /// One with the keyset `k.json`, for a test that only root can do; nothing, said in print, where another user runs it.
    pub fn of_root(does: &str) -> Option<Self> {
        let place = Self::with_key();
        if place.is_of_root() {
            return Some(place);
        }
        skipped(&format!("only root can {does}"));
        None
    }

    /// Whether root runs the test.
    pub fn is_of_root(&self) -> bool {
        fs::metadata(self.path()).is_ok_and(|metadata| metadata.uid() == 0)
    }

    /// One with a pair of keys of ssh-keygen's of each kind, named for it; nothing, said in print, where there is no such program.
    pub fn with_ssh_keys(kinds: &[&str]) -> Option<Self> {
        let place = Self::with_programs(&["ssh-keygen"])?;
        for kind in kinds {
            place.program("ssh-keygen").args(["-q", "-N", "", "-t", kind, "-f", kind]).run().succeeded();
        }
        Some(place)
    }

    /// The public key of such a pair.
    pub fn ssh_public(&self, kind: &str) -> String {
        fs::read_to_string(self.join(format!("{kind}.pub"))).unwrap()
    }

    /// One that is open to all, and how to start a program without rights there.
    pub fn for_nobody() -> Option<(Self, &'static [&'static str])> {
        let place = Self::open_to_all();
        let nobody = place.without_rights()?;
        Some((place, nobody))
    }

    /// A keyset with segments of 4 KiB, so that small files have many.
    pub fn keyset(&self, name: &str) -> PathBuf {
        let path = self.join(name);
        self.evener().args(["keygen", "--template", "AES256_GCM_HKDF_4KB"]).arg(&path).run().succeeded();
        path
    }

    /// Evener's module under that name, as it is built beside these tests.
    pub fn module(&self, name: impl AsRef<Path>) -> PathBuf {
        let path = self.write(name, "");
        let beside = std::env::current_exe().unwrap().with_file_name("libevener_provider.so");
        fs::copy(beside, &path).unwrap();
        path
    }

    /// The command, in this place.
    pub fn evener(&self) -> Run {
        let mut run = self.program(EVENER);
        run.command.env_remove("EVENER_DISABLE");
        // What other programs of this user share is none of a test's business.
        run.command.env("EVENER_ARBITER", "off").env("EVENER_ARBITER_DIR", self.join("arbiter"));
        run
    }

    /// The command as a shell at a terminal starts it, wherever the test was started (nohup, a job in the background): signals do what they usually do.
    pub fn evener_at_a_prompt(&self) -> Run {
        let mut run = self.program("env").args(["--default-signal", EVENER]);
        run.command.env("EVENER_ARBITER", "off");
        run
    }

    /// Root opens everything, so an unprivileged user is needed: the words before `evener` in a place with a
    /// key that all may read; `None` where no other user can be had.
    pub fn without_rights(&self) -> Option<&'static [&'static str]> {
        let is_root = self.is_of_root();
        if is_root && !there_is("setpriv") {
            skipped("root opens everything, and there is no setpriv to become somebody else");
            return None;
        }
        self.keyset("k.json");
        allow(&self.join("k.json"), 0o644);
        write_program(&self.join("evener"), &fs::read(EVENER).unwrap()).unwrap();
        fs::create_dir(self.join("cache")).unwrap();
        allow(&self.join("cache"), 0o777);
        Some(if is_root {
            &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        } else {
            &["env"]
        })
    }

    /// Another program, in this place.
    pub fn program(&self, name: &str) -> Run {
        let mut run = Run::new(name);
        run.command.current_dir(self.path()).env("EVENER_CACHE_DIR", cache());
        run.command.env("EVENER_STATE_DIR", self.join("state"));
        run
    }

    /// Runs `program` in this place with a terminal of its own, at which `answers` are typed.
    pub fn at_a_terminal(&self, program: &str, arguments: &[&str], answers: &[&str]) -> (Ran, String) {
        evener_testing::programs::at_a_terminal(|by| self.program(by), program, arguments, answers)
    }
}

/// One table of methods for all tests, so that it is measured once.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

/// The paths that a report names as failed.
pub fn failed_paths(report: &serde_json::Value) -> std::collections::BTreeSet<PathBuf> {
    let failed = report["failed"].as_array().unwrap();
    failed.iter().map(|entry| entry["path"].as_str().unwrap().into()).collect()
}
