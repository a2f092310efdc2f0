//! The README's sessions on a Debian of arm64 that has nothing yet, with the package for it, by a processor that qemu-user plays.
//!
//! Path: debootstrap unpacks a root below `target/fresh`, once, whose own second half then runs under proot, which hands each
//! program of the root to qemu -> a copy of it -> apt installs the package there, the same way -> the README's blocks but those that build, pasted into
//! a shell of the root ([`inside`]).
//!
//! One of them needs a second way. Proot 5.1 does not translate paths of statx, by which `evener sum` looks at what it is given, so that it is told that
//! there is no such folder. That block goes to a shell of this machine, for which a stand-in runs the root's `evener` by qemu in a changed root
//! ([`STAND_IN`]); others would fail there, where a program of the root can start none. On armhf libc looks at every file by statx: nothing goes there.
//!
//! Needs root, the network, and Debian's debootstrap, proot and qemu-user-static.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use evener_testbed::{Block, write_program};

use super::fresh_debian::{archives, finish, is_root, trust};
use super::{Tally, packages};
use crate::tree::root;

/// Debian's name of the architecture, and who plays its processor.
const ARCHITECTURE: &str = "arm64";
const QEMU: &str = "qemu-aarch64-static";
const RELEASE: &str = "bookworm";
const NEEDED: [&str; 3] = ["debootstrap", "proot", QEMU];

/// What a block calls that proot cannot bear.
const NOT_UNDER_PROOT: &str = "evener sum";

pub(super) fn run(tally: &mut Tally) {
    let is_there =
        |name: &&&str| !Command::new(name).arg("--version").output().is_ok_and(|it| it.status.success());
    let missing: Vec<&str> = NEEDED.iter().filter(is_there).copied().collect();
    if !missing.is_empty() || !is_root() {
        let missing = [&["root"], &missing[..]].concat().join(", ");
        return tally.print(&format!("skipped: the README on a fresh Debian for ARM (needs {missing})"));
    }
    tally.begin(&format!("the README on a fresh {RELEASE} for {ARCHITECTURE}"));
    match Fresh::make() {
        Ok(fresh) => paste(tally, &fresh),
        Err(reason) if reason.contains("no tool chain") => {
            tally.print(&format!("skipped: the README on a fresh Debian for ARM ({reason})"));
        }
        Err(reason) => tally.fail(&format!("a fresh {RELEASE} for {ARCHITECTURE}: {reason}")),
    }
}

/// Pastes what the README says once it is installed.
fn paste(tally: &mut Tally, fresh: &Fresh) {
    let page = fs::read_to_string(root().join("README.md")).unwrap_or_default();
    for block in Block::all(&page).into_iter().filter(|block| block.not_run.is_none()) {
        let is_beside = block.commands.contains(NOT_UNDER_PROOT);
        let paste = if is_beside { Fresh::beside } else { Fresh::pasted };
        match paste(fresh, &block.commands) {
            Ok(text) if block.shows(&text) => tally.passed += 1,
            Ok(text) | Err(text) => {
                tally.print(&text);
                tally.fail(&format!("{ARCHITECTURE}: README.md:{}: {}", block.line, block.commands));
            }
        }
    }
}

/// A root with the package installed.
struct Fresh {
    root: PathBuf,
}

/// `$1` the root, `$2` who plays its processor, then a program of the root and its arguments.
const INSIDE: &str = "\
root=$1 qemu=$2; shift 2
exec proot -0 -q \"$qemu\" -r \"$root\" -b /dev -b /proc -b /sys -w / /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
DEBIAN_FRONTEND=noninteractive DEBOOTSTRAP_DIR=/debootstrap PATH=/usr/sbin:/usr/bin:/sbin:/bin \"$@\"";

/// The root's command in the folder that the caller stands in: to the emulator it is a file that it reads.
const STAND_IN: &str = "#!/bin/sh
HOME=/root exec unshare --root \"$ROOT\" --wd \"${PWD#\"$ROOT\"}\" -- /usr/bin/QEMU /usr/bin/evener \"$@\"
";

/// `$1` the root, `$2` the folder of the stand-in, `$3` what is pasted. The mount is of this shell's own.
const SESSION: &str = "\
mount -t proc proc \"$1/proc\" && cd \"$1/root\" && ROOT=$1 PATH=$2:$PATH exec sh -eu -c \"exec 2>&1
$3\"";

impl Fresh {
    fn make() -> Result<Self, String> {
        let folder = root().join("target/fresh");
        let base = folder.join(format!("{RELEASE}-{ARCHITECTURE}.base"));
        let fresh = Self { root: folder.join(format!("{RELEASE}-{ARCHITECTURE}")) };
        let package = packages::made(&root(), ARCHITECTURE)?;
        if !base.join("var/lib/dpkg/status").exists() || base.join("debootstrap").exists() {
            bootstrap(&base)?;
        }
        finish(Command::new("rm").args(["-rf", "--one-file-system"]).arg(&fresh.root))?;
        finish(Command::new("cp").args(["-ax", "--reflink=auto"]).arg(&base).arg(&fresh.root))?;
        let name = package.file_name().ok_or("a package without a name")?;
        let there = Path::new("/root").join(name);
        let copied = fs::copy(&package, fresh.root.join("root").join(name));
        copied.map_err(|error| format!("{}: {error}", package.display()))?;
        inside(&fresh.root, &["apt-get", "update"])?;
        let words =
            ["apt-get", "install", "-y", "--no-install-recommends", &there.display().to_string(), "openssl"];
        inside(&fresh.root, &words)?;
        Ok(fresh)
    }

    /// What these lines print together in a shell of the root; where they fail, with their status.
    fn pasted(&self, commands: &str) -> Result<String, String> {
        inside(&self.root, &["sh", "-eu", "-c", &format!("exec 2>&1; cd /root\n{commands}")])
    }

    /// The same in a shell of this machine, which finds the root's command.
    fn beside(&self, commands: &str) -> Result<String, String> {
        let place = tempfile::tempdir().map_err(|error| format!("no folder: {error}"))?;
        let text = STAND_IN.replace("QEMU", QEMU);
        let written = write_program(&place.path().join("evener"), text.as_bytes());
        written.map_err(|error| format!("a stand-in: {error}"))?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", SESSION, "sh"]);
        finish(command.arg(&self.root).arg(place.path()).arg(commands))
    }
}

/// The least of the release for the architecture.
fn bootstrap(base: &Path) -> Result<(), String> {
    finish(Command::new("rm").args(["-rf", "--one-file-system"]).arg(base))?;
    let architecture = format!("--arch={ARCHITECTURE}");
    let words = ["--foreign", &architecture, "--variant=minbase", RELEASE];
    finish(Command::new("debootstrap").args(words).arg(base))?;
    // It tries whether it may run programs, by one that it has just written: under proot that is no question.
    let script = base.join("debootstrap/debootstrap");
    let text = fs::read_to_string(&script).map_err(|error| format!("{}: {error}", script.display()))?;
    let text = text.replace("check_sane_mount \"", ": \"");
    fs::write(&script, text).map_err(|error| format!("{}: {error}", script.display()))?;
    // In some containers its first half leaves a link to itself there.
    finish(Command::new("sh").args(["-c", "rm -f \"$1/proc\"; mkdir -p \"$1/proc\"", "sh"]).arg(base))?;
    inside(base, &["sh", "/debootstrap/debootstrap", "--second-stage"])?;
    archives(RELEASE, base)?;
    trust(base)?;
    let emulator = Path::new("/usr/bin").join(QEMU);
    let copied = fs::copy(&emulator, base.join("usr/bin").join(QEMU));
    copied.map(|_| ()).map_err(|error| format!("{}: {error}", emulator.display()))
}

/// What a program of the root prints.
fn inside(root: &Path, words: &[&str]) -> Result<String, String> {
    let mut command = Command::new("sh");
    // The filter of calls that proot would set is one that qemu does not bear.
    command.env("PROOT_NO_SECCOMP", "1");
    finish(command.args(["-c", INSIDE, "sh"]).arg(root).arg(QEMU).args(words))
}
