//! What one client may have, and how many clients there may be.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What one client may have at most, and how many there may be.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Clients at the same time.
    pub clients_max: usize,
    /// Sessions that are open at the same time, per client. A guest has two per key.
    pub sessions_max: usize,
    /// Requests that the module holds, per client; further ones wait in the client's ring.
    pub in_flight_max: usize,
    /// Bytes of these requests; one request may go beyond.
    pub bytes_in_flight_max: usize,
    /// Bytes of memory that are mapped, per client.
    pub memory_bytes_max: u64,
    /// Bytes of a request.
    pub request_bytes_max: usize,
    /// Clients of one user at the same time.
    pub user_clients_max: usize,
    /// Sessions that are open at the same time, of all clients of a user.
    pub user_sessions_max: usize,
    /// Requests that the module holds, of all clients of a user, for each of the host's threads.
    pub user_in_flight_max: usize,
    /// Bytes of memory that are mapped, of all clients of a user.
    pub user_memory_bytes_max: u64,
    /// Bytes of memory without pages that the host makes pages for, of all clients of a user: these are paid by the host.
    pub user_faulted_bytes_max: u64,
    /// How long a client may say nothing after it connected, or stop in the middle of a message.
    pub silence_max: Duration,
    /// The host ends after so long without a client; never where this is none.
    pub idle_max: Option<Duration>,
}

/// The system lets the process have fewer open files than its clients may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{asked} clients may need {needed} open files, and this process may have {allowed} (ulimit -Hn): enough for {fitting} clients"
)]
pub struct TooFewFiles {
    /// Clients that were asked for.
    pub asked: usize,
    /// Open files that they may need.
    pub needed: u64,
    /// Open files that the process may have.
    pub allowed: u64,
    /// Clients for whom that is enough.
    pub fitting: usize,
}

impl Default for Limits {
    /// 1024 clients with 4096 sessions, 256 requests of 16 MiB in all, 64 GiB of memory each; requests of 1 MiB. Assumed,
    /// not measured, but that a guest's memory is mapped whole, and that Linux sends no more than 64 KiB at once.
    ///
    /// A user's clients have together 32768 sessions, eight times one's, 256 requests, 64 GiB mapped, whose page tables take 128 MiB of the host's where all of
    /// it is touched, and 64 MiB of pages that the host made. All of it together stays below 300 MiB, a small container.
    fn default() -> Self {
        Self {
            clients_max: 1_024,
            sessions_max: 4096,
            in_flight_max: 256,
            bytes_in_flight_max: 16 << 20,
            memory_bytes_max: 64 << 30,
            request_bytes_max: 1 << 20,
            user_clients_max: 1_024,
            user_sessions_max: 32_768,
            user_in_flight_max: 256,
            user_memory_bytes_max: 64 << 30,
            user_faulted_bytes_max: 64 << 20,
            silence_max: Duration::from_secs(2),
            idle_max: None,
        }
    }
}

impl Limits {
    /// What each of so many users may have of the places that there are: together no more than all, so that none keeps another out.
    #[must_use]
    pub const fn places_of_user(clients_max: usize, users: usize) -> usize {
        let share = if users > 1 { clients_max / users } else { clients_max };
        if share == 0 { 1 } else { share }
    }

    /// Raises what this process may have of open files to what so many clients may need.
    ///
    /// # Errors
    ///
    /// [`TooFewFiles`] where it may not be raised so far; then it is raised as far as it may be.
    pub fn raise_open_files(&self) -> Result<(), TooFewFiles> {
        let limit = getrlimit(Resource::Nofile);
        let needed = files_of(self.clients_max);
        let wanted = needed.saturating_add((self.clients_max as u64).saturating_mul(MORE_FILES_OF_CLIENT));
        let (soft, hard) = (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX));
        let mut allowed = soft;
        if soft < wanted {
            let raised = Rlimit { current: Some(wanted.min(hard)), maximum: limit.maximum };
            if setrlimit(Resource::Nofile, raised).is_ok() {
                allowed = wanted.min(hard);
            }
        }
        // Relaxed, here and below: a number that nothing else is read through.
        SPARE_FILES.store(allowed.saturating_sub(needed), Relaxed);
        enough(self.clients_max, allowed)
    }
}

/// Whether so many open files are enough.
fn enough(asked: usize, allowed: u64) -> Result<(), TooFewFiles> {
    let needed = files_of(asked);
    if allowed >= needed {
        return Ok(());
    }
    let fitting = allowed.saturating_sub(FILES_OF_HOST) / FILES_OF_CLIENT;
    Err(TooFewFiles { asked, needed, allowed, fitting: usize::try_from(fitting).unwrap_or(usize::MAX) })
}

fn files_of(clients: usize) -> u64 {
    (clients as u64).saturating_mul(FILES_OF_CLIENT).saturating_add(FILES_OF_HOST)
}

/// Open files that one client may make the host have: its stream, its process, a kick and a call for each of four rings, the eight that
/// come beside a message, and one of its memory. At rest one of good faith costs five.
const FILES_OF_CLIENT: u64 = 2 + 8 + 8 + 1;

/// Further files of a client's memory, of which there are eight at most: a guest with several backends has them, as long as there are some beside what all clients may need.
const MORE_FILES_OF_CLIENT: u64 = 7;

/// Files that no client needs who has one of memory. As many as are wanted, until it is said what this process may have.
static SPARE_FILES: AtomicU64 = AtomicU64::new(u64::MAX);

/// One of them, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct SpareFile(());

impl SpareFile {
    /// None where none is left.
    pub(crate) fn take() -> Option<Self> {
        let taken = SPARE_FILES.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        taken.ok().map(|_| Self(()))
    }
}

impl Drop for SpareFile {
    fn drop(&mut self) {
        _ = SPARE_FILES.fetch_update(Relaxed, Relaxed, |left| left.checked_add(1));
    }
}

/// Open files of the host's own: standard ones, sockets, drivers of modules, administrators and connections that are refused. Assumed, not
/// measured: 256, for it has some 20 by itself and refuses 64 at the same time.
const FILES_OF_HOST: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_all_users_are_no_more_than_there_are() {
        for users in 1..100 {
            assert!(users * Limits::places_of_user(1_024, users) <= 1_024);
        }
        assert_eq!([0, 1, 3, 4].map(|users| Limits::places_of_user(1_024, users)), [1_024, 1_024, 341, 256]);
        assert_eq!(Limits::places_of_user(2, 5), 1);
    }

    #[test]
    fn as_many_clients_as_it_says_fit_into_the_files_that_there_are_and_no_more() {
        for allowed in [300, 1_024, 4_096, 524_288] {
            let refused = enough(1 << 20, allowed).unwrap_err();
            assert_eq!(enough(refused.fitting, allowed), Ok(()));
            assert!(enough(refused.fitting + 1, allowed).is_err());
        }
        assert_eq!(enough(1 << 20, 10).unwrap_err().fitting, 0);
    }
}
