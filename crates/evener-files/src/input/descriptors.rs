//! Descriptors as a budget: the soft limit is raised to the hard one, and parts of it go to directories and to files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many descriptors are for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptors {
    /// Directories that are open at a time.
    pub(crate) directories: usize,
    /// Files that one thread has open at a time.
    pub(crate) files_per_thread: usize,
}

/// Most directories that are open at a time. Assumed, not measured: far beyond what a walk comes back to.
const DIRECTORIES_MAX: usize = 512;

/// Taken for the limit where the system says that there is none.
const UNLIMITED: u64 = 1 << 20;

impl Descriptors {
    /// What this process may have, for `threads`; raises its soft limit.
    pub(crate) fn of_process(threads: usize) -> Self {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        // Refused, the limit stays what it is.
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).ok();
        Self::within(getrlimit(Resource::Nofile).current.unwrap_or(UNLIMITED), threads)
    }

    /// A sixth for directories, one for sources and one for outputs; the rest is for listings and whatever else a program has.
    fn within(limit: u64, threads: usize) -> Self {
        let sixth = usize::try_from(limit / 6).unwrap_or(usize::MAX);
        Self {
            directories: sixth.clamp(1, DIRECTORIES_MAX),
            files_per_thread: (sixth / threads.max(1)).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_limit_is_half_of_it_is_given_out_at_most() {
        for limit in [64, 256, 1_024, 4_096, UNLIMITED] {
            for threads in [1, 2, 8] {
                let Descriptors { directories, files_per_thread } = Descriptors::within(limit, threads);
                assert!((directories + 2 * files_per_thread * threads) as u64 <= limit / 2, "{limit}");
            }
        }
    }
}
