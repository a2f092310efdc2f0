//! The directories of the system's OpenSSL, as `openssl version` prints them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// Where it looks for providers.
pub(crate) fn modules_directory() -> anyhow::Result<PathBuf> {
    directory_of("-m", "MODULESDIR")
}

/// The configuration that it reads where `OPENSSL_CONF` names none.
pub(crate) fn configuration() -> anyhow::Result<PathBuf> {
    Ok(directory_of("-d", "OPENSSLDIR")?.join("openssl.cnf"))
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
