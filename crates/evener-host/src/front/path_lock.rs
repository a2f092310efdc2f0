//! A lock beside a socket's name: hosts that begin or end at one path look, remove and bind one after the other. It is there only meanwhile.
//!
//! To ask a socket whether a process listens and to remove it are two calls, and so are to bind one and to listen: between them another host could
//! take a fresh socket for one that is left over. No call of the system replaces a name only as long as it is a certain file's.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

/// How long one waits for another. Assumed, not measured: a thousand times what it takes to bind, so who has it so long was stopped.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Between two tries. Assumed, not measured.
const PAUSE: Duration = Duration::from_millis(1);

/// The lock, as long as this lives; its file is removed with it. Where the process is killed meanwhile the kernel drops the lock, and the next takes the file.
#[derive(Debug)]
pub(super) struct PathLock {
    path: PathBuf,
    /// Locked as an open file, which nothing else has.
    _file: File,
}

impl PathLock {
    /// Waits for its turn at `socket`, [`TIMEOUT`] at most.
    pub(super) fn take(socket: &Path) -> io::Result<Self> {
        let path = lock_path(socket)?;
        let begun = Instant::now();
        loop {
            if let Some(file) = try_take(&path)? {
                return Ok(Self { path, _file: file });
            }
            if begun.elapsed() > TIMEOUT {
                let why = format!("another process holds {}: end it, or name another path", path.display());
                return Err(io::Error::new(io::ErrorKind::AddrInUse, why));
            }
            thread::park_timeout(PAUSE);
        }
    }
}

impl Drop for PathLock {
    fn drop(&mut self) {
        // While it is locked, so that the file of this name is this one. Where it stays, the next finds it and takes it.
        fs::remove_file(&self.path).ok();
    }
}

/// Hidden, and unlike a name that a program which starts hosts would lock itself.
fn lock_path(socket: &Path) -> io::Result<PathBuf> {
    let name = socket.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(".evener-lock");
    Ok(socket.with_file_name(hidden))
}

/// The file at `path`, locked; `None` where another has it, or had it and has removed it since it was opened here.
fn try_take(path: &Path) -> io::Result<Option<File>> {
    // No link is followed, and no pipe waited at: where others may write the folder, the name may be anything.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = open(path, flags, Mode::RUSR | Mode::WUSR);
    let file = opened.map(File::from).map_err(|errno| {
        let error = io::Error::from(errno);
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    })?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(None),
        locked => locked?,
    }
    let identity = |about: fs::Metadata| (about.dev(), about.ino());
    let named = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        named => named?,
    };
    Ok((identity(named) == identity(file.metadata()?)).then_some(file))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    use super::*;

    #[test]
    fn one_at_a_time_has_it_also_while_its_file_goes_and_comes() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("host");
        let is_taken = AtomicBool::new(false);
        let take_and_drop = || {
            for _ in 0..2_000 {
                let lock = PathLock::take(&socket).unwrap();
                assert!(!is_taken.swap(true, SeqCst), "two have it");
                thread::yield_now();
                is_taken.store(false, SeqCst);
                drop(lock);
            }
        };
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(take_and_drop))));
    }

    #[test]
    fn the_file_that_a_killed_host_left_is_taken_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("host");
        fs::write(lock_path(&socket).unwrap(), "").unwrap();
        drop(PathLock::take(&socket).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_link_at_its_name_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("host");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), lock_path(&socket).unwrap()).unwrap();
        PathLock::take(&socket).unwrap_err();
        assert!(!folder.path().join("elsewhere").exists());
    }
}
