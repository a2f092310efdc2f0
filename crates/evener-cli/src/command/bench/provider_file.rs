//! The provider's file that a measurement loads into other programs.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::openssl::system;
use crate::terminal::PathDisplay;

/// The one that the user named, whole, for programs have folders of their own.
pub(in crate::command) fn named(path: &Path) -> anyhow::Result<PathBuf> {
    std::fs::canonicalize(path).with_context(|| format!("cannot find the provider {}", PathDisplay(path)))
}

/// The one beside this command, else the one in the system's OpenSSL; `otherwise` ends the sentence that tells what to do where there is none.
pub(in crate::command) fn beside_or_installed(program: &Path, otherwise: &str) -> anyhow::Result<PathBuf> {
    let beside = program.with_file_name("evener.so");
    let installed = || system::modules_directory().map(|folder| folder.join("evener.so"));
    let found = if beside.is_file() { beside } else { installed()? };
    if !found.is_file() {
        bail!(
            "there is no evener.so beside this command or in the system's OpenSSL: name it by --module{otherwise}"
        );
    }
    Ok(found)
}
