//! The README's sessions on a Debian for ARM that has nothing yet, with the package for it, in the test bed's guest.
//!
//! Path of an architecture: `cargo xtask deb` -> debootstrap unpacks a root below `target/fresh`, once -> the guest has it in its memory ([`AT`]), where it runs
//! debootstrap's second half, once -> apt installs the package, without a network -> the README's blocks but those that build, pasted into a shell of
//! that root ([`Fresh::shell`]).
//! Needs root, debootstrap, the network and the test bed's guest and tool chain of that processor.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use evener_testbed::{Block, Error, Guest, Module, Profile};

use super::fresh_debian::{debootstrap_is_here, finish, is_root, judge};
use super::{Tally, packages};
use crate::tree::root;

const RELEASE: &str = "bookworm";

/// An architecture, and the guest that runs its programs.
struct Arm {
    /// As Debian calls it.
    name: &'static str,
    profile: Profile,
    /// Blocks that hold these words are not for it, with the reason.
    not_here: &'static [(&'static str, &'static str)],
}

const ARMS: [Arm; 2] = [
    Arm { name: "arm64", profile: Profile::Aarch64, not_here: &[] },
    Arm {
        name: "armhf",
        profile: Profile::Armv7,
        not_here: &[(
            "EVENER_KERNELS=on",
            "Evener has no kernels for ARMv7, and its table of requests stays empty",
        )],
    },
];

/// What the package depends on and what the README calls: apt asks no archive in the guest.
const INCLUDED: &str = "--include=libssl3,openssl";

/// An emulated processor takes minutes for what another system configures in seconds.
const GUEST_LIFE: Duration = Duration::from_secs(3_600);
/// A root, a package and files of the sessions take 400 of it.
const MEMORY_MIB: u32 = 1_536;

/// Where the root lies in the guest. Over the folder that the host shows, each program would take minutes to start.
const AT: &str = "/fresh";
/// Roots as the host's folder keeps them: of which nothing has run yet, and whole.
const UNPACKED: &str = "unpacked.tar";
const WHOLE: &str = "whole.tar";

pub(super) fn run(tally: &mut Tally) {
    for arm in &ARMS {
        let step = format!("the README on a fresh {RELEASE} for {}", arm.name);
        if !is_root() || !debootstrap_is_here() {
            tally.print(&format!("skipped: {step} (needs root and the package debootstrap)"));
            continue;
        }
        tally.begin(&step);
        match Fresh::make(arm) {
            Ok(fresh) => paste(tally, arm, fresh),
            Err(reason) if reason.contains("no tool chain") || reason.contains(NOT_UP) => {
                tally.print(&format!("skipped: {step} ({reason})"));
            }
            Err(reason) => tally.fail(&format!("a fresh {RELEASE} for {}: {reason}", arm.name)),
        }
    }
}

/// Pastes what the README says once it is installed.
fn paste(tally: &mut Tally, arm: &Arm, mut fresh: Fresh) {
    let page = fs::read_to_string(root().join("README.md")).unwrap_or_default();
    for block in Block::all(&page).into_iter().filter(|block| block.not_run.is_none()) {
        if let Some((_, why)) = arm.not_here.iter().find(|(words, _)| block.commands.contains(words)) {
            tally.print(&format!("skipped: {}: README.md:{}: {why}", arm.name, block.line));
            continue;
        }
        let outcome = fresh.shell(&block.commands).map(|text| (block.shows(&text), text));
        judge(tally, &format!("{}: README.md:{}", arm.name, block.line), &block.commands, outcome);
    }
    if let Err(error) = fresh.guest.shut_down() {
        tally.fail(&format!("the guest for {}: {error}", arm.name));
    }
}

/// A root with the package installed, in the guest that runs its programs.
struct Fresh {
    guest: Guest,
    /// Which the guest sees at /share.
    folder: PathBuf,
}

/// How a reason begins for which a guest is only skipped.
const NOT_UP: &str = "no guest: ";

impl Fresh {
    fn make(arm: &Arm) -> Result<Self, String> {
        let folder = root().join("target/fresh").join(arm.name);
        let package = packages::made(&root(), arm.name)?;
        let has = |name: &str| folder.join(name).exists();
        if !has(WHOLE) && !has(UNPACKED) {
            unpack(arm, &folder)?;
        }
        let is_whole = has(WHOLE);
        let builder = Guest::builder().profile(arm.profile).module(Module::None).memory_mib(MEMORY_MIB);
        let guest = builder.share(&folder).limit(GUEST_LIFE).boot().map_err(|error| reason(&error))?;
        let mut fresh = Self { guest, folder };
        let from = if is_whole { WHOLE } else { UNPACKED };
        fresh.run(&format!(
            "mkdir {AT} && mount -t tmpfs -o size=1g root {AT} && tar xf /share/{from} -C {AT}"
        ))?;
        if !is_whole {
            fresh.inside("/debootstrap/debootstrap --second-stage")?;
            let keep = format!(
                "for place in proc sys dev run; do umount -l {AT}/$place; done; tar cf /share/{WHOLE}.part -C {AT} . && mv /share/{WHOLE}.part /share/{WHOLE}"
            );
            fresh.run(&keep)?;
        }
        fresh.install(&package)?;
        Ok(fresh)
    }

    fn install(&mut self, package: &Path) -> Result<(), String> {
        let name = package.file_name().ok_or("a package without a name")?.to_string_lossy().into_owned();
        let copied = fs::copy(package, self.folder.join(&name));
        copied.map_err(|error| format!("{}: {error}", package.display()))?;
        self.run(&format!("cp /share/{name} {AT}/root"))?;
        self.shell(&format!("apt-get install -y --no-install-recommends ./{name}")).map(drop)
    }

    /// What these lines print together in a shell of the root; where they fail, with their status.
    fn shell(&mut self, commands: &str) -> Result<String, String> {
        let script = self.folder.join("pasted");
        let written = fs::write(&script, format!("exec 2>&1\ncd /root\n{commands}\n"));
        written.map_err(|error| format!("{}: {error}", script.display()))?;
        self.run(&format!("cp /share/pasted {AT}/tmp"))?;
        self.inside("sh -eu /tmp/pasted")
    }

    /// What a command of the root prints.
    fn inside(&mut self, command: &str) -> Result<String, String> {
        self.run(&ENTER.replace("ROOT", AT).replace("COMMAND", command))
    }

    /// What a line prints in a shell of the guest's.
    fn run(&mut self, line: &str) -> Result<String, String> {
        let outcome = self.guest.run(line).map_err(|error| error.to_string())?;
        let text = outcome.stdout + &outcome.stderr;
        if outcome.status == 0 { Ok(text) } else { Err(format!("status {}: {text}", outcome.status)) }
    }
}

/// What of the guest's own a program of the root sees, from its first one on, and the program.
const ENTER: &str = "\
[ -e ROOT/proc/self ] || {
    mount -t proc proc ROOT/proc && mount -t sysfs sys ROOT/sys && mount --rbind /dev ROOT/dev &&
        mount -t tmpfs run ROOT/run || exit
}
exec chroot ROOT /usr/bin/env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin COMMAND";

/// Unpacks the least of the release, of which nothing has run yet, and packs it into one file for the guest.
fn unpack(arm: &Arm, folder: &Path) -> Result<(), String> {
    let base = folder.join("base");
    finish(Command::new("rm").args(["-rf", "--one-file-system"]).arg(&base))?;
    let words = ["--foreign", &format!("--arch={}", arm.name), "--variant=minbase", INCLUDED, RELEASE];
    finish(Command::new("debootstrap").args(words).arg(&base))?;
    // It tries whether it may make devices: these are the guest's own.
    let script = base.join("debootstrap/debootstrap");
    let text = fs::read_to_string(&script).map_err(|error| format!("{}: {error}", script.display()))?;
    let text = text.replace("check_sane_mount \"", ": \"");
    fs::write(&script, text).map_err(|error| format!("{}: {error}", script.display()))?;
    // In some containers its first half leaves a link there.
    finish(Command::new("sh").args(["-c", "rm -f \"$1/proc\"; mkdir -p \"$1/proc\"", "sh"]).arg(&base))?;
    let part = folder.join("unpacked.part");
    finish(Command::new("tar").arg("-cf").arg(&part).arg("-C").arg(&base).arg("."))?;
    finish(Command::new("rm").args(["-rf", "--one-file-system"]).arg(&base))?;
    fs::rename(&part, folder.join(UNPACKED)).map_err(|error| format!("{}: {error}", part.display()))
}

/// Why there is no guest: where it is only absent, in words that [`run`] knows.
fn reason(error: &Error) -> String {
    if error.is_absence() { format!("{NOT_UP}{error}") } else { error.to_string() }
}
