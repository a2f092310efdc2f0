//! Nodes below `/dev`: whether they are there, and whether this process may open them. `/dev/crypto`.

use std::io;
use std::os::unix::fs::MetadataExt as _;

use super::kernel::Kernel;
use super::system_root::SystemRoot;
use super::{Calls, DevicePath, Kind, Obstacle};

/// Who would open a node.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    uid: u32,
    groups: Vec<u32>,
}

impl Caller {
    pub(crate) fn this_process() -> Self {
        let mut groups: Vec<u32> =
            rustix::process::getgroups().unwrap_or_default().iter().map(|group| group.as_raw()).collect();
        groups.push(rustix::process::getegid().as_raw());
        Self { uid: rustix::process::geteuid().as_raw(), groups }
    }

    #[cfg(test)]
    pub(super) const fn new(uid: u32, groups: Vec<u32>) -> Self {
        Self { uid, groups }
    }
}

/// What keeps `caller` from a node that is there.
pub(super) fn permission(
    root: &SystemRoot,
    node: &str,
    caller: &Caller,
    calls: Option<&dyn Calls>,
) -> Option<Obstacle> {
    let about = root.about(node)?;
    let refused = match calls {
        // Access lists and security modules know more than the mode.
        Some(calls) => match calls.open(&root.path(node)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => true,
            Err(error) => {
                let (fact, cure) = (format!("{node} cannot be opened: {error}"), "`dmesg` may say why");
                return Some(Obstacle::new(Kind::Driver, fact, cure));
            }
            Ok(()) => false,
        },
        None => !is_let(caller, about.uid(), about.gid(), about.mode()),
    };
    if !refused {
        return None;
    }
    let (group, mode) = (group_name(root, about.gid()), about.mode() & 0o777);
    let fact =
        format!("{node} is of group {group} with mode {mode:04o}, and this user may not read and write it");
    let is_for_group = mode & 0o060 == 0o060 && !caller.groups.contains(&about.gid());
    let cure = if is_for_group {
        format!("as root `usermod -aG {group} USER`, then log in again")
    } else {
        let name = node.trim_start_matches("/dev/").rsplit('/').next().unwrap_or_default();
        format!(
            "as root write `KERNEL==\"{name}\", GROUP=\"crypto\", MODE=\"0660\"` into /etc/udev/rules.d/60-crypto.rules, \
             `groupadd -rf crypto`, `usermod -aG crypto USER`, `udevadm trigger`, and log in again"
        )
    };
    Some(Obstacle::new(Kind::Permission, fact, cure))
}

fn is_let(caller: &Caller, owner: u32, group: u32, mode: u32) -> bool {
    let shift = match () {
        () if caller.uid == 0 => return true,
        () if caller.uid == owner => 6,
        () if caller.groups.contains(&group) => 3,
        () => 0,
    };
    (mode >> shift) & 0o6 == 0o6
}

/// A group by its name, where the system has one.
fn group_name(root: &SystemRoot, gid: u32) -> String {
    let groups = root.text("/etc/group").unwrap_or_default();
    let named = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(gid)).then(|| name.to_owned())
    };
    groups.lines().find_map(named).unwrap_or_else(|| gid.to_string())
}

const NODE: &str = "/dev/crypto";

/// OCF's node.
pub(super) fn devcrypto(
    root: &SystemRoot,
    kernel: &Kernel,
    caller: &Caller,
    calls: Option<&dyn Calls>,
) -> DevicePath {
    let is_there = root.exists(NODE);
    let obstacle = if is_there { permission(root, NODE, caller, calls) } else { Some(no_devcrypto(kernel)) };
    DevicePath { name: "devcrypto".to_owned(), what: None, has_device: is_there, obstacle }
}

fn no_devcrypto(kernel: &Kernel) -> Obstacle {
    if kernel.is_loaded("cryptodev") {
        let fact = format!("the kernel's module cryptodev is loaded, and there is no {NODE} here");
        let cure = format!("a container gets it by `--device {NODE}`; elsewhere `udevadm trigger`, or mdev");
        return Obstacle::new(Kind::Permission, fact, cure);
    }
    let fact = format!("there is no {NODE}");
    if kernel.is_installed("cryptodev") {
        let fact = format!("{fact}: the kernel's module cryptodev is installed and not loaded");
        let cure = "`modprobe cryptodev` as root; its name in /etc/modules-load.d/ keeps it so";
        return Obstacle::new(Kind::KernelModule, fact, cure);
    }
    let fact = format!("{fact}: Linux has cryptodev-linux outside of its tree only");
    let cure = format!(
        "build https://github.com/cryptodev-linux/cryptodev-linux for Linux {} and `modprobe cryptodev`",
        kernel.release
    );
    Obstacle::new(Kind::KernelModule, fact, cure)
}
