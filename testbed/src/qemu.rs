//! Which QEMU there is, what it can do, and how a guest is started with it.
//!
//! QEMU 8 and newer have throttles and counters of the module and serve vhost-user modules; 7.2, Debian 12's own, has the
//! built-in module only (7.2.22 crashes with vhost-user-crypto: measured). So `up` unpacks the one of the backports.

use std::path::PathBuf;
use std::process::Command;

use crate::error::Error;
use crate::packages::apt::{self, Apt};
use crate::paths;
use crate::profile::Profile;

/// First version with throttles, counters and usable vhost-user modules.
const FULL: (u32, u32) = (8, 0);

/// A QEMU that starts.
#[derive(Clone, Debug)]
pub(crate) struct Qemu {
    program: PathBuf,
    /// Folder below which it was unpacked, if it was.
    unpacked: Option<PathBuf>,
    pub(crate) version: (u32, u32),
}

impl Qemu {
    /// The one that `up` unpacked, else the installed one.
    ///
    /// # Errors
    ///
    /// [`Error::NoQemu`] where there is none that starts.
    pub(crate) fn find(profile: Profile) -> Result<Self, Error> {
        let (_, name) = profile.facts().qemu;
        let folder = paths::root().join("qemu");
        let unpacked = folder.join("usr/bin").join(name);
        let ours = unpacked.is_file().then_some((unpacked, Some(folder)));
        let installed = paths::on_path(name).map(|program| (program, None));
        let both = [ours, installed].into_iter().flatten();
        let started =
            both.filter_map(|(program, unpacked)| Self { program, unpacked, version: (0, 0) }.with_version());
        started.max_by_key(|qemu| qemu.version).ok_or(Error::NoQemu)
    }

    /// Whether it has throttles, counters and vhost-user modules.
    pub(crate) fn is_full(&self) -> bool {
        self.version >= FULL
    }

    /// What is lost with it, for people.
    pub(crate) fn lost(&self) -> Option<String> {
        let (major, minor) = self.version;
        let without =
            "without throttles, counters of the module and vhost-user modules, which QEMU 8 and newer have";
        (!self.is_full()).then(|| format!("QEMU {major}.{minor}: {without}"))
    }

    /// Fails with [`Error::OldQemu`] where it has not all that newer ones have.
    pub(crate) fn must_be_full(&self, what: &'static str) -> Result<(), Error> {
        let (major, minor) = self.version;
        match self.is_full() {
            true => Ok(()),
            false => Err(Error::OldQemu { what, version: format!("{major}.{minor}") }),
        }
    }

    /// A command that starts it, without arguments of a guest.
    pub(crate) fn command(&self) -> Command {
        self.with_libraries(Command::new(&self.program))
    }

    /// The same, killed after `limit_s` seconds, and when its standard input ends: it is not there longer than the process that
    /// started it, however that ended. It must be the first of its process group.
    pub(crate) fn bounded_command(&self, limit_s: u64) -> Command {
        const TIED: &str = r#"exec 3<&0; { read -r end <&3; kill -KILL 0; } & exec "$@" 3<&- </dev/null"#;
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", &limit_s.to_string(), "sh", "-c", TIED, "sh"]).arg(&self.program);
        self.with_libraries(command)
    }

    fn with_libraries(&self, mut command: Command) -> Command {
        if let Some(folder) = &self.unpacked {
            let libraries =
                ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|path| folder.join(path));
            command.env("LD_LIBRARY_PATH", std::env::join_paths(libraries).expect("no colon in these paths"));
            for data in ["usr/share/qemu", "usr/share/seabios"] {
                command.arg("-L").arg(folder.join(data));
            }
        }
        command
    }

    fn with_version(mut self) -> Option<Self> {
        let output = self.command().arg("--version").output().ok()?;
        self.version = version(&String::from_utf8_lossy(&output.stdout))?;
        Some(self)
    }
}

/// 10 and 0 of `QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split("version ").nth(1)?.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// What guests of `profile` lack, in a sentence for people: nothing with QEMU 8 and newer.
#[must_use]
pub fn lost(profile: Profile) -> Option<String> {
    Qemu::find(profile).ok()?.lost()
}

/// Gets a QEMU if there is none, or a better one if the backports have it.
pub(crate) fn prepare(apt: &Apt, profile: Profile) -> Result<Qemu, Error> {
    if let Ok(qemu) = Qemu::find(profile) {
        if qemu.is_full() {
            return Ok(qemu);
        }
    }
    let (package, _) = profile.facts().qemu;
    let packages = apt
        .download_with_dependencies(package, &apt.backports)
        .or_else(|_| apt.download_with_dependencies(package, &apt.release))?;
    let folder = paths::root().join("qemu");
    for package in packages {
        apt::unpack(&package, &folder, &[])?;
    }
    Qemu::find(profile)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use super::*;
    use crate::write_program;

    /// A program in `folder` that says just this, taken for a QEMU.
    pub(crate) fn qemu_that_says(folder: &Path, text: &str) -> Qemu {
        let program = folder.join("qemu-system-x86_64");
        write_program(&program, format!("#!/bin/sh\necho '{text}'\n").as_bytes()).unwrap();
        Qemu { program, unpacked: None, version: (0, 0) }.with_version().unwrap()
    }

    #[test]
    fn an_old_qemu_is_reported_with_what_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let old =
            qemu_that_says(folder.path(), "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)");
        let lost = old.lost().unwrap();
        assert!(lost.starts_with("QEMU 7.2: without throttles") && lost.contains("vhost-user"), "{lost}");
        assert!(
            matches!(old.must_be_full("throttle"), Err(Error::OldQemu { version, .. }) if version == "7.2")
        );
        let new = qemu_that_says(folder.path(), "QEMU emulator version 8.0.0");
        assert!(new.lost().is_none() && new.must_be_full("throttle").is_ok());
    }

    #[test]
    fn versions_are_read_as_debian_prints_them() {
        assert_eq!(
            version("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright"),
            Some((7, 2))
        );
        assert_eq!(
            version("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)"),
            Some((10, 0))
        );
        assert_eq!(version("no such thing"), None);
    }
}
