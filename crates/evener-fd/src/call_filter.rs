//! Whether the program has entered a filter of system calls (seccomp) since Evener was loaded: what is opened, made or begun inside of one may end it.
//!
//! [`note_filters`] (while loading) -> [`may_begin`] (before anything is begun). There is no question about filters that every filter allows. The one asked here opens a file of `/proc`,
//! for filters that end a process at a thread or a socket, as OpenSSH's does, answer that with an error, which is an answer as well.

use std::io::{self, Read as _};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rustix::io::Errno;

/// Filters that the loading thread was under, and 1 more; 0: not looked at, or the system did not say.
static NOTED: AtomicU32 = AtomicU32::new(0);

/// Remembers which filters there are, which the first call of a process and its children does: those of a service manager or container, under which the program was started.
pub fn note_filters() {
    if NOTED.load(Relaxed) == 0 {
        NOTED.store(filters().map_or(0, |count| count + 1), Relaxed);
    }
}

/// Whether no filter has come since [`note_filters`], as far as the system says. What was not noted is not asked for.
#[must_use]
pub fn may_begin() -> bool {
    let noted = NOTED.load(Relaxed);
    if noted == 0 || cfg!(mutant = "filters_unseen") {
        return true;
    }
    let is_new = match filters() {
        Ok(count) => count >= noted,
        Err(error) => {
            let of_a_filter = [Errno::ACCESS, Errno::PERM, Errno::NOSYS].map(Errno::raw_os_error);
            error.raw_os_error().is_some_and(|code| of_a_filter.contains(&code))
        }
    };
    !is_new
}

/// Filters of this thread. Linux before 5.9 says only that there are some, which counts as one.
fn filters() -> io::Result<u32> {
    let mut text = Vec::with_capacity(4_096);
    std::fs::File::open("/proc/thread-self/status")?.take(1 << 16).read_to_end(&mut text)?;
    counted(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// What the lines of a `status` say (proc_pid_status(5)).
fn counted(text: &[u8]) -> Option<u32> {
    // The first line alone holds words of the program's.
    let name_end = text.iter().position(|byte| *byte == b'\n')?;
    let text = std::str::from_utf8(&text[name_end..]).ok()?;
    // From the end, near which they stand, one after the other.
    let (before, mode) = text.rsplit_once("\nSeccomp:").map(|(before, rest)| (before, first_line(rest)))?;
    let mode: u32 = mode.trim().parse().ok()?;
    let after = text[before.len() + 1..].lines().nth(1);
    let filters = after.and_then(|line| line.strip_prefix("Seccomp_filters:")?.trim().parse().ok());
    Some(filters.unwrap_or_else(|| u32::from(mode > 0)))
}

fn first_line(text: &str) -> &str {
    text.split_once('\n').map_or(text, |(line, _)| line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_counted_where_the_system_counts_them_and_seen_where_it_does_not() {
        assert_eq!(counted(b"Name:\tsshd\nSeccomp:\t0\nSeccomp_filters:\t0\nx:\t1\n"), Some(0));
        assert_eq!(counted(b"Name:\t\xFF\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n"), Some(3));
        assert_eq!(counted(b"NoNewPrivs:\t1\nSeccomp:\t2\n"), Some(1));
        assert_eq!(counted(b"NoNewPrivs:\t1\nSeccomp:\t2\nSpeculation_Store_Bypass:\tvulnerable\n"), Some(1));
        assert_eq!(counted(b"Name:\tSeccomp:\n"), None);
    }

    #[test]
    fn under_the_filters_that_were_noted_everything_may_begin() {
        assert!(may_begin(), "nothing was noted");
        note_filters();
        note_filters();
        assert!(may_begin());
        // As if one had come since: none can be taken away again, and this process has other tests.
        let noted = NOTED.load(Relaxed);
        if noted > 1 {
            NOTED.store(noted - 1, Relaxed);
            assert!(!may_begin());
            NOTED.store(noted, Relaxed);
        }
    }
}
