//! What is built for: this machine, or a board by a tool chain of its own (`testbed`'s, unpacked from Debian's packages).
//!
//! A package is built in a folder of its own, with the paths of this machine taken out: the same commit gives the same bytes elsewhere, by the
//! same compiler.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use evener_testbed::{Profile, Toolchain};

use crate::programs::{answer, output_of};
use crate::tree::{cargo, root};

/// What is built for, and how.
pub(super) struct Target {
    /// `None`: this machine.
    toolchain: Option<Toolchain>,
    /// `arm64`; `None`: this machine's.
    architecture: Option<String>,
    /// Whether it is for other machines, and not to be installed on this one.
    is_packed: bool,
}

impl Target {
    /// This machine, as it is installed on.
    pub(super) const fn installed() -> Self {
        Self { toolchain: None, architecture: None, is_packed: false }
    }

    /// Machines like this one.
    pub(super) const fn like_this() -> Self {
        Self { toolchain: None, architecture: None, is_packed: true }
    }

    /// Those of Debian's architecture of this name; what builds for others is fetched the first time.
    pub(super) fn of(architecture: &str) -> Result<Self, String> {
        let this = Self::like_this();
        let toolchain = match architecture {
            name if this.architecture()? == name => return Ok(this),
            "arm64" => Toolchain::fetch(Profile::Aarch64),
            "armhf" => Toolchain::fetch(Profile::Armv7),
            other => return Err(format!("{other}: packages are built for amd64, arm64 and armhf")),
        };
        let toolchain = toolchain.map_err(|error| format!("no tool chain for {architecture}: {error}"))?;
        Ok(Self { toolchain: Some(toolchain), architecture: Some(architecture.to_owned()), is_packed: true })
    }

    pub(super) const fn is_this_machine(&self) -> bool {
        self.toolchain.is_none()
    }

    /// As Debian calls it.
    pub(super) fn architecture(&self) -> Result<String, String> {
        self.architecture.clone().map_or_else(|| output_of("dpkg", &["--print-architecture"]), Ok)
    }

    /// The folder of its libraries: `/usr/lib/aarch64-linux-gnu`.
    pub(super) fn libraries(&self) -> Result<PathBuf, String> {
        let name = match &self.toolchain {
            Some(toolchain) => toolchain.gnu().to_owned(),
            None => output_of("cc", &["-print-multiarch"])?,
        };
        Ok(Path::new("/usr/lib").join(name))
    }

    /// Where its OpenSSL looks for providers.
    pub(super) fn modules(&self) -> Result<PathBuf, String> {
        if self.is_this_machine() {
            super::modules_directory()
        } else {
            Ok(self.libraries()?.join("ossl-modules"))
        }
    }

    /// What cargo calls it.
    pub(super) fn triple(&self) -> Result<String, String> {
        if let Some(toolchain) = &self.toolchain {
            return Ok(toolchain.target().to_owned());
        }
        let verbose = output_of("rustc", &["-vV"])?;
        let host = verbose.lines().find_map(|line| line.strip_prefix("host: "));
        host.map(str::to_owned).ok_or_else(|| "rustc names no host".to_owned())
    }

    /// Cargo, to build for it.
    pub(super) fn cargo(&self) -> Command {
        let mut command = match &self.toolchain {
            Some(toolchain) => toolchain.cargo(cargo().get_program()),
            None => cargo(),
        };
        if self.is_packed {
            command.env("RUSTFLAGS", without_paths());
            command.env("CARGO_INCREMENTAL", "0");
            let place = self.toolchain.as_ref().map_or("here", Toolchain::gnu);
            command.env("CARGO_TARGET_DIR", root().join("target/deb/build").join(place));
        }
        command
    }

    /// The C compiler.
    pub(super) fn cc(&self) -> Command {
        self.toolchain.as_ref().map_or_else(|| Command::new("cc"), |toolchain| Command::new(toolchain.cc()))
    }

    pub(super) fn strip(&self) -> Command {
        self.toolchain.as_ref().map_or_else(|| Command::new("strip"), |toolchain| toolchain.tool("strip"))
    }
}

/// Flags that take this machine's paths out of what is built.
pub(super) fn without_paths() -> String {
    let of = |name: &str| env::var_os(name).map(PathBuf::from);
    let home = of("CARGO_HOME").or_else(|| Some(of("HOME")?.join(".cargo")));
    let home = home.map(|home| format!("--remap-path-prefix={}=/cargo ", home.display()));
    // The last that fits counts.
    format!("{}--remap-path-prefix={}=/evener", home.unwrap_or_default(), root().display())
}

/// The newest version of the C library that a symbol of these files asks for: `2.34`.
pub(super) fn libc_of(files: &[PathBuf]) -> Result<String, String> {
    let mut readelf = Command::new("readelf");
    readelf.args(["--wide", "--version-info"]).args(files).env("LC_ALL", "C");
    newest(&answer(readelf)?).ok_or_else(|| "no file names a version of the C library".to_owned())
}

fn newest(report: &str) -> Option<String> {
    let words = report.split_whitespace().filter_map(|word| word.strip_prefix("GLIBC_"));
    let numbers =
        |version: &str| version.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u32>>>();
    let versions = words.filter_map(|version| Some((numbers(version)?, version)));
    versions.max().map(|(_, version)| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_found_by_numbers_and_not_by_letters() {
        let report = "  0x0010:   Name: GLIBC_2.9  Flags: none\n  0x0020: Name: GLIBC_2.34 Flags\n Name: GLIBC_PRIVATE";
        assert_eq!(newest(report).as_deref(), Some("2.34"));
        assert_eq!(newest("Name: GCC_3.0"), None);
    }
}
