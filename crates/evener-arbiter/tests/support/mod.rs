//! A private directory with an anchor of its own, and processes in it.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test's support: not each test uses all of it"
)]

pub mod ffi;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use evener_arbiter::{Arbiter, Module, NoArbiter, Options, Permit, Shape};
use evener_core::Nanos;
use evener_fd::Directories;
use evener_ring::{Segment, Words as _};
use tempfile::TempDir;

/// Requests of this length are granted in the exact order of asking.
pub const LONG: Nanos = Nanos::from_millis(1);

/// As long as a prediction may be: a thread that holds a permit for it is not taken for one that stands still.
pub const AGES: Nanos = Nanos::from_millis(4_000);

/// A wait that no test sees the end of, where the arbiter does what it says.
pub const FOREVER: Nanos = Nanos::from_millis(60_000);

/// A directory for one test. Its segment is removed at the end.
pub struct Ground(TempDir);

impl Ground {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
        Self(directory)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn options(&self) -> Options {
        Options { directories: Directories::only(self.path().to_owned()), ..Options::default() }
    }

    pub fn attach(&self) -> Arbiter {
        self.try_attach().unwrap()
    }

    pub fn try_attach(&self) -> Result<Arbiter, NoArbiter> {
        Arbiter::attach(&self.options())
    }

    /// An attachment, a module of so many permits, and one of these, which is held.
    pub fn with_held(&self, capacity: u32) -> (Arbiter, Module, Permit) {
        let arbiter = self.attach();
        let module = arbiter.module("m", capacity);
        let held = module.try_acquire(AGES).unwrap();
        (arbiter, module, held)
    }

    /// One for a test that only root can do; `what` it does, where that is skipped.
    pub fn for_root(what: &str) -> Option<Self> {
        if ffi::uid() == 0 {
            return Some(Self::new());
        }
        println!("skipped: only root may {what}");
        None
    }

    /// The anchor, once there is one.
    pub fn anchor(&self) -> PathBuf {
        self.found_anchor().unwrap()
    }

    fn found_anchor(&self) -> Option<PathBuf> {
        let found = fs::read_dir(self.path()).ok()?.flatten().map(|entry| entry.path());
        found.into_iter().find(|path| path.file_stem().is_some_and(|stem| stem == "arbiter"))
    }

    /// The segment that the anchor names: its tenth word (docs/design/arbiter.md says no more of the file than that it names one).
    pub fn segment(&self) -> Option<Segment> {
        let bytes = fs::read(self.found_anchor()?).ok()?;
        let number = i32::from_ne_bytes(bytes.get(36..40)?.try_into().ok()?);
        Segment::attach(number, Shape::USUAL.word_count(), ffi::uid()).ok()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Some(segment) = self.segment() {
            segment.remove();
        }
    }
}

/// Waits until `holds`; fails where that takes longer than anything here may take on a busy machine.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Fills a segment's words by `word`.
pub fn fill(segment: &Segment, mut word: impl FnMut(usize) -> u32) {
    for (at, place) in segment.words().iter().enumerate() {
        place.store(word(at), std::sync::atomic::Ordering::Relaxed);
    }
}
