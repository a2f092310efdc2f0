//! Who may come: decided by the credentials that the kernel keeps of the process that connected.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getuid, pidfd_open};
use serde::Serialize;

/// Whom the host serves. Its own user and root may always come.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Further users, by number.
    pub uids: Vec<u32>,
    /// Further groups, by number; the group that the process ran in when it connected counts, not its supplementary ones.
    pub gids: Vec<u32>,
    /// Users whose clients have so many shares of a burst; who is not named has one.
    pub weights: Vec<(u32, u32)>,
}

/// As how many users a group counts, for who is in it is known when they come only. Assumed, not measured.
const USERS_OF_GROUP: usize = 8;

/// Who connected, as the kernel says.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Peer {
    /// Process, 0 where it is in a namespace that this one does not see.
    pub pid: i32,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// A process that connected and ended before it was looked at. A child of it may hold the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended;

impl Access {
    /// Whether this one may come.
    #[must_use]
    pub fn admits(&self, peer: Peer) -> bool {
        let is_own = cfg!(mutant = "host_admits_all") || peer.uid == 0 || peer.uid == getuid().as_raw();
        is_own || self.uids.contains(&peer.uid) || self.gids.contains(&peer.gid)
    }

    /// Among how many users the places are shared: who is named, the own one and root. Where no user is named that is one, for the own user could as well end the
    /// host. A group counts for [`USERS_OF_GROUP`].
    #[must_use]
    pub fn user_count(&self) -> usize {
        if self.uids.is_empty() && self.gids.is_empty() {
            return 1;
        }
        let users: BTreeSet<u32> = self.uids.iter().copied().chain([0, getuid().as_raw()]).collect();
        users.len() + self.gids.len() * USERS_OF_GROUP
    }

    /// How many shares of a burst a client has.
    pub(crate) fn weight_of(&self, peer: Peer) -> usize {
        let named = self.weights.iter().rfind(|(uid, _)| *uid == peer.uid);
        named.map_or(1, |(_, weight)| usize::try_from(*weight).unwrap_or(usize::MAX).max(1))
    }

    /// Permission bits of the socket: for its owner alone, or for all where others are to be looked at when they come.
    #[must_use]
    pub fn socket_mode(&self) -> u32 {
        if self.uids.is_empty() && self.gids.is_empty() { 0o600 } else { 0o666 }
    }
}

impl Peer {
    /// Who is at the other end.
    pub(crate) fn of(stream: &UnixStream) -> Option<Self> {
        let told = getsockopt(stream, PeerCredentials).ok()?;
        Some(Self { pid: told.pid(), uid: told.uid(), gid: told.gid() })
    }

    /// A descriptor that becomes readable when the process ends; `None` where the kernel or the namespace has none.
    ///
    /// # Errors
    ///
    /// [`Ended`] where there is no such process any more.
    pub(crate) fn watch(self) -> Result<Option<OwnedFd>, Ended> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(None) };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(file) => Ok(Some(file)),
            Err(Errno::SRCH) => Err(Ended),
            Err(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_there_is_watched_and_one_that_ended_is_known_to_have() {
        let peer = |pid: u32| Peer { pid: i32::try_from(pid).unwrap(), uid: 0, gid: 0 };
        assert!(peer(std::process::id()).watch().is_ok_and(|file| file.is_some()));
        assert!(peer(0).watch().is_ok_and(|file| file.is_none()), "of another namespace");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(peer(child.id()).watch().map(drop), Err(Ended));
    }

    #[test]
    fn only_the_own_user_root_and_who_is_named_may_come() {
        let own = getuid().as_raw();
        let peer = |uid, gid| Peer { pid: 1, uid, gid };
        let closed = Access::default();
        assert!(closed.admits(peer(own, 7)) && closed.admits(peer(0, 7)));
        assert!(!closed.admits(peer(own + 12_345, 7)));
        assert_eq!(closed.socket_mode(), 0o600);
        let open = Access { uids: vec![own + 12_345], gids: vec![99], ..Access::default() };
        assert!(open.admits(peer(own + 12_345, 7)) && open.admits(peer(own + 1, 99)));
        assert!(!open.admits(peer(own + 1, 98)));
        assert_eq!(open.socket_mode(), 0o666);
        let own_and_root = if own == 0 { 1 } else { 2 };
        assert_eq!((closed.user_count(), open.user_count()), (1, own_and_root + 1 + USERS_OF_GROUP));
    }

    #[test]
    fn a_user_has_the_weight_that_was_said_last_and_any_other_has_one() {
        let access = Access { weights: vec![(7, 3), (8, 0), (7, 4)], ..Access::default() };
        let weight = |uid| access.weight_of(Peer { pid: 1, uid, gid: 0 });
        assert_eq!([weight(7), weight(8), weight(9)], [4, 1, 1]);
    }
}
