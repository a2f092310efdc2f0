//! A socket that was opened for this process before it began, as systemd does it (sd_listen_fds(3)): the host is started by its first client.
//!
//! The variables `LISTEN_PID` and `LISTEN_FDS` say for whom, and how many; they begin at descriptor 3. Here it is one, for clients.

use std::io;
use std::os::unix::net::UnixListener;

use rustix::net::{AddressFamily, SocketType, sockopt};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::error::HostError;

/// The socket that this process was given, where it was given one by the variables `LISTEN_PID` and `LISTEN_FDS`.
///
/// # Errors
///
/// [`HostError::Activation`] where what it was given is nothing that clients can come to.
pub fn listener_of_activation(
    listen_pid: Option<&str>,
    listen_fds: Option<&str>,
) -> Result<Option<UnixListener>, HostError> {
    let is_ours = listen_pid.and_then(|pid| pid.parse().ok()) == Some(getpid().as_raw_nonzero().get());
    let Some(count) = listen_fds.filter(|_| is_ours) else { return Ok(None) };
    if count != "1" {
        return Err(HostError::Activation(format!("{count} sockets, not one")));
    }
    listener(FIRST).map(Some)
}

/// A descriptor of this process by its number, as one of its own.
fn listener(number: i32) -> Result<UnixListener, HostError> {
    // By the kernel, which looks whether there is one: a number alone proves nothing.
    let own = pidfd_open(getpid(), PidfdFlags::empty()).map_err(io::Error::from)?;
    let file = pidfd_getfd(own, number, PidfdGetfdFlags::empty())
        .map_err(|error| HostError::Activation(format!("descriptor {number}: {}", io::Error::from(error))))?;
    let is_one = sockopt::socket_domain(&file) == Ok(AddressFamily::UNIX)
        && sockopt::socket_type(&file) == Ok(SocketType::STREAM)
        && sockopt::socket_acceptconn(&file) == Ok(true);
    if !is_one {
        let what = format!("descriptor {number} is no listening stream socket of the file system");
        return Err(HostError::Activation(what));
    }
    Ok(UnixListener::from(file))
}

/// The first descriptor that is given: `SD_LISTEN_FDS_START`.
const FIRST: i32 = 3;

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_was_opened_for_another_process_or_for_nobody_is_left_alone() {
        let own = std::process::id().to_string();
        for (pid, count) in [(None, None), (None, Some("1")), (Some("1"), Some("1")), (Some("x"), Some("1"))]
        {
            assert!(listener_of_activation(pid, count).unwrap().is_none(), "{pid:?}");
        }
        let two = listener_of_activation(Some(&own), Some("2")).map(drop);
        assert!(matches!(two, Err(HostError::Activation(_))), "{two:?}");
    }

    #[test]
    fn a_listening_socket_is_taken_by_its_number_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host");
        let first = UnixListener::bind(&path).unwrap();
        let ours = listener(first.as_raw_fd()).unwrap();
        drop(first);
        let client = UnixStream::connect(&path).unwrap();
        assert!(ours.accept().is_ok());
        for other in [client.as_raw_fd(), std::fs::File::open("/dev/null").unwrap().as_raw_fd(), 1 << 20] {
            assert!(matches!(listener(other), Err(HostError::Activation(_))), "{other}");
        }
    }
}
