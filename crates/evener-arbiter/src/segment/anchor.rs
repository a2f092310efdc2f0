//! The anchor: a file that names the segment, and whose bytes are locked by those who have places in it.
//!
//! [`attach`]: the directories -> the file, looked at -> what it says (`anchor_text.rs`) -> the segment, looked at. Where it says nothing that is true, one process at a time removes what no process
//! needs any more (`orphans.rs`), makes a segment and writes its name. The file may be cut, overwritten or removed at any time: nothing in it is mapped, and locks need no bytes.

use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;
use std::time::Duration;

use evener_fd::{
    CheckedFd, Directories, Unusable, close_in_children, may_extend_to, open_private, range_lock,
};
use evener_ring::{Refusal, Segment, Words as _};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::process::geteuid;

use super::anchor_text::{Anchor, BYTES, HEADER, Said, header, named, parse, read, write};
use super::orphans::{path_words, remove_orphans, remove_replaced};
use super::{About, NoArbiter, Shared};
use crate::gate::Place;
use crate::layout::{self, Shape};

/// Which segment a process wants.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) directories: Directories,
    pub(crate) name: String,
    pub(crate) shape: Shape,
}

/// Attaches the segment of this user, made where there is none, and takes a first place.
pub(crate) fn attach(origin: &Origin, about: &About) -> Result<(Shared, Place), NoArbiter> {
    for _ in 0..RACES_MAX {
        let Found { file, path, .. } = open(origin)?;
        // Before anything that takes time: a child that has it, too, would hold this process's places.
        close_in_children(&file).map_err(NoArbiter::of("handlers for forks"))?;
        let (anchor, words) = match find(file.checked().map_err(NoArbiter::of(ANCHOR))?, origin)? {
            Some(found) => found,
            None => make(&file, &path, origin)?,
        };
        let shared = Shared::new(words, file, origin.shape);
        let place = shared.claim(about).ok_or(NoArbiter::Full)?;
        // Another process may have replaced a segment that seemed unused. From here on this process is seen to use it.
        let still = shared.anchor.checked().map_err(NoArbiter::of(ANCHOR)).map(read)?;
        if still.is_ok_and(|text| parse(&text, origin.shape) == Said::Segment(anchor)) {
            return Ok((shared, place));
        }
    }
    Err(NoArbiter::Stalled)
}

/// Attaches the segment of this user where there is one, to be read only: no place is taken, and no process sees this one look.
pub(crate) fn look(origin: &Origin) -> Result<Option<Shared>, NoArbiter> {
    let Some(Found { file, .. }) = existing(origin, OFlags::RDONLY)? else { return Ok(None) };
    let found = find(file.checked().map_err(NoArbiter::of(ANCHOR))?, origin)?;
    Ok(found.map(|(_, words)| Shared::new(words, file, origin.shape)))
}

/// Takes the segments of this user and their anchors away, in whichever directory: those who have one go on among themselves, and the next process makes a new one. Whether
/// there was one.
pub(crate) fn remove(origin: &Origin) -> Result<bool, NoArbiter> {
    let mut was_there = Ok(false);
    for found in all(origin, OFlags::RDONLY)? {
        match found.and_then(|found| remove_found(&found, origin)) {
            Ok(()) => was_there = was_there.map(|_| true),
            Err(why) => was_there = was_there.and(Err(why)),
        }
    }
    remove_orphans(origin.shape);
    was_there
}

fn remove_found(found: &Found, origin: &Origin) -> Result<(), NoArbiter> {
    if let Some((_, words)) = find(found.file.checked().map_err(NoArbiter::of(ANCHOR))?, origin)? {
        words.remove();
    }
    let directory = found.directory.checked().map_err(NoArbiter::of(ANCHOR))?;
    rustix::fs::unlinkat(directory, file_name(origin), rustix::fs::AtFlags::empty())
        .map_err(NoArbiter::of(ANCHOR))
}

/// An anchor that was opened, and where it lies.
struct Found {
    file: CheckedFd,
    directory: CheckedFd,
    path: PathBuf,
}

/// The anchor that processes use, in whichever directory, else the first that there is: a process that began before its user's session did knows fewer
/// directories than those that begin in it.
fn existing(origin: &Origin, access: OFlags) -> Result<Option<Found>, NoArbiter> {
    let mut all = all(origin, access)?;
    let is_used = |found: &Result<Found, NoArbiter>| {
        let file = found.as_ref().ok().and_then(|found| found.file.checked().ok());
        file.is_some_and(|file| range_lock::is_locked(file, PLACES).unwrap_or(false))
    };
    let best = all.iter().position(is_used).or_else(|| all.iter().position(Result::is_ok)).unwrap_or(0);
    (best < all.len()).then(|| all.swap_remove(best)).transpose()
}

/// All anchors of this user, in the order of preference; or why one is not believed.
fn all(origin: &Origin, access: OFlags) -> Result<Vec<Result<Found, NoArbiter>>, NoArbiter> {
    let uid = geteuid().as_raw();
    let mut all = Vec::new();
    for path in origin.directories.of(uid) {
        let directory = match open_private(&path, uid) {
            Ok(directory) => directory,
            // What comes behind a call that was refused may end the program.
            Err(why @ Unusable::Refused(_)) => return Err(NoArbiter::Directory(why.into())),
            Err(_) => continue,
        };
        match open_in(origin, (directory, path), access, Mode::empty()) {
            Err(NoArbiter::System(error)) if error.answer().kind() == io::ErrorKind::NotFound => {}
            found => all.push(found),
        }
    }
    Ok(all)
}

/// Opens the file, made where there is none.
fn open(origin: &Origin) -> Result<Found, NoArbiter> {
    // Before anything is made: a signal would end a program that never asked for a file.
    may_extend_to(BYTES as u64).map_err(NoArbiter::of(ANCHOR))?;
    match existing(origin, OFlags::RDWR) {
        Ok(Some(found)) => return Ok(found),
        Err(why @ NoArbiter::Directory(_)) => return Err(why),
        // Something else in an anchor's place is an error only where the anchor is to be.
        Ok(None) | Err(_) => {}
    }
    let uid = geteuid().as_raw();
    let directory = origin.directories.find_or_make(uid).map_err(|why| NoArbiter::Directory(why.into()))?;
    open_in(origin, directory, OFlags::RDWR | OFlags::CREATE, Mode::RUSR | Mode::WUSR)
}

fn open_in(
    origin: &Origin,
    (directory, path): (OwnedFd, PathBuf),
    access: OFlags,
    mode: Mode,
) -> Result<Found, NoArbiter> {
    let directory = CheckedFd::new(directory).map_err(NoArbiter::of(ANCHOR))?;
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let at = directory.checked().map_err(NoArbiter::of(ANCHOR))?;
    let file = believed(origin, rustix::fs::openat(at, file_name(origin), flags, mode))?;
    Ok(Found { file, directory, path: path.join(file_name(origin)) })
}

fn file_name(origin: &Origin) -> String {
    format!("{}.{}", origin.name, namespace())
}

/// A file that was opened, where it is a plain one of this user's alone.
fn believed(origin: &Origin, opened: rustix::io::Result<OwnedFd>) -> Result<CheckedFd, NoArbiter> {
    let not_ours = || NoArbiter::NotOurs(file_name(origin));
    let file = opened.map_err(|error| match error {
        rustix::io::Errno::LOOP | rustix::io::Errno::ACCESS | rustix::io::Errno::ISDIR => not_ours(),
        other => NoArbiter::of(ANCHOR)(other),
    })?;
    let seen = rustix::fs::fstat(&file).map_err(NoArbiter::of(ANCHOR))?;
    let is_plain = FileType::from_raw_mode(seen.st_mode) == FileType::RegularFile && seen.st_nlink == 1;
    if !is_plain || seen.st_uid != geteuid().as_raw() || seen.st_mode & 0o077 != 0 {
        return Err(not_ours());
    }
    CheckedFd::new(file).map_err(NoArbiter::of(ANCHOR))
}

/// Attaches the segment that the file names, if it is one.
fn find(file: BorrowedFd<'_>, origin: &Origin) -> Result<Option<(Anchor, Segment)>, NoArbiter> {
    let text = read(file).map_err(NoArbiter::of(ANCHOR))?;
    let anchor = match parse(&text, origin.shape) {
        Said::Segment(anchor) => anchor,
        Said::Nothing => return Ok(None),
        Said::OtherLayout { version } => {
            // No process is left that knows it: it gives way.
            let is_used = range_lock::is_locked(file, PLACES).map_err(NoArbiter::of("locks of files"))?;
            return if is_used { Err(NoArbiter::OtherLayout { version }) } else { Ok(None) };
        }
    };
    match Segment::attach(anchor.segment, origin.shape.word_count(), geteuid().as_raw()) {
        Ok(words) => {
            let said = words.words().iter().take(HEADER).map(|word| word.load(Acquire));
            let is_this = said.eq(header(&anchor));
            Ok(is_this.then_some((anchor, words)))
        }
        // Of before the machine was started, removed, or by now another's.
        Err(Refusal::Missing | Refusal::NotOurs) => Ok(None),
        Err(Refusal::System(error)) => Err(NoArbiter::of("attaching the arbiter's segment")(error)),
        Err(_) => Ok(None),
    }
}

/// Makes a segment, unless another process did meanwhile.
fn make(file: &CheckedFd, path: &Path, origin: &Origin) -> Result<(Anchor, Segment), NoArbiter> {
    let at = || file.checked().map_err(NoArbiter::of(ANCHOR));
    let made = with_lock(at()?, MAKING, || {
        if let Some(found) = find(at()?, origin)? {
            return Ok(found);
        }
        if let Some(replaced) = named(&read(at()?).map_err(NoArbiter::of(ANCHOR))?) {
            remove_replaced(&replaced);
        }
        remove_orphans(origin.shape);
        let words = Segment::create(origin.shape.word_count()).map_err(NoArbiter::of(SEGMENT))?;
        let number = [drawn()?, drawn()?];
        let anchor = Anchor { shape: origin.shape.words(), number, segment: words.number() };
        words
            .words()
            .iter()
            .skip(layout::Header::Path as usize)
            .zip(path_words(path))
            .for_each(|(place, word)| place.store(word, Release));
        // The first word is written last.
        for (place, word) in words.words()[..HEADER].iter().zip(header(&anchor)).rev() {
            place.store(word, Release);
        }
        write(at()?, &anchor).inspect_err(|_| words.remove()).map_err(NoArbiter::of(ANCHOR))?;
        Ok((anchor, words))
    });
    made.ok_or(NoArbiter::Stalled)?
}

fn drawn() -> Result<u32, NoArbiter> {
    let mut bytes = [0; 4];
    let number = |error: getrandom::Error| error.raw_os_error().map(io::Error::from_raw_os_error);
    let other = || io::Error::from(io::ErrorKind::Other);
    getrandom::getrandom(&mut bytes)
        .map_err(|error| NoArbiter::of(SEGMENT)(number(error).unwrap_or_else(other)))?;
    Ok(u32::from_ne_bytes(bytes))
}

/// Does `work` while this process has the lock on a byte; none where another one keeps it.
///
/// Threads of one process are not kept apart: they are by `attach` being called once, and by names being found before they are given.
pub(super) fn with_lock<T>(file: BorrowedFd<'_>, lock: Range<u64>, work: impl FnOnce() -> T) -> Option<T> {
    for _ in 0..LOCK_TRIES {
        match range_lock::try_lock(file, lock.clone()) {
            Ok(true) => {
                let done = work();
                range_lock::unlock(file, lock).ok();
                return Some(done);
            }
            Ok(false) => thread::sleep(LOCK_PAUSE),
            Err(_) => return None,
        }
    }
    None
}

/// Number of this process's IPC namespace, which tells segments of the same number apart; 0 where the system does not say.
fn namespace() -> u64 {
    fs::metadata("/proc/self/ns/ipc").map_or(0, |about| about.ino())
}

/// Bytes that stand for places, and the two behind them.
const PLACES: Range<u64> = 0..1 << 20;
const MAKING: Range<u64> = 1 << 20..(1 << 20) + 1;
pub(super) const NAMING: Range<u64> = (1 << 20) + 1..(1 << 20) + 2;

/// Making and naming take some 50 us: a second is for a machine under load.
const LOCK_TRIES: u32 = 1_000;
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// Anchors that are replaced while this process attaches.
const RACES_MAX: u32 = 8;

const ANCHOR: &str = "the arbiter's file";
const SEGMENT: &str = "making the arbiter's segment";
