//! What every test of the command needs: a place of its own, the command, and eyes for what came of it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of this")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "support of tests")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

pub mod activity;
pub mod schema;
pub mod terminal;

/// The command under test.
pub const EVENER: &str = env!("CARGO_BIN_EXE_evener");

/// A directory that is removed at the end of a test.
pub struct Place(PathBuf);

impl Place {
    pub fn new() -> Self {
        Self::below(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// A place that other users can reach too.
    pub fn open_to_all() -> Self {
        let place = Self::below(&env::temp_dir());
        fs::set_permissions(&place.0, fs::Permissions::from_mode(0o777)).unwrap();
        place
    }

    fn below(root: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = root.join(format!("evener-{}-{number}", process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file, and the directories that lead to it.
    pub fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A file that only its owner can read.
    pub fn write_secret(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.write(name, bytes);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// A keyset with segments of 4 KiB, so that small files have many.
    pub fn keyset(&self, name: &str) -> PathBuf {
        let path = self.join(name);
        self.evener().args(["keygen", "--template", "AES256_GCM_HKDF_4KB"]).arg(&path).run().succeeded();
        path
    }

    /// The command, in this place.
    pub fn evener(&self) -> Run {
        let mut command = Command::new(EVENER);
        command.current_dir(&self.0).env("EVENER_CACHE_DIR", cache()).env_remove("EVENER_DISABLE");
        Run { command, input: Vec::new() }
    }

    /// Root opens everything, so who may not is played by somebody else: the words before `evener` in a place with a
    /// key that everybody reads; `None` where there is nobody to become.
    pub fn without_rights(&self) -> Option<&'static [&'static str]> {
        let is_root = fs::metadata(&self.0).is_ok_and(|metadata| metadata.uid() == 0);
        if is_root && !there_is("setpriv") {
            skipped("root opens everything, and there is no setpriv to become somebody else");
            return None;
        }
        self.keyset("k.json");
        allow(&self.join("k.json"), 0o644);
        fs::copy(EVENER, self.join("evener")).unwrap();
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
        let mut command = Command::new(name);
        command.current_dir(&self.0).env("EVENER_CACHE_DIR", cache());
        Run { command, input: Vec::new() }
    }
}

pub fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// One table of methods for all tests, so that it is measured once.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

/// A command on its way.
pub struct Run {
    pub command: Command,
    input: Vec<u8>,
}

impl Run {
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = bytes.into();
        self
    }

    pub fn run(mut self) -> Ran {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        let (mut stdin, input) = (child.stdin.take().unwrap(), self.input);
        let feeder = std::thread::spawn(move || {
            // A program that does not read its input closes the pipe.
            stdin.write_all(&input).ok();
        });
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap();
        Ran { output, shown: format!("{:?}", self.command) }
    }
}

/// What came of a command.
pub struct Ran {
    output: Output,
    shown: String,
}

impl Ran {
    pub fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    pub fn stdout(&self) -> &[u8] {
        &self.output.stdout
    }

    pub fn stdout_text(&self) -> &str {
        std::str::from_utf8(&self.output.stdout).unwrap()
    }

    pub fn stderr(&self) -> &str {
        std::str::from_utf8(&self.output.stderr).unwrap()
    }

    #[track_caller]
    pub fn ended_with(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "{}\n{}", self.shown, self.stderr());
        self
    }

    #[track_caller]
    pub fn succeeded(self) -> Self {
        self.ended_with(0)
    }

    /// Said one line, and in it `words`.
    #[track_caller]
    pub fn saying(self, words: &str) -> Self {
        let lines: Vec<&str> = self.stderr().lines().collect();
        assert_eq!(lines.len(), 1, "{}\n{}", self.shown, self.stderr());
        assert!(lines[0].starts_with("evener: ") && lines[0].contains(words), "{words:?} in {:?}", lines[0]);
        self
    }
}

/// Every entry below `root` by its path: kind, mode, time and bytes.
pub fn tree(root: &Path) -> BTreeMap<PathBuf, Entry> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            let metadata = fs::symlink_metadata(root.join(&path)).unwrap();
            if metadata.is_dir() {
                waiting.push(path.clone());
            }
            let bytes = metadata.is_file().then(|| fs::read(root.join(&path)).unwrap());
            let time = (metadata.mtime(), metadata.mtime_nsec());
            found.insert(path, Entry { mode: metadata.mode(), time, bytes });
        }
    }
    found
}

/// What stands under a path; `bytes` for files only.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub mode: u32,
    pub time: (i64, i64),
    pub bytes: Option<Vec<u8>>,
}

/// Paths of the regular files below `root`, hidden ones too; none where `root` does not exist.
pub fn files(root: &Path) -> Vec<PathBuf> {
    if !root.exists() {
        return Vec::new();
    }
    tree(root).into_iter().filter(|(_, entry)| entry.bytes.is_some()).map(|(path, _)| path).collect()
}

/// Bytes without pattern, always the same for the same `seed` (xorshift64).
pub fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut noise = Vec::with_capacity(bytes + 8);
    while noise.len() < bytes {
        noise.extend_from_slice(&next());
    }
    noise.truncate(bytes);
    noise
}

/// Whether a program can be started.
pub fn there_is(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Says that a test could not be made, so that nobody takes it for passed.
pub fn skipped(reason: &str) {
    println!("skipped: {reason}");
}
