//! The system's OpenSSL: its directories, as `openssl version` prints them, and how the system leads programs to a configuration.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// Systems by how their programs find a configuration of OpenSSL's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    /// Services and sessions get an environment from systemd's drop-ins.
    Systemd,
    /// There is no environment for all services; openssl.cnf includes what lies in [`OPENWRT_FRAGMENTS`], and `/etc/config/openssl` switches it on.
    OpenWrt,
    /// A service has its environment from its file in `/etc/conf.d`, a session from `/etc/profile.d`.
    Alpine,
}

/// What OpenWrt's openssl.cnf includes (its package libopenssl-conf).
pub(crate) const OPENWRT_FRAGMENTS: &str = "/etc/ssl/modules.cnf.d";

impl System {
    /// What the root of a system shows.
    pub(crate) fn below(root: &Path) -> Self {
        match root {
            root if root.join("etc/openwrt_release").exists() => Self::OpenWrt,
            root if root.join("etc/alpine-release").exists() => Self::Alpine,
            _ => Self::Systemd,
        }
    }

    /// Where its OpenSSL looks for providers. OpenWrt and Alpine have it in one place, and not always the command that says so.
    pub(crate) fn modules_directory(self) -> anyhow::Result<PathBuf> {
        match self {
            Self::Systemd => directory_of("-m", "MODULESDIR"),
            Self::OpenWrt | Self::Alpine => Ok("/usr/lib/ossl-modules".into()),
        }
    }

    /// The configuration that its OpenSSL reads where `OPENSSL_CONF` names none.
    pub(crate) fn configuration(self) -> anyhow::Result<PathBuf> {
        match self {
            Self::Systemd => Ok(directory_of("-d", "OPENSSLDIR")?.join("openssl.cnf")),
            Self::OpenWrt | Self::Alpine => Ok("/etc/ssl/openssl.cnf".into()),
        }
    }
}

/// Where this machine's looks for providers.
pub(crate) fn modules_directory() -> anyhow::Result<PathBuf> {
    System::below(Path::new("/")).modules_directory()
}

/// The configuration that this machine's reads where `OPENSSL_CONF` names none.
pub(crate) fn configuration() -> anyhow::Result<PathBuf> {
    System::below(Path::new("/")).configuration()
}

/// The value in an answer such as `MODULESDIR: "/usr/lib/ossl-modules"`.
fn directory_of(option: &str, name: &str) -> anyhow::Result<PathBuf> {
    let mut command = Command::new("openssl");
    // The answer was decided when it was built; the configuration may be broken, so none is read.
    command.args(["version", option]).env("OPENSSL_CONF", "/dev/null").stdin(Stdio::null());
    let output =
        command.output().context("cannot start the command openssl, which knows where its modules are")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    match value.map(|value| value.trim().trim_matches('"')) {
        Some(value) if value.starts_with('/') => Ok(value.into()),
        _ => bail!("`openssl version {option}` did not say {name}: Evener needs OpenSSL 3.0 or newer"),
    }
}
