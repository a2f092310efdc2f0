//! What a core costs now: from 0, where one is idle, to 1, where all that this process may use are busy.

use std::fs;
use std::thread;
use std::time::Duration;

/// How busy the cores are without the jobs in question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuLoad {
    /// Cores that this process may use.
    pub cores: usize,
    /// Threads of others that run or wait for one of these, on average.
    pub others: f64,
}

/// Looks at the load average's count of runnable threads, and how often, how long between.
const LOOKS: u32 = 10;
const BETWEEN: Duration = Duration::from_millis(2);

impl CpuLoad {
    /// Samples for 20 ms. Where the system does not tell, no other thread is taken to run. The system counts those of the whole machine, which are taken to be spread evenly over its cores.
    pub fn now() -> Self {
        let looks = (0..LOOKS).map(|_| {
            thread::sleep(BETWEEN);
            fs::read_to_string("/proc/loadavg").ok().and_then(|text| others(&text)).unwrap_or(0)
        });
        let others: u32 = looks.sum();
        let online = fs::read_to_string("/proc/stat").map_or(0, |text| online(&text));
        Self::of(evener::core_budget().workers(), online, f64::from(others) / f64::from(LOOKS))
    }

    /// Of `cores` of a machine that has `online`, where `others` run or wait on all of it.
    fn of(cores: usize, online: usize, others: f64) -> Self {
        let of_all = Self { cores: online.max(cores), others };
        let own = Self { cores, others };
        Self { others: others * own.float_cores() / of_all.float_cores(), ..own }
    }

    /// Whether who measures now measures others, too: their threads want half of the cores or more.
    pub fn is_busy(&self) -> bool {
        self.others >= self.float_cores() / 2.0
    }

    /// Part of a core that each thread gets.
    pub fn share(&self) -> f64 {
        (self.float_cores() / (self.float_cores() + self.others)).min(1.0)
    }

    /// The price while `threads` of this process run jobs: 0 where each of `modules` finds a core idle beside them.
    pub fn price(&self, threads: u32, modules: usize) -> f64 {
        let spare = self.float_cores() - self.others - f64::from(threads);
        let modules = f64::from(u32::try_from(modules.max(1)).unwrap_or(u32::MAX));
        1.0 - (spare / modules).clamp(0.0, 1.0)
    }

    fn float_cores(&self) -> f64 {
        f64::from(u32::try_from(self.cores).unwrap_or(u32::MAX))
    }
}

/// Cores in the lines of `/proc/stat`, which has one for each that is online, behind one for all.
fn online(stat: &str) -> usize {
    let cores = stat.lines().filter_map(|line| line.strip_prefix("cpu"));
    cores.filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit())).count()
}

/// The fourth field: threads that run or wait, a slash, all threads. One of them is the thread that looks.
fn others(loadavg: &str) -> Option<u32> {
    let runnable: u32 = loadavg.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()?;
    Some(runnable.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_read() {
        assert_eq!(others("0.20 0.18 0.12 3/80 11206\n"), Some(2));
        assert_eq!(others(""), None);
    }

    #[test]
    fn threads_of_the_whole_machine_count_for_the_part_of_it_that_is_ours() {
        let stat = "cpu  9 9 9\ncpu0 1 1 1\ncpu1 1 1 1\ncpu10 1 1 1\nintr 5\nctxt 7\n";
        assert_eq!([stat, ""].map(online), [3, 0]);
        let load = |cores, online| CpuLoad::of(cores, online, 6.0);
        assert_eq!(load(2, 16), CpuLoad { cores: 2, others: 0.75 });
        assert_eq!([load(16, 16), load(16, 0)].map(|load| load.others), [6.0; 2]);
        assert!(!load(2, 16).is_busy() && load(2, 4).is_busy());
    }

    #[test]
    fn an_idle_core_has_no_price_and_the_last_one_has_the_full() {
        let load = |others| CpuLoad { cores: 4, others };
        assert_eq!(
            [0.0, 2.0, 2.5, 3.0, 9.0].map(|others| load(others).price(1, 1)),
            [0.0, 0.0, 0.5, 1.0, 1.0]
        );
        assert_eq!(load(0.0).price(3, 2), 0.5);
        assert_eq!([0.0, 4.0].map(|others| load(others).share()), [1.0, 0.5]);
    }
}
