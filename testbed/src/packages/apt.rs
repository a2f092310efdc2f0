//! Packages of the distribution, fetched and unpacked without rights and without a change to the system.
//!
//! Steps: the system's own archives are written down anew, with backports besides -> apt reads their lists into
//! `target/testbed/apt` -> packages are downloaded into `target/testbed/packages` -> `dpkg-deb` unpacks them.
//! apt checks signatures as always.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::error::{Error, at};
use crate::paths;

mod sources;

/// apt with lists of its own.
pub(crate) struct Apt {
    folder: PathBuf,
    packages: PathBuf,
    /// With commas between them.
    architectures: String,
    /// Names of the distribution's release and of its backports, as in `bookworm-backports`.
    pub(crate) backports: String,
    pub(crate) release: String,
}

impl Apt {
    /// Reads the lists of packages anew, for this machine's architecture and a foreign one: empty or as `:armhf`.
    ///
    /// # Errors
    ///
    /// [`Error::Program`] where there is no apt or its lists cannot be had.
    pub(crate) fn with_new_lists(foreign: &str) -> Result<Self, Error> {
        let folder = paths::folder("apt")?;
        for below in ["parts", "lists/partial", "cache/archives/partial"] {
            paths::folder(&format!("apt/{below}"))?;
        }
        let architectures = ["amd64", foreign].map(|name| name.trim_start_matches(':')).join(",");
        let architectures = architectures.trim_end_matches(',').to_owned();
        let codename = sources::codename()?;
        let backports = format!("{codename}-backports");
        let list = folder.join("sources.list");
        fs::write(&list, sources::list(&codename, foreign.trim_start_matches(':'))?)
            .map_err(|error| at(&list, error))?;
        let apt = Self {
            architectures,
            folder,
            packages: paths::folder("packages")?,
            backports,
            release: codename,
        };
        // One list of many that cannot be had is no reason to stop: what is missing then says so by its name.
        let updated = apt.run("apt-get", &["-q", "update"]);
        if apt.versions("busybox-static")?.is_empty() { updated.and(Ok(apt)) } else { Ok(apt) }
    }

    /// Versions of `package` in the archives, newest first.
    pub(crate) fn versions(&self, package: &str) -> Result<Vec<String>, Error> {
        let output = self.run("apt-cache", &["madison", package])?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = |line: &str| Some(line.split('|').nth(1)?.trim().to_owned());
        Ok(text.lines().filter_map(version).collect())
    }

    /// Packages whose names contain `part`.
    pub(crate) fn names(&self, part: &str) -> Result<Vec<String>, Error> {
        let output = self.run("apt-cache", &["pkgnames"])?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().filter(|name| name.contains(part)).map(str::to_owned).collect())
    }

    /// `packages` and all that they depend on, by name, whether this system has it or not.
    pub(crate) fn with_dependencies(&self, packages: &[String]) -> Result<Vec<String>, Error> {
        let mut words = vec!["depends", "--recurse", "--important"];
        words.extend(packages.iter().map(String::as_str));
        let output = self.run("apt-cache", &words)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // What they depend on is indented; names in brackets are those of several packages.
        Ok(text.lines().filter(|line| !line.starts_with([' ', '<'])).map(str::to_owned).collect())
    }

    /// Downloads packages, each `NAME` or `NAME=VERSION`, and gives their files in the same order.
    pub(crate) fn download<Name: AsRef<str>>(&self, packages: &[Name]) -> Result<Vec<PathBuf>, Error> {
        if packages.is_empty() {
            return Ok(Vec::new());
        }
        let mut words = vec!["-q", "download"];
        words.extend(packages.iter().map(AsRef::as_ref));
        self.run("apt-get", &words)?;
        packages.iter().map(|package| self.file_of(package.as_ref())).collect()
    }

    /// Downloads `package` of `release`, and of what it depends on whatever this system lacks.
    pub(crate) fn download_with_dependencies(
        &self,
        package: &str,
        release: &str,
    ) -> Result<Vec<PathBuf>, Error> {
        let archives = self.folder.join("cache/archives");
        for file in debs(&archives)? {
            fs::remove_file(&file).map_err(|error| at(&file, error))?;
        }
        let words = [
            "-q",
            "-y",
            "--download-only",
            "--no-install-recommends",
            "--reinstall",
            "-t",
            release,
            "install",
        ];
        self.run("apt-get", &[&words[..], &[package]].concat())?;
        debs(&archives)
    }

    fn file_of(&self, package: &str) -> Result<PathBuf, Error> {
        let (name, version) = package.split_once('=').unwrap_or((package, ""));
        let (name, architecture) = name.split_once(':').unwrap_or((name, "amd64"));
        // In names of files apt writes %3a for the colon of an epoch.
        let start = format!("{name}_{}", version.replace(':', "%3a"));
        let fits = |path: &PathBuf| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let ends = [format!("_{architecture}.deb"), "_all.deb".to_owned()];
            file.starts_with(&start) && ends.iter().any(|end| file.ends_with(end))
        };
        let newest_first = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
        let found = debs(&self.packages)?.into_iter().filter(fits).max_by_key(newest_first);
        found.ok_or_else(|| Error::Packages(format!("apt-get downloaded no {package}")))
    }

    /// Runs one of apt's programs where packages are to lie.
    fn run(&self, program: &str, words: &[&str]) -> Result<Output, Error> {
        let at = |part: &str| self.folder.join(part).display().to_string();
        let mut command = Command::new(program);
        for option in [
            format!("Dir::Etc::sourcelist={}", at("sources.list")),
            format!("Dir::Etc::sourceparts={}", at("parts")),
            format!("Dir::State::lists={}", at("lists")),
            format!("Dir::Cache={}", at("cache")),
            format!("APT::Architectures={}", self.architectures),
            "APT::Sandbox::User=".to_owned(),
            "Acquire::Languages=none".to_owned(),
            // Only lists of ours are written, and the system's locks need rights.
            "Debug::NoLocking=1".to_owned(),
        ] {
            command.arg("-o").arg(option);
        }
        command.args(words).current_dir(&self.packages).env("LC_ALL", "C");
        succeed(program, &mut command)
    }
}

/// Runs `command` to its end.
pub(crate) fn succeed(program: &str, command: &mut Command) -> Result<Output, Error> {
    let failed = |reason: String| Error::Program { program: program.to_owned(), reason };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(output),
        false => {
            Err(failed(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())))
        }
    }
}

/// Unpacks a package below `folder`: all of it, or where there are `patterns` of tar, only the paths that match one.
pub(crate) fn unpack(package: &Path, folder: &Path, patterns: &[String]) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|error| at(folder, error))?;
    // A pipe in a shell: dpkg-deb alone unpacks everything, and kernels are large.
    let script = r#"package=$1 folder=$2; shift 2; dpkg-deb --fsys-tarfile "$package" | tar x -C "$folder" --wildcards "$@""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(package).arg(folder).args(patterns);
    succeed("dpkg-deb | tar", &mut command).map(drop)
}

fn debs(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).map_err(|error| at(folder, error))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "deb")).collect())
}
