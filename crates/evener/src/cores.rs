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

/// A cgroup of this process that may have a quota of cores.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    /// Of version 2, or of version 1 by its controllers, as their directory is named.
    controllers: String,
    /// Below that directory.
    path: PathBuf,
}

/// Those that `/proc/self/cgroup` lists as `number:controllers:/path`, without controllers for version 2. Others (memory, devices) know no quota of cores.
fn own_groups() -> Vec<Group> {
    let listed = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    listed.lines().filter_map(group_of).collect()
}

fn group_of(line: &str) -> Option<Group> {
    let mut fields = line.splitn(3, ':');
    let (controllers, path) = (fields.nth(1)?.to_owned(), fields.next()?);
    let has_quota = controllers.is_empty() || controllers.split(',').any(|controller| controller == "cpu");
    has_quota.then(|| Group { controllers, path: PathBuf::from(path.trim_start_matches('/')) })
}

/// The least quota on the way from each group to the root, in cores, rounded up.
fn cgroup_quota(mount: &Path, groups: &[Group]) -> Option<usize> {
    let quotas = groups.iter().flat_map(|group| {
        // A mount of version 1 has the names of all its controllers, or of one.
        let named = mount.join(&group.controllers);
        let top = if named.is_dir() { named } else { mount.join("cpu") };
        let quota_in = if group.controllers.is_empty() { quota_of_2 } else { quota_of_1 };
        group.path.ancestors().filter_map(move |path| quota_in(&top.join(path)))
    });
    quotas.min()
}

fn quota_of_2(directory: &Path) -> Option<usize> {
    let line = fs::read_to_string(directory.join("cpu.max")).ok()?;
    let (quota, period) = line.split_once(' ')?;
    cores_of(quota, period)
}

fn quota_of_1(directory: &Path) -> Option<usize> {
    let read = |name| fs::read_to_string(directory.join(name)).ok();
    let quota = read("cpu.cfs_quota_us").filter(|quota| !quota.starts_with('-'))?;
    cores_of(&quota, &read("cpu.cfs_period_us")?)
}

/// Both in microseconds.
fn cores_of(quota: &str, period: &str) -> Option<usize> {
    let parse = |text: &str| text.trim().parse::<u64>().ok();
    let (quota, period) = (parse(quota)?, parse(period)?);
    usize::try_from(quota.checked_div(period).map(|_| quota.div_ceil(period))?).ok()
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
        let quota = |line| cgroup_quota(&root, &[group_of(line).unwrap()]);
        assert_eq!((quota("0::/a/b"), quota("0::/c")), (Some(2), None));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_first_version_of_cgroups_is_read_too() {
        let root = tree(&[("cpu/g/cpu.cfs_quota_us", "50000\n"), ("cpu/g/cpu.cfs_period_us", "100000\n")]);
        assert_eq!(cgroup_quota(&root, &[group_of("3:cpu:/g").unwrap()]), Some(1));
        assert_eq!(group_of("3:cpu,cpuacct:/g:h").unwrap().path, PathBuf::from("g:h"));
        for other in ["5:memory:/g", "6:cpuset:/g", "7:cpuacct:/g", "1:name=systemd:/g", "no line"] {
            assert_eq!(group_of(other), None, "{other}");
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn there_is_always_a_worker() {
        assert_eq!(CoreBudget { allowed: 8, quota: Some(0) }.workers(), 1);
        assert_eq!(CoreBudget { allowed: 8, quota: Some(3) }.workers(), 3);
        assert_eq!(CoreBudget { allowed: 2, quota: None }.workers(), 2);
    }
}
