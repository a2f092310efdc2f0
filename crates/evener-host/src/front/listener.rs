//! A socket in the file system: bound, opened to whom it is for, and removed with the host.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::error::HostError;

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
    /// Binds `path`. A socket that no process listens on any more is replaced.
    pub(crate) fn bind(path: &Path, mode: u32) -> Result<Self, HostError> {
        let failed = |error| HostError::Socket { path: path.to_owned(), error };
        remove_stale(path).map_err(failed)?;
        let socket = UnixListener::bind(path).map_err(|error| failed(explained(path, error)))?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let about = fs::symlink_metadata(path).map_err(failed)?;
        Ok(Self { socket, bound: Some(Bound { path: path.to_owned(), file: (about.dev(), about.ino()) }) })
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
        let is_ours = |about: &fs::Metadata| (about.dev(), about.ino()) == *file;
        if fs::symlink_metadata(path).as_ref().is_ok_and(is_ours) {
            // Where another process removed it meanwhile, nothing is left to be done.
            fs::remove_file(path).ok();
        }
    }
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
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
    let refuses =
        || UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_socket && refuses() { fs::remove_file(path) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
