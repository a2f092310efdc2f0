//! Core time of all processes of a program, its clients not among them.
//!
//! Path: [`Account::open`] (a control group, or none) -> [`Account::words`] before a program's -> [`Account::core_time`] before its work and behind it.
//!
//! A control group of our own counts what its processes take, those included that ended and that nothing waited for: of version 2 or 1, where this user may make one. Else children that ended
//! (`getrusage`) and trees of living servers (`/proc`) are added up, and a server's clients are then counted with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use crate::programs::stopwatch;

/// Where core time is looked up.
#[derive(Debug)]
pub(super) struct Account {
    group: Option<Group>,
}

/// Groups that this process made, for a name that no other of them has: two may be measured at once.
static GROUPS: AtomicU32 = AtomicU32::new(0);

/// A control group, removed when dropped.
#[derive(Debug)]
struct Group {
    folder: PathBuf,
    is_unified: bool,
}

impl Account {
    /// The best that can be had here.
    pub(super) fn open() -> Self {
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let group =
            parents(&mounts, &own).into_iter().find_map(|(parent, unified)| Group::make(&parent, unified));
        Self { group }
    }

    /// What reports say of it.
    pub(super) fn in_words(&self) -> &'static str {
        match &self.group {
            Some(group) if group.is_unified => "a control group's cpu.stat",
            Some(_) => "a control group's cpuacct.usage",
            None => "getrusage of children and /proc of servers, clients included",
        }
    }

    /// Words before a program's that have it, and all that it starts, counted.
    pub(super) fn words(&self) -> Vec<String> {
        let Some(group) = &self.group else { return Vec::new() };
        let members = group.folder.join("cgroup.procs").display().to_string();
        ["sh", "-c", "echo $$ > \"$0\" && exec \"$@\"", &members].map(str::to_owned).to_vec()
    }

    /// Core time so far; `servers` are those that live.
    pub(super) fn core_time(&self, servers: &[u32]) -> Duration {
        match &self.group {
            Some(group) => group.core_time(),
            None => {
                stopwatch::core_of_children() + servers.iter().map(|&pid| tree_time(pid)).sum::<Duration>()
            }
        }
    }
}

impl Group {
    fn make(parent: &Path, is_unified: bool) -> Option<Self> {
        // Relaxed: numbers only have to differ.
        let number = GROUPS.fetch_add(1, Relaxed);
        let folder = parent.join(format!("evener-bench-{}-{number}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let group = Self { folder, is_unified };
        // A group may be ours to make and not to fill.
        let script = "echo $$ > \"$0\"";
        let filled = Command::new("sh").args(["-c", script]).arg(group.folder.join("cgroup.procs")).output();
        let has_time = fs::exists(group.folder.join(group.file())).unwrap_or(false);
        (filled.is_ok_and(|output| output.status.success()) && has_time).then_some(group)
    }

    const fn file(&self) -> &'static str {
        if self.is_unified { "cpu.stat" } else { "cpuacct.usage" }
    }

    fn core_time(&self) -> Duration {
        let text = fs::read_to_string(self.folder.join(self.file())).unwrap_or_default();
        if self.is_unified {
            let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
            Duration::from_micros(usage.and_then(|word| word.parse().ok()).unwrap_or_default())
        } else {
            Duration::from_nanos(text.trim().parse().unwrap_or_default())
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Refused while a process is in it; an empty group costs nothing.
        fs::remove_dir(&self.folder).unwrap_or_default();
    }
}

/// Folders in which a group of ours might be made, and whether they are of version 2: below this process's own.
fn parents(mounts: &str, own: &str) -> Vec<(PathBuf, bool)> {
    let below = |mount: &str, path: &str| PathBuf::from(format!("{mount}{path}"));
    let of_mount = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (mount, kind, options) = (words.next()?, words.next()?, words.next()?);
        let is_unified = kind == "cgroup2";
        let counts = |list: &str| list.split(',').any(|word| word == "cpuacct");
        if !(is_unified || kind == "cgroup" && counts(options)) {
            return None;
        }
        let path = own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            (if is_unified { controllers.is_empty() } else { counts(controllers) }).then_some(path)
        })?;
        Some((below(mount, path), is_unified))
    };
    let mut all: Vec<_> = mounts.lines().filter_map(of_mount).collect();
    // Nanoseconds before microseconds.
    all.sort_by_key(|(_, is_unified)| *is_unified);
    all
}

/// User and system time of a process, of all that it waited for, and of its children's trees.
fn tree_time(pid: u32) -> Duration {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return Duration::ZERO };
    // Behind the name, which may hold anything, from field 3 on; 14 to 17 are the times.
    let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks: u64 = fields.split(' ').skip(11).take(4).filter_map(|word| word.parse::<u64>().ok()).sum();
    let per_second = rustix::param::clock_ticks_per_second();
    let own = Duration::from_millis(ticks * 1000 / per_second.max(1));
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    own + children.split(' ').filter_map(|word| word.trim().parse().ok()).map(tree_time).sum::<Duration>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_made_below_this_process_and_version_1_stands_first_because_it_counts_nanoseconds() {
        let mounts = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n";
        let own = "3:memory:/x\n2:cpu,cpuacct:/user.slice\n0::/a:b\n";
        let expected = [
            (PathBuf::from("/sys/fs/cgroup/cpu,cpuacct/user.slice"), false),
            (PathBuf::from("/sys/fs/cgroup/unified/a:b"), true),
        ];
        assert_eq!(parents(mounts, own), expected);
        assert!(parents("tmpfs /tmp tmpfs rw 0 0\n", own).is_empty());
    }

    #[test]
    fn two_accounts_of_one_process_have_a_group_each() {
        let accounts = [Account::open(), Account::open()];
        let names = accounts.each_ref().map(|account| {
            account.group.as_ref().and_then(|group| group.folder.file_name().map(ToOwned::to_owned))
        });
        if names[0].is_none() {
            return println!("skipped: this user may make no control group");
        }
        assert!(names[1].is_some() && names[0] != names[1], "{names:?}");
    }

    #[test]
    fn what_a_grandchild_works_is_counted_with_a_group_and_without() {
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let script = format!("sh -c '{busy}'; true");
        let grouped = Account::open();
        if grouped.group.is_none() {
            println!("skipped: this user may make no control group");
        }
        for account in [grouped, Account { group: None }] {
            let before = account.core_time(&[]);
            let mut words = account.words();
            words.extend(["sh", "-c", &script].map(str::to_owned));
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            stopwatch::run(command).unwrap();
            let used = account.core_time(&[]).saturating_sub(before);
            assert!(used > Duration::from_millis(5), "{}: {used:?}", account.in_words());
        }
    }
}
