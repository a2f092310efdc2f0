//! How much memory this process may have: the machine's, or less where a group of processes that it is in has a limit (cgroups(7)).

use std::fs;
use std::path::{Path, PathBuf};

use rustix::system::sysinfo;

/// Bytes that this process may have at most.
#[must_use]
pub fn memory_of_machine() -> u64 {
    let about = sysinfo();
    let machine = wide(about.totalram).saturating_mul(u64::from(about.mem_unit).max(1));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    limit_of(&groups, Path::new("/sys/fs/cgroup")).map_or(machine, |limit| limit.min(machine))
}

/// The kernel's words have 32 bits on some processors.
fn wide(word: impl Into<u64>) -> u64 {
    word.into()
}

/// The least limit of the groups that are named as in `/proc/self/cgroup`, and of those that these are in; none where no file below `root` says one.
fn limit_of(groups: &str, root: &Path) -> Option<u64> {
    let files = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        // Version 2 names no controllers; version 1 has a folder for this one.
        let (folder, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            "memory" => (root.join("memory"), "memory.limit_in_bytes"),
            _ => return Vec::new(),
        };
        let group: PathBuf = folder.join(path.trim_start_matches('/'));
        let all = group.ancestors().take_while(|group| group.starts_with(&folder));
        all.map(|group| group.join(file)).collect()
    });
    // "max" is no number, and no limit.
    files.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_a_group_and_those_above_it_counts_in_both_versions() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("memory.max", "max\n");
        write("a/memory.max", "314572800\n");
        write("a/b/memory.max", "max\n");
        write("memory/c/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/c/d/memory.limit_in_bytes", "1048576\n");
        let limit = |groups| limit_of(groups, root.path());
        assert_eq!(limit("0::/a/b\n"), Some(314_572_800));
        assert_eq!(limit("0::/\n"), None);
        assert_eq!(limit("3:cpu:/c/d\n2:memory:/c/d\n"), Some(1_048_576));
        assert_eq!(limit("2:memory:/elsewhere\n1:name=systemd:/\n"), None);
        assert!(memory_of_machine() > 1 << 20);
    }
}
