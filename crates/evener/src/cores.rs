//! How many cores this process may use: affinity, cut by the cgroup's quota.

use std::fs;
use std::path::{Path, PathBuf};

/// Cores that this process may use, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreBudget {
    /// Cores in the affinity mask.
    pub allowed: usize,
    /// Cores that the cgroup's CPU quota pays for, rounded up; `None` without quota.
    pub quota: Option<usize>,
}

impl CoreBudget {
    /// CPU workers that make sense: at least one.
    #[must_use]
    pub fn workers(self) -> usize {
        self.quota.map_or(self.allowed, |quota| self.allowed.min(quota)).max(1)
    }
}

/// Reads the budget of this process: `sched_getaffinity` and `cpu.max` of its cgroup (version 2) or
/// `cpu.cfs_quota_us` (version 1), from the process's own group up to the root.
#[must_use]
pub fn core_budget() -> CoreBudget {
    CoreBudget { allowed: affinity_count(), quota: cgroup_quota(Path::new("/sys/fs/cgroup"), &own_groups()) }
}

fn affinity_count() -> usize {
    match rustix::thread::sched_getaffinity(None) {
        Ok(mask) => usize::try_from(mask.count()).unwrap_or(1).max(1),
        Err(_) => std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// The cgroup paths of this process, as `/proc/self/cgroup` lists them, without their leading slash.
fn own_groups() -> Vec<PathBuf> {
    let listed = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let paths = listed.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.map(|path| PathBuf::from(path.trim_start_matches('/'))).collect()
}

/// The least quota on the way from each group to the root, in cores, rounded up.
fn cgroup_quota(mount: &Path, groups: &[PathBuf]) -> Option<usize> {
    let directories = groups.iter().flat_map(|group| group.ancestors()).flat_map(|group| {
        let version_1 = |controller: &str| mount.join(controller).join(group);
        [mount.join(group), version_1("cpu"), version_1("cpu,cpuacct")]
    });
    directories.filter_map(|directory| quota_in(&directory)).min()
}

fn quota_in(directory: &Path) -> Option<usize> {
    let read = |name| fs::read_to_string(directory.join(name)).ok();
    let parse = |text: &str| text.trim().parse::<u64>().ok();
    let (quota_us, period_us) = match read("cpu.max") {
        Some(line) => {
            let (quota, period) = line.split_once(' ')?;
            (parse(quota)?, parse(period)?)
        }
        None => (parse(&read("cpu.cfs_quota_us")?)?, parse(&read("cpu.cfs_period_us")?)?),
    };
    usize::try_from(quota_us.checked_div(period_us).map(|_| quota_us.div_ceil(period_us))?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("evener-cgroup-{}-{}", std::process::id(), files.len()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_least_quota_on_the_way_to_the_root_counts_rounded_up() {
        let root = tree(&[
            ("cpu.max", "max 100000\n"),
            ("a/cpu.max", "150000 100000\n"),
            ("a/b/cpu.max", "max 100000\n"),
        ]);
        assert_eq!(cgroup_quota(&root, &[PathBuf::from("a/b")]), Some(2));
        assert_eq!(cgroup_quota(&root, &[PathBuf::from("c")]), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_first_version_of_cgroups_is_read_too() {
        let root = tree(&[("cpu/g/cpu.cfs_quota_us", "50000\n"), ("cpu/g/cpu.cfs_period_us", "100000\n")]);
        assert_eq!(cgroup_quota(&root, &[PathBuf::from("g")]), Some(1));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn there_is_always_a_worker() {
        assert_eq!(CoreBudget { allowed: 8, quota: Some(0) }.workers(), 1);
        assert_eq!(CoreBudget { allowed: 8, quota: Some(3) }.workers(), 3);
        assert_eq!(CoreBudget { allowed: 2, quota: None }.workers(), 2);
    }
}
