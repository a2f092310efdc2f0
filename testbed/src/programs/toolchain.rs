//! Compilers for programs of a guest whose processor is another than the host's: packages unpacked, nothing installed.
//!
//! Steps: a version of rustc that the archives have as a standard library for the guest, too -> both, a C compiler
//! that links for the guest, and OpenSSL's headers, unpacked into one folder, which is the root of both compilers ->
//! [`Toolchain::cargo`], which builds with them, each call in the same folder beside theirs.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, at};
use crate::packages::apt::{self, Apt};
use crate::paths;
use crate::profile::{Cross, Profile};
use crate::programs::executable::write_program;

/// Unpacked compilers for one profile.
#[derive(Debug)]
pub struct Toolchain {
    target: &'static str,
    /// GNU's name for it.
    gnu: &'static str,
    folder: PathBuf,
    build: PathBuf,
    /// As Debian's archives know it: `:armhf`.
    architecture: &'static str,
    /// Package and version of rustc.
    pub rustc: String,
}

impl Toolchain {
    /// The compilers for `profile`, as [`Toolchain::fetch`] unpacked them.
    ///
    /// # Errors
    ///
    /// [`Error::NoToolchain`] where that was not done, or where the profile needs none: the host's programs run there.
    pub fn find(profile: Profile) -> Result<Self, Error> {
        Self::found(profile.facts().cross.ok_or(Error::NoToolchain)?)
    }

    fn found(cross: &Cross) -> Result<Self, Error> {
        let place = paths::root().join(cross.name);
        let folder = place.join("toolchain");
        let rustc = fs::read_to_string(folder.join(STAMP)).map_err(|_| Error::NoToolchain)?;
        let build = place.join("build");
        Ok(Self {
            target: cross.target,
            gnu: cross.gnu,
            folder,
            build,
            architecture: cross.architecture,
            rustc,
        })
    }

    /// Fetches and unpacks the compilers for `profile`, unless they are there.
    ///
    /// # Errors
    ///
    /// [`Error::Packages`] where the archives have no rustc of one version for both; [`Error::NoToolchain`] as of
    /// [`Toolchain::find`].
    pub fn fetch(profile: Profile) -> Result<Self, Error> {
        let cross = profile.facts().cross.ok_or(Error::NoToolchain)?;
        if let Ok(there) = Self::found(cross) {
            return Ok(there);
        }
        let folder = paths::root().join(cross.name).join("toolchain");
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| at(&folder, error))?;
        }
        let apt = Apt::with_new_lists(cross.architecture)?;
        let (rustc, version) = choose(&apt, cross)?;
        let standard =
            format!("{}-dev{}={version}", rustc.replace("rustc", "libstd-rust"), cross.architecture);
        for package in apt.download(&packages(&apt, cross, &rustc, &version)?)? {
            apt::unpack(&package, &folder, &[])?;
        }
        let libraries = cross.libraries.iter().map(|&name| name.to_owned());
        for package in apt.download(&libraries.chain([standard]).collect::<Vec<_>>())? {
            apt::unpack(&package, &folder, &[])?;
        }
        write_program(&folder.join("rustc"), RUSTC.as_bytes())?;
        write_program(&folder.join("cc"), CC.replace("GNU", cross.gnu).as_bytes())?;
        paths::write_whole(&folder.join(STAMP), format!("{rustc} {version}").as_bytes())?;
        Self::found(cross)
    }

    /// The same with the sources of the standard library beside rustc, for what is built with one of its own; fetched unless they are there.
    ///
    /// # Errors
    ///
    /// [`Error::Program`] where the archives do not have them.
    pub fn with_sources(self) -> Result<Self, Error> {
        if self.folder.join("usr/lib/rustlib/src/rust/library").exists() {
            return Ok(self);
        }
        let (package, version) = self.rustc.split_once(' ').unwrap_or((&self.rustc, ""));
        // rustc-web's are those of rust-web-src.
        let name = format!("{}-src={version}", package.replacen("rustc", "rust", 1));
        let apt = Apt::with_new_lists(self.architecture)?;
        let parts =
            ["./usr/src/*/library/*", "./usr/src/*/Cargo.*", "./usr/lib/rustlib/*"].map(str::to_owned);
        for package in apt.download(&[name])? {
            apt::unpack(&package, &self.folder, &parts)?;
        }
        Ok(self)
    }

    /// The folder that is the root of both compilers, with the libraries of the guest that programs were linked to.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.folder
    }

    /// The compiler, which builds for this machine too.
    #[must_use]
    pub fn compiler(&self) -> PathBuf {
        self.folder.join("rustc")
    }

    /// Rust's name of what it builds for.
    #[must_use]
    pub const fn target(&self) -> &'static str {
        self.target
    }

    /// GNU's, by which Debian also calls the folders of its libraries.
    #[must_use]
    pub const fn gnu(&self) -> &'static str {
        self.gnu
    }

    /// A program beside the C compiler: `strip`.
    #[must_use]
    pub fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(self.folder.join("usr/bin").join(format!("{}-{name}", self.gnu)));
        command.env("LD_LIBRARY_PATH", self.folder.join("usr/lib/x86_64-linux-gnu"));
        command
    }

    /// The C compiler, which also links.
    #[must_use]
    pub fn cc(&self) -> PathBuf {
        self.folder.join("cc")
    }

    /// `cargo`, to build for the guest in a folder of its own, without what debuggers need: guests unpack programs into
    /// memory.
    #[must_use]
    pub fn cargo(&self, cargo: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(cargo);
        let (snake, upper) = (self.target.replace('-', "_"), self.target.replace('-', "_").to_uppercase());
        let linker = format!("CARGO_TARGET_{upper}_LINKER");
        command.current_dir(paths::workspace());
        command.env("CARGO_BUILD_TARGET", self.target).env("CARGO_TARGET_DIR", &self.build);
        command.env("RUSTC", self.folder.join("rustc")).env(linker, self.cc());
        // For the bindings of libssl, which compile a header to see which release it is of.
        command.env(format!("CC_{snake}"), self.cc());
        command.env(format!("{upper}_OPENSSL_INCLUDE_DIR"), self.folder.join("usr/include"));
        command.env(format!("{upper}_OPENSSL_LIB_DIR"), self.folder.join("usr/lib").join(self.gnu));
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        // The program that started us may have been told of other compilers.
        for other in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "RUSTUP_TOOLCHAIN",
        ] {
            command.env_remove(other);
        }
        command
    }

    /// What runs a program of this toolchain on the host: a processor that QEMU emulates, with these libraries.
    #[must_use]
    pub fn emulation(&self, emulator: &str) -> String {
        let root = self.folder.display();
        format!("{emulator} -L {root}/usr/{0} -E LD_LIBRARY_PATH={root}/usr/lib/{0}", self.gnu)
    }

    /// The folder of what cargo built by its profile `dev`.
    #[must_use]
    pub fn built(&self) -> PathBuf {
        self.build.join(self.target).join("debug")
    }

    /// The folder of what cargo built by its profile `release`.
    #[must_use]
    pub fn built_with_optimisation(&self) -> PathBuf {
        self.build.join(self.target).join("release")
    }
}

/// Written last: package and version of rustc.
const STAMP: &str = "ready";

/// rustc takes for its own the standard libraries beside the library that it is loaded from.
const RUSTC: &str = "#!/bin/sh
here=$(dirname \"$0\")
LD_LIBRARY_PATH=$here/usr/lib/x86_64-linux-gnu exec \"$here/usr/bin/rustc\" \"$@\"
";
const CC: &str = "#!/bin/sh
here=$(dirname \"$0\")
LD_LIBRARY_PATH=$here/usr/lib/x86_64-linux-gnu exec \"$here/usr/bin/GNU-gcc\" --sysroot=\"$here\" \"$@\"
";

/// The rustc that was tried if the archives still have it for both; else the newest that is enough for us.
fn choose(apt: &Apt, cross: &Cross) -> Result<(String, String), Error> {
    let (tried, tried_version) = cross.rustc;
    let mut found = Vec::new();
    for name in [tried, "rustc", "rustc-web"] {
        let standard = format!("{}-dev{}", name.replace("rustc", "libstd-rust"), cross.architecture);
        let theirs = apt.versions(&standard)?;
        let both = apt.versions(name)?.into_iter().filter(|version| theirs.contains(version));
        found.extend(both.filter(|version| is_enough(version)).map(|version| (name.to_owned(), version)));
    }
    let is_tried = |(_, version): &&(String, String)| version == tried_version;
    let absent = || {
        let least = env!("CARGO_PKG_RUST_VERSION");
        Error::Packages(format!(
            "no rustc from {least} on is in the archives together with its library for {}",
            cross.target
        ))
    };
    found.iter().find(is_tried).or_else(|| found.first()).cloned().ok_or_else(absent)
}

/// Whether a package's version, as `1.85.0+dfsg3-1`, is one that builds us.
fn is_enough(version: &str) -> bool {
    let numbers = |text: &str| {
        let mut parts = text.split(['.', '+', '-', '~']).map(|part| part.parse::<u32>().ok());
        Some((parts.next()??, parts.next()??))
    };
    numbers(version) >= numbers(env!("CARGO_PKG_RUST_VERSION"))
}

/// `rustc` of this version and the C compiler, with what they depend on and a host need not have: its own C compiler has
/// brought the rest.
fn packages(apt: &Apt, cross: &Cross, rustc: &str, version: &str) -> Result<Vec<String>, Error> {
    let rust = rust_packages(rustc, version);
    // Asked about the last alone: what others depend on is told of their newest version.
    let roots: Vec<String> =
        cross.compilers.iter().map(|&name| name.to_owned()).chain(rust.last().cloned()).collect();
    let named = apt.with_dependencies(&roots)?;
    let ours = |name: &String| ["libllvm", "-cross", cross.gnu].iter().any(|part| name.contains(part));
    Ok(named.into_iter().filter(ours).chain(rust).collect())
}

/// The compiler, the host's standard library, and the shared library that the compiler is.
fn rust_packages(rustc: &str, version: &str) -> Vec<String> {
    let standard = rustc.replace("rustc", "libstd-rust");
    let release = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    [rustc.to_owned(), format!("{standard}-dev"), format!("{standard}-{release}")]
        .map(|name| format!("{name}={version}"))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_older_than_ours_is_not_enough() {
        assert!(is_enough("1.85.0+dfsg3-1~deb12u3") && is_enough("1.90.0-1") && is_enough("2.0.0"));
        assert!(!is_enough("1.84.9-1") && !is_enough("1.9.0-1") && !is_enough(""));
    }

    #[test]
    fn packages_of_one_compiler_have_one_version() {
        let expected =
            ["rustc-web=1.85.0+d-1", "libstd-rust-web-dev=1.85.0+d-1", "libstd-rust-web-1.85=1.85.0+d-1"];
        assert_eq!(rust_packages("rustc-web", "1.85.0+d-1"), expected);
    }
}
