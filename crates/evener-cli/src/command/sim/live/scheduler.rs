//! What the running kernel does with threads that want a core: for `evener sim live`.

use evener_sim::engine::SchedulerSpec;
use rustix::system::uname;
use rustix::time::{ClockId, clock_getres};
use serde::{Deserialize, Serialize};

/// The first version that goes by deadlines.
const BY_DEADLINE_SINCE: (u32, u32) = (6, 6);

/// The usual configuration, where the kernel does not tell.
const TICKS_PER_SECOND: u32 = 250;

/// What decides which thread gets a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SchedulerFacts {
    is_by_deadline: bool,
    pub(super) ticks_per_second: u32,
}

impl SchedulerFacts {
    /// This machine's, by the kernel's version and by its tick, which is what its coarse clock resolves.
    pub(crate) fn here() -> Self {
        let tick_ns = clock_getres(ClockId::MonotonicCoarse).tv_nsec;
        let ticks = u32::try_from(1_000_000_000_i64.checked_div(tick_ns).unwrap_or(0)).unwrap_or(0);
        let version = version(&uname().release().to_string_lossy());
        Self {
            is_by_deadline: version.is_some_and(|version| version >= BY_DEADLINE_SINCE),
            ticks_per_second: if ticks == 0 { TICKS_PER_SECOND } else { ticks },
        }
    }

    pub(crate) fn scheduler(self, cores: usize) -> SchedulerSpec {
        match self.is_by_deadline {
            true => SchedulerSpec::by_deadline(cores, self.ticks_per_second, 0),
            false => SchedulerSpec::linux(self.ticks_per_second, 0),
        }
    }
}

/// The first two numbers of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers =
        release.split(|letter: char| !letter.is_ascii_digit()).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_kernel_is_in_its_first_two_numbers() {
        assert_eq!(version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(version("6.1.0-56-amd64"), Some((6, 1)));
        assert_eq!(version("7.2"), Some((7, 2)));
        assert_eq!(version("unknown"), None);
    }
}
