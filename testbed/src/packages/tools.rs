//! Programs of the host that setting up needs: fetched like everything else, so that none has to be installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::packages::apt::{self, Apt};
use crate::paths;
use crate::profile::Profile;

/// Unpacked programs.
pub(crate) struct Tools {
    /// The guest's busybox.
    pub(crate) busybox: PathBuf,
    /// One that runs here.
    host_busybox: PathBuf,
    xz: PathBuf,
}

/// Where a package has it: below `bin`, from Debian 13 on below `usr/bin`.
const BUSYBOX: &str = "*bin/busybox";

fn busybox_below(folder: &Path) -> PathBuf {
    let merged = folder.join("usr/bin/busybox");
    if merged.exists() { merged } else { folder.join("bin/busybox") }
}

impl Tools {
    /// Where they are unpacked to.
    pub(crate) fn unpacked(profile: Profile) -> Self {
        let folder = paths::root().join("tools");
        let host_busybox = busybox_below(&folder);
        let foreign = || busybox_below(&profile.folder().join("busybox"));
        let is_foreign = !profile.facts().architecture.is_empty();
        let busybox = if is_foreign { foreign() } else { host_busybox.clone() };
        Self { busybox, host_busybox, xz: folder.join("usr/bin/xz") }
    }

    /// Fetches and unpacks them.
    pub(crate) fn fetch(apt: &Apt, profile: Profile) -> Result<Self, Error> {
        let folder = paths::folder("tools")?;
        let packages = apt.download(&["busybox-static", "xz-utils"])?;
        apt::unpack(&packages[0], &folder, &[BUSYBOX.to_owned()])?;
        apt::unpack(&packages[1], &folder, &["./usr/bin/xz".to_owned()])?;
        let architecture = profile.facts().architecture;
        if !architecture.is_empty() {
            let package = apt.download(&[&format!("busybox-static{architecture}")])?.remove(0);
            apt::unpack(&package, &profile.folder().join("busybox"), &[BUSYBOX.to_owned()])?;
        }
        for package in apt.download(profile.facts().userland)? {
            apt::unpack(&package, &profile.userland(), &[])?;
        }
        Ok(Self::unpacked(profile))
    }

    /// One of busybox's commands.
    pub(crate) fn busybox(&self, applet: &str) -> Command {
        let mut command = Command::new(&self.host_busybox);
        command.arg(applet);
        command
    }

    /// A command that unpacks xz. busybox's refuses the filter that kernels are packed with (tried: 1.35).
    pub(crate) fn xz(&self) -> Command {
        let mut command = Command::new(&self.xz);
        // Behind the stream lies more of the image.
        command.args(["--decompress", "--stdout", "--single-stream"]);
        command
    }

    /// A command that unpacks the files that it is given, which it replaces.
    pub(crate) fn unxz(&self) -> Command {
        let mut command = Command::new(&self.xz);
        command.args(["--decompress", "--threads=0"]);
        command
    }

    /// Names of busybox's commands.
    pub(crate) fn applets(&self) -> Result<Vec<String>, Error> {
        let output = apt::succeed("busybox", &mut self.busybox("--list"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().filter(|name| *name != "busybox").map(str::to_owned).collect())
    }
}
