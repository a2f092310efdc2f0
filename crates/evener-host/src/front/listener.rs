//! A socket in the file system: bound, opened to whom it is for, and removed with the host. Hosts that begin or end at one path take turns.

use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

use crate::error::HostError;
use crate::front::path_lock::PathLock;

/// A listening socket; one that was bound here is removed from the file system when this is dropped.
pub(crate) struct Listener {
    pub(crate) socket: UnixListener,
    bound: Option<Bound>,
}

/// A socket's place in the file system.
struct Bound {
    path: PathBuf,
    /// Device and number of what was bound, so that no other host's socket is removed.
    file: (u64, u64),
}

impl Listener {
    /// Binds `path`. A socket that no process listens on any more is replaced; of several hosts that find one, the first that comes has the path.
    pub(crate) fn bind(path: &Path, mode: u32) -> Result<Self, HostError> {
        let failed = |error| HostError::Socket { path: path.to_owned(), error };
        // Its length is looked at before a lock is left beside it.
        let too_long = |_| failed(explained(path, io::ErrorKind::InvalidInput.into()));
        let address = SocketAddrUnix::new(path).map_err(too_long)?;
        let _alone = PathLock::take(path).map_err(failed)?;
        remove_stale(path, &address).map_err(failed)?;
        let socket = listening(&address, mode).map_err(|error| failed(explained(path, error)))?;
        let file = set_mode(path, mode).map_err(failed)?;
        Ok(Self { socket, bound: Some(Bound { path: path.to_owned(), file }) })
    }

    /// Takes one that another process has bound, and keeps.
    pub(crate) fn inherited(socket: UnixListener) -> Result<Self, HostError> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket, bound: None })
    }

    /// The next connection that waits, of which no call blocks; `None` where none does.
    pub(crate) fn accept(&self) -> io::Result<Option<UnixStream>> {
        match self.socket.accept() {
            Ok((stream, _)) => stream.set_nonblocking(true).map(|()| Some(stream)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let Some(Bound { path, file }) = &self.bound else { return };
        // Where the lock is not to be had the socket stays, and is one that the next host replaces.
        let Ok(_alone) = PathLock::take(path) else { return };
        let is_ours = |about: &fs::Metadata| (about.dev(), about.ino()) == *file;
        if fs::symlink_metadata(path).as_ref().is_ok_and(is_ours) {
            // Where another process removed it meanwhile, nothing is left to be done.
            fs::remove_file(path).ok();
        }
    }
}

/// A socket that listens there; from the beginning its file has no more rights than `mode`.
fn listening(address: &SocketAddrUnix, mode: u32) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The new file has the socket's mode, without what the process's mask takes away.
    fchmod(&socket, Mode::from_raw_mode(mode))?;
    bind(&socket, address)?;
    // As many as the system lets wait.
    listen(&socket, -1)?;
    Ok(socket.into())
}

/// Gives the socket at `path` its whole mode, and says which file it is: device and number. What another user puts in its place there, a link or a file, stays as it is.
fn set_mode(path: &Path, mode: u32) -> io::Result<(u64, u64)> {
    let place = fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)?;
    let about = place.metadata()?;
    if !about.file_type().is_socket() {
        return Err(io::Error::other("another file was put there meanwhile"));
    }
    let same = format!("/proc/self/fd/{}", place.as_raw_fd());
    fs::set_permissions(same, fs::Permissions::from_mode(mode))?;
    Ok((about.dev(), about.ino()))
}

/// What is in the way of a name, and the way out, where the system says less.
fn explained(path: &Path, error: io::Error) -> io::Error {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
    let why = match error.kind() {
        io::ErrorKind::AddrInUse if is_socket => {
            "another process listens there: end it, or name another path"
        }
        io::ErrorKind::AddrInUse => "it is there and no socket, and stays: name another path",
        io::ErrorKind::InvalidInput => "a socket's path has at most 107 bytes: name a shorter one",
        _ => return error,
    };
    io::Error::new(error.kind(), why)
}

/// Removes a socket on which no process listens. What is no socket stays, and binding fails.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
    if is_socket && !has_listener(address)? { fs::remove_file(path) } else { Ok(()) }
}

/// Whether a process listens there; one that accepts nothing any more, and has a full queue, is not waited for.
fn has_listener(address: &SocketAddrUnix) -> io::Result<bool> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    Ok(connect(&probe, address) != Err(Errno::CONNREFUSED))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    /// Whether who connects to `path` comes to `listener`.
    fn is_reached(path: &Path, listener: &Listener) -> bool {
        let Ok(_client) = UnixStream::connect(path) else { return false };
        listener.accept().is_ok_and(|stream| stream.is_some())
    }

    #[test]
    fn of_many_hosts_that_begin_at_a_stale_socket_at_once_one_has_it_and_is_reached() {
        const HOSTS: usize = 8;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host");
        for _ in 0..2_000 {
            drop(UnixListener::bind(&path).unwrap());
            let all = Barrier::new(HOSTS);
            let begin = || {
                all.wait();
                Listener::bind(&path, 0o600).ok()
            };
            let begun: Vec<Listener> = thread::scope(|scope| {
                let hosts = [(); HOSTS].map(|()| scope.spawn(begin));
                hosts.into_iter().filter_map(|host| host.join().unwrap()).collect()
            });
            assert_eq!(begun.len(), 1, "hosts, of which one takes the path of the other");
            assert!(is_reached(&path, &begun[0]), "its socket was removed by another");
            drop(begun);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left, no lock either");
        }
    }

    #[test]
    fn hosts_that_begin_and_end_at_one_path_all_the_time_are_reached_as_long_as_they_live() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host");
        let begin_and_end = || {
            for _ in 0..3_000 {
                let Ok(host) = Listener::bind(&path, 0o600) else { continue };
                assert!(is_reached(&path, &host));
            }
        };
        thread::scope(|scope| (0..6).for_each(|_| drop(scope.spawn(begin_and_end))));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_host_that_accepts_nothing_any_more_is_not_waited_for_and_keeps_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host");
        let mute = UnixListener::bind(&path).unwrap();
        listen(&mute, 1).unwrap();
        let _waiting: Vec<_> = (0..2).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let second = Listener::bind(&path, 0o600).map(drop).unwrap_err();
        assert!(second.to_string().contains("another process listens there"), "{second}");
        assert!(path.exists());
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "std leaves the file");
        let first = Listener::bind(&path, 0o600).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let second = Listener::bind(&path, 0o600).map(drop);
        assert!(matches!(second, Err(HostError::Socket { .. })), "somebody listens");
        drop(first);
        assert!(!path.exists());
    }

    #[test]
    fn the_mode_is_the_sockets_own_whatever_is_put_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (folder.path().join("host"), folder.path().join("victim"));
        let mode_of = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & 0o777;
        let host = Listener::bind(&path, 0o666).unwrap();
        assert_eq!(mode_of(&path), 0o666, "the mask takes nothing away");
        fs::write(&victim, "others' own").unwrap();
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
        for put in [std::os::unix::fs::symlink::<&Path, &Path>, |victim, path| fs::hard_link(victim, path)] {
            fs::remove_file(&path).unwrap();
            put(&victim, &path).unwrap();
            assert!(set_mode(&path, 0o666).is_err());
            assert_eq!(mode_of(&victim), 0o600);
        }
        drop(host);
        assert!(path.exists(), "it is not the host's");
    }

    #[test]
    fn neither_a_file_nor_another_hosts_socket_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host");
        fs::write(&path, "precious").unwrap();
        assert!(Listener::bind(&path, 0o600).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        fs::remove_file(&path).unwrap();
        let ours = Listener::bind(&path, 0o600).unwrap();
        fs::remove_file(&path).unwrap();
        let _theirs = UnixListener::bind(&path).unwrap();
        drop(ours);
        assert!(path.exists());
    }
}
